"""What Attention of a file means by the numeric contract: exact scores, the Softmax of these, shares in multiples of 2^-24.

Also of the product of a Softmax as a node of its own. All of it from the numbers in front of the node, in integers.
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
from hlsgen.simulation.exact_softmax import each, fraction_of, shares_of
from hlsgen.simulation.exact_values import Grid, Known, once

#: Shares are multiples of that, the nearest ones.
UNIT = 2.0**-24
#: Half a step of float32.
_ROUNDING = 2.0**-24


def is_attention(node: onnx.NodeProto) -> bool:
    """Whether a node is one of the two operators."""
    return (node.op_type == "Attention" and node.domain in ONNX) or (
        node.op_type == "MultiHeadAttention" and node.domain == MICROSOFT
    )


def in_multiples(shares: Array) -> Grid:
    """Shares as a product takes them."""
    return Grid(np.round(shares.astype(np.float64) / UNIT), np.asarray(UNIT))


def are_rounded(shares: Known) -> bool:
    """Whether the numbers of a tensor are multiples of the unit that its values are not."""
    grids = shares.grids or ()
    return len(grids) == 1 and float(grids[0].scale.ravel()[0]) == UNIT


def shares_reach(data: Sequence[Known | Array]) -> Array:
    """How far a product of shares themselves may be from that of their multiples: half a unit for each of the others."""
    left, right = (
        np.full(of.shape, UNIT / 2)
        if isinstance(known, Known) and are_rounded(known)
        else np.abs(of.astype(np.float64))
        for known, of in ((d, d.value if isinstance(d, Known) else d) for d in data[:2])
    )
    return np.asarray(np.matmul(left, right) * 1.01)


def attention(
    node: onnx.NodeProto, inputs: Sequence[Known | Array | None]
) -> tuple[Array, Array] | None:  # fmt: skip
    """The value, and how far float32 operations in any order may be from it; None if the numbers are not known.

    `inputs`: of the node in order, None where one is left out.
    """
    attrs: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    apart = _operands(node, attrs, inputs)
    if apart is None:
        return None
    q, k, v = apart
    flat = node.op_type == "MultiHeadAttention" or _rank(inputs[0]) == 3
    group = q.whole.shape[1] // k.whole.shape[1]
    k, v = (replace(grid, whole=np.repeat(grid.whole, group, axis=1)) for grid in (k, v))
    mask = _mask(node, attrs, inputs, (*q.whole.shape[:3], k.whole.shape[2]))
    given = float(attrs.get("scale", 0.0))
    factor = np.float32(given or 1 / np.sqrt(q.whole.shape[-1]))
    turned = k.whole.swapaxes(-1, -2)
    worth = Fraction(float(factor)) * Fraction(float(q.scale)) * Fraction(float(k.scale))
    exact = each(np.matmul(q.whole, turned), lambda whole: int(whole) * worth)
    single = mask.astype(np.float32)
    alone = (exact.astype(np.float32) + single == single) & (single != 0)
    exact = exact * (~alone).astype(object) + each(mask, fraction_of)
    magnitude = np.matmul(np.abs(q.whole), np.abs(turned)) * float(worth)
    shares, reach = shares_of(exact)
    # Each score is off by the roundings of its products, of both factors, and of the mask.
    off = (magnitude * (q.whole.shape[-1] + 12) * _ROUNDING).max(axis=-1, keepdims=True)
    reach = reach + shares.astype(np.float64) * np.expm1(2 * off)
    parts = in_multiples(shares)
    value = once((np.matmul(parts.whole, v.whole), parts.scale, v.scale))
    sizes = np.abs(v.whole) * float(v.scale)
    steps = (shares.shape[-1] + 6) * _ROUNDING
    far = np.matmul(reach + UNIT / 2, sizes) * 1.01 + np.matmul(shares.astype(np.float64), sizes) * steps * 1.01
    if flat:
        value, far = (a.transpose(0, 2, 1, 3).reshape(1, a.shape[2], -1) for a in (value, far))
    return value, far


def _rank(tensor: Known | Array | None) -> int:
    return 0 if tensor is None else (tensor.value if isinstance(tensor, Known) else tensor).ndim


def _operands(
    node: onnx.NodeProto, attrs: Mapping[str, Any], inputs: Sequence[Known | Array | None]
) -> tuple[Grid, Grid, Grid] | None:  # fmt: skip
    """Queries, keys, values: (1, heads, rows, elements), each of one scale."""
    found = []
    own = attrs.get("num_heads", attrs.get("q_num_heads", 0))
    shared = attrs.get("num_heads", attrs.get("kv_num_heads", 0))
    for tensor, heads in zip(inputs[:3], (own, shared, shared), strict=True):
        if not isinstance(tensor, Known) or tensor.grids is None or len(tensor.grids) != 1:
            return None
        (grid,) = tensor.grids
        if grid.scale.size != 1:
            return None
        whole = grid.whole
        if whole.ndim == 3:
            whole = whole.reshape(1, whole.shape[1], heads, -1).transpose(0, 2, 1, 3)
        found.append(Grid(whole, grid.scale.reshape(())))
    return found[0], found[1], found[2]


def _mask(
    node: onnx.NodeProto, attrs: Mapping[str, Any], inputs: Sequence[Known | Array | None], shape: tuple[int, ...]
) -> Array:  # fmt: skip
    """What is added to each score, float64."""
    place = 5 if node.op_type == "MultiHeadAttention" else 3
    given = inputs[place] if len(inputs) > place else None
    mask = np.zeros(shape)
    if isinstance(given, np.ndarray):
        added = np.where(given, 0.0, -np.inf) if given.dtype == np.bool_ else given.astype(np.float64)
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
