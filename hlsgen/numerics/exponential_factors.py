"""Powers of e with too many exponents for one table, as products of two words: for the high part of the exponent and the low one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.exponential import exp_digits
from hlsgen.numerics.fixed import Array

#: Mantissas of these many bits are tried, from first to last: products are computed in parts of 24 bits.
_LEAST, _MOST, _PART = 25, 48, 24
#: Bits of a float32 mantissa, the hidden one included; exponent of the lowest bit of a subnormal float32.
_MANTISSA, _LOWEST = 24, -149
#: ln 2 from below: the low parts of exponents are smaller, so that their powers are above 1/2.
_LN2 = Fraction(693147, 1000000)


@dataclass(frozen=True, eq=False)
class PowerFactors:
    """exp(-step * d) as high[d >> low_bits] * low[d & (2^low_bits - 1)], rounded to float32.

    high[h] = mantissa * 2^(1 - bits - shift), the top one of the `bits` bits of the mantissa set, or 0; low[l] =
    lows[l] * 2^-bits, above 1/2 up to 1. `last`: the largest distance.
    """

    last: int
    low_bits: int
    bits: int
    mantissas: Array
    shifts: Array
    lows: Array

    def values(self, distances: Array) -> Array:
        """float32 numbers of distances."""
        mantissa, shift = self.mantissas[distances >> self.low_bits], self.shifts[distances >> self.low_bits]
        low = self.lows[distances & ((1 << self.low_bits) - 1)]
        mask = (1 << _PART) - 1
        bottom = (mantissa & mask) * (low & mask)
        middle = (mantissa >> _PART) * (low & mask) + (mantissa & mask) * (low >> _PART) + (bottom >> _PART)
        top = (mantissa >> _PART) * (low >> _PART) + (middle >> _PART)
        sticky = ((middle & mask) | (bottom & mask)) != 0
        return _rounded(2 * top + sticky, 2 * _PART - 1 - 2 * self.bits + 1 - shift)


def factors(step: Fraction, powers: Array, reach: int, most: int, *, zero: bool = False) -> PowerFactors | None:
    """Tables of at most `most` words each that give all powers, and 0 behind them up to `reach`; None if there are none.

    With the fewest bits. `zero`: the last distance is one behind the powers, with a word of 0.
    """
    last = min(reach, len(powers))
    low_bits = max(0, min(math.floor(_LN2 / step).bit_length() - 1, (last.bit_length() + 1) // 2))
    block = 1 << low_bits
    last = -(-len(powers) // block) * block if zero else last
    count = (last >> low_bits) + 1
    if low_bits == 0 or max(block, count) > most:
        return None
    wanted = np.append(powers, np.zeros(last + 1 - len(powers), np.float32))
    ends = last >= len(powers) and last % block == 0  # the last word is one of 0
    high = [exp_digits(-step * block * h) for h in range(count - ends)]
    low = [exp_digits(-step * place) for place in range(block)]
    distances = np.append(np.arange(min(reach, last) + 1), last)
    for bits in range(max(_LEAST, _MANTISSA + last.bit_length() - 2), _MOST + 1):
        found = _tables(high, low, low_bits, bits, last, ends)
        if np.array_equal(found.values(distances), wanted[distances]):
            return found
    return None


def _tables(
    high: list[Fraction], low: list[Fraction], low_bits: int, bits: int, last: int, ends: bool
) -> PowerFactors:  # fmt: skip
    """Rounded to these many bits."""
    mantissas, shifts = [], []
    for exact in high:
        shift = exact.denominator.bit_length() - exact.numerator.bit_length()
        shift -= exact * 2**shift >= 2
        shift += exact * 2**shift < 1
        mantissa = round(exact * 2 ** (bits - 1 + shift))
        carried = mantissa >> bits
        mantissas.append(mantissa >> carried)
        shifts.append(shift - carried)
    zeros = [0] * ends
    lows = [round(exact * 2**bits) for exact in low]
    return PowerFactors(last, low_bits, bits, np.array(mantissas + zeros), np.array(shifts + zeros), np.array(lows))


def _rounded(value: Array, power: Array) -> Array:
    """value * 2^power, value below 2^52 and its last bit for all below it, as float32, ties to even."""
    bits = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    drop = np.minimum(np.maximum(np.maximum(bits - _MANTISSA, _LOWEST - power), 0), 62)
    kept, rest, half = value >> drop, value & ((np.int64(1) << drop) - 1), (np.int64(1) << drop) >> 1
    kept = kept + ((rest > half) | ((rest == half) & (half > 0) & (kept & 1 == 1)))
    return np.asarray(np.ldexp(kept.astype(np.float64), power + drop).astype(np.float32))
