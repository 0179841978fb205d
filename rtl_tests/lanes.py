"""Run a Verilog function module over numpy arrays, at millions of samples a second.

`compile_function` builds the module with Verilator into a shared library. Its only entry point applies arrays of
inputs element by element and collects the outputs. A module with a latency is clocked: one element per cycle,
optionally with random stalls of `en`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from verilated import CACHE, compile_model, runtime

Words = npt.NDArray[np.uint64]

_HARNESS = """
#include <cstddef>
#include <cstdint>

namespace {
const int LATENCY = %(latency)d;

Vdut* instance() {
    static VerilatedContext context;
    static Vdut dut(&context);
    return &dut;
}

inline void apply(Vdut* dut, const uint64_t* const* in, const size_t* stride, size_t i) {
%(apply)s
}

// Garbage that must have no effect, for the cycles with en = 0 and the final flush.
inline void disturb(Vdut* dut, uint64_t noise) {
%(disturb)s
}
}  // namespace

extern "C" __attribute__((visibility("default")))
void run(const uint64_t* const* in, const size_t* stride, uint64_t* out, size_t n, int stalls) {
    Vdut* dut = instance();
    (void)stalls;
%(body)s
}
"""

_COMBINATIONAL = """
    for (size_t i = 0; i < n; ++i) {
        apply(dut, in, stride, i);
        dut->eval();
        out[i] = dut->%(output)s;
    }
"""

_CLOCKED = """
    uint64_t noise = 88172645463325252ull;
    size_t edge = 0;
    while (edge < n + LATENCY - 1) {
        noise ^= noise << 13; noise ^= noise >> 7; noise ^= noise << 17;
        const bool en = !stalls || (noise & 3) != 0;
        if (en && edge < n) apply(dut, in, stride, edge); else disturb(dut, noise);
        dut->en = en;
        dut->clk = 0; dut->eval();
        dut->clk = 1; dut->eval();
        if (!en) continue;
        if (edge >= LATENCY - 1) out[edge - (LATENCY - 1)] = dut->%(output)s;
        ++edge;
    }
"""


def _harness(inputs: Mapping[str, int], output: str, latency: int) -> str:
    apply = [f"    dut->{name} = in[{k}][i * stride[{k}]];" for k, name in enumerate(inputs)]
    disturb = [
        f"    dut->{name} = (noise >> {k}) & {hex((1 << bits) - 1)}ull;"
        for k, (name, bits) in enumerate(inputs.items())
    ]
    body = (_CLOCKED if latency else _COMBINATIONAL) % {"output": output}
    return _HARNESS % {
        "latency": latency,
        "apply": "\n".join(apply),
        "disturb": "\n".join(disturb),
        "body": body,
    }


def _build(files: Sequence[Path], top: str, params: Mapping[str, int], harness: str) -> Path:
    """The shared library for these sources, from the cache if it was built before."""
    digest = hashlib.sha256(repr((top, sorted(params.items()), harness, runtime().name)).encode())
    for file in files:
        digest.update(file.read_bytes())
    folder = CACHE / f"{top}-{digest.hexdigest()[:20]}"
    library = folder / "libdut.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--top-module", top]
        options += [f"-G{name}={value}" for name, value in params.items()]
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            new_library = Path(scratch) / library.name
            compile_model([*options, *(str(file.resolve()) for file in files)], harness, new_library, "-O1")
            os.replace(new_library, library)
    return library


def compile_function(
    verilog_files: Sequence[Path],
    top: str,
    params: Mapping[str, int],
    inputs: Mapping[str, int],
    output: tuple[str, int],
    latency: int = 0,
) -> Callable[..., Words]:
    """A callable that evaluates module `top` on one array, or one scalar, for each input.

    `inputs` maps port names to widths, and `output` is the one observed port. No port is wider than 64 bits. Arguments
    are keywords: integers, or integer arrays of one length. Their low bits are used, so negative numbers are two's
    complement. The result is an array of uint64.

    A module with `latency` 0 is combinational. Otherwise it has ports `clk` and `en`, and the output for the inputs of
    a cycle appears `latency` enabled clock edges later. The keyword `stalls=True` disables a random quarter of cycles.
    """
    if any(bits > 64 for bits in (*inputs.values(), output[1])):
        raise ValueError(f"{top}: ports wider than 64 bits are not supported")
    library = ctypes.CDLL(str(_build(verilog_files, top, params, _harness(inputs, output[0], latency))))
    masks = {name: np.uint64((1 << bits) - 1) for name, bits in inputs.items()}

    def run(*, stalls: bool = False, **values: npt.ArrayLike) -> Words:
        if set(values) != set(inputs):
            raise TypeError(f"{top} takes {sorted(inputs)}, not {sorted(values)}")
        arrays = [_words(values[name]) & masks[name] for name in inputs]
        count = max(array.size for array in arrays)
        if any(array.size not in (1, count) for array in arrays):
            raise ValueError(f"{top}: arrays of different lengths")
        out = np.empty(count, dtype=np.uint64)
        pointers = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        strides = (ctypes.c_size_t * len(arrays))(*[int(array.size == count) for array in arrays])
        library.run(pointers, strides, ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(count), int(stalls))
        return out

    return run


def _words(value: npt.ArrayLike) -> Words:
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind not in "iu":
        raise TypeError(f"integers wanted, got {array.dtype}")
    return np.ascontiguousarray(array.astype(np.int64 if array.dtype.kind == "i" else np.uint64)).view(np.uint64)
