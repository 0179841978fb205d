"""Functions of codes before a border, a pool and a Concat: file, Model, Graph, hardware and its proof agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import file_oracle
import numpy as np
import onnx
import pytest
from builds import assert_verified
from models import Net, newer
from onnx import TensorProto

import hlsgen
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import equivalence
from hlsgen.interpreter import graph as reference
from hlsgen.ir.ops import MultiThreshold

f32 = np.float32


def per_channel(values: list[float]) -> np.ndarray:
    return np.asarray(values, f32).reshape(1, -1, 1, 1)


def border() -> onnx.ModelProto:
    """A negative border, whose rank differs from channel to channel; one function falls."""
    net = Net((1, 2, 4, 4)).quant(0.25, bits=4.0).then("Mul", per_channel([0.4, -1.3])).then("Tanh")
    net.then("Pad", np.array([0, 0, 1, 1, 0, 0, 0, 0]), np.asarray(-0.4, f32)).then("MaxPool", kernel_shape=[2, 2])
    return newer(net.then("Mul", per_channel([-1.0, 0.7])).quant(0.05, bits=5.0).model())


def branches() -> onnx.ModelProto:
    """A Concat of two functions of different codes, a pool on it; the maximum of it and a product."""
    net = Net((1, 2, 3, 3))
    left_codes = net.quant(0.3, bits=4.0).last
    first = net.then("Sigmoid").last
    right_codes = net.node("IntQuant", "x", 0.5, 0.0, 3.0, domain="qonnx.custom_op.general").last
    second = net.then("Neg").last
    net.node("Mul", left_codes, right_codes)
    joined = net.node("Concat", first, net.last, axis=1).then("MaxPool", kernel_shape=[2, 2]).last
    second_pool = net.node("Concat", second, first, axis=1).then("MaxPool", kernel_shape=[2, 2]).last
    return newer(net.node("Max", joined, second_pool).then("Abs").quant(0.1, bits=4.0).model())


def integers() -> onnx.ModelProto:
    """int8 that wraps, before a pool and after it."""
    net = Net((1, 2, 4, 3), TensorProto.FLOAT)
    net.then("QuantizeLinear", np.asarray(0.125, f32), np.asarray(0, np.int8))
    net.then("Mul", per_channel([3, -5]).astype(np.int8)).then("Add", np.asarray(100, np.int8))
    net.then("MaxPool", kernel_shape=[2, 2]).then("Mul", np.asarray(-3, np.int8))
    return newer(net.then("Cast", to=TensorProto.FLOAT).quant(4.0, bits=6.0).model())


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {"border": border, "branches": branches, "integers": integers}


@pytest.mark.parametrize("name", MODELS)
def test_file_model_and_graph(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(MODELS[name](), path)
    model = import_model(path, Collector())
    assert model is not None
    x = file_oracle.stimuli(model, 20)
    report = file_oracle.hold(onnx.load(path), model, x)
    assert not report.differing
    assert report.held["MaxPool"] >= 1
    graph = hlsgen.check(path).graph
    assert any(isinstance(getattr(layer, "quantizer", None), MultiThreshold) for layer in graph.layers)
    codes = reference.encode_input(graph, x)
    assert equivalence.compare(graph.model, graph, codes).ok


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("name", MODELS)
def test_hardware_and_proof(name: str, tmp_path: Path) -> None:
    onnx.save(MODELS[name](), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    assert_verified(tmp_path / "m", "icarus", 12)
    assert hlsgen.certify(tmp_path / "m").ok
