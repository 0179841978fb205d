"""Convolutions of ONNX, QONNX (channels last) and integers, as operations on images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes, elements, groups_of, image_axes, kernel_of, pair, result_of, window
from hlsgen.frontend.constant_folding import Const, ConstInputs
from hlsgen.frontend.dialect_integer import eight_bits, integer_tensor, integers, placed, zero_of
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
    """Conv; weights (outputs, channels / groups, points...), or with their channels last as the data.

    Raises HG004, HG010, HG013, HG020, HG023, HG024, HG027, HG031, HG034.
    """
    name, attrs = node.name, node.attrs
    data = image_axes(name, node.shape, node.domain == CHANNELS_LAST)
    const = _weights(node)
    change, kernel, groups = _arranged(name, data, const.array.shape, attrs, data.last)
    weight, scale = integer_weights(name, const.map(change))
    form = (len(weight), *pair(kernel, 1), data.channels // groups)
    step = Conv(weight.reshape(form), scale, window(name, attrs, data, kernel, len(weight)), groups)
    ops = data.around([(step, result_of(data, step.window, len(weight)))])
    return Imported(([*ops, *_bias(node, ops[-1][1], -1 if data.last else 1)],))


def conv_transpose(node: NodeContext) -> Imported:
    """ConvTranspose; weights (channels, outputs / groups, points...). Raises what `conv` does."""
    data = image_axes(node.name, node.shape)
    ops = data.around(transposed_ops(node.name, data, _weights(node), node.attrs))
    return Imported(([*ops, *_bias(node, ops[-1][1], 1)],))


def _weights(node: NodeContext) -> Const:
    const = node.constant(1)
    if const is None:
        raise fail("HG020", node.name, "the weights are not a constant.", "They must be an initializer.")
    return const


def _bias(node: NodeContext, shape: Shape, axis: int) -> ShapedOps:
    """Addition of a float32 number, input 2, for each index of an axis."""
    const, name = node.constant(2), node.name
    if const is None:
        return []
    if const.array.shape != (shape[axis],):
        raise fail("HG023", name, f"a bias of shape {list(const.array.shape)} for {shape[axis]} outputs.")
    form = [1] * len(shape)
    form[axis] = shape[axis]
    return [(Add(operand(name, shape, Const(const.array.reshape(form)), "the bias")), shape)]


def _arranged(
    name: str, data: ImageAxes, weights: Shape, attrs: dict[str, Any], last: bool
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


def conv_integer(node: NodeContext) -> Imported:
    """ConvInteger: data, weights, zero point of the data, zero points of the weights (one, or one each output).

    Raises HG004, HG010, HG013, HG020, HG023, HG024, HG026.
    """
    data = image_axes(node.name, node.shape)
    weights = [node.constant(1), node.constant(2), node.constant(3)]
    return Imported((data.around([_sums(node.name, data, node.dtype, weights, node.attrs)]),))


def _sums(
    name: str, data: ImageAxes, dtype: str, inputs: ConstInputs, attrs: dict[str, Any]
) -> tuple[ConvInteger, Shape]:
    """The layer of weights, zero point of the data, zero points of the weights; and the image behind it."""
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


def qlinear_conv(node: NodeContext) -> Imported:
    """QLinearConv: x, its scale, zero point; w, its scale, zero point; output scale, zero point; int32 bias.

    Of onnxruntime's own domain it may have the data's channels last. Raises what `conv_integer` does, HG022, HG034.
    """
    name, inputs = node.name, padded(node.constants)
    data = image_axes(name, node.shape, bool(node.attrs.get("channels_last", 0)))
    product = scale_product(name, inputs[1], inputs[4])
    step, result = _sums(name, data, node.dtype, [inputs[3], inputs[2], inputs[5]], node.attrs)
    ops: ShapedOps = [(step, result)]
    if inputs[8] is not None:
        values, _ = integers(name, inputs[8], "the bias", ["int32"])
        ops.append((Add(placed(name, values.astype(np.int32), result, -1, "the bias")), result))
    return Imported((data.around(rescaled(name, ops, product, inputs[6:8])),))
