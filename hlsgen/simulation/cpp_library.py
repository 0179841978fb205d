"""Compiles the C++ of a build with g++ into a program that processes frames: C simulation without a vendor's tools."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import fail
from hlsgen.hls.core import Core
from hlsgen.interpreter.frame_states import fresh
from hlsgen.library import render
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import Ended, failed, run_tool
from hlsgen.simulation.cocotb_runner import COMPILE_SECONDS, SECONDS_A_BYTE, SLACK
from hlsgen.simulation.cpp_headers import include_folders
from hlsgen.simulation.cpp_processes import with_processes
from hlsgen.simulation.simulators import CPP
from hlsgen.testbench.sample_vectors import port_words

#: Flags of the Makefile of a build. Warnings are off: the tests of the library check them.
FLAGS = ("-std=c++14", "-O2", "-ffp-contract=off", "-w", "-pthread")
#: Seconds that a slow machine needs for a multiplication, and for an element of a stream. The limit is SLACK times
#: the sum.
_PACE = {"ap_types": (5e-8, 2e-6), "ac_types": (1e-8, 5e-7)}
#: Shortest time limit of a C simulation, in seconds, and bytes of memory besides its input and output.
MIN_SECONDS, _MEMORY = 60.0, 4 << 30
#: Frames that go through bounded streams, exit code of the program if all processes wait, and bytes of address space
#: for the stack of a process.
BOUNDED_FRAMES, _DEADLOCK, _STACK = 3, 3, 1 << 28


@dataclass(frozen=True, eq=False)
class Simulated:
    """Outputs of a simulated core.

    words: of each output port, uint8 (beats, bytes). last: TLAST of each beat, by output port. layers: beats after each
    layer by its position, uint8 (beats, bytes); empty unless requested.
    """

    words: list[Array]
    last: list[Array]
    layers: dict[int, Array]


class CppCore:
    """The compiled C++ of a build. It runs in child processes, which cannot crash this process and have a time
    limit."""

    def __init__(self, cpp: Core, network: Network, core: Path, work: Path, simulator: str) -> None:
        """Compiles the C++ in `core`/hls with the integer types of a simulator of `CPP`. Raises HG052, HG053."""
        self.cpp, self.network, self.work, self.simulator = cpp, network, work, simulator
        dialect = CPP[simulator]
        self._source_bytes = sum(file.stat().st_size for file in (core / "hls").rglob("*") if file.is_file())
        #: By position of a layer: name of the stream after it, and the stream.
        self.layers = {
            part.node.position: (part.outputs[0].name, part.node.result)
            for part in cpp.parts
            if part.node.position >= 0
        }
        headers = include_folders(dialect)
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise fail("HG052", simulator, "g++ is not on PATH.", "On Debian or Ubuntu: apt-get install g++")
        (work / "native.cpp").write_text(render("cpp/native.cpp.j2", core=cpp, layers=list(self.layers.values())))
        core_folders = [
            _with_processes(core / "hls", work / "processes"),
            core / "hls" / "csim",
            *([core / "hls" / "csim_ac"] if dialect == "ac" else []),
        ]
        # Relative paths, so that ccache recognizes the same command.
        flags = [f"-I{os.path.relpath(folder, work)}" for folder in core_folders]
        for folder in headers:
            flags += ["-isystem", str(folder)]
        cache = [ccache] if (ccache := shutil.which("ccache")) else []
        self._compile([*cache, compiler, *FLAGS, *flags, "-c", "native.cpp", "-o", "native.o"])
        self._compile([compiler, "-pthread", "native.o", "-o", "native"])

    def _compile(self, command: list[str]) -> None:
        """Runs a command of the compiler. Raises HG053."""
        seconds = COMPILE_SECONDS + SECONDS_A_BYTE * self._source_bytes
        ended = run_tool(command, self.work, os.environ, self.simulator, seconds, "the compilation")
        if ended.code:
            raise failed(self.simulator, "the core could not be compiled", ended.log)

    def deadlock(self, codes: Array) -> str:
        """Sends a few frames through bounded streams; returns the full and the empty streams if all processes wait,
        else "".

        Each stream holds as many beats as its pragma requests. Raises HG053 for any other error.
        """
        ended = self._send(codes[:BOUNDED_FRAMES], "bounded")
        if ended.code == _DEADLOCK:
            return next((line for line in ended.log.splitlines() if line.startswith("deadlock:")), "deadlock")
        self._require_success(ended)
        return ""

    def run(self, codes: Array, *, layers: bool = False) -> Simulated:
        """Sends input codes (frames, *shape) through the core. Raises HG053; the message names a stream that was read
        empty."""
        self._require_success(self._send(codes, "layers" if layers else ""))
        beats_by_label = [(port.label, len(codes) * port.stream.beats) for port in self.network.outputs]
        layer_words = {
            position: self._read(f"{name}.bin", len(codes) * stream.beats)
            for position, (name, stream) in (self.layers if layers else {}).items()
        }
        words = [self._read(f"taken{label}.bin", beats) for label, beats in beats_by_label]
        last = [self._read(f"last{label}.bin", beats)[:, 0] for label, beats in beats_by_label]
        return Simulated(words, last, layer_words)

    def _send(self, codes: Array, kind: str) -> Ended:
        """Runs the program on these codes. `kind`: "layers" to record beats after layers, "bounded" for streams with
        depths."""
        network, input_bytes = self.network, 0
        for port in network.inputs:
            words = port_words(port, codes)
            (self.work / f"sent{port.label}.bin").write_bytes(np.ascontiguousarray(words).tobytes())
            input_bytes += words.size
        if self.cpp.starts_by == "tuser":
            (self.work / "starts.bin").write_bytes(fresh(network.graph, codes).astype(np.uint8).tobytes())
        output_bytes = sum(port.stream.beats * (port.stream.port_bits // 8 + 1) for port in network.outputs)
        if kind == "layers":
            output_bytes += sum(stream.beats * -(-stream.bits // 8) for _, stream in self.layers.values())
        memory_limit = _MEMORY + 2 * input_bytes + 2 * len(codes) * output_bytes
        if kind == "bounded":
            memory_limit += 8 * _STACK * (len(self.cpp.parts) + 8)  # a process may start several others
        command = [str(self.work / "native"), str(memory_limit), *([kind] if kind else [])]
        seconds = time_limit(self.network, len(codes), self.simulator)
        return run_tool(command, self.work, os.environ, self.simulator, seconds, "the simulation")

    def _require_success(self, ended: Ended) -> None:
        """Raises HG053 if the program failed."""
        if ended.code:
            by = f" by signal {-ended.code}" if ended.code < 0 else ""
            raise failed(self.simulator, f"the core ended{by}", ended.log)

    def _read(self, name: str, beats: int) -> Array:
        return np.fromfile(self.work / name, np.uint8).reshape(beats, -1)


def time_limit(network: Network, frames: int, simulator: str) -> float:
    """Seconds after which a C simulation of this number of frames has failed."""
    macs = sum(work.macs for work in works_of(network.graph).values())
    elements = sum(node.result.beats * node.result.lanes for node in network.nodes)
    seconds_a_mac, seconds_an_element = _PACE[simulator]
    return MIN_SECONDS + SLACK * frames * (seconds_a_mac * macs + seconds_an_element * elements)


def _with_processes(source: Path, target: Path) -> Path:
    """Copies the sources of a core to `target`, rewritten so that calls can run as processes.

    The copy does not include the substitutes of vendor headers and the test bench.
    """
    for path in (*source.glob("*.[ch]pp"), *source.glob("hg/*.hpp")):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_bytes().decode(errors="surrogateescape")
        copy.write_bytes(with_processes(text).encode(errors="surrogateescape"))
    return target
