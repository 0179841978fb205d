"""Compares a build with its TFLite file, which the runtime runs unmodified, in a child process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from hlsgen.frontend.runtimes import RUNTIMES, TFLITE, VERSIONS
from hlsgen.frontend.tflite.file import read_file
from hlsgen.installation import install_command
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import tflite_child
from hlsgen.simulation.child_process import run_tool, work_folder
from hlsgen.simulation.file_verdict import Case, OracleVerdict
from hlsgen.simulation.oracles import Unable

#: Seconds for one run of a file.
_SECONDS = 300.0
#: Most differences that are recorded with their numbers.
_SHOWN = 10


def missing(runtime: str) -> str:
    """The reason why a runtime cannot run TFLite files here; empty if it can."""
    if runtime not in TFLITE:
        return f"{runtime} does not run TFLite files"
    package = RUNTIMES[runtime][0]
    name = package.replace("_", "-")
    if importlib.util.find_spec(package) is None:
        return f"{runtime} is not installed; {install_command('tflite')}"
    try:
        installed_version = version(name)
    except PackageNotFoundError:
        installed_version = "of unknown version"
    return "" if installed_version == VERSIONS[package] else f"{name} is {installed_version}, not {VERSIONS[package]}"


def run_file(data: bytes, runtime: str, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """The outputs (frames, *shape) of a file for its inputs (frames, *shape), frame by frame in order. Raises Unable.

    The child process has a limit of time and of memory. It may crash, as some files corrupt the runtime's memory.
    """
    with work_folder(runtime) as work:
        (work / "model.tflite").write_bytes(data)
        for number, array in enumerate(inputs):
            np.save(work / f"input_{number}.npy", array)
        program = str(Path(tflite_child.__file__).resolve())
        command = [sys.executable, "-I", program, runtime, str(len(inputs)), str(outputs)]
        ended = run_tool(command, work, {}, runtime, _SECONDS, "the run of the file", may_be_late=True)
        if ended.late:
            raise Unable(f"it did not end within {_SECONDS:.0f} s")
        if ended.code < 0:
            raise Unable(f"it crashed with signal {-ended.code}")
        if ended.code:
            lines = ended.log.strip().splitlines()
            raise Unable((lines[-1] if lines else f"exit code {ended.code}")[:160])
        return [np.load(work / f"output_{number}.npy") for number in range(outputs)]


def compare(data: bytes, feeds: Mapping[str, Array], ours: Mapping[str, Array], verdict: OracleVerdict) -> None:
    """Fills the verdict with the differences of the outputs `ours` (frames, *shape) from the outputs of the file.

    feeds: inputs by name, in the order of the file. Every element must be equal. Raises Unable.
    """
    runtime = verdict.asked
    file = read_file(data, "model.tflite")
    graph = file.graphs[0]
    if len(feeds) != len(graph.inputs) or len(ours) != len(graph.outputs):
        raise Unable("files with variables are not compared")
    dtypes = [np.dtype(graph.tensors[index].type) for index in graph.inputs]
    shapes = [graph.tensors[index].shape for index in graph.inputs]
    arrays = [
        x.astype(dtype).reshape(-1, *shape) for x, dtype, shape in zip(feeds.values(), dtypes, shapes, strict=True)
    ]
    theirs = run_file(data, runtime, arrays, len(ours))
    verdict.frames = len(arrays[0])
    verdict.ran = f"{runtime} {VERSIONS[RUNTIMES[runtime][0]]}"
    for (name, our_codes), their_codes in zip(ours.items(), theirs, strict=True):
        flat, expected = our_codes.reshape(len(our_codes), -1), their_codes.reshape(len(their_codes), -1)
        different = flat != expected
        count = int(different.sum())
        verdict.outputs += expected.size
        verdict.elements += expected.size
        verdict.compared += 1
        verdict.outputs_differ += count
        verdict.unexplained += count
        is_float = their_codes.dtype.kind == "f"
        verdict.floats += expected.size if is_float else 0
        verdict.floats_differ += count if is_float else 0
        verdict.integers_differ += 0 if is_float else count
        cases = verdict.cases.setdefault("unexplained", []) if count else []
        for frame, place in np.argwhere(different)[: _SHOWN - len(cases)]:
            index = tuple(int(i) for i in np.unravel_index(place, their_codes.shape[1:]))
            values = str(flat[frame, place]), str(expected[frame, place])
            cases.append(Case(name, int(frame), index, *values, "the outputs of the whole file are compared"))
