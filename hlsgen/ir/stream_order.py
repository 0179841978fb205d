"""The order of each tensor's elements in its stream, and where a stream must be reordered.

An order is an int64 array: entry p is the row-major index of the element at stream position p. Reshapes
and transposes cost nothing: they only renumber elements. Images are streamed pixel by pixel, with all channels
of a pixel together. If a layer needs an order other than its input's, a buffer (hg_gather) reorders the stream.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.evaluate import constants, lead_axes
from hlsgen.ir.graph import (
    ArgMaxLayer,
    BinaryMap,
    Concatenation,
    Convolution,
    Delay,
    FloatBinary,
    Graph,
    IntegerRows,
    Layer,
    Linear,
    Map,
    MatrixProduct,
    NormRows,
    PackBytes,
    Pooling,
    Rearrange,
    SoftmaxRows,
    StreamedInput,
    StreamedOutputs,
    View,
    sources_of,
)
from hlsgen.ir.model import Pad, Repeat, Shape, Slice, Transpose
from hlsgen.ir.programs import Program
from hlsgen.numerics.fixed import Array

#: Number of elements compared at a time.
_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class StreamOrder:
    """`orders[i]`: order of value i. `reorderings[layer, n]`: the order that a layer needs for its n-th input.

    `reorderings` has an entry only where that order differs from the value's order.
    """

    orders: list[Array]
    reorderings: dict[tuple[int, int], Array] = field(default_factory=dict)

    def of_input(self, graph: Graph, layer: int, n: int = 0) -> Array:
        """The order in which a layer consumes its n-th input."""
        return self.reorderings.get((layer, n), self.orders[graph.layers[layer].inputs[n]])


class _OrderCache:
    """Shares equal orders of a network, and computes each derived order once."""

    def __init__(self) -> None:
        self._arrays: dict[bytes, Array] = {}
        self._results_by_key: dict[Hashable, list[Array]] = {}

    def shared(self, order: Array) -> Array:
        """The one array for this order; hence two orders are equal only if they are the same object."""
        return self._arrays.setdefault(hashlib.sha256(np.ascontiguousarray(order).data).digest(), order)

    def cached(self, key: Hashable, orders: list[Array], compute: Callable[[], list[Array]]) -> list[Array]:
        """The result of `compute` for these orders, computed at the first call only."""
        full_key = key, tuple(id(order) for order in orders)
        if full_key not in self._results_by_key:
            self._results_by_key[full_key] = [self.shared(order) for order in compute()]
        return self._results_by_key[full_key]


def lay_out(graph: Graph) -> StreamOrder:
    """The orders of all values, beginning with the input."""
    cache = _OrderCache()
    packed = np.arange(graph.input.size)
    input_order = packed if graph.inputs else _input_order(graph, 0, graph.input.shape)
    layout = StreamOrder([cache.shared(input_order)])
    for i, layer in enumerate(graph.layers):
        if isinstance(layer, StreamedInput):
            layout.orders.append(cache.shared(_input_order(graph, i + 1, layer.result.shape)))
            continue
        input_orders = [layout.orders[j] for j in layer.inputs]
        traits = _order_traits(layer)
        needed_orders = cache.cached(("needed", traits), input_orders, partial(_needed_orders, layer, input_orders))
        for n, (present, needed) in enumerate(zip(input_orders, needed_orders, strict=True)):
            if present is not needed:
                layout.reorderings[i, n] = needed
        layout.orders.extend(
            cache.cached(("result", traits), needed_orders, partial(_result_order, layer, needed_orders))
        )
    return layout


def _order_traits(layer: Layer) -> Hashable:
    """The properties of a layer that, with the input orders, determine its orders."""
    match layer:
        case View() | Rearrange():
            parameter: Hashable = layer.op
        case Convolution():
            parameter = layer.groups == 1
        case Concatenation():
            parameter = layer.axis
        case SoftmaxRows():
            parameter = layer.in_order
        case _:
            parameter = None
    return type(layer), parameter, tuple(source.shape for source in sources_of(layer)), layer.result.shape


def _needed_orders(layer: Layer, orders: list[Array]) -> list[Array]:
    """The orders in which the layer needs its inputs: the orders it gets if it can use them."""
    order = orders[0]
    shape = sources_of(layer)[0].shape
    match layer:
        case Map() | View() | StreamedInput() | StreamedOutputs():
            return orders
        case Linear() | NormRows():
            fits = vector_layout(order, shape) is not None
        case SoftmaxRows(in_order=False):
            fits = vector_layout(order, shape) is not None
        case ArgMaxLayer() | SoftmaxRows() | IntegerRows():
            layout = vector_layout(order, shape)
            fits = layout is not None and bool((np.diff(layout[1]) > 0).all())
        case Convolution():
            channels = channel_order(order, shape)
            fits = channels is not None and (layer.groups == 1 or bool((np.diff(channels) > 0).all()))
        case Pooling():
            fits = channel_order(order, shape) is not None
        case Rearrange():
            slices = isinstance(layer.op, Slice)
            fits = (axes_of(order, shape) if slices else channel_order(order, shape)) is not None
        case MatrixProduct():
            layout = vector_layout(order, shape)
            rows_fit = layout is not None and bool((np.diff(layout[1]) > 0).all())
            matrix_fits = matrix_axes(orders[1], layer.sources[1].shape) is not None
            return [
                input_order if fits else np.arange(len(input_order))
                for input_order, fits in zip(orders, (rows_fit, matrix_fits), strict=True)
            ]
        case Delay():
            return [np.arange(len(order))]
        case Concatenation():
            axes = common_axes(orders, [s.shape for s in layer.sources])
            return orders if axes is not None else [np.arange(len(input_order)) for input_order in orders]
        case BinaryMap() | FloatBinary() | PackBytes():
            return [order] * len(orders)
        case _:
            assert_never(layer)
    return [order if fits else np.arange(len(order))]


def _result_order(layer: Layer, orders: list[Array]) -> list[Array]:
    """The order of the result, in a list of one."""
    order, shape = orders[0], layer.result.shape
    match layer:
        case View():
            return [relabelled_indices(layer)[order] if isinstance(layer.op, Transpose) else order]
        case Linear() | MatrixProduct() | IntegerRows(function=Program()):
            rows, _ = _vectors(order, sources_of(layer)[0].shape)
            return [np.asarray((rows[:, None] * shape[-1] + np.arange(shape[-1])).ravel())]
        case Map() | BinaryMap() | FloatBinary() | PackBytes() | SoftmaxRows() | NormRows() | IntegerRows():
            return [order]
        case ArgMaxLayer():
            return [_vectors(order, layer.source.shape)[0]]
        case Convolution():
            return [np.arange(math.prod(shape))]
        case Pooling():
            return [_in_channel_order(order, layer.source.shape, shape)]
        case Rearrange():
            if isinstance(layer.op, Slice):
                return [_sliced_order(layer.op, order, layer.source.shape, shape)]
            return [_in_channel_order(order, layer.source.shape, shape)]
        case Delay():
            return [np.arange(math.prod(shape))]
        case Concatenation():
            axes = common_axes(orders, [s.shape for s in layer.sources])
            assert axes is not None
            return [order_along(axes, shape)]
        case StreamedInput() | StreamedOutputs():
            return [np.arange(math.prod(shape))]
        case _:
            assert_never(layer)


def relabelled_indices(layer: View) -> Array:
    """new[i] is the row-major index, after the layer, of the element with index i before it."""
    size = int(np.prod(layer.source.shape))
    if not isinstance(layer.op, Transpose):
        return np.arange(size)
    old = np.arange(size).reshape(layer.source.shape).transpose(layer.op.perm).ravel()
    new: Array = np.empty_like(old)
    new[old] = np.arange(size)
    return new


def vector_layout(order: Array, shape: Shape) -> tuple[Array, Array] | None:
    """(row of each vector, column of each vector element) of a stream of vectors along the last axis.

    Returns None if the vectors are not contiguous or differ in their order.
    """
    columns = shape[-1]
    table = order.reshape(-1, columns)
    rows, cols = table[:, 0] // columns, table[0] % columns
    chunk_rows = max(1, _CHUNK // columns)
    for start in range(0, len(rows), chunk_rows):
        if (table[start : start + chunk_rows] != rows[start : start + chunk_rows, None] * columns + cols).any():
            return None
    return rows, cols


def _vectors(order: Array, shape: Shape) -> tuple[Array, Array]:
    """`vector_layout` of an order that is known to have one."""
    layout = vector_layout(order, shape)
    assert layout is not None
    return layout


def channel_order(order: Array, shape: Shape) -> Array | None:
    """The order of a pixel's channels if the stream is an image pixel by pixel; else None."""
    layout = vector_layout(order, shape)
    return layout[1] if layout is not None and (np.diff(layout[0]) == 1).all() else None


def _in_channel_order(order: Array, shape: Shape, result: Shape) -> Array:
    """Order of the result, pixel by pixel, with the channels of each pixel ordered as in `order`."""
    channels = _vectors(order, shape)[1]
    return np.asarray((np.arange(math.prod(result[:-1]))[:, None] * result[-1] + channels).ravel())


def _sliced_order(op: Slice, order: Array, shape: Shape, result: Shape) -> Array:
    """Order of the elements that a Slice keeps."""
    new_index = np.full(shape, -1, np.int64)
    new_index[tuple(slice(*r) for r in op.ranges)] = np.arange(math.prod(result)).reshape(result)
    new_order = new_index.ravel()[order]
    return new_order[new_order >= 0]


def order_along(axes: list[int], shape: Shape) -> Array:
    """The order that traverses the axes, outermost first."""
    return np.asarray(np.arange(math.prod(shape)).reshape(shape).transpose(axes).ravel())


def axes_of(order: Array, shape: Shape) -> list[int] | None:
    """The axes, outermost first, in which the stream traverses a tensor, or None if there is no such order."""
    for channel in reversed(range(len(shape))):
        axes = [*(a for a in range(len(shape)) if a != channel), channel]
        if np.array_equal(order_along(axes, shape), order):
            return axes
    return [] if len(order) == 1 else None


def matrix_axes(order: Array, shape: Shape) -> list[int] | None:
    """The axes, outermost first, in which a stream of matrices traverses its tensor, or None if there is no such order.

    The innermost axis must be an axis of the matrices. Axes of length 1 come first.
    """
    short = [axis for axis, size in enumerate(shape[:-2]) if size == 1]
    long = [axis for axis in range(len(shape)) if axis not in short]
    for axes in permutations(long):
        if axes[-1] >= len(shape) - 2 and np.array_equal(order_along([*short, *axes], shape), order):
            return [*short, *axes]
    return None


def common_axes(orders: list[Array], shapes: list[Shape]) -> list[int] | None:
    """Axes, outermost first, in which all the streams run, or None if there are none."""
    for channel in reversed(range(len(shapes[0]))):
        axes = [*(a for a in range(len(shapes[0])) if a != channel), channel]
        if all(np.array_equal(order_along(axes, s), o) for o, s in zip(orders, shapes, strict=True)):
            return axes
    return None


def _input_order(graph: Graph, value: int, shape: Shape) -> Array:
    """The natural order of the first layer after an input that has one; otherwise channels last."""
    downstream = {value}
    for i, layer in enumerate(graph.layers):
        if downstream.isdisjoint(layer.inputs):
            continue
        downstream.add(i + 1)
        if isinstance(layer, Map | View | BinaryMap | FloatBinary | PackBytes | Concatenation | StreamedOutputs):
            continue
        if isinstance(layer, Rearrange) and not isinstance(layer.op, Repeat | Pad):
            continue
        order = np.arange(int(np.prod(sources_of(layer)[0].shape)))
        order_at_input = _order_before(graph, value, layer.inputs[0], downstream, order)
        if order_at_input is None:
            break
        return order_at_input
    element_count = int(np.prod(shape))
    maps = [x for i, x in enumerate(graph.layers) if isinstance(x, Map) and i + 1 in downstream]
    axes = {
        axis
        for layer in maps
        if len(layer.source.shape) == len(shape)
        for op in (*layer.ops, layer.quantizer)
        for name, value in constants(op).items()
        for axis, length in enumerate(value.shape[lead_axes(op, name) :])
        if length > 1
    }
    if len(axes) == 1:
        return np.moveaxis(np.arange(element_count).reshape(shape), axes.pop(), -1).ravel()
    return np.arange(element_count)


def _order_before(graph: Graph, start: int, value: int, downstream: set[int], order: Array) -> Array | None:
    """The order of value `start` that gives `order` at a value that depends on it.

    Returns None if other layers than Map, View, Concatenation and Slice are between, or if there is no such order.
    """
    while value != start:
        layer = graph.layers[value - 1]
        number = next(n for n, source in enumerate(layer.inputs) if source in downstream)
        if isinstance(layer, View):
            inverse = np.empty_like(order)
            inverse[relabelled_indices(layer)] = np.arange(len(order))
            order = inverse[order]
        elif isinstance(layer, Concatenation) or (isinstance(layer, Rearrange) and isinstance(layer.op, Slice)):
            axes = axes_of(order, layer.result.shape)
            if axes is None:
                return None
            order = order_along(axes, sources_of(layer)[number].shape)
        elif not isinstance(layer, Map):
            return None
        value = layer.inputs[number]
    return order


#: Largest number of nested loops in hg_gather.
MAX_LOOPS = 6


def loop_nest(address: Array) -> tuple[tuple[int, int], ...] | None:
    """Loops (extent, stride), outermost first, whose counters times strides sum up to the addresses.

    Returns None if no such loops exist, or more than `MAX_LOOPS` are needed.
    """
    loops: list[tuple[int, int]] = []
    starts = address
    while len(starts) > 1:
        stride = int(starts[1] - starts[0])
        breaks = np.flatnonzero(np.diff(starts) != stride)
        extent = int(breaks[0]) + 1 if len(breaks) else len(starts)
        while len(starts) % extent:
            extent -= 1
        table = starts.reshape(-1, extent)
        if extent == 1 or (table != table[:, :1] + stride * np.arange(extent)).any():
            return None
        loops.insert(0, (extent, stride))
        starts = table[:, 0]
    if (len(starts) and starts[0] != 0) or len(loops) > MAX_LOOPS:
        return None
    return tuple(loops) or ((1, 0),)


def block_length(address: Array, size: int) -> int:
    """The least divisor n of `size` such that the addresses repeat in consecutive blocks of n.

    Each block's addresses are n larger than the previous block's.
    """
    for length in (n for n in range(1, size + 1) if size % n == 0):
        block_count = size // length
        if len(address) % block_count:
            continue
        table = address.reshape(block_count, -1)
        if (table == table[0] + length * np.arange(block_count)[:, None]).all() and int(table[0].max()) < length:
            return length
    return size
