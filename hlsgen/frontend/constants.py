"""Nodes whose inputs are all constant: evaluated once, with onnx's own reference implementation.

Each function takes such a node and gives its results, those of a quantizer with their codes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, check_growth, evaluate, quantized
from hlsgen.frontend.dialect_integer import dequantized, quantizer_of
from hlsgen.frontend.node_context import Imported, NodeContext
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import QUANTIZERS
from hlsgen.numerics.fixed import Array


def refused(node: NodeContext) -> list[Const]:
    """Raises HG010."""
    raise fail(
        "HG010", node.name, f"operator {node.op_type} on constants is not supported.",
        "Simplify the model with its exporter's constant folding.",
    )  # fmt: skip


def evaluated(node: NodeContext) -> list[Const]:
    """Raises HG004 or HG013."""
    arrays = _arrays(node)
    check_growth(node.proto, arrays)
    return [Const(array) for array in evaluate(node.proto, arrays, node.opset)]


def rearranged(node: NodeContext) -> list[Const]:
    """An operator that moves elements only: it moves codes, scales and zero points alike. Raises HG004 or HG013."""
    first = node.constant(0)
    results = evaluated(node)
    if first is None or first.codes is None:
        return results
    shape, rest = first.array.shape, _arrays(node)[1:]
    codes, scale, zero = (
        evaluate(node.proto, [np.broadcast_to(part, shape).copy(), *rest], node.opset)[0]
        for part in (first.codes, first.scale, first.zero_point)
        if part is not None
    )
    return [Const(results[0].array, codes, scale, zero, first.kind)]


def multiplied(node: NodeContext) -> list[Const]:
    """Mul; the product of a quantized constant and positive numbers keeps its codes. Raises HG004 or HG013."""
    return _rescaled(node, ((0, 1), (1, 0)))


def divided(node: NodeContext) -> list[Const]:
    """Div; a quantized constant divided by positive numbers keeps its codes. Raises HG004 or HG013."""
    return _rescaled(node, ((0, 1),))


def _rescaled(node: NodeContext, orders: tuple[tuple[int, int], ...]) -> list[Const]:
    results = evaluated(node)
    for own, other in orders:
        const, factor = node.constant(own), node.constant(other)
        if const is not None and factor is not None and const.codes is not None and (factor.array > 0).all():
            return [_with_codes(node, const, factor.array, results[0].array)]
    return results


def _with_codes(node: NodeContext, const: Const, factor: Array, result: Array) -> Const:
    """The result with the codes of `const`, if the product of codes and new scales is the same."""
    assert const.codes is not None
    scale = evaluate(node.proto, [const.scale, factor], node.opset)[0] if const.scale is not None else None
    if scale is None or const.zero_point is None or scale.shape != const.codes.shape or not (scale > 0).all():
        return Const(result)
    real = (const.codes - const.zero_point).astype(scale.dtype) * scale
    same = real.dtype == result.dtype and bool((real == result).all())
    return Const(result, const.codes, scale, const.zero_point) if same else Const(result)


def quantize_linear(node: NodeContext) -> list[Const]:
    """The codes of a constant, in their own type."""
    data = node.constant(0)
    if data is None:
        return refused(node)
    op = quantizer_of(node.name, data.array.shape, node.constants, node.attrs)
    return [Const(quantize(op, data.array).astype(op.dtype))]


def dequantize_linear(node: NodeContext) -> list[Const]:
    """The real numbers of constant codes, with the codes."""
    data = node.constant(0)
    return refused(node) if data is None else [dequantized(node.name, data, node.constants, node.attrs)]


def _arrays(node: NodeContext) -> list[Array]:
    return [c.array for c in node.constants if c is not None]


def quantized_by(convert: Callable[[NodeContext], Imported]) -> Callable[[NodeContext], list[Const]]:
    """For the quantizer of QONNX that `convert` imports: the constant behind it, with its codes."""

    def evaluate_quantizer(node: NodeContext) -> list[Const]:
        """Raises HG014, HG026 and what `convert` raises."""
        data = node.constant(0)
        if data is None:
            raise fail("HG014", node.name, "the data input is missing.", "It is the first input.")
        if data.array.dtype.kind not in "fiub" or not data.array.size:
            text = f"a constant of type {data.array.dtype} and shape {list(data.array.shape)} cannot be quantized."
            raise fail("HG026", node.name, text, "Store it as float32.")
        op, _ = convert(node.with_data(data.array.shape)).outputs[0][0]
        assert isinstance(op, QUANTIZERS)
        return [quantized(op, data)]

    return evaluate_quantizer
