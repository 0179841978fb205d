"""Convolutions of ONNX, QONNX (channels last) and integer ONNX as operations on images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes, elements, groups_of, image_axes, kernel_of, pair, result_of, window
from hlsgen.frontend.constant_folding import Const, ConstInputs
from hlsgen.frontend.dialect_integer import check_layer_dtype, integer_tensor, integers, placed, zero_of
from hlsgen.frontend.dialect_qlinear import padded, rescaled, scale_product
from hlsgen.frontend.domains import CHANNELS_LAST
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_conv_transpose import transposed_ops
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Conv, ConvInteger, Shape
from hlsgen.ir.ops import Add
from hlsgen.numerics.fixed import Array

# --------------------------------------------------------------------------- convolutions


def conv(node: NodeContext) -> Imported:
    """Conv with weights (outputs, channels / groups, kernel...), or with channels last like the data.

    Raises HG004, HG010, HG013, HG020, HG023, HG024, HG027, HG031, HG034.
    """
    name, attrs = node.name, node.attrs
    data = image_axes(name, node.shape, node.domain == CHANNELS_LAST)
    const = _weights(node)
    to_matrix, kernel, groups = _weight_layout(name, data, const.array.shape, attrs, data.last)
    weight, scale = integer_weights(name, const.map(to_matrix))
    weight_shape = (len(weight), *pair(kernel, 1), data.channels // groups)
    step = Conv(weight.reshape(weight_shape), scale, window(name, attrs, data, kernel, len(weight)), groups)
    ops = data.on_images([(step, result_of(data, step.window, len(weight)))])
    return Imported(([*ops, *_bias(node, ops[-1][1], -1 if data.last else 1)],))


def conv_transpose(node: NodeContext) -> Imported:
    """ConvTranspose with weights (channels, outputs / groups, kernel...). Raises the same codes as `conv`."""
    data = image_axes(node.name, node.shape)
    ops = data.on_images(transposed_ops(node.name, data, _weights(node), node.attrs))
    return Imported(([*ops, *_bias(node, ops[-1][1], 1)],))


def _weights(node: NodeContext) -> Const:
    const = node.constant(1)
    if const is None:
        raise fail("HG020", node.name, "the weights are not a constant.", "They must be an initializer.")
    return const


def _bias(node: NodeContext, shape: Shape, axis: int) -> ShapedOps:
    """Addition of the bias, input 2: one float32 number for each index of an axis."""
    const, name = node.constant(2), node.name
    if const is None:
        return []
    if const.array.shape != (shape[axis],):
        text = f"the bias has the shape {list(const.array.shape)}, the layer has {shape[axis]} outputs."
        raise fail("HG023", name, text, f"The bias must have the shape [{shape[axis]}].")
    along_axis = [1] * len(shape)
    along_axis[axis] = shape[axis]
    return [(Add(operand(name, shape, Const(const.array.reshape(along_axis)), "the bias")), shape)]


def _weight_layout(
    name: str, data: ImageAxes, weights: Shape, attrs: dict[str, Any], last: bool
) -> tuple[Callable[[Array], Array], list[int], int]:
    """(function from weights to (outputs, kernel height * kernel width * channels / groups), kernel, groups).

    `last`: the weights have their channels last. Raises HG013, HG023.
    """
    if len(weights) != len(data.shape) or not elements(weights):
        text = f"weights of shape {list(weights)} do not fit data of shape {list(data.shape)}."
        raise fail("HG023", name, text, "Both need equally many axes, and the weights must not be empty.")
    outputs, spatial = weights[0], weights[1:-1] if last else weights[2:]
    kernel = kernel_of(name, attrs, data.spatial, spatial)
    groups = groups_of(name, attrs, data.channels, weights[-1 if last else 1], outputs)

    def to_matrix(part: Array) -> Array:
        return np.ascontiguousarray(part if last else np.moveaxis(part, 1, -1)).reshape(outputs, -1)

    return to_matrix, kernel, groups


# --------------------------------------------------------------------------- integers


def conv_integer(node: NodeContext) -> Imported:
    """ConvInteger: data, weights, zero point of the data, zero points of the weights (one, or one per output).

    Raises HG004, HG010, HG013, HG020, HG023, HG024, HG026.
    """
    data = image_axes(node.name, node.shape)
    weights = [node.constant(1), node.constant(2), node.constant(3)]
    return Imported((data.on_images([_sums(node.name, data, node.dtype, weights, node.attrs)]),))


def _sums(
    name: str, data: ImageAxes, dtype: str, inputs: ConstInputs, attrs: dict[str, Any]
) -> tuple[ConvInteger, Shape]:
    """(layer, shape of its image); `inputs`: weights, zero point of the data, zero points of the weights."""
    check_layer_dtype(name, dtype)
    weight = integer_tensor(name, inputs[0])
    to_matrix, kernel, groups = _weight_layout(name, data, weight.shape, attrs, False)
    matrix = to_matrix(weight)
    weight_zero = zero_of(name, inputs[2], "the weights' zero point")
    if weight_zero.size not in (1, len(matrix)):
        text = f"the weights' zero point has the shape {list(weight_zero.shape)}."
        raise fail("HG023", name, text, f"Supported: one number, or {len(matrix)}: one per output.")
    zero = zero_of(name, inputs[1], "the data's zero point")
    if zero.size != 1:
        raise fail("HG024", name, f"the data's zero point has {zero.size} values.", "Supported: one per tensor.")
    matrix = matrix - weight_zero.reshape(-1, 1)
    weight_shape = (len(matrix), *pair(kernel, 1), data.channels // groups)
    place = window(name, attrs, data, kernel, len(matrix))
    step = ConvInteger(matrix.reshape(weight_shape), np.full(data.channels, zero.reshape(())), place, groups)
    return step, result_of(data, place, len(matrix))


def qlinear_conv(node: NodeContext) -> Imported:
    """QLinearConv: x, its scale, zero point; w, its scale, zero point; output scale, zero point; int32 bias.

    The data of onnxruntime's own operator may have channels last. Raises the codes of `conv_integer`, HG022, HG034.
    """
    name, inputs = node.name, padded(node.constants)
    data = image_axes(name, node.shape, bool(node.attrs.get("channels_last", 0)))
    product = scale_product(name, inputs[1], inputs[4])
    step, result = _sums(name, data, node.dtype, [inputs[3], inputs[2], inputs[5]], node.attrs)
    ops: ShapedOps = [(step, result)]
    if inputs[8] is not None:
        values, _ = integers(name, inputs[8], "the bias", ["int32"])
        ops.append((Add(placed(name, values.astype(np.int32), result, -1, "the bias")), result))
    return Imported((data.on_images(rescaled(name, ops, product, inputs[6:8])),))
