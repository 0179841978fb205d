"""ADD, SUB and MUL of two tensors that broadcast; one of them may be a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.tflite.broadcast import broadcast
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.requantizers import doubly_rounded, half_to_even, shifted, singly_rounded
from hlsgen.ir import Binary, Shape
from hlsgen.ir.ops import Add, BinaryKind, Cast, Elementwise, Lookup, Mul, Quantizer
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.multipliers import (
    Multiplier,
    Runtime,
    add_multipliers,
    product_ratio,
    quantized_multiplier,
    single_ratio,
    xnnpack_add_multipliers,
)
from hlsgen.numerics.tflite.piecewise import power_of_two
from hlsgen.numerics.tflite.rescaling import rescale, rescale_once


@dataclass(frozen=True, eq=False)
class _Branch:
    """int32 numbers of an operand's codes: (code - zero_point) * factor, or rescaled by a multiplier.

    multiplier: of (code - zero_point) * 2^left_shift, whose rescaled numbers get the sign of `factor`. once: they are
    rounded once, ties up.
    """

    codes: CodeType
    factor: int = 1
    left_shift: int = 0
    multiplier: Multiplier | None = None
    once: bool = False

    def apply(self, codes: Array) -> Array:
        centered = codes.astype(np.int64) - self.codes.zero_point
        if self.multiplier is not None:
            function = rescale_once if self.once else rescale
            centered = function(centered << self.left_shift, self.multiplier)
        return (centered * self.factor).astype(np.int32)

    def ops(self, rank: int) -> list[Elementwise]:
        scalar = np.ones((1,) * rank, np.int32)
        if self.multiplier is not None and self.codes.dtype == "int16":
            rescaled: list[Elementwise] = [Cast("int32"), Mul(scalar << self.left_shift), self._rescaling(rank)]
            return rescaled if self.factor == 1 else [*rescaled, Mul(scalar * self.factor)]
        if self.multiplier is not None:
            table = self.apply(self.codes.all_codes).reshape((-1,) + (1,) * rank)
            return [Cast("int32"), Add(scalar * -self.codes.type.lo), Lookup(table)]
        ops: list[Elementwise] = [Cast("int32"), Add(scalar * -self.codes.zero_point)]
        return ops if self.factor == 1 else [*ops, Mul(scalar * self.factor)]

    def _rescaling(self, rank: int) -> Quantizer:
        """The rescaling of int16 codes, shifted left before it; its type has exactly the range of its results."""
        assert self.multiplier is not None
        assert not self.codes.zero_point
        unsigned = replace(self, factor=1)
        ends = unsigned.apply(np.array([self.codes.type.lo, self.codes.type.hi]))
        quantizer = singly_rounded if self.once else doubly_rounded
        return quantizer([self.multiplier], rank, 0, IntType(int(ends[0]), int(ends[1])), "int32")


def add(node: OperatorNode) -> None:
    """ADD. Raises HG013 - HG015, HG022 - HG024, HG026."""
    _sum(node, 1)


def sub(node: OperatorNode) -> None:
    """SUB. Raises HG013 - HG015, HG022 - HG024, HG026."""
    _sum(node, -1)


def mul(node: OperatorNode) -> None:
    """MUL. Raises HG013 - HG015, HG022 - HG024, HG026."""
    first, second, result = _operands(node)
    rank, zero = len(node.result().shape), result.zero_point
    after: list[Elementwise]
    if node.by_xnnpack:
        ratio = single_ratio(*(np.float32(c.scale) for c in (first, second, result)))
        if not 2.0**-16 <= ratio < 2.0**8:
            raise _out_of_range(node)
        quantizer: Quantizer = half_to_even(rank, zero, node.bounds(result, xnnpack=True), result.dtype)
        after = [Cast("float32"), Mul(np.full((1,) * rank, ratio, np.float32)), quantizer]
    else:
        multiplier = quantized_multiplier(product_ratio(node.runtime, first.scale, second.scale, result.scale))
        after = [doubly_rounded([multiplier], rank, zero, node.bounds(result), result.dtype)]
    _combine(node, BinaryKind.MUL, (_Branch(first), _Branch(second)), after)


def _sum(node: OperatorNode, sign: int) -> None:
    first, second, result = _operands(node)
    rank, zero = len(node.result().shape), result.zero_point
    if node.by_xnnpack:
        factors = xnnpack_add_multipliers(first.scale, second.scale, result.scale)
        if factors is None:
            raise _out_of_range(node)
        a, b, shift = factors
        branches = _Branch(first, a), _Branch(second, b * sign)
        bounds = node.bounds(result, xnnpack=True)
        quantizer = shifted(rank, 1 << (shift - 1), shift, zero, bounds, result.dtype)
    else:
        m = add_multipliers(result.dtype, first.scale, second.scale, result.scale)
        is_plain = sign > 0 and node.tensor(0).shape == node.tensor(1).shape
        # AddElementwise of optimized_ops.
        once = is_plain and result.dtype == "int16" and node.runtime is Runtime.LITERT
        branches = (
            _Branch(first, 1, m.left_shift, m.first, once),
            _Branch(second, sign, m.left_shift, m.second, once),
        )
        if result.dtype == "int16":
            _refuse_powers_of_two(node, (first, second, result))
        quantizer = doubly_rounded([m.result], rank, zero, node.bounds(result), result.dtype)
    _combine(node, BinaryKind.ADD, branches, [quantizer])


def _refuse_powers_of_two(node: OperatorNode, codes: tuple[CodeType, ...]) -> None:
    """Raises HG015 for the power-of-two scales with which LiteRT adds int16 codes in another way."""
    powers = all(power_of_two(c.scale) is not None for c in codes)
    if node.runtime is not Runtime.TFLM and powers and node.options.get("pot_scale_int16", True):
        reason = "int16 data of three power-of-two scales is added by shifts"
        raise node.refused(reason, "Convert the model with pot_scale_int16 = false.")


def _operands(node: OperatorNode) -> tuple[CodeType, CodeType, CodeType]:
    """The meaning of the codes of both operands and the result, of one type."""
    first, second, result = (node.codes(t) for t in (node.tensor(0), node.tensor(1), node.result()))
    for number, codes in enumerate((first, second)):
        if codes.dtype != result.dtype:
            raise node.wrong_type(node.tensor(number))
    return first, second, result


def _out_of_range(node: OperatorNode) -> Exception:
    reason = "the ratio of the scales is not computed by XNNPACK"
    return node.refused(reason, "Use scales of similar sizes, or litert-ref.")


def _combine(node: OperatorNode, kind: BinaryKind, branches: tuple[_Branch, _Branch], after: list[Elementwise]) -> None:
    """The operation on the numbers of both operands, then `after`."""
    shape, rank = _shape(node), len(node.result().shape)
    computed = [position for position in (0, 1) if node.is_computed(position)]
    values = [_broadcast_numbers(node, position, branches[position].ops(rank), shape) for position in computed or (0,)]
    if len(computed) == 2:
        value = node.step(Binary(kind), shape, *values)
    else:
        constant_position = 1 - computed[0]
        codes = node.constant(constant_position, "an operand")
        numbers = branches[constant_position].apply(codes).reshape((1,) * (rank - codes.ndim) + codes.shape)
        value = node.step(Add(numbers) if kind is BinaryKind.ADD else Mul(numbers), shape, values[0])
    ops: ShapedOps = [(op, shape) for op in after]
    node.finish(node.chain(value, ops), shape)


def _broadcast_numbers(node: OperatorNode, position: int, ops: list[Elementwise], shape: Shape) -> int:
    """The numbers of an operand in the shape of the result; the codes are repeated."""
    value = node.chain(node.value(position), broadcast(node.tensor(position).shape, shape))
    return node.chain(value, [(op, shape) for op in ops])


def _shape(node: OperatorNode) -> Shape:
    """The common shape of the operands. Raises HG023 unless it is the result's."""
    shapes, result = [node.tensor(0).shape, node.tensor(1).shape], node.result().shape
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if shape != result or not shape:
        text = f"{node.operator.name} of shapes {[list(s) for s in shapes]} to shape {list(result)}."
        raise fail("HG023", node.name, text, "The operands must broadcast to the shape of the result.")
    return shape
