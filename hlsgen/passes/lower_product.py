"""Lowers matrix products of two computed tensors to exact integer sums.

real = unit * (code * factor + offset) for every element of an operand. So a sum of products is an integer sum, times
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
from hlsgen.passes.quantization import MAX_ACCUMULATOR_BITS, column_meaning, too_wide, whole_zero, zero_shift


@dataclass(frozen=True)
class _Operand:
    """real = unit * (code * factor + offset)."""

    factor: int
    offset: int
    unit: float


def product(
    builder: GraphBuilder, name: str, op: TensorProduct, operands: Sequence[PendingValue], shape: Shape
) -> PendingValue:
    """Raises HG024, HG030, HG032, HG033, HG034."""
    first, second = (builder.to_codes(name, operand) for operand in operands)
    if isinstance(op, BatchMatMulInteger):
        sides = [_integer(name, t.value, zero) for t, zero in zip((first, second), op.zero_points, strict=True)]
        meaning: Accumulator | IntegerEncoding = IntegerEncoding("int32", np.zeros((1,) * len(shape), np.int64))
    else:
        sides = [_real(name, tensor.value) for tensor in (first, second)]
        unit = np.full(1, sides[0].unit * sides[1].unit)
        meaning = Accumulator(1, np.zeros(1, np.int64), unit)
    left, right = sides
    layer = MatrixProduct(
        name,
        (left.factor, right.factor),
        (left.offset, right.offset),
        (first.value, second.value),
        Value(shape, IntType(0, 0), meaning),
        (first.index, second.index),
    )
    type_ = layer.interval
    if max(abs(type_.lo), abs(type_.hi)) >= 1 << MAX_ACCUMULATOR_BITS:
        raise too_wide(name, max(abs(type_.lo), abs(type_.hi)).bit_length() + 1)
    return builder.add(replace(layer, result=replace(layer.result, type=type_)))


def _integer(name: str, value: Value, zero: int) -> _Operand:
    return _Operand(1, int(whole_zero(name, _alike(name, value))[0]) - zero, 1.0)


def _real(name: str, value: Value) -> _Operand:
    scales, zeros = column_meaning(name, _alike(name, value))
    shift = zero_shift(name, zeros[:1])
    return _Operand(1 << shift, -round(float(zeros[0]) * 2.0**shift), float(scales[0]) * 2.0**-shift)


def _alike(name: str, value: Value) -> Value:
    """The value with one meaning for all its codes. Raises HG034."""
    own = constants(value.encoding)
    if any((array != array.ravel()[0]).any() for array in own.values()):
        raise fail(
            "HG034", name, "the scale or zero point of an operand differs along an axis.", "Use one per tensor.",
        )  # fmt: skip
    one = {key: array.reshape(-1)[:1] for key, array in own.items()}
    return replace(value, encoding=with_constants(value.encoding, one))
