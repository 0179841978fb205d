"""The cost of a multiplication (module hg_multiply) and of its constants, fitted to synthesis for 7 series."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array

#: A memory of this many bits or more becomes block RAM.
_BLOCK = 1 << 14


def digits(value: int) -> int:
    """The number of nonzero digits in the canonical signed-digit form: 7 = 8 - 1 has two."""
    return ((3 * value) ^ value).bit_count() if value >= 0 else digits(-value)


def low_zeros(*values: Array) -> int:
    """The number of low bits that are zero in all values."""
    all_bits = int(np.bitwise_or.reduce(np.concatenate([v.ravel() for v in values])))
    return (all_bits & -all_bits).bit_length() - 1 if all_bits else 0


def rows(bits: int) -> int:
    """Rows of adders of a multiplication by a number of `bits` bits, sign included."""
    return -(-bits // 2)


def dsp_blocks(x_bits: int, bits: int) -> int:
    """DSP48 blocks of a signed product of numbers of these widths."""
    small, great = sorted((x_bits, bits))
    return 1 if small <= 18 and great <= 25 else -(-small // 17) * -(-great // 24)


def cost(x_bits: int, bits: int, lanes: int, constants: Array | None, dsp: bool) -> tuple[float, int]:
    """(LUT, DSP blocks) of one product in each lane. `constants` int64 (lanes,): the multipliers, if they are fixed."""
    if dsp:
        count = dsp_blocks(x_bits, bits)
        return (0.0 if count == 1 else (x_bits + bits) * 1.5) * lanes, count * lanes
    if constants is None:
        return lanes * rows(bits) * (x_bits + 3.3), 0
    return sum(max(0, digits(int(m)) - 1) * (x_bits + 2.0) for m in constants), 0


def memory(folds: int, lanes: int, bits: int) -> tuple[float, int]:
    """(LUT, bits of block RAM) of a memory of constants, `bits` bits for each lane and fold."""
    if folds == 1:
        return 0.0, 0
    if folds * lanes * bits >= _BLOCK:
        return 0.0, folds * lanes * bits
    return lanes * bits * (0.4 if folds <= 4 else 1.0 if folds <= 64 else folds / 50), 0
