"""Second reading of matrix products of two computed tensors: zero points, scales, alpha, beta, what is transposed."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.second_reading.attention import shares
from hlsgen.certify.second_reading.protobuf import kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Found, Told, aligned, differ
from hlsgen.ir import BatchMatMul, BatchMatMulInteger, Transpose
from hlsgen.ir.ops import Add, IntQuant, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array


def product(found: Found, n: int) -> Told:
    """Of two computed tensors; None of all other nodes, which are layers with weights."""
    file, node = found.file, found.file.nodes[n]
    second = {"QLinearMatMul": 3}.get(node.op_type, 1)
    if not all(file.given(n, i) and node.input[i] in file.computed for i in (0, second)):
        return None
    if node.op_type != "Gemm" and found.steps(n, Transpose):
        return (
            None  # operands in the other order, both transposed: the left one is repeated for matrices of the right one
        )
    real, whole = found.steps(n, BatchMatMul), found.steps(n, BatchMatMulInteger)
    if len(real) + len(whole) != 1:
        return None
    if node.op_type in ("MatMulInteger", "QLinearMatMul"):
        return _integers(found, n)
    return _floats(found, n) if real else _between(found, n)


def _floats(found: Found, n: int) -> Told:
    """MatMul, Gemm."""
    file, attributes, told = found.file, found.file.attributes[n], list[str]()
    turned = [bool(attributes.get(key, 0)) for key in ("transA", "transB")]
    told += differ("how many operands are transposed", len(found.steps(n, Transpose)), sum(turned))
    if sum(turned) == 1:
        (step,), values = found.steps(n, Transpose), found.steps(n, BatchMatMul)[0].inputs
        side = [found.model.steps[i - 1] is step for i in values]
        told += differ("operands that are transposed", side, turned)
    alpha, beta = (np.float32(attributes.get(key, 1.0)) for key in ("alpha", "beta"))
    factors, terms, bias = found.steps(n, Mul), found.steps(n, Add), file.constant(n, 2)
    if len(factors) != (alpha != 1) or len(terms) != file.given(n, 2) or (terms and bias is None):
        return None
    for step in found.steps(n, IntQuant):
        told += shares(step)
    for step in factors:
        told += differ("alpha", step.op.value, alpha)  # type: ignore[union-attr]
    for step in terms:
        assert bias is not None
        told += differ("bias", step.op.value, aligned(beta * bias.array, len(step.shape)))  # type: ignore[union-attr]
    return told


def _integers(found: Found, n: int) -> Told:
    """MatMulInteger; QLinearMatMul: one factor fl(fl(sa * sb) / sy) behind the sums."""
    file, qlinear = found.file, found.file.nodes[n].op_type == "QLinearMatMul"
    zeros = [file.constant(n, i) for i in ((2, 5) if qlinear else (2, 3))]
    told = _zeros(found, n, [np.zeros(1) if zero is None else zero.array for zero in zeros])
    if not qlinear:
        return told
    scales, last = [file.constant(n, i) for i in (1, 4, 6)], file.constant(n, 7)
    if None in scales or last is None:
        return None
    return _rescaled(found, n, n, told, [scale.array for scale in scales if scale is not None], last.array)


def _between(found: Found, n: int) -> Told:
    """MatMul between DequantizeLinear and QuantizeLinear: covers these nodes."""
    file = found.file
    first, behind = [file.before(n, i) for i in (0, 1)], file.after(n)
    if min(first) < 0 or not behind or file.nodes[behind[-1]].op_type != "QuantizeLinear":
        return None
    ends = [*first, behind[-1]]
    if any(file.nodes[m].op_type != "DequantizeLinear" for m in first):
        return None
    scales, zeros = [file.constant(m, 1) for m in ends], [file.constant(m, 2) for m in ends]
    if None in scales or None in zeros:
        return None
    points = [zero.array for zero in zeros if zero is not None]
    told = _rescaled(
        found, n, ends[2], _zeros(found, n, points[:2]), [s.array for s in scales if s is not None], points[2]
    )
    if told is None:
        return None
    found.covered.add(ends[2])
    for m in first:
        users = file.users.get(file.nodes[m].output[0], [])
        if users == [n] and not found.steps(m):
            found.covered.add(m)
    return told


def _zeros(found: Found, n: int, wanted: list[Array]) -> list[str]:
    op = found.steps(n, BatchMatMulInteger)[0].op
    assert isinstance(op, BatchMatMulInteger)
    told = list[str]()
    for side, own, zero in zip(("left", "right"), op.zero_points, wanted, strict=True):
        told += differ(f"zero point of the {side} operand", own, zero.astype(np.int64).ravel())
    return told


def _rescaled(found: Found, n: int, last: int, told: list[str], scales: list[Array], zero: Array) -> Told:
    """The factor and the quantizer, of node `last`, behind integer sums."""
    factors, finals = found.steps(n, Mul), found.steps(last, QuantizeLinear)
    if len(factors) != 1 or len(finals) != 1:
        return None
    a, b, y = (scale.astype(np.float32).ravel() for scale in scales)
    told = [*told, *differ("factor", factors[0].op.value, a * b / y)]  # type: ignore[union-attr]
    final = finals[0]
    assert isinstance(final.op, QuantizeLinear)
    return told + (quantizer(found, final.op, len(final.shape), np.ones(1, np.float32), zero, 1, kind_of(zero)) or [])


#: Operator -> its second reading, where both matrices are computed.
PRODUCTS = dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"), product)
