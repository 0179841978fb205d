"""Integer rescalings of TFLite's kernels, element by element on int64 arrays.

Sources: gemmlowp 16e8662 (fixedpoint.h), common.cc of tflite-micro 90b983c.
"""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.multipliers import Multiplier


def wrap(x: Array, bits: int = 32) -> Array:
    """x modulo 2^bits as a signed integer: C's conversion to int32 or int16."""
    half = np.int64(1) << (bits - 1)
    return np.asarray(((x + half) & ((np.int64(1) << bits) - 1)) - half)


def high_product(a: Array, b: Array, bits: int = 32) -> Array:
    """SaturatingRoundingDoublingHighMul: a * b / 2^(bits - 1) to the nearest, ties up; at most 2^(bits - 1) - 1.

    |a|, |b| <= 2^(bits - 1).
    """
    rounded = (a * b + (np.int64(1) << (bits - 2))) >> (bits - 1)
    return np.asarray(np.minimum(rounded, (np.int64(1) << (bits - 1)) - 1))


def divide_by_power(x: Array, exponent: Array | int) -> Array:
    """RoundingDivideByPOT: x / 2^exponent to the nearest, ties away from zero; exponent >= 0."""
    power = np.int64(1) << np.asarray(exponent, np.int64)
    remainder = x & (power - 1)
    limit = ((power - 1) >> 1) + (x < 0)
    return np.asarray((x >> exponent) + (remainder > limit))


def rescale(x: Array, multiplier: Multiplier) -> Array:
    """MultiplyByQuantizedMultiplier of int32: x * multiplier, rounded twice; a shift to the left wraps."""
    shift = multiplier.exponent
    return divide_by_power(high_product(wrap(x << max(shift, 0)), np.int64(multiplier.value)), max(-shift, 0))


def rescale_once(x: Array, multiplier: Multiplier) -> Array:
    """x * multiplier of int64, rounded once, ties up: LiteRT's optimized ADD of int16 tensors of one shape."""
    shift = 31 - multiplier.exponent
    return np.asarray((x * multiplier.value + (1 << (shift - 1))) >> shift)


def shift_left(x: Array, shift: int, bits: int) -> Array:
    """x * 2^shift, saturated to signed integers of `bits` bits; shift >= 0."""
    largest = (1 << (bits - 1)) - 1
    return np.asarray(np.clip(x << shift, -largest - 1, largest))
