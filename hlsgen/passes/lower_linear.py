"""Lowers linear layers to exact integer sums.

real = scale * (code - zero point) for every element of the input. Hence the sum of products is an integer sum of
weights and codes, plus an integer for each row, times a scale for each row. The result's `Accumulator` holds both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import Accumulator, IntegerEncoding, Linear, MatMul, MatMulInteger, Shape, Value
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import MAX_ACCUMULATOR_BITS, column_scales, integer_offset, too_wide, zero_shift


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows of integer weights on codes, with the sums' encoding and reachable intervals.

    weight int64 (rows, columns); lo, hi int64 (rows,). `binary`: weights are 0/1 and equal bits are counted.
    """

    weight: Array
    binary: bool
    encoding: Accumulator | IntegerEncoding
    lo: Array
    hi: Array

    @property
    def type(self) -> IntType:
        return IntType(int(self.lo.min()), int(self.hi.max()))


def linear(builder: GraphBuilder, name: str, op: MatMul, tensor: PendingValue, shape: Shape) -> PendingValue:
    """Add a layer of real weights; its input is codes with a scale and zero point."""
    scale, zero_point = column_scales(name, tensor.value)
    sums = real_sums(name, tensor.value, op.weight, op.scale, scale[None], zero_point[None])
    return _add_linear(builder, name, sums, tensor, shape)


def linear_integer(
    builder: GraphBuilder, name: str, op: MatMulInteger, tensor: PendingValue, shape: Shape
) -> PendingValue:
    """Add a layer of integer weights; its input is codes of integers."""
    zero_point = op.zero_point - integer_offset(name, tensor.value)
    sums = integer_sums(name, tensor.value, op.weight, zero_point[None], op.dtype)
    return _add_linear(builder, name, sums, tensor, shape)


def _add_linear(builder: GraphBuilder, name: str, sums: Sums, tensor: PendingValue, shape: Shape) -> PendingValue:
    result = Value(shape, sums.type, sums.encoding)
    return builder.add(Linear(name, sums.weight, sums.binary, tensor.value, result, sums.lo, sums.hi, (tensor.index,)))


def real_sums(name: str, value: Value, weight: Array, scales: Array, scale: Array, zero_point: Array) -> Sums:
    """Sums of real weights weight * scales (rows,) times codes of real value scale * (code - zero_point).

    `scale`, `zero_point` float64 (rows or 1, columns). Raises HG024, HG033, HG034.
    """
    shift = zero_shift(name, zero_point)
    ratio, unit = _common_units(name, scale)
    source, columns = value.type, weight.shape[1]
    code_bound = max(abs(source.lo), abs(source.hi), float(np.abs(zero_point).max())) * 2.0**shift
    bound_estimate = float(np.abs(weight).max()) * float(ratio.max()) * code_bound * columns
    if bound_estimate >= 2.0 ** (MAX_ACCUMULATOR_BITS + 8):
        raise too_wide(name, int(np.log2(bound_estimate)) + 2)
    weight = weight * ratio.astype(np.int64)
    offset = -(weight * np.round(zero_point * 2.0**shift).astype(np.int64)).sum(axis=1)
    real_scale = unit * 2.0**-shift * scales.astype(np.float64)
    binary = source == IntType(0, 1) and bool((zero_point == 0.5).all()) and bool((np.abs(weight) == 1).all())
    if binary:
        encoding = Accumulator(2, np.full(len(weight), -columns), real_scale)
        weight = (weight > 0).astype(np.int64)
        lo, hi = np.zeros(len(weight), np.int64), np.full(len(weight), columns)
    else:
        lo, hi = _interval(weight, source)
        encoding = Accumulator(1 << shift, offset, real_scale)
    bound = max(abs(int(x)) for x in (lo.min(), hi.max())) * encoding.factor + int(np.abs(encoding.offset).max())
    if bound >= 1 << MAX_ACCUMULATOR_BITS:
        raise too_wide(name, bound.bit_length() + 1)
    return Sums(weight, binary, encoding, lo, hi)


def _common_units(name: str, scale: Array) -> tuple[Array, Array]:
    """Scales (rows or 1, columns) as whole multiples, float64, of one unit for each row: float64 (rows or 1,).

    Raises HG034.
    """
    unit = scale.min(axis=1, keepdims=True)
    ratio = scale / unit
    for row in np.flatnonzero(((ratio != np.round(ratio)) | (ratio > 1 << 16)).any(axis=1)):
        ratio[row], unit[row] = _common_unit(name, scale[row])
    return ratio, unit[:, 0]


def _common_unit(name: str, scale: Array) -> tuple[Array, float]:
    """Scales as whole multiples of one unit, for an input from several quantizers. Raises HG034.

    Every float32 is a whole multiple of a power of two. The common factor of these multiples belongs to the unit.
    """
    mantissa, exponent = np.frexp(scale)
    least_exponent = int(exponent.min())
    multiples = [
        int(m * 2.0**24) << int(e - least_exponent) for m, e in zip(mantissa.ravel(), exponent.ravel(), strict=True)
    ]
    factor = int(np.gcd.reduce(np.array(multiples, object)))
    ratio = np.array([w // factor for w in multiples], object).reshape(scale.shape)
    if max(ratio.ravel()) >= 1 << 32 or factor >= 1 << 53:
        raise fail("HG034", name, "the input's scale differs along the summed axis.", "Use one scale per tensor.")
    return ratio.astype(np.float64), float(np.ldexp(float(factor), least_exponent - 24))


def integer_sums(name: str, value: Value, weight: Array, zero_point: Array, dtype: str) -> Sums:
    """Sums in `dtype` of weights times codes - zero_point; the zero points contribute a constant to each row.

    `zero_point` int64 (rows or 1, columns or 1). Raises HG033.
    """
    lo, hi = _interval(weight, value.type)
    bits = max(abs(int(lo.min())), abs(int(hi.max()))).bit_length() + 1
    if bits > MAX_ACCUMULATOR_BITS:
        raise too_wide(name, bits)
    offset = -(weight * zero_point).sum(axis=1)
    return Sums(weight, False, IntegerEncoding(dtype, offset), lo, hi)


def _interval(weight: Array, source: IntType) -> tuple[Array, Array]:
    products = weight * source.lo, weight * source.hi
    return np.minimum(*products).sum(axis=1), np.maximum(*products).sum(axis=1)
