"""Normalization of rows: LayerNormalization, RMSNormalization, those of images and groups, and what was made of one.

Rows are made the last axis by views; gamma and beta follow as a product and a sum of float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Normalize, NormKind, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Mul

_EPSILON = 1e-5


def layer_normalization(node: NodeContext) -> Imported:
    """LayerNormalization: x, gamma, beta or none. Raises HG010, HG013, HG020, HG023, HG026, HG027."""
    if node.used != [0]:
        raise fail("HG010", node.name, "its mean or deviation is used.", "Only the normalized tensor is supported.")
    return _trailing(node, NormKind.LAYER)


def rms_normalization(node: NodeContext) -> Imported:
    """RMSNormalization, SimplifiedLayerNormalization. Raises HG010, HG013, HG020, HG023, HG026, HG027."""
    if node.used != [0]:
        raise fail("HG010", node.name, "its deviation is used.", "Only the normalized tensor is supported.")
    return _trailing(node, NormKind.RMS)


def decomposed(node: NodeContext) -> Imported:
    """What `norm_patterns` made of a mean, a variance and a division: attributes kind, axes, epsilon."""
    if node.last:
        return on_host(node)
    rank, given = len(node.shape), node.attrs.get("axes", [])
    axes = sorted({int(a) % rank for a in given if -rank <= int(a) < rank})
    if len(axes) != len(given) or not axes:
        raise fail("HG013", node.name, f"axes {list(given)} of data of shape {list(node.shape)}.")
    kind = NormKind(node.attrs.get("kind", NormKind.LAYER.value))
    return Imported((rows(node, kind, axes, node.attrs.get("epsilon", _EPSILON)),))


def instance_normalization(node: NodeContext) -> Imported:
    """InstanceNormalization: x, gamma and beta of every channel. Raises HG013, HG020, HG023, HG026, HG027."""
    if node.last:
        return on_host(node)
    shape = node.shape
    if len(shape) < 3:
        raise fail("HG023", node.name, f"data of shape {list(shape)}.", "It takes images or signals.")
    ops = rows(node, NormKind.LAYER, range(2, len(shape)), node.attrs.get("epsilon", _EPSILON))
    return Imported(([*ops, *_by_channel(node, shape[1], 1)],))


def group_normalization(node: NodeContext) -> Imported:
    """GroupNormalization: x, gamma and beta of every channel, or, before opset 21, of every group.

    Raises HG013, HG020, HG023, HG026, HG027.
    """
    if node.last:
        return on_host(node)
    shape, groups = node.shape, node.attrs.get("num_groups", 0)
    if len(shape) < 3 or not isinstance(groups, int) or groups < 1 or shape[1] % groups:
        raise fail("HG013", node.name, f"{groups} groups of data of shape {list(shape)}.", "They must divide channels.")
    split: Shape = (shape[0], groups, shape[1] // groups * math.prod(shape[2:]))
    epsilon = _epsilon(node, node.attrs.get("epsilon", _EPSILON))
    ops: ShapedOps = [(Reshape(), split), (Normalize(NormKind.LAYER, epsilon), split), (Reshape(), shape)]
    each = shape[1] if node.opset >= 21 else groups
    return Imported(([*ops, *_by_channel(node, each, shape[1] // each)],))


def _by_channel(node: NodeContext, each: int, repeats: int) -> ShapedOps:
    """gamma and beta of every channel of (n, channels, ...), or of `repeats` channels each."""
    shape = node.shape
    gamma, beta = (
        np.broadcast_to(operand(node.name, (each,), node.constant(n), what), (each,))
        .repeat(repeats)
        .reshape(1, -1, *(1,) * (len(shape) - 2))
        for n, what in ((1, "scale"), (2, "bias"))
    )
    return [(Mul(gamma), shape), (Add(beta), shape)]


def _trailing(node: NodeContext, kind: NormKind) -> Imported:
    """Over all axes from the attribute `axis` on. At the end of a network the host does it."""
    if node.last:
        return on_host(node)
    shape, rank, axis = node.shape, len(node.shape), node.attrs.get("axis", -1)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise fail("HG013", node.name, f"axis {axis} of data of shape {list(shape)}.")
    if node.attrs.get("stash_type", 1) != 1:
        raise fail("HG013", node.name, f"stash_type {node.attrs['stash_type']}.", "Supported: 1, float32.")
    ops = rows(node, kind, range(axis % rank, rank), node.attrs.get("epsilon", _EPSILON))
    ops.append((Mul(operand(node.name, shape, node.constant(1), "scale")), shape))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        ops.append((Add(operand(node.name, shape, node.constant(2), "bias")), shape))
    return Imported((ops,))


def rows(node: NodeContext, kind: NormKind, axes: Sequence[int], epsilon: float) -> ShapedOps:
    """Normalization over some axes, which views make the last one. Raises HG013, HG026."""
    shape = node.shape
    if node.dtype != "float32":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")
    step = Normalize(kind, _epsilon(node, epsilon))
    order = (*(a for a in range(len(shape)) if a not in axes), *axes)
    apart = tuple(shape[a] for a in order)
    flat = (*apart[: len(shape) - len(axes)], math.prod(shape[a] for a in axes))
    ops: ShapedOps = [(step, flat)]
    if flat != apart:
        ops = [(Reshape(), flat), *ops, (Reshape(), apart)]
    if order != tuple(range(len(shape))):
        back = tuple(int(a) for a in np.argsort(order))
        ops = [(Transpose(order), apart), *ops, (Transpose(back), shape)]
    return ops


def _epsilon(node: NodeContext, value: float) -> float:
    """As float32, above 0."""
    small = float(np.float32(value))
    if not 0 < small < math.inf:
        raise fail("HG013", node.name, f"epsilon is {value}.", "It must be above 0: rows may be all alike.")
    return small
