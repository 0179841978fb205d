"""QUANTIZE of float32 numbers and DEQUANTIZE to them: the second derivation.

Products and quotients of two float32 numbers are taken in float64 and then rounded: this equals one rounding.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.second_reading.tflite.records import Tensor
from hlsgen.certify.second_reading.tflite.scales import LIMITS
from hlsgen.numerics.fixed import Array

#: Distances from a boundary between two codes at which numbers are tried, in units of the last place.
_PLACES = range(-3, 4)


def dequantized(codes: Array, x: Tensor) -> Array:
    """The float32 numbers of all codes: code - zero_point, rounded, times the scale."""
    return _rounded((codes.astype(np.int64) - x.one_zero).astype(np.float64) * float(x.one_scale))


def quantized_reals(y: Tensor, runtime: str) -> tuple[Array, Array]:
    """float32 numbers next to every step of a quantizer, and the int64 code that the runtime gives each of them."""
    low, high = LIMITS[y.type]
    zero, scale = y.one_zero, float(y.one_scale)
    middle = (np.arange(low - 2, high + 3) - zero + 0.5) * scale
    numbers = _rounded(middle)
    raw = numbers.view(np.int32)[:, None] + np.array(_PLACES, np.int32)
    tried = np.concatenate([raw.reshape(-1).astype(np.int32).view(np.float32), _rounded(middle * 0.37), np.zeros(1)])
    tried = tried.astype(np.float32)
    tried = tried[np.isfinite(tried)]
    exact_inputs = tried.astype(np.float64)
    if runtime == "litert":
        quotients = _rounded(exact_inputs * float(_rounded(np.float64(1 / scale))))
        rounded = np.rint(quotients.astype(np.float64))
    else:
        quotients = _rounded(exact_inputs / scale).astype(np.float64)
        rounded = np.sign(quotients) * np.floor(np.abs(quotients) + 0.5)
    return tried, np.clip(rounded + zero, low, high).astype(np.int64)


def _rounded(numbers: Array | np.float64) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(numbers).astype(np.float32)
