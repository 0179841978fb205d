"""SOFTMAX of rows of 8-bit codes, for each runtime.

Sources: reference/softmax.h, softmax_common.cc of tflite-micro 90b983c; optimized_ops.h of LiteRT f674577.
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.numerics.fixed import Array, round_away
from hlsgen.numerics.tflite.fixed_point import INT32
from hlsgen.numerics.tflite.functions import CodeType, UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import quantized_multiplier
from hlsgen.numerics.tflite.rescaling import divide_by_power, high_product, wrap

Single = np.float32
#: Integer bits of the differences of codes, and of the sum of exponentials.
DIFFERENCE_BITS, SUM_BITS = 5, 12


def exponentials_in_integers(scale: float, beta: float) -> Array:
    """int64 (256,): exp in Q0 by the distance of a code from its row's largest one, for tflite-micro and LiteRT's
    reference kernels.

    Distances that do not count have 0. scale: of the input codes; beta: float32. Raises UnsupportedFunction for a
    product of both up to 2^-26.
    """
    real = float(Single(beta)) * float(Single(scale)) * (1 << (31 - DIFFERENCE_BITS))
    if real <= 1:
        raise UnsupportedFunction("the input's scale times beta is at most 2^-26, which makes the runtime abort")
    multiplier = quantized_multiplier(min(real, 2.0**31 - 1))
    reach = ((1 << DIFFERENCE_BITS) - 1) * 2.0 ** (31 - DIFFERENCE_BITS) / 2.0**multiplier.exponent
    longest = min(math.floor(reach), 255)
    distance = np.arange(256)
    difference = high_product(wrap(-np.minimum(distance, longest) << multiplier.exponent), np.int64(multiplier.value))
    return np.where(distance <= longest, INT32.exp(difference, DIFFERENCE_BITS), 0)


def weights_in_integers(exponential: Array) -> Array:
    """The addends of a row's sum: its exponentials in Q12."""
    return divide_by_power(exponential, SUM_BITS)


def shares_in_integers(exponential: Array, total: Array, bits: int) -> Array:
    """exponential / total, rounded as the kernels do it, in steps of 2^-bits; at most 2^bits - 1.

    exponential: Q0. total: sum of a row in Q12, at least 1. The runtimes abort for a sum of 512 or more, which is 2^28
    in Q12. Here the formula goes on.
    """
    leading_zeros = 32 - _bit_length(total)
    reciprocal = INT32.reciprocal(((total << leading_zeros) & 0xFFFFFFFF) - (1 << 31))
    product = high_product(reciprocal, exponential)
    return np.minimum(divide_by_power(product, SUM_BITS - leading_zeros + 31 - bits), (1 << bits) - 1)


def exponentials_in_floats(scale: float, beta: float) -> Array:
    """float32 (256,): exp by the distance of a code from its row's largest one, in LiteRT's optimized kernels."""
    step = -(Single(scale) * Single(beta))
    return np.asarray(np.exp((step * np.arange(256, dtype=Single)).astype(np.float64)).astype(Single))


def softmax_codes(exponentials: Array, x: Array, result: CodeType) -> Array:
    """SOFTMAX of 8-bit codes x, int64, along the last axis, to codes of `result`.

    exponentials: int64, or float32 for LiteRT's optimized kernels on x86, which sum in the order of the row.
    The result's scale is 2^-bits of its type, and its zero point the lowest code.
    """
    exponential, lowest, bits = exponentials[x.max(axis=-1, keepdims=True) - x], result.type.lo, result.type.bits
    if exponentials.dtype != Single:
        total = weights_in_integers(exponential).sum(axis=-1, keepdims=True)
        return shares_in_integers(exponential, total, bits) + lowest
    total = np.add.accumulate(exponential, axis=-1, dtype=Single)[..., -1:]
    scaled = exponential * (Single(1) / (total * Single(2.0**-bits)))
    if result.dtype == "uint8":
        return result.saturate(np.trunc(scaled + Single(0.5)))
    return result.saturate(round_away(scaled.astype(np.float64)) + lowest)


def _bit_length(x: Array) -> Array:
    """The number of bits of positive integers below 2^53."""
    return np.asarray(np.frexp(x.astype(np.float64))[1], np.int64)
