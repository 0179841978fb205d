"""Second reading of nodes that move elements, or reduce axes: onnx's own evaluator, and the steps of the Model, on numbers.

The numbers are whole, so every sum of them is exact, and, where elements only move, all different.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hlsgen.certify.second_reading.steps import Found, Told, differ
from hlsgen.ir import Concat, Conv, MatMul, Pad, Pool, Reduction, Repeat, Reshape, Slice, Step, Transpose
from hlsgen.ir.ops import Constant, Div, Where
from hlsgen.numerics.fixed import Array

#: Larger tensors are not tried.
_MOST = 1 << 24


def moved(found: Found, n: int) -> Told:
    """Every element at its place: numbers from 1 on."""
    start, arrays = 1, []
    for shape in found.taken(n):
        size = int(np.prod(shape))
        arrays.append(np.arange(start, start + size, dtype=np.float64).reshape(shape))
        start += size
    return _alike(found, n, arrays)


def reduced(found: Found, n: int) -> Told:
    """Sums, averages and maxima over axes."""
    rng = np.random.default_rng(0)
    return _alike(found, n, [rng.integers(-99, 100, shape).astype(np.float64) for shape in found.taken(n)])


def _alike(found: Found, n: int, arrays: list[Array]) -> Told:
    if not arrays or sum(a.size for a in arrays) > _MOST or found.file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    results, wanted = of_steps(found, n, arrays), _evaluated(found, n, arrays)
    if results is None or wanted is None:
        return None
    used = [y for name, y in zip(found.file.nodes[n].output, wanted, strict=True) if found.file.is_used(name)]
    told: list[str] = []
    for place, y in enumerate(used):
        if len(used) > 1 or not results:  # each of several outputs is one step, or none where nothing changes
            same = y.shape == arrays[0].shape and bool((y == arrays[0]).all())
            if same and (not results or results[0].shape != y.shape or bool((results[0] != y).any())):
                continue
            if not results:
                return None if len(used) == 1 else ["a part was imported as the whole."]
            made = results.pop(0)
        else:
            made = results[-1]
        if made.shape != y.shape:
            told.append(f"a result of shape {list(made.shape)} was imported, the file has {list(y.shape)}.")
        else:
            told += differ(f"element {place}" if len(used) > 1 else "element", made, y)
    return told


def _evaluated(found: Found, n: int, arrays: list[Array]) -> list[Array] | None:
    """The node by onnx's evaluator, which has GlobalMaxPool for images of two axes alone."""
    file, node = found.file, found.file.nodes[n]
    if node.op_type == "GlobalMaxPool":
        return [arrays[0].max(axis=tuple(range(2, arrays[0].ndim)), keepdims=True)]
    given, rest = {}, list(arrays)
    for name in dict.fromkeys(filter(None, node.input)):
        if name in file.computed and rest:
            given[name] = rest.pop(0)
        elif name in file.constants:
            given[name] = file.constants[name].array
        else:
            return None
    ins = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in given.items()
    ]
    outs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    versions = [helper.make_opsetid("", file.opset)]
    made = helper.make_model(helper.make_graph([node], "g", ins, outs), opset_imports=versions, ir_version=10)
    try:
        results: Any = ReferenceEvaluator(made).run(None, given)
    except Exception:  # of forms that it does not know
        return None
    values = iter(np.asarray(y) for y in results)
    return [next(values) if name else np.zeros(0) for name in node.output]


def of_steps(
    found: Found, n: int, arrays: list[Array], weights: Mapping[int, Array] | None = None
) -> list[Array] | None:  # fmt: skip
    """The results of all steps of node n for arrays in place of the tensors that it takes; None of an unknown step.

    `weights`: those of a Conv by its id.
    """
    known: dict[int, Array] = {}
    outside = found.outside(n)
    if len(outside) not in (1, len(arrays)):
        return None
    for value, array in zip(outside, arrays, strict=len(outside) == len(arrays)):
        known[value] = array
    results = []
    for number, step in enumerate(found.model.steps, 1):
        if any(step is own for own in found.steps(n)):
            made = _step(step, [known[i] for i in step.inputs], weights or {})
            if made is None:
                return None
            known[number] = made
            results.append(made)
    return results


def _step(step: Step, given: list[Array], weights: Mapping[int, Array]) -> Array | None:
    x = given[0]
    match step.op:
        case Reshape():
            return x.reshape(step.shape)
        case Transpose(perm):
            return np.asarray(x.transpose(perm))
        case Slice(ranges):
            return x[tuple(slice(*r) for r in ranges)]
        case Repeat(rows, columns):
            return x.repeat(rows, axis=1).repeat(columns, axis=2)
        case Concat(axis):
            return np.concatenate(given, axis)
        case Pad((top, left, bottom, right), value):
            return np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)], constant_values=value)
        case Where(((Constant(condition),), (Constant(value),), ())):
            return np.where(condition, value, x)
        case Pool(kind, window):
            seen = _windows(x, window, 0.0 if kind is Reduction.SUM else -np.inf)
            return np.asarray(seen.sum(axis=(-2, -1)) if kind is Reduction.SUM else seen.max(axis=(-2, -1)))
        case Div(value):
            return np.asarray(x / value.astype(np.float64))
        case MatMul() as op if id(op) in weights:
            return np.asarray(x @ weights[id(op)].T)
        case Conv() as op if id(op) in weights:
            seen, weight = _windows(x, op.window, 0.0), weights[id(op)]
            inner, own = weight.shape[-1], len(weight) // op.groups
            parts = [
                np.einsum(
                    "nhwcyx,oyxc->nhwo", seen[..., g * inner : (g + 1) * inner, :, :], weight[g * own : (g + 1) * own]
                )
                for g in range(op.groups)
            ]
            return np.concatenate(parts, -1)
        case _:
            return None


def _windows(x: Array, window: Any, filler: float) -> Array:
    """(n, height, width, channels, kernel height, kernel width)."""
    top, left, bottom, right = window.pads
    image = np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)], constant_values=filler)
    reach = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(image, reach, axis=(1, 2))
    (down, across), (dy, dx) = window.strides, window.dilations
    return np.asarray(seen[:, ::down, ::across, :, ::dy, ::dx])


#: Operator -> its second reading.
PROBES: dict[str, Callable[[Found, int], Told]] = {
    **dict.fromkeys(
        "Slice Split Gather Concat DepthToSpace SpaceToDepth Squeeze Unsqueeze Resize Upsample Expand Tile".split(), moved
    ),
    **dict.fromkeys("GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum ReduceMax".split(), reduced),
}  # fmt: skip
