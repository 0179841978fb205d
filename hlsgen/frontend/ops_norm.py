"""Normalizations: LayerNormalization, RMSNormalization, instance and group normalization, and fused `norm_patterns`.

Views make the normalized axes the last one; gamma and beta follow as a product and a sum of float32.
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
    """LayerNormalization: x, gamma, optional beta. Raises HG010, HG013, HG020, HG023, HG026, HG027."""
    if node.used != [0]:
        text = "the output Mean or InvStdDev of LayerNormalization is used."
        raise fail("HG010", node.name, text, "Supported: only the normalized tensor.")
    return _trailing(node, NormKind.LAYER)


def rms_normalization(node: NodeContext) -> Imported:
    """RMSNormalization, SimplifiedLayerNormalization. Raises HG010, HG013, HG020, HG023, HG026, HG027."""
    if node.used != [0]:
        text = f"the second output of {node.op_type}, the deviation, is used."
        raise fail("HG010", node.name, text, "Supported: only the normalized tensor.")
    return _trailing(node, NormKind.RMS)


def fused(node: NodeContext) -> Imported:
    """Normalize of `norm_patterns`, with attributes kind, axes, epsilon. Raises HG013, HG026."""
    if node.last:
        return on_host(node)
    rank, attribute = len(node.shape), node.attrs.get("axes", [])
    axes = sorted({int(a) % rank for a in attribute if -rank <= int(a) < rank})
    if len(axes) != len(attribute) or not axes:
        text = f"the means are over the axes {list(attribute)} of data of shape {list(node.shape)}."
        raise fail("HG013", node.name, text, f"Each must be from {-rank} to {rank - 1}, and given once.")
    kind = NormKind(node.attrs.get("kind", NormKind.LAYER.value))
    return Imported((rows(node, kind, axes, node.attrs.get("epsilon", _EPSILON)),))


def instance_normalization(node: NodeContext) -> Imported:
    """InstanceNormalization: x, gamma and beta per channel. Raises HG013, HG020, HG023, HG026, HG027."""
    if node.last:
        return on_host(node)
    shape = node.shape
    if len(shape) < 3:
        text = f"InstanceNormalization of data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "Supported: signals (n, c, l) and images (n, c, h, w).")
    ops = rows(node, NormKind.LAYER, range(2, len(shape)), node.attrs.get("epsilon", _EPSILON))
    return Imported(([*ops, *_by_channel(node, shape[1], 1)],))


def group_normalization(node: NodeContext) -> Imported:
    """GroupNormalization: x, gamma and beta per channel, or, before opset 21, per group.

    Raises HG013, HG020, HG023, HG026, HG027.
    """
    if node.last:
        return on_host(node)
    shape, groups = node.shape, node.attrs.get("num_groups", 0)
    if len(shape) < 3 or not isinstance(groups, int) or groups < 1 or shape[1] % groups:
        text = f"attribute num_groups is {groups} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, "The data needs three axes or more, and channels divisible by num_groups.")
    split: Shape = (shape[0], groups, shape[1] // groups * math.prod(shape[2:]))
    epsilon = _epsilon(node, node.attrs.get("epsilon", _EPSILON))
    ops: ShapedOps = [(Reshape(), split), (Normalize(NormKind.LAYER, epsilon), split), (Reshape(), shape)]
    count = shape[1] if node.opset >= 21 else groups
    return Imported(([*ops, *_by_channel(node, count, shape[1] // count)],))


def _by_channel(node: NodeContext, count: int, repeats: int) -> ShapedOps:
    """Product with gamma and sum with beta for (n, channels, ...): `count` numbers, each for `repeats` channels."""
    shape = node.shape
    gamma, beta = (
        np.broadcast_to(operand(node.name, (count,), node.constant(n), input_name), (count,))
        .repeat(repeats)
        .reshape(1, -1, *(1,) * (len(shape) - 2))
        for n, input_name in ((1, "scale"), (2, "bias"))
    )
    return [(Mul(gamma), shape), (Add(beta), shape)]


def _trailing(node: NodeContext, kind: NormKind) -> Imported:
    """A normalization over all axes from the attribute axis on; the host computes it at the end of a network."""
    if node.last:
        return on_host(node)
    shape, rank, axis = node.shape, len(node.shape), node.attrs.get("axis", -1)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        text = f"attribute axis is {axis} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, f"Supported: {-rank} to {rank - 1}.")
    if node.attrs.get("stash_type", 1) != 1:
        text = f"attribute stash_type is {node.attrs['stash_type']}."
        raise fail("HG013", node.name, text, "Supported: 1 (float32).")
    ops = rows(node, kind, range(axis % rank, rank), node.attrs.get("epsilon", _EPSILON))
    ops.append((Mul(operand(node.name, shape, node.constant(1), "scale")), shape))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        ops.append((Add(operand(node.name, shape, node.constant(2), "bias")), shape))
    return Imported((ops,))


def rows(node: NodeContext, kind: NormKind, axes: Sequence[int], epsilon: float) -> ShapedOps:
    """A normalization over `axes`, which views make the last axis. Raises HG013, HG026."""
    shape = node.shape
    if node.dtype != "float32":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")
    step = Normalize(kind, _epsilon(node, epsilon))
    order = (*(a for a in range(len(shape)) if a not in axes), *axes)
    ordered = tuple(shape[a] for a in order)
    flat = (*ordered[: len(shape) - len(axes)], math.prod(shape[a] for a in axes))
    ops: ShapedOps = [(step, flat)]
    if flat != ordered:
        ops = [(Reshape(), flat), *ops, (Reshape(), ordered)]
    if order != tuple(range(len(shape))):
        back = tuple(int(a) for a in np.argsort(order))
        ops = [(Transpose(order), ordered), *ops, (Transpose(back), shape)]
    return ops


def _epsilon(node: NodeContext, attribute: float) -> float:
    """The attribute epsilon as float32, greater than 0. Raises HG013."""
    epsilon = float(np.float32(attribute))
    if not 0 < epsilon < math.inf:
        hint = "It must be finite and greater than 0, as rows may have equal elements."
        raise fail("HG013", node.name, f"attribute epsilon is {attribute}.", hint)
    return epsilon
