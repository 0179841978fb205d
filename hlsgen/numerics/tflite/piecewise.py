"""LOGISTIC and TANH of int16 codes: 256 knots with lines between them.

Source: reference/integer_ops/logistic.h and tanh.h, logistic.cc of tflite-micro 90b983c. The formula of the knots
gives each of the runtime's 256 numbers.
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.fixed_point import INT16
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.numerics.tflite.rescaling import shift_left

#: Results are codes of scale 2^-15 with zero point 0.
RESULT_BITS = 15


def _knots() -> Array:
    """65536 * S at 256 multiples of 1/24, S the logistic function, corrected by its second derivative."""
    knots = []
    for n in range(255):
        p = 1 / (1 + math.exp(-n / 24))
        second_derivative = p * (1 - p) * (1 - 2 * p)
        knots.append(math.floor(65536 * (p - second_derivative / (16 * 24 * 24)) + 0.5))
    return np.array([*knots, 65535], np.int64)


#: The function at 0, 1/24, ... 254/24, times 2^16; then the end of the last line.
KNOTS = _knots()


def power_of_two(scale: float) -> int | None:
    """The exponent of a scale that counts as a power of two, else None: CheckedLog2, in float32."""
    single = np.float32
    logarithm = float(np.log(single(scale)) * (single(1.0) / np.log(single(2.0))))
    exponent = round(logarithm)
    return exponent if abs(logarithm - exponent) < 1e-3 else None


def input_scaling(scale: float, power_shifts: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, shift) of the input codes; multiplier 0 if only a shift to the left is needed.

    power_shifts: shifts of the power-of-two scales 2^-12, 2^-11 that the operator takes so, 0 and 1.
    """
    exponent = power_of_two(scale)
    if exponent is not None and 12 + exponent in power_shifts:
        return 0, 12 + exponent
    multiplier, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    return int(multiplier), shift


def _scaled(x: Array, multiplier: int, shift: int) -> Array:
    """The input in 24ths of 1/512."""
    if multiplier == 0:
        multiplier, shift = 3 << shift, 0
    return np.asarray((x * multiplier + ((1 << shift) >> 1)) >> shift)


def _interpolated(magnitude: Array, bits: int) -> Array:
    """The lines between knots that are 2^bits apart, times 2^bits."""
    knot = np.minimum(magnitude >> bits, 254)
    return np.asarray((KNOTS[knot] << bits) + (magnitude & ((1 << bits) - 1)) * (KNOTS[knot + 1] - KNOTS[knot]))


def logistic_lines(x: Array, multiplier: int, shift: int) -> Array:
    """LOGISTIC of codes x, int64, with the numbers of `input_scaling`."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    result = np.where(magnitude >> 9 >= 255, 0x7FFF << 10, _interpolated(magnitude, 9))
    return np.where(scaled >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh_lines(x: Array, multiplier: int, shift: int) -> Array:
    """TANH of codes x, int64, with the numbers of `input_scaling`."""
    scaled = _scaled(x, multiplier, shift)
    magnitude = np.abs(scaled)
    result = np.where(magnitude >> 8 >= 255, 0xFFFF << 8, _interpolated(magnitude, 8))
    return np.where(scaled >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1) >> 8


def logistic_of_int16(runtime: Runtime, x: Array, scale: float) -> Array:
    """LOGISTIC of int16 codes of this scale and zero point 0. LITERT takes gemmlowp's for powers of two."""
    multiplier, shift = input_scaling(scale, (0,))
    if runtime is Runtime.LITERT and multiplier == 0:
        return INT16.logistic(x, 3)
    return logistic_lines(x, multiplier, shift)


def tanh_of_int16(runtime: Runtime, x: Array, scale: float) -> Array:
    """TANH of int16 codes of this scale and zero point 0. LITERT takes gemmlowp's for powers of two."""
    multiplier, shift = input_scaling(scale, (0, 1))
    if runtime is Runtime.LITERT and multiplier == 0:
        return INT16.tanh(shift_left(x, shift, 16), 3)
    return tanh_lines(x, multiplier, shift)
