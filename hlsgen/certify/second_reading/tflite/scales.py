"""Multipliers and bounds of TFLite operators from exact fractions: the second derivation.

A product or quotient that a runtime rounds to float32 or float64 is an exact fraction here, rounded explicitly.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

#: Bits of significands.
SINGLE, DOUBLE = 24, 53
#: Exponents of the smallest positive numbers.
_SMALLEST = {SINGLE: -149, DOUBLE: -1074}
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
#: Real bounds of fused activations by their numbers in the schema.
BOUNDS: dict[int, tuple[int | None, int | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}


def exact(number: float | np.floating) -> Fraction:
    return Fraction(float(number))


def rounded(value: Fraction, bits: int) -> Fraction:
    """The nearest floating-point number with `bits` bits, ties to even."""
    if not value:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, _SMALLEST[bits])
    return round(value / unit) * unit


def nearest_away(value: Fraction) -> int:
    """The nearest integer, ties away from zero."""
    nearest = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return nearest if value >= 0 else -nearest


def multiplier(ratio: Fraction) -> tuple[int, int]:
    """(m, e) with ratio near m * 2^(e - 31) and 2^30 <= |m| < 2^31; (0, 0) for ratios near 0."""
    if not ratio:
        return 0, 0
    exponent = 0
    while abs(ratio) >= Fraction(2) ** exponent:
        exponent += 1
    while abs(ratio) < Fraction(2) ** (exponent - 1):
        exponent -= 1
    value = nearest_away(ratio * Fraction(2) ** (31 - exponent))
    if abs(value) == 1 << 31:
        value, exponent = value // 2, exponent + 1
    return (value, exponent) if exponent >= -31 else (0, 0)


def layer_ratio(kind: str, type: str, data: Fraction, weight: Fraction, result: Fraction) -> Fraction:
    """data * weight / result, with the product in float32 where a kernel takes it so."""
    is_single = kind != "FULLY_CONNECTED" and type == "uint8"
    product = rounded(data * weight, SINGLE if is_single else DOUBLE)
    return rounded(product / result, DOUBLE)


def single_factor(data: Fraction, weight: Fraction, result: Fraction) -> Fraction:
    """fl(fl(data * weight) / result), float32: XNNPACK's factor."""
    return rounded(rounded(data * weight, SINGLE) / result, SINGLE)


def quotient(runtime: str, data: Fraction, result: Fraction) -> Fraction:
    """data / result: float64 in tflite-micro, float32 in LiteRT."""
    return rounded(data / result, DOUBLE if runtime == "tflm" else SINGLE)


def product_quotient(runtime: str, first: Fraction, second: Fraction, result: Fraction) -> Fraction:
    """first * second / result: float64 in tflite-micro, two roundings to float32 in LiteRT."""
    if runtime == "tflm":
        return rounded(rounded(first * second, DOUBLE) / result, DOUBLE)
    return single_factor(first, second, result)


def activation_range(activation: int, type: str, scale: np.float32, zero: int, xnnpack: bool) -> tuple[int, int]:
    """First and last code within a fused activation. Raises KeyError for one that no runtime has."""
    low, high = LIMITS[type]
    smallest, largest = BOUNDS[activation]

    def code(real: int) -> int:
        real_codes = rounded(Fraction(real) / exact(scale), SINGLE)
        if not xnnpack:
            return zero + nearest_away(real_codes)
        return round(min(max(rounded(real_codes + zero, SINGLE), Fraction(low)), Fraction(high)))

    return (
        low if smallest is None else max(low, code(smallest)),
        high if largest is None else min(high, code(largest)),
    )
