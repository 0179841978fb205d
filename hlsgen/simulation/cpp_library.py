"""The C++ of a build compiled with g++ into a program that takes frames: C simulation without a vendor's tools."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.library import render
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import Ended, failed, run_tool
from hlsgen.simulation.cocotb_runner import COMPILE_SECONDS, SECONDS_A_BYTE, SLACK
from hlsgen.simulation.cpp_headers import include_folders
from hlsgen.simulation.cpp_processes import with_processes
from hlsgen.simulation.simulators import CPP
from hlsgen.testbench.sample_vectors import port_words

#: As the Makefile of a build compiles it; warnings are a matter of the library's tests.
FLAGS = ("-std=c++14", "-O2", "-ffp-contract=off", "-w", "-pthread")
#: Seconds a multiplication, and an element of a stream, on a slow machine; SLACK times of it are waited.
_PACE = {"ap_types": (5e-8, 2e-6), "ac_types": (1e-8, 5e-7)}
#: Seconds that a C simulation gets at least, and bytes of memory beside what it reads and writes.
MIN_SECONDS, _MEMORY = 60.0, 4 << 30
#: Frames that go through bounded streams one behind the other, what the program exits with if all processes wait, and
#: bytes of address space for the stack of a process.
BOUNDED_FRAMES, _DEADLOCK, _STACK = 3, 3, 1 << 28


@dataclass(frozen=True, eq=False)
class Simulated:
    """What a core sent: of each output port the words, uint8 (beats, bytes), and TLAST of each; and the beats behind layers.

    `layers`: by position, uint8 (beats, bytes); empty if not asked for.
    """

    words: list[Array]
    last: list[Array]
    layers: dict[int, Array]


class CppCore:
    """The compiled C++ of a build. It runs in processes of its own, which may neither crash this one nor run for ever."""

    def __init__(self, build: Build, core: Path, work: Path, simulator: str) -> None:
        """Compiles what lies in `core`/hls, with the integers of a simulator of `CPP`. Raises HG052, HG053."""
        self.build, self.work, self.simulator = build, work, simulator
        design, dialect = build.cpp, CPP[simulator]
        #: Position -> name of the stream behind a layer, and what it carries.
        self.layers = {
            part.node.position: (part.outputs[0].name, part.node.result)
            for part in design.parts
            if part.node.position >= 0
        }
        headers = include_folders(dialect)
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise fail("HG052", simulator, "g++ is not on PATH.", "On Debian or Ubuntu: apt-get install g++")
        (work / "native.cpp").write_text(render("cpp/native.cpp.j2", core=design, layers=list(self.layers.values())))
        own = [
            _with_processes(core / "hls", work / "processes"),
            core / "hls" / "csim",
            *([core / "hls" / "csim_ac"] if dialect == "ac" else []),
        ]
        flags = [f"-I{os.path.relpath(folder, work)}" for folder in own]  # relative, so that ccache knows it again
        for folder in headers:
            flags += ["-isystem", str(folder)]
        cache = [ccache] if (ccache := shutil.which("ccache")) else []
        self._compile([*cache, compiler, *FLAGS, *flags, "-c", "native.cpp", "-o", "native.o"])
        self._compile([compiler, "-pthread", "native.o", "-o", "native"])

    def _compile(self, command: list[str]) -> None:
        size = sum(len(data) for name, data in self.build.files.items() if name.startswith("hls/"))
        seconds = COMPILE_SECONDS + SECONDS_A_BYTE * size
        done = run_tool(command, self.work, os.environ, self.simulator, seconds, "the compilation")
        if done.code:
            raise failed(self.simulator, "the core could not be compiled", done.log)

    def deadlock(self, codes: Array) -> str:
        """Sends a few frames through bounded streams: what is full and what is empty if all processes wait, else "".

        Each stream holds as many beats as its pragma says. Raises HG053 for any other error.
        """
        done = self._send(codes[:BOUNDED_FRAMES], 0, "bounded")
        if done.code == _DEADLOCK:
            return next((line for line in done.log.splitlines() if line.startswith("deadlock:")), "deadlock")
        self._refuse(done)
        return ""

    def run(self, codes: Array, *, layers: bool = False, seed: int = 0) -> Simulated:
        """Sends input codes (frames, *shape) through the core. Raises HG053, with what a stream said that was empty.

        seed: if it is not 0, streams seem empty at random in every second frame to processes that look.
        """
        network = self.build.network
        self._refuse(self._send(codes, seed, "layers" if layers else ""))
        ends = [(port.label, len(codes) * port.stream.beats) for port in network.outputs]
        found = {
            position: self._read(f"{name}.bin", len(codes) * stream.beats)
            for position, (name, stream) in (self.layers if layers else {}).items()
        }
        taken_words = [self._read(f"taken{label}.bin", n) for label, n in ends]
        return Simulated(taken_words, [self._read(f"last{label}.bin", n)[:, 0] for label, n in ends], found)

    def _send(self, codes: Array, seed: int, kind: str) -> Ended:
        """Runs the program on these codes. `kind`: "layers" for the beats of layers, "bounded" for streams with depths."""
        network, sent = self.build.network, 0
        for port in network.inputs:
            words = port_words(port, codes)
            (self.work / f"sent{port.label}.bin").write_bytes(np.ascontiguousarray(words).tobytes())
            sent += words.size
        taken = sum(port.stream.beats * (port.stream.port_bits // 8 + 1) for port in network.outputs)
        if kind == "layers":
            taken += sum(stream.beats * -(-stream.bits // 8) for _, stream in self.layers.values())
        room = _MEMORY + 2 * sent + 2 * len(codes) * taken
        if kind == "bounded":
            room += 8 * _STACK * (len(self.build.cpp.parts) + 8)  # processes may be made of several themselves
        command = [str(self.work / "native"), str(room), str(seed), *([kind] if kind else [])]
        seconds = time_limit(self.build, len(codes), self.simulator)
        return run_tool(command, self.work, os.environ, self.simulator, seconds, "the simulation")

    def _refuse(self, done: Ended) -> None:
        """Raises HG053 if the program has not ended well."""
        if done.code:
            by = f" by signal {-done.code}" if done.code < 0 else ""
            raise failed(self.simulator, f"the core ended{by}", done.log)

    def _read(self, name: str, beats: int) -> Array:
        return np.fromfile(self.work / name, np.uint8).reshape(beats, -1)


def time_limit(build: Build, frames: int, simulator: str) -> float:
    """Seconds in which a C simulation of so many frames has long ended."""
    macs = sum(work.macs for work in works_of(build.graph).values())
    elements = sum(node.result.beats * node.result.lanes for node in build.network.nodes)
    a_mac, an_element = _PACE[simulator]
    return MIN_SECONDS + SLACK * frames * (a_mac * macs + an_element * elements)


def _with_processes(source: Path, target: Path) -> Path:
    """A copy of the sources of a core, without those of its stand-ins and test bench, whose calls can be processes."""
    for path in (*source.glob("*.[ch]pp"), *source.glob("hg/*.hpp")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_bytes().decode(errors="surrogateescape")
        copy.write_bytes(with_processes(text).encode(errors="surrogateescape"))
    return target
