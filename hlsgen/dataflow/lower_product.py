"""Lowers matrix products of two computed tensors: buffers that repeat both operands, and a unit that multiplies.

The right operand is stored a block at a time and emitted again for each vector of the left operand. The next block is
stored meanwhile. A vector of the left operand is emitted again for each PE columns of the right operand.
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.units import DynamicMatVec, Reorder, stream_of
from hlsgen.diagnostics import fail
from hlsgen.ir import MatrixProduct, Shape
from hlsgen.ir.stream_order import block_length, loop_nest, matrix_axes, vector_layout
from hlsgen.numerics.fixed import Array


def product(b: NetworkBuilder, i: int, layer: MatrixProduct, name: str) -> NamedStream:
    """The stream of a matrix product. Raises HG035."""
    pe, simd = b.folding[layer.name]
    left_value, right_value = layer.sources
    columns, outputs = layer.depth, right_value.shape[-1]
    folds, row_folds = columns // simd, outputs // pe
    left_vectors = vector_layout(b.layout.of_input(b.graph, i), left_value.shape)
    assert left_vectors is not None
    # The left operand: vectors, each of them repeated.
    flow = b.buffered(b.input_stream(i, 0, name), f"{name}_wait0")
    flow = b.converted(flow, simd, columns, f"{name}_width0")
    if row_folds > 1:
        loops = ((row_folds, 0), (folds, 1)) if folds > 1 else ((row_folds, 0),)
        repeated = stream_of(left_value.type, simd, left_value.size * row_folds, columns)
        flow = b.append(f"{name}_repeat0", Reorder(folds, loops), [flow], repeated)
    # The right operand: tiles of PE x SIMD elements, a beat each, repeated for each vector.
    right_order = b.layout.of_input(b.graph, i, 1)
    axes = matrix_axes(right_order, right_value.shape)
    assert axes is not None
    tiles = _Tiles(right_value.shape, axes, pe, simd)
    right_flow = b.buffered(b.input_stream(i, 1, name), f"{name}_wait1")
    if not np.array_equal(tiles.elements, right_order):
        right_flow = b.reordered(right_flow, right_order, tiles.elements, f"{name}_tiles", layer.name)
    right_flow = b.converted(right_flow, pe * simd, right_value.size, f"{name}_width1")
    groups = _groups(left_value.shape[:-2], right_value.shape[:-2])[left_vectors[0] // left_value.shape[-2]]
    right_flow = _repeated(b, layer, right_flow, tiles.places[groups].ravel(), f"{name}_repeat1")
    types = layer.operand(0), layer.operand(1)
    unit = DynamicMatVec(pe, simd, folds, layer.factors, layer.offsets, types, tiles.rows_first)
    result = stream_of(layer.result.type, pe, layer.result.size, outputs)
    return b.append(name, unit, [flow, right_flow], result, layer.name, i)


class _Tiles:
    """A stream of matrices (..., columns, outputs) as tiles of SIMD columns and PE outputs.

    - `elements`: the row-major index of each element, tile by tile.
    - `places` (matrices, outputs / PE, columns / SIMD): index of the tile in the stream.
    - `rows_first`: in a tile, the SIMD columns of an output are adjacent; else the PE outputs of a column.
    """

    def __init__(self, shape: Shape, axes: list[int], pe: int, simd: int) -> None:
        """`axes`: axes of the stream, outermost first; tiles come in the same order."""
        front, (columns, outputs) = len(shape) - 2, shape[-2:]
        folds, row_folds = columns // simd, outputs // pe
        self.rows_first = axes[-1] == front
        # Axes of the divided array: columns / SIMD, SIMD, outputs / PE, PE in place of the last two axes.
        outer = [front + 2 * (axis - front) if axis >= front else axis for axis in axes]
        lanes = [front + 3, front + 1] if self.rows_first else [front + 1, front + 3]
        elements = np.arange(math.prod(shape)).reshape(*shape[:-2], folds, simd, row_folds, pe)
        self.elements: Array = elements.transpose(*outer, *lanes).ravel()
        tiles = np.arange(elements.size // (pe * simd)).reshape(*shape[:-2], folds, row_folds)
        order = tiles.transpose(axes).ravel()
        places: Array = np.empty_like(order)
        places[order] = np.arange(len(order))
        self.places: Array = places.reshape(-1, folds, row_folds).transpose(0, 2, 1)


def _groups(left_shape: Shape, right_shape: Shape) -> Array:
    """For each matrix of the left operand, the index of its matrix in the right operand."""
    return np.broadcast_to(np.arange(math.prod(right_shape)).reshape(right_shape), left_shape).ravel()


def _repeated(b: NetworkBuilder, layer: MatrixProduct, flow: NamedStream, address: Array, name: str) -> NamedStream:
    """The beats at these addresses, in this order. Raises HG035."""
    beats = flow.stream.beats
    if np.array_equal(address, np.arange(beats)):
        return flow
    length = block_length(address, beats)
    loops = loop_nest(address[: len(address) // (beats // length)])
    if loops is None:
        raise fail(
            "HG035",
            layer.name,
            "its operands arrive in orders that no buffer can match to each other.",
            "Move the Transpose before it out of the network.",
        )
    stream = flow.stream
    result = stream_of(stream.type, stream.lanes, len(address) * stream.lanes, len(address) * stream.lanes)
    return b.append(name, Reorder(length, loops), [flow], result)
