"""The whole file in its runtime: differences that pieces of the file hide are found; the chain ends in its outputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from models import Net
from numpy.typing import NDArray
from onnx import TensorProto
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx
from qonnx.transformation.infer_shapes import InferShapes

from hlsgen import ir
from hlsgen.diagnostics import Collector
from hlsgen.driver.options import parse_input
from hlsgen.frontend import import_model
from hlsgen.passes import lower
from hlsgen.simulation.directed import directed
from hlsgen.simulation.file_inputs import any_numbers
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.oracles import Unable
from hlsgen.simulation.whole_file import open_file

Array = NDArray[Any]


def imported(proto: onnx.ModelProto, folder: Path, runtime: str) -> tuple[Path, ir.Model]:
    path, problems = folder / "model.onnx", Collector()
    onnx.save(proto, path)
    model = import_model(path, problems, runtime=runtime)
    problems.finish()
    assert model is not None
    return path, model


def lowered(model: ir.Model) -> ir.Graph:
    return lower(model, parse_input(None), Collector())


def frames_for(graph: ir.Graph, count: int = 12) -> Array:
    value, rng = graph.input, np.random.default_rng(5)
    drawn = rng.integers(value.type.lo, value.type.hi + 1, (count, *value.shape))
    return np.concatenate([directed(graph, count // 2, 1), drawn])


def judged(proto: onnx.ModelProto, folder: Path, runtime: str, oracle: str = "auto") -> OracleVerdict:
    """The verdict on a build for a runtime, in that runtime or in another one."""
    path, model = imported(proto, folder, runtime)
    graph = lowered(model)
    return compare_file(path, model, graph, frames_for(graph, 24), oracle)


def fused(op: str) -> onnx.ModelProto:
    """An operator between int8 codes, of which one operand is a constant or has a second user."""
    scales = (0.1, 0.1, 0.02) if op == "MatMul" else (0.25, 0.25, 0.5)  # of the data, the constant, the result
    data_scale, constant_scale, result_scale = map(np.float32, scales)
    codes, rng = (data_scale, np.array(3, np.int8)), np.random.default_rng(1)
    n = Net((1, 8)).then("QuantizeLinear", *codes).then("DequantizeLinear", *codes)
    data = n.last
    if op == "MatMul":
        weight = rng.integers(-9, 10, (8, 4)).astype(np.int8)
        n.node("DequantizeLinear", weight, constant_scale, np.array(0, np.int8), name="weights")
        n.node("MatMul", data, n.last, name="fc")
    else:
        constant = rng.integers(-9, 10, (1, 8)).astype(np.int8)
        n.node("DequantizeLinear", constant, constant_scale, np.array(1, np.int8), name="constant")
        n.node(op, data, n.last, name="both")
    n.then("QuantizeLinear", result_scale, np.array(1, np.int8), name="q")
    proto = n.model()
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT8
    return proto


@pytest.mark.parametrize("op", ["Add", "Mul", "MatMul"])
def test_a_runtime_other_than_the_build_s_differs(op: str, tmp_path: Path) -> None:
    """onnxruntime fuses these int8 groups on ARM only: pieces of the file, run alone, would hide it."""
    assert judged(fused(op), tmp_path, "onnxruntime-arm").ok
    verdict = judged(fused(op), tmp_path, "onnxruntime-arm", "onnxruntime")
    assert not verdict.ok
    assert not verdict.explained or op == "MatMul"
    assert verdict.outputs_differ
    assert {d.code for d in verdict.diagnostics} == {"HG058"}


def float_layers() -> onnx.ModelProto:
    """Two layers with scales that are no powers of two: sums are rounded, also before the inner quantizer."""
    n = (
        Net((1, 32))
        .quant(0.1, 0.0, 4.0, name="q0")
        .linear(16, 32, scale=0.5, name="fc0")
        .quant(0.1, 0.0, 8.0, name="q1")
    )
    n.linear(4, 16, scale=0.3, name="fc1")
    return n.then("Add", np.float32([[0.1, 0.2, 0.3, 0.7]]), name="bias").model()


def test_the_chain_ends_in_the_outputs_of_the_file(tmp_path: Path) -> None:
    """Codes that a float sum has changed continue: later outputs are the runtime's, except for their own sums."""
    verdict = judged(float_layers(), tmp_path, "qonnx")
    assert verdict.ok
    assert verdict.outputs_differ > verdict.floats_differ - verdict.integers_differ
    assert verdict.integers_differ
    assert verdict.summary.startswith(f"{verdict.integers_differ} of ")
    assert f"{verdict.floats_differ} of {verdict.floats} float outputs differ " in verdict.summary


def test_tensors_of_another_run_explain_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors must end in the outputs of the whole file, to the last bit."""
    path, model = imported(fused("MatMul"), tmp_path, "onnxruntime")
    file = open_file(onnx.load(path), "onnxruntime", any_numbers(model))
    tensors = file.trace(any_numbers(model))
    monkeypatch.setattr(file, "_tensors", lambda _: {**tensors, model.output_name: tensors[model.output_name] + 1})
    with pytest.raises(Unable, match=r"^onnxruntime gives another \S+ node by node than for the whole file$"):
        file.trace(any_numbers(model))


def test_qonnx_node_by_node_is_qonnx(tmp_path: Path) -> None:
    """Its executor imports modules that a file names; running node by node without it gives the same results."""
    proto = float_layers()
    for node in proto.graph.node:
        if node.op_type == "IntQuant":  # qonnx's code has no defaults
            named = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
            present = {a.name for a in node.attribute}
            node.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in named.items() if k not in present)
    path, model = imported(proto, tmp_path, "qonnx")
    file = open_file(onnx.load(path), "qonnx", any_numbers(model))
    wrapper = ModelWrapper(str(path)).transform(InferShapes())
    for x in np.random.default_rng(0).normal(0, 1, (4, 1, 32)).astype(np.float32):
        expected = execute_onnx(wrapper, {model.input_name: x})
        assert all((file.run({model.input_name: x})[name] == value).all() for name, value in expected.items())


def test_onnxruntime_runs_the_bytes_of_the_file(tmp_path: Path) -> None:
    """In a default session. Its optimized graph with all tensors gives bit-identical results."""
    path, model = imported(fused("MatMul"), tmp_path, "onnxruntime")
    file = open_file(onnx.load(path), "onnxruntime", any_numbers(model))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for x in np.random.default_rng(0).normal(0, 3, (4, 1, 8)).astype(np.float32):
        (expected,) = session.run(None, {model.input_name: x})
        assert (file.run({model.input_name: x})[model.output_name] == expected).all()
        assert (file.trace({model.input_name: x})[model.output_name] == expected).all()


def test_integers_that_a_bias_moves_are_equal(tmp_path: Path) -> None:
    """The line says how many floats differ, and why."""
    n = Net((1, 32)).quant(0.1, 0.0, 4.0, name="q0").linear(10, 32, scale=0.3, name="fc")
    proto = n.model()
    product = next(node for node in proto.graph.node if node.op_type == "MatMul")
    product.op_type = "Gemm"
    product.input.append("bias")
    bias = np.random.default_rng(2).normal(0, 1, 10).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(bias, "bias"))
    verdict = judged(proto, tmp_path, "qonnx")
    assert verdict.ok
    differ = verdict.floats_differ
    distance = "in" if verdict.last_places == 1 else f"by at most {verdict.last_places} units in"
    assert 0 < verdict.last_places < 8
    assert verdict.summary == (
        f"integers equal; {differ} of {verdict.floats} float outputs differ {distance} the last place of float32 "
        "(bias added in another order)"
    )
    assert replace(verdict, explained={}).summary == "equal"
