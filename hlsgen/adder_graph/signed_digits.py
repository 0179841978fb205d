"""Integers as few digits of -1 and 1."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array


def digits(value: int) -> list[tuple[int, int]]:
    """(shift, -1 or 1) of each digit that is not 0, lowest first: of the forms with the fewest digits one with low shifts.

    That is the canonical form, but 2 + 1 in place of 4 - 1: so more weights have digits with the same shift and sign.
    """
    found: dict[int, int] = {}
    shift = 0
    while value:
        if value & 1:
            found[shift] = 2 - (value & 3)
            value -= found[shift]
        value >>= 1
        shift += 1
    for top in range(shift - 1, 1, -1):
        digit = found.get(top)
        if digit is not None and found.get(top - 2) == -digit:
            del found[top]
            found[top - 1] = found[top - 2] = digit
    return sorted(found.items())


def count_digits(values: Array) -> int:
    """Digits of all values int64, that are below 2^60 in magnitude."""
    size = np.abs(values)
    apart = np.ascontiguousarray(size ^ (3 * size))
    return int(np.unpackbits(apart.view(np.uint8)).sum())
