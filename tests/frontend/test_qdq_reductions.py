"""Sums over the pixels of an image between QDQ, followed by a constant, are no average pools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.interpreter import graph as reference


@pytest.mark.parametrize("op_type, constant", [("Mul", 0.0625), ("Mul", 0.5), ("Add", 3.0)])
def test_sum_followed_by_arithmetic(op_type: str, constant: float, tmp_path: Path) -> None:
    """The channels are last, so that no node is between sum and constant. Scales are powers of two, thus exact."""
    arrays = {
        "s": np.float32(0.125),
        "z": np.int8(0),
        "axes": np.array([1, 2]),
        "k": np.float32(constant),
        "s2": np.float32(0.25),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("ReduceSum", ["d", "axes"], ["sum"], keepdims=1),
        helper.make_node(op_type, ["sum", "k"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s2", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4, 3])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 1, 1, 3])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    x = (np.random.default_rng(0).integers(-40, 40, (1, 4, 4, 3)) / 8).astype(np.float32)
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    assert len(np.unique(expected)) > 1
    np.testing.assert_array_equal(reference.evaluate(hlsgen.check(path).graph, x), expected)
