"""Bounds of powers of e, in integers; float32 numbers and the middles between them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

#: Fraction bits of bounds; terms of the series; the largest useful argument.
_BITS, _TERMS, _MAX_ARGUMENT = 400, 60, 256


def bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of exp(-x), x >= 0: the alternating series of a small fraction of x, squared repeatedly."""
    if x == 0:
        return Fraction(1), Fraction(1)
    if x > _MAX_ARGUMENT:
        return Fraction(0), Fraction(1, 1 << _MAX_ARGUMENT)
    halvings = int(2 * x).bit_length()
    small = x / (1 << halvings)  # below 1/2
    low, high = 0, 1 << _BITS
    start = (small.numerator << _BITS) // small.denominator
    low, high = _series(start + 1, upward=False), _series(start, upward=True)
    for _ in range(halvings):
        low, high = low * low >> _BITS, -(-high * high >> _BITS)
    return Fraction(low, 1 << _BITS), Fraction(high, 1 << _BITS)


def _series(x: int, *, upward: bool) -> int:
    """A bound of exp(-x) in fixed point.

    Terms are truncated; the result is moved by more than one unit for each term.
    """
    total, term = 0, 1 << _BITS
    for n in range(_TERMS):
        total += -term if n % 2 else term
        term = (term * x >> _BITS) // (n + 1)
    return total + (_TERMS * _TERMS if upward else -_TERMS * _TERMS)


def float_of(word: int) -> Fraction:
    """The value of a float32 that is finite and not negative; -1 for other words."""
    exponent, mantissa = word >> 23, word & 0x7FFFFF
    if exponent >= 255:
        return Fraction(-1)  # equal to no power
    significand, power = (mantissa, -149) if exponent == 0 else (mantissa | 0x800000, exponent - 150)
    return Fraction(significand) * Fraction(2) ** power


def middles(value: Fraction) -> tuple[Fraction, Fraction]:
    """The middles between a float32 of 1 or less and its neighbours; -1 instead of the lower one at 0."""
    word = int(np.float32(float(value)).view(np.uint32))
    above = (float_of(word + 1) + value) / 2
    return ((float_of(word - 1) + value) / 2 if word else Fraction(-1)), above


def shown(value: Fraction) -> str:
    return f"{float(value):.9g}"
