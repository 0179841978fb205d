"""Compares a build with its TFLite file, which the runtime runs unmodified, in a child process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from hlsgen.frontend.runtimes import RUNTIMES, TFLITE, VERSIONS
from hlsgen.frontend.tflite.chosen_outputs import with_output_numbers
from hlsgen.frontend.tflite.file import TfliteFile, read_file
from hlsgen.frontend.tflite.importer import import_tensors
from hlsgen.installation import install_command
from hlsgen.interpreter.model import interpret_from
from hlsgen.interpreter.tensor import tensor_of_numbers
from hlsgen.ir import Model, OutputParts
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import tflite_child
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.file_verdict import Case, OracleVerdict
from hlsgen.simulation.oracles import Unable, run_in_child

#: Most frames in which the first operator that differs is looked for.
_TRACED = 64
#: Most differences that are recorded with their numbers.
_SHOWN = 10
#: Called with each step in words.
Progress = Callable[[str], None]


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
        run_in_child(command, work, runtime)
        return [np.load(work / f"output_{number}.npy") for number in range(outputs)]


def compare(
    data: bytes,
    model: Model,
    feeds: Mapping[str, Array],
    ours: Mapping[str, Array],
    progress: Progress,
    verdict: OracleVerdict,
) -> None:
    """Fills the verdict with the differences of the outputs `ours` (frames, *shape) from the outputs of the file.

    model: gives names to the first operator that differs. feeds: inputs by name (frames, *shape), also of variables,
    whose values the runtime computes itself. Every element must be equal. Raises Unable.
    """
    runtime = verdict.asked
    file = read_file(data, "model.tflite")
    if not file.output_names:
        raise Unable("the file has no output")
    arrays = _arrays(file, feeds)
    theirs = run_file(data, runtime, arrays, len(file.output_names))
    verdict.frames = len(arrays[0])
    verdict.ran = f"{runtime} {VERSIONS[RUNTIMES[runtime][0]]}"
    first_frame = verdict.frames
    for name, their_codes in zip(file.output_names, theirs, strict=True):
        flat, expected = ours[name].reshape(verdict.frames, -1), their_codes.reshape(verdict.frames, -1)
        different = _differs(flat, expected)
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
            first_frame = min(first_frame, int(frame))
    if verdict.unexplained:
        located = first_difference(data, model, feeds, runtime, first_frame, progress)
        verdict.cases["unexplained"].insert(0, located)


def _arrays(file: TfliteFile, feeds: Mapping[str, Array]) -> list[Array]:
    """The inputs of the file (frames, *shape), in its order; zeros for one on which nothing depends."""
    frames = len(next(iter(feeds.values())))
    graph, arrays = file.graphs[0], []
    for name, index in zip(file.input_names, graph.inputs, strict=True):
        tensor = graph.tensors[index]
        x = feeds.get(name, np.zeros((frames, *tensor.shape)))
        arrays.append(x.astype(tensor.type).reshape(frames, *tensor.shape))
    return arrays


def first_difference(
    data: bytes, model: Model, feeds: Mapping[str, Array], runtime: str, frame: int, progress: Progress
) -> Case:
    """The first operator of the file whose results differ from the Model's, in the first such frame up to `frame`.

    The runtime gives each tensor as the output of the file, whose number is replaced. Raises Unable.
    """
    file = read_file(data, "model.tflite")
    graph = file.graphs[0]
    start = max(0, frame + 1 - _TRACED) if model.variables else frame
    numbers, values = _tensors(file, model, {name: x[start : frame + 1] for name, x in feeds.items()})
    inputs = [x[: frame + 1] if model.variables else x[start : frame + 1] for x in _arrays(file, feeds)]
    first, failed = None, 0
    for operator in graph.operators:
        for number in operator.outputs:
            if number not in numbers or graph.tensors[number].type == "resource":
                continue
            progress(f"{runtime}: {operator.name} {operator.node}")
            try:
                (theirs,) = run_file(with_output_numbers(data, [number]), runtime, inputs, 1)
            except Unable:
                failed += 1
                continue
            theirs = theirs[-len(values[number]) :]
            expected = theirs.reshape(len(theirs), -1)
            places = np.argwhere(_differs(values[number], expected))
            if len(places) and (first is None or start + places[0][0] < first.frame):
                place = tuple(places[0])
                index = tuple(int(i) for i in np.unravel_index(place[1], theirs.shape[1:]))
                why = f"{operator.name} is the first operator that differs"
                frame_number = int(start + place[0])
                first = Case(operator.node, frame_number, index, str(values[number][place]), str(expected[place]), why)
        if first is not None and first.frame == start:
            break
    if first is not None:
        return first
    text = "no operator differs from the model's steps, only the integers of the build do"
    if failed:
        text = f"no operator differs, of those that the runtime gives ({failed} not)"
    return Case(file.output_names[0], frame, (), "others", "its outputs", text)


def _tensors(file: TfliteFile, model: Model, feeds: Mapping[str, Array]) -> tuple[tuple[int, ...], dict[int, Array]]:
    """Numbers of the tensors that the Model of the file computes, and their values (frames, elements)."""
    inner, numbers = import_tensors(file, model.name, model.runtime)
    frames = len(next(iter(feeds.values())))
    unread = {variable.name: variable.initial for variable in inner.variables}
    parts = []
    for source in inner.all_inputs:  # the build has no input on which no output depends
        x = feeds.get(source.name, np.broadcast_to(unread.get(source.name, 0), (frames, *source.shape)))
        parts.append(x.astype(source.dtype).reshape(frames, *source.shape))
    packed = tensor_of_numbers(parts[0])
    if inner.inputs:
        x = np.concatenate([part.reshape(frames, -1).astype(np.float64) for part in parts], axis=1)
        packed = replace(tensor_of_numbers(x), parts=tuple(map(tensor_of_numbers, parts)))
    results = interpret_from(inner, 0, packed)
    last = inner.steps[-1]
    places = last.inputs if isinstance(last.op, OutputParts) else (len(inner.steps),)
    return numbers, {
        number: results[place].value.reshape(frames, -1) for number, place in zip(numbers, places, strict=False)
    }


def _differs(ours: Array, theirs: Array) -> Array:
    """A mask of the differing elements (frames, elements); NaN equals NaN."""
    return np.asarray((ours != theirs) & ~((ours != ours) & (theirs != theirs)))
