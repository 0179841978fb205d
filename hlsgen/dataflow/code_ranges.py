"""Codes that elements can have, carried from layer to layer: often fewer than the tensor's type has."""

from __future__ import annotations

import math

import numpy as np

from hlsgen.ir import Convolution, Graph, Linear, Map, Pooling, StreamedInput, View
from hlsgen.ir.evaluate import constant_shapes
from hlsgen.ir.input_codes import input_range
from hlsgen.ir.step_function import specialize
from hlsgen.ir.value_ranges import ValueRange, relabelled, value_range
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.monotone_pieces import edges

#: Tensors with more different elements keep the range of their type.
_MAX_ELEMENTS = 1 << 14


def code_ranges(graph: Graph) -> list[ValueRange | None]:
    """The lowest and the highest code of each element of every value, or None for all codes of its type.

    The arrays broadcast to the value's tensor. A function keeps the codes of its own input range, a matrix the sums of
    these.
    """
    ranges: list[ValueRange | None] = [input_range(graph)]
    for i, layer in enumerate(graph.layers):
        source_range = ranges[layer.inputs[0]]
        match layer:
            case Map():
                ranges.append(_of_function(layer, source_range))
            case Linear(binary=False) | Convolution(binary=False):
                ranges.append(_of_sums(layer, source_range))
            case Pooling() if source_range is not None:
                ranges.append(_of_pool(layer, source_range))
            case StreamedInput(offset=offset, result=result) if source_range is not None:
                place = slice(offset, offset + result.size)
                low, high = (np.broadcast_to(end, graph.input.shape).ravel()[place] for end in source_range)
                ranges.append((low.reshape(result.shape), high.reshape(result.shape)))
            case View() if source_range is not None:
                ranges.append((relabelled(layer, source_range[0]), relabelled(layer, source_range[1])))
            case _:
                ranges.append(value_range(graph, i + 1))
    return ranges


def _of_function(layer: Map, source_range: ValueRange | None) -> ValueRange | None:
    """The codes at the ends of the pieces on which the function is monotone. Equal pixels are evaluated once."""
    shape = layer.result.shape
    items = (layer.source.encoding, *layer.ops, layer.quantizer)
    shapes = [array.shape for array in source_range or ()] + [s for item in items for s in constant_shapes(item)]
    if all(math.prod(s[:-1]) == 1 for s in shapes):
        shape = (1,) * (len(shape) - 1) + shape[-1:]
    size = math.prod(shape)
    if size > _MAX_ELEMENTS:
        return None
    f = specialize(layer, np.arange(size), *(source_range or (None, None)))
    cuts = None if f.is_float else edges(f)
    if cuts is None:
        return None
    nonempty = cuts[1:] > cuts[:-1]
    first, last = (f.evaluate(np.clip(x, f.lo, f.hi)) for x in (cuts[:-1], cuts[1:] - 1))
    type_ = layer.result.type
    low = np.where(nonempty, np.minimum(first, last), type_.hi).min(axis=0)
    high = np.where(nonempty, np.maximum(first, last), type_.lo).max(axis=0)
    return low[f.index].reshape(shape), high[f.index].reshape(shape)


def _of_sums(layer: Linear | Convolution, source_range: ValueRange | None) -> ValueRange:
    """The least and the greatest sum of each row, over all vectors or windows."""
    low, high = column_ranges(layer, source_range)
    weight = layer.weight
    lowest_sums = np.where(weight > 0, weight * low, weight * high).reshape(len(weight), -1).sum(axis=1)
    highest_sums = np.where(weight > 0, weight * high, weight * low).reshape(len(weight), -1).sum(axis=1)
    shape = (1,) * (len(layer.result.shape) - 1) + (-1,)
    return lowest_sums.reshape(shape), highest_sums.reshape(shape)


def _of_pool(layer: Pooling, source_range: ValueRange) -> ValueRange:
    """The ends of each channel, the border among its codes; for sums, times the elements of a window."""
    low, high = _channel_ranges(layer, source_range, any(layer.window.pads))
    taps = layer.window.taps if layer.kind is Reduction.SUM else 1
    shape = (1,) * (len(layer.result.shape) - 1) + (-1,)
    return (low * taps).reshape(shape), (high * taps).reshape(shape)


def column_ranges(layer: Linear | Convolution, source_range: ValueRange | None) -> tuple[Array, Array]:
    """The lowest and the highest code of each weight's column in any vector, int64 that broadcast to the weights.

    Returns (columns,) for a Linear.
    """
    padded = isinstance(layer, Convolution) and any(layer.window.pads)
    low, high = _channel_ranges(layer, source_range, padded)
    if isinstance(layer, Convolution) and layer.groups > 1:
        shape = layer.groups, 1, 1, -1
        of_row = np.repeat(np.arange(layer.groups), len(layer.weight) // layer.groups)
        return low.reshape(shape)[of_row], high.reshape(shape)[of_row]
    return low, high


def _channel_ranges(
    layer: Linear | Convolution | Pooling, source_range: ValueRange | None, padded: bool
) -> tuple[Array, Array]:
    """The lowest and the highest code of each position of the last axis, int64; `padded`: with the border."""
    columns, type_ = layer.source.shape[-1], layer.source.type
    low, high = np.full(columns, type_.lo), np.full(columns, type_.hi)
    if source_range is not None:
        lows, highs = (np.broadcast_to(end, (*end.shape[:-1], columns)).reshape(-1, columns) for end in source_range)
        low, high = lows.min(axis=0), highs.max(axis=0)
    if padded and not isinstance(layer, Linear):
        low, high = np.minimum(low, layer.pad), np.maximum(high, layer.pad)
    return low, high
