"""Functions of one 8-bit code, entry by entry in Python's integers and fractions: the second derivation of tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.tflite import scales
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import divided, double
from hlsgen.certify.second_reading.tflite.wide_tables import wide_table
from hlsgen.numerics.fixed import Array

#: A code of the input -> the code of the result, not yet limited to its type.
Function = Callable[[int], int]
#: Factors exp(-2^n) with 31 fraction bits for n = -2 to 4: gemmlowp's fixed-point exponential.
_POWERS = [round(math.exp(-(2.0**n)) * 2**31) for n in range(-2, 5)]


def table(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Array | None:
    """The results for all codes of the input in order, int64, or None if this form is not read a second time."""
    if "int16" in (x.type, y.type) and len(x.scale) == len(y.scale) == 1:
        return wide_table(operator, x, y, runtime)
    if x.type not in ("int8", "uint8") or y.type not in ("int8", "uint8") or len(x.scale) != 1 or len(y.scale) != 1:
        return None
    function = _FUNCTIONS[operator.kind](operator, x, y, runtime)
    if function is None:
        return None
    low, high = scales.LIMITS[y.type]
    first, last = scales.LIMITS[x.type]
    return np.array([min(max(function(code), low), high) for code in range(first, last + 1)], np.int64)


def _rescaled(x: int, ratio: Fraction) -> int:
    """DOUBLE; by a negative multiplier: by its absolute value, then negated."""
    value, exponent = scales.multiplier(ratio)
    result = int(double(np.int64(x), abs(value), exponent))
    return -result if value < 0 else result


def _relu(activation: int) -> Callable[[Operator, Tensor, Tensor, str], Function | None]:
    def make(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function:
        ratio = scales.quotient(runtime, scales.exact(x.one_scale), scales.exact(y.one_scale))
        low, high = scales.activation_range(activation, y.type, y.one_scale, y.one_zero, False)
        return lambda code: min(max(_rescaled(code - x.one_zero, ratio) + y.one_zero, low), high)

    return make


def _relu6(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function | None:
    if runtime != "tflm":
        return _relu(3)(operator, x, y, runtime)
    high = x.one_zero + scales.nearest_away(scales.rounded(6 / scales.exact(x.one_scale), scales.SINGLE))
    return lambda code: min(max(code, x.one_zero), high)


def _leaky(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function | None:
    data, result, alpha = scales.exact(x.one_scale), scales.exact(y.one_scale), scales.exact(operator.options["alpha"])
    if runtime == "litert":
        rising = scales.rounded(data / result, scales.SINGLE)
        falling = scales.rounded(rising * alpha, scales.SINGLE)
        if not Fraction(1, 256) <= rising <= 128 or not Fraction(1, 256) <= abs(falling) <= 127:
            return None
        factors = round(256 * falling), round(256 * rising)
        return lambda code: _eighth(code - x.one_zero, factors[code >= x.one_zero]) + y.one_zero
    ratios = scales.product_quotient(runtime, data, alpha, result), scales.quotient(runtime, data, result)
    return lambda code: _rescaled(code - x.one_zero, ratios[code >= x.one_zero]) + y.one_zero


def _eighth(x: int, factor: int) -> int:
    return (2 * x * factor + 256) // 512


def _quantize(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function | None:
    ratio = scales.rounded(scales.exact(x.one_scale) / scales.exact(y.one_scale), scales.DOUBLE)
    if x.type != y.type and ratio == 1 and abs(x.one_zero - y.one_zero) == 128:
        return lambda code: code - x.one_zero + y.one_zero
    if runtime == "litert":
        single = scales.rounded(ratio, scales.SINGLE)
        if x.type != y.type or not Fraction(1, 256) <= single <= 128:
            return None
        return lambda code: _eighth(code - x.one_zero, round(256 * single)) + y.one_zero
    return lambda code: _rescaled(code - x.one_zero, ratio) + y.one_zero


def _sigmoid(steep: bool) -> Callable[[Operator, Tensor, Tensor, str], Function | None]:
    """LOGISTIC, or TANH if `steep`."""

    def make(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function:
        if runtime == "tflm":
            return _fixed_point(steep, x)
        scale, unit = scales.exact(x.one_scale), scales.rounded(1 / scales.exact(y.one_scale), scales.SINGLE)

        def function(code: int) -> int:
            real = scales.rounded(scale * (code - x.one_zero), scales.SINGLE)
            if runtime == "litert":
                value = scales.rounded(scales.rounded(_real(steep, real), scales.SINGLE) * unit, scales.SINGLE)
                return round(scales.rounded(value + y.one_zero, scales.SINGLE))
            return scales.nearest_away(scales.rounded(_single_real(steep, real) * unit, scales.SINGLE)) + y.one_zero

        return function

    return make


def _real(steep: bool, real: Fraction) -> Fraction:
    """The function in float64."""
    if steep:
        return scales.exact(math.tanh(real))
    power = scales.exact(math.exp(min(real, Fraction(700))))
    return scales.rounded(power / scales.rounded(1 + power, scales.DOUBLE), scales.DOUBLE)


def _single_real(steep: bool, real: Fraction) -> Fraction:
    """The function in float32, with its exponential or tangent correctly rounded."""
    if steep:
        return scales.rounded(scales.exact(math.tanh(real)), scales.SINGLE)
    power = scales.rounded(scales.exact(math.exp(min(-real, Fraction(88)))), scales.SINGLE)
    return scales.rounded(1 / scales.rounded(1 + power, scales.SINGLE), scales.SINGLE)


def _fixed_point(steep: bool, x: Tensor) -> Function:
    """tflite-micro: the scaled code has 4 integer bits and 27 fraction bits."""
    value, exponent = math.frexp(float(scales.exact(x.one_scale) * 2**27))
    factor = scales.nearest_away(scales.exact(value) * 2**31)
    radius = math.floor(Fraction(15 * 2**27) / Fraction(2) ** exponent)
    bits, zero = (24, 0) if steep else (23, -128)

    def function(code: int) -> int:
        centred = code - x.one_zero
        if abs(centred) >= radius:
            return 127 if centred > 0 else -128
        scaled = int(double(np.int64(centred), factor, exponent))
        return int(divided(np.int64(_fixed_sigmoid(steep, scaled)), 1 << bits)) + zero

    return function


def high_product(a: int, b: int) -> int:
    """a * b of numbers with 31 fraction bits, to the nearest, ties up."""
    return (a * b + (1 << 30)) >> 31


def _half(a: int, power: int) -> int:
    return int(divided(np.int64(a), 1 << power))


def _fixed_sigmoid(steep: bool, scaled: int) -> int:
    """logistic(scaled / 2^27) or tanh of it, with 31 fraction bits."""
    if scaled == 0:
        return 0 if steep else 1 << 30
    power = exponential(-abs(scaled), 26 if steep else 27)
    reciprocal = _newton(power)
    if steep:
        value = min((reciprocal - (1 << 29)) * 4, (1 << 31) - 1)
        return value if scaled > 0 else -value
    value = min(reciprocal * 2, (1 << 31) - 1)
    return value if scaled > 0 else (1 << 31) - 1 - value


def exponential(a: int, fraction: int) -> int:
    """exp(a / 2^fraction) for a < 0, with 31 fraction bits: a polynomial on [-1/4, 0), then the powers of e."""
    quarter = 1 << (fraction - 2)
    part = a % quarter - quarter
    x = (part << (31 - fraction)) + (1 << 28)
    square = high_product(x, x)
    third = round(2**31 / 3)
    inner = _half(high_product(_half(high_product(square, square), 2) + high_product(square, x), third) + square, 1)
    start = round(math.exp(-0.125) * 2**31)
    result = start + high_product(x + inner, start)
    quarters = (part - a) // quarter
    for n, factor in enumerate(_POWERS):
        if quarters >> n & 1:
            result = high_product(result, factor)
    return result


def _newton(a: int) -> int:
    """2 / (1 + a / 2^31) in three steps of Newton's method, with 29 fraction bits."""
    half = _half(a + (1 << 31) - 1, 1)
    x = round(48 / 17 * 2**29) - high_product(half, round(32 / 17 * 2**29))
    for _ in range(3):
        x += 4 * high_product(x, (1 << 29) - high_product(half, x))
    return x


def _hard_swish(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> Function | None:
    fine = scales.rounded(scales.exact(x.one_scale) / 128, scales.SINGLE)
    three = scales.rounded(scales.rounded(Fraction(3), scales.SINGLE) / 32768, scales.SINGLE)
    out, out_exponent = _short(scales.rounded(fine / scales.exact(y.one_scale), scales.SINGLE))
    gate, gate_exponent = _short(scales.rounded(fine / three, scales.SINGLE))
    if out_exponent > 0:
        return None

    def limited(value: int) -> int:
        return min(max(value, -32768), 32767)

    def high(a: int, b: int) -> int:
        return min((2 * a * b + 32768) // 65536, 32767)

    def function(code: int) -> int:
        fine_code = (code - x.one_zero) * 128
        weight = limited(fine_code << (gate_exponent - 1)) if gate_exponent > 0 else fine_code
        weight = high(weight, gate)
        weight = limited(weight * 2) if gate_exponent > 0 else _half(weight, -gate_exponent)
        weight = (weight + 32768) // 2
        product = weight * high(fine_code, out)
        toward_zero = abs(product) // 32768 * (1 if product >= 0 else -1)
        return _half(toward_zero, -out_exponent) + y.one_zero

    return function


def _short(ratio: Fraction) -> tuple[int, int]:
    """A multiplier with 15 bits, and its exponent."""
    value, exponent = scales.multiplier(ratio)
    return min((value + 32768) // 65536, 32767), exponent


_FUNCTIONS: dict[str, Callable[[Operator, Tensor, Tensor, str], Function | None]] = {
    "RELU": _relu(1),
    "RELU_N1_TO_1": _relu(2),
    "RELU6": _relu6,
    "LEAKY_RELU": _leaky,
    "QUANTIZE": _quantize,
    "LOGISTIC": _sigmoid(False),
    "TANH": _sigmoid(True),
    "HARD_SWISH": _hard_swish,
}
#: Operators with a table.
KINDS = tuple(_FUNCTIONS)
