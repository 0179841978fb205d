"""Integer arithmetic on images (frames, n, height, width, channels): windows, sums and borders."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import Convolution, Pooling
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array


def padded(codes: Array, pads: tuple[int, int, int, int], value: int) -> Array:
    """The codes with a border (top, left, bottom, right) of one code."""
    top_pad, left_pad, bottom_pad, right_pad = pads
    if not any(pads):
        return codes
    widths = [(0, 0)] * (codes.ndim - 3) + [(top_pad, bottom_pad), (left_pad, right_pad), (0, 0)]
    return np.pad(codes, widths, constant_values=value)


def taps(codes: Array, window: Window, pad: int) -> list[Array]:
    """For every tap of the kernel, row by row: its element at every position of the window."""
    height, width = window.size(*codes.shape[-3:-1])
    image = padded(codes, window.pads, pad)
    (sy, sx), (dy, dx) = window.strides, window.dilations
    return [
        image[..., y : y + (height - 1) * sy + 1 : sy, x : x + (width - 1) * sx + 1 : sx, :]
        for y in range(0, window.kernel[0] * dy, dy)
        for x in range(0, window.kernel[1] * dx, dx)
    ]


def pooled(layer: Pooling, codes: Array) -> Array:
    """Largest code or exact sum of every window."""
    tap_arrays = taps(codes, layer.window, layer.pad)
    result: Array = tap_arrays[0].copy()
    for tap_array in tap_arrays[1:]:
        result = np.maximum(result, tap_array) if layer.kind is Reduction.MAX else result + tap_array
    return result


def convolved(layer: Convolution, codes: Array) -> Array:
    """Exact sums (frames, n, height, width, outputs); numbers of equal bits if the layer is binary."""
    if not layer.binary:
        return _sums(layer, codes, layer.weight)
    # Two bits a and b are equal if 1 - a - b + 2ab is 1.
    ones = _sums(layer, codes, np.ones_like(layer.weight))
    count = layer.weight[0].size
    return np.asarray(
        count - ones - layer.weight.reshape(len(layer.weight), -1).sum(axis=1) + 2 * _sums(layer, codes, layer.weight)
    )


def _sums(layer: Convolution, codes: Array, weight: Array) -> Array:
    """Exact sums of weights times codes, with the layer's window and groups."""
    groups, rows = layer.groups, len(weight) // layer.groups
    largest = max(abs(int(codes.min(initial=0))), int(codes.max(initial=0)), abs(layer.pad))
    limit = float(largest) * float(np.abs(weight).reshape(len(weight), -1).sum(axis=1).max(initial=0))
    # Floats are exact below these bounds and much faster than integer arithmetic.
    dtype = np.float32 if limit < 2.0**24 else np.float64 if limit < 2.0**53 else np.int64
    parts = taps(codes.astype(dtype), layer.window, layer.pad)
    kernel = weight.reshape(groups, rows, len(parts), -1).astype(dtype)
    result: Array = np.zeros((*parts[0].shape[:-1], groups, rows), dtype)
    for tap, part in enumerate(parts):
        grouped = part.reshape(*part.shape[:-1], groups, -1)
        if grouped.shape[-1] == 1:
            result += grouped * kernel[:, :, tap, 0]
        elif groups == 1:
            result[..., 0, :] += grouped[..., 0, :] @ kernel[0, :, tap].T
        else:
            result += np.matmul(grouped[..., None, :], kernel[:, :, tap].swapaxes(1, 2))[..., 0, :]
    return result.reshape(*result.shape[:-2], -1).astype(np.int64)
