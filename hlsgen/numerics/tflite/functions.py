"""Operators of one code for each code: LOGISTIC, TANH, HARD_SWISH, LEAKY_RELU, RELU, RELU6, RELU_N1_TO_1, QUANTIZE.

Sources: kernels of the operator's name in tflite-micro 90b983c and LiteRT f674577; XNNPACK 75db3c0.
`CodeFunction.codes` gives the runtime's codes of any codes; for 8 bits, of all 256 of them, this is the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType, round_away
from hlsgen.numerics.tflite import multipliers
from hlsgen.numerics.tflite.fixed_point import INT32
from hlsgen.numerics.tflite.piecewise import logistic_of_int16, tanh_of_int16
from hlsgen.numerics.tflite.rescaling import divide_by_power, high_product, rescale, shift_left, wrap

Single = np.float32
#: tflite-micro divides by 1 << shift, of 64 bits with their sign.
_MOST_LEFT_SHIFT = 62


class UnsupportedFunction(Exception):
    """The runtime refuses the operator, or computes it by position in the tensor; the text is the reason."""


@dataclass(frozen=True)
class CodeType:
    """Codes of a tensor: (code - zero_point) * scale; scale a float32 number."""

    dtype: str
    scale: float
    zero_point: int

    @property
    def type(self) -> IntType:
        return multipliers.CODE_TYPES[self.dtype]

    @property
    def all_codes(self) -> Array:
        return np.arange(self.type.lo, self.type.hi + 1)

    def saturate(self, x: Array) -> Array:
        return np.clip(x, self.type.lo, self.type.hi).astype(np.int64)


@dataclass(frozen=True)
class CodeFunction:
    """An operator of one code in a runtime. alpha: float32 slope of LEAKY_RELU."""

    operator: str
    runtime: multipliers.Runtime
    data: CodeType
    result: CodeType
    alpha: float = 0.0

    def codes(self, x: Array) -> Array:
        """The int64 codes of the result, of int64 codes x. Raises UnsupportedFunction; KeyError if unknown."""
        return FUNCTIONS[self.operator](self, x)

    @property
    def has_8_bits(self) -> bool:
        return self.data.dtype in ("int8", "uint8") and self.result.dtype in ("int8", "uint8")

    @property
    def by_xnnpack(self) -> bool:
        """True if LITERT gives operators of this kind to XNNPACK."""
        return self.runtime is multipliers.Runtime.LITERT and self.has_8_bits and self.data.dtype == self.result.dtype


# --------------------------------------------------------------------------- logistic and tanh


def _logistic(f: CodeFunction, x: Array) -> Array:
    if f.data.dtype == "int16":
        return logistic_of_int16(f.runtime, x, f.data.scale)
    if f.runtime is multipliers.Runtime.TFLM:
        return _fixed_point(f, x, INT32.logistic, 8, -128)
    if f.runtime is multipliers.Runtime.LITERT_REF:
        return _float_table(f, x, _single_logistic)
    return _xnnpack_table(f, x, _double_logistic)


def _tanh(f: CodeFunction, x: Array) -> Array:
    if f.data.dtype == "int16":
        return tanh_of_int16(f.runtime, x, f.data.scale)
    if f.runtime is multipliers.Runtime.TFLM:
        return _fixed_point(f, x, INT32.tanh, 7, 0)
    if f.runtime is multipliers.Runtime.LITERT_REF:
        return _float_table(f, x, lambda v: np.tanh(v.astype(np.float64)).astype(Single))
    return _xnnpack_table(f, x, np.tanh)


def _double_logistic(v: Array) -> Array:
    # Below the overflow of exp the quotient is 1 already.
    exponential = np.exp(np.minimum(v, 700))
    return np.asarray(exponential / (1 + exponential))


def _single_logistic(v: Array) -> Array:
    # numpy's float32 exp is not expf of the C library; float64, rounded, is.
    with np.errstate(over="ignore"):
        exponential = np.exp(-v.astype(np.float64)).astype(Single)
    return np.asarray(Single(1) / (Single(1) + exponential))


def _fixed_point(
    f: CodeFunction, x: Array, function: Callable[[Array, int], Array], result_bits: int, zero_point: int
) -> Array:
    """The function in Q4, of codes within the range of Q4; beyond it, the lowest and the highest code."""
    integer_bits = 4
    fraction, shift = math.frexp(float(Single(f.data.scale)) * 2.0 ** (31 - integer_bits))
    if shift > _MOST_LEFT_SHIFT:
        raise UnsupportedFunction(f"tflite-micro shifts by {shift} bits for the scale {f.data.scale:g}")
    multiplier = multipliers.Multiplier(int(round_away(np.float64(fraction * (1 << 31)))), shift)
    radius = math.floor(((1 << integer_bits) - 1) * 2.0 ** (31 - integer_bits) / 2.0**shift)
    centered = x - f.data.zero_point
    inside = np.clip(centered, -radius, radius)
    raw = function(rescale(inside, multiplier), integer_bits)
    codes = f.result.saturate(divide_by_power(raw, 31 - result_bits) + zero_point)
    codes = np.where(centered >= radius, f.result.type.hi, codes)
    # With a radius of 0, the kernel takes 0 for below the range.
    return np.where(centered <= -radius, f.result.type.lo, codes)


def _float_table(f: CodeFunction, x: Array, function: Callable[[Array], Array]) -> Array:
    """LUTPopulate of LiteRT: all in float32, rounded half away from zero."""
    real = Single(f.data.scale) * (x - f.data.zero_point).astype(Single)
    scaled = function(real) * (Single(1) / Single(f.result.scale))
    return f.result.saturate(round_away(scaled) + np.float64(f.result.zero_point))


def _xnnpack_table(f: CodeFunction, x: Array, function: Callable[[Array], Array]) -> Array:
    """XNNPACK: float32 input, float64 function, zero point added in float32, half to even."""
    real = (x - f.data.zero_point).astype(Single) * Single(f.data.scale)
    scaled = function(real.astype(np.float64)).astype(Single) * (Single(1) / Single(f.result.scale))
    return f.result.saturate(np.rint(scaled + Single(f.result.zero_point)))


# --------------------------------------------------------------------------- rectifiers


def _rectifier(f: CodeFunction, x: Array) -> Array:
    if f.runtime is multipliers.Runtime.TFLM and f.operator == "RELU6":
        # The kernel copies codes within its input's bounds: the result's scale has no effect.
        highest = f.data.zero_point + int(round_away(np.float64(Single(6) / Single(f.data.scale))))
        return np.asarray(np.clip(x, f.data.zero_point, highest))
    if f.runtime is multipliers.Runtime.TFLM and f.operator == "RELU_N1_TO_1":
        raise UnsupportedFunction("tflite-micro has no RELU_N1_TO_1")
    bounds = multipliers.activation_bounds(f.operator, f.runtime, f.result.dtype, f.result.scale, f.result.zero_point)
    multiplier = multipliers.quantized_multiplier(multipliers.activation_ratio(f.runtime, f.data.scale, f.result.scale))
    codes = rescale(x - f.data.zero_point, multiplier) + f.result.zero_point
    return np.asarray(np.clip(codes, bounds.lo, bounds.hi))


def _leaky_relu(f: CodeFunction, x: Array) -> Array:
    centered = x - f.data.zero_point
    ratio = Single(f.data.scale) / Single(f.result.scale)
    slope = ratio * Single(f.alpha)
    if f.by_xnnpack and 2.0**-8 <= ratio <= 2.0**7 and abs(slope) >= 2.0**-8 and -127.99609375 <= slope <= 2.0**7:
        factor = np.where(
            centered >= 0,
            multipliers.eighth_bit_multiplier(float(ratio)),
            multipliers.eighth_bit_multiplier(float(slope)),
        )
        return f.result.saturate(((centered * factor + 128) >> 8) + f.result.zero_point)
    above = multipliers.quantized_multiplier(multipliers.activation_ratio(f.runtime, f.data.scale, f.result.scale))
    below = multipliers.quantized_multiplier(multipliers.slope_ratio(f.runtime, f.data.scale, f.alpha, f.result.scale))
    magnitude = rescale(centered, multipliers.Multiplier(abs(below.value), below.exponent))
    negative = -magnitude if below.value < 0 else magnitude
    return f.result.saturate(np.where(centered >= 0, rescale(centered, above), negative) + f.result.zero_point)


# --------------------------------------------------------------------------- hard swish, quantize


def _hard_swish(f: CodeFunction, x: Array) -> Array:
    """x * relu6(x + 3) / 6 in int16: HardSwish of reference/hard_swish.h."""
    high_scale = Single(1 / 128) * Single(f.data.scale)
    output = multipliers.quantized_multiplier(float(high_scale / Single(f.result.scale)))
    gate = multipliers.quantized_multiplier(float(high_scale / (Single(3) / Single(32768))))
    output_factor, gate_factor = (np.int64(multipliers.single_multiplier(m)[0]) for m in (output, gate))
    high = wrap((x - f.data.zero_point) << 7, 16)
    scaled = high_product(high, output_factor, 16)
    relu = high_product(shift_left(high, max(gate.exponent - 1, 0), 16), gate_factor, 16)
    if gate.exponent > 0:
        relu = shift_left(relu, 1, 16)
    relu = (divide_by_power(relu, max(-gate.exponent, 0)) + (1 << 15)) >> 1
    product = relu * scaled
    truncated = np.where(product >= 0, product >> 15, -(-product >> 15))
    rounded = divide_by_power(wrap(truncated, 16), max(-output.exponent, 0))
    return f.result.saturate(wrap(rounded + f.result.zero_point, 16))


def _quantize(f: CodeFunction, x: Array) -> Array:
    centered = x - f.data.zero_point
    ratio = Single(f.data.scale) / Single(f.result.scale)
    if f.by_xnnpack and 2.0**-8 <= ratio <= 2.0**7:
        return f.result.saturate(
            ((centered * multipliers.eighth_bit_multiplier(float(ratio)) + 128) >> 8) + f.result.zero_point
        )
    multiplier = multipliers.quantized_multiplier(multipliers.code_ratio(f.data.scale, f.result.scale))
    if f.runtime is multipliers.Runtime.LITERT and f.has_8_bits:
        is_copy = (
            multiplier == multipliers.Multiplier(1 << 30, 1) and abs(f.data.zero_point - f.result.zero_point) == 128
        )
        if not is_copy or f.data.dtype == f.result.dtype:
            raise UnsupportedFunction("LiteRT rounds by the position in the tensor")
    return f.result.saturate(rescale(centered, multiplier) + f.result.zero_point)


def quantize_reals(runtime: multipliers.Runtime, x: Array, result: CodeType) -> Array:
    """QUANTIZE of float32 numbers, int64 codes. Raises UnsupportedFunction."""
    scale = Single(result.scale)
    x = x.astype(Single)
    if runtime is not multipliers.Runtime.LITERT:
        return result.saturate(round_away((x / scale).astype(np.float64)) + result.zero_point)
    if result.dtype == "int16":
        raise UnsupportedFunction("LiteRT rounds by the position in the tensor")
    scaled = np.minimum(x * (Single(1) / scale), Single(result.type.hi - result.zero_point))
    return result.saturate(np.rint(scaled).astype(np.float64) + result.zero_point)


#: By operator.
FUNCTIONS: dict[str, Callable[[CodeFunction, Array], Array]] = {
    "LOGISTIC": _logistic,
    "TANH": _tanh,
    "RELU": _rectifier,
    "RELU6": _rectifier,
    "RELU_N1_TO_1": _rectifier,
    "LEAKY_RELU": _leaky_relu,
    "HARD_SWISH": _hard_swish,
    "QUANTIZE": _quantize,
}
