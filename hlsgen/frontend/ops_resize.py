"""Resize and Upsample: images whose rows and columns are repeated or left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import image_axes
from hlsgen.frontend.constant_folding import MAX_TENSOR, check_size
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.ir import Repeat, Shape, Slice
from hlsgen.numerics.fixed import Array


def resize(node: NodeContext) -> Imported:
    """Resize or Upsample that repeats every row and column equally often, or keeps every n-th; mode nearest.

    Raises HG004, HG010, HG012, HG013, HG020, HG023.
    """
    op_type, name, shape, attrs = node.op_type, node.name, node.shape, node.attrs
    mode = attrs.get("mode", "nearest")
    out, scales = _sizes(node)
    transform = "asymmetric"
    nearest = "floor"
    if op_type == "Resize" and node.opset >= 11:
        transform = attrs.get("coordinate_transformation_mode", "half_pixel")
        nearest = attrs.get("nearest_mode", "round_prefer_floor")
    if set(scales) == {1} and transform not in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
        return Imported(([],))
    if mode != "nearest":
        raise fail("HG010", name, f"{op_type} with mode {mode!r}.", "Supported: mode 'nearest'.")
    check_size(name, out)
    data = image_axes(name, shape, last=out[1] != shape[1])
    if transform not in _TRANSFORMS:
        raise fail("HG010", name, f"coordinate_transformation_mode {transform!r} is not supported.")
    if nearest not in _ROUNDINGS:
        raise fail("HG013", name, f"nearest_mode is {nearest!r}.", f"Supported: {', '.join(_ROUNDINGS)}.")
    n, height, width, channels = data.image
    if out[0] != n or out[-1 if data.last else 1] != channels:
        raise fail(
            "HG013", name, f"{op_type} of {list(shape)} to {list(out)}.",
            "Supported: along the points only, of tensors with the channels first or last.",
        )  # fmt: skip
    factors, ranges = [1, 1], [(0, height, 1), (0, width, 1)]
    points = len(data.points)
    for side, i in zip(range(-points, 0), range(1 if data.last else 2, len(shape)), strict=False):
        where = _indices(shape[i], out[i], scales[i], transform, nearest)
        factor = out[i] // shape[i]
        step = None if where is None or shape[i] % out[i] else _step(where)
        if factor * shape[i] == out[i] and where == [p // factor for p in range(out[i])]:
            factors[side] = factor
        elif where is not None and step is not None:
            ranges[side] = (where[0], where[-1] + 1, step)
        else:
            raise fail(
                "HG010", name,
                f"{op_type} from {shape[i]} to {out[i]} points ({transform}, {nearest}) does not repeat them evenly.",
                "Supported: whole factors with which every point is repeated equally often, or every n-th is kept.",
            )  # fmt: skip
    ops: ShapedOps = []
    if ranges != [(0, height, 1), (0, width, 1)]:
        height, width = (len(range(*r)) for r in ranges)
        ops.append((Slice(((0, n, 1), *ranges, (0, channels, 1))), (n, height, width, channels)))
    if factors != [1, 1]:
        ops.append((Repeat(*factors), (n, height * factors[0], width * factors[1], channels)))
    return Imported((data.around(ops),))


def _sizes(node: NodeContext) -> tuple[Shape, list[Fraction]]:
    """(shape of the result, scale of every axis). Raises HG010, HG013 or HG020."""
    name, shape, attrs = node.name, node.shape, node.attrs
    second = node.op_type == "Resize" and node.opset >= 11
    scales = _numbers(node, 2 if second else 1)
    sizes = _numbers(node, 3) if second else None
    if scales is None and sizes is None and "scales" in attrs:
        scales = np.asarray(attrs["scales"], np.float32)
    given = sizes if scales is None else scales
    if given is None:
        raise fail("HG020", name, "neither scales nor sizes are constant.", "One of them must be an initializer.")
    axes = [a + len(shape) if a < 0 else a for a in attrs.get("axes", range(len(shape)))]
    fine = len(given) == len(axes) == len(set(axes)) and all(0 <= a < len(shape) for a in axes)
    if not fine or not np.isfinite(given).all() or (given <= 0).any() or (given > MAX_TENSOR).any():
        raise fail("HG013", name, f"scales or sizes {given.tolist()} for data of shape {list(shape)}.")
    policy = attrs.get("keep_aspect_ratio_policy", "stretch")
    if policy not in _POLICIES:
        raise fail("HG013", name, f"keep_aspect_ratio_policy is {policy!r}.", f"Supported: {', '.join(_POLICIES)}.")
    out, factors = list(shape), [Fraction(1)] * len(shape)
    for axis, value in zip(axes, given.tolist(), strict=True):
        factors[axis] = Fraction(value) if scales is not None else Fraction(int(value), shape[axis])
        out[axis] = math.floor(shape[axis] * factors[axis])
    if scales is None and (choose := _POLICIES[policy]) is not None:
        scale = choose(factors[axis] for axis in axes)  # one for all axes; sizes are rounded to the nearest
        for axis in axes:
            factors[axis], out[axis] = scale, math.floor(shape[axis] * scale + Fraction(1, 2))
    return tuple(out), factors


def _numbers(node: NodeContext, position: int) -> Array | None:
    """A constant input that is not empty."""
    const = node.constant(position)
    return const.array.ravel() if const is not None and const.array.size else None


def _indices(size: int, out: int, scale: Fraction, transform: str, nearest: str) -> list[int] | None:
    """Which point each point of the result is; None where that depends on how coordinates are rounded."""
    place, rounding = _TRANSFORMS[transform], _ROUNDINGS[nearest]
    single = np.float32(float(scale))
    if Fraction(float(single)) != scale:
        return None
    found = []
    for half, factor in ((Fraction(1, 2), scale), (np.float32(0.5), single)):
        at = [rounding(place(type(half)(p), size, out, factor, half), half) for p in range(out)]
        found.append([min(max(int(p), 0), size - 1) for p in at])
    return found[0] if found[0] == found[1] else None


def _step(where: list[int]) -> int | None:
    """The distance of neighbours, if it is the same for all."""
    distances = set(np.diff(where).tolist()) or {1}
    return distances.pop() if len(distances) == 1 and min(distances) > 0 else None


def _half_pixel(p: Any, size: int, out: int, scale: Any, half: Any) -> Any:
    return (p + half) / scale - half


def _symmetric(p: Any, size: int, out: int, scale: Any, half: Any) -> Any:
    return size * half * (1 - out / (scale * size)) + _half_pixel(p, size, out, scale, half)


#: Point of the data of a point of the result, by coordinate_transformation_mode.
_TRANSFORMS: dict[str, Callable[[Any, int, int, Any, Any], Any]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda p, size, out, scale, half: (
        _half_pixel(p, size, out, scale, half) if out > 1 else 0 * p
    ),
    "tf_half_pixel_for_nn": lambda p, size, out, scale, half: (p + half) / scale,
    "asymmetric": lambda p, size, out, scale, half: p / scale,
    "align_corners": lambda p, size, out, scale, half: p * (size - 1) / (out - 1) if out > 1 else 0 * p,
}
#: Which of the scales of the axes counts for all, by keep_aspect_ratio_policy; None: each its own.
_POLICIES: dict[str, Callable[[Iterable[Fraction]], Fraction] | None] = {
    "stretch": None, "not_larger": min, "not_smaller": max,
}  # fmt: skip
_ROUNDINGS: dict[str, Callable[[Any, Any], int]] = {
    "round_prefer_floor": lambda v, half: math.ceil(v - half),
    "round_prefer_ceil": lambda v, half: math.floor(v + half),
    "floor": lambda v, half: math.floor(v),
    "ceil": lambda v, half: math.ceil(v),
}
