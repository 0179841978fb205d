"""The checker's own ranges of codes: those that a layer can give for the codes that its elements can have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify.models.line_buffer import has_border
from hlsgen.certify.monotone import pieces
from hlsgen.certify.stream_contents import Elements
from hlsgen.ir import Convolution, Linear, Map, Pooling
from hlsgen.ir.step_function import specialize
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Larger tensors keep the range of their type.
_MAX_ELEMENTS = 1 << 14
#: Most codes that are evaluated one by one, where a function is not known to be monotone.
_MAX_CODES = 1 << 22


def reachable_sums(layer: Linear | Convolution, elements: Elements) -> tuple[Array, Array]:
    """The lowest and the greatest sum of each row, int64 (rows,), within the model's bounds."""
    if layer.binary:
        return layer.lo, layer.hi
    groups = layer.groups if isinstance(layer, Convolution) else 1
    rows = len(layer.weight) // groups
    low, high = (end.reshape(groups, -1).repeat(rows, axis=0) for end in _channel_codes(layer, elements))
    weight = layer.weight.reshape(len(layer.weight), -1, low.shape[1])
    positive, negative = np.maximum(weight, 0).sum(axis=1), np.minimum(weight, 0).sum(axis=1)
    lowest, greatest = positive * low + negative * high, positive * high + negative * low
    return np.maximum(lowest.sum(axis=1), layer.lo), np.minimum(greatest.sum(axis=1), layer.hi)


def _channel_codes(layer: Linear | Convolution | Pooling, elements: Elements) -> tuple[Array, Array]:
    """The lowest and the highest code of each position of the last axis, the border included, int64."""
    low, high = elements.code_range(elements.numbers[layer.inputs[0]].reshape(-1, layer.source.shape[-1]))
    low, high = low.min(axis=0), high.max(axis=0)
    if not isinstance(layer, Linear) and has_border(layer):
        return np.minimum(low, layer.pad), np.maximum(high, layer.pad)
    return low, high


def limit_pool(layer: Pooling, elements: Elements, value: int) -> None:
    """Set the range of codes of the results of windows, from the ranges of the channels."""
    low, high = _channel_codes(layer, elements)
    taps = layer.window.taps if layer.kind is Reduction.SUM else 1
    elements.limit(value, low * taps, high * taps)


def limit_codes(layer: Map, elements: Elements, value: int, max_elements: int = _MAX_ELEMENTS) -> None:
    """Set the range of codes of the elements of a function of one tensor, from the ranges of its inputs.

    Tensors with more than `max_elements` elements keep the range of their type.
    """
    if layer.result.size > max_elements:
        return
    shape = layer.source.shape
    low, high = elements.code_range(elements.numbers[layer.inputs[0]].reshape(shape))
    f = specialize(layer, np.arange(layer.result.size), low, high)
    if f.is_float:
        return
    parts = pieces(f)
    one_by_one = f.take(parts.s, parts.lo, parts.hi)
    ends = np.stack([one_by_one.evaluate(parts.lo), one_by_one.evaluate(parts.hi)])
    longest = int((parts.hi - parts.lo).max(initial=-1, where=parts.unknown)) + 1
    if 0 < longest * len(parts.s) <= _MAX_CODES:
        codes = np.minimum(parts.lo + np.arange(longest)[:, None], parts.hi)
        ends = np.concatenate([ends, one_by_one.evaluate(codes)])
        parts = replace(parts, unknown=np.zeros_like(parts.unknown))
    lowest, greatest = np.full(f.sets, layer.result.type.hi), np.full(f.sets, layer.result.type.lo)
    np.minimum.at(lowest, parts.s, np.where(parts.unknown, layer.result.type.lo, ends.min(axis=0)))
    np.maximum.at(greatest, parts.s, np.where(parts.unknown, layer.result.type.hi, ends.max(axis=0)))
    elements.limit(value, lowest[f.index].reshape(layer.result.shape), greatest[f.index].reshape(layer.result.shape))
