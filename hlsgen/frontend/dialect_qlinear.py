"""QLinear operators, of ONNX and of onnxruntime (domain com.microsoft), as the steps they consist of.

The order of float32 operations is that of onnxruntime, whose operators they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, ConstInputs
from hlsgen.frontend.dialect_integer import dequantizer_of, integer_product, integers, placed, quantizer_of, scale_of
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.ir import Shape
from hlsgen.ir.ops import Activation, Add, Cast, Dequantize, Elementwise, FixedAdd, Fma, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array, fused_multiply_add
from hlsgen.numerics.quantized_add import Parameters, derive


def padded(constants: ConstInputs) -> ConstInputs:
    """The inputs with None for those that the node leaves out at the end; at most nine."""
    return [*constants, *[None] * 9]


def qlinear_matmul(node: NodeContext) -> Imported:
    """QLinearMatMul: A, its scale, zero point; B, its scale, zero point; output scale, zero point.

    Raises HG020, HG022 - HG024, HG026, HG034.
    """
    inputs = padded(node.constants)
    data, weight, out = inputs[0:3], inputs[3:6], inputs[6:8]
    ops = integer_product(node.name, node.shape, node.dtype, [None, weight[0], data[2], weight[2]])
    return Imported((rescaled(node.name, ops, scale_product(node.name, data[1], weight[1]), out),))


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


def scale_product(name: str, a: Const | None, b: Const | None, alpha: float = 1.0) -> Array:
    """fl32(fl32(alpha * scale of the data) * scale of the weights)."""
    left, right = scale_of(name, a, "the data's scale"), scale_of(name, b, "the weights' scale", signed=True)
    if left.size != 1:
        raise fail("HG034", name, "the data's scale differs along the summed axis.", "Use one per tensor.")
    return np.asarray(np.float32(alpha) * left.astype(np.float32).reshape(()) * right.astype(np.float32))


def rescaled(name: str, steps: ShapedOps, product: Array, out: ConstInputs) -> ShapedOps:
    """Behind int32 sums: one multiplication by fl32(product / output scale), then QuantizeLinear of scale 1."""
    shape = steps[-1][1]
    output = scale_of(name, out[0], "the output's scale").astype(np.float32)
    if output.size != 1:
        raise fail("HG023", name, f"the output's scale of shape {list(output.shape)}.", "Use one per tensor.")
    factor = placed(name, np.asarray(product / output.reshape(())), shape, -1, "the weights' scale")
    last = quantizer_of(name, shape, [None, Const(np.ones((), np.float32)), out[1]], {})
    return [*steps, (Cast("float32"), shape), (Mul(factor), shape), (last, shape)]


def qgemm(node: NodeContext) -> Imported:
    """QGemm: A, its scale, zero point; B, its scale, zero point; C (int32); output scale, zero point.

    Raises HG013, HG020, HG022 - HG024, HG026, HG034.
    """
    name, attrs, inputs = node.name, node.attrs, padded(node.constants)
    if attrs.get("transA", 0):
        raise fail("HG013", name, "transA is 1.", "Supported: transA 0.")
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
    steps = integer_product(name, node.shape, node.dtype, [None, inputs[1], inputs[4], inputs[5]])
    result = steps[-1][1]
    factor = placed(name, scale_product(name, inputs[2], inputs[3]), result, -1, "the weights' scale")
    steps += [(Cast("float32"), result), (Mul(factor), result)]
    if inputs[6] is not None:
        steps.append((Add(placed(name, inputs[6].array.reshape(-1), result, -1, "the bias")), result))
    return Imported((steps,))


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
    own, other = (inputs[0:3], inputs[3:6]) if node.position == 0 else (inputs[3:6], inputs[0:3])
    if other[0] is None:
        raise fail("HG015", name, f"{node.op_type} of two computed tensors.", "Supported so far: one constant operand.")
    codes, _ = integers(name, other[0], "the other operand", _NARROW)
    scales = [scale_of(name, part[1], "a scale") for part in (own, other)]
    zeros = [_whole(name, part[2]) for part in (own, other)]
    if any(part.size != 1 for part in (*scales, *zeros)):
        raise fail("HG023", name, f"{node.op_type} with a scale or zero point per channel.", "Use one per tensor.")
    result = quantizer_of(name, node.shape, [None, *inputs[6:8]], {})
    data, constant = (Dequantize(scale, zero) for scale, zero in zip(scales, zeros, strict=True))
    return data, codes, constant, result


def _whole(name: str, const: Const | None) -> Array:
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

    r = fl(s / sy). a is the first operand; where that stands still along the last axis and is
    broadcast, the kernel takes the second for a.
    """
    value = _broadcast(name, codes, shape)
    if fixed_point and result.dtype == "int8":
        ends = (data, constant) if position == 0 else (constant, data)
        scales = [float(s.astype(np.float32).reshape(())) for s in (ends[0].scale, ends[1].scale, result.scale)]
        zeros = [int(z.reshape(())) for z in (ends[0].zero_point, ends[1].zero_point, result.zero_point)]
        return [FixedAdd(value, position == 0, approximate(name, scales, zeros))]
    first = shape if position == 0 else value.shape
    swapped = value.shape != shape and first[-1:] in ((), (1,))
    (own, own_zero), (other, other_zero) = (_ratio(part, result) for part in (data, constant))
    zero = result.zero_point.astype(np.float32).reshape(1)
    one = (1,) * len(shape)
    if (position == 0) != swapped:
        fixed = zero - fused_multiply_add(own, own_zero, other * other_zero)
        inner = fused_multiply_add(value.astype(np.float32), other, fixed)
        steps: list[Elementwise] = [Cast("float32"), Fma(own.reshape(one), inner)]
    else:
        fixed = zero - fused_multiply_add(other, other_zero, own * own_zero)
        product = value.astype(np.float64) * other.astype(np.float64)  # exact
        steps = [Cast("float32"), Fma(own.reshape(one), fixed.reshape(one)), Fma(np.ones(one, np.float32), product)]
    return [*steps, _unscaled(result, one)]


def multiplied(
    name: str, shape: Shape, data: Dequantize, codes: Array, constant: Dequantize, result: QuantizeLinear
) -> list[Elementwise]:
    """QLinearMul: fl(fl((a - za) * (b - zb)) * fl(fl(sa * sb) / sy)) + zy, rounded with the zero point inside."""
    one = (1,) * len(shape)
    value = _broadcast(name, codes, shape) - constant.zero_point.reshape(one)
    product = data.scale.astype(np.float32) * constant.scale.astype(np.float32)
    factor = product.reshape(one) / result.scale.astype(np.float32).reshape(one)
    return [
        Cast("float32"),
        Add(-data.zero_point.astype(np.float32).reshape(one)),
        Mul(value.astype(np.float32)),
        Mul(factor),
        Add(result.zero_point.astype(np.float32).reshape(one)),
        _unscaled(result, one),
    ]


def _ratio(part: Dequantize, result: QuantizeLinear) -> tuple[Array, Array]:
    """(fl(scale / output scale), zero point), float32 of one element each."""
    scale, output = (v.astype(np.float32).reshape(1) for v in (part.scale, result.scale))
    return scale / output, part.zero_point.astype(np.float32).reshape(1)


def _unscaled(result: QuantizeLinear, one: Shape) -> QuantizeLinear:
    """Rounding and saturation alone."""
    return replace(result, scale=np.ones(one, np.float32), zero_point=np.zeros(one, np.int64))


def _broadcast(name: str, codes: Array, shape: Shape) -> Array:
    while codes.ndim > len(shape) and codes.shape[0] == 1:
        codes = codes[0]
    try:
        fits = np.broadcast_shapes(codes.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise fail("HG023", name, f"an operand of shape {list(codes.shape)} for data of shape {list(shape)}.")
    return codes.reshape((1,) * (len(shape) - codes.ndim) + codes.shape)


def approximate(name: str, scales: list[float], zeros: list[int]) -> Parameters:
    """Multipliers and a shift that come closest to a float add of int8 codes. Raises HG022."""
    (a, b, c), (za, zb, zc) = scales, zeros
    try:
        return derive(a, za, b, zb, c, zc)
    except ValueError as error:
        raise fail("HG022", name, f"{error}.", "Build without --add fixed-point.") from None
