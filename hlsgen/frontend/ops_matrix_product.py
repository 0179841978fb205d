"""Matrix products of two computed tensors: MatMul, Gemm, MatMulInteger, QLinearMatMul, MatMulIntegerToFloat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_integer import check_layer_dtype, zero_of
from hlsgen.frontend.dialect_qlinear import as_float, padded, rescaled, scale_product
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir import BatchMatMul, BatchMatMulInteger, Reshape, Shape, TensorProduct, Transpose
from hlsgen.ir.ops import Add, Mul
from hlsgen.numerics.fixed import Array


def matmul(node: NodeContext) -> Imported:
    """MatMul. Raises HG015, HG023, HG026."""
    _check_operands(node, 0, 1)
    return _product(node, BatchMatMul(), [[], []])


def gemm(node: NodeContext) -> Imported:
    """Gemm: the product, then alpha, beta and a constant C. Raises HG015, HG020, HG023, HG026, HG027."""
    name, attrs = node.name, node.attrs
    _check_operands(node, 0, 1)
    transposes: list[ShapedOps] = []
    for tensor, key in zip(node.computed, ("transA", "transB"), strict=True):
        shape = tensor.shape or ()
        if len(shape) != 2:
            raise fail("HG023", name, f"an operand of shape {list(shape)} is no matrix.", "Gemm needs two axes.")
        transposes.append([(Transpose((1, 0)), shape[::-1])] if attrs.get(key, 0) else [])
    product = _product(node, BatchMatMul(), transposes)
    assert product.join is not None
    ops, result = list(product.outputs[0]), product.join[1]
    alpha, beta = np.float32(attrs.get("alpha", 1.0)), np.float32(attrs.get("beta", 1.0))
    if not (np.isfinite(alpha) and np.isfinite(beta)):
        raise fail("HG027", name, f"attributes alpha and beta are {alpha} and {beta}.", "Both must be finite.")
    if alpha != 1:
        ops.append((Mul(full(float(alpha), result)), result))
    if node.constant(2) is not None:
        ops.append((Add(beta * operand(name, result, node.constant(2), "C")), result))
    return Imported((ops,), product.operand_ops, product.join)


def matmul_integer(node: NodeContext) -> Imported:
    """MatMulInteger. Raises HG015, HG023, HG024, HG026."""
    _check_operands(node, 0, 1)
    return _integer(node, [*node.constants, None, None][2:4])


def qlinear_matmul(node: NodeContext) -> Imported:
    """QLinearMatMul: A, its scale, zero point; B, its scale, zero point; output scale, zero point.

    Raises HG015, HG020, HG022 - HG024, HG026, HG034.
    """
    _check_operands(node, 0, 3)
    inputs = padded(node.constants)
    product = _integer(node, [inputs[2], inputs[5]])
    assert product.join is not None
    factor = _one_factor(node, inputs[1], inputs[4])
    (result_ops,) = product.outputs
    sums = result_ops or [(Reshape(), product.join[1])]
    steps = rescaled(node.name, sums, factor, inputs[6:8])
    outputs = ([*result_ops, *steps[len(sums) :]],)
    return Imported(outputs, product.operand_ops, product.join, product.swapped)


def matmul_integer_to_float(node: NodeContext) -> Imported:
    """MatMulIntegerToFloat: A, B, their scales, their zero points, float32 bias.

    Raises HG015, HG020, HG022 - HG024, HG026, HG034.
    """
    _check_operands(node, 0, 1)
    inputs = padded(node.constants)
    product = _integer(node, inputs[4:6])
    assert product.join is not None
    (result_ops,) = product.outputs
    result = result_ops[-1][1] if result_ops else product.join[1]
    floats = as_float(node.name, result, _one_factor(node, inputs[2], inputs[3]), inputs[6])
    return replace(product, outputs=([*result_ops, *floats],))


def _one_factor(node: NodeContext, first: Const | None, second: Const | None) -> Array:
    """fl(first scale * second scale), a scalar. Raises HG034 and as `scale_product`."""
    factor = scale_product(node.name, first, second)
    if factor.size != 1:
        text = f"the scales of the operands have {factor.size} values along an axis."
        raise fail("HG034", node.name, text, "Use one scale per tensor.")
    return factor.reshape(())


def _check_operands(node: NodeContext, *positions: int) -> None:
    """Check that exactly the inputs with these numbers are computed. Raises HG015."""
    computed = [i for i, tensor in enumerate(node.inputs) if tensor is not None and node.constant(i) is None]
    if computed != list(positions):
        text = f"inputs {', '.join(map(str, computed))} of {node.op_type} are computed."
        matrices = " and ".join(map(str, positions))
        raise fail(
            "HG015", node.name, text, f"Supported: computed inputs {matrices}, the matrices; constants otherwise."
        )


def _integer(node: NodeContext, zeros: list[Const | None]) -> Imported:
    """The product of integers with these zero points. Raises HG023, HG024, HG026."""
    for tensor in node.computed:
        check_layer_dtype(node.name, tensor.dtype)
    zero_points = []
    for const, subject in zip(zeros, ("the left zero point", "the right zero point"), strict=True):
        values = np.unique(zero_of(node.name, const, subject))
        if len(values) > 1:
            text = f"{subject} has {len(values)} different values."
            raise fail("HG024", node.name, text, "Supported: one per tensor.")
        zero_points.append(int(values[0]))
    return _product(node, BatchMatMulInteger((zero_points[0], zero_points[1])), [[], []])


def _product(node: NodeContext, op: TensorProduct, first_ops: list[ShapedOps]) -> Imported:
    """The product of both tensors, each after its chain in `first_ops`. Raises HG023, HG026.

    The batch axes of one operand may be 1. If the left one's are, the product is imported as the transposed product
    of the transposed and exchanged operands.
    """
    name = node.name
    if not isinstance(op, BatchMatMulInteger) and len({t.dtype for t in node.computed}) > 1:
        types = ", ".join(t.dtype for t in node.computed)
        raise fail("HG026", name, f"{node.op_type} of types {types}.", "Cast them to one type.")
    shapes = [ops[-1][1] if ops else t.shape or () for t, ops in zip(node.computed, first_ops, strict=True)]
    text = f"a product of shapes {' and '.join(str(list(s)) for s in shapes)}."
    try:
        result = np.matmul(*(np.broadcast_to(np.zeros((), np.int8), shape) for shape in shapes)).shape
    except ValueError:
        hint = (
            "The columns of the left operand must equal the rows of the right one, and the other axes must broadcast."
        )
        raise fail("HG023", name, text, hint) from None
    a = shapes[0] if len(shapes[0]) > 1 else (1, *shapes[0])
    b = shapes[1] if len(shapes[1]) > 1 else (*shapes[1], 1)
    rank = max(len(a), len(b))
    a, b = ((1,) * (rank - len(shape)) + shape for shape in (a, b))
    exchange = any(j not in (1, i) for i, j in zip(a[:-2], b[:-2], strict=True))
    if exchange and any(i not in (1, j) for i, j in zip(a[:-2], b[:-2], strict=True)):
        hint = "The axes before the matrices must be equal, or all of them 1 in one of the operands."
        raise fail("HG023", name, text, hint)
    if rank < 2 or not all((*a, *b)):
        raise fail("HG023", name, text, "Matrices of at least one element are needed.")
    chains = [[*ops, *_reshape(shape, full)] for ops, shape, full in zip(first_ops, shapes, (a, b), strict=True)]
    if exchange:
        perm = (*range(rank - 2), rank - 1, rank - 2)
        transposed = [(*shape[:-2], shape[-1], shape[-2]) for shape in (a, b)]
        chains = [[*chain, (Transpose(perm), shape)] for chain, shape in zip(chains, transposed, strict=True)]
        product = (*b[:-2], b[-1], a[-2])
        full = (*b[:-2], a[-2], b[-1])
        op = BatchMatMulInteger(op.zero_points[::-1]) if isinstance(op, BatchMatMulInteger) else op
        return Imported(([(Transpose(perm), full), *_reshape(full, result)],), tuple(chains), (op, product), True)
    full = (*a[:-1], b[-1])
    return Imported((_reshape(full, result),), tuple(chains), (op, full))


def _reshape(shape: Shape, target: Shape) -> ShapedOps:
    return [] if shape == target else [(Reshape(), target)]
