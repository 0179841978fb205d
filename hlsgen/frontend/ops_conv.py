"""Convolutions: ONNX, QONNX (channels last) and integer ones, and Im2Col, as steps on images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend import dialect_qlinear
from hlsgen.frontend.channels_last import (
    AxisOrder,
    Imported,
    elements,
    groups_of,
    kernel_of,
    layout,
    pair,
    result_of,
    whole,
    window,
)
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.dialect_integer import eight_bits, integer_tensor, integers, placed, zero_of
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.ops_conv_transpose import conv_transpose
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Conv, ConvInteger, MatMul, Pad, Shape
from hlsgen.ir.ops import Add
from hlsgen.numerics.fixed import Array

Inputs = list[Const | None]

#: Domain of operators whose data has its channels last.
CHANNELS_LAST = "qonnx.custom_op.channels_last"
CONV_OPERATORS = frozenset(["Conv", "ConvInteger", "ConvTranspose", "Im2Col", "QLinearConv"])


def import_conv(
    node: onnx.NodeProto, name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], opset: int, position: int,
    dtype: str,
) -> Imported:  # fmt: skip
    """Steps for a node whose only dynamic input, of that shape and dtype, is number `position`."""
    op_type = node.op_type
    if position != 0:
        weights = position == (3 if op_type == "QLinearConv" else 1)
        raise fail(
            "HG010" if weights else "HG020", name,
            f"the {'weights are' if weights else f'input {position} of {op_type} is'} computed from the model's input.",
            "Only the data may be; the others must be constants.",
        )  # fmt: skip
    inputs = [*inputs, *[None] * 9]
    match op_type:
        case "Im2Col":
            return _im2col(name, shape, attrs)
        case "ConvInteger":
            return _integer(name, layout(name, shape), dtype, [inputs[1], inputs[2], inputs[3]], attrs)
        case "QLinearConv":
            return _qlinear(name, shape, dtype, inputs, attrs)
        case "ConvTranspose":
            return _transposed(name, layout(name, shape), inputs, attrs)
        case _:
            return _conv(name, layout(name, shape, node.domain == CHANNELS_LAST), inputs, attrs)


# --------------------------------------------------------------------------- convolutions


def _conv(name: str, data: AxisOrder, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    """Weights (outputs, channels / groups, points...), or with their channels last as the data."""
    const = _weights(name, inputs)
    change, kernel, groups = _arranged(name, data, const.array.shape, attrs, data.last)
    weight, scale = integer_weights(name, const.map(change))
    form = (len(weight), *pair(kernel, 1), data.channels // groups)
    step = Conv(weight.reshape(form), scale, window(name, attrs, data, kernel, len(weight)), groups)
    steps = data.around([(step, result_of(data, step.window, len(weight)))])
    return [*steps, *bias(name, steps[-1][1], inputs[2], -1 if data.last else 1)]


def _transposed(name: str, data: AxisOrder, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    steps = data.around(conv_transpose(name, data, _weights(name, inputs), attrs))
    return [*steps, *bias(name, steps[-1][1], inputs[2], 1)]


def _weights(name: str, inputs: Inputs) -> Const:
    if inputs[1] is None:
        raise fail("HG020", name, "the weights are not a constant.", "They must be an initializer.")
    return inputs[1]


def bias(name: str, shape: Shape, const: Const | None, axis: int) -> Imported:
    """Addition of a float32 number for each index of an axis."""
    if const is None:
        return []
    if const.array.shape != (shape[axis],):
        raise fail("HG023", name, f"a bias of shape {list(const.array.shape)} for {shape[axis]} outputs.")
    form = [1] * len(shape)
    form[axis] = shape[axis]
    return [(Add(operand(name, shape, Const(const.array.reshape(form)), "the bias")), shape)]


def _arranged(
    name: str, data: AxisOrder, weights: Shape, attrs: dict[str, Any], last: bool
) -> tuple[Callable[[Array], Array], list[int], int]:  # fmt: skip
    """(what makes (outputs, kernel height * kernel width * channels / groups) of weights, kernel, groups)."""
    if len(weights) != len(data.shape) or not elements(weights):
        raise fail("HG023", name, f"weights of shape {list(weights)} for data of shape {list(data.shape)}.")
    outputs, points = weights[0], weights[1:-1] if last else weights[2:]
    kernel = kernel_of(name, attrs, data.points, points)
    groups = groups_of(name, attrs, data.channels, weights[-1 if last else 1], outputs)

    def change(part: Array) -> Array:
        return np.ascontiguousarray(part if last else np.moveaxis(part, 1, -1)).reshape(outputs, -1)

    return change, kernel, groups


# --------------------------------------------------------------------------- integers


def _integer(name: str, data: AxisOrder, dtype: str, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    """ConvInteger of weights, zero point of the data, zero points of the weights (one, or one per output)."""
    step, result = _sums(name, data, dtype, inputs, attrs)
    return data.around([(step, result)])


def _sums(
    name: str, data: AxisOrder, dtype: str, inputs: Inputs, attrs: dict[str, Any]
) -> tuple[ConvInteger, Shape]:  # fmt: skip
    eight_bits(name, dtype)
    weight = integer_tensor(name, inputs[0])
    change, kernel, groups = _arranged(name, data, weight.shape, attrs, False)
    matrix = change(weight)
    own = zero_of(name, inputs[2], "the weights' zero point")
    if own.size not in (1, len(matrix)):
        raise fail("HG023", name, f"the weights' zero point of shape {list(own.shape)}.", "One, or one per output.")
    zero = zero_of(name, inputs[1], "the data's zero point")
    if zero.size != 1:
        raise fail("HG024", name, f"the data's zero point has {zero.size} values.", "Supported: one per tensor.")
    matrix = matrix - own.reshape(-1, 1)
    form = (len(matrix), *pair(kernel, 1), data.channels // groups)
    place = window(name, attrs, data, kernel, len(matrix))
    step = ConvInteger(matrix.reshape(form), np.full(data.channels, zero.reshape(())), place, groups)
    return step, result_of(data, place, len(matrix))


def _qlinear(name: str, shape: Shape, dtype: str, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    """QLinearConv: x, its scale, zero point; w, its scale, zero point; output scale, zero point; int32 bias.

    Of onnxruntime's own domain it may have the data's channels last.
    """
    data = layout(name, shape, bool(attrs.get("channels_last", 0)))
    product = dialect_qlinear.scale_product(name, inputs[1], inputs[4])
    step, result = _sums(name, data, dtype, [inputs[3], inputs[2], inputs[5]], attrs)
    steps: Imported = [(step, result)]
    if inputs[8] is not None:
        values, _ = integers(name, inputs[8], "the bias", ["int32"])
        steps.append((Add(placed(name, values.astype(np.int32), result, -1, "the bias")), result))
    return data.around(dialect_qlinear.rescaled(name, steps, product, inputs[6:8]))


# --------------------------------------------------------------------------- patches


def _im2col(name: str, shape: Shape, attrs: dict[str, Any]) -> Imported:
    """Every window of (1, h, w, c) as a vector, kernel row by row, channels last: a Conv with weights 0 and 1."""
    data = layout(name, shape, last=True)
    if len(shape) != 4:
        raise fail("HG023", name, f"data of shape {list(shape)}.", "Im2Col takes (n, height, width, channels).")
    for key in ("kernel_size", "stride"):
        if key not in attrs:
            raise fail("HG013", name, f"attribute {key} is missing.")
    kernel = whole(name, attrs, "kernel_size", 2, 1)
    pads = whole(name, attrs, "pad_amount", 4, 0, 0)
    size = elements((*kernel, data.channels))
    steps: Imported = []
    value = attrs.get("pad_value", 0)
    if value and any(pads):
        n, height, width, channels = shape
        top, left, bottom, right = pads
        data = AxisOrder((n, height + top + bottom, width + left + right, channels), True)
        steps.append((Pad((top, left, bottom, right), float(value)), data.image))
        pads = [0] * 4
    window_attrs = {"strides": whole(name, attrs, "stride", 2, 1), "pads": pads}
    window_attrs |= {"dilations": whole(name, attrs, "dilations", 2, 1)}
    place = window(name, window_attrs, data, kernel, size)
    step = Conv(_unit(size).reshape(size, *kernel, data.channels), np.ones(size, np.float32), place, 1)
    return [*steps, (step, result_of(data, place, size))]


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
