"""Bounds how far the float32 result of an operator on the host may be from the exact result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from hlsgen.numerics.fixed import Array
from hlsgen.simulation import exact_nodes
from hlsgen.simulation.exact_values import Known, dyadic
from hlsgen.simulation.oracles import Unable, run_node

#: Half a step of float32, steps by which a library's exp or log may be off, and the smallest float32.
_UNIT, _STEPS, _TINY = 2.0**-24, 16, 2.0**-149
#: Operators that add products of their inputs and constants.
_SUMS = frozenset("AveragePool GlobalAveragePool ReduceMean ReduceSum Resize Upsample LpPool GlobalLpPool".split())

#: onnxruntime's operators that normalize vectors of a sum: normalization, inputs of its factors, input of a third term.
NORMALIZED_SUMS = {
    "SkipLayerNormalization": ("LayerNormalization", (2, 3), 4),
    "SkipSimplifiedLayerNormalization": ("RMSNormalization", (2,), 3),
}


def has_open_order(node: onnx.NodeProto) -> bool:
    """True for operators of `exact_result`: their definitions leave the order of float32 operations open."""
    return node.op_type in (*exact_nodes.ROWS, *NORMALIZED_SUMS, "Softmax", "LogSoftmax", *_SUMS)


def exact_result(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> tuple[Array, Array]:
    """The exact result on these float32 inputs, as float64, and a bound for float32 operations in any order.

    Raises Unable for operators without a bound.
    """
    float64_arrays = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    if node.op_type in exact_nodes.ROWS:
        grid = dyadic(arrays[0])
        normalized = exact_nodes.rows(
            node, Known(arrays[0], None if grid is None else (grid,)), list(arrays), opsets.get("", 0)
        )
        if normalized is None:
            raise Unable(f"the exact result of {node.op_type} is not known")
        return normalized[0].astype(np.float64), normalized[1]
    if node.op_type in NORMALIZED_SUMS:
        return _normalized_sum(node, arrays, opsets)
    if node.op_type in ("Softmax", "LogSoftmax"):
        return _shares(node, arrays[0], run_node("onnx", node, float64_arrays, opsets)[0], opsets)
    if node.op_type in _SUMS:
        exact = run_node("onnx", node, float64_arrays, opsets)[0]
        magnitude = run_node("onnx", node, [np.abs(float64_arrays[0]), *float64_arrays[1:]], opsets)[0]
        terms = max(64, arrays[0].size // max(1, exact.size))
        return exact, np.asarray((terms + 8) * _UNIT * np.abs(magnitude) + _TINY)
    raise Unable(f"the host computes {node.op_type}, and there is no bound for its rounding")


def _normalized_sum(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> tuple[Array, Array]:
    """The normalized sum of two or three tensors. Rounding the sum moves each number by steps of its largest term."""
    kind, factors, third = NORMALIZED_SUMS[node.op_type]
    arrays_by_input = dict(zip((n for n, name in enumerate(node.input) if name), arrays, strict=True))
    terms = [arrays_by_input[n].astype(np.float64) for n in (0, 1, third) if n in arrays_by_input]
    x = np.asarray(sum(terms), np.float32)
    epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-12)
    normalization = onnx.helper.make_node(
        kind, ["x", *(f"f{n}" for n in factors if n in arrays_by_input)], ["y"], axis=-1, epsilon=epsilon
    )
    exact, reach = exact_result(
        normalization, [x, *(arrays_by_input[n] for n in factors if n in arrays_by_input)], opsets
    )
    exact_sum = x.astype(np.float64)
    middle = exact_sum.mean(axis=-1, keepdims=True) if kind == "LayerNormalization" else 0.0
    deviation = np.sqrt(((exact_sum - middle) ** 2).mean(axis=-1, keepdims=True) + epsilon)
    moved = 2 * len(terms) * _UNIT * np.asarray(sum(map(np.abs, terms))).max(axis=-1, keepdims=True) / deviation
    return exact, np.asarray(reach + moved * (2 + np.abs(exact_sum - middle) / deviation) * np.abs(arrays_by_input[2]))


def _shares(node: onnx.NodeProto, x: Array, exact: Array, opsets: Mapping[str, int]) -> tuple[Array, Array]:
    """A Softmax or its logarithm: differences to the largest score, their powers, and the sum of powers are rounded."""
    single_axis = opsets.get("", 13) >= 13
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if single_axis else 1) % x.ndim
    axes = (axis,) if single_axis else tuple(range(axis, x.ndim))
    length = int(np.prod([x.shape[a] for a in axes]))
    below = (x.max(axis=axes, keepdims=True) - x).astype(np.float64)
    logarithm = node.op_type == "LogSoftmax"
    with np.errstate(divide="ignore"):
        if logarithm:  # the sum of the powers lies between 1 and the length of a row
            exact = -below - np.log(np.exp(-below).sum(axis=axes, keepdims=True))
    steps = (4 * below + length + 4 * _STEPS) * _UNIT
    return exact, np.asarray(steps if logarithm else exact * steps + 4 * _TINY)
