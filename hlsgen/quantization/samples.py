"""Sample inputs of a model, as the feeds of single runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend.onnx_graph import used_inputs
from hlsgen.numerics.fixed import Array

Feed = dict[str, Array]


def feeds_of(model: onnx.ModelProto, sample: Array | Mapping[str, Array]) -> list[Feed]:
    """One feed for each run of `model` on `sample`.

    sample: an array for the only input, or arrays by the names of the inputs. An array has frames along its first axis,
    as many in each run as the model declares, or one more axis for runs before it. Raises HG054.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value for value in used_inputs(model.graph, constants)}
    arrays = dict(sample) if isinstance(sample, Mapping) else {next(iter(inputs), ""): np.asarray(sample)}
    hint = f"Inputs of the model: {', '.join(inputs) or 'none'}."
    if set(arrays) != set(inputs):
        raise fail("HG054", "--calibrate", f"arrays for {', '.join(map(repr, arrays))}.", hint)
    problems, runs = Collector(), dict[str, list[Array]]()
    for name, value in inputs.items():
        with problems.catching():
            runs[name] = _runs_of(value, np.asarray(arrays[name]))
    problems.finish()
    counts = {name: len(parts) for name, parts in runs.items()}
    if len(set(counts.values())) != 1:
        raise fail(
            "HG054",
            "--calibrate",
            f"numbers of frames differ: {', '.join(f'{name} {count}' for name, count in counts.items())}.",
            "Give as many frames of each input.",
        )
    return [dict(zip(runs, parts, strict=True)) for parts in zip(*runs.values(), strict=True)]


def _runs_of(value: onnx.ValueInfoProto, array: Array) -> list[Array]:
    """The arrays of an input for each run, in the input's declared type. Raises HG054."""
    kind = value.type.tensor_type
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    shape = ", ".join("?" if dim is None else str(dim) for dim in dims)
    hint = f"The model's input has shape [{shape}]; give frames of it along the first axis."
    if not array.size or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise fail("HG054", value.name, f"sample of type {array.dtype} and shape {list(array.shape)}.", hint)
    typed = array.astype(dtype)
    if np.dtype(dtype).kind in "iub" and not np.array_equal(typed, array):
        raise fail("HG054", value.name, f"the sample holds values that {np.dtype(dtype)} does not have.", hint)
    if len(dims) == array.ndim - 1:
        runs = list(typed)
    elif len(dims) == array.ndim and dims:
        frames = dims[0] or 1
        if array.shape[0] % frames:
            raise fail("HG054", value.name, f"{array.shape[0]} frames, and the model takes {frames} at a time.", hint)
        runs = [typed[first : first + frames] for first in range(0, array.shape[0], frames)]
    else:
        raise fail("HG054", value.name, f"sample of shape {list(array.shape)}.", hint)
    if any(want not in (None, size) for want, size in zip(dims, runs[0].shape, strict=True)):
        raise fail("HG054", value.name, f"sample of shape {list(array.shape)}.", hint)
    return runs
