"""Im2Col, and the MatMuls behind it, as convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes, elements, image_axes, result_of, whole, window
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.ir import Conv, MatMul, Pad, Step
from hlsgen.ir.rewrite import pruned
from hlsgen.numerics.fixed import Array


def with_convolutions(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with every MatMul of windows replaced by one convolution; the last one stays the last."""
    result = list(steps)
    for i, step in enumerate(steps):
        before = steps[step.inputs[0] - 1] if step.inputs and step.inputs[0] else None
        if isinstance(step.op, MatMul) and before is not None and is_patches(before.op):
            assert isinstance(before.op, Conv)
            result[i] = replace(step, op=absorbed(before.op, step.op), inputs=before.inputs)
    return tuple(pruned(result, len(result))[0])


def im2col(node: NodeContext) -> Imported:
    """Im2Col: every window of (1, h, w, c) as a vector, kernel row by row, channels last: a Conv of weights 0 and 1.

    Raises HG004, HG010, HG013, HG023.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    data = image_axes(name, shape, last=True)
    if len(shape) != 4:
        raise fail("HG023", name, f"data of shape {list(shape)}.", "Im2Col takes (n, height, width, channels).")
    for key in ("kernel_size", "stride"):
        if key not in attrs:
            raise fail("HG013", name, f"attribute {key} is missing.")
    kernel = whole(name, attrs, "kernel_size", 2, 1)
    pads = whole(name, attrs, "pad_amount", 4, 0, 0)
    size = elements((*kernel, data.channels))
    ops: ShapedOps = []
    value = attrs.get("pad_value", 0)
    if value and any(pads):
        n, height, width, channels = shape
        top, left, bottom, right = pads
        data = ImageAxes((n, height + top + bottom, width + left + right, channels), True)
        ops.append((Pad((top, left, bottom, right), float(value)), data.image))
        pads = [0] * 4
    window_attrs = {"strides": whole(name, attrs, "stride", 2, 1), "pads": pads}
    window_attrs |= {"dilations": whole(name, attrs, "dilations", 2, 1)}
    place = window(name, window_attrs, data, kernel, size)
    step = Conv(_unit(size).reshape(size, *kernel, data.channels), np.ones(size, np.float32), place, 1)
    return Imported(([*ops, (step, result_of(data, place, size))],))


def _unit(size: int) -> Array:
    """The unit matrix, int64, in 2 * size - 1 numbers: nothing may be written to it."""
    line = np.zeros(2 * size - 1, np.int64)
    line[size - 1] = 1
    step = line.itemsize
    return np.lib.stride_tricks.as_strided(line[size - 1 :], (size, size), (-step, step), writeable=False)


def is_patches(step: object) -> bool:
    """Whether a step is the Conv of an Im2Col, which gives every window as a vector."""
    if not isinstance(step, Conv) or step.groups != 1 or len(step.weight) != elements(step.weight.shape[1:]):
        return False
    matrix = step.weight.reshape(len(step.weight), -1)
    return bool((step.scale == 1).all() and (matrix.diagonal() == 1).all() and np.count_nonzero(matrix) == len(matrix))


def absorbed(patches: Conv, product: MatMul) -> Conv:
    """The one convolution that Im2Col and a MatMul behind it are.

    Depthwise if every output takes one channel only, the channels in order.
    """
    outputs = len(product.weight)
    channels = patches.weight.shape[-1]
    weight = product.weight.reshape(outputs, *patches.weight.shape[1:])
    if channels > 1 and outputs % channels == 0:
        own = np.arange(outputs) // (outputs // channels)
        only = np.take_along_axis(weight, own[:, None, None, None], axis=3)
        if np.count_nonzero(only) == np.count_nonzero(weight):
            return Conv(np.ascontiguousarray(only), product.scale, patches.window, channels)
    return Conv(weight, product.scale, patches.window, 1)
