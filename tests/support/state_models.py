"""QDQ models whose state is an input and an output, and their frames in onnxruntime, fed back by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import ort
from onnx import TensorProto, helper, numpy_helper

from hlsgen.numerics.fixed import Array

#: Scale of all activations.
SCALE = np.float32(2.0**-4)


class _Nodes:
    """Nodes and constants of a graph under construction."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: object) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"{output} {kind}", **attributes))
        return output

    def quantized(self, tensor: str, output: str, scale: np.float32 = SCALE, zero: int = 0) -> str:
        parameters = [self.constant(f"{output}_s", scale), self.constant(f"{output}_z", np.int8(zero))]
        codes = self.op("QuantizeLinear", [tensor, *parameters], f"{output}_q")
        return self.op("DequantizeLinear", [codes, *parameters], output)

    def weights(self, name: str, rows: int, columns: int) -> str:
        codes = self.constant(f"{name}_i", self.rng.integers(-60, 61, (rows, columns)).astype(np.int8))
        parameters = [self.constant(f"{name}_s", np.float32(2.0**-8)), self.constant(f"{name}_z", np.int8(0))]
        return self.op("DequantizeLinear", [codes, *parameters], name)

    def model(self, inputs: dict[str, list[int]], outputs: dict[str, list[int]]) -> onnx.ModelProto:
        ends = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in tensors.items()]
            for tensors in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "states", *ends, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def recurrent(
    seed: int = 1, out_scale: np.float32 = SCALE, zero: int = 0, inputs_first: bool = True
) -> onnx.ModelProto:
    """h_out = quantize(W [x, h]), y = V h_out; x has 4 elements, h has 6, y has 3."""
    net = _Nodes(seed)
    joined = net.op("Concat", [net.quantized("x", "xd"), net.quantized("h", "hd", zero=zero)], "xh", axis=1)
    state = net.quantized(net.op("MatMul", [joined, net.weights("w", 10, 6)], "pre"), "h_out", out_scale, zero)
    net.op("MatMul", [state, net.weights("v", 6, 3)], "y")
    ends = {"x": [1, 4], "h": [1, 6]}, {"y": [1, 3], "h_out": [1, 6]}
    if not inputs_first:
        ends = tuple(dict(reversed(side.items())) for side in ends)
    return net.model(*ends)


def summed(seed: int = 1) -> onnx.ModelProto:
    """h_out = quantize(W x + R h), y = V h_out; x has 4 elements, h has 6, y has 3: a layer of its own for the state."""
    net = _Nodes(seed)
    sums = [
        net.quantized(
            net.op("MatMul", [net.quantized(end, f"{end}d"), net.weights(f"w{end}", size, 6)], f"{end}m"), f"{end}p"
        )
        for end, size in (("x", 4), ("h", 6))
    ]
    state = net.quantized(net.op("Add", sums, "pre"), "h_out")
    net.op("MatMul", [state, net.weights("v", 6, 3)], "y")
    return net.model({"x": [1, 4], "h": [1, 6]}, {"y": [1, 3], "h_out": [1, 6]})


def coupled(seed: int = 1) -> onnx.ModelProto:
    """g_out = quantize(W [x, h]), h_out = quantize(V [x, g]), y = U g_out: each state is made from the other one."""
    net = _Nodes(seed)
    x = net.quantized("x", "xd")
    for state, other in (("g", "h"), ("h", "g")):
        joined = net.op("Concat", [x, net.quantized(other, f"{other}d")], f"x{other}", axis=1)
        net.quantized(net.op("MatMul", [joined, net.weights(f"w{state}", 10, 6)], f"{state}m"), f"{state}_out")
    net.op("MatMul", ["g_out", net.weights("u", 6, 3)], "y")
    states = {"g": [1, 6], "h": [1, 6]}
    return net.model({"x": [1, 4], **states}, {"y": [1, 3], **{f"{name}_out": shape for name, shape in states.items()}})


def delays(seed: int = 1) -> onnx.ModelProto:
    """A delay line of three columns of x (2 channels) in an image, and the last frame's sum: two states."""
    net = _Nodes(seed)
    column = net.quantized("x", "xd")
    window = net.op("Concat", [net.quantized("line", "lined"), column], "window", axis=2)
    bounds = [net.constant(f"b{n}", np.array([value], np.int64)) for n, value in enumerate((1, 4, 2))]
    net.quantized(net.op("Slice", [window, *bounds], "shifted"), "line_out")
    total = net.op("Add", [net.quantized("last", "lastd"), column], "total")
    net.quantized(total, "last_out")
    flat = net.op("Flatten", [window], "flat")
    net.op("MatMul", [net.quantized(flat, "flatd"), net.weights("v", 8, 3)], "y")
    inputs = {"x": [1, 2, 1, 1], "line": [1, 2, 3, 1], "last": [1, 2, 1, 1]}
    return net.model(inputs, {"y": [1, 3], "line_out": [1, 2, 3, 1], "last_out": [1, 2, 1, 1]})


def streaming(seed: int = 1) -> onnx.ModelProto:
    """Two causal convolutions over time, with dilations 1 and 2, each with its ring buffer of 2 and of 4 columns.

    x has 3 channels and one column, y = W of the last result has 3 elements.
    """
    net = _Nodes(seed)
    flow, channels = net.quantized("x", "xd"), 3
    bounds = [net.constant(f"b{n}", np.array([value], np.int64)) for n, value in enumerate((1, 1 << 20, 2))]
    ends: tuple[dict[str, list[int]], dict[str, list[int]]] = {"x": [1, 3, 1, 1]}, {"y": [1, 3]}
    for name, dilation in (("near", 1), ("far", 2)):
        ends[0][name] = ends[1][f"{name}_out"] = [1, channels, 2 * dilation, 1]
        window = net.op("Concat", [net.quantized(name, f"{name}d"), flow], f"{name}w", axis=2)
        net.op("Slice", [window, *bounds], f"{name}_out")
        codes = net.constant(f"{name}_k", net.rng.integers(-60, 61, (4, channels, 3, 1)).astype(np.int8))
        parameters = [net.constant(f"{name}_ks", np.float32(2.0**-8)), net.constant(f"{name}_kz", np.int8(0))]
        kernel = net.op("DequantizeLinear", [codes, *parameters], f"{name}kernel")
        taps = {"kernel_shape": [3, 1], "dilations": [dilation, 1]}
        flow, channels = net.quantized(net.op("Conv", [window, kernel], f"{name}c", **taps), f"{name}q"), 4
    flat = net.op("Flatten", [flow], "flat")
    net.op("MatMul", [flat, net.weights("v", 4, 3)], "y")
    return net.model(*ends)


def in_onnxruntime(
    proto: onnx.ModelProto, x: Array, pairs: dict[str, str], initial: dict[str, float], starts: Sequence[int] = ()
) -> Array:
    """Output y of each frame of x, in a session that gets its own outputs `pairs` as the inputs of the next frame."""
    session = ort.session(proto)
    shapes = {end.name: [d.dim_value for d in end.type.tensor_type.shape.dim] for end in proto.graph.input}
    fresh = {name: np.full(shapes[name], initial.get(name, 0.0), np.float32) for name in pairs}
    names, state, results = [end.name for end in proto.graph.output], fresh, []
    for number, frame in enumerate(x):
        state = fresh if number in starts else state
        outputs = dict(zip(names, session.run(names, {"x": frame[None], **state}), strict=True))
        state = {name: outputs[target] for name, target in pairs.items()}
        results.append(outputs["y"])
    return np.concatenate(results)
