"""Layers with constant weights: CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV.

The sums are exact integers of codes without zero points. One rescaling makes the codes of the result, as the runtime
computes it: see `hlsgen.numerics.tflite.multipliers`.
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import MAX_ELEMENTS
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.ops_conv_transpose import Axis, interleaved, phases
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.requantizers import (
    along_last,
    doubly_rounded,
    half_to_even,
    rounded_in_double,
    rounded_to_15_bits,
)
from hlsgen.frontend.tflite.windows import window_along
from hlsgen.ir import ConvInteger, MatMulInteger, Reshape, Shape
from hlsgen.ir.ops import Add, Cast, Mul
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.multipliers import (
    Runtime,
    layer_ratio,
    quantized_multiplier,
    rounds_once_in_double,
    single_ratio,
)


def conv_2d(node: OperatorNode) -> None:
    """CONV_2D: data, weights (outputs, height, width, channels of a group), bias.

    Raises HG013, HG014, HG020, HG022 - HG024, HG026.
    """
    data = node.codes(node.tensor(0))
    weight, scales = _weights(node, 1, data, axis=0)
    shape = _image(node, node.tensor(0).shape)
    outputs, height, width, group_channels = _weight_shape(node, weight.shape)
    groups = shape[3] // max(group_channels, 1)
    if not group_channels or group_channels * groups != shape[3] or outputs % groups:
        text = f"weights of shape {list(weight.shape)} do not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "The channels must be a multiple of those of the weights.")
    _convolution(node, data, weight, scales, groups, (height, width))


def depthwise_conv_2d(node: OperatorNode) -> None:
    """DEPTHWISE_CONV_2D: data, weights (1, height, width, channels * multiplier), bias.

    Raises HG013, HG014, HG020, HG022 - HG024, HG026.
    """
    data = node.codes(node.tensor(0))
    if node.runtime is Runtime.LITERT and data.dtype == "uint8":
        raise node.refused("uint8 is not computed by XNNPACK", "Convert the model to int8, or use litert-ref.")
    weight, scales = _weights(node, 1, data, axis=3)
    shape = _image(node, node.tensor(0).shape)
    _, height, width, outputs = _weight_shape(node, weight.shape)
    if len(weight) != 1 or outputs % shape[3]:
        text = f"weights of shape {list(weight.shape)} do not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "They need a multiple of the data's channels in the last axis.")
    _convolution(node, data, np.moveaxis(weight[0], 2, 0)[..., None], scales, shape[3], (height, width))


def fully_connected(node: OperatorNode) -> None:
    """FULLY_CONNECTED: data, flattened to rows of the weights (outputs, inputs), bias.

    Raises HG013, HG014, HG020, HG022 - HG024, HG026.
    """
    data = node.codes(node.tensor(0))
    weight, scales = _weights(node, 1, data, axis=0)
    shape = node.tensor(0).shape
    if weight.ndim != 2 or not weight.size or math.prod(shape) % weight.shape[1]:
        text = f"weights of shape {list(weight.shape)} do not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "The data must be rows of as many elements as the weights have columns.")
    outputs, columns = weight.shape
    rows = (math.prod(shape) // columns, columns)
    ops: ShapedOps = [] if shape == rows else [(Reshape(), rows)]
    result = (rows[0], outputs)
    sums = _sum_type(node, data, 2)
    ops.append((MatMulInteger(weight, np.full(columns, data.zero_point, np.int64), sums), result))
    ops += _rescaled(node, data, scales, result, outputs, 2)
    node.finish(node.chain(node.value(0), ops), result)


def transpose_conv(node: OperatorNode) -> None:
    """TRANSPOSE_CONV: shape of the result, weights (outputs, height, width, channels), data, bias.

    Raises HG004, HG013, HG014, HG020, HG022 - HG024, HG026.
    """
    data = node.codes(node.tensor(2))
    weight, scales = _weights(node, 1, data, axis=0)
    shape, result = _image(node, node.tensor(2).shape), _image(node, node.result().shape)
    outputs, *kernel, channels = _weight_shape(node, weight.shape)
    if channels != shape[3] or outputs != result[3] or result[0] != shape[0]:
        text = f"weights of shape {list(weight.shape)} do not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "The channels of data, weights and result must agree.")
    strides, is_same = _strides(node), node.options["padding"] == "SAME"
    if node.by_xnnpack and is_same and any(k < s for k, s in zip(kernel, strides, strict=True)):
        reason = "padding SAME with a kernel smaller than the stride is not computed by XNNPACK"
        raise node.refused(reason, "Use a larger kernel, or litert-ref.")
    height, width = (
        Axis(size, out, k, s, 1, max((size - 1) * s + k - out, 0) // 2 if is_same else 0)
        for size, out, k, s in zip(shape[1:3], result[1:3], kernel, strides, strict=True)
    )
    count = height.stride * width.stride
    if outputs * count * height.taps * width.taps * channels > MAX_ELEMENTS:
        text = f"the equivalent convolution with {outputs * count} outputs, for all phases of the stride, is too large."
        raise fail("HG004", node.name, text, f"At most {MAX_ELEMENTS} weights are supported: use smaller strides.")
    kernels = phases(weight[None], (height, width))
    pads = (height.pads[0], width.pads[0], height.pads[1], width.pads[1])
    window = Window((height.taps, width.taps), (1, 1), (1, 1), pads)
    sums = (shape[0], *window.size(shape[1], shape[2]), outputs * count)
    sum_type = _sum_type(node, data, 3)
    layer = ConvInteger(kernels, np.full(channels, data.zero_point, np.int64), window, 1, sum_type)
    ops: ShapedOps = [(layer, sums), *_rescaled(node, data, scales, sums, outputs, 3, count)]
    ops += interleaved(sums, (height, width), 1, outputs)
    node.finish(node.chain(node.value(2), ops), ops[-1][1])


# --------------------------------------------------------------------------- parts of layers


def _convolution(
    node: OperatorNode, data: CodeType, weight: Array, scales: Array, groups: int, kernel: tuple[int, int]
) -> None:
    """A convolution; weight (outputs, height, width, channels of a group)."""
    shape = _image(node, node.tensor(0).shape)
    options, strides = node.options, _strides(node)
    dilations = _positive_option(node, "dilation_h_factor"), _positive_option(node, "dilation_w_factor")
    sides = [
        window_along(options["padding"], size, k, s, d)
        for size, k, s, d in zip(shape[1:3], kernel, strides, dilations, strict=True)
    ]
    window = Window(kernel, strides, dilations, (sides[0][0], sides[1][0], sides[0][1], sides[1][1]))
    result = (shape[0], *window.size(shape[1], shape[2]), len(weight))
    if min(result) < 1:
        text = f"the kernel of shape {list(kernel)} does not fit data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "Use padding SAME, or a smaller kernel.")
    zero_points, sum_type = np.full(shape[3], data.zero_point, np.int64), _sum_type(node, data, 2)
    layer = ConvInteger(np.ascontiguousarray(weight), zero_points, window, groups, sum_type)
    ops: ShapedOps = [(layer, result), *_rescaled(node, data, scales, result, len(weight), 2)]
    node.finish(node.chain(node.value(0), ops), result)


def _image(node: OperatorNode, shape: Shape) -> Shape:
    if len(shape) != 4 or not all(shape):
        text = f"{node.operator.name} of data of shape {list(shape)}."
        raise fail("HG023", node.name, text, "It needs images: four axes, channels last.")
    return shape


def _weight_shape(node: OperatorNode, shape: Shape) -> Shape:
    if len(shape) != 4 or not all(shape):
        text = f"{node.operator.name} with weights of shape {list(shape)}."
        raise fail("HG023", node.name, text, "The weights need four axes, none of them empty.")
    return shape


def _positive_option(node: OperatorNode, key: str) -> int:
    """A stride or dilation. Raises HG013 unless it is 1 or more."""
    number = int(node.options[key])
    if not 1 <= number <= 1 << 16:
        raise fail("HG013", node.name, f"option {key} is {number}.", f"Supported: 1 to {1 << 16}.")
    return number


def _strides(node: OperatorNode) -> tuple[int, int]:
    return _positive_option(node, "stride_h"), _positive_option(node, "stride_w")


def _weights(node: OperatorNode, position: int, data: CodeType, axis: int) -> tuple[Array, Array]:
    """(int64 weights without zero point, their scales: one, or one for each output along `axis`).

    Raises HG014, HG020, HG022 - HG024, HG026.
    """
    tensor = node.tensor(position)
    weight = node.constant(position, "the weights").astype(np.int64)
    expected = "uint8" if data.dtype == "uint8" else "int8"
    if tensor.type != expected:
        text = f"{node.operator.name} of {data.dtype} data with weights of type {tensor.type}."
        raise fail("HG026", node.name, text, f"The weights must be of type {expected}.")
    quantization = tensor.quantization
    if quantization is None:
        raise fail("HG022", node.name, "the weights have no scale.", "Convert the model with integer quantization.")
    scales = node.positive(quantization.scale, tensor)
    if scales.size != 1 and (axis >= weight.ndim or scales.size != weight.shape[axis] or quantization.axis != axis):
        text = f"{scales.size} scales along axis {quantization.axis} for weights of shape {list(weight.shape)}."
        raise fail("HG023", node.name, text, f"Supported: one scale, or one for each element of axis {axis}.")
    zeros = quantization.zero_point
    if expected == "uint8" and zeros.size == 1 and scales.size == 1:
        return weight - int(zeros[0]), scales
    if zeros.any() or (expected == "uint8" and scales.size != 1):
        text = f"the weights of type {expected} have the zero points {sorted(set(zeros.tolist()))[:4]}."
        raise fail("HG024", node.name, text, "Weights of type int8 must have the zero point 0.")
    return weight, scales


def _sum_type(node: OperatorNode, data: CodeType, bias: int) -> str:
    """The dtype of the sums: int64 for int16 data, but int32 if tflite-micro adds an int32 bias. Raises HG015."""
    if data.dtype != "int16":
        return "int32"
    added, operator = node.optional(bias), node.operator.name
    is_dense = operator == "FULLY_CONNECTED"
    if added is not None and added.type == "int32":
        if node.runtime is Runtime.TFLM and (is_dense or operator == "CONV_2D"):
            return "int32"
        raise node.refused("an int32 bias of int16 data is read as int64", "Convert the model with int64 biases.")
    if added is None and is_dense and node.runtime is Runtime.LITERT:
        raise node.refused("int16 data without a bias is computed by position", "Use litert-ref, or add a bias.")
    return "int64"


def _rescaled(
    node: OperatorNode, data: CodeType, scales: Array, shape: Shape, outputs: int, bias: int, times: int = 1
) -> ShapedOps:
    """Bias and rescaling of the sums; `times`: how often the outputs are repeated along the last axis."""
    result, rank = node.codes(node.result()), len(shape)
    ops: ShapedOps = []
    if result.dtype != data.dtype:
        raise node.wrong_type(node.result())
    added = node.optional(bias)
    if added is not None:
        values = node.constant(bias, "the bias").reshape(-1)
        sum_type = _sum_type(node, data, bias)
        if added.type != sum_type or values.size != outputs:
            text = f"the bias of type {added.type} has {values.size} elements for {outputs} outputs."
            raise fail("HG023", node.name, text, f"It needs one {sum_type} number for each output.")
        ops.append((Add(along_last(np.tile(values.astype(sum_type), times), rank)), shape))

    def placed(values: Array) -> Array:
        return values if values.size == 1 else np.tile(values, times)

    zero, operator = result.zero_point, node.operator.name
    if node.by_xnnpack:
        factor = placed(single_ratio(np.float32(data.scale), scales, np.float32(result.scale)))
        if (factor >= 256).any():
            raise node.refused("a ratio of scales of 256 or more is not computed by XNNPACK", "Use litert-ref.")
        quantizer = half_to_even(rank, zero, node.bounds(result, xnnpack=True), result.dtype)
        return [*ops, (Cast("float32"), shape), (Mul(along_last(factor, rank)), shape), (quantizer, shape)]
    ratios = placed(layer_ratio(operator, data.dtype, np.float32(data.scale), scales, np.float32(result.scale)))
    if rounds_once_in_double(operator, node.runtime, data.dtype):
        return [*ops, (rounded_in_double(ratios, rank, zero, node.bounds(result), result.dtype), shape)]
    multipliers = [quantized_multiplier(ratio) for ratio in ratios.tolist()]
    if _sum_type(node, data, bias) == "int64":
        return [*ops, (rounded_to_15_bits(multipliers, rank, zero, node.bounds(result), result.dtype), shape)]
    return [*ops, (doubly_rounded(multipliers, rank, zero, node.bounds(result), result.dtype), shape)]
