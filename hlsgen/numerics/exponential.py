"""exp of exact numbers, rounded once to float32, for the lookup tables of a Softmax."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Decimal digits of exp. For a fraction other than 0, exp is never the midpoint of two float32 numbers, and never so
#: near to one that these digits do not decide.
_DIGITS = 60
#: exp of smaller arguments is below half of the smallest float32.
LOWEST = -105
#: Bits of an approximate power and of half of it; its largest error in units of the last place.
_BITS, _HALF, _OFF = 60, 30, 64
#: Bits of a float32 mantissa, and the exponent of the smallest float32.
_MANTISSA, _SMALLEST = 24, -149
#: Distances in a block. Each power of a block is the product of two powers that are computed directly.
_BLOCK = 1 << 10


def exp_float32(x: Fraction) -> float:
    """The float32 nearest to exp(x), x at most 0; 0 if exp(x) is below half of the smallest float32."""
    if x < LOWEST:
        return 0.0
    exact = exp_digits(x)
    nearest = np.float32(float(exact))
    candidates = [nearest, np.nextafter(nearest, np.float32(0)), np.nextafter(nearest, np.float32(2))]
    return float(min(candidates, key=lambda f: abs(Fraction(float(f)) - exact)))


def exp_digits(x: Fraction) -> Fraction:
    """exp(x) to 60 digits."""
    with localcontext() as context:
        context.prec = _DIGITS
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def powers(step: Fraction, count: int) -> Array:
    """exp(-step * d) as float32 for d = 0, 1, ... up to the last one that is not 0, at most `count` of them."""
    reach = min(count, int(-LOWEST / step) + 1)
    within_block, within_power = _approximate([-step * d for d in range(min(reach, _BLOCK))])
    block_starts, block_powers = _approximate([-step * d for d in range(0, reach, _BLOCK)])
    rows = [
        _rounded(_product(within_block, block_start), within_power + block_power, step, i * _BLOCK)
        for i, (block_start, block_power) in enumerate(zip(block_starts, block_powers, strict=True))
    ]
    values = np.concatenate(rows)[:reach]
    return values[: int(np.count_nonzero(values))]


def _approximate(arguments: list[Fraction]) -> tuple[Array, Array]:
    """exp of each argument as (mantissas of 60 bits with the top bit set, powers of 2 of their last bits)."""
    mantissas, powers = np.empty(len(arguments), np.int64), np.empty(len(arguments), np.int64)
    for i, x in enumerate(arguments):
        exact = exp_digits(x)
        estimate = exact.numerator.bit_length() - exact.denominator.bit_length() - _BITS
        power = estimate if exact < Fraction(2) ** (estimate + _BITS) else estimate + 1
        mantissas[i], powers[i] = int(exact / Fraction(2) ** power), power
    return mantissas, powers


def _product(a: Array, b: int) -> Array:
    """a * b / 2^60, with an error of some units of the last place."""
    mask = (1 << _HALF) - 1
    return (a >> _HALF) * (b >> _HALF) + ((a >> _HALF) * (b & mask) + (a & mask) * (b >> _HALF) >> _HALF)


def _rounded(value: Array, power: Array, step: Fraction, first: int) -> Array:
    """value * 2^(power + 60) rounded to float32.

    Products too near to a rounding midpoint are replaced by the exact power of e.
    """
    power = power + _BITS
    bits = np.where(value >> (_BITS - 1) > 0, _BITS, _BITS - 1)
    drop = np.minimum(np.maximum(bits - _MANTISSA, _SMALLEST - power), _BITS + 1)
    mantissa, remainder, half = value >> drop, value & ((np.int64(1) << drop) - 1), np.int64(1) << (drop - 1)
    rounded: Array = np.ldexp((mantissa + (remainder > half)).astype(np.float64), power + drop).astype(np.float32)
    for index in np.flatnonzero(np.abs(remainder - half) < _OFF).tolist():
        rounded[index] = exp_float32(-step * (first + index))
    return rounded
