"""Facts about elementwise operations and quantizers: where each is monotone, where it wraps, its range.

This module is the only source of these facts. Rounding is monotone, and so is a float operation with a finite
constant. An operation can change its direction, or begin to give NaN, only at its turning points; an integer
operation also where it wraps. Between two turning points an operation is monotone, so its values at both ends
of an interval give its direction and its range there. Anything not known for certain counts as not monotone.

Facts hold for the function that `evaluate.apply` computes; facts about quantizers also for `evaluate.quantize`,
up to the sign of the scale. Facts are arrays that broadcast as the constants of the operation do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import ops
from hlsgen.ir.encoding import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.evaluate import UNCLAMPED, apply, code_type, decode, decoding
from hlsgen.numerics.activations import OF_INTEGERS, turning_points
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Smallest finite number of all float types, and infinity: turning points of operations that map infinities to NaN.
_LOWEST, _INF = float(np.finfo(np.float64).min), float("inf")
#: Minifloats of at most this many mantissa bits are monotone when rounded to nearest, see `_minifloat`.
_SAFE_MANTISSA = 16
#: Limit for int64 products that are estimated in float64.
_INT64 = 0.99 * 2.0**63


@dataclass(frozen=True, eq=False)
class Interval:
    """All numbers of one dtype from `low` to `high`, for each element; NaN is excluded.

    low, high: arrays of the dtype, of any shapes that broadcast to the tensor.
    """

    low: Array
    high: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.low.dtype


@dataclass(frozen=True, eq=False)
class Turns:
    """The turning points of an operation on an interval.

    For elements with `complete` (bool), the operation is monotone on each side of every point T, x < T and x >= T.
    On each side it gives NaN for all numbers or for none. Points are float64 arrays; NaN is no point.
    """

    complete: Array
    points: tuple[Array, ...] = ()

    def inside(self, x: Interval) -> Array:
        """True where a turning point lies after the first number of the interval."""
        has_point = np.zeros((), np.bool_)
        for point in self.points:
            has_point = has_point | ((x.low < point) & (x.high >= point))
        return has_point


@dataclass(frozen=True, eq=False)
class Direction:
    """Monotonicity as bool arrays. If both are true, the function is constant.

    If neither is true, it turns, maps a number to NaN, wraps, or nothing is known.
    """

    never_falls: Array
    never_rises: Array

    @property
    def monotone(self) -> Array:
        return self.never_falls | self.never_rises

    def then(self, second: Direction) -> Direction:
        """The direction of this function followed by another one."""
        rising = (self.never_falls & second.never_falls) | (self.never_rises & second.never_rises)
        falling = (self.never_falls & second.never_rises) | (self.never_rises & second.never_falls)
        return Direction(rising, falling)


# --------------------------------------------------------------------------- questions


def all_numbers(dtype: Any) -> Interval:
    """All numbers of a dtype, including the infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return Interval(np.asarray(-np.inf, dtype), np.asarray(np.inf, dtype))
    if dtype.kind == "b":
        return Interval(np.asarray(False), np.asarray(True))
    info = np.iinfo(dtype)
    return Interval(np.asarray(info.min, dtype), np.asarray(info.max, dtype))


def direction(op: ops.Elementwise, x: Interval) -> Direction:
    """The direction of an operation on an interval."""
    turns = turning(op, x)
    low, high = (apply(op, np.atleast_1d(end)) for end in (x.low, x.high))
    certain = (
        turns.complete & ~turns.inside(x) & ~np.isnan(low) & ~np.isnan(high) & ~(distinguishes_zeros(op) & _has_zero(x))
    )
    return Direction(certain & (low <= high), certain & (low >= high))


def range_of(op: ops.Elementwise, x: Interval) -> Interval:
    """An interval that contains all results for numbers of `x`, also where the operation wraps or turns."""
    turns = turning(op, x)
    values = [apply(op, np.atleast_1d(end)) for end in (x.low, x.high)]
    for point in turns.points:
        values += [apply(op, np.atleast_1d(np.clip(number, x.low, x.high))) for number in _neighbours(point, x.dtype)]
    certain = turns.complete & ~(distinguishes_zeros(op) & _has_zero(x))
    for value in values:
        certain = certain & ~np.isnan(value)
    fallback = (
        decoded_interval(decoding(op), code_type(op))
        if isinstance(op, ops.QUANTIZERS)
        else all_numbers(values[0].dtype)
    )
    low, high = values[0], values[0]
    for value in values[1:]:
        low, high = np.minimum(low, value), np.maximum(high, value)
    return Interval(np.where(certain, low, fallback.low), np.where(certain, high, fallback.high))


def chain_direction(operations: Sequence[ops.Elementwise], x: Interval) -> Direction:
    """The direction of a chain of operations."""
    chain = Direction(np.asarray(True), np.asarray(False))
    for op in operations:
        chain = chain.then(direction(op, x))
        x = range_of(op, x)
    return chain


def wrapping_sum(op: ops.Elementwise, dtype: np.dtype[Any]) -> tuple[Array, np.dtype[Any]] | None:
    """(c, integer dtype) if the operation computes x + c modulo 2^bits on numbers of `dtype`; else None."""
    match op:
        case ops.Add(value) if (result := np.result_type(dtype, value.dtype)).kind in "iu":
            return value, result
        case ops.Cast(kind) if dtype.kind in "iub" and np.dtype(kind).kind in "iu":
            return np.zeros(1, np.int64), np.dtype(kind)
        case _:
            return None


def distinguishes_zeros(op: ops.Elementwise) -> bool:
    """True if the operation can give different numbers for -0.0 and +0.0, which are equal."""
    match op:
        case ops.Activation("Reciprocal"):
            return True
        case ops.Activation("Pow", alpha):
            return alpha < 0
        case ops.BinaryOf(ops.BinaryKind.DIV):
            return True
        case ops.BinaryOf(_, chains) | ops.Where(chains):
            return any(distinguishes_zeros(inner) for chain in chains for inner in chain)
        case _:
            return False


def decoded_interval(meaning: Encoding, type_: IntType) -> Interval:
    """All numbers that codes of a type can represent, without NaN."""
    ends, certain = _decoded_ends(meaning, type_)
    fallback = all_numbers(ends[0].dtype)
    low, high = (
        np.where(certain, end(*ends), fallback_end)
        for end, fallback_end in ((np.minimum, fallback.low), (np.maximum, fallback.high))
    )
    return Interval(low, high)


def decoding_direction(meaning: Encoding, type_: IntType) -> Direction:
    """The direction in which the represented numbers change as the codes of a type increase."""
    (low, high), certain = _decoded_ends(meaning, type_)
    return Direction(certain & (low <= high), certain & (low >= high))


# --------------------------------------------------------------------------- the table


def turning(op: ops.Elementwise, x: Interval) -> Turns:
    """The turning points of an operation on an interval: the facts of all operations."""
    match op:
        case ops.Mul(value) | ops.Add(value):
            return _arithmetic(op, value, x)
        case ops.Fma(factor, value):
            return _product(factor, np.isfinite(value))
        case ops.Div(value):
            return Turns(np.isfinite(value) & (value != 0) if value.dtype.kind == "f" else _never(value))
        case ops.Max(value) | ops.Min(value):
            return Turns(_always(value))
        case ops.Slope(value):
            if value.dtype.kind != "f":
                return Turns(_never(value))
            # Slope 0 turns at the lowest number: 0 * -inf is NaN.
            return Turns(np.isfinite(value), _points((value == 0, _LOWEST), (value < 0, 0.0)))
        case ops.Cast(parameter):
            return Turns(_cast(np.dtype(parameter), x))
        case ops.Dequantize(scale, zero_point):
            return Turns(np.isfinite(scale) & _difference_fits(x, zero_point))
        case ops.Activation():
            return _activation(op, x)
        case ops.Compare(parameter, value):
            monotone = (
                parameter is not ops.Relation.EQUAL or x.dtype.kind == "b"
            )  # any function of two values is monotone
            return Turns(_always(value) if monotone else _never(value))
        case ops.Constant(value):
            return Turns(_always(value))
        case ops.Lookup(values):  # all steps rise or all fall; a step next to NaN does neither
            steps = [values[1:] >= values[:-1], values[1:] <= values[:-1]]
            return Turns(np.asarray(steps[0].all(axis=0) | steps[1].all(axis=0)))
        case ops.IntQuant(scale, zero_point, type_, _):
            return Turns(_divides(scale) & np.isfinite(zero_point) & _holds(type_, x.dtype, scale, zero_point))
        case ops.SignedBit(scale, zero_point):
            return Turns(_divides(scale) & np.isfinite(zero_point))
        case ops.Bipolar(scale, divisor):
            return Turns(_divides(divisor) & np.isfinite(scale))
        case ops.Trunc(scale, zero_point, divisor, out_zero_point, out_scale, clamp_type, _):
            finite = np.isfinite(zero_point) & np.isfinite(out_zero_point) & np.isfinite(out_scale)
            finite_parts = _divides(scale) & _divides(divisor) & finite
            return Turns(finite_parts & _holds(clamp_type or UNCLAMPED, x.dtype, scale, zero_point, divisor))
        case ops.MultiThreshold(thresholds, scale_, bias):
            decodes = bool(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
            return Turns(np.full(thresholds.shape[1:], decodes))
        case ops.QuantizeLinear(scale, zero_point, type_, dtype, _):
            return Turns(_divides(scale) & (np.abs(zero_point) < 1 << 62) & _keeps_values(type_, dtype))
        case ops.Requantize():
            return Turns(_requantize(op, x) & _keeps_values(op.type, op.dtype))
        case ops.FloatQuant():
            return Turns(_divides(op.scale) & _minifloat(op, x.dtype))
        case ops.IntegerRatio():
            return Turns(_integer_ratio(op, x) & _keeps_values(op.type, op.dtype))
        case _:  # "nothing is known" is true for any function
            return Turns(np.asarray(False))


def _arithmetic(op: ops.Mul | ops.Add, value: Array, x: Interval) -> Turns:
    """Floats turn nowhere with a finite constant, integers where they do not wrap."""
    dtype = np.result_type(x.dtype, value.dtype)
    if dtype.kind == "b":
        return Turns(_always(value))
    if dtype.kind == "f":
        return _product(value) if isinstance(op, ops.Mul) else Turns(np.isfinite(value))
    exact_value = _exact(value)
    ends = [_exact(x.low) * exact_value, _exact(x.high) * exact_value]
    if isinstance(op, ops.Add):
        ends = [_exact(x.low) + exact_value, _exact(x.high) + exact_value]
    return Turns(_fits(ends[0], dtype) & _fits(ends[1], dtype))


def _product(factor: Array, is_finite: Array | bool = True) -> Turns:
    """Turning points of x * factor: 0 times infinity is NaN."""
    return Turns(np.isfinite(factor) & is_finite, _points((factor == 0, _LOWEST), (factor == 0, _INF)))


def _cast(to: np.dtype[Any], x: Interval) -> Array:
    """True if a cast is monotone: to floats it rounds; an integer wraps outside the range of `to`.

    Casts of floats to integers are described by `QuantizeLinear`.
    """
    if to.kind == "f" or to == x.dtype:
        return np.asarray(True)
    if to.kind in "iu" and x.dtype.kind in "iub":
        return _fits(_exact(x.low), to) & _fits(_exact(x.high), to)
    return np.asarray(False)


def _activation(op: ops.Activation, x: Interval) -> Turns:
    if not np.isfinite([op.alpha, op.beta]).all():
        return Turns(np.asarray(False))
    if x.dtype.kind == "f":
        points = turning_points(op.kind, op.alpha, op.beta, x.dtype)
        return Turns(np.asarray(points is not None), tuple(np.asarray(p, np.float64) for p in points or ()))
    if x.dtype.kind not in "iu" or op.kind not in OF_INTEGERS:
        return Turns(np.asarray(False))
    if op.kind == "Sign" or (op.kind == "Abs" and x.dtype.kind == "u"):
        return Turns(np.asarray(True))
    assert op.kind == "Abs", f"{op.kind} of integers has no facts"
    # The lowest integer has no opposite. Float64 cannot distinguish the lowest 64-bit integer from its neighbour.
    lowest = np.iinfo(x.dtype).min
    points = (lowest + 1.0, 0.0) if x.dtype.itemsize <= 4 else (0.0,)
    return Turns((x.low > lowest) | (len(points) == 2), tuple(np.asarray(p) for p in points))


def _requantize(op: ops.Requantize, x: Interval) -> Array:
    """True where the result is monotone, which needs int64 to hold all products.

    The sign of the multiplier gives the direction.
    """
    largest = np.maximum(np.abs(x.low.astype(np.float64)), np.abs(x.high.astype(np.float64))) + 1
    factor, add, zero_point = (np.abs(part.astype(np.float64)) for part in (op.multiplier, op.add, op.zero_point))
    fits = (op.shift >= 0) & (op.shift <= 62)
    if op.convention is ops.Convention.FLOAT64:
        return _rescaled_in_float64(op, largest + add, zero_point)
    if op.convention is ops.Convention.DOUBLE:
        left_shifted = (largest + add) * 2.0 ** np.clip(31 - op.shift, 0, 62)
        return np.asarray(fits & (left_shifted < _INT64) & (factor <= 2.0**31) & (zero_point < 2.0**60))
    half = 2.0 ** np.clip(op.shift, 0, 62)
    return np.asarray(fits & (largest * factor + add + half + zero_point < _INT64))


def _rescaled_in_float64(op: ops.Requantize, largest: Array, zero_point: Array) -> Array:
    """True where float64 rounding is monotone and the product is an int64: every rounding of a product is monotone."""
    product = largest * np.ldexp(np.abs(op.multiplier.astype(np.float64)), -op.shift)
    fits = (largest < _INT64) & (product + zero_point < 2.0**60) & (op.shift >= 0)
    return np.asarray(fits & (np.abs(op.multiplier) < 1 << 53))


def _integer_ratio(op: ops.IntegerRatio, x: Interval) -> Array:
    """True where the result is monotone: int64 holds all products and nothing wraps.

    The sign of the multiplier gives the direction.
    """
    largest = np.maximum(np.abs(x.low.astype(np.float64)), np.abs(x.high.astype(np.float64))) + 1
    fits = largest * np.abs(op.multiplier.astype(np.float64)) + np.abs(op.add.astype(np.float64)) < _INT64
    keeps_order_at_zero = op.add >= 0 if op.mirrored else True  # otherwise the result jumps back at 0
    return np.asarray(fits & (op.divisor > 0) & keeps_order_at_zero & (not op.wraps))


def _minifloat(op: ops.FloatQuant, dtype: np.dtype[Any]) -> Array:
    """True if a minifloat never turns.

    A number just below 2^k may have the step of the binade above, see `evaluate.minifloat_exponent`. Its
    distance to 2^k is then below 2^(k - 17). The logarithm is k - d, and d is at most half a unit in
    the last place of |k| < 2^8 (2^11 in float64). Nearest rounding to 16 bits or fewer gives 2^k for it.
    Rounding away from zero is safe with any steps: a coarse grid is part of the fine one. Rounding
    towards zero gives 2^k - 2^(k - mantissa) there, which is a fall.
    """
    nearest = op.mode in (Rounding.ROUND, Rounding.HALF_UP, Rounding.HALF_DOWN) and op.mantissa <= _SAFE_MANTISSA
    info = np.finfo(np.result_type(dtype, op.scale.dtype))
    representable = 2.0**op.step >= float(info.smallest_subnormal) and op.largest <= float(info.max)
    has_range = info.dtype.itemsize >= 4
    return np.asarray((nearest or op.mode is Rounding.UP) and representable and has_range)


# --------------------------------------------------------------------------- helpers


def _always(value: Array) -> Array:
    return np.ones(value.shape, np.bool_)


def _never(value: Array) -> Array:
    return np.zeros(value.shape, np.bool_)


def _points(*pairs: tuple[Array, float]) -> tuple[Array, ...]:
    """Turning points, NaN for the elements whose condition is false."""
    return tuple(np.where(condition, point, np.nan) for condition, point in pairs if condition.any())


def _divides(scale: Array) -> Array:
    """True where x / scale is monotone and maps no infinity to NaN."""
    return np.asarray(np.isfinite(scale) & (scale != 0))


def _holds(type_: IntType, dtype: np.dtype[Any], *constants: Array) -> bool:
    """True if the bounds of a type are finite in the dtype that computes x / scale; in float16 they may not be."""
    largest = float(np.finfo(np.result_type(dtype, *(np.asarray(c).dtype for c in constants))).max)
    return max(abs(type_.lo), abs(type_.hi)) + 1 <= largest


def integers_of(dtype: Any) -> IntType:
    """The consecutive integers that a dtype represents: all of an integer dtype, up to 2^p of a float dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        limit = 2 << np.finfo(dtype).nmant
        return IntType(-limit, limit)
    return IntType(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _keeps_values(type_: IntType, dtype: str) -> bool:
    """True if codes of that type keep their values as numbers of a dtype."""
    representable = integers_of(dtype)
    return representable.lo <= type_.lo and type_.hi <= representable.hi


def _exact(values: Array) -> Array:
    """Integers whose sums and products with each other do not wrap."""
    return np.asarray(values).astype(object if np.asarray(values).dtype.itemsize > 4 else np.int64)


def _fits(values: Array, dtype: np.dtype[Any]) -> Array:
    representable = integers_of(dtype)
    return np.asarray((values >= representable.lo) & (values <= representable.hi)).astype(np.bool_)


def _difference_fits(x: Interval, zero_point: Array) -> Array:
    """True where x - zero_point is computed in int64 without wrapping."""
    if x.dtype.kind not in "iub":
        return np.asarray(False)
    ends = [_exact(end) for end in (x.low, x.high)]
    fits = np.asarray(True)
    for end in ends:
        fits = fits & _fits(end, np.dtype(np.int64)) & _fits(end - zero_point.astype(object), np.dtype(np.int64))
    return fits


def _has_zero(x: Interval) -> Array:
    return np.asarray((x.low <= 0) & (x.high >= 0)) if x.dtype.kind == "f" else np.asarray(False)


def _neighbours(point: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The last number of a dtype below a point, and the first one not below it; both 0 if the point is NaN."""
    finite = np.nan_to_num(point, nan=0.0, posinf=_INF, neginf=-_INF)
    if dtype.kind != "f":
        first = np.ceil(np.clip(finite, -(2.0**53), 2.0**53)).astype(np.int64)
        info = np.iinfo(dtype)
        return np.clip(first - 1, info.min, info.max).astype(dtype), np.clip(first, info.min, info.max).astype(dtype)
    with np.errstate(all="ignore"):
        rounded = finite.astype(dtype)
        above = np.where(rounded.astype(np.float64) >= finite, rounded, np.nextafter(rounded, dtype.type(np.inf)))
        return np.nextafter(above, dtype.type(-np.inf)), above


def _decoded_ends(meaning: Encoding, type_: IntType) -> tuple[tuple[Array, Array], Array]:
    """The numbers of the least and the greatest code, and where the decoding is known to be monotone between them."""
    low, high = (decode(meaning, np.asarray(code, np.int64)) for code in (type_.lo, type_.hi))
    certain = np.asarray(True)
    match meaning:
        case Affine(scale, zero_point):
            certain = np.isfinite(scale) & np.isfinite(zero_point)
        case ThresholdCount(scale_, bias):
            certain = np.asarray(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
        case Accumulator(_, _, scale):
            certain = np.isfinite(scale)
        case IntegerEncoding(dtype, offset):
            certain = _fits(type_.lo + offset, np.dtype(dtype)) & _fits(type_.hi + offset, np.dtype(dtype))
        case FloatKey():
            low, high = all_numbers(np.float32).low, all_numbers(np.float32).high
        case Fixed():
            pass
        case _:
            assert_never(meaning)
    return (low, high), np.asarray(certain)
