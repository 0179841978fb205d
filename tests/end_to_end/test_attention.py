"""Attention of Brevitas, with Softmax between quantizers: the integers of both forms against executors of the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paths import shared_model

import hlsgen
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Accumulator
from hlsgen.ir.ops import Add
from hlsgen.passes import lower


@pytest.mark.parametrize(
    "name, oracle, runtime", [("attn_w4a4_qonnx", "qonnx", "qonnx"), ("attn_w4a4_qcdq", "ort_noopt", "onnx")]
)
def test_integers_of_the_last_layer(name: str, oracle: str, runtime: str) -> None:
    """Executors sum floats: apart from rounding, results are the bias plus a multiple of the scale."""
    path = shared_model(f"attention/{name}")
    data = np.load(path.with_suffix(".npz"))
    problems = Collector()
    model = import_model(path, problems, runtime=runtime)
    problems.finish()
    assert model is not None
    graph = lower(model, None, problems)
    x = data["x"].astype(np.float32).reshape(-1, *model.input_shape)
    values = [reference.encode_input(graph, x)]
    for layer in graph.layers:
        values.append(reference.run_layer(layer, [values[i] for i in layer.inputs]))
    (bias,), meaning = (step.op for step in graph.tail), graph.output.encoding
    assert isinstance(bias, Add)
    assert isinstance(meaning, Accumulator)
    assert meaning.factor == 1
    assert not meaning.offset.any()
    for outputs in (data[oracle], np.asarray(interpret(model, x)[-1].value)):
        sums = (outputs.reshape(values[-1].shape).astype(np.float64) - bias.value) / meaning.scale
        assert np.abs(sums - np.rint(sums)).max() < 1e-2
        assert np.array_equal(np.rint(sums), values[-1])


@pytest.mark.sweep
def test_differences_of_the_file_are_explained(tmp_path: Path) -> None:
    """Node by node: onnxruntime's optimizer rounds biases to the grid of their sums."""
    options = hlsgen.Options(target="hls")
    hlsgen.build(shared_model("attention/attn_w4a4_qcdq"), tmp_path / "out", options)
    verdict = hlsgen.verify(tmp_path / "out", [], 40)
    assert verdict.ok
    assert verdict.oracle is not None
    assert sum(verdict.oracle.explained.values()) > 100


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize(
    "name",
    [
        "attn_w8a8_rawscore_qonnx",
        "block_layernorm_w8a8_qonnx",
        "block_ort_qdq_s8",
        "block_rmsnorm_w4a4_qcdq",
        "vit_ort_qdq_u8",
        "deeploy_attention_isoftmax",
    ],
)
def test_whole_blocks_in_cpp(name: str, tmp_path: Path) -> None:
    """Certified, and equal in C simulation."""
    options = hlsgen.Options(target="hls", input="int8" if name.startswith("deeploy") else None)
    hlsgen.build(shared_model(f"attention/{name}"), tmp_path / "out", options)
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified.problems
    verdict = hlsgen.verify(tmp_path / "out", ["ap_types"], 20)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
