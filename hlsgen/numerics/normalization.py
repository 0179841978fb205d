"""Normalization of vectors of integers: a rounded reciprocal square root per vector, a rounded product per element.

For a vector (row) of N integers q:

    layer   A = N*q - sum(q)    M = N*sum(q^2) - sum(q)^2
    rms     A = N*q             M = N*sum(q^2)
    both    rho = round(1 / sqrt(M + addend))    result = round(A * rho)

A and M are exact integers, and the addend is an exact fraction. Both roundings are to the nearest float32, ties to
even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Bits of the significand of a float32.
SIGNIFICAND = 24
#: Largest number of bits of a centered element, without its sign: its product with a significand is below 2^62.
MAX_ELEMENT_BITS = 38
#: Largest number of bits of the addend's numerator and denominator.
MAX_ADDEND_BITS = 160
#: If the distance from a rounding midpoint is at least this, in units of the last place, float64 decides the rounding.
_SURE = 2.0**-20


@dataclass(frozen=True)
class RowBounds:
    """Bounds of the numbers in rows of N integers lo..hi.

    element  largest |A|
    moment   largest M, for rows of that kind
    result   largest |A| * rho, rounded up generously: a bound, not the maximum
    """

    element: int
    moment: int
    result: float


def bounds(centered: bool, length: int, lo: int, hi: int, addend: Fraction) -> RowBounds:
    """The bounds for rows of `length` integers lo..hi.

    The moment of a row with an element A is at least A^2 / (N - 1) if centered, else A^2 / N. Hence
    A / sqrt(M + addend) is largest at the largest A. The moment of centered rows is largest with half of the elements
    at each end.
    """
    if centered:
        half = length // 2
        element = (length - 1) * (hi - lo)
        moment = half * (length - half) * (hi - lo) ** 2
        least_moment = Fraction(element * element, max(1, length - 1))
    else:
        largest_magnitude = max(abs(lo), abs(hi))
        element = length * largest_magnitude
        moment = element * element
        least_moment = Fraction(element * element, length)
    largest_result = element / math.sqrt(float(least_moment + addend)) if element else 0.0
    return RowBounds(element, moment, largest_result * (1 + 2.0**-20))


def moments(q: Array, centered: bool) -> tuple[Array, Array]:
    """(A of every element, M of every row) of int64 rows along the last axis.

    M is in Python integers if it may not fit in int64.
    """
    length = q.shape[-1]
    # The largest M is at most the square of this product.
    exact = q.astype(object) if length * int(np.abs(q).max(initial=0)) >= 1 << 31 else q
    squares = length * (exact * exact).sum(axis=-1)
    if not centered:
        return length * q, squares
    total = exact.sum(axis=-1)
    return length * q - q.sum(axis=-1, keepdims=True), squares - total * total


def reciprocal_root(moment: int, addend: Fraction) -> tuple[int, int]:
    """(m, e) such that m * 2^e is the float32 nearest to 1 / sqrt(moment + addend), 2^23 <= m < 2^24."""
    total = moment + addend
    # 1 / sqrt(total) = sqrt(denominator / numerator). Its floor with a few bits more than 24 is an integer square root.
    magnitude = (total.numerator.bit_length() - total.denominator.bit_length()) // 2
    shift = SIGNIFICAND + 2 + magnitude
    numerator, denominator = total.denominator, total.numerator
    scaled = (numerator << 2 * shift) // denominator if shift >= 0 else numerator // (denominator << -2 * shift)
    root = math.isqrt(scaled)
    extra = root.bit_length() - SIGNIFICAND
    exact = root * root * denominator == (
        numerator << 2 * shift if shift >= 0 else Fraction(numerator, 1 << -2 * shift)
    )
    m, remainder, half = root >> extra, root & ((1 << extra) - 1), 1 << (extra - 1)
    m += remainder > half or (remainder == half and (not exact or bool(m & 1)))
    e = extra - shift
    return (m >> 1, e + 1) if m >> SIGNIFICAND else (m, e)


def reciprocal_roots(moment: Array, addend: Fraction) -> tuple[Array, Array]:
    """(m, e) as in `reciprocal_root`, int64 of the shape of `moment`, which is int64 or Python integers."""
    distinct, inverse = np.unique(moment, return_inverse=True)
    approximate = 1 / np.sqrt(distinct.astype(np.float64) + float(addend))
    fraction, exponent = np.frexp(approximate)
    scaled = fraction * 2.0**SIGNIFICAND
    m, e = np.rint(scaled).astype(np.int64), exponent.astype(np.int64) - SIGNIFICAND
    fraction_part = scaled - np.floor(scaled)
    unsure = (np.abs(fraction_part - 0.5) < _SURE) | (m >> SIGNIFICAND > 0) | (fraction == 0.5)
    for i in np.flatnonzero(unsure):
        m[i], e[i] = reciprocal_root(int(distinct[i]), addend)
    inverse = inverse.reshape(moment.shape)
    return m[inverse], e[inverse]


def normalized(q: Array, centered: bool, addend: Fraction) -> Array:
    """The normalized rows as float32, of the shape of `q`, int64 rows along the last axis."""
    element, moment = moments(q, centered)
    m, e = reciprocal_roots(moment, addend)
    product = (element * m[..., None]).astype(np.float32)  # rounded once
    return np.asarray(np.ldexp(product, e[..., None].astype(np.int32)))
