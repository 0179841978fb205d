"""Deeploy's integer softmaxes and normalizations along the last axis: iSoftmax, ITAMax, iLayerNorm, iRMSNorm."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.dialect_deeploy import levels_of, power_of_two, whole_attribute, whole_constant
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir import RowStep
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share
from hlsgen.numerics.fixed import Array, IntType

#: Largest difference between two numbers of 8 bits.
_MAX_DIFFERENCE = 255


def integer_softmax(node: NodeContext) -> Imported:
    """iSoftmax: y * (n - 1) div the sum of y.

    y = (A * (B - d mod log2)^2 + C) >> (d div log2), d = largest element - x.

    Raises HG013, HG026.
    """
    a, b, c, log2 = (whole_attribute(node, key) for key in ("coeffA", "coeffB", "coeffC", "log2"))
    levels = levels_of(node)
    if log2 < 2:
        raise fail("HG013", node.name, f"attribute log2 is {log2}.", "It must be 2 or more.")
    differences = np.arange(_MAX_DIFFERENCE + 1)
    shift = np.minimum(differences // log2, 31)
    root = shift * log2 - differences + b
    if max(map(abs, (a, b, c))) >= 1 << 24:
        text = f"attributes coeffA, coeffB and coeffC are {a}, {b} and {c}."
        raise fail("HG013", node.name, text, f"Supported: absolute values below {1 << 24}.")
    polynomial = a * root * root + c
    return _shares(node, polynomial >> shift, (polynomial >> shift) * (levels - 1), polynomial)


def ita_max(node: NodeContext) -> Imported:
    """ITAMax: inv = (n - 1) * 256 div the sum of 256 >> sh, sh = (d + 16) >> 5; inv >> sh. Raises HG013, HG026."""
    return _shifted(node, levels_of(node) - 1)


def ita_partial_max(node: NodeContext) -> Imported:
    """ITAPartialMax of one group, the whole row: as ITAMax with n / 2 levels. Raises HG013, HG026."""
    width, length = whole_attribute(node, "group_width"), node.shape[-1]
    if width != length:
        text = f"group_width is {width}, rows have {length} elements."
        raise fail("HG013", node.name, text, "Supported: one group, the whole row.")
    return _shifted(node, levels_of(node) // 2 - 1)


def _shifted(node: NodeContext, largest: int) -> Imported:
    """Shares with powers of two as weights: floor(floor(largest * 256 / sum) / 2^sh) per element.

    This equals floor(floor(largest * 256 / 2^sh) / sum), which is imported.
    """
    shift = (np.arange(_MAX_DIFFERENCE + 1) + 16) >> 5
    return _shares(node, 256 >> shift, (largest * 256) >> shift)


def _shares(node: NodeContext, weights: Array, numerators: Array, unshifted: Array | None = None) -> Imported:
    """numerators[d] div the sum of weights[d] along a row, d = largest element - x.

    Raises HG013 for negative numbers in `unshifted`, or in `weights` without it.
    """
    _check(node)
    not_negative = weights if unshifted is None else unshifted
    if (not_negative < 0).any() or weights[0] < 1 or max(weights.max() * node.shape[-1], numerators.max()) >= 1 << 32:
        text = f"its exponentials are {weights.min()} to {weights.max()}, a row has {node.shape[-1]} elements."
        hint = "They must not be negative, the one of the largest element must be 1 or more, their sum below 2^32."
        raise fail("HG013", node.name, text, hint)
    share = Share(weights.astype(np.int64), numerators.astype(np.int64))
    return Imported(([(RowStep(BelowLargest()), node.shape), (RowStep(share), node.shape)],))


def layer_norm(node: NodeContext) -> Imported:
    """iLayerNorm. Raises HG013, HG020, HG023, HG026, HG027."""
    return _norm(node, whole_constant(node, 2, "bias"), centred=True)


def rms_norm(node: NodeContext) -> Imported:
    """iRMSNorm. Raises HG013, HG020, HG023, HG026, HG027."""
    return _norm(node, np.zeros(1, np.int64), centred=False)


def _norm(node: NodeContext, bias: Array, *, centred: bool) -> Imported:
    _check(node)
    shift, levels = power_of_two(node, "D"), levels_of(node)
    if levels != 256 or shift > 31:
        text = f"attribute n_levels is {levels}, D is 2^{shift}."
        raise fail("HG013", node.name, text, "Supported: 256 levels, D up to 2^31.")
    weight = whole_constant(node, 1, "weight", 1 << 23)
    parts: list[Array] = []
    for input_name, values in (("weight", weight), ("bias", bias)):
        if values.size not in (1, node.shape[-1]) or (values.size > 1 and values.shape[-1] != values.size):
            text = f"input {input_name} of shape {list(values.shape)}, rows have {node.shape[-1]} elements."
            raise fail("HG023", node.name, text, "Supported: one number, or one for each element of a row.")
        parts.append(np.broadcast_to(values.reshape(-1), node.shape[-1:]).copy())
    norm = IntegerNorm(centred, parts[0], parts[1], shift, IntType(-128, 127), wraps=centred)
    return Imported(([(RowStep(norm), node.shape)],))


def _check(node: NodeContext) -> None:
    if node.dtype != "float32":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Supported: whole numbers in float32, as Deeploy's files have them.")
    axis = whole_attribute(node, "axis", -1) % max(1, len(node.shape))
    if not node.shape or axis != len(node.shape) - 1:
        raise fail("HG013", node.name, f"axis {axis} of data of shape {list(node.shape)}.", "Supported: the last one.")
