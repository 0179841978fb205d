"""SOFTMAX of rows of codes, for each runtime.

Sources: reference/softmax.h, softmax_common.cc of tflite-micro 90b983c; optimized_ops.h of LiteRT f674577.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, round_away
from hlsgen.numerics.tflite.fixed_point import INT32
from hlsgen.numerics.tflite.functions import CodeType, UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import Runtime, quantized_multiplier
from hlsgen.numerics.tflite.rescaling import divide_by_power, high_product, rescale, wrap

Single = np.float32
#: Integer bits of the differences of codes, and of the sum of exponentials.
DIFFERENCE_BITS, SUM_BITS = 5, 12


@dataclass(frozen=True)
class SoftmaxTables:
    """SOFTMAX of 8-bit codes in integers, for tflite-micro and LiteRT's reference kernels.

    exponentials: int64 (256,), exp in Q0 by the distance of a code from its row's largest one.
    longest: the largest distance that counts. Codes beyond it get the lowest code, and are not in the sum.
    """

    exponentials: Array
    longest: int


def softmax_tables(scale: float, beta: float) -> SoftmaxTables:
    """The tables for input codes of this scale; beta: float32. Raises UnsupportedFunction for scales up to 2^-26."""
    real = float(Single(beta)) * float(Single(scale)) * (1 << (31 - DIFFERENCE_BITS))
    if real <= 1:
        raise UnsupportedFunction("the input's scale times beta is at most 2^-26, which makes the runtime abort")
    multiplier = quantized_multiplier(min(real, 2.0**31 - 1))
    reach = ((1 << DIFFERENCE_BITS) - 1) * 2.0 ** (31 - DIFFERENCE_BITS) / 2.0**multiplier.exponent
    longest = min(math.floor(reach), 255)
    distance = np.arange(256)
    difference = high_product(wrap(-np.minimum(distance, longest) << multiplier.exponent), np.int64(multiplier.value))
    return SoftmaxTables(INT32.exp(difference, DIFFERENCE_BITS), longest)


def softmax_codes(tables: SoftmaxTables, x: Array, lowest: int) -> Array:
    """SOFTMAX of codes x, int64, along the last axis; `lowest` is the lowest code of the result's type of 8 bits.

    The runtimes abort for rows whose exponentials have a sum of 512 or more. Here the formula goes on.
    """
    distance = x.max(axis=-1, keepdims=True) - x
    counts = distance <= tables.longest
    exponential = tables.exponentials[distance]
    total = np.where(counts, divide_by_power(exponential, SUM_BITS), 0).sum(axis=-1, keepdims=True)
    leading_zeros = 32 - _bit_length(total)
    reciprocal = INT32.reciprocal(((total << leading_zeros) & 0xFFFFFFFF) - (1 << 31))
    product = high_product(reciprocal, exponential)
    codes = divide_by_power(product, SUM_BITS - leading_zeros + 31 - 8) + lowest
    return np.where(counts, np.clip(codes, lowest, lowest + 255), lowest)


def exponentials_in_floats(scale: float, beta: float) -> Array:
    """float32 (256,): exp by the distance of a code from its row's largest one, in LiteRT's optimized kernels."""
    step = -(Single(scale) * Single(beta))
    return np.asarray(np.exp((step * np.arange(256, dtype=Single)).astype(np.float64)).astype(Single))


def softmax_in_floats(x: Array, data: CodeType, result: CodeType, beta: float) -> Array:
    """SOFTMAX of 8-bit codes in LiteRT's optimized kernels on x86: float32, summed in the order of the row."""
    exponential = exponentials_in_floats(data.scale, beta)[x.max(axis=-1, keepdims=True) - x]
    total = np.add.accumulate(exponential, axis=-1, dtype=Single)[..., -1:]
    scaled = exponential * (Single(1) / (total * Single(result.scale)))
    if result.dtype == "uint8":
        return result.saturate(np.trunc(scaled + Single(0.5)))
    return result.saturate(round_away(scaled.astype(np.float64)) + result.zero_point)


# --------------------------------------------------------------------------- int16


def _interpolation_table(function: Callable[[Array], Array], low: float, high: float, real: type[np.floating]) -> Array:
    """513 codes of a function on 512 steps from low to high; result codes of scale 2 / 65535.

    Midpoints of the steps get half of the lines' error, LUTPopulate of int16. real: float32 or float64.
    """
    largest = real(65535)
    scale, result_scale = (real(high) - real(low)) / largest, real(2) / largest
    zero_point = 32767 if low < 0 else -32768
    first, last = scale * real(-32768 - zero_point), scale * real(32767 - zero_point)
    lowest, highest = result_scale * real(-32768), result_scale * real(32767)
    step = (last - first) / real(512)
    inverse = real(65536) / (highest - lowest)
    n = np.arange(512).astype(real)
    values = function(first + n * step).astype(real)
    middles = function(first + n * step + step / real(2)).astype(real)
    following = function(first + (n + real(1)) * step).astype(real)
    sample = round_away(values * inverse)
    line = round_away((following * inverse + sample) / real(2))
    bias = round_away((line - round_away(middles * inverse)) / real(2))
    end = round_away(function(np.array([last], real)).astype(real) * inverse)
    table: Array = np.clip(np.concatenate([sample - bias, end]), -32768, 32767).astype(np.int64)
    return table


def _interpolated(table: Array, x: Array) -> Array:
    index = 256 + (x >> 7)
    return np.asarray(table[index] + (((table[index + 1] - table[index]) * (x & 127) + 64) >> 7))


def softmax_of_int16(runtime: Runtime, x: Array, scale: float, beta: float) -> Array:
    """SOFTMAX of int16 codes x, int64, along the last axis; results have the scale 2^-15, zero point 0."""
    real = np.float32 if runtime is Runtime.TFLM else np.float64
    exp_table = _interpolation_table(np.exp, -10.0, 0.0, real)
    reciprocal_table = _interpolation_table(lambda v: 1 / (1 + v), 0.0, 1.0, real)
    single = runtime is not Runtime.TFLM
    product = float(Single(scale) * Single(beta)) if single else float(Single(scale)) * float(Single(beta))
    difference = x - x.max(axis=-1, keepdims=True)
    argument = rescale(difference, quantized_multiplier(product / (10.0 / 65535.0))) + 32767
    exponential = _interpolated(exp_table, np.clip(argument, -32768, 32767))
    total = exponential.sum(axis=-1, keepdims=True)
    leading_zeros = 32 - _bit_length(total)
    mantissa = ((total << (leading_zeros - 1)) + (1 << 13)) >> 14
    reciprocal = _interpolated(reciprocal_table, np.clip(mantissa - (1 << 15) - (1 << 16), -32768, 32767))
    shift = 31 - leading_zeros
    return np.asarray(np.clip((exponential * reciprocal + (np.int64(1) << (shift - 1))) >> shift, 0, 32767))


def _bit_length(x: Array) -> Array:
    """The number of bits of positive integers below 2^53."""
    return np.asarray(np.frexp(x.astype(np.float64))[1], np.int64)
