"""Wrong or unsupported integer, QDQ and QLinear models: code, node and reason of the diagnostic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.frontend import domain_hlsgen
from hlsgen.numerics.quantized_add import Parameters

ONE, ZERO = np.float32(1), np.int8(0)
W = np.ones((4, 3), np.int8)
MS = "com.microsoft"


def net(kind: int, *nodes: tuple[Any, ...], shape: tuple[int, ...] = (1, 4), opset: int = 21) -> onnx.ModelProto:
    """A chain: (operator, constants and None for the data, attributes, domain); each node is named as its operator."""
    proto_nodes, constants, last = [], [], "x"
    for number, (op, operands, *options) in enumerate(nodes):
        attributes = options[0] if options else {}
        inputs = []
        for value in operands:
            if value is None:
                inputs.append(last)
                continue
            name = f"c{len(constants)}"
            is_tensor = isinstance(value, onnx.TensorProto)
            tensor = value if is_tensor else numpy_helper.from_array(np.asarray(value), name)
            tensor.name = name
            constants.append(tensor)
            inputs.append(name)
        last = f"t{number}"
        domain = options[1] if len(options) > 1 else ""
        proto_nodes.append(helper.make_node(op, inputs, [last], f"{op}{number}", domain=domain, **attributes))
    source = helper.make_tensor_value_info("x", kind, shape)
    graph = helper.make_graph(proto_nodes, "g", [source], [helper.make_empty_tensor_value_info(last)], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1), domain_hlsgen.opset_import()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


F32, I8, I32 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.INT32
QUANTIZE = ("QuantizeLinear", [None, ONE, ZERO])
DEQUANTIZE = ("DequantizeLinear", [None, ONE, ZERO])
MATMUL = ("MatMulInteger", [None, W])
QLINEAR = [None, ONE, ZERO, W, ONE, ZERO, ONE, ZERO]
REQUANTIZE = [None, np.int32(1 << 30), np.int32(35), ZERO]


def changed(operands: list[Any], position: int, value: Any) -> list[Any]:
    return [value if i == position else operand for i, operand in enumerate(operands)]


#: name -> (code, a part of the diagnostic, the model)
CASES: dict[str, tuple[str, str, Callable[[], onnx.ModelProto]]] = {
    "scale 0": ("HG022", "scale", lambda: net(F32, ("QuantizeLinear", [None, np.float32(0), ZERO]))),
    "negative scale": ("HG022", "scale", lambda: net(F32, ("QuantizeLinear", [None, np.float32(-1), ZERO]))),
    "infinite scale": (
        "HG022",
        "inf",
        lambda: net(I8, ("DequantizeLinear", [None, np.float32("inf"), ZERO]), QUANTIZE),
    ),
    "blocked": ("HG023", "Blocks of 2", lambda: net(F32, ("QuantizeLinear", [None, ONE, ZERO], {"block_size": 2}))),
    "zero point of int32": ("HG026", "int32", lambda: net(F32, ("QuantizeLinear", [None, ONE, np.int32(0)]))),
    "float8 zero point": (
        "HG026",
        "float8",
        lambda: net(F32, ("QuantizeLinear", [None, ONE, helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0.0])])),
    ),
    "scale per nothing": ("HG023", "axis", lambda: net(F32, ("QuantizeLinear", [None, np.ones(3, np.float32), ZERO]))),
    "two scales": ("HG023", "axis", lambda: net(F32, ("QuantizeLinear", [None, np.ones((2, 4), np.float32), ZERO]))),
    "dequantized floats": ("HG026", "float32", lambda: net(F32, DEQUANTIZE, QUANTIZE)),
    "dynamic quantization": ("HG010", "hlsgen quantize", lambda: net(F32, ("DynamicQuantizeLinear", [None]))),
    "float weights": ("HG026", "float32", lambda: net(I8, ("MatMulInteger", [None, W.astype(np.float32)]))),
    "integer layer of sums": ("HG026", "int32", lambda: net(I32, MATMUL)),
    "columns": ("HG023", "columns", lambda: net(I8, ("MatMulInteger", [None, np.ones((5, 3), np.int8)]))),
    "weight zero points": (
        "HG023",
        "zero point",
        lambda: net(I8, ("MatMulInteger", [None, W, ZERO, np.zeros(2, np.int8)])),
    ),
    "row zero points": (
        "HG024",
        "zero point",
        lambda: net(I8, ("MatMulInteger", [None, W, np.array([1, 2], np.int8)]), shape=(2, 4)),
    ),
    "two output scales": (
        "HG023",
        "output",
        lambda: net(I8, ("QLinearMatMul", changed(QLINEAR, 6, np.ones(3, np.float32)))),
    ),
    "two data scales": (
        "HG034",
        "summed axis",
        lambda: net(I8, ("QLinearMatMul", changed(QLINEAR, 1, np.ones(4, np.float32)))),
    ),
    "transposed QGemm": (
        "HG013",
        "transA",
        lambda: net(
            I8, ("QGemm", [None, ONE, ZERO, W, ONE, ZERO, np.zeros(3, np.int32), ONE, ZERO], {"transA": 1}, MS)
        ),
    ),
    "QLinearAdd per channel": (
        "HG023",
        "per channel",
        lambda: net(
            I8,
            (
                "QLinearAdd",
                [None, np.ones(4, np.float32), ZERO, np.ones((1, 4), np.int8), ONE, ZERO, ONE, ZERO],
                {},
                MS,
            ),
        ),
    ),
    "QLinearAdd grows": (
        "HG023",
        "operand",
        lambda: net(I8, ("QLinearAdd", [None, ONE, ZERO, np.ones((3, 4), np.int8), ONE, ZERO, ONE, ZERO], {}, MS)),
    ),
    "quantized add of uint8": (
        "HG026",
        "uint8",
        lambda: net(
            TensorProto.UINT8,
            ("QuantizedAdd", [None, np.ones((1, 4), np.int8)], dict.fromkeys(domain_hlsgen.ATTRIBUTES, 1), "hlsgen"),
        ),
    ),
    "quantized add, wide scale": (
        "HG013",
        "s0",
        lambda: net(
            I8,
            (
                "QuantizedAdd",
                [None, np.ones((1, 4), np.int8)],
                {**dict.fromkeys(domain_hlsgen.ATTRIBUTES, 1), "scale_a": 1 << 16},
                "hlsgen",
            ),
        ),
    ),
    "quantized add of two shapes": (
        "HG023",
        "shapes",
        lambda: net(
            I8, ("QuantizedAdd", [None, np.ones(4, np.int8)], dict.fromkeys(domain_hlsgen.ATTRIBUTES, 1), "hlsgen")
        ),
    ),
    "unknown convention": (
        "HG025",
        "nearest",
        lambda: net(I32, ("Requantize", REQUANTIZE, {"rounding": "nearest"}, "hlsgen")),
    ),
    "wide multiplier": (
        "HG027",
        "multiplier",
        lambda: net(I32, ("Requantize", changed(REQUANTIZE, 1, np.int32(-5)), {"rounding": "double"}, "hlsgen")),
    ),
    "wide shift": (
        "HG027",
        "shift",
        lambda: net(I32, ("Requantize", changed(REQUANTIZE, 2, np.int32(63)), {"rounding": "double"}, "hlsgen")),
    ),
    "odd div": (
        "HG013",
        "div",
        lambda: net(F32, ("RequantShift", [None, np.float32(3), np.float32(1)], {"div": 3, "n_levels_out": 256})),
    ),
    "fractional mul": (
        "HG026",
        "mul",
        lambda: net(F32, ("RequantShift", [None, np.float32(0.5), np.float32(1)], {"div": 4, "n_levels_out": 256})),
    ),
    "fused requantization": (
        "HG010",
        "before Deeploy fuses",
        lambda: net(F32, ("RequantizedConv", [None, *[np.float32(1)] * 3], {"div": 4, "n_levels": 256})),
    ),
    "softmax per channel": (
        "HG026",
        "per tensor",
        lambda: net(I8, ("QLinearSoftmax", [None, np.ones(4, np.float32), ZERO, ONE, ZERO], {"opset": 13}, MS)),
    ),
    "softmax over a fifth axis": (
        "HG013",
        "axis is 4",
        lambda: net(I8, ("QLinearSoftmax", [None, ONE, ZERO, ONE, ZERO], {"opset": 13, "axis": 4}, MS)),
    ),
    "softmax of a small scale": (
        "HG022",
        "overflow",
        lambda: net(
            I8,
            ("QLinearSigmoid", [None, ONE, ZERO, ONE, ZERO], {}, MS),
            ("QLinearSoftmax", [None, ONE, ZERO, np.float32(1e-5), ZERO], {"opset": 13}, MS),
            ("QLinearMatMul", QLINEAR),
        ),
    ),
    "slopes of no channel": (
        "HG023",
        "slope",
        lambda: net(F32, QUANTIZE, DEQUANTIZE, ("PRelu", [None, np.ones(3, np.float32)]), QUANTIZE),
    ),
    "cast to text": ("HG026", "Cast", lambda: net(F32, ("Cast", [None], {"to": TensorProto.STRING}), QUANTIZE)),
    "tanh of integers": ("HG026", "int8", lambda: net(I8, ("Tanh", [None]), QUANTIZE)),
    "exponent per channel": (
        "HG023",
        "exponent",
        lambda: net(F32, QUANTIZE, DEQUANTIZE, ("Pow", [None, np.ones(4, np.float32)]), QUANTIZE),
    ),
    "infinite exponent": (
        "HG027",
        "exponent",
        lambda: net(F32, QUANTIZE, DEQUANTIZE, ("Pow", [None, np.float32("inf")]), QUANTIZE),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_model(name: str, tmp_path: Path) -> None:
    code, text, make = CASES[name]
    onnx.save(make(), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx")
    diagnostics = error.value.diagnostics
    assert code in [d.code for d in diagnostics], diagnostics
    assert any(text in f"{d.node} {d.message} {d.hint}" for d in diagnostics if d.code == code), diagnostics


def test_models_without_a_fault_are_accepted(tmp_path: Path) -> None:
    """The building blocks of the cases are right."""
    for model in (
        net(F32, QUANTIZE, DEQUANTIZE, ("Pow", [None, np.float32(2)]), QUANTIZE),
        net(I8, ("QLinearMatMul", QLINEAR)),
        net(I32, ("Requantize", REQUANTIZE, {"rounding": "double"}, "hlsgen")),
        net(
            I8, ("QuantizedAdd", [None, np.ones((1, 4), np.int8)], dict.fromkeys(domain_hlsgen.ATTRIBUTES, 1), "hlsgen")
        ),
    ):
        onnx.save(model, tmp_path / "m.onnx")
        hlsgen.check(tmp_path / "m.onnx")
    assert Parameters(1, 1, 1, 1, 1, 1, 1)
