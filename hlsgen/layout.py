"""Order of the elements of each tensor in its stream.

An order is an int64 array: entry p is the row-major index of the element that comes p-th. Reshapes
and transposes cost nothing: they only rename elements.
"""

from __future__ import annotations

import numpy as np

from hlsgen.errors import fail
from hlsgen.fixed import Array
from hlsgen.ir import Graph, Linear, Map, Relabel, Shape, Transpose, Winner
from hlsgen.semantics import constants, lead_axes


def stream_orders(graph: Graph) -> list[Array]:
    """Order of the input (first) and behind each layer. Raises HG035."""
    order = _input_order(graph)
    orders = [order]
    for layer in graph.layers:
        match layer:
            case Relabel():
                order = renaming(layer)[order]
            case Linear():
                rows, _ = groups(layer.name, order, layer.source.shape)
                outputs = layer.result.shape[-1]
                order = (rows[:, None] * outputs + np.arange(outputs)).ravel()
            case Winner():
                rows, columns = groups(layer.name, order, layer.source.shape)
                if (np.diff(columns) < 0).any():
                    raise fail("HG035", layer.name, "the elements to compare arrive out of order.")
                order = rows
            case Map():
                pass
        orders.append(order)
    return orders


def renaming(layer: Relabel) -> Array:
    """new[i] is the row-major index behind the layer of element i before it."""
    size = int(np.prod(layer.source.shape))
    if not isinstance(layer.op, Transpose):
        return np.arange(size)
    old = np.arange(size).reshape(layer.source.shape).transpose(layer.op.perm).ravel()
    new: Array = np.empty_like(old)
    new[old] = np.arange(size)
    return new


def groups(name: str, order: Array, shape: Shape) -> tuple[Array, Array]:
    """(row of each vector, column of each of its elements) of a stream of vectors.

    Raises HG035 if the vectors of the last axis are not contiguous or differ in their order.
    """
    columns = shape[-1]
    table = order.reshape(-1, columns)
    rows, cols = table // columns, table % columns
    if (rows != rows[:, :1]).any() or (cols != cols[:1]).any():
        raise fail(
            "HG035", name, "a Transpose or Reshape puts the elements of its vectors apart.",
            "A reorder buffer would be needed, which is not supported: move the Transpose out of the network.",
        )  # fmt: skip
    return rows[:, 0], cols[0]


def _input_order(graph: Graph) -> Array:
    """Natural order at the first linear layer; otherwise channels last."""
    for i, layer in enumerate(graph.layers):
        if isinstance(layer, (Linear, Winner)):
            order = np.arange(int(np.prod(layer.source.shape)))
            for before in reversed(graph.layers[:i]):
                if isinstance(before, Relabel):
                    inverse = np.empty_like(order)
                    inverse[renaming(before)] = np.arange(len(order))
                    order = inverse[order]
            return order
    shape = graph.input.shape
    size = int(np.prod(shape))
    maps = [layer for layer in graph.layers if isinstance(layer, Map)]
    axes = {
        axis
        for layer in maps
        if len(layer.source.shape) == len(shape)
        for op in (*layer.ops, layer.quantizer)
        for value in constants(op).values()
        for axis, length in enumerate(value.shape[lead_axes(op) :])
        if length > 1
    }
    if len(axes) == 1:
        return np.moveaxis(np.arange(size).reshape(shape), axes.pop(), -1).ravel()
    return np.arange(size)


def axes_of(order: Array, shape: Shape) -> list[int] | None:
    """The axes, outermost first, in which the stream runs through a tensor; None if it is no such order."""
    index = np.arange(len(order)).reshape(shape)
    for channel in reversed(range(len(shape))):
        axes = [*(a for a in range(len(shape)) if a != channel), channel]
        if np.array_equal(index.transpose(axes).ravel(), order):
            return axes
    return [] if len(order) == 1 else None
