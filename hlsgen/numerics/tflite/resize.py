"""RESIZE_BILINEAR of 8-bit codes as integer weights of rows and of columns, for each runtime.

Sources: reference/resize_bilinear.h of tflite-micro 90b983c and of LiteRT f674577; resize-bilinear-nhwc.c and
indirection.c of XNNPACK 75db3c0.
"""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import UnsupportedFunction

Single = np.float32
#: Bits of the weights of one axis: their sum is 2^bits. With 7 bits for each axis, float32 products and sums are exact.
REFERENCE_BITS, XNNPACK_BITS, FLOAT_BITS = 10, 11, 7


def reference_weights(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """int64 (out, size): weights of each element along an axis, which have the sum 2^10."""
    if align_corners and out > 1:
        step = (((size - 1) << 10) + (out - 1) // 2) // (out - 1)
    else:
        step = ((size << 10) + out // 2) // out
    position = np.arange(out) * step + (step // 2 - 512 if half_pixel_centers else 0)
    low = np.maximum(_toward_zero(position), 0)
    high = np.minimum(_toward_zero(position + 1023), size - 1)
    return _weights(low, high, position - (low << 10), size, REFERENCE_BITS)


def float_weights(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """int64 (out, size): weights in float32, times 2^7. Raises UnsupportedFunction if a weight has more bits.

    Elements outside the data are those at its border, also with a weight below 0 or above 1.
    """
    less = 1 if align_corners and out > 1 else 0
    step, half = Single(size - less) / Single(out - less), Single(0.5)
    position = np.arange(out).astype(Single)
    position = (position + half) * step - half if half_pixel_centers else position * step
    low = np.maximum(np.floor(position).astype(np.int64), 0)
    high = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    fraction = (position - low.astype(Single)) * Single(1 << FLOAT_BITS)
    if (fraction != np.floor(fraction)).any():
        raise UnsupportedFunction(f"uint8 weights of {size} to {out} elements are rounded in float32")
    return _weights(low, high, fraction.astype(np.int64), size, FLOAT_BITS)


def xnnpack_weights(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """int64 (out, size): weights of each element along an axis, which have the sum 2^11."""
    less = 1 if align_corners and out != 1 else 0
    step = Single(size - less) / Single(out - less)
    position = np.arange(out).astype(Single) * step
    if half_pixel_centers and not align_corners:
        position = np.maximum(position + (Single(0.5) * step - Single(0.5)), Single(0))
    position = np.minimum(position, Single(size - 1))
    low = position.astype(np.int64)
    fraction = np.rint((position - low.astype(Single)) * Single(1 << XNNPACK_BITS)).astype(np.int64)
    return _weights(low, np.minimum(low + 1, size - 1), fraction, size, XNNPACK_BITS)


def _toward_zero(position: Array) -> Array:
    """position / 1024, rounded toward zero."""
    return np.asarray(np.sign(position) * (np.abs(position) >> 10))


def _weights(low: Array, high: Array, fraction: Array, size: int, bits: int) -> Array:
    """`fraction` of the element `high`, the rest of the element `low`."""
    weights, rows = np.zeros((len(low), size), np.int64), np.arange(len(low))
    np.add.at(weights, (rows, low), (1 << bits) - fraction)
    np.add.at(weights, (rows, high), fraction)
    return weights
