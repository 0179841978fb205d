"""Pooling and reductions over the points of images: windows, and sums that are divided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import (
    AxisOrder,
    Imported,
    covered,
    explicit_pads,
    kernel_of,
    pair,
    result_of,
    whole,
    window,
)
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_integer import dequantize_linear, quantize_linear, scale_of
from hlsgen.ir import Pool, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Div, Mul, Trunc
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, Rounding

Inputs = list[Const | None]

#: Operators of windows; those of whole images; reductions over chosen axes.
WINDOWS = frozenset(["AveragePool", "MaxPool", "MaxPoolNHWC", "QuantAvgPool2d"])
GLOBAL = frozenset(["GlobalAveragePool", "GlobalMaxPool"])
REDUCTIONS = frozenset(["ReduceMax", "ReduceMean", "ReduceSum"])
#: Those of onnxruntime's own domain, of 8-bit codes.
QLINEAR = frozenset(["QLinearAveragePool", "QLinearGlobalAveragePool"])


def import_pool(node: onnx.NodeProto, name: str, data: AxisOrder, attrs: dict[str, Any], dtype: str) -> Imported:
    """Steps for one of WINDOWS or GLOBAL."""
    match node.op_type:
        case "GlobalMaxPool":
            return data.around(_pool(Reduction.MAX, data, Window(pair(data.points, 1))))
        case "GlobalAveragePool":
            _single(name, node.op_type, dtype)
            return data.around(_mean(data.image, Window(pair(data.points, 1))))
        case "QuantAvgPool2d":
            return _shifted(name, data, attrs, dtype)
        case "AveragePool":
            _single(name, node.op_type, dtype)
            return _average(name, data, attrs)
        case _:
            if len(node.output) > 1 and node.output[1]:
                raise fail("HG010", name, "the output Indices of MaxPool is used.", "Only its values are supported.")
            place = window(name, attrs, data, kernel_of(name, attrs, data.points), data.channels)
            _check_filled(name, data, place)
            return data.around(_pool(Reduction.MAX, data, place))


def _single(name: str, op_type: str, dtype: str) -> None:
    if dtype != "float32":
        raise fail("HG026", name, f"{op_type} of {dtype} data.", "Cast it to float32 first (operator Cast).")


def _pool(kind: Reduction, data: AxisOrder, place: Window) -> Imported:
    return [(Pool(kind, place), result_of(data, place, data.channels))]


def _counts(image: Shape, place: Window, margin: Sequence[tuple[int, int]] = ((0, 0), (0, 0))) -> Array:
    """Taps of every window on the data and its margins, (1, height, width, 1), size 1 where all are alike."""
    size = place.size(image[1], image[2])
    rows, columns = (covered(image[1 + i], size[i], place, i, margin[i]) for i in (0, 1))
    lines = [part[:1] if (part == part[0]).all() else part for part in (rows, columns)]
    return np.asarray(lines[0][:, None] * lines[1][None, :])[None, :, :, None]


def _check_filled(name: str, data: AxisOrder, place: Window) -> None:
    if not _counts(data.image, place).all():
        raise fail("HG013", name, "a window lies wholly in the padding.", "Use smaller pads.")


def _mean(image: Shape, place: Window, counts: Array | None = None) -> Imported:
    """The sum of every window, then one division by its count."""
    n, height, width, channels = image
    shape = (n, *place.size(height, width), channels)
    counts = _counts(image, place) if counts is None else counts
    return [(Pool(Reduction.SUM, place), shape), (Div(counts.astype(np.float32)), shape)]


def _average(name: str, data: AxisOrder, attrs: dict[str, Any], all_taps: bool = False) -> Imported:
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


def _shifted(name: str, data: AxisOrder, attrs: dict[str, Any], dtype: str) -> Imported:
    """QuantAvgPool2d: sums of whole numbers, shifted right to `obits`; the result is whole numbers again."""
    _single(name, "QuantAvgPool2d", dtype)
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
    return data.around([*sums, (down, sums[0][1])])


def import_qlinear_pool(
    op_type: str, name: str, data: AxisOrder, inputs: Inputs, attrs: dict[str, Any], dtype: str
) -> Imported:  # fmt: skip
    """Steps for one of QLINEAR: data, its scale, zero point, output scale, zero point.

    QLinearGlobalAveragePool multiplies the integer sum by fl(sx / fl(sy * fl(count))). QLinearAveragePool
    dequantizes, averages in float32 and quantizes, with the zero point before rounding; onnxruntime also
    rounds every partial sum, which is not done here.
    """
    if dtype not in ("int8", "uint8"):
        raise fail("HG026", name, f"{op_type} of {dtype} data.", "Supported: int8, uint8.")
    inputs = [*inputs, *[None] * 5]
    scales = [scale_of(name, inputs[i], what) for i, what in ((1, "the data's scale"), (3, "the output's scale"))]
    if any(scale.size != 1 for scale in scales):
        raise fail("HG023", name, f"{op_type} with a scale per channel.", "Use one per tensor.")
    one = (1,) * len(data.shape)
    (sx, sy), unit = (scale.astype(np.float32).reshape(one) for scale in scales), np.ones(one, np.float32)
    summed = op_type == "QLinearGlobalAveragePool"
    factor = unit if summed else sx
    steps: Imported = [(dequantize_linear(name, data.shape, [None, Const(factor), inputs[2]], {}, dtype), data.shape)]
    if summed:
        place = Window(pair(data.points, 1))
        steps += data.around(_pool(Reduction.SUM, data, place))
        steps.append((Mul(sx / (sy * np.float32(place.taps))), steps[-1][1]))
        return [*steps, (quantize_linear(name, steps[-1][1], [None, Const(unit), inputs[4]], {}), steps[-1][1])]
    steps += _average(name, data, attrs, all_taps=True)
    shape = steps[-1][1]
    last = quantize_linear(name, shape, [None, Const(unit), inputs[4]], {})
    zero = last.zero_point.astype(np.float32)
    last = replace(last, zero_point=np.zeros(one, np.int64))
    return [*steps, (Div(sy), shape), (Add(zero), shape), (last, shape)]


# --------------------------------------------------------------------------- reductions


def reduced_axes(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any]) -> list[int]:
    """Axes that a reduction names, in its attribute or second input. Raises HG013."""
    const = inputs[1] if len(inputs) > 1 else None
    given = const.array.ravel().tolist() if const is not None else attrs.get("axes")
    if given is None or not len(given):
        return []
    axes = sorted({int(a) + len(shape) if a < 0 else int(a) for a in given})
    if len(axes) != len(given) or not all(0 <= a < len(shape) for a in axes):
        raise fail("HG013", name, f"axes {list(given)} of data of shape {list(shape)}.")
    return axes


def is_spatial(shape: Shape, axes: Sequence[int]) -> bool:
    """Whether a reduction is over points of images or signals: some axes, but neither the first nor all others."""
    return len(shape) in (3, 4) and bool(axes) and 0 not in axes and len(axes) < len(shape) - 1


def import_reduction(
    op_type: str, name: str, shape: Shape, axes: list[int], attrs: dict[str, Any], dtype: str
) -> Imported:  # fmt: skip
    """Steps for one of REDUCTIONS that is spatial: what is left takes the place of the channels."""
    if op_type != "ReduceMax":
        _single(name, op_type, dtype)
    kept = [a for a in range(1, len(shape)) if a not in axes]
    order = (0, *axes, *kept)
    points = pair([shape[a] for a in axes], 1)
    image = (shape[0], *points, math.prod(shape[a] for a in kept))
    place = Window(points)
    steps: Imported = []
    apart = tuple(shape[a] for a in order)
    if order != tuple(range(len(shape))):
        steps.append((Transpose(order), apart))
    if image != apart:
        steps.append((Reshape(), image))
    if op_type == "ReduceMean":
        steps += _mean(image, place)
    else:
        kind = Reduction.MAX if op_type == "ReduceMax" else Reduction.SUM
        steps.append((Pool(kind, place), (image[0], 1, 1, image[3])))
    if attrs.get("keepdims", 1):
        result = tuple(1 if a in axes else s for a, s in enumerate(shape))
    else:
        result = tuple(s for a, s in enumerate(shape) if a not in axes)
    return [*steps, (Reshape(), result)] if result != steps[-1][1] else steps
