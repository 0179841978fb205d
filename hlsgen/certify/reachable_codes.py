"""The checker's own ranges of codes: those that a layer can give for the codes that its elements can have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify.monotone import pieces
from hlsgen.certify.stream_contents import Elements
from hlsgen.ir import Linear, Map
from hlsgen.ir.step_function import specialize
from hlsgen.numerics.fixed import Array

#: Larger tensors keep the range of their type.
_MAX_ELEMENTS = 1 << 14
#: Most codes that are evaluated one by one, where a function is not known to be monotone.
_MAX_CODES = 1 << 22


def reachable_sums(layer: Linear, elements: Elements) -> tuple[Array, Array]:
    """The lowest and the greatest sum of each row, int64 (rows,), within the model's bounds."""
    if layer.binary:
        return layer.lo, layer.hi
    columns = layer.weight.shape[1]
    low, high = elements.code_range(elements.numbers[layer.inputs[0]].reshape(-1, columns))
    positive, negative = np.maximum(layer.weight, 0), np.minimum(layer.weight, 0)
    lowest = (positive @ low.min(axis=0)) + (negative @ high.max(axis=0))
    greatest = (positive @ high.max(axis=0)) + (negative @ low.min(axis=0))
    return np.maximum(lowest, layer.lo), np.minimum(greatest, layer.hi)


def limit_codes(layer: Map, elements: Elements, value: int) -> None:
    """Set the range of codes of the elements of a function of one tensor, from the ranges of its inputs."""
    shape = layer.source.shape
    low, high = elements.code_range(elements.numbers[layer.inputs[0]].reshape(shape))
    if layer.result.size > _MAX_ELEMENTS:
        return
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
