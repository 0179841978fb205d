"""Join plans that are proven by arithmetic, for operands whose float operations are all exact.

An operand is rounded nowhere if its every intermediate value is a number of its dtype. Then it is exactly slope * code
+ start. The sum or product of two such lines is rounded once, in the operation that joins them. So it is a function of
one integer, the weighted sum or the product of the codes. No pair of codes has to be evaluated, so this works for
operands of any width.

Example: 0.5 * a + 0.25 * b in float32, for codes of eight bits. Both products are exact. The slopes are 2 and 1 times
the unit 0.25, so the sum is (2 * a + b) * 0.25, rounded once: t = 2 * a + b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, IntegerEncoding, ThresholdCount
from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.evaluate import apply, constants, decode
from hlsgen.ir.ops import Activation, Add, BinaryKind, Cast, Dequantize, Div, Elementwise, Fma, Max, Min, Mul
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale.binary import factor_ratio

#: `product_to_float32` accepts scales of at most this many significant bits, and sums of at most this many bits.
_SCALE_BITS, _SUM_BITS = 48, 53
_FLOAT32 = np.dtype(np.float32)
#: A line, and the dtype that must represent it.
TypedAffine = tuple["AffineFunction", "np.dtype[Any]"]


@dataclass(frozen=True)
class AffineFunction:
    """The exact values slope * code + start for lo <= code <= hi."""

    slope: Fraction
    start: Fraction
    lo: int
    hi: int

    def times(self, factor: Fraction) -> AffineFunction:
        """All values, multiplied by `factor`."""
        return AffineFunction(self.slope * factor, self.start * factor, self.lo, self.hi)

    def plus(self, addend: Fraction) -> AffineFunction:
        """All values, with `addend` added."""
        return AffineFunction(self.slope, self.start + addend, self.lo, self.hi)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest value."""
        low, high = sorted((self.slope * self.lo + self.start, self.slope * self.hi + self.start))
        return low, high

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """True if `dtype` represents all values exactly. May return False although it does."""
        (low, high), units = self.ends, (self.slope.denominator, self.start.denominator)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return max(units) == 1 and info.min <= low and high <= info.max
        unit, largest, float_info = max(units), max(-low, high), np.finfo(dtype)
        if any(u & (u - 1) for u in units) or unit.bit_length() - 1 > float_info.nmant - int(float_info.minexp):
            return False
        return largest * unit <= 1 << (float_info.nmant + 1) and largest <= int(float_info.max)


def exact_line(source: Encoding, ops: tuple[Elementwise, ...], lo: int, hi: int) -> TypedAffine | None:
    """The line that a decoding and a chain compute for codes lo..hi, and its dtype, or None if any value is rounded.

    The constants belong to one set, shape (lead..., 1). An assertion compares the line at `lo` with `evaluate`.
    """
    all_constants = [value for stage in (source, *ops) for value in constants(stage).values()]
    if not all(np.isfinite(value).all() for value in all_constants):
        return None
    decoded = list(_decoded(source, AffineFunction(Fraction(1), Fraction(0), lo, hi)))
    if not decoded or not all(line.fits(dtype) for line, dtype in decoded):
        return None
    typed_line = decoded[-1]
    x = decode(source, np.full(1, lo))
    for op in ops:
        x = apply(op, x)
        typed_lines = list(_applied(op, *typed_line))
        if not typed_lines or not all(line.fits(dtype) for line, dtype in typed_lines):
            return None
        typed_line = typed_lines[-1]
        assert typed_line[1] == x.dtype
        assert typed_line[0].slope * lo + typed_line[0].start == Fraction(x[0].item())
    return typed_line


def _fraction(value: Any) -> Fraction:
    """A constant of one set as an exact fraction."""
    return Fraction(np.asarray(value).reshape(-1)[0].item())


def _decoded(source: Encoding, x: AffineFunction) -> Iterator[TypedAffine]:
    """Every value that a decoding computes, in order, the last one its result. Empty if the decoding is no line."""
    match source:
        case Affine(scale, zero):
            yield x, _FLOAT32
            yield x.plus(-_fraction(zero)), _FLOAT32
            yield x.plus(-_fraction(zero)).times(_fraction(scale)), _FLOAT32
        case ThresholdCount(scale_, bias):
            yield x, _FLOAT32
            scaled = x.times(_fraction(np.float32(scale_)))
            yield scaled, _FLOAT32
            yield scaled.plus(_fraction(np.float32(bias))), _FLOAT32
        case Accumulator(factor, offset, scale):
            yield x.times(Fraction(factor)).plus(_fraction(offset)).times(_fraction(scale)), _FLOAT32
        case Fixed(fraction):
            yield x.times(Fraction(1, 1 << fraction) if fraction >= 0 else Fraction(1 << -fraction)), _FLOAT32
        case IntegerEncoding(dtype, offset):
            yield x.plus(_fraction(offset)), np.dtype(dtype)


def _applied(op: Elementwise, x: AffineFunction, dtype: np.dtype[Any]) -> Iterator[TypedAffine]:
    """Every value that an operation computes from a line, in order. Empty if its result is no line."""
    match op:
        case Mul(value) if value.dtype == dtype:
            yield x.times(_fraction(value)), dtype
        case Add(value) if value.dtype == dtype:
            yield x.plus(_fraction(value)), dtype
        case Div(value) if value.dtype == dtype and dtype.kind == "f" and value.all():
            yield x.times(1 / _fraction(value)), dtype
        case Fma(factor, value):
            yield x.times(_fraction(factor)).plus(_fraction(value)), dtype
        case Cast(kind):
            yield x, np.dtype(kind)
        case Dequantize(scale, zero):
            yield x.plus(-_fraction(zero)), _FLOAT32
            yield x.plus(-_fraction(zero)).times(_fraction(scale)), _FLOAT32
            yield x.plus(-_fraction(zero)).times(_fraction(scale)), scale.dtype
        case Max(value) | Min(value) if value.dtype == dtype:
            low, high = x.ends
            if (_fraction(value) <= low) if isinstance(op, Max) else (_fraction(value) >= high):
                yield x, dtype


@dataclass(frozen=True, eq=False)
class AffineJoin:
    """One integer t of both codes, and `function`, the model's own operations on it.

    t = factors[0] * a + factors[1] * b, or, if `factors` is None, (a - zeros[0]) * (b - zeros[1]).
    """

    factors: tuple[int, int] | None
    zeros: tuple[int, int]
    function: StepFunction


def find(f: BinaryFunction) -> AffineJoin | str:
    """The join of a sum, difference or product of two exact lines; else the reason, as text, why there is none.

    All sets must have the same dtype and the same factors or zero points, as one module joins the streams of all.
    """
    if f.kind not in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL):
        return f"{f.kind.value} is no sum or product"
    if any(isinstance(op, Activation) and _tells_zeros_apart(op) for op in f.ops):
        return "a later operation distinguishes -0.0 from 0.0"
    pairs, dtypes = [], set()
    for s in range(f.sets):
        single_set = f.take(np.array([s]))
        lines = [
            exact_line(
                single_set.sources[i], single_set.branches[i], int(single_set.lo[i, 0]), int(single_set.hi[i, 0])
            )
            for i in (0, 1)
        ]
        if lines[0] is None or lines[1] is None:
            return f"operand {'ab'[lines[0] is not None]} is not linear in its code, or is rounded before the join"
        (a, first_dtype), (b, second_dtype) = lines[0], lines[1]
        if first_dtype != second_dtype or (first_dtype.kind == "f" and first_dtype != _FLOAT32):
            return f"operands of {first_dtype} and {second_dtype}"
        dtypes.add(first_dtype)
        pairs.append((a, b.times(Fraction(-1)) if f.kind == BinaryKind.SUB else b))
    (common_dtype,) = dtypes
    if f.kind == BinaryKind.MUL:
        return _product_join(f, pairs, common_dtype)
    return _sum_join(f, pairs, common_dtype)


def _tells_zeros_apart(op: Activation) -> bool:
    """True if it maps 0.0 and -0.0 to different values: the integer t = 0 represents both zeros."""
    plus, minus = apply(op, np.array([0.0, -0.0], np.float32))
    return bool(plus != minus)


def _sum_join(
    f: BinaryFunction, pairs: list[tuple[AffineFunction, AffineFunction]], dtype: np.dtype[Any]
) -> AffineJoin | str:
    """The join of a sum of lines.

    Floats are t times a unit, plus a constant that is a binary fraction of that unit.
    """
    first, second = pairs[0]
    if dtype.kind in "iu":
        if any((a.slope, b.slope) != (first.slope, second.slope) for a, b in pairs):
            return "the factors differ between channels"
        factors = int(first.slope), int(second.slope)
        source: Encoding = IntegerEncoding(dtype.name, np.array([int(a.start + b.start) for a, b in pairs]))
        return _join_of(f, factors, (0, 0), source, [_interval(factors, a, b) for a, b in pairs])
    if any(not a.slope or b.slope / a.slope != second.slope / first.slope for a, b in pairs):
        return "the ratio of the scales differs between channels"
    relation = second.slope / first.slope
    factors = relation.denominator, relation.numerator
    units = [a.slope / factors[0] for a, _ in pairs]
    starts = [(a.start + b.start) / unit for (a, b), unit in zip(pairs, units, strict=True)]
    denominator = max(start.denominator for start in starts)
    if denominator & (denominator - 1):
        return "a constant is no binary fraction of the unit"
    offsets = [int(start * denominator) for start in starts]
    intervals = [_interval(factors, a, b) for a, b in pairs]
    widest = max(abs(x) for low, high in intervals for x in (low, high)) * denominator + max(map(abs, offsets))
    if widest >> _SUM_BITS:
        return f"a sum of more than {_SUM_BITS} bits"
    return _scaled_join(f, factors, (0, 0), denominator, offsets, [unit / denominator for unit in units], intervals)


def _product_join(
    f: BinaryFunction, pairs: list[tuple[AffineFunction, AffineFunction]], dtype: np.dtype[Any]
) -> AffineJoin | str:
    """The join of a product of lines, which must have integer zero points: codes at which they are 0."""
    if any(not x.slope for pair in pairs for x in pair):
        return "an operand is constant"
    zeros = {tuple(-x.start / x.slope for x in pair) for pair in pairs}
    zero_pair = next(iter(zeros))
    if len(zeros) > 1 or any(zero.denominator != 1 for zero in zero_pair):
        return "no integer zero points of all channels"
    za, zb = (int(zero) for zero in zero_pair)
    units = [a.slope * b.slope for a, b in pairs]
    intervals = []
    for a, b in pairs:
        ends = [(x - za) * (y - zb) for x, y in product((a.lo, a.hi), (b.lo, b.hi))]
        intervals.append((min(ends), max(ends)))
    if dtype.kind in "iu":
        if any(unit != 1 for unit in units):
            return "an integer operand has a factor other than 1"
        source = IntegerEncoding(dtype.name, np.zeros(f.sets, np.int64))
        return _join_of(f, None, (za, zb), source, intervals)
    return _scaled_join(f, None, (za, zb), 1, [0] * f.sets, units, intervals)


def _interval(factors: tuple[int, int], a: AffineFunction, b: AffineFunction) -> tuple[int, int]:
    """The least and the greatest weighted sum of the codes of both lines."""
    ends = [sorted((factor * x.lo, factor * x.hi)) for factor, x in zip(factors, (a, b), strict=True)]
    return ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]


def _scaled_join(
    f: BinaryFunction,
    factors: tuple[int, int] | None,
    zeros: tuple[int, int],
    denominator: int,
    offsets: list[int],
    units: list[Fraction],
    intervals: list[tuple[int, int]],
) -> AffineJoin | str:
    """The join whose value is (t * denominator + offset) * unit, rounded once to float32; one offset and unit a set."""
    scale = np.array([float(unit) for unit in units])
    if not (np.abs(scale) > 2.0**-500).all() or any(
        Fraction(float(s)) != unit or unit.numerator >> _SCALE_BITS for s, unit in zip(scale, units, strict=True)
    ):
        return f"a scale of more than {_SCALE_BITS} bits"
    return _join_of(f, factors, zeros, Accumulator(denominator, np.array(offsets, np.int64), scale), intervals)


def _join_of(
    f: BinaryFunction,
    factors: tuple[int, int] | None,
    zeros: tuple[int, int],
    source: Encoding,
    intervals: list[tuple[int, int]],
) -> AffineJoin | str:
    """The join with t in `intervals`, one a set, decoded by `source`; text if its numbers are too large."""
    if max(abs(x) for x in (*(factors or ()), *zeros)) > factor_ratio.MAX_FACTOR:
        return f"a factor or zero point above {factor_ratio.MAX_FACTOR}"
    if max(abs(x) for ends in intervals for x in ends) >> _SUM_BITS:
        return f"a sum of more than {_SUM_BITS} bits"
    lo, hi = np.array(intervals, np.int64).T
    type_ = IntType(int(lo.min()), int(hi.max()))
    function = StepFunction(f.name, source, f.ops, f.quantizer, f.index, lo, hi, type_, f.output_type)
    return AffineJoin(factors, zeros, function)
