"""Pooling and reductions over the points of images: windows, and sums that are divided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import (
    ImageAxes,
    covered,
    explicit_pads,
    image_axes,
    kernel_of,
    pair,
    result_of,
    whole,
    window,
)
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_integer import dequantizer_of, quantizer_of, scale_of
from hlsgen.frontend.dialect_qlinear import padded
from hlsgen.frontend.domains import CHANNELS_LAST
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_host import on_host
from hlsgen.ir import Pool, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Div, Mul, Trunc
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, Rounding


def _data(node: NodeContext) -> ImageAxes:
    last = node.domain == CHANNELS_LAST or node.op_type == "MaxPoolNHWC" or node.attrs.get("data_layout") == "NHWC"
    return image_axes(node.name, node.shape, last)


def max_pool(node: NodeContext) -> Imported:
    """MaxPool; MaxPoolNHWC of QONNX, channels last. Raises HG004, HG010, HG013, HG023."""
    name, data = node.name, _data(node)
    if 1 in node.used:
        raise fail("HG010", name, "the output Indices of MaxPool is used.", "Only its values are supported.")
    place = window(name, node.attrs, data, kernel_of(name, node.attrs, data.points), data.channels)
    _check_filled(name, data, place)
    return Imported((data.around(_pool(Reduction.MAX, data, place)),))


def global_max_pool(node: NodeContext) -> Imported:
    """Raises HG010, HG023."""
    data = _data(node)
    return Imported((data.around(_pool(Reduction.MAX, data, Window(pair(data.points, 1)))),))


def average_pool(node: NodeContext) -> Imported:
    """Raises HG004, HG010, HG013, HG023, HG026."""
    data = _data(node)
    _check_float32(node)
    return Imported((_average(node.name, data, node.attrs),))


def global_average_pool(node: NodeContext) -> Imported:
    """Raises HG010, HG023, HG026."""
    data = _data(node)
    _check_float32(node)
    return Imported((data.around(_mean(data.image, Window(pair(data.points, 1)))),))


def _check_float32(node: NodeContext) -> None:
    if node.dtype != "float32":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")


def _pool(kind: Reduction, data: ImageAxes, place: Window) -> ShapedOps:
    return [(Pool(kind, place), result_of(data, place, data.channels))]


def _counts(image: Shape, place: Window, margin: Sequence[tuple[int, int]] = ((0, 0), (0, 0))) -> Array:
    """Taps of every window on the data and its margins, (1, height, width, 1), size 1 where all are alike."""
    size = place.size(image[1], image[2])
    rows, columns = (covered(image[1 + i], size[i], place, i, margin[i]) for i in (0, 1))
    lines = [part[:1] if (part == part[0]).all() else part for part in (rows, columns)]
    return np.asarray(lines[0][:, None] * lines[1][None, :])[None, :, :, None]


def _check_filled(name: str, data: ImageAxes, place: Window) -> None:
    if not _counts(data.image, place).all():
        raise fail("HG013", name, "a window lies wholly in the padding.", "Use smaller pads.")


def _mean(image: Shape, place: Window, counts: Array | None = None) -> ShapedOps:
    """The sum of every window, then one division by its count."""
    n, height, width, channels = image
    shape = (n, *place.size(height, width), channels)
    counts = _counts(image, place) if counts is None else counts
    return [(Pool(Reduction.SUM, place), shape), (Div(counts.astype(np.float32)), shape)]


def _average(name: str, data: ImageAxes, attrs: dict[str, Any], all_taps: bool = False) -> ShapedOps:
    """AveragePool. With count_include_pad, padding counts where pads ask for it, not what ceil_mode adds.

    That counts too with `all_taps`.
    """
    kernel = kernel_of(name, attrs, data.points)
    place = window(name, attrs, data, kernel, data.channels)
    _check_filled(name, data, place)
    if not attrs.get("count_include_pad", 0):
        return data.around(_mean(data.image, place))
    if all_taps:
        return data.around(_mean(data.image, place, np.full((1, 1, 1, 1), place.taps)))
    begins, ends = (pair(part, 0) for part in explicit_pads(name, attrs, data, kernel))
    margin = list(zip(begins, ends, strict=True))
    return data.around(_mean(data.image, place, _counts(data.image, place, margin)))


def quant_avg_pool(node: NodeContext) -> Imported:
    """QuantAvgPool2d: sums of whole numbers, shifted right to `obits`; the result is whole numbers again.

    Raises HG004, HG010, HG013, HG021, HG023, HG026.
    """
    name, attrs, data = node.name, node.attrs, _data(node)
    _check_float32(node)
    if len(data.points) != 2:
        raise fail("HG023", name, f"data of shape {list(data.shape)}.", "QuantAvgPool2d takes images.")
    for key in ("kernel", "stride", "ibits", "obits"):
        if key not in attrs:
            raise fail("HG013", name, f"attribute {key} is missing.")
    kernel = whole(name, attrs, "kernel", 2, 1)
    bits = {key: whole(name, attrs, key, 1, 1)[0] for key in ("ibits", "obits")}
    if max(bits.values()) > 32:
        raise fail("HG021", name, f"ibits {bits['ibits']}, obits {bits['obits']}.", "Supported: 1 to 32.")
    place = window(name, {"strides": whole(name, attrs, "stride", 2, 1)}, data, kernel, data.channels)
    largest = ((1 << bits["ibits"]) - 1) * math.prod(kernel)
    shift = max(largest.bit_length() - bits["obits"], 0)
    one, zero = np.ones((1,) * 4, np.float32), np.zeros((1,) * 4, np.float32)
    down = Trunc(one, zero, one * np.float32(2.0**shift), zero, one, None, Rounding.FLOOR)
    sums = _pool(Reduction.SUM, data, place)
    return Imported((data.around([*sums, (down, sums[0][1])]),))


def qlinear_average_pool(node: NodeContext) -> Imported:
    """QLinearAveragePool: data, its scale, zero point, output scale, zero point.

    Dequantizes, averages in float32 and quantizes, with the zero point before rounding; onnxruntime also
    rounds every partial sum, which is not done here. Raises HG004, HG010, HG013, HG020, HG022, HG023, HG026.
    """
    data, sx, sy, one = _codes(node)
    ops = _dequantized(node, data, sx)
    ops += _average(node.name, data, node.attrs, all_taps=True)
    shape = ops[-1][1]
    last = quantizer_of(node.name, shape, [None, Const(np.ones_like(sy)), padded(node.constants)[4]], {})
    zero = last.zero_point.astype(np.float32)
    last = replace(last, zero_point=np.zeros(one, np.int64))
    return Imported(([*ops, (Div(sy), shape), (Add(zero), shape), (last, shape)],))


def qlinear_global_average_pool(node: NodeContext) -> Imported:
    """QLinearGlobalAveragePool: inputs as `qlinear_average_pool`.

    Multiplies the integer sum by fl(sx / fl(sy * fl(count))). Raises HG010, HG020, HG022, HG023, HG026.
    """
    data, sx, sy, one = _codes(node)
    unit = np.ones(one, np.float32)
    ops = _dequantized(node, data, unit)
    place = Window(pair(data.points, 1))
    ops += data.around(_pool(Reduction.SUM, data, place))
    shape = ops[-1][1]
    last = quantizer_of(node.name, shape, [None, Const(unit), padded(node.constants)[4]], {})
    return Imported(([*ops, (Mul(sx / (sy * np.float32(place.taps))), shape), (last, shape)],))


def _codes(node: NodeContext) -> tuple[ImageAxes, Array, Array, Shape]:
    """(the data, its scale, that of the result, both float32 with the data's rank; a shape of ones of that rank)."""
    name, inputs = node.name, padded(node.constants)
    data = image_axes(name, node.shape, bool(node.attrs.get("channels_last", 0)))
    if node.dtype not in ("int8", "uint8"):
        raise fail("HG026", name, f"{node.op_type} of {node.dtype} data.", "Supported: int8, uint8.")
    scales = [scale_of(name, inputs[i], what) for i, what in ((1, "the data's scale"), (3, "the output's scale"))]
    if any(scale.size != 1 for scale in scales):
        raise fail("HG023", name, f"{node.op_type} with a scale per channel.", "Use one per tensor.")
    one = (1,) * len(data.shape)
    sx, sy = (scale.astype(np.float32).reshape(one) for scale in scales)
    return data, sx, sy, one


def _dequantized(node: NodeContext, data: ImageAxes, scale: Array) -> ShapedOps:
    inputs = [None, Const(scale), padded(node.constants)[2]]
    return [(dequantizer_of(node.name, data.shape, inputs, {}, node.dtype), data.shape)]


# --------------------------------------------------------------------------- reductions


def _reduced_axes(node: NodeContext) -> list[int]:
    """Axes that a reduction names, in its attribute or second input. Raises HG013."""
    const, shape = node.constant(1), node.shape
    given = const.array.ravel().tolist() if const is not None else node.attrs.get("axes")
    if given is None or not len(given):
        return []
    axes = sorted({int(a) + len(shape) if a < 0 else int(a) for a in given})
    if len(axes) != len(given) or not all(0 <= a < len(shape) for a in axes):
        raise fail("HG013", node.name, f"axes {list(given)} of data of shape {list(shape)}.")
    return axes


def is_spatial(shape: Shape, axes: Sequence[int]) -> bool:
    """Whether a reduction is over points of images or signals: some axes, but neither the first nor all others."""
    return len(shape) in (3, 4) and bool(axes) and 0 not in axes and len(axes) < len(shape) - 1


def reduction(node: NodeContext) -> Imported:
    """ReduceMax, ReduceMean, ReduceMin, ReduceSum, over any axes: those are the points, what is left the channels.
    IntegerMean: the sum.

    A minimum is the maximum with all signs turned around. At the end of a network the host does what is not over points
    of images. Raises HG004, HG013, HG026.
    """
    shape, axes = node.shape, _reduced_axes(node)
    if not axes and node.attrs.get("noop_with_empty_axes", 0):
        return Imported(([],))
    axes = axes or list(range(len(shape)))
    largest = node.op_type in ("ReduceMax", "ReduceMin")
    whole = node.op_type == "ReduceSum" and np.dtype(node.dtype).kind in "iu"
    if not largest and not whole:
        _check_float32(node)
    floats = node.dtype.startswith("float")
    smallest = node.op_type == "ReduceMin" and node.dtype not in ("int8", "uint8")
    if (
        not shape or (node.last and (smallest or (floats and not is_spatial(shape, axes))))
    ) and node.op_type != "IntegerMean":
        return on_host(node)
    kept = [a for a in range(len(shape)) if a not in axes]
    front = 0 in kept
    order = (*kept[:front], *axes, *kept[front:])
    points = [shape[a] for a in axes]
    points = [math.prod(points[:-1]), points[-1]] if len(points) > 1 else [1, *points]
    image = (shape[0] if front else 1, *points, math.prod(shape[a] for a in kept[front:]))
    place = Window((points[0], points[1]))
    steps: ShapedOps = []
    apart = tuple(shape[a] for a in order)
    if order != tuple(range(len(shape))):
        steps.append((Transpose(order), apart))
    if image != apart:
        steps.append((Reshape(), image))
    if node.op_type == "ReduceMean":
        steps += _mean(image, place)
    else:
        kind = Reduction.MAX if largest else Reduction.SUM
        points_left = (image[0], 1, 1, image[3])
        steps.append((Pool(kind, place), points_left))
        if node.op_type == "ReduceMin":
            minus = np.full((1,) * 4, -1).astype(node.dtype)
            turned: list[Mul | Add] = [Mul(minus)] if floats else [Mul(minus), Add(minus)]  # -x; of integers -1 - x
            steps = [*steps[:-1], *((op, image) for op in turned), steps[-1], *((op, points_left) for op in turned)]
    if node.attrs.get("keepdims", 1):
        result = tuple(1 if a in axes else s for a, s in enumerate(shape))
    else:
        result = tuple(s for a, s in enumerate(shape) if a not in axes)
    return Imported(([*steps, (Reshape(), result)] if result != steps[-1][1] else steps,))
