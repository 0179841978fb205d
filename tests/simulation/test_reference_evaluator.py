"""Files of older opsets are compared with the operators' definitions as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.simulation.file_oracle import _last_places


@pytest.mark.sweep
@pytest.mark.parametrize("opset", [10, 17])
def test_quantizers_of_every_opset(opset: int, tmp_path: Path) -> None:
    constants = {"scale": np.float32(0.05), "zero": np.uint8(110), "out": np.float32(0.07)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["real"]),
        helper.make_node("Relu", ["real"], ["positive"]),
        helper.make_node("QuantizeLinear", ["positive", "out", "zero"], ["new codes"]),
        helper.make_node("DequantizeLinear", ["new codes", "out", "zero"], ["y"]),
    ]
    ends = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5]) for name in ("x", "y"))
    source, result = ends
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "relu", [source], [result], arrays)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), tmp_path / "m.onnx"
    )
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(runtime="onnx"))
    verdict = hlsgen.verify(tmp_path / "out", [], 20)
    assert verdict.ok, verdict.oracle
    assert verdict.oracle is not None
    assert verdict.oracle.compared > 0


@pytest.mark.parametrize("runtime", ["onnx", "onnxruntime"])
def test_log_softmax_is_finite_where_a_share_is_0(runtime: str, tmp_path: Path) -> None:
    """The evaluator's own LogSoftmax gives minus infinity there."""
    weights = numpy_helper.from_array(np.float32([[7, -7, 0], [7, -7, 1]]), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("LogSoftmax", ["a"], ["y"])]
    source, result = (
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3]),
    )
    graph = helper.make_graph(nodes, "shares", [source], [result], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(runtime=runtime, input="fixed:8,4"))
    verdict = hlsgen.verify(tmp_path / "out", [], 20)
    assert verdict.ok, verdict.oracle


def test_distances_to_infinity_have_no_last_place() -> None:
    ours, theirs = np.float32([[-120.0, 0.5]]), np.float32([[-np.inf, np.nextafter(np.float32(0.5), 1)]])
    assert _last_places(ours, theirs) == 1
