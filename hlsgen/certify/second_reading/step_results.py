"""Results of a Model's steps on test data: moves of elements, windows of images, sums of windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir import Concat, Op, Repeat, Reshape, Shape, Slice, Transpose
from hlsgen.numerics.fixed import Array


def moved(op: Op, inputs: Sequence[Array], shape: Shape) -> Array | None:
    """The result of a step that only moves elements, in this shape; it is None for other steps."""
    x = inputs[0]
    match op:
        case Reshape():
            return x.reshape(shape)
        case Transpose(perm):
            return np.asarray(x.transpose(perm))
        case Slice(ranges):
            return x[tuple(slice(*r) for r in ranges)]
        case Repeat(rows, columns):
            return x.repeat(rows, axis=1).repeat(columns, axis=2)
        case Concat(axis):
            return np.concatenate(inputs, axis)
        case _:
            return None


def bordered(x: Array, pads: Sequence[int], filler: float) -> Array:
    """An image (n, height, width, channels) with a border; pads: top, left, bottom, right."""
    top, left_pad, bottom, right = pads
    return np.pad(x, [(0, 0), (top, bottom), (left_pad, right), (0, 0)], constant_values=np.asarray(filler, x.dtype))


def taps(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    filler: float,
) -> Array:
    """All windows of an image, (n, height, width, channels, kernel height, kernel width).

    pads: top, left, bottom, right.
    """
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(bordered(x, pads, filler), reach, axis=(1, 2))
    return np.asarray(windows[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]])


def convolved(windows: Array, weight: Array, groups: int) -> Array:
    """Sums in float64 of windows (n, height, width, channels, y, x) times weights (outputs, y, x, group's channels)."""
    inner, outer = weight.shape[-1], len(weight) // groups
    parts = [
        np.einsum(
            "nhwcyx,oyxc->nhwo",
            windows[..., g * inner : (g + 1) * inner, :, :].astype(np.float64),
            weight[g * outer : (g + 1) * outer].astype(np.float64),
            optimize=True,
        )
        for g in range(groups)
    ]
    return np.concatenate(parts, -1)
