"""MatMul and Gemm: data times a constant matrix."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.integer_weights import in_front, integer_weights
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, linear_layer
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir import MatMul
from hlsgen.ir.ops import Add, Mul


def matmul(node: NodeContext) -> Imported:
    """Raises HG010, HG023 and what is wrong with the weights."""
    return linear_layer(node, _product(node, transposed=False))


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
    plain = (attrs.get("alpha", 1.0), attrs.get("beta", 1.0)) == (1.0, 1.0)
    return linear_layer(node, ops) if plain else Imported((ops,))


def _product(node: NodeContext, transposed: bool) -> ShapedOps:
    """Weights (columns, rows), or (rows, columns) where `transposed`."""
    name, shape = node.name, node.shape
    if node.position != 0:
        raise fail("HG010", name, "the constant is the left operand.", "Only data times constant is supported.")
    const = node.constant(1)
    if const is None:
        raise fail("HG010", name, "a product of two computed tensors is not supported.")
    rank = const.array.ndim
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
