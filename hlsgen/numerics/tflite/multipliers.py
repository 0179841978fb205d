"""The integers with which TFLite kernels rescale, from the scales of the tensors, for each runtime.

Sources: kernel_util.cc and quantization_util.cc of tflite-micro 90b983c and LiteRT f674577; XNNPACK 75db3c0.
Runtimes differ in the product that they round to float32, which moves the last bit of a multiplier.
Scales are float32, as in files; zero points and codes are integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hlsgen.numerics.fixed import Array, IntType, round_away

Single = np.float32
Double = np.float64


class Runtime(Enum):
    """A TFLite runtime; the value is its name in options and files.

    TFLM        tflite-micro with its reference kernels.
    LITERT_REF  LiteRT with OpResolverType.BUILTIN_REF.
    LITERT      LiteRT as it comes, on x86: XNNPACK, and optimized kernels for the operators that it does not take.
    """

    TFLM = "tflm"
    LITERT_REF = "litert-ref"
    LITERT = "litert"


#: The types of codes.
CODE_TYPES = {
    "int8": IntType(-128, 127),
    "uint8": IntType(0, 255),
    "int16": IntType(-32768, 32767),
    "int32": IntType(-(1 << 31), (1 << 31) - 1),
}


@dataclass(frozen=True)
class Multiplier:
    """The real number value * 2^(exponent - 31), |value| < 2^31."""

    value: int
    exponent: int

    @property
    def shift(self) -> int:
        """The shift of a `Requantize` with Convention.DOUBLE."""
        return 31 - self.exponent


def quantized_multiplier(real: float) -> Multiplier:
    """QuantizeMultiplier: 31 bits of a real number, rounded half away from zero; 0 below 2^-32."""
    fraction, exponent = math.frexp(float(real))
    value = int(round_away(np.float64(fraction * (1 << 31))))
    if abs(value) == 1 << 31:
        value, exponent = value // 2, exponent + 1
    return Multiplier(value, exponent) if value and exponent >= -31 else Multiplier(0, 0)


def single_multiplier(multiplier: Multiplier) -> tuple[int, int]:
    """(15-bit multiplier, shift) of int16x8 layers: (x * multiplier + 2^(shift - 1)) >> shift of an int64 sum x.

    MultiplyByQuantizedMultiplier of int64, common.cc. A `Requantize` with Convention.SINGLE.
    """
    value = multiplier.value
    return (0x7FFF if value >= 0x7FFF0000 else (value + (1 << 15)) >> 16), 15 - multiplier.exponent


def float64_multiplier(real: float) -> tuple[int, int]:
    """(multiplier, shift) with multiplier / 2^shift = real, exact: of a `Requantize` with Convention.FLOAT64."""
    fraction, exponent = math.frexp(float(real))
    return int(fraction * (1 << 53)), 53 - exponent


# --------------------------------------------------------------------------- ratios of scales


def double_ratio(first: Array, second: Array, result: Array) -> Array:
    """first * second / result in float64."""
    return np.asarray(np.asarray(first, Double) * np.asarray(second, Double) / np.asarray(result, Double))


def single_product_ratio(first: Array, second: Array, result: Array) -> Array:
    """first * second rounded to float32, then / result in float64."""
    product = np.asarray(first, Single) * np.asarray(second, Single)
    return np.asarray(product.astype(Double) / np.asarray(result, Double))


def single_ratio(first: Array, second: Array, result: Array) -> Array:
    """(first * second) / result, both rounded to float32; float32. XNNPACK's factor of a layer."""
    product = np.asarray(first, Single) * np.asarray(second, Single)
    return np.asarray(product / np.asarray(result, Single))


def layer_ratio(operator: str, dtype: str, data: Array, weights: Array, result: Array) -> Array:
    """Real multipliers of a layer's sums, float64 (n,), n: number of scales of the weights.

    operator: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV or FULLY_CONNECTED; dtype: of the codes.
    XNNPACK's layers (LITERT, 8 bits) take `single_ratio` instead.
    """
    weights = np.asarray(weights, Single).reshape(-1)
    single = dtype == "uint8" and operator != "FULLY_CONNECTED"
    return (single_product_ratio if single else double_ratio)(data, weights, result)


def rounds_once_in_double(operator: str, runtime: Runtime, dtype: str) -> bool:
    """True for sums that are rescaled by one float64 product, rounded half away from zero (Convention.FLOAT64)."""
    return operator == "FULLY_CONNECTED" and (
        runtime is Runtime.LITERT_REF or (runtime is Runtime.LITERT and dtype == "int16")
    )


def product_ratio(runtime: Runtime, first: float, second: float, result: float) -> float:
    """The real multiplier of MUL's product, or of PRELU's product of input and slope.

    XNNPACK's MUL (LITERT, 8 bits) takes `single_ratio` instead.
    """
    ratio = double_ratio if runtime is Runtime.TFLM else single_ratio
    return float(ratio(np.asarray(first), np.asarray(second), np.asarray(result)))


def activation_ratio(runtime: Runtime, data: float, result: float) -> float:
    """The real multiplier of RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU and PRELU for x >= 0.

    tflite-micro divides in float64 since October 2026.
    """
    return code_ratio(data, result) if runtime is Runtime.TFLM else float(Single(data) / Single(result))


def slope_ratio(runtime: Runtime, data: float, alpha: float, result: float) -> float:
    """The real multiplier of LEAKY_RELU for x < 0; its sign is the sign of alpha."""
    return product_ratio(runtime, data, alpha, result)


def code_ratio(data: float, result: float) -> float:
    """The real multiplier of QUANTIZE and MEAN: the quotient in float64."""
    return float(Double(Single(data)) / Double(Single(result)))


# --------------------------------------------------------------------------- activation bounds


def activation_bounds(activation: str, runtime: Runtime, dtype: str, scale: float, zero_point: int) -> IntType:
    """The codes within a fused activation.

    activation: NONE, RELU, RELU6 or RELU_N1_TO_1; KeyError for others, which every runtime refuses.
    XNNPACK (LITERT, 8 bits; not AVERAGE_POOL_2D) rounds bounds half to even, see `xnnpack_bounds`.
    """
    kind = CODE_TYPES[dtype]
    low, high = _REALS[activation]

    def code(real: float) -> int:
        return zero_point + int(round_away(Double(Single(real) / Single(scale))))

    return IntType(
        kind.lo if low is None else max(kind.lo, code(low)), kind.hi if high is None else min(kind.hi, code(high))
    )


def xnnpack_bounds(activation: str, dtype: str, scale: float, zero_point: int) -> IntType:
    """The codes within a fused activation in XNNPACK: float32, limited, half to even."""
    kind = CODE_TYPES[dtype]
    low, high = _REALS[activation]

    def code(real: float) -> int:
        value = Single(real) / Single(scale) + Single(zero_point)
        return int(np.rint(np.minimum(np.maximum(value, Single(kind.lo)), Single(kind.hi))))

    return IntType(kind.lo if low is None else code(low), kind.hi if high is None else code(high))


#: Real bounds of fused activations; None: no bound.
_REALS: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


# --------------------------------------------------------------------------- sums and means


@dataclass(frozen=True)
class AddMultipliers:
    """ADD and SUB: DOUBLE(result) of the sum of DOUBLE(first) and DOUBLE(second), each code shifted left first.

    left_shift: of the codes without their zero points, 20, or 15 for int16.
    """

    left_shift: int
    first: Multiplier
    second: Multiplier
    result: Multiplier


def add_multipliers(dtype: str, first: float, second: float, result: float) -> AddMultipliers:
    """ADD and SUB of tflite-micro and of LiteRT's builtin kernels: all in float64."""
    left_shift = 15 if dtype == "int16" else 20
    largest = 2.0 * float(Single(max(first, second)))
    return AddMultipliers(
        left_shift,
        quantized_multiplier(float(Single(first)) / largest),
        quantized_multiplier(float(Single(second)) / largest),
        quantized_multiplier(largest / ((1 << left_shift) * float(Single(result)))),
    )


def xnnpack_add_multipliers(first: float, second: float, result: float) -> tuple[int, int, int] | None:
    """(A, B, shift) of XNNPACK's ADD: (A * a + B * b + 2^(shift - 1)) >> shift of codes without zero points.

    The result is None if XNNPACK leaves these ratios of scales to other kernels. SUB takes -B.
    """
    ratios = [Single(first) / Single(result), Single(second) / Single(result)]
    if not all(2.0**-10 <= ratio < 2.0**8 for ratio in ratios):
        return None
    shift = 21 - math.frexp(float(max(ratios)))[1]
    a, b = (int(np.rint(math.ldexp(float(ratio), shift))) for ratio in ratios)
    return a, b, shift


def eighth_bit_multiplier(real: float) -> int:
    """XNNPACK's multiplier c of QUANTIZE and LEAKY_RELU, half to even: (x * c + 128) >> 8; real: float32."""
    return int(np.rint(Single(256) * Single(real)))


def mean_multiplier(data: float, result: float, count: int) -> Multiplier:
    """The multiplier of MEAN's sum of `count` codes: the division by the count goes into it, rounded down.

    reduce_common.cc (tflite-micro), reduce.h (LiteRT).
    """
    multiplier = quantized_multiplier(code_ratio(data, result))
    shift = min(count.bit_length() - 1, 32, 31 + multiplier.exponent)
    return Multiplier((multiplier.value << shift) // count, multiplier.exponent - shift)
