"""Adds tensors exactly and rounds once, as a linear layer does.

Matched: additions and subtractions of tensors of codes that lie on one grid. Also, if no quantizer is between the
additions, sums of three tensors or more, each of them codes times one scale, with float32 constants added.
Produced: sums of integers, two operands in a layer, and an `Affine` or `Accumulator` as the encoding of the last sum.
Every scale is a binary fraction. Hence all scales are whole multiples of one unit, and the sum is an integer in that
unit. The numeric contract defines the value of such a chain as this exact sum, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hlsgen.ir import Accumulator, Affine, BinaryMap, Encoding, Fixed, IntegerEncoding, Shape, Value
from hlsgen.ir.ops import Add, BinaryKind, Dequantize, Elementwise, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array, IntType

#: Largest numbers of bits of a factor, of the sum, of the sum with its offset, and of the unit.
_FACTOR_BITS, _SUM_BITS, _FINE_BITS, _UNIT_BITS = 22, 24, 52, 48
#: Tensors are on one grid if every scale is at most this multiple of their unit (`unit_of`).
MAX_MULTIPLE = 256
#: Integers up to this bound are exact in float32.
_EXACT = 1 << 24


@dataclass(frozen=True, eq=False)
class Term:
    """slope * code + start of value `index`; start broadcasts to the tensor, Fractions.

    `plain`: the encoding of the codes has these numbers itself; no constants were added.
    """

    index: int
    value: Value
    slope: Fraction
    start: Array
    plain: bool

    def negative(self) -> Term:
        return replace(self, slope=-self.slope, start=-self.start)


def on_one_grid(terms: Sequence[Term]) -> bool:
    """True if all scales are small whole multiples of one unit."""
    return max(abs(t.slope) for t in terms) <= MAX_MULTIPLE * unit_of(terms)


def has_common_unit(terms: Sequence[Term]) -> bool:
    """True if all scales are whole multiples of one unit, of at most 22 bits. Else the sum is computed in float32."""
    unit = unit_of(terms)
    return max(int(abs(t.slope) / unit).bit_length() for t in terms) <= _FACTOR_BITS


def is_exact_in_float32(terms: Sequence[Term]) -> bool:
    """True if float32 computes the sum without rounding, in any order."""
    summands = [v for t in terms for v in (t.slope, *t.start.ravel())]
    finest = Fraction(1, max(v.denominator for v in summands))
    largest = sum(
        max(abs(t.slope * code) for code in (t.value.type.lo, t.value.type.hi)) + max(map(abs, t.start.ravel()))
        for t in terms
    )
    return bool(largest <= finest * _EXACT)


def term(index: int, value: Value, ops: Sequence[Elementwise]) -> Term | None:
    """The term of codes and constants added to them.

    Returns None for anything else, or if scales differ within the tensor.
    """
    first_op = ops[0] if ops else None
    if isinstance(first_op, Dequantize) and first_op.scale.dtype == np.float32:
        line, ops = _dequantized(value, first_op), ops[1:]
    else:
        line = _line(value.encoding)
    if line is None:
        return None
    slopes, start = line
    slope = np.unique(slopes)
    if len(slope) > 1 or not slope[0] or not all(isinstance(op, Add) and op.value.dtype == np.float32 for op in ops):
        return None
    for op in ops:
        assert isinstance(op, Add)
        start = start + _fractions(op.value)
    return Term(index, value, Fraction(slope[0]), np.asarray(start), not ops)


def _dequantized(value: Value, op: Dequantize) -> tuple[Array, Array] | None:
    """(slope, start) of integers after a DequantizeLinear, Fractions, or None if they may wrap."""
    meaning = value.encoding
    if not isinstance(meaning, IntegerEncoding):
        return None
    info, offset = np.iinfo(meaning.dtype), meaning.offset
    if value.type.lo + int(offset.min()) < info.min or value.type.hi + int(offset.max()) > info.max:
        return None
    slope = _fractions(op.scale)
    return slope, _fractions(offset - op.zero_point) * slope


def _line(meaning: Encoding) -> tuple[Array, Array] | None:
    """(slope, start) of codes, Fractions, or None if the encoding has no such form."""
    match meaning:
        case Affine(scale, zero_point):
            slope = _fractions(scale)
            return slope, -_fractions(zero_point) * slope
        case Accumulator(factor, offset, scale):
            unit = _fractions(scale)
            return unit * factor, _fractions(offset) * unit
        case Fixed(fraction):
            return _fractions(np.asarray(2.0**-fraction)), _fractions(np.zeros(1))
        case _:
            return None


def _fractions(values: Array) -> Array:
    """The same numbers as Fractions."""
    flat = [Fraction(v) for v in np.asarray(values).ravel().tolist()]
    fractions = np.empty(len(flat), object)
    fractions[:] = flat
    return fractions.reshape(np.shape(values) or (1,))


def exact_sum(
    name: str, terms: Sequence[Term], shape: Shape, add: Callable[[BinaryMap], tuple[int, Value]]
) -> tuple[int, Value] | None:
    """The sum of two or more tensors as an integer with an encoding, or None if it is too wide.

    `add` adds a layer to the graph.
    """
    unit = unit_of(terms)
    factors = [int(t.slope / unit) for t in terms]
    start = np.asarray(sum((t.start for t in terms), start=_fractions(np.zeros((1,) * len(shape)))) / unit)
    fine_steps = math.lcm(*(v.denominator for v in start.ravel()))
    types = list(_partial_sum_types(factors, [t.value.type for t in terms]))
    widest = max(abs(x) for type_ in types for x in (type_.lo, type_.hi))
    offset = start * fine_steps
    scale = unit / fine_steps
    if (
        not has_common_unit(terms)
        or widest.bit_length() > _SUM_BITS
        or (widest * fine_steps + max(abs(int(v)) for v in offset.ravel())).bit_length() > _FINE_BITS
        or scale.numerator.bit_length() > _UNIT_BITS
        or Fraction(float(scale)) != scale
    ):
        return None
    index, value = terms[0].index, terms[0].value
    factor = factors[0]
    for number, (next_term, next_factor, type_) in enumerate(zip(terms[1:], factors[1:], types, strict=True)):
        is_last = number == len(terms) - 2
        layer = _merge(
            name if is_last else f"{name} (sum {number + 1})",
            (value, next_term.value),
            (factor, next_factor),
            type_,
            shape,
        )
        index, value = add(replace(layer, inputs=(index, next_term.index)))
        factor = 1
    integer_offset = np.frompyfunc(int, 1, 1)(offset).astype(np.int64)
    return index, replace(value, encoding=_sum_encoding(fine_steps, integer_offset, scale, value.type, len(shape)))


def _sum_encoding(fine_steps: int, offset: Array, scale: Fraction, type_: IntType, rank: int) -> Encoding:
    """The encoding (sum * fine_steps + offset) * scale.

    An `Affine` if float32 represents all its values, else an `Accumulator`.
    """
    single = np.float32(float(scale))
    largest = max(abs(type_.lo), abs(type_.hi)) + int(np.abs(offset).max())
    if fine_steps == 1 and Fraction(float(single)) == scale and largest <= _EXACT:
        return Affine(np.full((1,) * rank, single), -offset.astype(np.float32))
    return Accumulator(fine_steps, offset, np.full((1,) * rank, float(scale)))


def unit_of(terms: Sequence[Term]) -> Fraction:
    """The largest number of which all scales are whole multiples."""
    denominator = math.lcm(*(t.slope.denominator for t in terms))
    return Fraction(math.gcd(*(int(t.slope * denominator) for t in terms)), denominator)


def _partial_sum_types(factors: list[int], types: list[IntType]) -> Iterator[IntType]:
    """The interval of each partial sum."""
    low = high = 0
    for number, (factor, type_) in enumerate(zip(factors, types, strict=True)):
        bounds = sorted((factor * type_.lo, factor * type_.hi))
        low, high = low + bounds[0], high + bounds[1]
        if number:
            yield IntType(low, high)


def _merge(name: str, values: tuple[Value, Value], factors: tuple[int, int], type_: IntType, shape: Shape) -> BinaryMap:
    """values[0] * factors[0] + values[1] * factors[1], as integers."""
    rank = (1,) * len(shape)
    dtype = "int64"
    zero = np.zeros(rank, np.int64)
    sources = tuple(replace(v, encoding=IntegerEncoding(dtype, zero)) for v in values)
    branch_a, branch_b = ((Mul(np.full(rank, f, np.int64)),) if f != 1 else () for f in factors)
    quantizer = QuantizeLinear(np.ones(rank, np.float32), zero, type_, dtype)
    result = Value(shape, type_, IntegerEncoding(dtype, zero))
    return BinaryMap(
        name, BinaryKind.ADD, (branch_a, branch_b), (), quantizer, (sources[0], sources[1]), result, (0, 0)
    )
