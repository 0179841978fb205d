"""MatMul and Gemm of data and constants: data times a matrix, or constant matrices times matrices of the data."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.frontend.product_layout import ProductLayout, constant_first_layout, product_layout
from hlsgen.ir import MatMul
from hlsgen.ir.ops import Add, Mul


def matmul(node: NodeContext) -> Imported:
    """MatMul. Raises HG010, HG023 and the codes of `integer_weights`."""
    if node.position == 0:
        return Imported((_product(node, transposed=False),))
    const = node.constant(0)
    if const is None:
        raise fail("HG010", node.name, "a product of two computed tensors is not supported.", "Use a constant operand.")
    return Imported((_by_layout(node, const, constant_first_layout(node.name, node.shape, const.array.shape)),))


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
    if transposed:
        const = const.map(np.transpose)
        if const.array.ndim != 2:
            raise fail("HG023", name, f"weights of shape {list(const.array.shape)} are no matrix.", "Use two axes.")
    return _by_layout(node, const, product_layout(name, shape, const.array.shape))


def _by_layout(node: NodeContext, const: Const, layout: ProductLayout) -> ShapedOps:
    """The product of data and constant weights."""
    weight, scale = integer_weights(node.name, const.map(layout.rows))
    return [*layout.data_moves, (MatMul(layout.matrix(weight), scale), layout.result), *layout.result_moves]
