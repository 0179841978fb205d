"""Pooling, and reductions as pooling: maxima, sums and means over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend import channels_last
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


def _data(node: NodeContext) -> channels_last.ImageAxes:
    last = node.domain == CHANNELS_LAST or node.op_type == "MaxPoolNHWC" or node.attrs.get("data_layout") == "NHWC"
    return channels_last.image_axes(node.name, node.shape, last)


def max_pool(node: NodeContext) -> Imported:
    """MaxPool; MaxPoolNHWC of QONNX, channels last. Raises HG004, HG010, HG013, HG023."""
    name, data = node.name, _data(node)
    if 1 in node.used:
        raise fail("HG010", name, "the output Indices of MaxPool is used.", "Supported: the values only.")
    place = channels_last.window(
        name, node.attrs, data, channels_last.kernel_of(name, node.attrs, data.spatial), data.channels
    )
    _check_filled(name, data, place)
    return Imported((data.on_images(_pool(Reduction.MAX, data, place)),))


def global_max_pool(node: NodeContext) -> Imported:
    """GlobalMaxPool. Raises HG010, HG023."""
    data = _data(node)
    return Imported((data.on_images(_pool(Reduction.MAX, data, Window(channels_last.pair(data.spatial, 1)))),))


def average_pool(node: NodeContext) -> Imported:
    """AveragePool. Raises HG004, HG010, HG013, HG023, HG026."""
    data = _data(node)
    _check_float32(node)
    return Imported((_average(node.name, data, node.attrs),))


def global_average_pool(node: NodeContext) -> Imported:
    """GlobalAveragePool. Raises HG010, HG023, HG026."""
    data = _data(node)
    _check_float32(node)
    return Imported((data.on_images(_mean(data.image, Window(channels_last.pair(data.spatial, 1)))),))


def _check_float32(node: NodeContext) -> None:
    if node.dtype != "float32":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")


def _pool(kind: Reduction, data: channels_last.ImageAxes, place: Window) -> ShapedOps:
    return [(Pool(kind, place), channels_last.result_of(data, place, data.channels))]


def window_counts(image: Shape, place: Window, margin: Sequence[tuple[int, int]] = ((0, 0), (0, 0))) -> Array:
    """Number of taps of every window on the data and its margins, (1, height, width, 1); size 1 for equal counts."""
    size = place.size(image[1], image[2])
    rows, columns = (channels_last.covered(image[1 + i], size[i], place, i, margin[i]) for i in (0, 1))
    lines = [part[:1] if (part == part[0]).all() else part for part in (rows, columns)]
    return np.asarray(lines[0][:, None] * lines[1][None, :])[None, :, :, None]


def _check_filled(name: str, data: channels_last.ImageAxes, place: Window) -> None:
    if not window_counts(data.image, place).all():
        text = "a window of the pooling lies entirely in the padding."
        raise fail("HG013", name, text, "Use smaller pads, or a larger kernel.")


def _mean(image: Shape, place: Window, counts: Array | None = None) -> ShapedOps:
    """The sum of every window, then one division by its count."""
    n, height, width, channels = image
    shape = (n, *place.size(height, width), channels)
    counts = window_counts(image, place) if counts is None else counts
    return [(Pool(Reduction.SUM, place), shape), (Div(counts.astype(np.float32)), shape)]


def _average(name: str, data: channels_last.ImageAxes, attrs: dict[str, Any], all_taps: bool = False) -> ShapedOps:
    """AveragePool. If count_include_pad is set, the padding of pads counts, the padding of ceil_mode does not.

    `all_taps`: the padding of ceil_mode counts as well.
    """
    kernel = channels_last.kernel_of(name, attrs, data.spatial)
    place = channels_last.window(name, attrs, data, kernel, data.channels)
    _check_filled(name, data, place)
    if not attrs.get("count_include_pad", 0):
        return data.on_images(_mean(data.image, place))
    if all_taps:
        return data.on_images(_mean(data.image, place, np.full((1, 1, 1, 1), place.taps)))
    begins, ends = (channels_last.pair(part, 0) for part in channels_last.explicit_pads(name, attrs, data, kernel))
    margin = list(zip(begins, ends, strict=True))
    return data.on_images(_mean(data.image, place, window_counts(data.image, place, margin)))


def quant_avg_pool(node: NodeContext) -> Imported:
    """QuantAvgPool2d: sums of whole numbers, shifted right to obits, which are whole numbers again.

    Raises HG004, HG010, HG013, HG021, HG023, HG026.
    """
    name, attrs, data = node.name, node.attrs, _data(node)
    _check_float32(node)
    if len(data.spatial) != 2:
        raise fail("HG023", name, f"data of shape {list(data.shape)}.", "QuantAvgPool2d needs images (four axes).")
    for key in ("kernel", "stride", "ibits", "obits"):
        if key not in attrs:
            hint = "QuantAvgPool2d needs kernel, stride, ibits and obits."
            raise fail("HG013", name, f"attribute {key} is missing.", hint)
    kernel = channels_last.whole_numbers(name, attrs, "kernel", 2, 1)
    bits = {key: channels_last.whole_numbers(name, attrs, key, 1, 1)[0] for key in ("ibits", "obits")}
    if max(bits.values()) > 32:
        text = f"attributes ibits and obits are {bits['ibits']} and {bits['obits']}."
        raise fail("HG021", name, text, "Supported: 1 to 32.")
    place = channels_last.window(
        name, {"strides": channels_last.whole_numbers(name, attrs, "stride", 2, 1)}, data, kernel, data.channels
    )
    largest = ((1 << bits["ibits"]) - 1) * math.prod(kernel)
    shift = max(largest.bit_length() - bits["obits"], 0)
    ones, zeros = np.ones((1,) * 4, np.float32), np.zeros((1,) * 4, np.float32)
    shift_right = Trunc(ones, zeros, ones * np.float32(2.0**shift), zeros, ones, None, Rounding.FLOOR)
    sums = _pool(Reduction.SUM, data, place)
    return Imported((data.on_images([*sums, (shift_right, sums[0][1])]),))


def qlinear_average_pool(node: NodeContext) -> Imported:
    """QLinearAveragePool: data, its scale, zero point, output scale, zero point.

    It dequantizes, averages in float32 and quantizes, with the zero point before rounding. onnxruntime also
    rounds every partial sum, which this does not. Raises HG004, HG010, HG013, HG020, HG022, HG023, HG026.
    """
    data, sx, sy, scalar_shape = _codes(node)
    ops = _dequantized(node, data, sx)
    ops += _average(node.name, data, node.attrs, all_taps=True)
    shape = ops[-1][1]
    last = quantizer_of(node.name, shape, [None, Const(np.ones_like(sy)), padded(node.constants)[4]], {})
    zero = last.zero_point.astype(np.float32)
    last = replace(last, zero_point=np.zeros(scalar_shape, np.int64))
    return Imported(([*ops, (Div(sy), shape), (Add(zero), shape), (last, shape)],))


def qlinear_global_average_pool(node: NodeContext) -> Imported:
    """QLinearGlobalAveragePool: inputs as `qlinear_average_pool`.

    It multiplies the integer sum by fl(sx / fl(sy * fl(count))). Raises HG010, HG020, HG022, HG023, HG026.
    """
    data, sx, sy, scalar_shape = _codes(node)
    ones = np.ones(scalar_shape, np.float32)
    ops = _dequantized(node, data, ones)
    place = Window(channels_last.pair(data.spatial, 1))
    ops += data.on_images(_pool(Reduction.SUM, data, place))
    shape = ops[-1][1]
    last = quantizer_of(node.name, shape, [None, Const(ones), padded(node.constants)[4]], {})
    return Imported(([*ops, (Mul(sx / (sy * np.float32(place.taps))), shape), (last, shape)],))


def _codes(node: NodeContext) -> tuple[channels_last.ImageAxes, Array, Array, Shape]:
    """(the data, its scale, the result's scale, a shape of ones); scales are float32, all have the data's rank."""
    name, inputs = node.name, padded(node.constants)
    data = channels_last.image_axes(name, node.shape, bool(node.attrs.get("channels_last", 0)))
    if node.dtype not in ("int8", "uint8"):
        raise fail("HG026", name, f"{node.op_type} of {node.dtype} data.", "Supported: int8, uint8.")
    subjects = ((1, "the data's scale"), (3, "the output's scale"))
    scales = [scale_of(name, inputs[i], subject) for i, subject in subjects]
    if any(scale.size != 1 for scale in scales):
        raise fail("HG023", name, f"{node.op_type} with a scale per channel.", "Use one per tensor.")
    scalar_shape = (1,) * len(data.shape)
    sx, sy = (scale.astype(np.float32).reshape(scalar_shape) for scale in scales)
    return data, sx, sy, scalar_shape


def _dequantized(node: NodeContext, data: channels_last.ImageAxes, scale: Array) -> ShapedOps:
    inputs = [None, Const(scale), padded(node.constants)[2]]
    return [(dequantizer_of(node.name, data.shape, inputs, {}, node.dtype), data.shape)]


# --------------------------------------------------------------------------- reductions


def _reduced_axes(node: NodeContext) -> list[int]:
    """The axes of a reduction from its attribute or second input, sorted; empty if absent. Raises HG013."""
    const, shape = node.constant(1), node.shape
    numbers = const.array.ravel().tolist() if const is not None else node.attrs.get("axes")
    if numbers is None or not len(numbers):
        return []
    rank = len(shape)
    axes = sorted({int(a) + rank if a < 0 else int(a) for a in numbers})
    if len(axes) != len(numbers) or not all(0 <= a < rank for a in axes):
        text = f"the axes of {node.op_type} are {list(numbers)} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, f"Each must be from {-rank} to {rank - 1}, and given once.")
    return axes


def is_spatial(shape: Shape, axes: Sequence[int]) -> bool:
    """True for a reduction over pixels of images or signals: some axes, but neither the first nor all others."""
    return len(shape) in (3, 4) and bool(axes) and 0 not in axes and len(axes) < len(shape) - 1


def reduction(node: NodeContext) -> Imported:
    """ReduceMax, ReduceMean, ReduceMin, ReduceSum, and the sum of IntegerMean, as pooling.

    The reduced axes become the pixels of an image, the others its channels. A minimum is a maximum of changed
    signs. At the end of a network the host computes reductions that are not over pixels of images. Raises HG004,
    HG013, HG026.
    """
    shape, axes = node.shape, _reduced_axes(node)
    if not axes and node.attrs.get("noop_with_empty_axes", 0):
        return Imported(([],))
    axes = axes or list(range(len(shape)))
    is_extremum = node.op_type in ("ReduceMax", "ReduceMin")
    is_integer_sum = node.op_type == "ReduceSum" and np.dtype(node.dtype).kind in "iu"
    if not is_extremum and not is_integer_sum:
        _check_float32(node)
    is_float = node.dtype.startswith("float")
    is_wide_minimum = node.op_type == "ReduceMin" and node.dtype not in ("int8", "uint8")
    host_at_end = node.last and (is_wide_minimum or (is_float and not is_spatial(shape, axes)))
    if (not shape or host_at_end) and node.op_type != "IntegerMean":
        return on_host(node)
    remaining = [a for a in range(len(shape)) if a not in axes]
    has_batch = 0 in remaining
    order = (*remaining[:has_batch], *axes, *remaining[has_batch:])
    sizes = [shape[a] for a in axes]
    kernel = (math.prod(sizes[:-1]), sizes[-1])
    image = (shape[0] if has_batch else 1, *kernel, math.prod(shape[a] for a in remaining[has_batch:]))
    place = Window(kernel)
    steps: ShapedOps = []
    ordered = tuple(shape[a] for a in order)
    if order != tuple(range(len(shape))):
        steps.append((Transpose(order), ordered))
    if image != ordered:
        steps.append((Reshape(), image))
    if node.op_type == "ReduceMean":
        steps += _mean(image, place)
    else:
        kind = Reduction.MAX if is_extremum else Reduction.SUM
        pooled = (image[0], 1, 1, image[3])
        steps.append((Pool(kind, place), pooled))
        if node.op_type == "ReduceMin":
            minus = np.full((1,) * 4, -1).astype(node.dtype)
            negate: list[Mul | Add] = [Mul(minus)] if is_float else [Mul(minus), Add(minus)]  # -x, or -1 - x
            steps = [*steps[:-1], *((op, image) for op in negate), steps[-1], *((op, pooled) for op in negate)]
    if node.attrs.get("keepdims", 1):
        result = tuple(1 if a in axes else s for a, s in enumerate(shape))
    else:
        result = tuple(s for a, s in enumerate(shape) if a not in axes)
    return Imported(([*steps, (Reshape(), result)] if result != steps[-1][1] else steps,))
