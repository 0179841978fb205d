"""Linear steps: exact sums of products, rounded once to float32, or sums of integers that wrap."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen import ir
from hlsgen.interpreter import exact_numbers
from hlsgen.interpreter.exact_operands import exact_operand
from hlsgen.interpreter.tensor import Tensor, tensor_of_numbers
from hlsgen.numerics.fixed import Array

#: Steps whose operands are integers, and whose sums wrap.
IntegerSum = ir.MatMulInteger | ir.ConvInteger | ir.BatchMatMulInteger
#: Steps that add up the exact numbers of their operands. A Pool: of kind SUM.
ExactSum = ir.MatMul | ir.Conv | ir.BatchMatMul | ir.Pool


def exact_sum(op: ExactSum, model: ir.Model, step: ir.Step, inputs: list[Tensor], number: int) -> Tensor:
    """The exact sums of a step, rounded once; value `number` of the model."""
    operands = [exact_operand(model, index, tensor) for index, tensor in zip(step.inputs, inputs, strict=True)]
    first, scale = operands[0], np.ones(1)
    match op:
        case ir.MatMul(weight, scale):
            total = exact_numbers.products(first.integers, weight)
        case ir.Conv(weight, scale, window, groups):
            total = exact_numbers.convolved(first.integers, weight, window, groups)
        case ir.Pool(_, window):
            total = exact_numbers.windows(first.integers, window, 0).sum(axis=(-1, -2))
        case ir.BatchMatMul():
            second = operands[1]
            total = exact_numbers.matrix_product(first.integers, second.integers)
            first = exact_numbers.Exact(total, first.unit * second.unit, None)
    return _round_sums(total, first, scale, number)


def integer_sum(op: IntegerSum, inputs: list[Tensor], number: int) -> Tensor:
    """The sums of a step on integers, in its dtype; value `number` of the model."""
    codes = [exact_numbers.to_int64(tensor.value) for tensor in inputs]
    match op:
        case ir.MatMulInteger(weight, zero_point, dtype):
            total = exact_numbers.products(codes[0] - zero_point, weight)
        case ir.ConvInteger(weight, zero_point, window, groups, dtype):
            total = exact_numbers.convolved(codes[0] - zero_point, weight, window, groups)
        case ir.BatchMatMulInteger(zero_points):
            shifted = [code - zero_point for code, zero_point in zip(codes, zero_points, strict=True)]
            total, dtype = exact_numbers.matrix_product(shifted[0], shifted[1]), "int32"
    return _wrapped(total, dtype, number)


def pooled_integers(op: ir.Pool, tensor: Tensor, number: int) -> Tensor:
    """The sums of an integer tensor's windows, in its dtype; value `number` of the model."""
    sums = exact_numbers.windows(exact_numbers.to_int64(tensor.value), op.window, 0).sum(axis=(-1, -2))
    return replace(tensor_of_numbers(sums.astype(tensor.value.dtype)), origin=number)


def _round_sums(total: Array, exact: exact_numbers.Exact, scale: Array, number: int) -> Tensor:
    """Exact sums of numbers in `exact.unit` and weights of that scale, (rows,) or (1,), rounded once."""
    scales = [exact.unit * Fraction(float(s)) for s in np.ravel(scale)]
    value = exact_numbers.to_float32(total, scales)
    if len(set(scales)) > 1:
        return Tensor(value, scale=scales[0], origin=number)
    # The real difference of adjacent sums of codes. It is a multiple of the unit if zero points have a fraction.
    slope = scales[0] if exact.slope is None else exact.slope * Fraction(float(np.ravel(scale)[0]))
    exact_sums = exact_numbers.Exact(total, scales[0], slope)
    return Tensor(value, exact=exact_sums, term=exact_sums, scale=scales[0], origin=number)


def _wrapped(total: Array, dtype: str, number: int) -> Tensor:
    """Sums that wrap as int32 or int64."""
    if total.dtype == object:
        total = (total % (1 << 64)).astype(np.uint64)
    return replace(tensor_of_numbers(total.astype(dtype)), origin=number)
