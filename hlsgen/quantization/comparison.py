"""Compares the outputs of a quantized model with the outputs of its float model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.numerics.fixed import Array
from hlsgen.quantization.samples import Feed


@dataclass(frozen=True)
class OutputComparison:
    """One output of two models on the same frames.

    largest, mean: absolute differences, in the units of the output. snr_db: power of the output over power of the
    difference, in decibels; infinite for equal outputs. same_class: share of frames whose largest element has the same
    index, for outputs of shape (frames, classes), else None. equal: share of equal elements of an integer output, else
    None.
    """

    name: str
    largest: float
    mean: float
    snr_db: float
    same_class: float | None
    equal: float | None


def open_session(model: onnx.ModelProto) -> Any:
    """An onnxruntime session on the CPU without warnings. Raises HG003 if onnxruntime cannot load the model."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:  # the classes of onnxruntime's errors have no common public base
        raise fail("HG003", model.graph.name, f"onnxruntime cannot load it: {one_line(error)}") from None


def run_model(model: onnx.ModelProto, feeds: list[Feed]) -> dict[str, Array]:
    """Outputs of a model in onnxruntime by name, stacked along a new first axis for the feeds."""
    session = open_session(model)
    names = [output.name for output in session.get_outputs()]
    runs = [run_session(session, names, feed) for feed in feeds]
    outputs = {name: [run[number] for run in runs] for number, name in enumerate(names)}
    for name, arrays in outputs.items():
        if any(not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" for array in arrays):
            raise fail("HG010", name, "the output is not a tensor of numbers.", "Export the model without it.")
        if len({array.shape for array in arrays}) > 1:
            raise fail("HG012", name, "the shape of the output depends on the input.", "Export fixed shapes.")
    return {name: np.stack(arrays) for name, arrays in outputs.items()}


def run_session(session: Any, names: list[str], feed: Feed) -> list[Any]:
    """Tensors of these names for one feed. Raises HG010 with the reason of onnxruntime."""
    try:
        return list(session.run(names, feed))
    except Exception as error:  # the classes of onnxruntime's errors have no common public base
        raise fail("HG010", "--calibrate", f"onnxruntime cannot run the model: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """The text of an error in one line, or its class."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def compare_outputs(reference: dict[str, Array], quantized: dict[str, Array]) -> list[OutputComparison]:
    """Compares outputs of the same names and shapes."""
    return [_compared(name, reference[name], quantized[name]) for name in reference]


def _compared(name: str, reference: Array, quantized: Array) -> OutputComparison:
    exact, rounded = reference.astype(np.float64), quantized.astype(np.float64)
    difference = np.abs(exact - rounded)
    noise, signal = float((difference**2).sum()), float((exact**2).sum())
    snr_db = float("inf") if noise == 0 else 10 * float(np.log10(signal / noise)) if signal else float("-inf")
    equal = float((difference == 0).mean()) if reference.dtype.kind in "iub" else None
    same_class = None
    if equal is None and exact.ndim == 3 and exact.shape[-1] > 1:  # (runs, frames, classes)
        same_class = float((exact.argmax(-1) == rounded.argmax(-1)).mean())
    return OutputComparison(name, float(difference.max()), float(difference.mean()), snr_db, same_class, equal)
