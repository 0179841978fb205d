"""Im2Col, and the MatMuls after it, as convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes, elements, image_axes, result_of, whole_numbers, window
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.ir import Conv, MatMul, Pad, Step
from hlsgen.ir.rewrite import pruned
from hlsgen.numerics.fixed import Array


def with_convolutions(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with every MatMul of windows replaced by one convolution; the last step stays last."""
    result = list(steps)
    for i, step in enumerate(steps):
        producer = steps[step.inputs[0] - 1] if step.inputs and step.inputs[0] else None
        if isinstance(step.op, MatMul) and producer is not None and is_patches(producer.op):
            assert isinstance(producer.op, Conv)
            result[i] = replace(step, op=absorbed(producer.op, step.op), inputs=producer.inputs)
    return tuple(pruned(result, len(result))[0])


def im2col(node: NodeContext) -> Imported:
    """Im2Col as a Conv with weights 0 and 1: every window of (1, h, w, c) as a vector, row by row, channels last.

    Raises HG004, HG010, HG013, HG023.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    data = image_axes(name, shape, last=True)
    if len(shape) != 4:
        text = f"data of shape {list(shape)} is no image."
        raise fail("HG023", name, text, "Im2Col needs (n, height, width, channels).")
    for key in ("kernel_size", "stride"):
        if key not in attrs:
            raise fail("HG013", name, f"attribute {key} is missing.", "Im2Col needs kernel_size and stride.")
    kernel = whole_numbers(name, attrs, "kernel_size", 2, 1)
    pads = whole_numbers(name, attrs, "pad_amount", 4, 0, 0)
    size = elements((*kernel, data.channels))
    ops: ShapedOps = []
    pad_value = attrs.get("pad_value", 0)
    if pad_value and any(pads):
        n, height, width, channels = shape
        pad_top, pad_left, pad_bottom, pad_right = pads
        data = ImageAxes((n, height + pad_top + pad_bottom, width + pad_left + pad_right, channels), True)
        ops.append((Pad((pad_top, pad_left, pad_bottom, pad_right), float(pad_value)), data.image))
        pads = [0] * 4
    window_attrs = {"strides": whole_numbers(name, attrs, "stride", 2, 1), "pads": pads}
    window_attrs |= {"dilations": whole_numbers(name, attrs, "dilations", 2, 1)}
    place = window(name, window_attrs, data, kernel, size)
    step = Conv(_unit(size).reshape(size, *kernel, data.channels), np.ones(size, np.float32), place, 1)
    return Imported(([*ops, (step, result_of(data, place, size))],))


def _unit(size: int) -> Array:
    """The unit matrix, int64, as a read-only view of 2 * size - 1 numbers."""
    line = np.zeros(2 * size - 1, np.int64)
    line[size - 1] = 1
    step = line.itemsize
    return np.lib.stride_tricks.as_strided(line[size - 1 :], (size, size), (-step, step), writeable=False)


def is_patches(step: object) -> bool:
    """True for the Conv of an Im2Col, which produces every window as a vector."""
    if not isinstance(step, Conv) or step.groups != 1 or len(step.weight) != elements(step.weight.shape[1:]):
        return False
    matrix = step.weight.reshape(len(step.weight), -1)
    return bool((step.scale == 1).all() and (matrix.diagonal() == 1).all() and np.count_nonzero(matrix) == len(matrix))


def absorbed(patches: Conv, product: MatMul) -> Conv:
    """Im2Col and the MatMul after it as one convolution.

    It is depthwise if every output depends on one channel only, in the order of the channels.
    """
    outputs = len(product.weight)
    channels = patches.weight.shape[-1]
    weight = product.weight.reshape(outputs, *patches.weight.shape[1:])
    if channels > 1 and outputs % channels == 0:
        channel_by_output = np.arange(outputs) // (outputs // channels)
        depthwise = np.take_along_axis(weight, channel_by_output[:, None, None, None], axis=3)
        if np.count_nonzero(depthwise) == np.count_nonzero(weight):
            return Conv(np.ascontiguousarray(depthwise), product.scale, patches.window, channels)
    return Conv(weight, product.scale, patches.window, 1)
