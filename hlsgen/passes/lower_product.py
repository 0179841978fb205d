"""Lowers matrix products of two computed tensors to exact integer sums.

real = unit * (code * factor + offset) for every element of an operand. Hence a sum of products is an integer sum times
the product of both units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import Accumulator, BatchMatMulInteger, IntegerEncoding, MatrixProduct, Shape, TensorProduct, Value
from hlsgen.ir.evaluate import constants, with_constants
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import MAX_ACCUMULATOR_BITS, column_scales, integer_offset, too_wide, zero_shift


@dataclass(frozen=True)
class _Operand:
    """real = unit * (code * factor + offset)."""

    factor: int
    offset: int
    unit: float


def product(
    builder: GraphBuilder, name: str, op: TensorProduct, operands: Sequence[PendingValue], shape: Shape
) -> PendingValue:
    """Add the matrix product of both operands. Raises HG024, HG030, HG032, HG033, HG034."""
    first, second = (builder.to_codes(name, operand) for operand in operands)
    if isinstance(op, BatchMatMulInteger):
        operand_forms = [
            _integer_operand(name, t.value, zero_point)
            for t, zero_point in zip((first, second), op.zero_points, strict=True)
        ]
        encoding: Accumulator | IntegerEncoding = IntegerEncoding("int32", np.zeros((1,) * len(shape), np.int64))
    else:
        operand_forms = [_real_operand(name, tensor.value) for tensor in (first, second)]
        unit = np.full(1, operand_forms[0].unit * operand_forms[1].unit)
        encoding = Accumulator(1, np.zeros(1, np.int64), unit)
    form_a, form_b = operand_forms
    layer = MatrixProduct(
        name,
        (form_a.factor, form_b.factor),
        (form_a.offset, form_b.offset),
        (first.value, second.value),
        Value(shape, IntType(0, 0), encoding),
        (first.index, second.index),
    )
    type_ = layer.interval
    if max(abs(type_.lo), abs(type_.hi)) >= 1 << MAX_ACCUMULATOR_BITS:
        raise too_wide(name, max(abs(type_.lo), abs(type_.hi)).bit_length() + 1)
    return builder.add(replace(layer, result=replace(layer.result, type=type_)))


def _integer_operand(name: str, value: Value, zero_point: int) -> _Operand:
    return _Operand(1, int(integer_offset(name, _with_one_encoding(name, value))[0]) - zero_point, 1.0)


def _real_operand(name: str, value: Value) -> _Operand:
    scales, zeros = column_scales(name, _with_one_encoding(name, value))
    shift = zero_shift(name, zeros[:1])
    return _Operand(1 << shift, -round(float(zeros[0]) * 2.0**shift), float(scales[0]) * 2.0**-shift)


def _with_one_encoding(name: str, value: Value) -> Value:
    """The value with one scale and zero point for all its codes. Raises HG034."""
    arrays = constants(value.encoding)
    if any((array != array.ravel()[0]).any() for array in arrays.values()):
        text = "the scale or zero point of an operand differs along an axis."
        raise fail("HG034", name, text, "Use one per tensor.")
    first_elements = {key: array.reshape(-1)[:1] for key, array in arrays.items()}
    return replace(value, encoding=with_constants(value.encoding, first_elements))
