"""Matrix products of two computed tensors: MatMul, Gemm, MatMulInteger, QLinearMatMul."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_integer import eight_bits, zero_of
from hlsgen.frontend.dialect_qlinear import padded, rescaled, scale_product
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_standard import full, operand
from hlsgen.ir import BatchMatMul, BatchMatMulInteger, Reshape, Shape, TensorProduct, Transpose
from hlsgen.ir.ops import Add, Mul


def matmul(node: NodeContext) -> Imported:
    """Raises HG015, HG023, HG026."""
    _check_operands(node, 0, 1)
    return _product(node, BatchMatMul(), [[], []])


def gemm(node: NodeContext) -> Imported:
    """alpha, beta and a constant C follow the product. Raises HG015, HG020, HG023, HG026, HG027."""
    name, attrs = node.name, node.attrs
    _check_operands(node, 0, 1)
    turned: list[ShapedOps] = []
    for tensor, key in zip(node.computed, ("transA", "transB"), strict=True):
        shape = tensor.shape or ()
        if len(shape) != 2:
            raise fail("HG023", name, f"data of shape {list(shape)}; Gemm takes matrices.")
        turned.append([(Transpose((1, 0)), shape[::-1])] if attrs.get(key, 0) else [])
    found = _product(node, BatchMatMul(), turned)
    assert found.join is not None
    ops, result = list(found.outputs[0]), found.join[1]
    alpha, beta = np.float32(attrs.get("alpha", 1.0)), np.float32(attrs.get("beta", 1.0))
    if not (np.isfinite(alpha) and np.isfinite(beta)):
        raise fail("HG027", name, f"alpha {alpha}, beta {beta}.")
    if alpha != 1:
        ops.append((Mul(full(float(alpha), result)), result))
    if node.constant(2) is not None:
        ops.append((Add(beta * operand(name, result, node.constant(2), "C")), result))
    return Imported((ops,), found.before, found.join)


def matmul_integer(node: NodeContext) -> Imported:
    """Raises HG015, HG023, HG024, HG026."""
    _check_operands(node, 0, 1)
    return _integer(node, [*node.constants, None, None][2:4])


def qlinear_matmul(node: NodeContext) -> Imported:
    """A, its scale, zero point; B, its scale, zero point; output scale, zero point.

    Raises HG015, HG020, HG022 - HG024, HG026, HG034.
    """
    _check_operands(node, 0, 3)
    inputs = padded(node.constants)
    found = _integer(node, [inputs[2], inputs[5]])
    assert found.join is not None
    factor = scale_product(node.name, inputs[1], inputs[4])
    if factor.size != 1:
        raise fail("HG034", node.name, "an operand's scale differs along an axis.", "Use one per tensor.")
    (way,) = found.outputs
    sums = way or [(Reshape(), found.join[1])]
    steps = rescaled(node.name, sums, factor.reshape(()), inputs[6:8])
    return Imported(([*way, *steps[len(sums) :]],), found.before, found.join, found.swapped)


def _check_operands(node: NodeContext, *places: int) -> None:
    """Whether the computed inputs are these. Raises HG015."""
    found = [i for i, tensor in enumerate(node.inputs) if tensor is not None and node.constant(i) is None]
    if found != list(places):
        text = f"inputs {', '.join(map(str, found))} of {node.op_type} are computed."
        raise fail("HG015", node.name, text, "Supported: both matrices, with constants for everything else.")


def _integer(node: NodeContext, zeros: list[Const | None]) -> Imported:
    for tensor in node.computed:
        eight_bits(node.name, tensor.dtype)
    found = []
    for const, what in zip(zeros, ("the left zero point", "the right zero point"), strict=True):
        values = np.unique(zero_of(node.name, const, what))
        if len(values) > 1:
            raise fail("HG024", node.name, f"{what} has {len(values)} different values.", "Supported: one per tensor.")
        found.append(int(values[0]))
    return _product(node, BatchMatMulInteger((found[0], found[1])), [[], []])


def _product(node: NodeContext, op: TensorProduct, before: list[ShapedOps]) -> Imported:
    """The product of both tensors, each behind `before`; the batch axes of one may be 1 where the other's are not.

    Where these are the left one's, it is the transposed product of both transposed ones. Raises HG023, HG026.
    """
    name = node.name
    if not isinstance(op, BatchMatMulInteger) and len({t.dtype for t in node.computed}) > 1:
        types = ", ".join(t.dtype for t in node.computed)
        raise fail("HG026", name, f"{node.op_type} of types {types}.", "Cast them to one type.")
    own = [ops[-1][1] if ops else t.shape or () for t, ops in zip(node.computed, before, strict=True)]
    try:
        result = np.matmul(*(np.broadcast_to(np.zeros((), np.int8), shape) for shape in own)).shape
    except ValueError:
        raise fail("HG023", name, f"a product of shapes {' and '.join(str(list(s)) for s in own)}.") from None
    left = own[0] if len(own[0]) > 1 else (1, *own[0])
    right = own[1] if len(own[1]) > 1 else (*own[1], 1)
    rank = max(len(left), len(right))
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (left, right))
    fewer = any(b not in (1, a) for a, b in zip(left[:-2], right[:-2], strict=True))
    if fewer and any(a not in (1, b) for a, b in zip(left[:-2], right[:-2], strict=True)):
        raise fail(
            "HG023", name, f"a product of shapes {list(own[0])} and {list(own[1])}.",
            "The axes in front of the matrices must be equal, or 1 in one of the operands.",
        )  # fmt: skip
    if rank < 2 or not all((*left, *right)):
        raise fail("HG023", name, f"a product of shapes {list(own[0])} and {list(own[1])}.")
    ways = [[*ops, *_reshaped(shape, wanted)] for ops, shape, wanted in zip(before, own, (left, right), strict=True)]
    if fewer:
        perm = (*range(rank - 2), rank - 1, rank - 2)
        turned = [(*shape[:-2], shape[-1], shape[-2]) for shape in (left, right)]
        ways = [[*way, (Transpose(perm), shape)] for way, shape in zip(ways, turned, strict=True)]
        made = (*right[:-2], right[-1], left[-2])
        whole = (*right[:-2], left[-2], right[-1])
        op = BatchMatMulInteger(op.zero_points[::-1]) if isinstance(op, BatchMatMulInteger) else op
        return Imported(([(Transpose(perm), whole), *_reshaped(whole, result)],), tuple(ways), (op, made), True)
    whole = (*left[:-1], right[-1])
    return Imported((_reshaped(whole, result),), tuple(ways), (op, whole))


def _reshaped(shape: Shape, wanted: Shape) -> ShapedOps:
    return [] if shape == wanted else [(Reshape(), wanted)]
