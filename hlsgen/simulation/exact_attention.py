"""The value of Attention by the numeric contract: exact scores, their Softmax, its results as multiples of 2^-24.

Also the product of a separate Softmax node. All are computed in integers from the exact inputs of the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.domains import MICROSOFT, ONNX
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_softmax import fraction_of, fractions, shares_of
from hlsgen.simulation.exact_values import Grid, Known, rounded_sum

#: Results of a Softmax (shares) are rounded to multiples of this unit.
UNIT = 2.0**-24
#: Half a step of float32.
_ROUNDING = 2.0**-24


def is_attention(node: onnx.NodeProto) -> bool:
    """True for either of the two attention operators."""
    return (node.op_type == "Attention" and node.domain in ONNX) or (
        node.op_type == "MultiHeadAttention" and node.domain == MICROSOFT
    )


def in_multiples(shares: Array) -> Grid:
    """Shares as the integers that a product multiplies."""
    return Grid(np.round(shares.astype(np.float64) / UNIT), np.asarray(UNIT))


def are_rounded(shares: Known) -> bool:
    """True if the numbers of a tensor are multiples of the unit, while its values are not."""
    grids = shares.grids or ()
    return len(grids) == 1 and float(grids[0].scale.ravel()[0]) == UNIT


def shares_reach(data: Sequence[Known | Array]) -> Array:
    """Bound of the distance between a product of unrounded shares and the product of their multiples.

    Each rounded factor is off by half a unit.
    """
    left_errors, right_errors = (
        np.full(values.shape, UNIT / 2)
        if isinstance(factor, Known) and are_rounded(factor)
        else np.abs(values.astype(np.float64))
        for factor, values in ((d, d.value if isinstance(d, Known) else d) for d in data[:2])
    )
    return np.asarray(np.matmul(left_errors, right_errors) * 1.01)


def attention(node: onnx.NodeProto, inputs: Sequence[Known | Array | None]) -> tuple[Array, Array] | None:
    """The value, and a bound for float32 operations in any order, or None if the exact inputs are not known.

    inputs: of the node in order, with None for missing inputs.
    """
    attrs: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    operands = _operands(node, attrs, inputs)
    if operands is None:
        return None
    q, k, v = operands
    is_rank_3 = node.op_type == "MultiHeadAttention" or _rank(inputs[0]) == 3
    group = q.integers.shape[1] // k.integers.shape[1]
    k, v = (replace(grid, integers=np.repeat(grid.integers, group, axis=1)) for grid in (k, v))
    mask = _mask(node, attrs, inputs, (*q.integers.shape[:3], k.integers.shape[2]))
    scale_attribute = float(attrs.get("scale", 0.0))
    factor = np.float32(scale_attribute or 1 / np.sqrt(q.integers.shape[-1]))
    k_transposed = k.integers.swapaxes(-1, -2)
    score_unit = Fraction(float(factor)) * Fraction(float(q.scale)) * Fraction(float(k.scale))
    exact = fractions(np.matmul(q.integers, k_transposed), lambda score: int(score) * score_unit)
    float32_mask = mask.astype(np.float32)
    masked = (exact.astype(np.float32) + float32_mask == float32_mask) & (float32_mask != 0)
    exact = exact * (~masked).astype(object) + fractions(mask, fraction_of)
    magnitude = np.matmul(np.abs(q.integers), np.abs(k_transposed)) * float(score_unit)
    shares, reach = shares_of(exact)
    # The roundings of its products, of both factors and of the mask change each score.
    score_error = (magnitude * (q.integers.shape[-1] + 12) * _ROUNDING).max(axis=-1, keepdims=True)
    reach = reach + shares.astype(np.float64) * np.expm1(2 * score_error)
    parts = in_multiples(shares)
    value = rounded_sum((np.matmul(parts.integers, v.integers), parts.scale, v.scale))
    sizes = np.abs(v.integers) * float(v.scale)
    steps = (shares.shape[-1] + 6) * _ROUNDING
    reach_of_value = (
        np.matmul(reach + UNIT / 2, sizes) * 1.01 + np.matmul(shares.astype(np.float64), sizes) * steps * 1.01
    )
    if is_rank_3:
        value, reach_of_value = (a.transpose(0, 2, 1, 3).reshape(1, a.shape[2], -1) for a in (value, reach_of_value))
    return value, reach_of_value


def _rank(tensor: Known | Array | None) -> int:
    """The number of axes of a tensor; 0 for a missing one."""
    return 0 if tensor is None else (tensor.value if isinstance(tensor, Known) else tensor).ndim


def _operands(
    node: onnx.NodeProto, attrs: Mapping[str, Any], inputs: Sequence[Known | Array | None]
) -> tuple[Grid, Grid, Grid] | None:
    """Queries, keys, values with the shape (1, heads, rows, elements) and one scale each, or None if they are not
    known."""
    operands = []
    query_heads = attrs.get("num_heads", attrs.get("q_num_heads", 0))
    key_heads = attrs.get("num_heads", attrs.get("kv_num_heads", 0))
    for tensor, heads in zip(inputs[:3], (query_heads, key_heads, key_heads), strict=True):
        if not isinstance(tensor, Known) or tensor.grids is None or len(tensor.grids) != 1:
            return None
        (grid,) = tensor.grids
        if grid.scale.size != 1:
            return None
        integers = grid.integers
        if integers.ndim == 3:
            integers = integers.reshape(1, integers.shape[1], heads, -1).transpose(0, 2, 1, 3)
        operands.append(Grid(integers, grid.scale.reshape(())))
    return operands[0], operands[1], operands[2]


def _mask(
    node: onnx.NodeProto, attrs: Mapping[str, Any], inputs: Sequence[Known | Array | None], shape: tuple[int, ...]
) -> Array:
    """The numbers added to the scores, float64 of this shape."""
    place = 5 if node.op_type == "MultiHeadAttention" else 3
    mask_input = inputs[place] if len(inputs) > place else None
    mask = np.zeros(shape)
    if isinstance(mask_input, np.ndarray):
        added = np.where(mask_input, 0.0, -np.inf) if mask_input.dtype == np.bool_ else mask_input.astype(np.float64)
        if added.ndim and 1 < added.shape[-1] < shape[-1]:
            missing = [(0, 0)] * (added.ndim - 1) + [(0, shape[-1] - added.shape[-1])]
            added = np.pad(added, missing, constant_values=-np.inf)
        mask = mask + added
    if place == 3 and len(inputs) > 6 and isinstance(inputs[6], np.ndarray):
        mask = mask + np.where(np.arange(shape[-1]) >= int(inputs[6].reshape(())), -np.inf, 0.0)
    if attrs.get("is_causal", 0):
        mask = mask + np.triu(np.full(shape[-2:], -np.inf), 1)
    elif attrs.get("unidirectional", 0):
        later = np.triu(np.ones(shape[-2:]), 1) == 1
        mask = mask + np.where(later, float(attrs.get("mask_filter_value", -10000.0)), 0.0)
    return mask
