"""Integer rescaling against the published definitions, one number at a time in Python's own integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import Convention, MultiThreshold, Requantize
from hlsgen.numerics.fixed import IntType

Array = NDArray[Any]
INT32 = IntType(-(1 << 31), (1 << 31) - 1)
WIDE = IntType(-(1 << 62), (1 << 62) - 1)


def int32(x: int) -> int:
    """The number as a C int32, which must not overflow."""
    assert INT32.lo <= x <= INT32.hi
    return x


def quotient(a: int, b: int) -> int:
    """Integer division of C: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def srdhm(a: int, b: int) -> int:
    """gemmlowp, fixedpoint.h: SaturatingRoundingDoublingHighMul."""
    if a == b == INT32.lo:
        return INT32.hi
    ab = int32(a) * int32(b)
    nudge = (1 << 30) if ab >= 0 else (1 - (1 << 30))
    return int32(quotient(ab + nudge, 1 << 31))


def rounding_divide_by_pot(x: int, exponent: int) -> int:
    """gemmlowp, fixedpoint.h: RoundingDivideByPOT."""
    assert 0 <= exponent <= 31
    mask = (1 << exponent) - 1
    remainder = x & mask
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if remainder > threshold else 0)


def tflite_double(x: int, multiplier: int, shift: int) -> int:
    """TFLite: MultiplyByQuantizedMultiplier with double rounding; shift > 0 is to the left."""
    left_shift, right_shift = max(shift, 0), max(-shift, 0)
    return rounding_divide_by_pot(srdhm(int32(x << left_shift), multiplier), right_shift)


def tflite_single(x: int, multiplier: int, shift: int) -> int:
    """TFLite: MultiplyByQuantizedMultiplier under TFLITE_SINGLE_ROUNDING."""
    assert multiplier >= 0
    assert -31 <= shift <= 30
    total = 31 - shift
    return int32((x * multiplier + (1 << (total - 1))) >> total)


def tosa(value: int, multiplier: int, shift: int) -> int:
    """TOSA: apply_scale_32 without double_round."""
    assert multiplier >= 0
    assert 2 <= shift <= 62
    rounding = 1 << (shift - 1)
    return int32((int32(value) * multiplier + rounding) >> shift)


def deeploy(x: int, mul: int, add: int, div: int, low: int, high: int) -> int:
    """Deeploy's RequantShift."""
    return min(max((x * mul + add + (div >> 1)) >> (div.bit_length() - 1), low), high)


def requantized(
    convention: Convention, x: Any, multiplier: Any, shift: Any, add: Any = 0, zero: Any = 0, type_: IntType = WIDE
) -> Array:
    """`evaluate.quantize` of arrays that broadcast."""
    constants = [np.asarray(v, np.int64) for v in (multiplier, add, shift, zero)]
    return quantize(Requantize(convention, *constants, type_, "int32"), np.asarray(x, np.int64))


def numbers(r: np.random.Generator, count: int, bits: int = 32) -> Array:
    """Integers of all lengths up to `bits`, the extremes, and neighbours of powers of two."""
    top = 1 << (bits - 1)
    lengths = r.integers(0, bits, count)
    anything = r.integers(-top, top, count) >> lengths
    powers = np.array([s * (1 << k) + d for s in (-1, 1) for k in range(bits - 1) for d in (-1, 0, 1)])
    return np.concatenate([anything, np.clip(powers, -top, top - 1), [-top, 1 - top, top - 1, 0]])


def multipliers(r: np.random.Generator, count: int, negative: bool) -> Array:
    positive = np.concatenate([r.integers(1 << 30, 1 << 31, count), [1 << 30, (1 << 31) - 1, 0, 1, 3, 1 << 20]])
    return np.concatenate([positive, -positive, [-(1 << 31)]]) if negative else positive


def matches_reference(results: Array, expected: Callable[[int, int, int], int], x: Array, m: Array, shift: Any) -> bool:
    return bool((results == [expected(*map(int, t)) for t in np.broadcast(x, m, shift)]).all())


@pytest.mark.parametrize("right", [0, 1, 2, 7, 8, 15, 30, 31])
def test_double_rounding(right: int) -> None:
    """Shifts to the right by 31 and more."""
    r = np.random.default_rng(right)
    x = numbers(r, 4000)
    m = r.choice(multipliers(r, 50, True), len(x))
    m[x == INT32.lo] = INT32.lo  # the one product that saturates
    results = requantized(Convention.DOUBLE, x, m, 31 + right)
    assert matches_reference(results, lambda a, b, c: rounding_divide_by_pot(srdhm(a, b), c), x, m, right)
    assert matches_reference(results, tflite_double, x, m, -right)
    ties = numbers(r, 300, 20) * 2 + 1  # times 2^30 these are halves
    results = requantized(Convention.DOUBLE, ties, 1 << 30, 31 + right)
    assert matches_reference(results, tflite_double, ties, np.int64(1 << 30), -right)


@pytest.mark.parametrize("left_shift", [1, 2, 8, 30])
def test_double_rounding_with_left_shift(left_shift: int) -> None:
    """All x for which x * 2^left_shift fits 32 bits; elsewhere the reference is undefined, and x saturates."""
    r = np.random.default_rng(left_shift)
    x = numbers(r, 3000, 32 - left_shift)
    m = r.choice(multipliers(r, 50, True), len(x))
    assert matches_reference(requantized(Convention.DOUBLE, x, m, 31 - left_shift), tflite_double, x, m, left_shift)
    ends = requantized(Convention.DOUBLE, [INT32.lo, INT32.hi], 1 << 30, 31 - left_shift)
    assert ends.tolist() == [srdhm(INT32.lo, 1 << 30), srdhm(INT32.hi, 1 << 30)]


@pytest.mark.parametrize("shift", [-31, -30, -12, -1, 0, 1, 4, 20, 30])
def test_single_rounding(shift: int) -> None:
    r = np.random.default_rng(40 + shift)
    x = numbers(r, 4000, 32 - max(shift, 0))
    m = r.choice(multipliers(r, 50, False), len(x))
    assert matches_reference(requantized(Convention.SINGLE, x, m, 31 - shift), tflite_single, x, m, shift)


def test_tosa() -> None:
    r = np.random.default_rng(5)
    for shift in (2, 3, 16, 30, 31, 32, 40, 61, 62):
        x = numbers(r, 2000)
        m = r.choice(multipliers(r, 50, False), len(x))
        fits = np.abs(x.astype(float) * m) < 2.0 ** (shift + 30)
        x, m = x[fits], m[fits]
        assert len(x) > 20
        assert matches_reference(requantized(Convention.SINGLE, x, m, shift), tosa, x, m, shift)


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 255), (-8, 7)])
def test_deeploy(low: int, high: int) -> None:
    """As the importer makes it: `add` includes the half."""
    r = np.random.default_rng(6)
    for exponent in (0, 1, 5, 16, 24):
        div = 1 << exponent
        x = numbers(r, 2000, 24)
        mul = r.integers(-(1 << 20), 1 << 20, len(x))
        add = r.integers(-(1 << 30), 1 << 30, len(x))
        results = requantized(Convention.FLOOR, x, mul, exponent, add + (div >> 1), 0, IntType(low, high))
        expected = [deeploy(int(a), int(b), int(c), div, low, high) for a, b, c in zip(x, mul, add, strict=True)]
        assert results.tolist() == expected


@pytest.mark.parametrize("convention", list(Convention))
def test_zero_point_and_bounds(convention: Convention) -> None:
    """The zero point is added after the shift, before the bounds; `add` before the shift, per element."""
    x, add, zero = np.arange(-300, 300), np.tile([0, 7, -9], 200), np.tile([0, -3], 300)
    shift, m = 33, 1 << 30
    unclamped = requantized(convention, x, m, shift, add)
    clamped = requantized(convention, x, m, shift, add, zero, IntType(-20, 30))
    assert (clamped == np.clip(unclamped + zero, -20, 30)).all()
    assert {-20, 30} < set(clamped.tolist())
    if convention in (Convention.DOUBLE, Convention.FLOAT64):
        assert (unclamped == requantized(convention, x + add, m, shift)).all()
    else:
        assert (
            unclamped
            == [
                (int(v) * m + int(a) + (convention == Convention.SINGLE) * 2**32) >> 33
                for v, a in zip(x, add, strict=True)
            ]
        ).all()


@pytest.mark.parametrize("sets", [0, 1, 3, 40])
def test_thresholds_that_are_reached(sets: int) -> None:
    """More thresholds than sets are searched, fewer counted: NaN reaches none, equal ones count each."""
    rng = np.random.default_rng(0)
    thresholds = rng.integers(-9, 10, (20, 1, sets)).astype(np.float32) / 2
    x = rng.integers(-20, 20, (50, 4, sets)).astype(np.float32) / 2
    x[0, 0, :1] = np.nan
    expected = sum((x >= threshold).astype(np.int64) for threshold in thresholds)
    assert (quantize(MultiThreshold(thresholds, 1.0, 0.0), x) == expected).all()


def test_one_float64_product_is_rounded_away() -> None:
    """LiteRT's reference FULLY_CONNECTED: C's round() of a float64 product, here in fractions."""
    r = np.random.default_rng(7)
    x = numbers(r, 4000)
    for real in (0.3, 0.5, 0.0123, 1.7, 2.0**-20, 1 / 3):
        fraction, exponent = math.frexp(real)
        results = requantized(Convention.FLOAT64, x, int(fraction * (1 << 53)), 53 - exponent)
        for value, result in zip(x.tolist(), results.tolist(), strict=True):
            product = Fraction(float(value) * real)
            away = math.floor(abs(product) + Fraction(1, 2))
            assert result == (away if product >= 0 else -away)


def test_float64_just_below_a_tie_is_rounded_down() -> None:
    """0.5 - 2^-54: adding 0.5 to it in float64 gives 1."""
    assert requantized(Convention.FLOAT64, [1, -1], (1 << 53) - 1, 54).tolist() == [0, 0]
    assert requantized(Convention.FLOAT64, [1, -1], 1, 1).tolist() == [1, -1]
