"""Average pools of functions of codes: exact sums of float32 numbers, rounded once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from builds import assert_verified
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Pooling
from hlsgen.passes import InputMode, lower

Array = Any
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


def pooled(function: str, pool: str, *, scale: float = 0.05, **attrs: Any) -> onnx.ModelProto:
    """Quantizers, a function, a pool of it, and quantizers again; the function's tensor is named "values"."""
    constants = {"scale": np.float32(scale), "zero": np.uint8(110), "out": np.float32(0.03), "low": np.uint8(13)}
    options = {"alpha": 0.1} if function == "LeakyRelu" else {}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["real"]),
        helper.make_node(function, ["real"], ["values"], name="function", **options),
        helper.make_node(pool, ["values"], ["average"], name="pool", **attrs),
        helper.make_node("QuantizeLinear", ["average", "out", "low"], ["new codes"]),
        helper.make_node("DequantizeLinear", ["new codes", "out", "low"], ["y"]),
    ]
    source = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "pooled", [source], [result], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)


def exact(model: onnx.ModelProto, x: Array, side: int) -> Array:
    """The file's outputs if the sum of each window of `side` x `side` is a fraction that is rounded once."""
    values = onnx.ModelProto()
    values.CopyFrom(model)
    values.graph.output[0].name = "values"
    session = onnxruntime.InferenceSession(values.SerializeToString(), providers=["CPUExecutionProvider"])
    images = np.concatenate([session.run(None, {"x": frame[None]})[0] for frame in x])
    n, c, height, width = images.shape
    windows = images.reshape(n, c, height // side, side, width // side, side).swapaxes(3, 4)
    sums = [float(sum(map(Fraction, taps.tolist()))) for taps in windows.reshape(-1, side * side)]
    averages = np.array(sums, np.float32) / np.float32(side * side)
    codes = np.clip(np.rint(averages / np.float32(0.03)) + 13, 0, 255).astype(np.float32)
    return (codes - 13) * np.float32(0.03)


@pytest.mark.parametrize("function", ["HardSwish", "LeakyRelu", "Selu"])
@pytest.mark.parametrize("pool, attrs, side", [("AveragePool", POOL, 2), ("GlobalAveragePool", {}, 4)])
def test_exact_sums(function: str, pool: str, attrs: dict[str, Any], side: int, tmp_path: Path) -> None:
    model = pooled(function, pool, **attrs)
    onnx.save(model, tmp_path / "m.onnx")
    problems = Collector()
    imported = import_model(tmp_path / "m.onnx", problems)
    problems.finish()
    assert imported is not None
    graph = lower(imported, InputMode("codes"), problems)
    (layer,) = (layer for layer in graph.layers if isinstance(layer, Pooling))
    assert 25 < layer.source.type.bits <= 40
    x = (np.random.default_rng(3).integers(-140, 160, (60, 3, 4, 4)) / 20).astype(np.float32)
    expected = exact(model, x, side)
    outputs = np.asarray(reference.evaluate(graph, x)).reshape(-1)
    if function == "Selu":  # a function that executors round in their own way
        assert (outputs != expected).mean() < 0.01
    else:
        assert np.array_equal(outputs, expected)


def test_values_that_are_too_far_apart_are_refused(tmp_path: Path) -> None:
    """Powers of e from 1e-12 to 1e11 need more than 40 bits."""
    onnx.save(pooled("Exp", "GlobalAveragePool", scale=0.2), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match="HG030 function: float operation Exp"):
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("target", ["verilog", "hls"])
def test_in_hardware(target: str, tmp_path: Path) -> None:
    onnx.save(pooled("HardSwish", "AveragePool", **POOL), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(target=target))
    assert hlsgen.certify(tmp_path / "out").ok
    if target == "verilog":
        assert_verified(tmp_path / "out", "icarus", 8)
    verdict = hlsgen.verify(tmp_path / "out", [] if target == "verilog" else ["ap_types"], 20)
    assert verdict.ok, verdict.oracle
