"""Neighbours and weights of a linear Resize along an axis, in the float32 arithmetic of onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array

#: Coordinate transformation modes with these neighbours.
MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each result along an axis: the pixels around it (int64), and its distances from both (float32)."""

    lower: Array
    upper: Array
    from_lower: Array
    from_upper: Array


def neighbours(size: int, result: int, factor: np.float32, mode: str) -> Neighbours:
    """The neighbours of `result` pixels made of `size` pixels; `mode` is one of MODES."""
    position, half = np.arange(result, dtype=np.float32), np.float32(0.5)
    if mode == "asymmetric":
        coordinate = position / factor
    elif mode == "align_corners":
        coordinate = position * np.float32(size - 1) / np.float32(max(1, result - 1))
    elif mode == "pytorch_half_pixel" and result == 1:
        coordinate = np.zeros(1, np.float32)
    else:
        coordinate = (position + half) / factor - half
    coordinate = np.clip(coordinate, np.float32(0), np.float32(size - 1))
    lower = coordinate.astype(np.int64)
    upper = np.minimum(lower + 1, size - 1)
    from_lower, from_upper = (np.abs(coordinate - side.astype(np.float32)) for side in (lower, upper))
    coincide = lower == upper
    return Neighbours(lower, upper, np.where(coincide, half, from_lower), np.where(coincide, half, from_upper))


def factors_and_sizes(
    shape: tuple[int, ...], scales: Array | None, sizes: Array | None
) -> tuple[list[np.float32], list[int]] | None:
    """(factor, size of the result) of every axis, from one of the inputs of Resize.

    Returns None if it has too few numbers.
    """
    if sizes is not None and len(sizes) == len(shape):
        result = [int(size) for size in sizes]
        return [np.float32(a) / np.float32(b) for a, b in zip(result, shape, strict=True)], result
    if sizes is None and scales is not None and len(scales) == len(shape):
        factors = [np.float32(scale) for scale in scales]
        return factors, [int(np.floor(np.float32(a) * factor)) for a, factor in zip(shape, factors, strict=True)]
    return None
