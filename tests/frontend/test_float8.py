"""Activations of float8 and float4, and quantizers with scales per block, equal ml_dtypes and onnx's evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.dialect_float8 import FORMATS
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import decode, decoding, quantize
from hlsgen.ir.ops import FloatQuant
from hlsgen.numerics.fixed import Rounding

Array = Any
KINDS = {
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float4_e2m1fn": TensorProto.FLOAT4E2M1,
}
node = helper.make_node


def network(kind: str, between: list[onnx.NodeProto], **attributes: int) -> onnx.ModelProto:
    """A quantized layer between two quantizers of the type; `between`: nodes from q to r after the first one."""
    rng, number = np.random.default_rng(0), KINDS[kind]
    weight = numpy_helper.saturate_cast(rng.normal(size=(8, 5)).astype(np.float32) * 2, getattr(ml_dtypes, kind))
    values = {"s": np.float32(0.37), "t": np.float32(0.11), "v": np.float32(0.0131)}
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    constants += [helper.make_tensor("z", number, [], [0.0]), numpy_helper.from_array(np.asarray(weight), "w")]
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
        *between,
        node("DequantizeLinear", ["r", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "v"], ["m"]),
        node("MatMul", ["d", "m"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("QuantizeLinear", ["b", "t", "z"], ["p"]),
        node("DequantizeLinear", ["p", "t", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [1, size]) for name, size in (("x", 8), ("y", 5))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


SAME = [node("Identity", ["q"], ["r"])]


@pytest.mark.parametrize("kind", FORMATS)
def test_numbers_of_the_type(kind: str) -> None:
    """Every half float, midpoints and their neighbours, rounded like ml_dtypes and saturated like onnx."""
    form, dtype = FORMATS[kind], getattr(ml_dtypes, kind)
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    x = halves[np.isfinite(halves)]
    numbers = np.unique(np.arange(256 if kind[5] == "8" else 16).astype(np.uint8).view(dtype).astype(np.float32))
    numbers = numbers[np.isfinite(numbers)]
    middle = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([x, middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
    scale = np.ones(1, np.float32)
    op = FloatQuant(scale, form.mantissa, form.exponent, form.largest, True, Rounding.ROUND)
    expected = numpy_helper.saturate_cast(x, dtype).astype(np.float32)
    codes = quantize(op, x)
    assert int(np.abs(codes).max()).bit_length() + 1 == form.bits
    assert (codes * 2.0 ** (form.exponent - form.mantissa) == expected).all()
    assert (decode(decoding(op), codes) == expected).all() or form.bits > 25


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e4m3fnuz", "float4_e2m1fn"])
def test_activations(kind: str, tmp_path: Path) -> None:
    model = network(kind, [node("Transpose", ["q"], ["u"], perm=[0, 1]), node("Identity", ["u"], ["r"])])
    onnx.save(model, tmp_path / "m.onnx")
    x = (np.random.default_rng(1).normal(size=(60, 8)) * 5).astype(np.float32)
    x[:8] *= 1000
    expected = np.concatenate([ReferenceEvaluator(model).run(None, {"x": row[None]})[0] for row in x])
    assert (reference.evaluate(hlsgen.check(tmp_path / "m.onnx").graph, x) == expected).all()
    assert len(np.unique(expected)) > 5


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["initializer", "Constant", "output_dtype"])
def test_their_runtime_is_onnx(kind: str, tmp_path: Path) -> None:
    """By default, as onnxruntime fails on such layers; any other runtime that is named is taken."""
    model = network("float8_e4m3fn", SAME)
    zero = next(tensor for tensor in model.graph.initializer if tensor.name == "z")
    if kind != "initializer":
        model.graph.initializer.remove(zero)
    if kind == "Constant":
        model.graph.node.insert(0, node("Constant", [], ["z"], value=zero))
    if kind == "output_dtype":
        for proto in model.graph.node:
            proto.input[:] = [name for name in proto.input if name != "z"]
            if proto.op_type == "QuantizeLinear":
                proto.attribute.append(helper.make_attribute("output_dtype", KINDS["float8_e4m3fn"]))
    onnx.save(model, tmp_path / "m.onnx")
    named = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(runtime="onnxruntime"))
    assert named.model.runtime == "onnxruntime"
    assert hlsgen.check(tmp_path / "m.onnx").model.runtime == "onnx"


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_verified(target: str, tmp_path: Path) -> None:
    onnx.save(network("float8_e4m3fn", SAME), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(target=target))
    assert hlsgen.certify(tmp_path / "build").ok
    assert hlsgen.verify(tmp_path / "build", frames=4).ok


@pytest.mark.parametrize(
    ("model", "code", "part"),
    [
        (network("float8_e5m2", SAME), "HG033", "codes of 33 bits"),
        (network("float8_e4m3fn", SAME, saturate=0), "HG013", "saturate is 0"),
        (network("float8_e4m3fn", [node("Relu", ["q"], ["r"])]), "HG026", "Relu of float8_e4m3fn data"),
    ],
)
def test_refused(model: onnx.ModelProto, code: str, part: str, tmp_path: Path) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(tmp_path / "m.onnx")
    assert code in {d.code for d in caught.value.diagnostics}
    assert part in str(caught.value)


def test_blocks(tmp_path: Path) -> None:
    """A scale and a zero point per two channels."""
    text = """<ir_version: 11, opset_import: ["" : 21]> net (float[1, 6] x) => (uint8[1, 6] y)
      <float[1, 3] s = {0.5, 0.1, 3.0}, uint8[1, 3] z = {3, 128, 250}>
      { y = QuantizeLinear<axis = 1, block_size = 2>(x, s, z) }"""
    model = onnx.parser.parse_model(text)
    onnx.save(model, tmp_path / "m.onnx")
    x = (np.random.default_rng(1).normal(size=(60, 6)) * 30).astype(np.float32)
    expected = np.concatenate([ReferenceEvaluator(model).run(None, {"x": row[None]})[0] for row in x])
    assert (
        reference.evaluate(hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input={"": "float32"})).graph, x)
        == expected
    ).all()


def test_fused_attention_is_refused_by_name(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8])]
    attention = node("QAttention", ["x"], ["y"], domain="com.microsoft", num_heads=2)
    graph = helper.make_graph([attention], "net", inputs, [helper.make_tensor_value_info("y", 1, [1, 4, 8])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"HG010.*QAttention.*floats without quantizers"):
        hlsgen.check(tmp_path / "m.onnx")
