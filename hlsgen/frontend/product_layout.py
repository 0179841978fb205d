"""Data times constant weights of any rank, as one product with a matrix, and the moves of elements around it.

If there is one matrix for each matrix of the data, the vectors of all matrices are concatenated to one vector. The
weights are then block diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir import Reshape, Shape, Transpose
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class ProductLayout:
    """A product of data and weights.

    - rows: the weights as a matrix of (outputs, columns), also for their codes or scales.
    - blocks: number of blocks of the matrix. It is block diagonal if there are several.
    - data_moves: moves of the data before the product.
    - result: shape of the product with the matrix.
    - result_moves: moves of that product.
    """

    rows: Callable[[Array], Array]
    blocks: int
    data_moves: ShapedOps
    result: Shape
    result_moves: ShapedOps

    def matrix(self, rows: Array) -> Array:
        """The integer weights (outputs, columns), block diagonal if there are several blocks."""
        return rows if self.blocks == 1 else block_diagonal(rows, self.blocks)


#: Returns the layout for (name of the node, shape of the data, shape of the weights).
Layout = Callable[[str, Shape, Shape], ProductLayout]


def product_layout(name: str, shape: Shape, weights: Shape) -> ProductLayout:
    """The product of data with weights of these shapes, as MatMul defines it. Raises HG023."""
    if len(weights) == 1:
        return _by_vector(name, shape, weights)
    if len(weights) > 2 and max(weights[:-2]) > 1:
        return _by_matrices(name, shape, weights)
    if len(weights) < 2:
        raise fail("HG023", name, f"weights of shape {list(weights)} are no matrix.", "Use two axes.")
    if 0 in weights:
        raise fail("HG023", name, f"weights of shape {list(weights)} have no elements.", "A matrix must not be empty.")
    columns, rows = weights[-2:]
    if not shape or shape[-1] != columns:
        text = f"weights for {columns} columns, data of shape {list(shape)}."
        raise fail("HG023", name, text, "The last axis of the data must equal the columns of the weights.")
    result = (*shape[:-1], rows)
    leading = (1,) * (len(weights) - max(len(shape), 2))
    result_moves: ShapedOps = [(Reshape(), leading + result)] if leading else []
    return ProductLayout(lambda part: part.reshape(columns, rows).T, 1, [], result, result_moves)


def _by_vector(name: str, shape: Shape, weights: Shape) -> ProductLayout:
    """Data times a vector; the result has one axis less."""
    (columns,) = weights
    if len(shape) < 2 or shape[-1] != columns or not columns:
        text = f"a vector of {columns} weights does not fit data of shape {list(shape)}."
        raise fail("HG023", name, text, "The data needs two axes or more, the last one as long as the vector.")
    result_moves: ShapedOps = [(Reshape(), shape[:-1])]
    return ProductLayout(lambda part: part.reshape(1, -1), 1, [], (*shape[:-1], 1), result_moves)


def _by_matrices(name: str, shape: Shape, weights: Shape) -> ProductLayout:
    """Data times one constant matrix for each of its matrices, or one matrix of data times several constant ones."""
    *stack, columns, rows = weights
    count = math.prod(stack)
    rank = max(len(shape), len(weights))
    full = (1,) * (rank - len(shape)) + shape
    batch = (*(1,) * (rank - len(weights)), *stack)
    if len(shape) < 2 or shape[-1] != columns or 0 in weights or full[:-2] not in (batch, (1,) * (rank - 2)):
        text = f"weights of shape {list(weights)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "Supported: one matrix, or one matrix for each matrix of the data.")
    vectors, has_block_per_matrix = full[-2], full[:-2] == batch
    data_moves: ShapedOps = [(Reshape(), (vectors, columns))]
    if has_block_per_matrix:
        data_moves = [
            (Reshape(), (count, vectors, columns)),
            (Transpose((1, 0, 2)), (vectors, count, columns)),
            (Reshape(), (vectors, count * columns)),
        ]
    result_moves: ShapedOps = [
        (Reshape(), (vectors, count, rows)),
        (Transpose((1, 0, 2)), (count, vectors, rows)),
        (Reshape(), (*batch, vectors, rows)),
    ]
    return ProductLayout(
        lambda part: np.swapaxes(part, -1, -2).reshape(-1, columns),
        count if has_block_per_matrix else 1,
        data_moves,
        (vectors, count * rows),
        result_moves,
    )


def constant_first_layout(name: str, shape: Shape, weights: Shape) -> ProductLayout:
    """Constant matrices (..., m, k) times matrices (..., k, n) of the data, as transposed data times weights.

    There may be one constant matrix for each of several matrices of the data. Raises HG023.
    """
    if len(weights) == 1 and len(shape) > 1:
        layout = constant_first_layout(name, shape, (1, *weights))
        return replace(layout, result_moves=[*layout.result_moves, (Reshape(), (*shape[:-2], shape[-1]))])
    rank = len(shape)
    batch = (*(1,) * (rank - len(weights)), *weights[:-2])
    matching = len(weights) >= 2 and rank >= 2 and weights[-1] == shape[-2] and 0 not in weights
    if not matching or batch not in ((1,) * (rank - 2), shape[:-2]):
        text = f"a constant of shape {list(weights)} on the left of data of shape {list(shape)}."
        hint = "Supported: a matrix (m, k), or one for each matrix of the data, times data (..., k, n)."
        raise fail("HG023", name, text, hint)
    rows, columns, count, blocks = weights[-2], weights[-1], shape[-1], math.prod(batch)
    if blocks == 1:
        swap = (*range(rank - 2), rank - 1, rank - 2)
        data_moves: ShapedOps = [(Transpose(swap), (*shape[:-2], count, columns))]
        result: Shape = (*shape[:-2], count, rows)
        result_moves: ShapedOps = [(Transpose(swap), (*shape[:-2], rows, count))]
    else:
        data_moves = [
            (Transpose((rank - 1, *range(rank - 1))), (count, *shape[:-1])),
            (Reshape(), (count, blocks * columns)),
        ]
        result = (count, blocks * rows)
        result_moves = [(Reshape(), (count, *batch, rows)), (Transpose((*range(1, rank), 0)), (*batch, rows, count))]
    return ProductLayout(lambda part: part.reshape(-1, columns), blocks, data_moves, result, result_moves)


def block_diagonal(weight: Array, blocks: int) -> Array:
    """The block diagonal matrix of `blocks` equally large matrices, which are stacked along the rows of `weight`."""
    rows, columns = weight.shape[0] // blocks, weight.shape[1]
    diagonal = np.zeros((blocks * rows, blocks * columns), np.int64)
    for n in range(blocks):
        part = slice(n * rows, (n + 1) * rows)
        diagonal[part, n * columns : (n + 1) * columns] = weight[part]
    return diagonal
