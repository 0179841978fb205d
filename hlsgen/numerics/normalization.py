"""Normalization of rows of integers: one rounded reciprocal square root a row, one rounded product an element.

Of a row of N integers q:

    layer   A = N*q - sum(q)    M = N*sum(q^2) - sum(q)^2
    rms     A = N*q             M = N*sum(q^2)
    both    rho = round(1 / sqrt(M + addend))    result = round(A * rho)

A and M are exact integers, the addend is an exact fraction, and both roundings are to the nearest float32, ties to even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Bits of the significand of a float32.
SIGNIFICAND = 24
#: Most bits of a centered element, without its sign: its product with a significand is below 2^62.
MAX_ELEMENT_BITS = 38
#: Most bits of numerator and denominator of the addend.
MAX_ADDEND_BITS = 160
#: From this distance of two roundings on, in units of the last place, float64 decides between them.
_SURE = 2.0**-20


@dataclass(frozen=True)
class RowBounds:
    """What the rows of N integers lo..hi can give.

    element  largest |A|
    moment   largest M, for rows of that kind
    result   largest |A| * rho, rounded up generously: a bound, not the maximum
    """

    element: int
    moment: int
    result: float


def bounds(centered: bool, length: int, lo: int, hi: int, addend: Fraction) -> RowBounds:
    """Of rows of `length` integers lo..hi.

    The moment of a row with an element A is at least A^2 / (N - 1) if centered, else A^2 / N: so A / sqrt(M + addend) is
    largest at the largest A. The moment of centered rows is largest with half of the elements at each end.
    """
    if centered:
        half = length // 2
        element = (length - 1) * (hi - lo)
        moment = half * (length - half) * (hi - lo) ** 2
        share = Fraction(element * element, max(1, length - 1))
    else:
        widest = max(abs(lo), abs(hi))
        element = length * widest
        moment = element * element
        share = Fraction(element * element, length)
    largest = element / math.sqrt(float(share + addend)) if element else 0.0
    return RowBounds(element, moment, largest * (1 + 2.0**-20))


def moments(q: Array, centered: bool) -> tuple[Array, Array]:
    """(A of every element, M of every row) of int64 rows along the last axis; M in Python integers where it may be long."""
    length = q.shape[-1]
    # The largest M is at most the square of this.
    exact = q.astype(object) if length * int(np.abs(q).max(initial=0)) >= 1 << 31 else q
    squares = length * (exact * exact).sum(axis=-1)
    if not centered:
        return length * q, squares
    total = exact.sum(axis=-1)
    return length * q - q.sum(axis=-1, keepdims=True), squares - total * total


def reciprocal_root(moment: int, addend: Fraction) -> tuple[int, int]:
    """(m, e): m * 2^e is the float32 nearest to 1 / sqrt(moment + addend), 2^23 <= m < 2^24."""
    total = moment + addend
    # 1 / sqrt(total) = sqrt(denominator / numerator); its floor at 24 bits and half a bit is an integer square root.
    guess = (total.numerator.bit_length() - total.denominator.bit_length()) // 2
    shift = SIGNIFICAND + 2 + guess
    top, bottom = total.denominator, total.numerator
    scaled = (top << 2 * shift) // bottom if shift >= 0 else top // (bottom << -2 * shift)
    root = math.isqrt(scaled)
    extra = root.bit_length() - SIGNIFICAND
    exact = root * root * bottom == (top << 2 * shift if shift >= 0 else Fraction(top, 1 << -2 * shift))
    m, rest, half = root >> extra, root & ((1 << extra) - 1), 1 << (extra - 1)
    m += rest > half or (rest == half and (not exact or bool(m & 1)))
    e = extra - shift
    return (m >> 1, e + 1) if m >> SIGNIFICAND else (m, e)


def reciprocal_roots(moment: Array, addend: Fraction) -> tuple[Array, Array]:
    """(m, e) as `reciprocal_root`, int64 of the shape of `moment`, int64 or Python integers."""
    known, place = np.unique(moment, return_inverse=True)
    near = 1 / np.sqrt(known.astype(np.float64) + float(addend))
    fraction, exponent = np.frexp(near)
    scaled = fraction * 2.0**SIGNIFICAND
    m, e = np.rint(scaled).astype(np.int64), exponent.astype(np.int64) - SIGNIFICAND
    part = scaled - np.floor(scaled)
    unsure = (np.abs(part - 0.5) < _SURE) | (m >> SIGNIFICAND > 0) | (fraction == 0.5)
    for i in np.flatnonzero(unsure):
        m[i], e[i] = reciprocal_root(int(known[i]), addend)
    place = place.reshape(moment.shape)
    return m[place], e[place]


def normalized(q: Array, centered: bool, addend: Fraction) -> Array:
    """float32 of the shape of `q`, int64 rows along the last axis."""
    element, moment = moments(q, centered)
    m, e = reciprocal_roots(moment, addend)
    product = (element * m[..., None]).astype(np.float32)  # rounded once
    return np.asarray(np.ldexp(product, e[..., None].astype(np.int32)))
