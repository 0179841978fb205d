"""QLinear operators of ONNX and of onnxruntime (domain com.microsoft) as steps.

The order of float32 operations is onnxruntime's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, ConstInputs
from hlsgen.frontend.dialect_integer import dequantizer_of, integer_product, integers, placed, quantizer_of, scale_of
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.frontend.product_layout import constant_first_layout, product_layout
from hlsgen.ir import Shape
from hlsgen.ir.ops import Activation, Add, Cast, Dequantize, Elementwise, FixedAdd, Fma, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array, fused_multiply_add
from hlsgen.numerics.quantized_add import Parameters, derive


def padded(constants: ConstInputs) -> ConstInputs:
    """The inputs followed by nine times None, for inputs that the node leaves out at the end."""
    return [*constants, *[None] * 9]


def qlinear_matmul(node: NodeContext) -> Imported:
    """QLinearMatMul: A, its scale, zero point; B, its scale, zero point; output scale, zero point.

    Raises HG020, HG022 - HG024, HG026, HG034.
    """
    inputs = padded(node.constants)
    operands = (inputs[0:3], inputs[3:6])
    ops, product = _factors(node, *(operands if node.position == 0 else operands[::-1]))
    return Imported((rescaled(node.name, ops, product, inputs[6:8]),))


def _factors(node: NodeContext, data: ConstInputs, weights: ConstInputs) -> tuple[ShapedOps, Array]:
    """The int32 sums of data and weights, each (codes, scale, zero point), and the product of their scales.

    The weights are the first operand if the data is not.
    """
    layout = product_layout if node.position == 0 else constant_first_layout
    ops = integer_product(node.name, node.shape, node.dtype, [None, weights[0], data[2], weights[2]], layout)
    product = scale_product(node.name, data[1], weights[1])
    if product.size > 1 and layout is constant_first_layout:
        text = f"the scale of the constant first operand has {product.size} values."
        raise fail("HG034", node.name, text, "Use one scale per tensor.")
    return ops, product


def qlinear_activation(node: NodeContext) -> Imported:
    """QLinearSigmoid, QLinearLeakyRelu: x, its scale, zero point; output scale, zero point.

    Raises HG020, HG022, HG023, HG026.
    """
    inputs = padded(node.constants)
    kind = node.op_type.removeprefix("QLinear")
    alpha = float(np.float32(node.attrs.get("alpha", 0.01)))
    function = Activation(kind, alpha) if kind == "LeakyRelu" else Activation(kind)
    first = dequantizer_of(node.name, node.shape, inputs[0:3], {}, node.dtype)
    last = quantizer_of(node.name, node.shape, [None, *inputs[3:5]], {})
    return elementwise(node, first, function, last)


def scale_product(name: str, data: Const | None, weights: Const | None, alpha: float = 1.0) -> Array:
    """fl32(fl32(alpha * scale of the data) * scale of the weights)."""
    data_scale = scale_of(name, data, "the data's scale")
    weight_scale = scale_of(name, weights, "the weights' scale", signed=True)
    if data_scale.size != 1:
        text = f"the data's scale has {data_scale.size} values along the summed axis."
        raise fail("HG034", name, text, "Use one scale per tensor.")
    product = np.float32(alpha) * data_scale.astype(np.float32).reshape(())
    return np.asarray(product * weight_scale.astype(np.float32))


def rescaled(name: str, steps: ShapedOps, product: Array, out: ConstInputs) -> ShapedOps:
    """`steps` to int32 sums, then one multiplication by fl32(product / output scale) and QuantizeLinear of scale 1."""
    shape = steps[-1][1]
    output = scale_of(name, out[0], "the output's scale").astype(np.float32)
    if output.size != 1:
        text = f"the output's scale has the shape {list(output.shape)}."
        raise fail("HG023", name, text, "Use one scale per tensor.")
    factor = placed(name, np.asarray(product / output.reshape(())), shape, -1, "the weights' scale")
    last = quantizer_of(name, shape, [None, Const(np.ones((), np.float32)), out[1]], {})
    return [*steps, (Cast("float32"), shape), (Mul(factor), shape), (last, shape)]


def qgemm(node: NodeContext) -> Imported:
    """QGemm: A, its scale, zero point; B, its scale, zero point; C (int32); output scale, zero point.

    Raises HG013, HG020, HG022 - HG024, HG026, HG034.
    """
    name, attrs, inputs = node.name, node.attrs, padded(node.constants)
    if attrs.get("transA", 0):
        raise fail("HG013", name, f"attribute transA is {attrs['transA']}.", "Supported: transA 0.")
    weight = inputs[3]
    if attrs.get("transB", 0) and weight is not None:
        weight = weight.map(np.transpose)
    steps = integer_product(name, node.shape, node.dtype, [None, weight, inputs[2], inputs[5]])
    result = steps[-1][1]
    if inputs[6] is not None:
        bias, _ = integers(name, inputs[6], "the bias", ["int32"])
        bias = bias.reshape(-1) if bias.ndim < 2 or bias.shape[0] == 1 else bias
        steps.append((Add(placed(name, bias.astype(np.int32), result, -1, "the bias")), result))
    product = scale_product(name, inputs[1], inputs[4], attrs.get("alpha", 1.0))
    if inputs[7] is not None:
        return Imported((rescaled(name, steps, product, inputs[7:9]),))
    factor = placed(name, product, result, -1, "the weights' scale")
    return Imported(([*steps, (Cast("float32"), result), (Mul(factor), result)],))


def matmul_integer_to_float(node: NodeContext) -> Imported:
    """MatMulIntegerToFloat: A, B, their scales, their zero points, float32 bias.

    Raises HG020, HG022 - HG024, HG026, HG034.
    """
    name, inputs = node.name, padded(node.constants)
    operands = (inputs[0:6:2], inputs[1:6:2])
    steps, product = _factors(node, *(operands if node.position == 0 else operands[::-1]))
    return Imported(([*steps, *as_float(name, steps[-1][1], product, inputs[6])],))


def as_float(name: str, shape: Shape, product: Array, bias: Const | None) -> ShapedOps:
    """int32 sums times the product of the scales, as float32, and a float32 bias. Raises HG023."""
    factor = placed(name, product, shape, -1, "the weights' scale")
    ops: ShapedOps = [(Cast("float32"), shape), (Mul(factor), shape)]
    if bias is not None:
        ops.append((Add(placed(name, bias.array.reshape(-1), shape, -1, "the bias")), shape))
    return ops


_NARROW = ["int8", "uint8", "int16", "uint16"]


def qlinear_add(node: NodeContext) -> Imported:
    """QLinearAdd of the data and a constant. Raises HG015, HG020, HG022, HG023, HG026."""
    data, codes, constant, result = _operands(node)
    return elementwise(
        node, *added(node.name, node.shape, data, codes, constant, result, node.position, node.fixed_point)
    )


def qlinear_mul(node: NodeContext) -> Imported:
    """QLinearMul of the data and a constant. Raises HG015, HG020, HG022, HG023, HG026."""
    data, codes, constant, result = _operands(node)
    return elementwise(node, *multiplied(node.name, node.shape, data, codes, constant, result))


def _operands(node: NodeContext) -> tuple[Dequantize, Array, Dequantize, QuantizeLinear]:
    """(meaning of the data, codes of the constant, their meaning, quantizer of the result)."""
    inputs, name = padded(node.constants), node.name
    of_data, of_constant = (inputs[0:3], inputs[3:6]) if node.position == 0 else (inputs[3:6], inputs[0:3])
    if of_constant[0] is None:
        text = f"{node.op_type} of two computed tensors is not supported here."
        raise fail("HG015", name, text, "Supported: one constant operand.")
    codes, _ = integers(name, of_constant[0], "the constant operand", _NARROW)
    scales = [scale_of(name, part[1], "a scale") for part in (of_data, of_constant)]
    zeros = [_zero_point(name, part[2]) for part in (of_data, of_constant)]
    if any(part.size != 1 for part in (*scales, *zeros)):
        raise fail("HG023", name, f"{node.op_type} with a scale or zero point per channel.", "Use one per tensor.")
    result = quantizer_of(name, node.shape, [None, *inputs[6:8]], {})
    data, constant = (Dequantize(scale, zero) for scale, zero in zip(scales, zeros, strict=True))
    return data, codes, constant, result


def _zero_point(name: str, const: Const | None) -> Array:
    return np.zeros(1, np.int64) if const is None else integers(name, const, "a zero point", _NARROW)[0]


def added(
    name: str,
    shape: Shape,
    data: Dequantize,
    codes: Array,
    constant: Dequantize,
    result: QuantizeLinear,
    position: int,
    fixed_point: bool,
) -> list[Elementwise]:
    """QLinearAdd: fma(a, ra, fma(b, rb, zy - fma(ra, za, rb * zb))), rounded with the zero point inside.

    r = fl(s / sy). a is the first operand. If the first operand is constant along the last axis and is
    broadcast, onnxruntime's kernel uses the second operand as a.
    """
    constant_codes = _broadcast(name, codes, shape)
    if fixed_point and result.dtype == "int8":
        ends = (data, constant) if position == 0 else (constant, data)
        scales = [float(s.astype(np.float32).reshape(())) for s in (ends[0].scale, ends[1].scale, result.scale)]
        zeros = [int(z.reshape(())) for z in (ends[0].zero_point, ends[1].zero_point, result.zero_point)]
        return [FixedAdd(constant_codes, position == 0, approximate(name, scales, zeros))]
    first = shape if position == 0 else constant_codes.shape
    swapped = constant_codes.shape != shape and first[-1:] in ((), (1,))
    (data_ratio, data_zero), (constant_ratio, constant_zero) = (_ratio(part, result) for part in (data, constant))
    zero = result.zero_point.astype(np.float32).reshape(1)
    scalar_shape = (1,) * len(shape)
    data_factor = data_ratio.reshape(scalar_shape)
    if (position == 0) != swapped:
        offset = zero - fused_multiply_add(data_ratio, data_zero, constant_ratio * constant_zero)
        addend = fused_multiply_add(constant_codes.astype(np.float32), constant_ratio, offset)
        steps: list[Elementwise] = [Cast("float32"), Fma(data_factor, addend)]
    else:
        offset = zero - fused_multiply_add(constant_ratio, constant_zero, data_ratio * data_zero)
        product = constant_codes.astype(np.float64) * constant_ratio.astype(np.float64)  # exact
        ones = np.ones(scalar_shape, np.float32)
        steps = [Cast("float32"), Fma(data_factor, offset.reshape(scalar_shape)), Fma(ones, product)]
    return [*steps, _without_scale(result, scalar_shape)]


def multiplied(
    name: str, shape: Shape, data: Dequantize, codes: Array, constant: Dequantize, result: QuantizeLinear
) -> list[Elementwise]:
    """QLinearMul: fl(fl((a - za) * (b - zb)) * fl(fl(sa * sb) / sy)) + zy, rounded with the zero point inside."""
    scalar_shape = (1,) * len(shape)
    constant_integers = _broadcast(name, codes, shape) - constant.zero_point.reshape(scalar_shape)
    product = data.scale.astype(np.float32) * constant.scale.astype(np.float32)
    factor = product.reshape(scalar_shape) / result.scale.astype(np.float32).reshape(scalar_shape)
    return [
        Cast("float32"),
        Add(-data.zero_point.astype(np.float32).reshape(scalar_shape)),
        Mul(constant_integers.astype(np.float32)),
        Mul(factor),
        Add(result.zero_point.astype(np.float32).reshape(scalar_shape)),
        _without_scale(result, scalar_shape),
    ]


def _ratio(part: Dequantize, result: QuantizeLinear) -> tuple[Array, Array]:
    """(fl(scale / output scale), zero point), float32 of one element each."""
    scale, output = (v.astype(np.float32).reshape(1) for v in (part.scale, result.scale))
    return scale / output, part.zero_point.astype(np.float32).reshape(1)


def _without_scale(result: QuantizeLinear, scalar_shape: Shape) -> QuantizeLinear:
    """The quantizer with scale 1 and zero point 0, which only rounds and saturates."""
    return replace(result, scale=np.ones(scalar_shape, np.float32), zero_point=np.zeros(scalar_shape, np.int64))


def _broadcast(name: str, codes: Array, shape: Shape) -> Array:
    while codes.ndim > len(shape) and codes.shape[0] == 1:
        codes = codes[0]
    try:
        fits = np.broadcast_shapes(codes.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        text = f"a constant operand of shape {list(codes.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "It must broadcast to the shape of the data.")
    return codes.reshape((1,) * (len(shape) - codes.ndim) + codes.shape)


def approximate(name: str, scales: list[float], zeros: list[int]) -> Parameters:
    """The multipliers and the shift that approximate a float addition of int8 codes best. Raises HG022."""
    (a, b, c), (za, zb, zc) = scales, zeros
    try:
        return derive(a, za, b, zb, c, zc)
    except ValueError as error:
        raise fail("HG022", name, f"{error}.", "Build without --add fixed-point.") from None
