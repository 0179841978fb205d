"""Pools for onnx's reference evaluator, which is wrong for padding that differs between the sides; also global pools.

Averages of float32 are summed in onnxruntime's order, each partial sum rounded. Pass `OPERATORS` to the evaluator as
`new_ops`. Any number of spatial axes is supported; NaN and infinities behave as in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from hlsgen.numerics.fixed import Array

Pads = list[tuple[int, int]]
#: Number of partial sums of a GlobalAveragePool.
_LANES = 4


class MaxPool(OpRun):
    """The largest element of every window, without padding. Its second output, Indices, is not supported."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        auto_pad: str | None = None,
        ceil_mode: int | None = None,
        dilations: Sequence[int] | None = None,
        kernel_shape: Sequence[int] = (),
        pads: Sequence[int] | None = None,
        storage_order: int | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array]:
        if len(self.onnx_node.output) > 1:
            raise NotImplementedError("its output Indices is used, and only its values are supported")
        lowest: Any = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        windows = _windows(x, lowest, kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode), lowest)
        return (np.asarray(windows.max(axis=-1)),)


class AveragePool(OpRun):
    """The mean of every window, with count_include_pad over its padding too (not over padding added by ceil_mode)."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        auto_pad: str | None = None,
        ceil_mode: int | None = None,
        count_include_pad: int | None = None,
        dilations: Sequence[int] | None = None,
        kernel_shape: Sequence[int] = (),
        pads: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array]:
        geometry = kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode)
        counted = np.ones((1, 1, *x.shape[2:]), x.dtype)
        counts = _windows(counted, 1 if count_include_pad else 0, *geometry).sum(axis=-1)
        sums = _in_order(_windows(x, 0, *geometry), axis=-1)
        return ((sums / counts).astype(x.dtype),)


class GlobalAveragePool(OpRun):
    """The mean of every channel, summed as in onnxruntime.

    Four partial sums take every fourth element each; then come their sum and the remaining elements.
    """

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        flat = x.reshape(*x.shape[:2], -1)
        even = flat.shape[-1] // _LANES * _LANES
        lanes = flat[..., :even].reshape(*x.shape[:2], -1, _LANES)
        first, second, third, fourth = np.moveaxis(_in_order(lanes, axis=-2), -1, 0)
        total = (first + third) + (second + fourth)
        total = _in_order(np.concatenate([total[..., None], flat[..., even:]], axis=-1), axis=-1)
        return ((total / x.dtype.type(flat.shape[-1])).reshape(*x.shape[:2], *(1,) * (x.ndim - 2)),)


class GlobalMaxPool(OpRun):
    """The largest element of every channel."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


OPERATORS = [MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool]


def _in_order(x: Array, axis: int) -> Array:
    """Sums along an axis from the first element to the last one, in x's dtype; 0 if there is none."""
    if not x.shape[axis]:
        return np.asarray(x.sum(axis=axis))
    return np.asarray(np.take(np.cumsum(x, axis=axis, dtype=x.dtype), -1, axis=axis))


def _windows(
    x: Array,
    filler: Any,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str | None,
    ceil_mode: bool,
    ceil_filler: Any = 0,
) -> Array:
    """Elements of every window along a last axis.

    `filler` fills the padding, `ceil_filler` the padding added by ceil_mode.
    """
    rank = x.ndim - 2
    step_sizes, dilation_sizes = list(strides or [1] * rank), list(dilations or [1] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation_sizes, strict=True)]
    padding = _pads(x.shape[2:], reach, step_sizes, pads, auto_pad)
    extra_padding, counts = [], []
    for axis in range(rank):
        size = x.shape[2 + axis] + sum(padding[axis])
        travel = size - reach[axis]
        count = (math.ceil if ceil_mode else math.floor)(travel / step_sizes[axis]) + 1
        if ceil_mode and (count - 1) * step_sizes[axis] >= x.shape[2 + axis] + padding[axis][0]:
            count -= 1  # no window starts after the data
        counts.append(count)
        extra_padding.append(max((count - 1) * step_sizes[axis] + reach[axis] - size, 0))
    padded = np.pad(x, [(0, 0), (0, 0), *padding], constant_values=filler)
    padded = np.pad(padded, [(0, 0), (0, 0), *((0, extra) for extra in extra_padding)], constant_values=ceil_filler)
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, x.ndim)))
    cuts = [slice(None), slice(None)]
    cuts += [slice(0, (n - 1) * s + 1, s) for n, s in zip(counts, step_sizes, strict=True)]
    cuts += [slice(None, None, d) for d in dilation_sizes]
    windows = views[tuple(cuts)]
    return windows.reshape(*windows.shape[: x.ndim], -1)


def _pads(
    shape: Sequence[int], reach: list[int], steps: list[int], pads: Sequence[int] | None, auto_pad: str | None
) -> Pads:
    rank = len(reach)
    if auto_pad in (None, "", "NOTSET"):
        explicit = list(pads or [0] * (2 * rank))
        return list(zip(explicit[:rank], explicit[rank:], strict=True))
    if auto_pad == "VALID":
        return [(0, 0)] * rank
    result = []
    for size, extent, step in zip(shape, reach, steps, strict=True):
        total = max((-(-size // step) - 1) * step + extent - size, 0)
        half = total // 2
        result.append((half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half))
    return result
