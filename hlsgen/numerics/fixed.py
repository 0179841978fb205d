"""Integer types, rounding modes and the float32 step that every quantizer is built from.

This is the only module that rounds a number to an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Rounding(IntEnum):
    """QONNX rounding modes; the value is the parameter MODE of the Verilog modules."""

    ROUND = 0
    CEIL = 1
    FLOOR = 2
    UP = 3
    DOWN = 4
    HALF_UP = 5
    HALF_DOWN = 6


#: Accepted names besides the members themselves (in any case). Brevitas exports ROUND_TO_ZERO.
ALIASES = {"HALF_EVEN": Rounding.ROUND, "ROUND_TO_ZERO": Rounding.DOWN}


def parse_rounding(name: str) -> Rounding | None:
    """The mode with that name in any case, or None."""
    key = name.upper()
    return ALIASES[key] if key in ALIASES else Rounding.__members__.get(key)


def _half_up(x: Array) -> Array:
    return np.asarray(np.sign(x) * np.floor(np.abs(x) + x.dtype.type(0.5)))


def _half_down(x: Array) -> Array:
    return np.asarray(np.sign(x) * np.ceil(np.abs(x) - x.dtype.type(0.5)))


_ROUND: dict[Rounding, Callable[[Array], Array]] = {
    Rounding.ROUND: np.round,
    Rounding.CEIL: np.ceil,
    Rounding.FLOOR: np.floor,
    Rounding.UP: lambda x: np.sign(x) * np.ceil(np.abs(x)),
    Rounding.DOWN: np.trunc,
    Rounding.HALF_UP: _half_up,
    Rounding.HALF_DOWN: _half_down,
}


def round_float(x: Array, mode: Rounding) -> Array:
    """Round in x's own float dtype, with that dtype's quirks (QONNX reference semantics).

    HALF_UP is sign(x)*floor(|x|+0.5) evaluated in the dtype: float32 0.49999997 gives 1.
    """
    return _ROUND[mode](x)


def round_away(x: Array) -> Array:
    """The nearest integer, ties away from zero, exact in x's float dtype: C's round()."""
    truncated = np.trunc(x)
    return np.asarray(truncated + np.sign(x) * (np.abs(x - truncated) >= 0.5))


def round_shift(value: Array, shift: int, mode: Rounding) -> Array:
    """round(value / 2^shift) in exact integers; value int64, shift 0..62."""
    if shift == 0:
        return value
    floor = value >> shift
    fraction = value - (floor << shift)
    half = np.int64(1) << (shift - 1)
    inexact, above, tie = fraction != 0, fraction > half, fraction == half
    negative = value < 0
    match mode:
        case Rounding.ROUND:
            up = above | (tie & (floor % 2 != 0))
        case Rounding.CEIL:
            up = inexact
        case Rounding.FLOOR:
            up = np.zeros_like(inexact)
        case Rounding.UP:
            up = inexact & ~negative
        case Rounding.DOWN:
            up = inexact & negative
        case Rounding.HALF_UP:
            up = above | (tie & ~negative)
        case Rounding.HALF_DOWN:
            up = above | (tie & negative)
    result: Array = floor + up
    return result


@dataclass(frozen=True)
class IntType:
    """Integers lo..hi inclusive, in the fewest bits; two's complement if lo < 0."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        assert self.lo <= self.hi

    @property
    def signed(self) -> bool:
        return self.lo < 0

    @property
    def bits(self) -> int:
        if self.signed:
            return max((-self.lo - 1).bit_length(), self.hi.bit_length()) + 1
        return max(1, self.hi.bit_length())

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'uint'}{self.bits} [{self.lo}, {self.hi}]"


def int_type(bits: int, signed: bool, narrow: bool = False) -> IntType:
    """Bounds as QONNX computes them: narrow excludes the lowest signed or the highest unsigned code.

    QONNX clamps in float32, so bounds of more than 24 bits are rounded to float32, as far as
    the bits hold them. Hence a narrow quantizer of 32 bits does reach its lowest code.
    """
    lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    low, high = (lo + 1, hi) if signed and narrow else (lo, hi - narrow)
    return IntType(max(lo, int(np.float32(low))), min(hi, int(np.float32(high))))


def product_to_float32(integer: Array, scale: Array) -> Array:
    """round_to_float32(integer * scale) with a single rounding.

    `integer` is int64 with |integer| < 2^53, `scale` float64 with at most 48 significant bits. The
    float64 product is split into its rounded value and its exact error (Dekker, 1971) and rounded to
    odd. The following rounding to float32 is innocuous because 53 >= 24 + 2 (Boldo and Melquiond, 2008).
    """
    a = integer.astype(np.float64)
    a, b = np.broadcast_arrays(a, np.asarray(scale, np.float64))
    product = a * b
    a_hi, b_hi = _high_half(a), _high_half(b)
    a_lo, b_lo = a - a_hi, b - b_hi
    error = ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo
    even = (product.view(np.int64) & 1) == 0
    error_direction = np.where(error > 0, np.inf, -np.inf)
    odd = np.where((error != 0) & even, np.nextafter(product, error_direction), product)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(odd.astype(np.float32))


def fused_multiply_add(x: Array, factor: Array, value: Array) -> Array:
    """fl32(x * factor + value) of float32 arrays with a single rounding.

    The product is exact in float64. The sum is rounded to odd there (its exact error is Knuth's
    TwoSum), and then to float32, which is innocuous.
    """
    product, addend = np.broadcast_arrays(x.astype(np.float64) * factor.astype(np.float64), value.astype(np.float64))
    total = product + addend
    rounded_addend = total - product
    error = (product - (total - rounded_addend)) + (addend - rounded_addend)
    even = (total.view(np.int64) & 1) == 0
    odd = np.where((error != 0) & even, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(odd.astype(np.float32))


def _high_half(x: Array) -> Array:
    """The upper 26 bits of a float64 (Veltkamp splitting)."""
    scaled = x * 134217729.0
    result: Array = scaled - (scaled - x)
    return result
