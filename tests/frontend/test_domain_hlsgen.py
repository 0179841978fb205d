"""Requantize of the hlsgen domain: named roundings, from the node to the hardware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hlsgen
from hlsgen.frontend import domain_hlsgen

CHANNELS = 6


def requantizer(rounding: str, seed: int) -> onnx.ModelProto:
    """int8 x int8 products are summed, then rescaled per channel."""
    rng = np.random.default_rng(seed)
    shift = rng.integers(36, 41, CHANNELS)
    constants = {
        "w": rng.integers(-128, 128, (24, CHANNELS)).astype(np.int8),
        "b": rng.integers(-9000, 9000, CHANNELS).astype(np.int32),
        "m": rng.integers(1 << 30, 1 << 31, CHANNELS).astype(np.int32),
        "s": shift.astype(np.int32),
        "z": np.asarray(rng.integers(-20, 20), np.int8),
    }
    nodes = [
        helper.make_node("MatMulInteger", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        domain_hlsgen.make_requantize("c", "m", "s", "z", "y", rounding),
    ]
    graph = helper.make_graph(
        nodes,
        "requantize",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 24])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, CHANNELS])],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13), domain_hlsgen.opset_import()], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("rounding", ["floor", "single", "double"])
def test_named_roundings(tmp_path: Path, rounding: str) -> None:
    model = requantizer(rounding, 3)
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build")
    x = np.random.default_rng(1).integers(-128, 128, (300, 24)).astype(np.int8)
    evaluator = ReferenceEvaluator(model, new_ops=domain_hlsgen.OPERATORS)
    expected = np.concatenate([evaluator.run(None, {"x": row[None]})[0] for row in x])
    for backend in ("reference", "icarus"):
        assert (hlsgen.run(tmp_path / "build", x, backend) == expected).all()


@pytest.mark.sweep
def test_roundings_differ() -> None:
    """The conventions give different results."""
    x = np.random.default_rng(2).integers(-128, 128, (4000, 24)).astype(np.int8)
    results = []
    for rounding in ("floor", "single", "double"):
        evaluator = ReferenceEvaluator(requantizer(rounding, 3), new_ops=domain_hlsgen.OPERATORS)
        results.append(np.concatenate([evaluator.run(None, {"x": row[None]})[0] for row in x]))
    assert (results[0] != results[1]).any()


def test_unknown_rounding(tmp_path: Path) -> None:
    onnx.save(requantizer("nearest", 0), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match="HG025"):
        hlsgen.check(tmp_path / "m.onnx")
