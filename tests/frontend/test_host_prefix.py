"""Float inputs that branch before their quantizers: one part of the port for each branch, equal to executors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from paths import shared_model

import hlsgen
from hlsgen import HlsgenError

Array = Any
pytestmark = pytest.mark.sim


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs, **attributes)


def quantized(x: str, scale: str, output: str) -> list[onnx.NodeProto]:
    return [
        node("QuantizeLinear", f"{x} {scale} z", f"{output}_q"),
        node("DequantizeLinear", f"{output}_q {scale} z", output),
    ]


def block(first: list[onnx.NodeProto], branch: str, inputs: tuple[str, ...] = ("x",)) -> onnx.ModelProto:
    """`first` computes `branch`, which is quantized and multiplied; the input bypasses it through its own quantizer."""
    nodes = [
        *first,
        *quantized(branch, "s1", "a"),
        *quantized(branch, "s1", "again"),
        *quantized(inputs[-1], "s2", "r"),
        node("DequantizeLinear", "w s3 z", "wd"),
        node("MatMul", "a wd", "m"),
        *quantized("m", "s4", "mq"),
        node("Add", "mq again", "t"),
        *quantized("t", "s4", "tq"),
        node("Add", "tq r", "u"),
        *quantized("u", "s4", "y"),
    ]
    rng = np.random.default_rng(2)
    constants = {
        "w": rng.integers(-8, 8, (6, 6)).astype(np.int8),
        "z": np.int8(0),
        "s1": np.float32(0.03125),
        "s2": np.float32(0.0425),
        "s3": np.float32(0.0625),
        "s4": np.float32(0.05),
        "gamma": rng.uniform(0.5, 1.5, 6).astype(np.float32),
        "beta": rng.uniform(-1, 1, 6).astype(np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "block",
        [helper.make_tensor_value_info(i, TensorProto.FLOAT, [1, 3, 6]) for i in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 6])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASES = {
    "layer norm": (block([node("LayerNormalization", "x gamma beta", "n")], "n"), 2),
    "function": (block([node("Softmax", "x", "f"), node("Neg", "f", "n")], "n"), 2),
    "two inputs": (block([node("LayerNormalization", "x gamma beta", "n")], "n", ("x", "v")), 2),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_every_branch_is_quantized_on_the_host(name: str, tmp_path: Path) -> None:
    model, parts = CASES[name]
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert len(build.graph.inputs) == parts  # equal quantizers of one tensor are one
    rng = np.random.default_rng(1)
    inputs = {i.name: rng.standard_normal((5, 3, 6)).astype(np.float32) for i in model.graph.input}
    for backend in ("reference", "icarus"):
        outputs = hlsgen.run(tmp_path / "out", inputs if len(inputs) > 1 else inputs["x"], backend)
        for n in range(5):
            (expected,) = ort.run(model, {k: v[n : n + 1] for k, v in inputs.items()})
            assert np.array_equal(outputs[n : n + 1], expected)
    assert hlsgen.certify(tmp_path / "out").ok
    (file,) = (tmp_path / "out" / "host").glob("*.py")
    assert "0 differences" in subprocess.check_output([sys.executable, file, "--self-test"], text=True)


def test_a_declared_type_makes_it_hardware(tmp_path: Path) -> None:
    """An input with a type goes to hardware once, and hardware computes the normalization."""
    model, _ = CASES["layer norm"]
    onnx.save(model, tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="fixed:8,3"))
    assert not build.graph.inputs
    assert any(type(layer).__name__ == "NormRows" for layer in build.graph.layers)


def test_a_branch_without_quantizer_is_refused(tmp_path: Path) -> None:
    model, _ = CASES["layer norm"]
    del model.graph.output[:]
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.node.append(node("Add", "y x", "float_residual"))
    changed.graph.output.append(helper.make_tensor_value_info("float_residual", TensorProto.FLOAT, [1, 3, 6]))
    onnx.save(changed, tmp_path / "m.onnx")
    with pytest.raises(HlsgenError) as caught:
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert {d.code for d in caught.value.diagnostics} <= {"HG030", "HG032"}


@pytest.mark.slow
def test_block_of_onnxruntime(tmp_path: Path) -> None:
    path = shared_model("attention/block_ort_qop_u8")
    data = np.load(path.with_suffix(".npz"))
    hlsgen.build(path, tmp_path / "out")
    outputs = hlsgen.run(tmp_path / "out", data["x"][:, 0])
    assert np.array_equal(outputs.reshape(data["ort"].shape), data["ort"])
