"""QLinear operators, of ONNX and of onnxruntime (domain com.microsoft), as the steps they consist of.

The order of float32 operations is that of onnxruntime, whose operators they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.errors import fail
from hlsgen.fixed import Array
from hlsgen.frontend.integer import (
    Imported,
    Inputs,
    dequantize_linear,
    integers,
    matmul_integer,
    placed,
    quantize_linear,
    scale_of,
)
from hlsgen.frontend.tensors import Const
from hlsgen.ir import Activation, Add, Cast, Elementwise, Mul, Shape

DOMAIN = "com.microsoft"
OPERATORS = frozenset(
    ["QLinearMatMul", "QGemm", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "MatMulIntegerToFloat"]
)


def import_qlinear(
    op_type: str, name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], position: int, dtype: str
) -> Imported:  # fmt: skip
    """Steps for a node whose only dynamic input, of that shape and dtype, is number `position`."""
    inputs = [*inputs, *[None] * 9]
    if position != 0 and not (op_type in ("QLinearAdd", "QLinearMul") and position == 3):
        raise fail(
            "HG020", name, f"input {position} of {op_type} is computed from the model's input.",
            "Only the data may be; the others must be constants.",
        )  # fmt: skip
    match op_type:
        case "QLinearMatMul":
            data, weight, out = inputs[0:3], inputs[3:6], inputs[6:8]
            steps = matmul_integer(name, shape, dtype, [None, weight[0], data[2], weight[2]])
            return _rescaled(name, steps, _product(name, data[1], weight[1]), out)
        case "QGemm":
            return _gemm(name, shape, dtype, inputs, attrs)
        case "MatMulIntegerToFloat":
            return _to_float(name, shape, dtype, inputs)
        case "QLinearAdd" | "QLinearMul":
            own, other = (inputs[0:3], inputs[3:6]) if position == 0 else (inputs[3:6], inputs[0:3])
            return [(op, shape) for op in _binary(op_type, name, shape, own, other, inputs[6:8])]
        case _:
            own, out = inputs[0:3], inputs[3:5]
            kind = op_type.removeprefix("QLinear")
            alpha = float(np.float32(attrs.get("alpha", 0.01)))
            function = Activation(kind, alpha) if kind == "LeakyRelu" else Activation(kind)
            first = dequantize_linear(name, shape, own, {}, dtype)
            last = quantize_linear(name, shape, [None, *out], {})
            return [(first, shape), (function, shape), (last, shape)]


def _product(name: str, a: Const | None, b: Const | None) -> Array:
    """fl32(scale of the data * scale of the weights)."""
    left, right = scale_of(name, a, "the data's scale"), scale_of(name, b, "the weights' scale")
    if left.size != 1:
        raise fail("HG034", name, "the data's scale differs along the summed axis.", "Use one per tensor.")
    return np.asarray(left.astype(np.float32).reshape(()) * right.astype(np.float32))


def _rescaled(name: str, steps: Imported, product: Array, out: Inputs) -> Imported:
    """Behind int32 sums: one multiplication by fl32(product / output scale), then QuantizeLinear of scale 1."""
    shape = steps[-1][1]
    output = scale_of(name, out[0], "the output's scale").astype(np.float32)
    if output.size != 1:
        raise fail("HG023", name, f"the output's scale of shape {list(output.shape)}.", "Use one per tensor.")
    factor = placed(name, np.asarray(product / output.reshape(())), shape, -1, "the weights' scale")
    last = quantize_linear(name, shape, [None, Const(np.ones((), np.float32)), out[1]], {})
    return [*steps, (Cast("float32"), shape), (Mul(factor), shape), (last, shape)]


def _gemm(name: str, shape: Shape, dtype: str, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    """QGemm: A, its scale, zero point; B, its scale, zero point; C (int32); output scale, zero point."""
    if attrs.get("transA", 0) or attrs.get("alpha", 1.0) != 1.0:
        raise fail("HG013", name, "transA or alpha is set.", "Supported: transA 0, alpha 1.")
    weight = inputs[3]
    if attrs.get("transB", 0) and weight is not None:
        weight = weight.map(np.transpose)
    steps = matmul_integer(name, shape, dtype, [None, weight, inputs[2], inputs[5]])
    result = steps[-1][1]
    if inputs[6] is not None:
        bias, _ = integers(name, inputs[6], "the bias", ["int32"])
        bias = bias.reshape(-1) if bias.ndim < 2 or bias.shape[0] == 1 else bias
        steps.append((Add(placed(name, bias.astype(np.int32), result, -1, "the bias")), result))
    product = _product(name, inputs[1], inputs[4])
    if inputs[7] is not None:
        return _rescaled(name, steps, product, inputs[7:9])
    factor = placed(name, product, result, -1, "the weights' scale")
    return [*steps, (Cast("float32"), result), (Mul(factor), result)]


def _to_float(name: str, shape: Shape, dtype: str, inputs: Inputs) -> Imported:
    """MatMulIntegerToFloat: A, B, their scales, their zero points, float32 bias."""
    steps = matmul_integer(name, shape, dtype, [None, inputs[1], inputs[4], inputs[5]])
    result = steps[-1][1]
    factor = placed(name, _product(name, inputs[2], inputs[3]), result, -1, "the weights' scale")
    steps += [(Cast("float32"), result), (Mul(factor), result)]
    if inputs[6] is not None:
        steps.append((Add(placed(name, inputs[6].array.reshape(-1), result, -1, "the bias")), result))
    return steps


def _binary(
    op_type: str, name: str, shape: Shape, own: Inputs, other: Inputs, out: Inputs
) -> list[Elementwise]:  # fmt: skip
    """QLinearAdd or QLinearMul with a constant operand."""
    if other[0] is None:
        raise fail("HG015", name, f"{op_type} of two computed tensors.", "Supported so far: one constant operand.")
    codes, _ = integers(name, other[0], "the other operand", ["int8", "uint8", "int16", "uint16"])
    zero = integers(name, other[2], "its zero point", ["int8", "uint8", "int16", "uint16"])[0] if other[2] else 0
    own_zero = integers(name, own[2], "the zero point", ["int8", "uint8", "int16", "uint16"])[0] if own[2] else 0
    sizes = [s for s in codes.shape if s > 1]
    if codes.ndim > len(shape) or np.broadcast_shapes(codes.shape, shape) != shape:
        raise fail("HG023", name, f"an operand of shape {sizes} for data of shape {list(shape)}.")
    value = codes.reshape((1,) * (len(shape) - codes.ndim) + codes.shape)
    scales = [scale_of(name, part, "a scale").astype(np.float32).reshape(-1)[0] for part in (own[1], other[1], out[0])]
    return _exact_binary(op_type, name, shape, value, np.asarray(zero), np.asarray(own_zero), scales, out)


def _exact_binary(
    op_type: str, name: str, shape: Shape, value: Array, zero: Array, own_zero: Array, scales: list[Any], out: Inputs
) -> list[Elementwise]:  # fmt: skip
    raise NotImplementedError
