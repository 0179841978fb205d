"""Networks as FINN writes them: integer weights, MultiThreshold, annotated inputs, no quantizers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import StringStringEntryProto, TensorAnnotation
from oracles import Qonnx
from random_graphs import DOMAIN, Graph

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.numerics.fixed import IntType


def network(datatype: str, seed: int = 0) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    g = Graph((1, 24))
    g.then("MatMul", rng.integers(-3, 4, (24, 12)))
    g.then("MultiThreshold", np.sort(rng.integers(-60, 60, (12, 7)), axis=1), domain=DOMAIN, out_dtype="UINT3")
    g.then("MatMul", rng.choice([-1, 1], (12, 8)))
    g.then("Mul", np.full((1, 8), 0.5))
    thresholds = np.sort(rng.normal(0, 6, (8, 3)), axis=1)
    g.then("MultiThreshold", thresholds, domain=DOMAIN, out_dtype="INT2", out_bias=-2.0)
    g.then("MatMul", rng.integers(-8, 8, (8, 5)))
    model = g.model((1, 5))
    note = TensorAnnotation(tensor_name="x")
    note.quant_parameter_tensor_names.append(StringStringEntryProto(key="finn_datatype", value=datatype))
    model.graph.quantization_annotation.append(note)
    return model


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "datatype,type_,fraction",
    [
        ("INT4", IntType(-8, 7), 0),
        ("UINT2", IntType(0, 3), 0),
        ("BIPOLAR", IntType(-1, 1), 0),
        ("FIXED<6,3>", IntType(-32, 31), 3),
    ],
)
def test_annotated_input_is_taken_at_its_word(datatype: str, type_: IntType, fraction: int, tmp_path: Path) -> None:
    model = network(datatype)
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=12))
    assert build.graph.input.type == type_
    rng = np.random.default_rng(1)
    codes = rng.choice([-1, 1], (100, 24)) if datatype == "BIPOLAR" else rng.integers(type_.lo, type_.hi + 1, (100, 24))
    x = (codes / 2.0**fraction).astype(np.float32)
    expected = Qonnx(model)(x)
    assert np.array_equal(reference.evaluate(build.graph, x), expected)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x, "icarus"), expected)


def test_input_outside_its_type_is_refused(tmp_path: Path) -> None:
    onnx.save(network("INT4"), tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx")
    for value in (8.0, 0.5, np.nan):
        with pytest.raises(hlsgen.HlsgenError, match="HG054"):
            reference.evaluate(build.graph, np.full((1, 24), value, np.float32))


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "op,attributes", [("ArgMax", {"axis": 1, "keepdims": 0}), ("ArgMax", {"axis": -1}), ("TopK", {"axis": -1})]
)
def test_argmax_in_hardware(op: str, attributes: dict[str, int], tmp_path: Path) -> None:
    g = Graph((1, 10))
    rng = np.random.default_rng(4)
    g.quant(0.5, 0.0, 4.0, signed=1, narrow=0)
    g.then("MatMul", rng.integers(-3, 4, (10, 9)))
    if op == "TopK":
        k = g.const([1], np.int64)
        g.nodes.append(onnx.helper.make_node("TopK", [g.last, k], ["", "index"], "top", **attributes))
        g.last = "index"
    else:
        g.then(op, **attributes)
    model = g.model((1, 1))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=9))
    assert b"model_hg_argmax #(" in build.files["rtl/model.v"]
    x = (rng.integers(-8, 8, (300, 10)) / 2).astype(np.float32)
    y = hlsgen.run(tmp_path / "out", x, "verilator")
    logits = x @ onnx.numpy_helper.to_array(g.constants[3])
    assert np.array_equal(y.ravel(), np.argmax(logits, axis=1))
    assert y.dtype == np.int64


@pytest.mark.sweep
def test_scales_apart_from_quantizers(tmp_path: Path) -> None:
    """Div, quantizer of scale 1, Mul, as qonnx extracts scales: of weights (per channel) and activations."""
    rng = np.random.default_rng(4)
    g = Graph((1, 9))

    def quant(data: str, scale: float | np.ndarray, bits: float) -> str:
        code = g.node("Div", data, g.const(scale))
        parts = [g.const(c) for c in (1.0, 0.0, bits)]
        code = g.node("IntQuant", code, *parts, domain=DOMAIN, signed=1, narrow=0, rounding_mode="ROUND")
        return g.node("Mul", code, g.const(scale))

    g.last = quant(g.last, 2.0**-5, 8.0)
    for k, (columns, rows) in enumerate([(9, 7), (7, 4)]):
        scale = 2.0 ** rng.integers(-7, -3, rows) * (1 if k else 0.75)
        weight = quant(g.const(rng.normal(0, 0.3, (columns, rows))), scale, 4.0)
        g.last = quant(g.node("MatMul", g.last, weight), 0.3125, 6.0)
    g.then("MatMul", rng.integers(-8, 8, (4, 3)))
    model = g.model((1, 3))
    onnx.save(model, tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(input="codes"))
    x = rng.normal(0, 1.5, (80, 9)).astype(np.float32)
    expected = Qonnx(model)(x)
    assert len(np.unique(expected)) > 30
    assert np.array_equal(reference.evaluate(build.graph, x), expected)


def test_inputs_that_nothing_uses(tmp_path: Path) -> None:
    """qonnx keeps the names of constants that it has removed."""
    model = network("INT4")
    model.graph.input.append(onnx.helper.make_tensor_value_info("left", onnx.TensorProto.FLOAT, []))
    onnx.save(model, tmp_path / "model.onnx")
    assert hlsgen.check(tmp_path / "model.onnx").graph.model.input_name == "x"
