"""Float tensors of integers, by --input: hardware computes pools, borders, parts and reductions from the first node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.interpreter import graph as reference

Array = Any
INT8 = hlsgen.Options(input="int8")
CASES = {
    "MaxPool": "y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
    "GlobalMaxPool": "y = GlobalMaxPool(x)",
    "Pad": "p = Constant<value_ints = [0, 0, 1, 2, 0, 0, 3, 0]>() y = Pad(x, p)",
    "Pad reflect": 'p = Constant<value_ints = [0, 0, 1, 2, 0, 0, 3, 0]>() y = Pad<mode = "reflect">(x, p)',
    "Pad edge": 'p = Constant<value_ints = [0, 1, 0, 2, 0, 0, 3, 1]>() y = Pad<mode = "edge">(x, p)',
    "Pad wrap": 'p = Constant<value_ints = [0, 0, 0, 2, 0, 0, 0, 1]>() y = Pad<mode = "wrap">(x, p)',
    "Slice": "s = Constant<value_ints = [1, -1]>() e = Constant<value_ints = [3, -100]>() "
    "a = Constant<value_ints = [1, -1]>() t = Constant<value_ints = [1, -2]>() y = Slice(x, s, e, a, t)",
    "Slice turned twice": "s = Constant<value_ints = [-1, 3]>() e = Constant<value_ints = [-9, 0]>() "
    "a = Constant<value_ints = [1, 2]>() t = Constant<value_ints = [-1, -1]>() y = Slice(x, s, e, a, t)",
    "ReduceMax": "a = Constant<value_ints = [1, -1]>() y = ReduceMax(x, a)",
    "ReduceSum": "a = Constant<value_ints = [3]>() y = ReduceSum<keepdims = 0>(x, a)",
    "ReduceMean": "a = Constant<value_ints = [2, 3]>() y = ReduceMean(x, a)",
    "Gather": "i = Constant<value_ints = [4, 0]>() y = Gather<axis = 2>(x, i)",
}


@pytest.mark.parametrize("name", CASES)
def test_in_hardware(name: str, tmp_path: Path) -> None:
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> net (float[1, 4, 6, 6] x) => (float[] y) {{ {CASES[name]} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    x = np.random.default_rng(0).integers(-128, 128, (5, 4, 6, 6)).astype(np.float32)
    expected = np.concatenate([ReferenceEvaluator(model).run(None, {"x": frame[None]})[0] for frame in x])
    graph = hlsgen.check(tmp_path / "m.onnx", INT8).graph
    assert (reference.evaluate(graph, x) == expected).all()
    assert graph.layers
    assert not graph.head
    assert {type(step.op).__name__ for step in graph.tail} <= {"Mul", "Div", "Dequantize", "Reshape", "Transpose"}


@pytest.mark.sweep
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_borders_of_the_data(mode: str, tmp_path: Path) -> None:
    """Any axes, any width that fits, also negative, equal onnxruntime."""
    rng = np.random.default_rng(len(mode))
    x = rng.integers(-128, 128, (1, 4, 5, 6)).astype(np.float32)
    for _ in range(8):
        pads = rng.integers(-1, 3, 8) * (rng.random(8) < 0.5)
        pads[[0, 4]] = 0
        if not pads.any():
            continue
        numbers = ", ".join(map(str, pads))
        model = parse_model(
            f'<ir_version: 9, opset_import: ["" : 19]> net (float[1, 4, 5, 6] x) => (float[] y) '
            f'{{ p = Constant<value_ints = [{numbers}]>() y = Pad<mode = "{mode}">(x, p) }}'
        )
        model.graph.output[0].type.tensor_type.ClearField("shape")
        onnx.save(model, tmp_path / "m.onnx")
        expected = ort.run(model, {"x": x})[0]
        outputs = reference.evaluate(hlsgen.check(tmp_path / "m.onnx", INT8).graph, x)
        assert outputs.shape == expected.shape, pads
        assert (outputs == expected).all(), pads


def test_the_host_pads_floats(tmp_path: Path) -> None:
    """The host pads an input of floats before its first quantizer."""
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 19]> net (float[1, 4, 6, 6] x) => (float[1, 4, 6, 9] y) '
        "<float s = {0.5}, int8 z = {0}> { p = Constant<value_ints = [0, 0, 0, 1, 0, 0, 0, 2]>() "
        'r = Pad<mode = "reflect">(x, p) q = QuantizeLinear(r, s, z) '
        "y = DequantizeLinear(q, s, z) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    graph = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="codes")).graph
    assert [step.name for step in graph.head] == ["Pad -> r"]


def test_moves_alone_are_nothing_to_build(tmp_path: Path) -> None:
    model = parse_model(
        '<ir_version: 9, opset_import: ["" : 19]> net (int8[1, 4, 6] x) => (int8[1, 6, 4] y) '
        "{ y = Transpose<perm = [0, 2, 1]>(x) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG036 .*It only moves elements"):
        hlsgen.check(tmp_path / "m.onnx")


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["Slice turned twice", "Pad reflect", "ReduceMean", "Pad edge"])
def test_verified(name: str, tmp_path: Path) -> None:
    """Predicted cycles, the executed file and the certificate agree."""
    model = parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> net (float[1, 4, 6, 6] x) => (float[] y) {{ {CASES[name]} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", INT8)
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 3)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
