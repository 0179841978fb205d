"""Compares a build with its ALIR file, which alkaid's interpreter runs unmodified, in a child process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

from hlsgen.frontend.runtimes import ALIR, VERSIONS
from hlsgen.installation import install_command
from hlsgen.interpreter.model import interpret_from
from hlsgen.interpreter.tensor import tensor_of_numbers
from hlsgen.ir import Model
from hlsgen.ir.ops import IntQuant, Mul
from hlsgen.numerics.fixed import Array
from hlsgen.simulation import alir_child
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.file_verdict import Case, OracleVerdict
from hlsgen.simulation.oracles import run_in_child

#: Frames of numbers that the host must round or wrap, and most differences that are recorded with their numbers.
_HARD_FRAMES, _SHOWN = 64, 10
#: Distances of these numbers from codes, in units of the lowest bit.
_FRACTIONS = (0.0, 0.5, 1 - 2.0**-20, -(2.0**-20), 2.0**-20)
#: Multiples of the number of codes that are added.
_TURNS = (-3, -1, 0, 0, 1, 1000)


def missing(runtime: str) -> str:
    """The reason why a runtime cannot run ALIR files here; empty if it can."""
    if runtime != ALIR:
        return f"{runtime} does not run ALIR files"
    if importlib.util.find_spec("alkaid") is None:
        return f"alkaid is not installed; {install_command('csim')}"
    installed, expected = version("alkaid"), VERSIONS["alkaid"]
    return "" if installed == expected else f"alkaid is {installed}, not {expected}"


def run_file(data: bytes, x: Array) -> Array:
    """The outputs float64 (frames, outputs) of a file for inputs (frames, elements). Raises Unable."""
    with work_folder(ALIR) as work:
        (work / "model.alir.json").write_bytes(data)
        np.save(work / "input.npy", x.astype(np.float64))
        command = [sys.executable, "-I", str(Path(alir_child.__file__).resolve())]
        run_in_child(command, work, ALIR)
        return np.asarray(np.load(work / "output.npy"))


def compare(
    data: bytes, model: Model, feeds: Mapping[str, Array], ours: Mapping[str, Array], verdict: OracleVerdict
) -> None:
    """Fills the verdict with the differences of the outputs `ours` (frames, *shape) from the outputs of the file.

    feeds: the input by its name. The Model's outputs for numbers between the codes are compared as well. Every number
    must be equal. Raises Unable.
    """
    x = feeds[model.input_name].reshape(-1, model.input_shape[-1])
    hard = _hard_numbers(model, x)
    theirs = run_file(data, np.concatenate([x, hard]))
    outputs = ours[model.output_name].reshape(len(x), -1)
    between = interpret_from(model, 0, tensor_of_numbers(hard[:, None]))[-1].value.reshape(len(hard), -1)
    all_ours = np.concatenate([outputs, between])
    verdict.frames, verdict.compared = len(x), 1
    verdict.ran = f"alkaid {VERSIONS['alkaid']}"
    different = all_ours != theirs
    verdict.outputs = verdict.elements = verdict.floats = theirs.size
    verdict.outputs_differ = verdict.floats_differ = verdict.unexplained = int(different.sum())
    cases = verdict.cases.setdefault("unexplained", []) if different.any() else []
    for frame, place in np.argwhere(different)[:_SHOWN]:
        why = "numbers between codes" if frame >= len(x) else "the outputs of the whole file are compared"
        numbers = str(all_ours[frame, place]), str(theirs[frame, place])
        cases.append(Case(model.output_name, int(frame), (0, int(place)), *numbers, why))


def _hard_numbers(model: Model, x: Array) -> Array:
    """Numbers between the codes of `x` and beyond their range, (frames, elements)."""
    rng = np.random.default_rng(1)
    scale = next(step.op.value for step in model.steps if isinstance(step.op, Mul))
    codes = next(step.op.type.hi + 1 for step in model.steps if isinstance(step.op, IntQuant))
    codes_of_frames = x[rng.integers(len(x), size=_HARD_FRAMES)]
    offsets = rng.choice(_FRACTIONS, codes_of_frames.shape) + codes * rng.choice(_TURNS, codes_of_frames.shape)
    return np.asarray(codes_of_frames + offsets / scale.reshape(1, -1))
