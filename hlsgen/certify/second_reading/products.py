"""Second reading of matrix products of two computed tensors: zero points, scales, alpha, beta, transposed operands."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.second_reading.attention import check_shares
from hlsgen.certify.second_reading.protobuf import kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, aligned, differ
from hlsgen.ir import BatchMatMul, BatchMatMulInteger, Transpose
from hlsgen.ir.ops import Add, IntQuant, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array


def product(imported: ImportedSteps, n: int) -> Differences:
    """Check a product of two computed tensors. Returns None for all other nodes: they are layers with weights."""
    file, node = imported.file, imported.file.nodes[n]
    second = {"QLinearMatMul": 3}.get(node.op_type, 1)
    if not all(file.has_input(n, i) and node.input[i] in file.computed for i in (0, second)):
        return None
    if node.op_type != "Gemm" and imported.steps(n, Transpose):
        # Both operands are swapped and transposed: the left one is repeated for the matrices of the right one.
        return None
    float_products, integer_products = imported.steps(n, BatchMatMul), imported.steps(n, BatchMatMulInteger)
    if len(float_products) + len(integer_products) != 1:
        return None
    if node.op_type in ("MatMulInteger", "QLinearMatMul"):
        return _integers(imported, n)
    return _floats(imported, n) if float_products else _qdq_product(imported, n)


def _floats(imported: ImportedSteps, n: int) -> Differences:
    """MatMul, Gemm."""
    file, attributes, differences = imported.file, imported.file.attributes[n], list[str]()
    transposed = [bool(attributes.get(key, 0)) for key in ("transA", "transB")]
    differences += differ("how many operands are transposed", len(imported.steps(n, Transpose)), sum(transposed))
    if sum(transposed) == 1:
        (step,), values = imported.steps(n, Transpose), imported.steps(n, BatchMatMul)[0].inputs
        imported_side = [imported.model.steps[i - 1] is step for i in values]
        differences += differ("operands that are transposed", imported_side, transposed)
    alpha, beta = (np.float32(attributes.get(key, 1.0)) for key in ("alpha", "beta"))
    factors, terms, bias = imported.steps(n, Mul), imported.steps(n, Add), file.constant(n, 2)
    if len(factors) != (alpha != 1) or len(terms) != file.has_input(n, 2) or (terms and bias is None):
        return None
    for step in imported.steps(n, IntQuant):
        differences += check_shares(step)
    for step in factors:
        differences += differ("alpha", step.op.value, alpha)  # type: ignore[union-attr]
    for step in terms:
        assert bias is not None
        differences += differ("bias", step.op.value, aligned(beta * bias.array, len(step.shape)))  # type: ignore[union-attr]
    return differences


def _integers(imported: ImportedSteps, n: int) -> Differences:
    """MatMulInteger, or QLinearMatMul with one factor fl(fl(sa * sb) / sy) after the sums."""
    file, qlinear = imported.file, imported.file.nodes[n].op_type == "QLinearMatMul"
    zeros = [file.constant(n, i) for i in ((2, 5) if qlinear else (2, 3))]
    differences = _compare_zero_points(imported, n, [np.zeros(1) if zero is None else zero.array for zero in zeros])
    if not qlinear:
        return differences
    scales, last = [file.constant(n, i) for i in (1, 4, 6)], file.constant(n, 7)
    if None in scales or last is None:
        return None
    return _compare_rescaling(
        imported, n, n, differences, [scale.array for scale in scales if scale is not None], last.array
    )


def _qdq_product(imported: ImportedSteps, n: int) -> Differences:
    """MatMul between DequantizeLinear and QuantizeLinear. Covers these nodes."""
    file = imported.file
    dequantizers, following = [file.upstream_node(n, i) for i in (0, 1)], file.downstream_nodes(n)
    if min(dequantizers) < 0 or not following or file.nodes[following[-1]].op_type != "QuantizeLinear":
        return None
    quantization_nodes = [*dequantizers, following[-1]]
    if any(file.nodes[m].op_type != "DequantizeLinear" for m in dequantizers):
        return None
    scales, zeros = [file.constant(m, 1) for m in quantization_nodes], [file.constant(m, 2) for m in quantization_nodes]
    if None in scales or None in zeros:
        return None
    points = [zero.array for zero in zeros if zero is not None]
    differences = _compare_rescaling(
        imported,
        n,
        quantization_nodes[2],
        _compare_zero_points(imported, n, points[:2]),
        [s.array for s in scales if s is not None],
        points[2],
    )
    if differences is None:
        return None
    imported.covered.add(quantization_nodes[2])
    for m in dequantizers:
        users = file.users.get(file.nodes[m].output[0], [])
        if users == [n] and not imported.steps(m):
            imported.covered.add(m)
    return differences


def _compare_zero_points(imported: ImportedSteps, n: int, expected: list[Array]) -> list[str]:
    op = imported.steps(n, BatchMatMulInteger)[0].op
    assert isinstance(op, BatchMatMulInteger)
    differences = list[str]()
    for side, imported_zero, zero in zip(("left", "right"), op.zero_points, expected, strict=True):
        differences += differ(f"zero point of the {side} operand", imported_zero, zero.astype(np.int64).ravel())
    return differences


def _compare_rescaling(
    imported: ImportedSteps, n: int, last: int, differences: list[str], scales: list[Array], zero: Array
) -> Differences:
    """Compare the factor, and the quantizer of node `last`, after integer sums."""
    factors, finals = imported.steps(n, Mul), imported.steps(last, QuantizeLinear)
    if len(factors) != 1 or len(finals) != 1:
        return None
    a, b, y = (scale.astype(np.float32).ravel() for scale in scales)
    differences = [*differences, *differ("factor", factors[0].op.value, a * b / y)]  # type: ignore[union-attr]
    final = finals[0]
    assert isinstance(final.op, QuantizeLinear)
    return differences + (
        quantizer(imported, final.op, len(final.shape), np.ones(1, np.float32), zero, 1, kind_of(zero)) or []
    )


#: Operator -> its second reading if both matrices are computed.
PRODUCTS = dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"), product)
