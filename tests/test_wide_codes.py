"""Codes of 16 bits behind scales that are no powers of two: more steps than most realizations take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
from onnx import TensorProto, helper, numpy_helper

import hlsgen


def model(nodes: list[onnx.NodeProto], kind: int, constants: dict[str, Any]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "wide", [helper.make_tensor_value_info("x", kind, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT16, [1, 4])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def agrees(made: onnx.ModelProto, x: Any, folder: Path, kind: str) -> None:
    onnx.save(made, folder / "m.onnx")
    build = hlsgen.build(folder / "m.onnx", folder / "build")
    assert [choice.name for choice in build.schedule.choices.values()] == [kind]
    session = ort.session(made)
    expected = np.concatenate([session.run(None, {"x": row[None]})[0] for row in x])
    for backend in ("reference", "verilator"):
        assert (hlsgen.run(folder / "build", x, backend) == expected).all()
    assert hlsgen.certify(folder / "build").ok


def test_sums_to_int16(tmp_path: Path) -> None:
    scale = np.float32([0.0007, 0.0011, 0.003, 0.0005])
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "one", "zero"], ["y"]),
    ]
    made = model(nodes, TensorProto.INT32, {"s": scale, "one": np.float32(1), "zero": np.int16(5)})
    x = np.random.default_rng(0).integers(-(2**27), 2**27, (400, 4)).astype(np.int32)
    agrees(made, x, tmp_path, "float-scale")


def test_floats_to_int16(tmp_path: Path) -> None:
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "zero"], ["y"])]
    made = model(nodes, TensorProto.FLOAT, {"s": np.float32(0.0013), "zero": np.int16(5)})
    agrees(made, np.random.default_rng(1).normal(0, 20, (400, 4)).astype(np.float32), tmp_path, "thresholds")
