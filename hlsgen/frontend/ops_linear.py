"""MatMul and Gemm: data times a constant matrix, or matrices of constants times those of the data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.integer_weights import in_front, integer_weights
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir import MatMul, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Mul
from hlsgen.numerics.fixed import Array


def matmul(node: NodeContext) -> Imported:
    """Raises HG010, HG023 and what is wrong with the weights."""
    if node.position != 0:
        return Imported((_from_the_left(node),))
    return Imported((_product(node, transposed=False),))


def gemm(node: NodeContext) -> Imported:
    """alpha, beta and C follow the product. Raises HG010, HG013, HG020, HG023, HG026, HG027 and as `matmul`."""
    name, shape, attrs = node.name, node.shape, node.attrs
    if attrs.get("transA", 0):
        raise fail("HG013", name, "transA is 1.", "Only transA = 0 is supported.")
    if len(shape) != 2:
        raise fail("HG023", name, f"data of shape {list(shape)}; Gemm takes a matrix.")
    ops = _product(node, transposed=bool(attrs.get("transB", 0)))
    result = ops[-1][1]
    alpha, beta = np.float32(attrs.get("alpha", 1.0)), np.float32(attrs.get("beta", 1.0))
    if not (np.isfinite(alpha) and np.isfinite(beta)):
        raise fail("HG027", name, f"alpha {alpha}, beta {beta}.")
    if alpha != 1:
        ops.append((Mul(full(float(alpha), result)), result))
    if node.constant(2) is not None:
        ops.append((Add(beta * operand(name, result, node.constant(2), "C")), result))
    return Imported((ops,))


def _product(node: NodeContext, transposed: bool) -> ShapedOps:
    """Weights (columns, rows), or (rows, columns) where `transposed`."""
    name, shape = node.name, node.shape
    if node.position != 0:
        raise fail("HG010", name, "the constant is the left operand.", "Use MatMul, or data times constant.")
    const = node.constant(1)
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.")
    rank = const.array.ndim
    if rank == 1 and not transposed:
        return _by_vector(name, shape, const)
    if rank > 2 and max(const.array.shape[:-2]) > 1:
        return _by_matrices(name, shape, const)
    while const.array.ndim > 2 and const.array.shape[0] == 1:
        const = const.map(lambda part: part[0])
    if const.array.ndim != 2:
        raise fail("HG023", name, f"weights of shape {list(const.array.shape)}; a matrix is needed.")
    if not transposed:
        const = const.map(np.transpose)
    rows, columns = const.array.shape
    if not rows or not columns:
        raise fail("HG023", name, f"weights of shape {list(const.array.shape)}.", "A matrix must not be empty.")
    if not shape or shape[-1] != columns:
        raise fail("HG023", name, f"weights for {columns} columns, data of shape {list(shape)}.")
    weight, scale = integer_weights(name, const)
    result = (*shape[:-1], rows)
    return [(MatMul(weight, scale), result), *in_front(result, len(shape), rank)]


def _by_vector(name: str, shape: Shape, const: Const) -> ShapedOps:
    """The product with a vector has no last axis."""
    columns = const.array.size
    if len(shape) < 2 or shape[-1] != columns or not columns:
        raise fail("HG023", name, f"a vector of {columns} weights, data of shape {list(shape)}.")
    weight, scale = integer_weights(name, const.map(lambda part: part.reshape(1, -1)))
    return [(MatMul(weight, scale), (*shape[:-1], 1)), (Reshape(), shape[:-1])]


def _by_matrices(name: str, shape: Shape, const: Const) -> ShapedOps:
    """Data times a constant matrix for each of its matrices, or one matrix of data times several constant ones.

    Of one for each the vectors of all matrices are one vector, and the weights that belong to another one are 0. Raises HG023
    and what is wrong with the weights.
    """
    *stack, columns, rows = const.array.shape
    count = math.prod(stack)
    rank = max(len(shape), len(stack) + 2)
    given = (1,) * (rank - len(shape)) + shape
    before = (*(1,) * (rank - 2 - len(stack)), *stack)
    if len(shape) < 2 or shape[-1] != columns or not const.array.size or given[:-2] not in (before, (1,) * (rank - 2)):
        text = f"weights of shape {list(const.array.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "Supported: one matrix, or a matrix for each of the data.")
    weight, scale = integer_weights(name, const.map(lambda part: np.swapaxes(part, -1, -2).reshape(-1, columns)))
    vectors = given[-2]
    if given[:-2] == before:
        weight = block_diagonal(weight, count)
        ops: ShapedOps = [
            (Reshape(), (count, vectors, columns)),
            (Transpose((1, 0, 2)), (vectors, count, columns)),
            (Reshape(), (vectors, count * columns)),
        ]
    else:
        ops = [(Reshape(), (vectors, columns))]
    return [
        *ops, (MatMul(weight, scale), (vectors, count * rows)), (Reshape(), (vectors, count, rows)),
        (Transpose((1, 0, 2)), (count, vectors, rows)), (Reshape(), (*before, vectors, rows)),
    ]  # fmt: skip


def block_diagonal(weight: Array, blocks: int) -> Array:
    """The rows of several matrices, one below the other, as one matrix in which each has columns of its own."""
    rows, columns = weight.shape[0] // blocks, weight.shape[1]
    wide = np.zeros((blocks * rows, blocks * columns), np.int64)
    for n in range(blocks):
        part = slice(n * rows, (n + 1) * rows)
        wide[part, n * columns : (n + 1) * columns] = weight[part]
    return wide


def _from_the_left(node: NodeContext) -> ShapedOps:
    """Constant matrices times those of the data, (..., m, k) and (..., k, n): as the transposed data times weights.

    Of a matrix for each of several of the data the vectors of all these are one vector, and 0 are the weights that belong to
    another one. Raises HG010, HG023 and what is wrong with the weights.
    """
    name, shape, const = node.name, node.shape, node.constant(0)
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.")
    if const.array.ndim == 1 and len(shape) > 1:
        ops = _from_the_left(replace(node, inputs=(const.map(lambda part: part.reshape(1, -1)), node.inputs[1])))
        return [*ops, (Reshape(), (*shape[:-2], shape[-1]))]
    rank, given = len(shape), const.array.shape
    before = (*(1,) * (rank - len(given)), *given[:-2])
    if (
        len(given) < 2
        or rank < 2
        or given[-1] != shape[-2]
        or 0 in given
        or before not in ((1,) * (rank - 2), shape[:-2])
    ):
        text = f"a constant of shape {list(given)} on the left of data of shape {list(shape)}."
        raise fail("HG023", name, text, "Supported: (m, k), or a matrix for each of the data, and (..., k, n).")
    rows, columns, count = given[-2], given[-1], shape[-1]
    weight, scale = integer_weights(name, const.map(lambda part: part.reshape(-1, columns)))
    if (blocks := math.prod(before)) == 1:
        turn = (*range(rank - 2), rank - 1, rank - 2)
        turned, made = (*shape[:-2], count, columns), (*shape[:-2], count, rows)
        return [(Transpose(turn), turned), (MatMul(weight, scale), made), (Transpose(turn), (*shape[:-2], rows, count))]
    wide = block_diagonal(weight, blocks)
    apart = (*before, rows)
    return [
        (Transpose((rank - 1, *range(rank - 1))), (count, *shape[:-1])), (Reshape(), (count, blocks * columns)),
        (MatMul(wide, scale), (count, blocks * rows)), (Reshape(), (count, *apart)),
        (Transpose((*range(1, rank), 0)), (*apart, count)),
    ]  # fmt: skip
