"""Integers as few digits of -1 and 1."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array


def digits(value: int) -> list[tuple[int, int]]:
    """(shift, -1 or 1) of each nonzero digit, lowest first: a form with the fewest digits and low shifts.

    This is the canonical form, but 2 + 1 in place of 4 - 1, so that more weights have digits with the same shift and
    sign.
    """
    digit_at: dict[int, int] = {}
    shift = 0
    while value:
        if value & 1:
            digit_at[shift] = 2 - (value & 3)
            value -= digit_at[shift]
        value >>= 1
        shift += 1
    for top in range(shift - 1, 1, -1):
        digit = digit_at.get(top)
        if digit is not None and digit_at.get(top - 2) == -digit:
            del digit_at[top]
            digit_at[top - 1] = digit_at[top - 2] = digit
    return sorted(digit_at.items())


def count_digits(values: Array) -> int:
    """Total number of digits of all values, int64, below 2^60 in magnitude."""
    size = np.abs(values)
    nonzero_digits = np.ascontiguousarray(size ^ (3 * size))
    return int(np.unpackbits(nonzero_digits.view(np.uint8)).sum())
