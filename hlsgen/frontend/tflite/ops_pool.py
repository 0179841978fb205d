"""Pools and means: AVERAGE_POOL_2D, MAX_POOL_2D, MEAN."""

from __future__ import annotations

import math

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.ops_pool import window_counts
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.requantizers import doubly_rounded, half_to_even
from hlsgen.frontend.tflite.windows import window_along
from hlsgen.ir import Pool, Reshape, Shape, Transpose
from hlsgen.ir.ops import Add, Cast, IntegerRatio, Max, Min, Mul
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.multipliers import Runtime, mean_multiplier


def average_pool_2d(node: OperatorNode) -> None:
    """AVERAGE_POOL_2D: sums of codes with their zero points, divided by the count, half away from zero.

    Raises HG013, HG014, HG022 - HG024, HG026.
    """
    data, result = _copied_codes(node)
    if data != result and node.runtime is Runtime.TFLM:
        raise _unequal(node)
    shape, window = _window(node)
    counts = window_counts(node.tensor(0).shape, window).astype(np.int64)
    ratio = IntegerRatio(
        np.ones((1,) * 4, np.int64), counts // 2, counts, node.bounds(result), result.dtype, mirrored=True
    )
    ops: ShapedOps = [
        (Cast("int32"), node.tensor(0).shape),
        (Pool(Reduction.SUM, window), shape),
        (ratio, shape),
    ]
    node.finish(node.chain(node.value(0), ops), shape)


def max_pool_2d(node: OperatorNode) -> None:
    """MAX_POOL_2D: the largest code, within the fused activation. Raises HG013, HG014, HG022 - HG024, HG026."""
    data, result = _copied_codes(node)
    if data != result and (node.runtime is Runtime.TFLM or node.by_xnnpack):
        raise _unequal(node)
    shape, window = _window(node)
    ops: ShapedOps = [(Pool(Reduction.MAX, window), shape)]
    bounds = node.bounds(result, xnnpack=node.by_xnnpack)
    if bounds.lo > data.type.lo:
        ops.append((Max(np.full((1,) * 4, bounds.lo, data.dtype)), shape))
    if bounds.hi < data.type.hi:
        ops.append((Min(np.full((1,) * 4, bounds.hi, data.dtype)), shape))
    node.finish(node.chain(node.value(0), ops), shape)


def mean(node: OperatorNode) -> None:
    """MEAN along constant axes: the sum of the codes, rescaled by one multiplier that contains the count.

    XNNPACK: float32, zero points added before rounding. Raises HG013, HG014, HG020, HG022 - HG024, HG026.
    """
    data, result = _copied_codes(node)
    shape = node.tensor(0).shape
    axes = _axes(node, shape)
    count = math.prod(shape[a] for a in axes)
    value, pooled = _summed(node, shape, axes)
    if node.by_xnnpack:
        factor = np.float32(data.scale) / np.float32(result.scale) * (np.float32(1) / np.float32(count))
        offset = np.float32(result.zero_point) - np.float32(count * data.zero_point) * factor
        ops: ShapedOps = [
            (Cast("float32"), pooled),
            (Mul(np.full((1,) * 4, factor, np.float32)), pooled),
            (Add(np.full((1,) * 4, offset, np.float32)), pooled),
            (half_to_even(4, 0, result.type, result.dtype), pooled),
        ]
    else:
        multiplier = mean_multiplier(data.scale, result.scale, count)
        add = -count * data.zero_point
        ops = [(doubly_rounded([multiplier], 4, result.zero_point, result.type, result.dtype, add), pooled)]
    remaining = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    node.finish(node.chain(value, [*ops, (Reshape(), remaining)]), remaining)


def _summed(node: OperatorNode, shape: Shape, axes: list[int]) -> tuple[int, Shape]:
    """(int32 sums of codes over the axes, their shape (1, n, 1, channels)); the axes become pixels of an image.

    The images of a batch are stacked: n windows of one image.
    """
    remaining = [a for a in range(len(shape)) if a not in axes]
    leads = bool(remaining) and remaining[0] == 0
    order = (*remaining[:leads], *axes, *remaining[leads:])
    ordered = tuple(shape[a] for a in order)
    sizes = [shape[a] for a in axes] or [1]
    kernel = (math.prod(sizes[:-1]), sizes[-1])
    batch = shape[0] if leads else 1
    image = (1, batch * kernel[0], kernel[1], math.prod(shape[a] for a in remaining[leads:]))
    ops: ShapedOps = []
    if order != tuple(range(len(shape))):
        ops.append((Transpose(order), ordered))
    if image != ordered:
        ops.append((Reshape(), image))
    pooled = (1, batch, 1, image[3])
    ops += [(Cast("int32"), image), (Pool(Reduction.SUM, Window(kernel, kernel)), pooled)]
    return node.chain(node.value(0), ops), pooled


def _axes(node: OperatorNode, shape: Shape) -> list[int]:
    numbers, rank = node.numbers(1, "the axes"), len(shape)
    if not numbers or not all(-rank <= a < rank for a in numbers) or not all(shape):
        text = f"the axes of {node.operator.name} are {numbers} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, f"At least one is needed, from {-rank} to {rank - 1}.")
    return sorted({a % rank for a in numbers})


def _copied_codes(node: OperatorNode) -> tuple[CodeType, CodeType]:
    """The meaning of the codes of data and result, of one type."""
    data, result = node.codes(node.tensor(0)), node.codes(node.result())
    if data.dtype != result.dtype:
        raise node.wrong_type(node.result())
    return data, result


def _unequal(node: OperatorNode) -> Exception:
    return node.refused("data and result have different scales or zero points", "Give both the same.")


def _window(node: OperatorNode) -> tuple[Shape, Window]:
    """(shape of the result, window)."""
    shape, options = node.tensor(0).shape, node.options
    keys = ("filter_height", "filter_width", "stride_h", "stride_w")
    height, width, *strides = (int(options[key]) for key in keys)
    if len(shape) != 4 or not all(shape):
        text = f"{node.operator.name} of data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "It needs images: four axes, channels last.")
    if not all(1 <= number <= 1 << 16 for number in (height, width, *strides)):
        text = f"the filter is {height} x {width}, the strides are {strides}."
        raise fail("HG013", node.name, text, f"Supported: 1 to {1 << 16}.")
    rows, columns = (
        window_along(options["padding"], size, kernel, stride)
        for size, kernel, stride in zip(shape[1:3], (height, width), strides, strict=True)
    )
    window = Window((height, width), (strides[0], strides[1]), (1, 1), (rows[0], columns[0], rows[1], columns[1]))
    result = (shape[0], *window.size(shape[1], shape[2]), shape[3])
    if min(result) < 1:
        text = f"the filter {height} x {width} does not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "Use padding SAME, or a smaller filter.")
    return result, window
