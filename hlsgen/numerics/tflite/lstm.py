"""The integers of UNIDIRECTIONAL_SEQUENCE_LSTM with int8 data and an int16 cell, for each runtime; multipliers of SVDF.

Sources: lstm_eval.cc, lstm_eval_common.cc, svdf_common.cc of tflite-micro 90b983c; lstm_eval.cc of LiteRT f674577.
Sums of gates have the scale 2^-12, results of functions 2^-15. The cell's scale is 2^exponent.
"""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.fixed_point import INT16
from hlsgen.numerics.tflite.multipliers import Multiplier, Runtime, double_ratio, quantized_multiplier, single_ratio
from hlsgen.numerics.tflite.piecewise import RESULT_BITS, logistic_lines, tanh_lines

Single = np.float32
#: Fraction bits of the sums of gates, whose scale is 2^-12.
GATE_BITS = 12
#: Exponents of the cell's scale that the kernels take.
CELL_EXPONENTS = range(-15, -8)
_CODES = np.arange(-(1 << 15), 1 << 15)


def recurrent_multiplier(runtime: Runtime, data: float, weights: float, result: float) -> Multiplier:
    """The multiplier of a product's sums in an LSTM's gate or in SVDF: float64 in tflite-micro, float32 in LiteRT."""
    ratio = double_ratio if runtime is Runtime.TFLM else single_ratio
    return quantized_multiplier(float(ratio(*(np.asarray(Single(scale)) for scale in (data, weights, result)))))


def gate_multiplier(runtime: Runtime, data: float, weights: float) -> Multiplier:
    """The multiplier from a product's sums to the sums of a gate."""
    return recurrent_multiplier(runtime, data, weights, 2.0**-GATE_BITS)


def hidden_multiplier(runtime: Runtime, hidden: float) -> Multiplier:
    """The multiplier from tanh(cell) * output gate to the hidden state."""
    unit = Single(2.0**-RESULT_BITS)
    if runtime is Runtime.TFLM:
        return quantized_multiplier(2.0 ** (-2 * RESULT_BITS) / float(Single(hidden)))
    return quantized_multiplier(float(unit / Single(hidden) * unit))


def logistic_table(runtime: Runtime) -> Array:
    """LOGISTIC of all 65,536 sums of a gate, from the lowest, int64."""
    return logistic_lines(_CODES, 0, 0) if runtime is Runtime.TFLM else INT16.logistic(_CODES, 15 - GATE_BITS)


def tanh_table(runtime: Runtime, exponent: int = -GATE_BITS) -> Array:
    """TANH of all 65,536 codes of scale 2^exponent, from the lowest, int64."""
    if runtime is not Runtime.TFLM:
        return INT16.tanh(_CODES, 15 + exponent)
    shift = GATE_BITS + exponent
    return tanh_lines(_CODES, 0, shift) if shift >= 0 else tanh_lines(_CODES, 3, -shift)


def cell_limit(clip: float, scale: float) -> int:
    """The largest magnitude of the cell's codes by the option cell_clip; 0 for none."""
    if clip <= 0:
        return 0
    return int(min(max(float(Single(clip)) / float(Single(scale)), -32768.0), 32767.0))
