"""Runs the host code of a build, in Python and C, on hard numbers, and compares it with the interpreter.

The code is generated again from the model: no file of the build directory is executed. Each language reads numbers of
the head, bytes of both ports and numbers of the tail. The interpreter computes all of them as for `pack` and `run`.
The self-test counts results of its own functions that differ. The file's executor computes the codes of the same
numbers.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hlsgen.dataflow.network import Network
from hlsgen.diagnostics import Diagnostic
from hlsgen.host.emit import host_files
from hlsgen.ir import Model
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import failed, run_tool, work_folder
from hlsgen.simulation.host_plan_check import plan_differences
from hlsgen.simulation.host_quantizer import HeadCheck, check_head
from hlsgen.testbench.stimuli import stimuli

#: Most frames for the host code, and about the largest number of elements in all of them.
FRAMES, _ELEMENTS = 32, 1 << 16
#: Time limit of the compiler and of each program, in seconds.
_SECONDS = 300.0
#: Compilers fuse no products and sums in this code at any level; this level compiles fast.
_FLAGS = ("-std=c99", "-O1", "-w")


@dataclass(frozen=True)
class HostVerdict:
    """Result of the self-tests.

    - differences: by language, numbers or frames that differ from the interpreter's.
    - head: codes of an independent executor for the numbers of the head.
    - notes: languages that were not run, with the reason.
    """

    frames: int
    differences: dict[str, int] = field(default_factory=dict)
    head: HeadCheck = field(default_factory=HeadCheck)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not any(self.differences.values()) and not self.head.different

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """HG064 for each language that differs, and for the executor."""
        hint = "The host code does not match the core: please report this, with the model."
        texts = [
            f"{count} results of the host code in {language} differ from the interpreter's."
            for language, count in self.differences.items()
            if count
        ]
        texts += [self.head.text] if self.head.different else []
        return [Diagnostic("HG064", "host", text, hint) for text in texts]


def check_host(
    model: Model,
    network: Network,
    path: Path,
    seed: int,
    oracle: str,
    progress: Callable[[str], None] = lambda text: None,
) -> HostVerdict:
    """Runs the host code of a build. path: its ONNX model. oracle: the executor for the head. Raises HG053."""
    graph = network.graph.host_graph
    largest = max(graph.input.size, graph.output.size, *(source.size for source in graph.model.all_inputs))
    frames = max(1, min(FRAMES, _ELEMENTS // largest))
    inputs = stimuli(network, frames, seed)[:frames]
    rng = np.random.default_rng(seed)
    outputs = _extreme_codes(rng, network, frames)
    progress("the host code, in Python and C")
    files = host_files(network, "host", "host", inputs, outputs, seed)
    differences, notes = {}, list[str]()
    with work_folder("host code") as work:
        for name, data in files.items():
            (work / Path(name).name).write_bytes(data)
        differences["Python"] = _count_differences([sys.executable, "-I", "host.py", "--self-test"], work, "Python")
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if compiler is None:
            notes.append("the host code in C was not run: no C compiler (cc, gcc, clang) is on PATH.")
        else:
            _compile(compiler, work)
            differences["C"] = _count_differences([str(work / "selftest"), "host_vectors.bin"], work, "C")
    planned = plan_differences(graph, outputs)
    differences = {language: count + planned for language, count in differences.items()}
    return HostVerdict(frames, differences, check_head(model, network.graph, path, seed, oracle), notes)


def _extreme_codes(rng: np.random.Generator, network: Network, frames: int) -> Array:
    """Codes of the output: all lowest, all highest, then random codes of each port."""
    codes_by_port = []
    for port in network.outputs:
        type_ = port.value.type
        port_codes = rng.integers(type_.lo, type_.hi, (frames, *port.value.shape), endpoint=True)
        port_codes[0] = type_.lo
        port_codes[1:2] = type_.hi
        codes_by_port.append(port_codes)
    if len(codes_by_port) == 1:
        return codes_by_port[0]
    return np.concatenate([port_codes.reshape(frames, -1) for port_codes in codes_by_port], axis=1)


def _compile(compiler: str, work: Path) -> None:
    """Compiles the self-test in C. Raises HG053."""
    command = [compiler, *_FLAGS, "host.c", "host_selftest.c", "-lm", "-o", "selftest"]
    ended = run_tool(command, work, os.environ, "host code", _SECONDS, "compiling the host code in C")
    if ended.code:
        raise failed("host code", "the host code in C could not be compiled", ended.log)


def _count_differences(command: list[str], work: Path, language: str) -> int:
    """Runs a self-test; returns the number of differences that it counts. Raises HG053."""
    ended = run_tool(command, work, os.environ, "host code", _SECONDS, f"the host code in {language}")
    count = re.search(r"frames, (\d+) differences", ended.log)
    if count is None:
        raise failed("host code", f"the host code in {language} broke off", ended.log)
    return int(count[1])
