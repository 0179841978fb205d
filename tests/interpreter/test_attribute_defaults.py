"""Defaults of omitted attributes, and negative axes: as in the qonnx executor.

All scales are powers of two, so that the executor's floats are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from builds import checked
from models import DOMAIN, Net
from numpy.typing import NDArray
from onnx import TensorProto, helper
from oracles import Qonnx

from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
f32 = np.float32


def floats(*values: float) -> Array:
    return np.array(values, f32)


def image(channels: int = 2, size: int = 6, frames: int = 1) -> Net:
    return Net((frames, channels, size, size)).quant(0.25, 0.0, 6.0)


def weights(n: Net, *shape: int) -> str:
    """Quantized weights that no reversal, rotation or transposition leaves as they are; `last` stays."""
    data = n.last
    values = (np.arange(np.prod(shape)).reshape(shape) * 5 % 13 - 6).astype(f32) / 4
    name = n.node("IntQuant", values, 0.25, 0.0, 4.0, domain=DOMAIN).last
    n.last = data
    return name


def batch_norm() -> Net:
    """Variances for which the added constant decides."""
    gamma, beta = floats(1, -0.5), floats(0.25, 1)
    return (
        image().then("BatchNormalization", gamma, beta, floats(0.5, -0.25), floats(0.0001, 0.00002)).quant(4.0, 0, 9.0)
    )


def gemm(rows: int, **attributes: Any) -> Net:
    n = Net((1, 3)).quant(0.25, 0.0, 6.0)
    shape = (rows, 3) if attributes.get("transB") else (3, rows)
    n.node("Gemm", n.last, weights(n, *shape), np.arange(rows).astype(f32) - 0.75, **attributes)
    return n.quant(0.25, 0.0, 8.0)


def convolved(channels: int = 2, **attributes: Any) -> Net:
    n = image(channels)
    return n.node("Conv", n.last, weights(n, 3, channels, 3, 2), **attributes).quant(0.25, 0.0, 10.0)


def joined(axis: int) -> Net:
    n = image()
    scaled = n.then("Mul", 0.5).last
    return n.node("Concat", scaled, n.node("Mul", "t0", -0.25).last, axis=axis).quant(0.125, 0.0, 7.0)


def sliced(starts: list[int], ends: list[int], axes: list[int]) -> Net:
    return image().then("Slice", *(np.array(part, np.int64) for part in (starts, ends, axes))).quant(0.25, 0.0, 5.0)


def pooled(op: str, **attributes: Any) -> Net:
    return image().then(op, **attributes).quant(0.0625, 0.0, 9.0)


NETS: dict[str, Callable[[], Net]] = {
    "epsilon of BatchNormalization": batch_norm,
    "count_include_pad": lambda: pooled("AveragePool", kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
    "strides of a pool": lambda: pooled("MaxPool", kernel_shape=[2, 3]),
    "ceil_mode 0": lambda: pooled("MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
    "ceil_mode 1": lambda: pooled("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "mode of DepthToSpace": lambda: image(8, 3).then("DepthToSpace", blocksize=2).quant(0.5, 0.0, 5.0),
    "modes of Resize, larger": lambda: image().then("Resize", "", floats(1, 1, 2, 3)).quant(0.5, 0.0, 5.0),
    "modes of Resize, smaller": lambda: image().then("Resize", "", floats(1, 1, 0.5, 0.5)).quant(0.5, 0.0, 5.0),
    "axis of Flatten": lambda: image(frames=2).then("Flatten").quant(0.5, 0.0, 5.0),
    "axis of ArgMax": lambda: Net((3, 4)).quant(0.25, 0.0, 6.0).then("ArgMax").then("Cast", to=TensorProto.FLOAT),
    "perm of Transpose": lambda: Net((2, 3, 4)).quant(0.25, 0.0, 6.0).then("Transpose").quant(0.5, 0.0, 5.0),
    "attributes of Gemm": lambda: gemm(3),
    "transB of square weights": lambda: gemm(3, transB=1),
    "alpha and beta of Gemm": lambda: gemm(4, alpha=0.5, beta=2.0),
    "kernel_shape, pads, strides of Conv": convolved,
    "pads of SAME_UPPER": lambda: convolved(auto_pad="SAME_UPPER"),
    "pads of SAME_LOWER": lambda: convolved(auto_pad="SAME_LOWER"),
    "keepdims of ReduceMax": lambda: image().then("ReduceMax", axes=[-1, -2]).quant(0.5, 0.0, 5.0),
    "Concat, axis -1": lambda: joined(-1),
    "Concat, axis -3": lambda: joined(-3),
    "Slice from the end": lambda: sliced([-5, 1], [-1, -2], [-1, 2]),
    "Slice beyond the end": lambda: sliced([-100, 1], [4, 100], [3, -2]),
    "Slice with all axes": lambda: (
        image().then("Slice", np.array([0, 0, 1]), np.array([1, -1, 5])).quant(0.25, 0.0, 5.0)
    ),
    "alpha of LeakyRelu": lambda: image().then("LeakyRelu").quant(2.0**-7, 0.0, 10.0),
    "alpha of Elu": lambda: image().then("Elu").quant(0.125, 0.0, 6.0),
    "alpha and beta of HardSigmoid": lambda: image().then("HardSigmoid").quant(2.0**-6, 0.0, 8.0),
    "alpha of ThresholdedRelu": lambda: image().then("ThresholdedRelu").quant(0.25, 0.0, 6.0),
    "alpha of Celu": lambda: image().then("Celu").quant(0.125, 0.0, 6.0),
    "layout of thresholds": lambda: (
        Net((1, 4, 3))
        .quant(0.25, 0.0, 6.0)
        .then(
            "MultiThreshold",
            np.sort((np.arange(15).reshape(3, 5) * 7 % 16 - 8).astype(f32), axis=1) / 4,
            domain=DOMAIN,
            data_layout="NWC",
        )
    ),
}


def model_of(net: Net) -> onnx.ModelProto:
    """The file has the quantizers' attributes, as qonnx requires."""
    model: onnx.ModelProto = net.model()
    for node in (n for n in model.graph.node if n.op_type == "IntQuant"):
        node.attribute.extend(helper.make_attribute(k, v) for k, v in (("signed", 1), ("narrow", 0)))
        node.attribute.append(helper.make_attribute("rounding_mode", "ROUND"))
    return model


@pytest.mark.parametrize("name", NETS)
def test_the_executor_gives_the_same(name: str, tmp_path: Path) -> None:
    model = model_of(NETS[name]())
    graph = checked(model, tmp_path).graph
    shape = graph.model.input_shape
    x = (np.random.default_rng(7).integers(-40, 40, (8, *shape)) / 8).astype(f32)
    oracle = Qonnx(model)
    expected = np.stack([oracle.one(frame) for frame in x])
    outputs = np.stack([reference.evaluate(graph, frame) for frame in x])
    assert len(np.unique(expected)) > 2
    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("attributes", [{}, {"axis": 2}, {"axis": -2}])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_axis_of_softmax(op: str, opset: int, attributes: dict[str, int], tmp_path: Path) -> None:
    """Over all axes from `axis` on before opset 13, over one since; onnxruntime's floats differ in their last bits."""
    net = Net((1, 3, 4, 2)).quant(0.25, 0.0, 8.0).then(op, **attributes)
    net.opsets[""] = opset
    x = np.random.default_rng(7).permutation(8 * 24).reshape(8, 1, 3, 4, 2).astype(f32) / 8 - 12
    model = model_of(net)
    graph, oracle = checked(model, tmp_path).graph, Qonnx(model)
    for frame in x:
        np.testing.assert_allclose(reference.evaluate(graph, frame), oracle.one(frame), rtol=1e-5, atol=1e-6)
