"""Rules of operations that move elements (windows, borders, slices, permutations), and the shapes of their results.

1. Images have four axes (n, height, width, channels); windows and borders leave n and the channels alone.
2. Kernels, strides and dilations are at least 1, pads at least 0, and at least one window fits.
3. A window of a pool covers a pixel of the image, not only padding.
4. A Slice keeps at least one element of every axis and stays inside; steps are positive.
5. A Transpose has a permutation of all axes. A Reshape keeps the number of elements.
"""

from __future__ import annotations

import math

from typing_extensions import assert_never

from hlsgen.ir.model import Pad, Repeat, Reshape, Shape, Slice, Transpose
from hlsgen.ir.verify.violations import Place
from hlsgen.ir.window import Window


def fits(constant_shape: Shape, shape: Shape) -> bool:
    """True if a constant broadcasts to a tensor without making it larger."""
    return len(constant_shape) <= len(shape) and all(
        a in (1, b) for a, b in zip(constant_shape[::-1], shape[::-1], strict=False)
    )


def verify_shape(place: Place, shape: Shape, expected: Shape | None) -> None:
    """Check the shape of a result; `expected` is None if a violation hides it."""
    legal = all(isinstance(n, int) and n > 0 for n in shape)
    if place.require(legal, "shape", shape, "lengths of at least 1") and expected is not None:
        place.require(shape == expected, "shape", shape, expected)


def windowed(place: Place, window: Window, shape: Shape, channels: int) -> Shape | None:
    """The shape of the result of windows on an image, with that many channels, or None after a violation."""
    if not _is_image(place, shape):
        return None
    legal = [
        place.require(min(window.kernel) >= 1, "kernel", window.kernel, "at least 1"),
        place.require(min(window.strides) >= 1, "strides", window.strides, "at least 1"),
        place.require(min(window.dilations) >= 1, "dilations", window.dilations, "at least 1"),
        place.require(min(window.pads) >= 0, "pads", window.pads, "at least 0"),
    ]
    if not all(legal):
        return None
    size = window.size(shape[1], shape[2])
    if not place.require(min(size) >= 1, "window", window, f"one that fits an image of {shape[1]} x {shape[2]}"):
        return None
    return (shape[0], *size, channels)


def verify_pool(place: Place, window: Window, shape: Shape) -> None:
    """Check that every window of a pool covers a pixel. The windows must fit the image (`windowed`)."""
    top_pad, left_pad = window.pads[:2]
    for start, length, axis in ((top_pad, shape[1], 0), (left_pad, shape[2], 1)):
        last = (window.size(shape[1], shape[2])[axis] - 1) * window.strides[axis] - start
        for first in (-start, last):
            taps = (first + n * window.dilations[axis] for n in range(window.kernel[axis]))
            covered = any(0 <= tap < length for tap in taps)
            place.require(covered, "pads", window.pads, "a pixel in every window")


def rearranged(place: Place, op: Repeat | Slice | Pad, shape: Shape) -> Shape | None:
    """The shape of the result, or None after a violation."""
    match op:
        case Repeat(rows, columns):
            legal = place.require(min(rows, columns) >= 1, "Repeat", (rows, columns), "at least 1")
            return (
                (shape[0], shape[1] * rows, shape[2] * columns, shape[3]) if _is_image(place, shape) and legal else None
            )
        case Slice(ranges):
            if not place.require(len(ranges) == len(shape), "Slice.ranges", ranges, f"one for each axis of {shape}"):
                return None
            inside = all(0 <= a < b <= n and step >= 1 for (a, b, step), n in zip(ranges, shape, strict=True))
            legal = place.require(inside, "Slice.ranges", ranges, f"parts of {shape}")
            return tuple(len(range(*r)) for r in ranges) if legal else None
        case Pad((top, left, bottom, right)):
            legal = place.require(min(op.pads) >= 0, "Pad.pads", op.pads, "at least 0")
            if not _is_image(place, shape) or not legal:
                return None
            return (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
        case _:
            assert_never(op)


def viewed(place: Place, op: Reshape | Transpose, shape: Shape, result: Shape) -> Shape | None:
    """The shape after a Reshape to `result` or a Transpose, or None after a violation."""
    match op:
        case Reshape():
            same_size = math.prod(shape) == math.prod(result)
            return result if place.require(same_size, "Reshape", f"{shape} to {result}", "as many elements") else None
        case Transpose(perm):
            axes = sorted(perm) == list(range(len(shape)))
            legal = place.require(axes, "Transpose.perm", perm, f"a permutation of {len(shape)} axes")
            return tuple(shape[p] for p in perm) if legal else None
        case _:
            assert_never(op)


def concatenated(place: Place, axis: int, shapes: list[Shape]) -> Shape | None:
    """The shape of tensors concatenated along an axis, or None after a violation."""
    if not place.require(0 <= axis < len(shapes[0]), "axis", axis, f"one of {len(shapes[0])} axes"):
        return None
    other_axes = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    agree = len(other_axes) == 1 and len({len(s) for s in shapes}) == 1
    if not place.require(agree, "shapes", shapes, f"shapes that differ only along axis {axis}"):
        return None
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def _is_image(place: Place, shape: Shape) -> bool:
    return place.require(len(shape) == 4, "shape of an image", shape, "(n, height, width, channels)")
