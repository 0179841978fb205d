"""exp of exact numbers, rounded once to float32: what tables of a Softmax hold."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Decimal digits: exp of a fraction but 0 is never the middle of two float32 numbers, and never as near to one.
_DIGITS = 60
#: exp of less is below half of the smallest float32.
LOWEST = -105
#: Bits of an approximate power, of half of it; by how many of its last units it may be off; those of a float32, and
#: the exponent of the smallest one.
_BITS, _HALF, _OFF, _MANTISSA, _SMALLEST = 60, 30, 64, 24, -149
#: Distances of a block, of which each power is the product of two that are computed alone.
_BLOCK = 1 << 10


def exp_float32(x: Fraction) -> float:
    """The float32 that is nearest to exp(x), x at most 0; 0 where that is below half of the smallest one."""
    if x < LOWEST:
        return 0.0
    exact = exp_digits(x)
    near = np.float32(float(exact))
    around = [near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(2))]
    return float(min(around, key=lambda f: abs(Fraction(float(f)) - exact)))


def exp_digits(x: Fraction) -> Fraction:
    """exp(x) to 60 digits."""
    with localcontext() as context:
        context.prec = _DIGITS
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def powers(step: Fraction, count: int) -> Array:
    """exp(-step * d) for d = 0, 1, ... up to the last one that is not 0, at most `count` of them; float32."""
    reach = min(count, int(-LOWEST / step) + 1)
    low, none = _approximate([-step * d for d in range(min(reach, _BLOCK))])
    high, shift = _approximate([-step * d for d in range(0, reach, _BLOCK)])
    rows = [_rounded(_product(low, own), none + power, step, i * _BLOCK)
            for i, (own, power) in enumerate(zip(high, shift, strict=True))]  # fmt: skip
    found = np.concatenate(rows)[:reach]
    return found[: int(np.count_nonzero(found))]


def _approximate(arguments: list[Fraction]) -> tuple[Array, Array]:
    """exp of numbers as mantissas of 60 bits, the top one set, and powers of 2 of their last bits."""
    found, shift = np.empty(len(arguments), np.int64), np.empty(len(arguments), np.int64)
    for i, x in enumerate(arguments):
        exact = exp_digits(x)
        above = exact.numerator.bit_length() - exact.denominator.bit_length() - _BITS
        power = above if exact < Fraction(2) ** (above + _BITS) else above + 1
        found[i], shift[i] = int(exact / Fraction(2) ** power), power
    return found, shift


def _product(a: Array, b: int) -> Array:
    """a * b / 2^60, some units of the last place off."""
    mask = (1 << _HALF) - 1
    return (a >> _HALF) * (b >> _HALF) + ((a >> _HALF) * (b & mask) + (a & mask) * (b >> _HALF) >> _HALF)


def _rounded(value: Array, power: Array, step: Fraction, first: int) -> Array:
    """value * 2^(power + 60) rounded to float32, from the exact power of e where they are too near to a middle."""
    power = power + _BITS
    bits = np.where(value >> (_BITS - 1) > 0, _BITS, _BITS - 1)
    drop = np.minimum(np.maximum(bits - _MANTISSA, _SMALLEST - power), _BITS + 1)
    kept, rest, half = value >> drop, value & ((np.int64(1) << drop) - 1), np.int64(1) << (drop - 1)
    found: Array = np.ldexp((kept + (rest > half)).astype(np.float64), power + drop).astype(np.float32)
    for place in np.flatnonzero(np.abs(rest - half) < _OFF).tolist():
        found[place] = exp_float32(-step * (first + place))
    return found
