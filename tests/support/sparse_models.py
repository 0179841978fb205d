"""Models with dead channels: random networks in which some weights of whole rows and columns are 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from models import DOMAIN, Net
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx_graph import OnnxGraph

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.ir import Graph
from hlsgen.passes import lower

Array = NDArray[Any]


def thinned(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with zeros in random rows and columns of its quantized weights."""
    rng, sparse = np.random.default_rng(seed), onnx.ModelProto()
    sparse.CopyFrom(model)
    constants = {x.name: x for x in sparse.graph.initializer}
    for node in sparse.graph.node:
        if node.op_type not in ("IntQuant", "Quant", "DequantizeLinear") or node.input[0] not in constants:
            continue
        weight = numpy_helper.to_array(constants[node.input[0]]).copy()
        zero: Array = np.zeros(())
        if node.op_type == "DequantizeLinear" and len(node.input) > 2:
            zero = numpy_helper.to_array(constants[node.input[2]])
        if weight.ndim < 2 or zero.size > 1:
            continue
        for axis in (0, 1):
            chosen = rng.random(weight.shape[axis]) < rng.choice([0, 0.3, 0.6])
            weight[(slice(None),) * axis + (chosen,)] = zero.reshape(())
        constants[node.input[0]].CopyFrom(numpy_helper.from_array(weight, node.input[0]))
    return sparse


def dead_neurons(seed: int = 1) -> onnx.ModelProto:
    """Three layers of 12, 10 and 4 neurons: some are always 0, one is always 3, and some are not used."""
    rng = np.random.default_rng(seed)
    bounds = np.full(12, 15, np.float32)
    bounds[[0, 5]] = 0
    floor = np.zeros(12, np.float32)
    floor[4] = bounds[4] = 3
    weights = [rng.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 12), (12, 10), (10, 4))]
    weights[1][[2, 9]] = 0
    weights[2][[1, 3, 6, 7]] = 0
    net = Net((1, 8)).quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=weights[0], scale=1.0, name="fc0").then("Relu").then("Min", bounds).then("Max", floor)
    net.quant(scale=1.0, bits=4.0, signed=0).linear(weight=weights[1], scale=1.0, name="fc1").then("Relu")
    net.quant(scale=4.0, bits=4.0, signed=0)
    return net.linear(weight=weights[2], scale=1.0, name="fc2").model()


def compared() -> onnx.ModelProto:
    """ArgMax of three sums of four neurons, of which the first is always 7."""
    net = Net((1, 4)).quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=np.eye(4, dtype=np.float32), scale=1.0, name="fc0").then("Max", np.float32([7, -8, -8, -8]))
    net.quant(scale=1.0, bits=4.0, signed=1)
    net.linear(weight=np.float32([[1, -1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1]]), scale=1.0)
    net.node("ArgMax", net.last, axis=1, keepdims=0)
    output = onnx.helper.make_tensor_value_info(net.last, onnx.TensorProto.INT64, None)
    return net.proto("net", net.inputs, [output], net.opsets.items())


def bordered(pad: int) -> onnx.ModelProto:
    """Two convolutions, with a border of 0; between them channel 2 is always 15, and channel 4 is not used."""
    rng, n = np.random.default_rng(3), OnnxGraph(labels=True)

    def quant(data: Any, scale: float, signed: int) -> str:
        options = {"signed": signed, "narrow": 0, "rounding_mode": "ROUND"}
        return n.add("IntQuant", [data, scale, 0.0, 4.0], domain=DOMAIN, **options)

    floor = np.zeros((1, 5, 1, 1), np.float32)
    floor[0, 2] = 15
    first, second = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((5, 2, 1, 1), (3, 5, 3, 3)))
    second[:, 4] = 0
    hidden = n.add("Conv", [quant("x", 1.0, 1), quant(first, 1.0, 1)])
    hidden = quant(n.add("Max", [n.add("Relu", [hidden]), floor]), 1.0, 0)
    y = n.add("Conv", [hidden, quant(second, 1.0, 1)], pads=[pad] * 4)
    source = onnx.helper.make_tensor_value_info("x", 1, (1, 2, 5, 5))
    output = onnx.helper.make_tensor_value_info(y, 1, None)
    return n.proto("net", [source], [output], [("", 13), (DOMAIN, 1)])


def flattened() -> onnx.ModelProto:
    """A convolution with three outputs for 2 x 2 pixels, reshaped before a matrix that does not use channel 1."""
    rng, n = np.random.default_rng(4), OnnxGraph(labels=True)

    def quant(data: Any, signed: int) -> str:
        options = {"signed": signed, "narrow": 0, "rounding_mode": "ROUND"}
        return n.add("IntQuant", [data, 1.0, 0.0, 4.0], domain=DOMAIN, **options)

    first, second = rng.integers(-3, 4, (3, 2, 2, 2)), rng.integers(1, 4, (3, 4, 5))
    second[1] = 0
    hidden = quant(n.add("Relu", [n.add("Conv", [quant("x", 1), quant(first.astype(np.float32), 1)])]), 0)
    flat = n.add("Reshape", [hidden, n.const([1, 12], np.int64)])
    y = n.add("MatMul", [flat, quant(second.reshape(12, 5).astype(np.float32), 1)])
    source = onnx.helper.make_tensor_value_info("x", 1, (1, 2, 3, 3))
    output = onnx.helper.make_tensor_value_info(y, 1, None)
    return n.proto("net", [source], [output], [("", 13), (DOMAIN, 1)])


def lowered(model: onnx.ModelProto, folder: Path) -> Graph:
    onnx.save(model, folder / "m.onnx")
    imported = import_model(folder / "m.onnx", problems := Collector())
    problems.finish()
    assert imported is not None
    return lower(imported, None, problems)


def binary_points(seed: int = 2) -> onnx.ModelProto:
    """Two layers of 14 and 4 neurons, with a power of two as the scale of each neuron's code."""
    rng = np.random.default_rng(seed)
    weights = [rng.integers(-7, 8, shape) * (rng.random(shape) < 0.5) for shape in ((10, 14), (14, 4))]
    net = Net((1, 10)).quant(scale=1.0, bits=5.0, signed=1)
    net.linear(weight=weights[0].astype(np.float32), scale=1.0, name="fc0").then("Relu")
    scale = 2.0 ** rng.integers(0, 4, (1, 14))
    net.quant(scale=scale.astype(np.float32), bits=5.0, signed=0, narrow=0, rounding_mode="FLOOR")
    return net.linear(weight=weights[1].astype(np.float32), scale=1.0, name="fc1").model()
