"""TFLite's rescalings of integers, from their definitions: floor divisions of exact int64 products."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array


def double(x: Array, value: Array | int, exponent: Array | int) -> Array:
    """x * value / 2^31 to the nearest, ties up, after a left shift by a positive exponent; then right, ties away."""
    exponent = np.asarray(exponent, np.int64)
    shifted = np.asarray(x, np.int64) * np.left_shift(np.int64(1), np.maximum(exponent, 0))
    high = np.floor_divide(shifted * np.asarray(value, np.int64) + (1 << 30), 1 << 31)
    return divided(np.asarray(high), np.left_shift(np.int64(1), np.maximum(-exponent, 0)))


def divided(x: Array, power: Array | int) -> Array:
    """x / power to the nearest, ties away from zero."""
    power = np.asarray(power, np.int64)
    return np.asarray(np.sign(x) * np.floor_divide(2 * np.abs(x) + power, 2 * power))


def single(x: Array, value: Array, exponent: Array) -> Array:
    """x * value * 2^(exponent - 31) with 15 bits of the value, ties up: int16x8 layers."""
    short = np.where(np.asarray(value) >= 0x7FFF0000, 0x7FFF, np.floor_divide(np.asarray(value) + (1 << 15), 1 << 16))
    unit = np.left_shift(np.int64(1), 15 - np.asarray(exponent, np.int64))
    return np.asarray(np.floor_divide(2 * np.asarray(x, np.int64) * short + unit, 2 * unit))


def in_double(x: Array, ratio: list[Fraction]) -> Array:
    """One float64 product, ties away from zero."""
    factor = np.array([float(r) for r in ratio])
    product = np.asarray(x, np.int64).astype(np.float64) * factor
    magnitude = np.abs(product)
    below = np.floor(magnitude)
    return np.asarray(np.sign(product) * (below + (magnitude - below >= 0.5))).astype(np.int64)


def in_single(x: Array, factor: list[Fraction], low: int, high: int, zero: int) -> Array:
    """One float32 product, limited, half to even, then the zero point: XNNPACK."""
    product = np.asarray(x, np.int64).astype(np.float32) * np.array([float(f) for f in factor], np.float32)
    limited = np.clip(product, np.float32(low - zero), np.float32(high - zero))
    return np.asarray(np.rint(limited).astype(np.int64) + zero)
