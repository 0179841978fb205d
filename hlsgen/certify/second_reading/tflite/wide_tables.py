"""Functions of one code from or to 16 bits, on arrays of all codes: the second derivation of their results."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.tflite import scales
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import divided, double
from hlsgen.numerics.fixed import Array

_LOW, _HIGH = -32768, 32767
#: Factors exp(-2^n) with 15 fraction bits for n = -2 to 4.
_POWERS = [round(math.exp(-(2.0**n)) * 2**15) for n in range(-2, 5)]


def wide_table(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Array | None:
    """The results for all codes in order, int64, or None for operators without kernels for these types."""
    function = _FUNCTIONS.get(operator.kind)
    zeros = [tensor.one_zero for tensor in (x, y) if tensor.type == "int16"]
    if function is None or any(zeros) or (x.type != y.type and operator.kind != "QUANTIZE"):
        return None
    low, high = scales.LIMITS[x.type]
    return np.clip(function(operator, np.arange(low, high + 1), x, y, runtime), *scales.LIMITS[y.type])


def _rescaled(codes: Array, ratio: Fraction) -> Array:
    """DOUBLE; by a negative multiplier: by its absolute value, then negated."""
    value, exponent = scales.multiplier(ratio)
    sign = np.sign(value)
    # The shift to the left leaves 32 bits above an exponent of 15: it wraps.
    shifted = (codes << max(exponent, 0)).astype(np.int32).astype(np.int64)
    return np.asarray(double(shifted, abs(value), min(exponent, 0)) * sign)


def _relu(activation: int) -> Callable[[Operator, Array, Tensor, Tensor, str], Array]:
    def function(operator: Operator, codes: Array, x: Tensor, y: Tensor, runtime: str) -> Array:
        if activation == 3 and runtime == "tflm":
            highest = scales.nearest_away(scales.rounded(6 / scales.exact(x.one_scale), scales.SINGLE))
            return np.clip(codes, 0, highest)
        ratio = scales.quotient(runtime, scales.exact(x.one_scale), scales.exact(y.one_scale))
        return np.clip(_rescaled(codes, ratio), *scales.activation_range(activation, y.type, y.one_scale, 0, False))

    return function


def _quantize(operator: Operator, codes: Array, x: Tensor, y: Tensor, runtime: str) -> Array:
    ratio = scales.rounded(scales.exact(x.one_scale) / scales.exact(y.one_scale), scales.DOUBLE)
    return _rescaled(codes - x.one_zero, ratio) + y.one_zero


def _leaky(operator: Operator, codes: Array, x: Tensor, y: Tensor, runtime: str) -> Array:
    data, result, alpha = scales.exact(x.one_scale), scales.exact(y.one_scale), scales.exact(operator.options["alpha"])
    rising = _rescaled(codes, scales.quotient(runtime, data, result))
    falling = _rescaled(codes, scales.product_quotient(runtime, data, alpha, result))
    return np.where(codes < 0, falling, rising)


def _sigmoid(steep: bool) -> Callable[[Operator, Array, Tensor, Tensor, str], Array]:
    """LOGISTIC, or TANH if `steep`."""

    def function(operator: Operator, codes: Array, x: Tensor, y: Tensor, runtime: str) -> Array:
        scale = scales.exact(x.one_scale)
        power = _power_of_two(scale)
        shift = None if power is None or not 0 <= 12 + power <= int(steep) else 12 + power
        if shift is not None and runtime == "litert":
            return fixed_sigmoid(steep, np.clip(codes << shift, _LOW, _HIGH))
        if shift is not None:
            return lines(steep, codes * (3 << shift))
        factor, doublings = scale * 12288, 0
        while 2 * factor <= _HIGH and doublings <= 30:
            factor, doublings = 2 * factor, doublings + 1
        return lines(
            steep, np.floor_divide(2 * codes * int(factor) + (1 << doublings if doublings else 0), 2 << doublings)
        )

    return function


def _power_of_two(scale: Fraction) -> int | None:
    """The exponent of a scale within a factor of about 1.0007 of a power of two."""
    logarithm = math.log2(scale)
    nearest = round(logarithm)
    return nearest if abs(logarithm - nearest) < 1e-3 else None


# --------------------------------------------------------------------------- lines between knots


def _knot(number: int) -> int:
    """The logistic function of number / 24, corrected by its second derivative, with 16 fraction bits."""
    if number >= 255:
        return 65535
    half = math.tanh(number / 48)
    bend = -half * (1 - half * half) / 4
    return math.floor(65536 * ((1 + half) / 2 - bend / 9216) + 0.5)


def lines(steep: bool, scaled: Array) -> Array:
    """The function of `scaled` / 12288, on a line between the knots on both sides."""
    distance = 256 if steep else 512
    size = np.abs(scaled)
    number = np.minimum(size // distance, 255)
    knots = np.array([_knot(n) for n in range(257)])
    start, end = knots[number], knots[number + 1]
    total = start * distance + (size - number * distance) * (end - start)
    if steep:
        # 2 * S - 1, with 15 fraction bits.
        total = np.where(number == 255, 65535 * 256, total) - (1 << 23)
        return np.floor_divide(np.where(scaled < 0, 127 - total, total + 128), 256)
    total = np.where(number == 255, 32767 * 1024, total)
    return np.floor_divide(np.where(scaled < 0, (1 << 25) - total + 511, total + 512), 1024)


# --------------------------------------------------------------------------- fixed point of 16 bits


def _product(a: Array, b: Array | int) -> Array:
    """a * b of numbers with 15 fraction bits, to the nearest, ties up."""
    return np.asarray(np.minimum(np.floor_divide(a * b + (1 << 14), 1 << 15), _HIGH))


def _wrapped(a: Array) -> Array:
    return np.asarray(a).astype(np.int16).astype(np.int64)


def fixed_sigmoid(steep: bool, scaled: Array, fraction: int = 12) -> Array:
    """logistic(scaled / 2^fraction) or tanh of it, with 15 fraction bits: gemmlowp on 16 bits."""
    power = _exponential(np.maximum(-np.abs(scaled), _LOW), fraction - int(steep))
    reciprocal = _newton(power)
    if steep:
        size = np.clip(_wrapped(reciprocal - (1 << 13)) * 4, _LOW, _HIGH)
        return np.asarray(np.sign(scaled) * size)
    size = np.clip(reciprocal * 2, _LOW, _HIGH)
    return np.where(scaled == 0, 1 << 14, np.where(scaled > 0, size, _HIGH - size))


def _exponential(a: Array, fraction: int) -> Array:
    """exp(a / 2^fraction) for a <= 0, with 15 fraction bits: a polynomial on [-1/4, 0), then the powers of e."""
    quarter = 1 << (fraction - 2)
    part = a % quarter - quarter
    x = _wrapped((part << (15 - fraction)) + (1 << 12))
    square = _product(x, x)
    third, start = round(2**15 / 3), round(math.exp(-0.125) * 2**15)
    inner = _wrapped(divided(_product(square, square), 4) + _product(square, x))
    tail = divided(_wrapped(_product(inner, third) + square), 2)
    result = np.clip(start + _product(_wrapped(x + tail), start), _LOW, _HIGH)
    quarters = (part - a) // quarter
    for n, factor in enumerate(_POWERS):
        if n < 17 - fraction:
            result = np.where(quarters >> n & 1, _product(result, factor), result)
    return np.where(a == 0, _HIGH, result)


def _newton(a: Array) -> Array:
    """2 / (1 + a / 2^15) in three steps of Newton's method, with 13 fraction bits."""
    half = (a + _HIGH + 1) // 2
    x = _wrapped(round(48 / 17 * 2**13) + _product(half, -round(32 / 17 * 2**13)))
    for _ in range(3):
        x = _wrapped(x + np.clip(4 * _product(x, _wrapped((1 << 13) - _product(half, x))), _LOW, _HIGH))
    return x


_FUNCTIONS: dict[str, Callable[[Operator, Array, Tensor, Tensor, str], Array]] = {
    "RELU": _relu(1),
    "RELU6": _relu(3),
    "LEAKY_RELU": _leaky,
    "QUANTIZE": _quantize,
    "LOGISTIC": _sigmoid(False),
    "TANH": _sigmoid(True),
}
