"""What is known of each elementwise operation and quantizer: where it is monotone, where it wraps, its range.

This is the one place that says so. Rounding is monotone, and so is a float operation with a finite constant.
An operation can change its direction, or begin to give NaN, only at its turning points; an integer operation
also where it wraps. Between two turning points an operation is monotone, so its values at both ends of an
interval give its direction and its range there. What is not known for certain counts as not monotone.

Facts hold for the function that `semantics.apply` computes; those of quantizers also for `semantics.quantize`,
up to the sign of the scale. Facts are arrays that broadcast as the constants of the operation do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.encoding import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.evaluate import UNCLAMPED, apply, code_type, decode, decoding
from hlsgen.ir.ops import (
    QUANTIZERS,
    Activation,
    Add,
    BinaryKind,
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Convention,
    Dequantize,
    Div,
    Elementwise,
    FloatQuant,
    Fma,
    IntegerRatio,
    IntQuant,
    Lookup,
    Max,
    Min,
    Mul,
    MultiThreshold,
    QuantizeLinear,
    Relation,
    Requantize,
    SignedBit,
    Slope,
    Trunc,
    Where,
)
from hlsgen.numerics.activations import OF_INTEGERS, turning_points
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Smallest finite number of all float types, and infinity: turning points of what makes NaN of infinities.
_LOWEST, _INF = float(np.finfo(np.float64).min), float("inf")
#: Minifloats of at most so many mantissa bits are monotone when rounded to nearest, see `_minifloat`.
_SAFE_MANTISSA = 16
#: Products in int64 that are estimated in float64 stay below.
_INT64 = 0.99 * 2.0**63


@dataclass(frozen=True, eq=False)
class Interval:
    """All numbers of one dtype from `low` to `high`, element by element; NaN is not one of them.

    low, high: arrays of the dtype, of any shapes that broadcast to the tensor.
    """

    low: Array
    high: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.low.dtype


@dataclass(frozen=True, eq=False)
class Turns:
    """Where an operation on an interval can change its direction.

    Where `known` (bool), the operation is monotone on each side of every point T, x < T and x >= T, and
    gives NaN on all of a side or nowhere on it. Points are float64 arrays; NaN is no point.
    """

    known: Array
    points: tuple[Array, ...] = ()

    def inside(self, x: Interval) -> Array:
        """Whether there is a point behind the first number of an interval."""
        found = np.zeros((), np.bool_)
        for point in self.points:
            found = found | ((x.low < point) & (x.high >= point))
        return found


@dataclass(frozen=True, eq=False)
class Direction:
    """bool arrays. If both are true, it is constant. If neither is: it turns, makes NaN of a number, wraps, or nothing is known."""

    never_falls: Array
    never_rises: Array

    @property
    def monotone(self) -> Array:
        return self.never_falls | self.never_rises

    def then(self, other: Direction) -> Direction:
        """The direction of this function followed by another one."""
        same = (self.never_falls & other.never_falls) | (self.never_rises & other.never_rises)
        opposite = (self.never_falls & other.never_rises) | (self.never_rises & other.never_falls)
        return Direction(same, opposite)


# --------------------------------------------------------------------------- questions


def all_numbers(dtype: Any) -> Interval:
    """All numbers of a dtype, with the infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return Interval(np.asarray(-np.inf, dtype), np.asarray(np.inf, dtype))
    if dtype.kind == "b":
        return Interval(np.asarray(False), np.asarray(True))
    info = np.iinfo(dtype)
    return Interval(np.asarray(info.min, dtype), np.asarray(info.max, dtype))


def direction(op: Elementwise, x: Interval) -> Direction:
    """The direction of an operation on an interval."""
    turns = turning(op, x)
    low, high = (apply(op, np.atleast_1d(end)) for end in (x.low, x.high))
    known = turns.known & ~turns.inside(x) & ~np.isnan(low) & ~np.isnan(high) & ~(tells_zeros_apart(op) & _has_zero(x))
    return Direction(known & (low <= high), known & (low >= high))


def range_of(op: Elementwise, x: Interval) -> Interval:
    """All numbers that the operation can give for an interval, or more, also where it wraps or turns."""
    turns = turning(op, x)
    values = [apply(op, np.atleast_1d(end)) for end in (x.low, x.high)]
    for point in turns.points:
        values += [apply(op, np.atleast_1d(np.clip(number, x.low, x.high))) for number in _beside(point, x.dtype)]
    known = turns.known & ~(tells_zeros_apart(op) & _has_zero(x))
    for value in values:
        known = known & ~np.isnan(value)
    every = decoded(decoding(op), code_type(op)) if isinstance(op, QUANTIZERS) else all_numbers(values[0].dtype)
    low, high = values[0], values[0]
    for value in values[1:]:
        low, high = np.minimum(low, value), np.maximum(high, value)
    return Interval(np.where(known, low, every.low), np.where(known, high, every.high))


def chain_direction(ops: Sequence[Elementwise], x: Interval) -> Direction:
    """The direction of operations one after the other."""
    found = Direction(np.asarray(True), np.asarray(False))
    for op in ops:
        found = found.then(direction(op, x))
        x = range_of(op, x)
    return found


def wrapping_sum(op: Elementwise, dtype: np.dtype[Any]) -> tuple[Array, np.dtype[Any]] | None:
    """(c, integer dtype) of an operation on that dtype which gives x + c modulo 2^bits; None for any other one."""
    match op:
        case Add(value) if (result := np.result_type(dtype, value.dtype)).kind in "iu":
            return value, result
        case Cast(kind) if dtype.kind in "iub" and np.dtype(kind).kind in "iu":
            return np.zeros(1, np.int64), np.dtype(kind)
        case _:
            return None


def tells_zeros_apart(op: Elementwise) -> bool:
    """Whether -0.0 and +0.0, which are equal, can give different numbers."""
    match op:
        case Activation("Reciprocal"):
            return True
        case Activation("Pow", alpha):
            return alpha < 0
        case BinaryOf(BinaryKind.DIV):
            return True
        case BinaryOf(_, ways) | Where(ways):
            return any(tells_zeros_apart(inner) for way in ways for inner in way)
        case _:
            return False


def decoded(meaning: Encoding, type_: IntType) -> Interval:
    """All numbers that codes of a type can mean, NaN aside."""
    ends, known = _decoded_ends(meaning, type_)
    every = all_numbers(ends[0].dtype)
    low, high = (
        np.where(known, end(*ends), other) for end, other in ((np.minimum, every.low), (np.maximum, every.high))
    )
    return Interval(low, high)


def decoding_direction(meaning: Encoding, type_: IntType) -> Direction:
    """Whether codes of a type mean the greater numbers, the greater they are."""
    (low, high), known = _decoded_ends(meaning, type_)
    return Direction(known & (low <= high), known & (low >= high))


# --------------------------------------------------------------------------- the table


def turning(op: Elementwise, x: Interval) -> Turns:
    """Where an operation can change its direction on an interval: the facts of all operations."""
    match op:
        case Mul(value) | Add(value):
            return _arithmetic(op, value, x)
        case Fma(factor, value):
            return _product(factor, np.isfinite(value))
        case Div(value):
            return Turns(np.isfinite(value) & (value != 0) if value.dtype.kind == "f" else _never(value))
        case Max(value) | Min(value):
            return Turns(_always(value))
        case Slope(value):
            if value.dtype.kind != "f":
                return Turns(_never(value))
            # 0 * -inf is NaN.
            return Turns(np.isfinite(value), _points((value == 0, _LOWEST), (value < 0, 0.0)))
        case Cast(kind):
            return Turns(_cast(np.dtype(kind), x))
        case Dequantize(scale, zero):
            return Turns(np.isfinite(scale) & _difference_fits(x, zero))
        case Activation():
            return _activation(op, x)
        case Compare(kind, value):
            two = kind is not Relation.EQUAL or x.dtype.kind == "b"  # any function of two values is monotone
            return Turns(_always(value) if two else _never(value))
        case Constant(value):
            return Turns(_always(value))
        case Lookup(values):  # all steps go one way; next to NaN, no step does
            steps = [values[1:] >= values[:-1], values[1:] <= values[:-1]]
            return Turns(np.asarray(steps[0].all(axis=0) | steps[1].all(axis=0)))
        case IntQuant(scale, zero, type_, _):
            return Turns(_divides(scale) & np.isfinite(zero) & _holds(type_, x.dtype, scale, zero))
        case SignedBit(scale, zero):
            return Turns(_divides(scale) & np.isfinite(zero))
        case Bipolar(scale, divisor):
            return Turns(_divides(divisor) & np.isfinite(scale))
        case Trunc(scale, zero, divisor, out_zero, out_scale, clamped, _):
            finite = np.isfinite(zero) & np.isfinite(out_zero) & np.isfinite(out_scale)
            known = _divides(scale) & _divides(divisor) & finite
            return Turns(known & _holds(clamped or UNCLAMPED, x.dtype, scale, zero, divisor))
        case MultiThreshold(thresholds, scale_, bias):
            decodes = bool(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
            return Turns(np.full(thresholds.shape[1:], decodes))
        case QuantizeLinear(scale, zero, type_, dtype, _):
            return Turns(_divides(scale) & (np.abs(zero) < 1 << 62) & _within(type_, dtype))
        case Requantize():
            return Turns(_requantize(op, x) & _within(op.type, op.dtype))
        case FloatQuant():
            return Turns(_divides(op.scale) & _minifloat(op, x.dtype))
        case IntegerRatio():
            return Turns(_integer_ratio(op, x) & _within(op.type, op.dtype))
        case _:  # nothing is known, which is right for any function
            return Turns(np.asarray(False))


def _arithmetic(op: Mul | Add, value: Array, x: Interval) -> Turns:
    """Floats with a finite constant, integers where they do not wrap."""
    dtype = np.result_type(x.dtype, value.dtype)
    if dtype.kind == "b":
        return Turns(_always(value))
    if dtype.kind == "f":
        return _product(value) if isinstance(op, Mul) else Turns(np.isfinite(value))
    wide = _exact(value)
    ends = [_exact(x.low) * wide, _exact(x.high) * wide]
    if isinstance(op, Add):
        ends = [_exact(x.low) + wide, _exact(x.high) + wide]
    return Turns(_fits(ends[0], dtype) & _fits(ends[1], dtype))


def _product(factor: Array, known: Array | bool = True) -> Turns:
    """0 times infinity is NaN."""
    return Turns(np.isfinite(factor) & known, _points((factor == 0, _LOWEST), (factor == 0, _INF)))


def _cast(to: np.dtype[Any], x: Interval) -> Array:
    """To floats it rounds. An integer wraps; a float has no place in integers, see `QuantizeLinear`."""
    if to.kind == "f" or to == x.dtype:
        return np.asarray(True)
    if to.kind in "iu" and x.dtype.kind in "iub":
        return _fits(_exact(x.low), to) & _fits(_exact(x.high), to)
    return np.asarray(False)


def _activation(op: Activation, x: Interval) -> Turns:
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
    # The lowest integer has no opposite. Of 64 bits, float64 cannot tell it from its neighbour.
    least = np.iinfo(x.dtype).min
    points = (least + 1.0, 0.0) if x.dtype.itemsize <= 4 else (0.0,)
    return Turns((x.low > least) | (len(points) == 2), tuple(np.asarray(p) for p in points))


def _requantize(op: Requantize, x: Interval) -> Array:
    """Rising or falling with the sign of the multiplier, as long as int64 holds all products."""
    most = np.maximum(np.abs(x.low.astype(np.float64)), np.abs(x.high.astype(np.float64))) + 1
    factor, add, zero = (np.abs(part.astype(np.float64)) for part in (op.multiplier, op.add, op.zero_point))
    fits = (op.shift >= 0) & (op.shift <= 62)
    if op.convention is Convention.DOUBLE:
        left = (most + add) * 2.0 ** np.clip(31 - op.shift, 0, 62)
        return np.asarray(fits & (left < _INT64) & (factor <= 2.0**31) & (zero < 2.0**60))
    half = 2.0 ** np.clip(op.shift, 0, 62)
    return np.asarray(fits & (most * factor + add + half + zero < _INT64))


def _integer_ratio(op: IntegerRatio, x: Interval) -> Array:
    """Rising or falling with the sign of the multiplier, as long as int64 holds all products and nothing wraps."""
    most = np.maximum(np.abs(x.low.astype(np.float64)), np.abs(x.high.astype(np.float64))) + 1
    fits = most * np.abs(op.multiplier.astype(np.float64)) + np.abs(op.add.astype(np.float64)) < _INT64
    starts = op.add >= 0 if op.mirrored else True  # at 0 it does not step back
    return np.asarray(fits & (op.divisor > 0) & starts & (not op.wraps))


def _minifloat(op: FloatQuant, dtype: np.dtype[Any]) -> Array:
    """Whether a minifloat never turns.

    A number just below 2^k may have the step of the binade above, see `semantics.minifloat_exponent`: its
    distance to 2^k is then below 2^(k - 17), since the logarithm is k - d with d at most half a unit in
    the last place of |k| < 2^8 (2^11 in float64). Nearest rounding to 16 bits or fewer gives 2^k for it.
    Rounding away from zero is safe with any steps: a coarse grid is part of the fine one. Rounding
    towards zero gives 2^k - 2^(k - mantissa) there, which is a fall.
    """
    nearest = op.mode in (Rounding.ROUND, Rounding.HALF_UP, Rounding.HALF_DOWN) and op.mantissa <= _SAFE_MANTISSA
    info = np.finfo(np.result_type(dtype, op.scale.dtype))
    held = 2.0**op.step >= float(info.smallest_subnormal) and op.largest <= float(info.max)
    wide = info.dtype.itemsize >= 4
    return np.asarray((nearest or op.mode is Rounding.UP) and held and wide)


# --------------------------------------------------------------------------- helpers


def _always(value: Array) -> Array:
    return np.ones(value.shape, np.bool_)


def _never(value: Array) -> Array:
    return np.zeros(value.shape, np.bool_)


def _points(*pairs: tuple[Array, float]) -> tuple[Array, ...]:
    """Turning points of the elements for which they are."""
    return tuple(np.where(where, point, np.nan) for where, point in pairs if where.any())


def _divides(scale: Array) -> Array:
    """Whether x / scale is monotone, and no NaN for infinities."""
    return np.asarray(np.isfinite(scale) & (scale != 0))


def _holds(type_: IntType, dtype: np.dtype[Any], *constants: Array) -> bool:
    """Whether the bounds of a type are finite numbers where x / scale is computed, as they are not in float16."""
    most = float(np.finfo(np.result_type(dtype, *(np.asarray(c).dtype for c in constants))).max)
    return max(abs(type_.lo), abs(type_.hi)) + 1 <= most


def integers_of(dtype: Any) -> IntType:
    """The integers that a dtype holds one by one: all of an integer dtype, those below 2^p of a float dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        most = 2 << np.finfo(dtype).nmant
        return IntType(-most, most)
    return IntType(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _within(type_: IntType, dtype: str) -> bool:
    """Whether codes of that type keep their values as numbers of a dtype."""
    held = integers_of(dtype)
    return held.lo <= type_.lo and type_.hi <= held.hi


def _exact(values: Array) -> Array:
    """Integers whose sums and products with each other do not wrap."""
    return np.asarray(values).astype(object if np.asarray(values).dtype.itemsize > 4 else np.int64)


def _fits(values: Array, dtype: np.dtype[Any]) -> Array:
    held = integers_of(dtype)
    return np.asarray((values >= held.lo) & (values <= held.hi)).astype(np.bool_)


def _difference_fits(x: Interval, zero: Array) -> Array:
    """Whether x - zero is computed in int64 without wrapping."""
    if x.dtype.kind not in "iub":
        return np.asarray(False)
    ends = [_exact(end) for end in (x.low, x.high)]
    known = np.asarray(True)
    for end in ends:
        known = known & _fits(end, np.dtype(np.int64)) & _fits(end - zero.astype(object), np.dtype(np.int64))
    return known


def _has_zero(x: Interval) -> Array:
    return np.asarray((x.low <= 0) & (x.high >= 0)) if x.dtype.kind == "f" else np.asarray(False)


def _beside(point: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The last number of a dtype below a point and the first one from there on; the point itself is no number: both 0."""
    real = np.nan_to_num(point, nan=0.0, posinf=_INF, neginf=-_INF)
    if dtype.kind != "f":
        first = np.ceil(np.clip(real, -(2.0**53), 2.0**53)).astype(np.int64)
        info = np.iinfo(dtype)
        return np.clip(first - 1, info.min, info.max).astype(dtype), np.clip(first, info.min, info.max).astype(dtype)
    with np.errstate(all="ignore"):
        near = real.astype(dtype)
        above = np.where(near.astype(np.float64) >= real, near, np.nextafter(near, dtype.type(np.inf)))
        return np.nextafter(above, dtype.type(-np.inf)), above


def _decoded_ends(meaning: Encoding, type_: IntType) -> tuple[tuple[Array, Array], Array]:
    """What the least and the greatest code mean, and whether the decoding is known to be monotone between them."""
    low, high = (decode(meaning, np.asarray(code, np.int64)) for code in (type_.lo, type_.hi))
    known = np.asarray(True)
    match meaning:
        case Affine(scale, zero):
            known = np.isfinite(scale) & np.isfinite(zero)
        case ThresholdCount(scale_, bias):
            known = np.asarray(np.isfinite([np.float32(scale_), np.float32(bias)]).all())
        case Accumulator(_, _, scale):
            known = np.isfinite(scale)
        case IntegerEncoding(dtype, offset):
            known = _fits(type_.lo + offset, np.dtype(dtype)) & _fits(type_.hi + offset, np.dtype(dtype))
        case FloatKey():
            low, high = all_numbers(np.float32).low, all_numbers(np.float32).high
        case Fixed():
            pass
        case _:
            assert_never(meaning)
    return (low, high), np.asarray(known)
