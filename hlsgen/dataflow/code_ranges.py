"""Codes that elements can have, carried from layer to layer: often fewer than the tensor's type has."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import Graph, Linear, Map, View
from hlsgen.ir.step_function import specialize
from hlsgen.ir.value_ranges import ValueRange, relabelled, value_range
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.monotone_pieces import edges

#: Larger tensors keep the range of their type.
_MAX_ELEMENTS = 1 << 14


def code_ranges(graph: Graph) -> list[ValueRange | None]:
    """The lowest and the highest code of each element of every value, or None for all codes of its type.

    The arrays broadcast to the value's tensor. A function keeps the codes of its own input range, a matrix the sums of
    these.
    """
    ranges: list[ValueRange | None] = [None]
    for i, layer in enumerate(graph.layers):
        source_range = ranges[layer.inputs[0]]
        match layer:
            case Map() if layer.result.size <= _MAX_ELEMENTS:
                ranges.append(_of_function(layer, source_range))
            case Linear(binary=False) if layer.source.size <= _MAX_ELEMENTS:
                ranges.append(_of_sums(layer, source_range))
            case View() if source_range is not None:
                ranges.append((relabelled(layer, source_range[0]), relabelled(layer, source_range[1])))
            case _:
                ranges.append(value_range(graph, i + 1))
    return ranges


def _of_function(layer: Map, source_range: ValueRange | None) -> ValueRange | None:
    """The codes at the ends of the pieces on which the function is monotone."""
    f = specialize(layer, np.arange(layer.result.size), *(source_range or (None, None)))
    cuts = None if f.is_float else edges(f)
    if cuts is None:
        return None
    nonempty = cuts[1:] > cuts[:-1]
    first, last = (f.evaluate(np.clip(x, f.lo, f.hi)) for x in (cuts[:-1], cuts[1:] - 1))
    type_ = layer.result.type
    low = np.where(nonempty, np.minimum(first, last), type_.hi).min(axis=0)
    high = np.where(nonempty, np.maximum(first, last), type_.lo).max(axis=0)
    return low[f.index].reshape(layer.result.shape), high[f.index].reshape(layer.result.shape)


def _of_sums(layer: Linear, source_range: ValueRange | None) -> ValueRange:
    """The least and the greatest sum of each row, over all vectors."""
    low, high = column_ranges(layer, source_range)
    lowest_sums = np.where(layer.weight > 0, layer.weight * low, layer.weight * high).sum(axis=1)
    highest_sums = np.where(layer.weight > 0, layer.weight * high, layer.weight * low).sum(axis=1)
    shape = (1,) * (len(layer.result.shape) - 1) + (-1,)
    return lowest_sums.reshape(shape), highest_sums.reshape(shape)


def column_ranges(layer: Linear, source_range: ValueRange | None) -> tuple[Array, Array]:
    """The lowest and the highest code of each column in any vector, int64 (columns,)."""
    columns, type_ = layer.weight.shape[1], layer.source.type
    if source_range is None:
        return np.full(columns, type_.lo), np.full(columns, type_.hi)
    low, high = (np.broadcast_to(end, layer.source.shape).reshape(-1, columns) for end in source_range)
    return low.min(axis=0), high.max(axis=0)
