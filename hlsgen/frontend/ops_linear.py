"""MatMul and Gemm of data and constants: data times a matrix, or constant matrices times matrices of the data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.integer_weights import integer_weights, leading_axes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir import MatMul, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Mul
from hlsgen.numerics.fixed import Array


def matmul(node: NodeContext) -> Imported:
    """MatMul. Raises HG010, HG023 and the codes of `integer_weights`."""
    if node.position != 0:
        return Imported((_constant_times_data(node),))
    return Imported((_product(node, transposed=False),))


def gemm(node: NodeContext) -> Imported:
    """Gemm: the product, then alpha, beta and C. Raises HG010, HG013, HG020, HG023, HG026, HG027 and as `matmul`."""
    name, shape, attrs = node.name, node.shape, node.attrs
    if attrs.get("transA", 0):
        raise fail("HG013", name, f"attribute transA is {attrs['transA']}.", "Supported: 0.")
    if len(shape) != 2:
        raise fail("HG023", name, f"data of shape {list(shape)} is no matrix.", "Gemm needs data of two axes.")
    ops = _product(node, transposed=bool(attrs.get("transB", 0)))
    result = ops[-1][1]
    alpha, beta = np.float32(attrs.get("alpha", 1.0)), np.float32(attrs.get("beta", 1.0))
    if not (np.isfinite(alpha) and np.isfinite(beta)):
        raise fail("HG027", name, f"attributes alpha and beta are {alpha} and {beta}.", "Both must be finite.")
    if alpha != 1:
        ops.append((Mul(full(float(alpha), result)), result))
    if node.constant(2) is not None:
        ops.append((Add(beta * operand(name, result, node.constant(2), "C")), result))
    return Imported((ops,))


def _product(node: NodeContext, transposed: bool) -> ShapedOps:
    """Data times weights (columns, rows), or (rows, columns) if `transposed`."""
    name, shape = node.name, node.shape
    if node.position != 0:
        text = f"the constant is the left operand of {node.op_type}."
        raise fail("HG010", name, text, "Use MatMul, or exchange the operands: data times constant.")
    const = node.constant(1)
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.", "Use constant weights.")
    rank = const.array.ndim
    if rank == 1 and not transposed:
        return _by_vector(name, shape, const)
    if rank > 2 and max(const.array.shape[:-2]) > 1:
        return _by_matrices(name, shape, const)
    while const.array.ndim > 2 and const.array.shape[0] == 1:
        const = const.map(lambda part: part[0])
    if const.array.ndim != 2:
        raise fail("HG023", name, f"weights of shape {list(const.array.shape)} are no matrix.", "Use two axes.")
    if not transposed:
        const = const.map(np.transpose)
    rows, columns = const.array.shape
    if not rows or not columns:
        text = f"weights of shape {list(const.array.shape)} have no elements."
        raise fail("HG023", name, text, "A matrix must not be empty.")
    if not shape or shape[-1] != columns:
        text = f"weights for {columns} columns, data of shape {list(shape)}."
        raise fail("HG023", name, text, "The last axis of the data must equal the columns of the weights.")
    weight, scale = integer_weights(name, const)
    result = (*shape[:-1], rows)
    return [(MatMul(weight, scale), result), *leading_axes(result, len(shape), rank)]


def _by_vector(name: str, shape: Shape, const: Const) -> ShapedOps:
    """Data times a vector; the result has one axis less."""
    columns = const.array.size
    if len(shape) < 2 or shape[-1] != columns or not columns:
        text = f"a vector of {columns} weights does not fit data of shape {list(shape)}."
        raise fail("HG023", name, text, "The data needs two axes or more, the last one as long as the vector.")
    weight, scale = integer_weights(name, const.map(lambda part: part.reshape(1, -1)))
    return [(MatMul(weight, scale), (*shape[:-1], 1)), (Reshape(), shape[:-1])]


def _by_matrices(name: str, shape: Shape, const: Const) -> ShapedOps:
    """Data times one constant matrix for each of its matrices, or one matrix of data times several constant ones.

    In the first case the vectors of all matrices are concatenated to one vector, and the weights are block diagonal.
    Raises HG023 and the codes of `integer_weights`.
    """
    *stack, columns, rows = const.array.shape
    count = math.prod(stack)
    rank = max(len(shape), len(stack) + 2)
    full = (1,) * (rank - len(shape)) + shape
    batch = (*(1,) * (rank - 2 - len(stack)), *stack)
    if len(shape) < 2 or shape[-1] != columns or not const.array.size or full[:-2] not in (batch, (1,) * (rank - 2)):
        text = f"weights of shape {list(const.array.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "Supported: one matrix, or one matrix for each matrix of the data.")
    weight, scale = integer_weights(name, const.map(lambda part: np.swapaxes(part, -1, -2).reshape(-1, columns)))
    vectors = full[-2]
    if full[:-2] == batch:
        weight = block_diagonal(weight, count)
        ops: ShapedOps = [
            (Reshape(), (count, vectors, columns)),
            (Transpose((1, 0, 2)), (vectors, count, columns)),
            (Reshape(), (vectors, count * columns)),
        ]
    else:
        ops = [(Reshape(), (vectors, columns))]
    return [
        *ops,
        (MatMul(weight, scale), (vectors, count * rows)),
        (Reshape(), (vectors, count, rows)),
        (Transpose((1, 0, 2)), (count, vectors, rows)),
        (Reshape(), (*batch, vectors, rows)),
    ]


def block_diagonal(weight: Array, blocks: int) -> Array:
    """The block diagonal matrix of `blocks` equally large matrices, which are stacked along the rows of `weight`."""
    rows, columns = weight.shape[0] // blocks, weight.shape[1]
    diagonal = np.zeros((blocks * rows, blocks * columns), np.int64)
    for n in range(blocks):
        part = slice(n * rows, (n + 1) * rows)
        diagonal[part, n * columns : (n + 1) * columns] = weight[part]
    return diagonal


def _constant_times_data(node: NodeContext) -> ShapedOps:
    """Constant matrices (..., m, k) times matrices (..., k, n) of the data, as transposed data times weights.

    There may be one constant matrix for each of several matrices of the data. Then the vectors of all matrices are
    concatenated to one vector, and the weights are block diagonal. Raises HG010, HG023 and the codes of
    `integer_weights`.
    """
    name, shape, const = node.name, node.shape, node.constant(0)
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.", "Use a constant operand.")
    if const.array.ndim == 1 and len(shape) > 1:
        row = const.map(lambda part: part.reshape(1, -1))
        ops = _constant_times_data(replace(node, inputs=(row, node.inputs[1])))
        return [*ops, (Reshape(), (*shape[:-2], shape[-1]))]
    rank, weight_shape = len(shape), const.array.shape
    batch = (*(1,) * (rank - len(weight_shape)), *weight_shape[:-2])
    matching = len(weight_shape) >= 2 and rank >= 2 and weight_shape[-1] == shape[-2] and 0 not in weight_shape
    if not matching or batch not in ((1,) * (rank - 2), shape[:-2]):
        text = f"a constant of shape {list(weight_shape)} on the left of data of shape {list(shape)}."
        hint = "Supported: a matrix (m, k), or one for each matrix of the data, times data (..., k, n)."
        raise fail("HG023", name, text, hint)
    rows, columns, count = weight_shape[-2], weight_shape[-1], shape[-1]
    weight, scale = integer_weights(name, const.map(lambda part: part.reshape(-1, columns)))
    if (blocks := math.prod(batch)) == 1:
        swap = (*range(rank - 2), rank - 1, rank - 2)
        return [
            (Transpose(swap), (*shape[:-2], count, columns)),
            (MatMul(weight, scale), (*shape[:-2], count, rows)),
            (Transpose(swap), (*shape[:-2], rows, count)),
        ]
    return [
        (Transpose((rank - 1, *range(rank - 1))), (count, *shape[:-1])),
        (Reshape(), (count, blocks * columns)),
        (MatMul(block_diagonal(weight, blocks), scale), (count, blocks * rows)),
        (Reshape(), (count, *batch, rows)),
        (Transpose((*range(1, rank), 0)), (*batch, rows, count)),
    ]
