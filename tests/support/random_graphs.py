"""Random QONNX graphs, the same for the same seed: quantizer datapaths and perceptrons."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graph import QONNX as DOMAIN
from onnx_graph import OnnxGraph

MODES = ["ROUND", "half_even", "CEIL", "floor", "UP", "DOWN", "HALF_UP", "half_down"]
Array = NDArray[Any]


class Graph(OnnxGraph):
    """A QONNX model of input x, whose constants are float32 throughout."""

    def __init__(self, shape: tuple[int, ...], version: int = 1) -> None:
        super().__init__(np.float32, np.float32, labels=True)
        self.shape, self.version = shape, version

    def node(self, op: str, *inputs: str, **options: Any) -> str:
        """The name of the result; `last` stays."""
        return self.add(op, inputs, **options)

    def quant(self, scale: Any, zero: Any, bits: float, **attributes: Any) -> None:
        self.then("IntQuant", scale, zero, bits, domain=DOMAIN, **attributes)

    def model(self, output_shape: tuple[int, ...] | None = None) -> onnx.ModelProto:
        source = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        result = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, output_shape or self.shape)
        return self.proto("random", [source], [result], [("", 13), (DOMAIN, self.version)])


def scales(rng: np.random.Generator, shape: tuple[int, ...], powers: bool | None = None) -> Array:
    if rng.random() < 0.5 if powers is None else powers:
        return np.asarray(2.0 ** rng.integers(-6, 4, shape))
    return np.asarray(np.exp(rng.uniform(-5, 2, shape)))


def datapath(seed: int, max_bits: int = 8) -> onnx.ModelProto:
    """One to three quantizers of any kind with constant arithmetic between, any shape and channel axis."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(1, 5))))
    if rng.random() < 0.5:
        shape = (1, *shape[1:])
    g = Graph(shape, version=int(rng.integers(1, 3)))
    count = int(rng.integers(1, 4))
    for _ in range(count):
        for _ in range(int(rng.integers(0, 3)) if count > 1 or rng.random() < 0.3 else 0):
            _arithmetic(g, rng)
        _quantizer(g, rng, max_bits)
    if rng.random() < 0.2:
        g.then("Mul", 0.37)
    return g.model()


def _per_channel(g: Graph, rng: np.random.Generator) -> tuple[int, ...]:
    """The shape of a parameter: scalar, or along one axis."""
    if rng.random() < 0.5:
        return ()
    axis = int(rng.integers(len(g.shape)))
    return tuple(size if i == axis else 1 for i, size in enumerate(g.shape))


def _arithmetic(g: Graph, rng: np.random.Generator) -> None:
    op = str(rng.choice(["Add", "Mul", "Sub", "Div", "Relu", "Clip", "BatchNormalization", "Minus"]))
    shape = _per_channel(g, rng)
    match op:
        case "Add" | "Sub":
            g.then(op, rng.normal(0, 1, shape))
        case "Minus":
            g.last = g.node("Sub", g.const(rng.normal(0, 1, shape)), g.last)
        case "Mul" | "Div":
            g.then(op, scales(rng, shape) * rng.choice([1, 1, 1, -1], shape))
        case "Relu":
            g.then(op)
        case "Clip":
            g.then(op, -1.3, 2.7)
        case _ if len(g.shape) > 1:
            c = g.shape[1]
            g.then(op, rng.normal(0, 1, c), rng.normal(0, 1, c), rng.normal(0, 1, c), rng.uniform(0.1, 3, c))


def _zero_point(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    kind = int(rng.integers(5))
    if kind < 2:
        return np.zeros(shape)
    if kind == 2:
        return np.asarray(rng.integers(-4, 5, shape), float)
    return np.asarray(rng.integers(-8, 9, shape) / 4 if kind == 3 else rng.normal(0, 2, shape))


def _quantizer(g: Graph, rng: np.random.Generator, max_bits: int) -> None:
    kind = str(rng.choice(["IntQuant", "Trunc", "BipolarQuant", "MultiThreshold"], p=[0.6, 0.24, 0.08, 0.08]))
    bits, mode = float(rng.integers(1, max_bits + 1)), str(rng.choice(MODES))
    scale = scales(rng, _per_channel(g, rng))
    layouts = {2: ["NC"], 3: ["NWC", "NCW"], 4: ["NCHW", "NHWC"]}.get(len(g.shape))
    if kind == "IntQuant":
        signed = int(rng.integers(2))
        narrow = int(rng.integers(2)) if bits > 1 or signed else 0
        zero = _zero_point(rng, _per_channel(g, rng))
        g.quant(scale, zero, bits, signed=signed, narrow=narrow, rounding_mode=mode)
    elif kind == "Trunc":
        zero = _zero_point(rng, _per_channel(g, rng))
        if g.version == 1:
            g.then("Trunc", scale, zero, 8.0, float(rng.integers(2, 9)), domain=DOMAIN, rounding_mode=mode)
        else:
            out = scale * 2.0 ** rng.integers(0, 4)
            bits, signed = float(rng.integers(2, 9)), int(rng.integers(2))
            g.then("Trunc", scale, zero, 8.0, out, bits, domain=DOMAIN, rounding_mode=mode, signed=signed, narrow=0)
    elif kind == "MultiThreshold" and layouts:
        layout = str(rng.choice(layouts))
        channels = g.shape[layout.index("C")] if rng.random() < 0.7 else 1
        table = np.sort(rng.normal(0, 2, (channels, int(rng.integers(1, 8)))), axis=1)
        scale_, bias = float(rng.choice([1.0, 0.5, 0.3])), float(rng.choice([0.0, -1.0, 0.7]))
        attributes = {"out_dtype": "INT8", "data_layout": layout, "out_scale": scale_, "out_bias": bias}
        g.then("MultiThreshold", table, domain=DOMAIN, **attributes)
    else:
        g.then("BipolarQuant", scale, domain=DOMAIN)


def perceptron(seed: int, powers: bool = True) -> onnx.ModelProto:
    """Two to four linear layers with random widths, bits, biases, BatchNormalization and foldable sizes.

    powers: all scales are powers of two, so that float32 execution is exact.
    """
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 25))
    g = Graph((1, size))
    _activation(g, rng, powers)
    layers = int(rng.integers(2, 5))
    for layer in range(layers):
        out = int(rng.integers(1, 17))
        _linear(g, rng, size, out, powers)
        size = out
        if layer < layers - 1 or rng.random() < 0.5:
            if rng.random() < 0.4:
                gamma = rng.uniform(0.3, 2, size) * rng.choice([1, 1, -1], size)
                g.then(
                    "BatchNormalization",
                    gamma,
                    rng.normal(0, 1, size),
                    rng.normal(0, 1, size),
                    rng.uniform(0.5, 4, size),
                )
            if rng.random() < 0.4:
                g.then("Relu")
            _activation(g, rng, powers)
    return g.model((1, size))


def _activation(g: Graph, rng: np.random.Generator, powers: bool) -> None:
    kind = rng.random()
    if kind < 0.2:
        g.then("BipolarQuant", scales(rng, (), powers), domain=DOMAIN)
        return
    bits, signed = float(rng.integers(1, 7)), int(rng.integers(2))
    narrow = int(rng.integers(2)) if bits > 1 else 0
    zero = float(rng.integers(-3, 4)) / (2 if rng.random() < 0.3 else 1) if rng.random() < 0.3 and bits > 1 else 0.0
    mode = str(rng.choice(MODES))
    g.quant(
        2.0 ** rng.integers(-4, 1) if powers else scales(rng, ()),
        zero,
        bits,
        signed=signed,
        narrow=narrow,
        rounding_mode=mode,
    )


def _linear(g: Graph, rng: np.random.Generator, columns: int, rows: int, powers: bool) -> None:
    weights = rng.normal(0, 1, (columns, rows))
    if rng.random() < 0.3:
        weight = g.node("BipolarQuant", g.const(weights), g.const(scales(rng, (), powers)), domain=DOMAIN)
    else:
        bits = float(rng.integers(2, 7))
        shape = (1, rows) if rng.random() < 0.5 else ()
        scale = 2.0 ** rng.integers(-4, 0, shape) if powers else rng.uniform(0.05, 0.5, shape)
        zero = float(rng.integers(-2, 3)) if rng.random() < 0.2 else 0.0
        weight = g.node(
            "IntQuant",
            g.const(weights),
            g.const(scale),
            g.const(zero),
            g.const(bits),
            domain=DOMAIN,
            signed=1,
            narrow=int(rng.integers(2)),
            rounding_mode="ROUND",
        )
    bias = rng.integers(-40, 40, rows) / 16 if powers else rng.normal(0, 1, rows)
    if rng.random() < 0.4:
        turned = g.node("Transpose", weight, perm=[1, 0])
        inputs = [g.last, turned] + ([g.const(bias)] if rng.random() < 0.7 else [])
        g.last = g.node(
            "Gemm", *inputs, transB=1, alpha=float(rng.choice([1.0, 0.5])), beta=float(rng.choice([1.0, 2.0]))
        )
    else:
        g.last = g.node("MatMul", g.last, weight)
        if rng.random() < 0.5:
            g.then("Add", bias)
