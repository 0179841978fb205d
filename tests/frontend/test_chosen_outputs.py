"""--outputs: the part of a graph that ends in named tensors, and the errors that suggest it."""

from __future__ import annotations

from pathlib import Path

import integer_models
import numpy as np
import onnx
import ort
import pytest
from integer_models import Graph
from onnx import TensorProto, helper

import hlsgen
from hlsgen.interpreter import graph as reference

STEP, MIDDLE = np.float32(2**-5), np.uint8(128)
LEARN = "ai.onnx.ml"


def classifier() -> onnx.ModelProto:
    """A classifier with the outputs of skl2onnx: labels by ArrayFeatureExtractor and Cast, a map of probabilities."""
    graph = Graph()
    codes = graph.add("QuantizeLinear", ["x", STEP, MIDDLE])
    data = graph.add("DequantizeLinear", [codes, STEP, MIDDLE])
    weights = np.random.default_rng(0).integers(-99, 99, (6, 3)).astype(np.int8)
    real = graph.add("DequantizeLinear", [weights, np.float32(2**-7), np.int8(0)])
    graph.add("MatMul", [data, real], ["scores"])
    graph.add("Softmax", ["scores"], ["probabilities"], axis=1)
    graph.add("ArgMax", ["probabilities"], ["index"], axis=1, keepdims=0)
    graph.add("ArrayFeatureExtractor", [np.arange(3), "index"], ["class"], domain=LEARN)
    graph.add("Cast", ["class"], ["label"], to=TensorProto.STRING)
    graph.add("ZipMap", ["probabilities"], ["map"], domain=LEARN, classlabels_int64s=[0, 1, 2])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 6])
    ends = [helper.make_empty_tensor_value_info(name) for name in ("label", "map")]
    return graph.proto("classifier", [x], ends, [("", 17), (LEARN, 1)], 8)


def test_error_names_tensors_for_outputs(tmp_path: Path) -> None:
    """The hint names the probabilities, and not the index, which depends on them."""
    with pytest.raises(hlsgen.HlsgenError) as error:
        integer_models.compiled(classifier(), tmp_path)
    hints = {d.node: d.hint for d in error.value.diagnostics}
    suggestion = "To build the part of the graph before it: --outputs probabilities."
    assert [hint.endswith(suggestion) for hint in hints.values()] == [True] * 2
    build = integer_models.compiled(classifier(), tmp_path, outputs=["probabilities"])
    assert build.graph.tail[-1].op.op_type == "Softmax"  # type: ignore[union-attr]


def test_error_before_a_layer_suggests_nothing(tmp_path: Path) -> None:
    graph = Graph()
    blurred = graph.add("Blur", ["x"], domain="example")
    graph.add("QuantizeLinear", [blurred, STEP, MIDDLE], ["codes"])
    graph.last = "codes"
    with pytest.raises(hlsgen.HlsgenError) as error:
        integer_models.compiled(integer_models.finished(graph, np.float32, [1, 6]), tmp_path)
    assert not any("--outputs" in d.hint for d in error.value.diagnostics)


def test_several_outputs_equal_the_executor(tmp_path: Path) -> None:
    """The stored model has only the chosen outputs, so that onnxruntime can run it."""
    names = ["index", "scores"]
    path = tmp_path / "whole.onnx"
    onnx.save(classifier(), path)
    build = hlsgen.build(path, tmp_path / "build", hlsgen.Options(outputs=["scores"]))
    stored = onnx.load(tmp_path / "build" / "model.onnx")
    assert [o.name for o in stored.graph.output] == ["scores"]
    x = np.random.default_rng(1).normal(0, 3, (32, 6)).astype(np.float32)
    session = ort.session(stored)
    expected = np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in x])
    assert (reference.evaluate(build.graph, x) == expected).all()
    assert hlsgen.certify(tmp_path / "build", path).ok
    with pytest.raises(hlsgen.HlsgenError, match="HG040"):
        hlsgen.check(path, hlsgen.Options(outputs=[*names, "nothing"]))


def test_unknown_tensors_and_inputs_are_refused_as_outputs(tmp_path: Path) -> None:
    for name in ("x", "nothing", ""):
        with pytest.raises(hlsgen.HlsgenError, match=r"HG040 --outputs: no node of the graph computes a tensor"):
            integer_models.compiled(classifier(), tmp_path, outputs=[name])
