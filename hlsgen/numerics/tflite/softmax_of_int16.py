"""SOFTMAX of rows of int16 codes to int16 codes, with lines between the entries of two tables.

Sources: softmax_common.cc of tflite-micro 90b983c; common.h, activations.cc of LiteRT f674577.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, round_away
from hlsgen.numerics.tflite.multipliers import Multiplier, Runtime, quantized_multiplier
from hlsgen.numerics.tflite.rescaling import rescale

Single = np.float32
#: Entries of a table, and the range of exp in it.
TABLE_SIZE, _LOWEST_POWER = 513, -10.0


@dataclass(frozen=True, eq=False)
class Int16Softmax:
    """SOFTMAX of int16 codes along the last axis; results have the scale 2^-15 and zero point 0.

    multiplier: of a code's difference to its row's largest one, to steps of 10 / 65535.
    The tables are int64 (513,): exp on -10..0 and 1 / (1 + x) on 0..1, in steps of 2 / 65535.
    """

    multiplier: Multiplier
    exponentials: Array
    reciprocals: Array

    @staticmethod
    def of(runtime: Runtime, scale: float, beta: float) -> Int16Softmax:
        """The integers of a runtime; scale: of the input codes, beta: both float32."""
        is_micro = runtime is Runtime.TFLM
        real = np.float32 if is_micro else np.float64
        single = float(Single(scale) * Single(beta))
        product = float(Single(scale)) * float(Single(beta)) if is_micro else single
        return Int16Softmax(
            quantized_multiplier(product / (-_LOWEST_POWER / 65535.0)),
            _interpolation_table(np.exp, _LOWEST_POWER, 0.0, real),
            _interpolation_table(lambda v: 1 / (1 + v), 0.0, 1.0, real),
        )

    def codes(self, x: Array) -> Array:
        """int64 codes of the result for int64 codes x."""
        difference = x - x.max(axis=-1, keepdims=True)
        argument = rescale(difference, self.multiplier) + 32767
        exponential = _interpolated(self.exponentials, np.clip(argument, -32768, 32767))
        total = exponential.sum(axis=-1, keepdims=True)
        bits = np.asarray(np.frexp(total.astype(np.float64))[1], np.int64)
        mantissa = ((total << (31 - bits)) + (1 << 13)) >> 14
        reciprocal = _interpolated(self.reciprocals, np.clip(mantissa - (1 << 15) - (1 << 16), -32768, 32767))
        shift = bits - 1
        return np.asarray(np.clip((exponential * reciprocal + (np.int64(1) << (shift - 1))) >> shift, 0, 32767))


def _interpolation_table(function: Callable[[Array], Array], low: float, high: float, real: type[np.floating]) -> Array:
    """TABLE_SIZE codes of a function on 512 steps from low to high; the codes have the scale 2 / 65535.

    Midpoints of the steps get half of the lines' error, as in LUTPopulate of int16. real: float32 or float64.
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
