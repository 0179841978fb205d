"""Order of the elements of each tensor in its stream, and where a stream has to be put into another order.

An order is an int64 array: entry p is the row-major index of the element that comes p-th. Reshapes
and transposes cost nothing: they only rename elements. Images come pixel by pixel, all channels of one
after the other. Layers that need another order than they get have it made by a buffer (hg_gather).
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
    FloatJoint,
    GiveOutputs,
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
    TakeInput,
    View,
    sources_of,
)
from hlsgen.ir.model import Pad, Repeat, Shape, Slice, Transpose
from hlsgen.numerics.fixed import Array

#: Elements that are compared at a time.
_PORTION = 1 << 16


@dataclass(frozen=True, eq=False)
class StreamOrder:
    """`orders[i]`: order of value i. `wanted[layer, n]`: order that a layer needs its n-th input in, where
    that is not the one the value has."""

    orders: list[Array]
    wanted: dict[tuple[int, int], Array] = field(default_factory=dict)

    def of_input(self, graph: Graph, layer: int, n: int = 0) -> Array:
        """The order in which a layer gets its n-th input."""
        return self.wanted.get((layer, n), self.orders[graph.layers[layer].inputs[n]])


class _Known:
    """The orders of a network: each array once, however many streams have it, and what was computed from them once."""

    def __init__(self) -> None:
        self._arrays: dict[bytes, Array] = {}
        self._found: dict[Hashable, list[Array]] = {}

    def shared(self, order: Array) -> Array:
        """An equal array: two orders are equal only if they are the same object."""
        return self._arrays.setdefault(hashlib.sha256(np.ascontiguousarray(order).data).digest(), order)

    def once(self, key: Hashable, given: list[Array], made: Callable[[], list[Array]]) -> list[Array]:
        """What `made` gives for these orders, computed at the first time."""
        whole = key, tuple(id(order) for order in given)
        if whole not in self._found:
            self._found[whole] = [self.shared(order) for order in made()]
        return self._found[whole]


def lay_out(graph: Graph) -> StreamOrder:
    """Orders of all values, the input's first."""
    known = _Known()
    whole = np.arange(graph.input.size) if graph.inputs else _input_order(graph, 0, graph.input.shape)
    layout = StreamOrder([known.shared(whole)])
    for i, layer in enumerate(graph.layers):
        if isinstance(layer, TakeInput):
            layout.orders.append(known.shared(_input_order(graph, i + 1, layer.result.shape)))
            continue
        given = [layout.orders[j] for j in layer.inputs]
        kind = _kind(layer)
        taken = known.once(("taken", kind), given, partial(_taken, layer, given))
        for n, (own, order) in enumerate(zip(given, taken, strict=True)):
            if own is not order:
                layout.wanted[i, n] = order
        layout.orders.extend(known.once(("result", kind), taken, partial(_results, layer, taken)))
    return layout


def _kind(layer: Layer) -> Hashable:
    """What the orders around a layer depend on, besides the given ones."""
    match layer:
        case View() | Rearrange():
            own: Hashable = layer.op
        case Convolution():
            own = layer.groups == 1
        case Concatenation():
            own = layer.axis
        case SoftmaxRows():
            own = layer.in_order
        case _:
            own = None
    return type(layer), own, tuple(source.shape for source in sources_of(layer)), layer.result.shape


def _taken(layer: Layer, given: list[Array]) -> list[Array]:
    """The orders that the layer takes its inputs in: the given ones if it can."""
    order = given[0]
    shape = sources_of(layer)[0].shape
    match layer:
        case Map() | View() | TakeInput() | GiveOutputs():
            return given
        case Linear() | NormRows():
            fits = vectors(order, shape) is not None
        case SoftmaxRows(in_order=False):
            fits = vectors(order, shape) is not None
        case ArgMaxLayer() | SoftmaxRows() | IntegerRows():
            found = vectors(order, shape)
            fits = found is not None and bool((np.diff(found[1]) > 0).all())
        case Convolution():
            channels = pixels(order, shape)
            fits = channels is not None and (layer.groups == 1 or bool((np.diff(channels) > 0).all()))
        case Pooling():
            fits = pixels(order, shape) is not None
        case Rearrange():
            slices = isinstance(layer.op, Slice)
            fits = (axes_of(order, shape) if slices else pixels(order, shape)) is not None
        case MatrixProduct():
            found = vectors(order, shape)
            rows = found is not None and bool((np.diff(found[1]) > 0).all())
            matrices = matrix_axes(given[1], layer.sources[1].shape) is not None
            return [o if fits else np.arange(len(o)) for o, fits in zip(given, (rows, matrices), strict=True)]
        case Delay():
            return [np.arange(len(order))]
        case Concatenation():
            axes = common_axes(given, [s.shape for s in layer.sources])
            return given if axes is not None else [np.arange(len(o)) for o in given]
        case BinaryMap() | FloatJoint() | PackBytes():
            return [order] * len(given)
        case _:
            assert_never(layer)
    return [order if fits else np.arange(len(order))]


def _results(layer: Layer, taken: list[Array]) -> list[Array]:
    """The order of the one result."""
    order, shape = taken[0], layer.result.shape
    match layer:
        case Map() | BinaryMap() | FloatJoint() | PackBytes() | SoftmaxRows() | NormRows() | IntegerRows():
            return [order]
        case View():
            return [renaming(layer)[order] if isinstance(layer.op, Transpose) else order]
        case Linear() | MatrixProduct():
            rows, _ = _vectors(order, sources_of(layer)[0].shape)
            return [np.asarray((rows[:, None] * shape[-1] + np.arange(shape[-1])).ravel())]
        case ArgMaxLayer():
            return [_vectors(order, layer.source.shape)[0]]
        case Convolution():
            return [np.arange(math.prod(shape))]
        case Pooling():
            return [_same_channels(order, layer.source.shape, shape)]
        case Rearrange():
            if isinstance(layer.op, Slice):
                return [_kept(layer.op, order, layer.source.shape, shape)]
            return [_same_channels(order, layer.source.shape, shape)]
        case Delay():
            return [np.arange(math.prod(shape))]
        case Concatenation():
            axes = common_axes(taken, [s.shape for s in layer.sources])
            assert axes is not None
            return [along(axes, shape)]
        case TakeInput() | GiveOutputs():
            return [np.arange(math.prod(shape))]
        case _:
            assert_never(layer)


def renaming(layer: View) -> Array:
    """new[i] is the row-major index behind the layer of element i before it."""
    size = int(np.prod(layer.source.shape))
    if not isinstance(layer.op, Transpose):
        return np.arange(size)
    old = np.arange(size).reshape(layer.source.shape).transpose(layer.op.perm).ravel()
    new: Array = np.empty_like(old)
    new[old] = np.arange(size)
    return new


def vectors(order: Array, shape: Shape) -> tuple[Array, Array] | None:
    """(row of each vector, column of each of its elements) of a stream of vectors along the last axis.

    None if they are not contiguous or differ in their order.
    """
    columns = shape[-1]
    table = order.reshape(-1, columns)
    rows, cols = table[:, 0] // columns, table[0] % columns
    some = max(1, _PORTION // columns)
    for start in range(0, len(rows), some):
        if (table[start : start + some] != rows[start : start + some, None] * columns + cols).any():
            return None
    return rows, cols


def _vectors(order: Array, shape: Shape) -> tuple[Array, Array]:
    found = vectors(order, shape)
    assert found is not None
    return found


def pixels(order: Array, shape: Shape) -> Array | None:
    """The channels in the order in which they come, if the stream is an image pixel by pixel; else None."""
    found = vectors(order, shape)
    return found[1] if found is not None and (np.diff(found[0]) == 1).all() else None


def _same_channels(order: Array, shape: Shape, result: Shape) -> Array:
    channels = _vectors(order, shape)[1]
    return np.asarray((np.arange(math.prod(result[:-1]))[:, None] * result[-1] + channels).ravel())


def _kept(op: Slice, order: Array, shape: Shape, result: Shape) -> Array:
    """Order of the elements that a Slice keeps."""
    new = np.full(shape, -1, np.int64)
    new[tuple(slice(*r) for r in op.ranges)] = np.arange(math.prod(result)).reshape(result)
    names = new.ravel()[order]
    return names[names >= 0]


def along(axes: list[int], shape: Shape) -> Array:
    """The order that runs through the axes, outermost first."""
    return np.asarray(np.arange(math.prod(shape)).reshape(shape).transpose(axes).ravel())


def axes_of(order: Array, shape: Shape) -> list[int] | None:
    """The axes, outermost first, in which the stream runs through a tensor; None if it is no such order."""
    for channel in reversed(range(len(shape))):
        axes = [*(a for a in range(len(shape)) if a != channel), channel]
        if np.array_equal(along(axes, shape), order):
            return axes
    return [] if len(order) == 1 else None


def matrix_axes(order: Array, shape: Shape) -> list[int] | None:
    """The axes, outermost first, in which a stream of matrices runs, the innermost one an axis of the matrices.

    None if it runs in no such order. Axes of length 1 stand in front.
    """
    short = [axis for axis, size in enumerate(shape[:-2]) if size == 1]
    long = [axis for axis in range(len(shape)) if axis not in short]
    for axes in permutations(long):
        if axes[-1] >= len(shape) - 2 and np.array_equal(along([*short, *axes], shape), order):
            return [*short, *axes]
    return None


def common_axes(orders: list[Array], shapes: list[Shape]) -> list[int] | None:
    """Axes, outermost first, in which all the streams run."""
    for channel in reversed(range(len(shapes[0]))):
        axes = [*(a for a in range(len(shapes[0])) if a != channel), channel]
        if all(np.array_equal(along(axes, s), o) for o, s in zip(orders, shapes, strict=True)):
            return axes
    return None


def _input_order(graph: Graph, value: int, shape: Shape) -> Array:
    """The natural order of the first layer behind an input that has one; otherwise channels last."""
    behind = {value}
    for i, layer in enumerate(graph.layers):
        if behind.isdisjoint(layer.inputs):
            continue
        behind.add(i + 1)
        if isinstance(layer, Map | View | BinaryMap | FloatJoint | PackBytes | Concatenation | GiveOutputs):
            continue
        if isinstance(layer, Rearrange) and not isinstance(layer.op, Repeat | Pad):
            continue
        before = _straight(graph, value, layer.inputs[0])
        if before is None:
            break
        order = np.arange(int(np.prod(sources_of(layer)[0].shape)))
        for relabel in before:
            inverse = np.empty_like(order)
            inverse[renaming(relabel)] = np.arange(len(order))
            order = inverse[order]
        return order
    size = int(np.prod(shape))
    maps = [x for i, x in enumerate(graph.layers) if isinstance(x, Map) and i + 1 in behind]
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
        return np.moveaxis(np.arange(size).reshape(shape), axes.pop(), -1).ravel()
    return np.arange(size)


def _straight(graph: Graph, start: int, value: int) -> list[View] | None:
    """The relabels between an input and a value, the last first, if only functions are between; else None."""
    found: list[View] = []
    while value != start:
        layer = graph.layers[value - 1]
        if isinstance(layer, View):
            found.append(layer)
        elif not isinstance(layer, Map):
            return None  # one that takes other inputs as well
        value = layer.inputs[0]
    return found


#: Most nested loops of hg_gather.
MAX_LOOPS = 6


def nest(address: Array) -> tuple[tuple[int, int], ...] | None:
    """Loops (extent, stride), the outermost first, whose counters times strides sum up to the addresses.

    None if there are none, or too many.
    """
    loops: list[tuple[int, int]] = []
    rest = address
    while len(rest) > 1:
        stride = int(rest[1] - rest[0])
        breaks = np.flatnonzero(np.diff(rest) != stride)
        extent = int(breaks[0]) + 1 if len(breaks) else len(rest)
        while len(rest) % extent:
            extent -= 1
        table = rest.reshape(-1, extent)
        if extent == 1 or (table != table[:, :1] + stride * np.arange(extent)).any():
            return None
        loops.insert(0, (extent, stride))
        rest = table[:, 0]
    if (len(rest) and rest[0] != 0) or len(loops) > MAX_LOOPS:
        return None
    return tuple(loops) or ((1, 0),)


def block(address: Array, size: int) -> int:
    """The shortest length after which the addresses go on with the next block of as many, of `size` in all."""
    for length in (n for n in range(1, size + 1) if size % n == 0):
        parts = size // length
        if len(address) % parts:
            continue
        table = address.reshape(parts, -1)
        if (table == table[0] + length * np.arange(parts)[:, None]).all() and int(table[0].max()) < length:
            return length
    return size
