"""Weights after operators on constants are still codes times a scale, so that the layer computes with integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import compiled, refused
from models import DOMAIN, Net
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
RNG = np.random.default_rng(7)
f32 = np.float32
MASK = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1]], f32)
FLOATS = RNG.standard_normal((6, 4)).astype(f32)
#: Scales per channel, powers of two, so that onnxruntime's float sums are exact.
CHANNELS = np.array([0.25, 0.5, 0.125, 0.0625], f32)


def network(
    nodes: list[tuple[str, list[str], list[str], dict[str, Any]]],
    constants: dict[str, Any],
    shape: tuple[int, ...] = (6, 4),
    scale: Any = 2.0**-6,
    zero: int = 0,
    unit: float = 2.0**-4,
) -> onnx.ModelProto:
    """QDQ MatMul of x (1, 6) with the tensor "weights" of `nodes`, which use "dq", dequantized int8 of this shape."""
    weight_scale = np.asarray(scale, f32)
    tensors = {
        "sx": f32(unit),
        "zx": np.uint8(128),
        "sy": f32(0.125),
        "zy": np.uint8(120),
        "sw": weight_scale,
        "zw": np.full(weight_scale.shape, zero, np.int8),
        "w": RNG.integers(-128, 128, shape).astype(np.int8),
        **constants,
    }
    proto_nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dq"], axis=1),
        *(helper.make_node(op, inputs, outputs, **attributes) for op, inputs, outputs, attributes in nodes),
        helper.make_node("MatMul", ["xd", "weights" if nodes else "dq"], ["product"]),
        helper.make_node("QuantizeLinear", ["product", "sy", "zy"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 4])
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()]
    graph = helper.make_graph(proto_nodes, "weights", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def with_node(op: str, *operands: Any, first: bool = True, **attributes: Any) -> onnx.ModelProto:
    """One node between the quantized weights and the layer."""
    shape = attributes.pop("shape", (6, 4))
    outputs = attributes.pop("outputs", ["weights"])
    names = [f"c{n}" for n in range(len(operands))]
    inputs = ["dq", *names] if first else [*names, "dq"]
    return network([(op, inputs, outputs, attributes)], dict(zip(names, operands, strict=True)), shape)


def int64s(*values: int) -> Array:
    return np.array(values, np.int64)


def fake_quantized(*, reciprocal: bool, zero: float, scale: Any) -> onnx.ModelProto:
    """Float weights, quantized by arithmetic."""
    constants = {
        "f": FLOATS,
        "s": np.asarray(scale, f32),
        "z": f32(zero),
        "lo": f32(-127 + zero),
        "hi": f32(127 + zero),
    }
    constants["r"] = f32(1) / constants["s"]
    first = ("Mul", ["f", "r"], ["a"], {}) if reciprocal else ("Div", ["f", "s"], ["a"], {})
    nodes = [first, ("Round", ["a"], ["b"], {}), ("Add", ["b", "z"], ["c"], {}), ("Clip", ["c", "lo", "hi"], ["d"], {})]
    nodes += [("Cast", ["d"], ["e"], {"to": TensorProto.INT32}), ("Cast", ["e"], ["g"], {"to": TensorProto.FLOAT})]
    return network([*nodes, ("Sub", ["g", "z"], ["h"], {}), ("Mul", ["h", "s"], ["weights"], {})], constants)


CASES = {
    "divided": lambda: with_node("Div", f32(4)),
    "divided by a negative number": lambda: with_node("Div", f32(-2)),
    "multiplied by a negative number": lambda: with_node("Mul", f32(-0.5), first=False),
    "mixed signs": lambda: with_node("Mul", np.array([0.5, -2, 1, -0.25], f32)),
    "a channel that is 0": lambda: with_node("Mul", np.array([0.5, 0, 1, -0.25], f32)),
    "mask": lambda: with_node("Mul", MASK),
    "mask first": lambda: with_node("Mul", MASK, first=False),
    "masked and divided": lambda: network(
        [("Mul", ["dq", "m"], ["a"], {}), ("Div", ["a", "d"], ["weights"], {})], {"m": MASK, "d": f32(-2)}
    ),
    "where": lambda: network([("Where", ["m", "dq", "z"], ["weights"], {})], {"m": MASK > 0, "z": f32(0)}),
    "negated": lambda: with_node("Neg"),
    "transposed": lambda: with_node("Transpose", shape=(4, 6), perm=[1, 0]),
    "reshaped": lambda: with_node("Reshape", int64s(6, 4), shape=(3, 8)),
    "slice": lambda: with_node("Slice", int64s(2), int64s(6), int64s(1), shape=(6, 9)),
    "padded": lambda: with_node("Pad", int64s(1, 0, 1, 0), shape=(4, 4)),
    "gathered": lambda: with_node("Gather", int64s(3, 1, 8, 0), axis=1, shape=(6, 9)),
    "first of a split": lambda: with_node("Split", axis=1, shape=(6, 8), outputs=["weights", "other"]),
    "second of a split": lambda: with_node("Split", axis=1, shape=(6, 8), outputs=["other", "weights"]),
    "concatenated": lambda: network(
        [("Concat", ["dq", "z"], ["weights"], {"axis": 1})], {"z": np.zeros((6, 2), f32)}, shape=(6, 2)
    ),
    "tiled": lambda: with_node("Tile", int64s(2, 1), shape=(3, 4)),
    "upper triangle": lambda: with_node("Trilu"),
    "clipped in vain": lambda: with_node("Clip", f32(-8), f32(8)),
    "negative scale": lambda: network([], {}, scale=-(2.0**-6)),
    "negative scale, zero point": lambda: network([], {}, scale=-(2.0**-6), zero=3),
    "scales of mixed signs": lambda: network([], {}, scale=CHANNELS * [1, -1, -1, 1]),
    "fake quantized": lambda: fake_quantized(reciprocal=False, zero=0, scale=2.0**-6),
    "fake quantized by channel": lambda: fake_quantized(reciprocal=True, zero=5, scale=CHANNELS * [1, -1, 1, -1]),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_file_equals_onnxruntime(name: str, tmp_path: Path) -> None:
    """All scales are powers of two, so that onnxruntime's float sums are exact, and every code is equal."""
    model = CASES[name]()
    build = compiled(model, tmp_path)
    x = (RNG.standard_normal((200, 6)) * 4).astype(f32)
    session = ort.session(model)
    expected = np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in x])
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(reference.evaluate(build.graph, x), expected)


@pytest.mark.parametrize("factor", [3.0, -0.37, [3.0, -0.7, 0.11, 1.9]])
def test_scales_of_all_kinds(factor: Any, tmp_path: Path) -> None:
    """The layer's sums are exact, and equal float64 sums with the weights that onnx.reference computes."""
    operand = np.asarray(factor, f32)
    model = network([("Div", ["dq", "c"], ["weights"], {})], {"c": operand}, scale=0.0123, unit=0.0471)
    x = (RNG.standard_normal((200, 6)) * 4).astype(f32)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    part.opset_import[0].version = 21  # onnx.reference has DequantizeLinear from 19 on
    part.graph.output[0].CopyFrom(helper.make_tensor_value_info("weights", TensorProto.FLOAT, [6, 4]))
    weights = np.asarray(ReferenceEvaluator(part).run(None, {"x": x[:1]})[0]).astype(np.float64)
    codes = np.clip(np.rint(x / f32(0.0471)) + 128, 0, 255) - 128
    product = (codes * np.float64(f32(0.0471))) @ weights
    expected = np.clip(np.rint(product.astype(f32) / f32(0.125)) + 120, 0, 255)
    np.testing.assert_array_equal(reference.evaluate(compiled(model, tmp_path).graph, x), expected)


def test_scales_within_a_row_are_refused(tmp_path: Path) -> None:
    """A factor per weight leaves no scale for the row."""
    refused(with_node("Mul", RNG.random((6, 4)).astype(f32)), tmp_path, "HG034")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("quantizer", ["Quant", "BipolarQuant", "QuantizeLinear", "arithmetic"])
def test_weights_that_are_not_finite(quantizer: str, value: float, tmp_path: Path) -> None:
    weights = np.ones((4, 3), f32)
    weights[2, 1] = value
    net = Net().quant()
    data = net.last
    if quantizer == "Quant":
        net.node("IntQuant", weights, 0.25, 0.0, 4.0, domain=DOMAIN)
    elif quantizer == "BipolarQuant":
        net.node("BipolarQuant", weights, 0.25, domain=DOMAIN)
    elif quantizer == "QuantizeLinear":
        net.node("QuantizeLinear", weights, f32(0.25), np.zeros((), np.int8)).then(
            "DequantizeLinear", f32(0.25), np.zeros((), np.int8)
        )
    else:
        if np.isinf(value):
            pytest.skip("Clip makes a finite number of it, in every runtime")
        net.node("Div", weights, f32(0.25)).then("Round").then("Max", f32(-7)).then("Min", f32(7)).then(
            "Mul", f32(0.25)
        )
    refused(net.node("MatMul", data, net.last).quant().model(), tmp_path, "HG027")


@pytest.mark.parametrize("operator", ["IntQuant", "BipolarQuant", "signed bit"])
@pytest.mark.parametrize("scale", [-0.25, [0.25, -0.5, -0.125]])
def test_negative_scales_of_qonnx_weights(operator: str, scale: Any, tmp_path: Path) -> None:
    """The quantizer's formula in numpy, for scales of both signs."""
    weights, s = RNG.standard_normal((4, 3)).astype(f32), np.asarray(scale, f32)
    zero = f32(1 if operator == "IntQuant" else 0)
    net = Net().quant(scale=0.25, bits=6.0)
    data = net.last
    if operator == "BipolarQuant":
        net.node("BipolarQuant", weights, s, domain=DOMAIN)
        real = np.where(weights >= 0, s, -s)
    elif operator == "signed bit":
        net.node("IntQuant", weights, s, zero, 1.0, domain=DOMAIN)
        real = np.where(weights / s >= 0, s, -s)
    else:
        net.node("IntQuant", weights, s, zero, 4.0, domain=DOMAIN)
        real = (np.rint(np.clip(weights / s + zero, -8, 7)) - zero) * s
    model = net.node("MatMul", data, net.last).quant(scale=0.125, bits=8.0).model()
    x = (RNG.standard_normal((50, 4)) * 4).astype(f32)
    codes = np.rint(np.clip(x / f32(0.25), -32, 31)) * f32(0.25)
    expected = np.rint(np.clip(codes @ real / 0.125, -128, 127)) * f32(0.125)
    np.testing.assert_array_equal(reference.evaluate(compiled(model, tmp_path).graph, x), expected)


def test_negative_scale_of_data_is_refused(tmp_path: Path) -> None:
    refused(Net().quant(scale=-0.25).linear().quant().model(), tmp_path, "HG022")
