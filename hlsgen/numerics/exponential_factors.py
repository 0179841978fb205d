"""Powers of e as products of two words, for the high and the low part of the exponent.

This replaces a lookup table with too many exponents by two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.exponential import exp_digits
from hlsgen.numerics.fixed import Array

#: Mantissas from the first to the second number of bits are tried; products are computed in parts of 24 bits.
_MIN_BITS, _MAX_BITS, _PART = 25, 48, 24
#: Bits of a float32 mantissa, the hidden one included; exponent of the lowest bit of a subnormal float32.
_MANTISSA, _LOWEST = 24, -149
#: A lower bound of ln 2: the low parts of exponents are smaller, so that their powers are above 1/2.
_LN2 = Fraction(693147, 1000000)


@dataclass(frozen=True, eq=False)
class PowerFactors:
    """exp(-step * d) as high[d >> low_bits] * low[d & (2^low_bits - 1)], rounded to float32.

    high[h] = mantissa * 2^(1 - bits - shift) or 0; the top bit of the mantissa's `bits` bits is set.

    low[l] = lows[l] * 2^-bits, above 1/2 up to 1. `last`: the largest distance.
    """

    last: int
    low_bits: int
    bits: int
    mantissas: Array
    shifts: Array
    lows: Array

    def values(self, distances: Array) -> Array:
        """The float32 powers of these distances."""
        mantissa, shift = self.mantissas[distances >> self.low_bits], self.shifts[distances >> self.low_bits]
        low = self.lows[distances & ((1 << self.low_bits) - 1)]
        mask = (1 << _PART) - 1
        bottom = (mantissa & mask) * (low & mask)
        middle = (mantissa >> _PART) * (low & mask) + (mantissa & mask) * (low >> _PART) + (bottom >> _PART)
        top = (mantissa >> _PART) * (low >> _PART) + (middle >> _PART)
        sticky = ((middle & mask) | (bottom & mask)) != 0
        return _rounded(2 * top + sticky, 2 * _PART - 1 - 2 * self.bits + 1 - shift)


def factors(step: Fraction, powers: Array, reach: int, max_words: int, *, zero: bool = False) -> PowerFactors | None:
    """Lookup tables of at most `max_words` words each that give all powers, then 0 up to `reach`.

    Returns None if there are none. The tables use the fewest bits that work. `zero`: the last distance comes after all
    powers and has a word of 0.
    """
    last = min(reach, len(powers))
    low_bits = max(0, min(math.floor(_LN2 / step).bit_length() - 1, (last.bit_length() + 1) // 2))
    block = 1 << low_bits
    last = -(-len(powers) // block) * block if zero else last
    count = (last >> low_bits) + 1
    if low_bits == 0 or max(block, count) > max_words:
        return None
    expected = np.append(powers, np.zeros(last + 1 - len(powers), np.float32))
    ends_with_zero = last >= len(powers) and last % block == 0  # the last word is one of 0
    high_powers = [exp_digits(-step * block * h) for h in range(count - ends_with_zero)]
    low_powers = [exp_digits(-step * distance) for distance in range(block)]
    distances = np.append(np.arange(min(reach, last) + 1), last)
    for bits in range(max(_MIN_BITS, _MANTISSA + last.bit_length() - 2), _MAX_BITS + 1):
        candidate = _tables(high_powers, low_powers, low_bits, bits, last, ends_with_zero)
        if np.array_equal(candidate.values(distances), expected[distances]):
            return candidate
    return None


def _tables(
    high_powers: list[Fraction], low_powers: list[Fraction], low_bits: int, bits: int, last: int, ends_with_zero: bool
) -> PowerFactors:
    """The lookup tables with powers rounded to that many bits."""
    mantissas, shifts = [], []
    for exact in high_powers:
        shift = exact.denominator.bit_length() - exact.numerator.bit_length()
        shift -= exact * 2**shift >= 2
        shift += exact * 2**shift < 1
        mantissa = round(exact * 2 ** (bits - 1 + shift))
        carried = mantissa >> bits
        mantissas.append(mantissa >> carried)
        shifts.append(shift - carried)
    zeros = [0] * ends_with_zero
    lows = [round(exact * 2**bits) for exact in low_powers]
    return PowerFactors(last, low_bits, bits, np.array(mantissas + zeros), np.array(shifts + zeros), np.array(lows))


def _rounded(value: Array, power: Array) -> Array:
    """value * 2^power as float32, ties to even.

    value is below 2^52; its last bit represents all lower bits (sticky).
    """
    bits = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    drop = np.minimum(np.maximum(np.maximum(bits - _MANTISSA, _LOWEST - power), 0), 62)
    mantissa, remainder, half = value >> drop, value & ((np.int64(1) << drop) - 1), (np.int64(1) << drop) >> 1
    mantissa = mantissa + ((remainder > half) | ((remainder == half) & (half > 0) & (mantissa & 1 == 1)))
    return np.asarray(np.ldexp(mantissa.astype(np.float64), power + drop).astype(np.float32))
