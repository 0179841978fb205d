"""Resize and Upsample of images by repetition or selection of rows and columns, mode nearest."""

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
from hlsgen.frontend.ops_gather import gathering
from hlsgen.frontend.ops_host import on_host
from hlsgen.ir import Repeat, Shape, Slice
from hlsgen.numerics.fixed import Array


def resize(node: NodeContext) -> Imported:
    """Resize or Upsample with mode nearest; the host computes other modes after the last layer.

    Rows and columns that are not all repeated equally often are gathered.
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
    if mode != "nearest" and node.last and op_type == "Resize":
        return on_host(node)
    if mode != "nearest":
        hint = "Supported: nearest, and linear of rows and columns by constant scales or sizes, without antialias."
        raise fail("HG010", name, f"{op_type} with mode {mode!r} is not supported.", hint)
    check_size(name, out)
    data = image_axes(name, shape, last=out[1] != shape[1])
    if transform not in _TRANSFORMS:
        text = f"attribute coordinate_transformation_mode is {transform!r}."
        raise fail("HG010", name, text, f"Supported: {', '.join(_TRANSFORMS)}.")
    if nearest not in _ROUNDINGS:
        text = f"attribute nearest_mode is {nearest!r}."
        raise fail("HG013", name, text, f"Supported: {', '.join(_ROUNDINGS)}.")
    n, height, width, channels = data.image
    if out[0] != n or out[-1 if data.last else 1] != channels:
        raise fail(
            "HG013",
            name,
            f"{op_type} of shape {list(shape)} to {list(out)} changes batch or channels.",
            "Supported: along the spatial axes only, of tensors with the channels first or last.",
        )
    factors, ranges = [1, 1], [(0, height, 1), (0, width, 1)]
    uneven: list[Callable[[NodeContext], Imported]] = []
    spatial_axes = len(data.spatial)
    for side, i in zip(range(-spatial_axes, 0), range(1 if data.last else 2, len(shape)), strict=False):
        sources = _sources(shape[i], out[i], scales[i], transform, nearest)
        factor = out[i] // shape[i]
        step = None if sources is None or shape[i] % out[i] else _step(sources)
        if factor * shape[i] == out[i] and sources == [p // factor for p in range(out[i])]:
            factors[side] = factor
        elif sources is not None and step is not None:
            ranges[side] = (sources[0], sources[-1] + 1, step)
        elif sources is not None and scales[i] != 1:
            uneven.append(gathering(i, np.array(sources)))
        else:
            text = f"axis {i} from {shape[i]} to {out[i]} elements ({transform}, {nearest}) depends on rounding."
            hint = "Supported: scales and modes of which float32 and exact arithmetic give the same elements."
            raise fail("HG010", name, text, hint)
    ops: ShapedOps = []
    if ranges != [(0, height, 1), (0, width, 1)]:
        height, width = (len(range(*r)) for r in ranges)
        ops.append((Slice(((0, n, 1), *ranges, (0, channels, 1))), (n, height, width, channels)))
    if factors != [1, 1]:
        ops.append((Repeat(*factors), (n, height * factors[0], width * factors[1], channels)))
    return Imported((data.on_images(ops),), then=tuple(uneven))


def _sizes(node: NodeContext) -> tuple[Shape, list[Fraction]]:
    """(shape of the result, scale of every axis). Raises HG010, HG013 or HG020."""
    name, shape, attrs = node.name, node.shape, node.attrs
    has_roi = node.op_type == "Resize" and node.opset >= 11
    scales = _numbers(node, 2 if has_roi else 1)
    sizes = _numbers(node, 3) if has_roi else None
    if scales is None and sizes is None and "scales" in attrs:
        scales = np.asarray(attrs["scales"], np.float32)
    parameters = sizes if scales is None else scales
    if parameters is None:
        raise fail("HG020", name, "neither scales nor sizes is a constant.", "One of them must be an initializer.")
    axes = [a + len(shape) if a < 0 else a for a in attrs.get("axes", range(len(shape)))]
    valid_axes = len(parameters) == len(axes) == len(set(axes)) and all(0 <= a < len(shape) for a in axes)
    in_range = np.isfinite(parameters).all() and (parameters > 0).all() and (parameters <= MAX_TENSOR).all()
    if not valid_axes or not in_range:
        text = f"scales or sizes are {parameters.tolist()} for data of shape {list(shape)}."
        hint = f"Each axis needs one number, greater than 0 and at most {MAX_TENSOR}."
        raise fail("HG013", name, text, hint)
    policy = attrs.get("keep_aspect_ratio_policy", "stretch")
    if policy not in _POLICIES:
        text = f"attribute keep_aspect_ratio_policy is {policy!r}."
        raise fail("HG013", name, text, f"Supported: {', '.join(_POLICIES)}.")
    out, factors = list(shape), [Fraction(1)] * len(shape)
    for axis, number in zip(axes, parameters.tolist(), strict=True):
        factors[axis] = Fraction(number) if scales is not None else Fraction(int(number), shape[axis])
        out[axis] = math.floor(shape[axis] * factors[axis])
    if scales is None and (choose := _POLICIES[policy]) is not None:
        scale = choose(factors[axis] for axis in axes)  # one scale for all axes; sizes are rounded to the nearest
        for axis in axes:
            factors[axis], out[axis] = scale, math.floor(shape[axis] * scale + Fraction(1, 2))
    return tuple(out), factors


def _numbers(node: NodeContext, position: int) -> Array | None:
    """The numbers of a constant input, or None if it is absent, computed or empty."""
    const = node.constant(position)
    return const.array.ravel() if const is not None and const.array.size else None


def _sources(size: int, out: int, scale: Fraction, transform: str, nearest: str) -> list[int] | None:
    """The index of the source of each result along an axis, or None if it depends on the rounding of coordinates."""
    place, rounding = _TRANSFORMS[transform], _ROUNDINGS[nearest]
    single = np.float32(float(scale))
    if transform == "half_pixel_symmetric" and Fraction(float(single)) != scale:
        return None
    by_arithmetic = []
    for half, factor in ((Fraction(1, 2), scale), (np.float32(0.5), single)):
        coordinates = [rounding(place(type(half)(p), size, out, factor, half), half) for p in range(out)]
        by_arithmetic.append([min(max(int(p), 0), size - 1) for p in coordinates])
    exact, in_float32 = by_arithmetic
    return exact if exact == in_float32 else None


def _step(sources: list[int]) -> int | None:
    """The distance of neighbours if all are equal and positive; else None."""
    distances = set(np.diff(sources).tolist()) or {1}
    return distances.pop() if len(distances) == 1 and min(distances) > 0 else None


def _half_pixel(p: Any, size: int, out: int, scale: Any, half: Any) -> Any:
    return (p + half) / scale - half


def _symmetric(p: Any, size: int, out: int, scale: Any, half: Any) -> Any:
    return size * half * (1 - out / (scale * size)) + (p + half) / scale - half


#: From an index of the result to a coordinate of the data, by coordinate_transformation_mode.
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
#: Choice of one scale for all axes, by keep_aspect_ratio_policy; None: each axis has its own.
_POLICIES: dict[str, Callable[[Iterable[Fraction]], Fraction] | None] = {
    "stretch": None,
    "not_larger": min,
    "not_smaller": max,
}
_ROUNDINGS: dict[str, Callable[[Any, Any], int]] = {
    "round_prefer_floor": lambda v, half: math.ceil(v - half),
    "round_prefer_ceil": lambda v, half: math.floor(v + half),
    "floor": lambda v, half: math.floor(v),
    "ceil": lambda v, half: math.ceil(v),
}
