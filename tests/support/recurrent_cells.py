"""Bodies of loops with quantized states, and models of one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_graph import OnnxGraph

Array = Any


def tensor(name: str, shape: Any = None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class Cell(OnnxGraph):
    """The body of a loop: states and parts of inputs go through products, sums, activations, each quantized."""

    def __init__(self, seed: int, sizes: list[int], states: int, width: int) -> None:
        super().__init__(np.float32)
        rng = self.rng = np.random.default_rng(seed)
        self.states = [f"h{n}" for n in range(states)]
        self.parts = [f"x{n}" for n in range(len(sizes))]
        coded = [self.coded(name, 0.0625) for name in (*self.states, *self.parts)]
        lengths = [width] * states + sizes
        self.ends = []
        for _ in range(states):
            total = ""
            for name, size in zip(coded, lengths, strict=True):
                codes = self.const(rng.integers(-8, 8, (size, width)), np.int8)
                weight = self.add("DequantizeLinear", [codes, np.float32(0.125), self.const(np.int8(0), np.int8)])
                product = self.add("MatMul", [name, weight])
                total = self.add("Add", [total, product]) if total else product
            gate = self.coded(self.add("Add", [total, (rng.integers(-8, 8, width) / 32).astype(np.float32)]), 0.125)
            curve = self.coded(self.add(str(rng.choice(["Tanh", "Sigmoid", "Relu"])), [gate]), 1 / 128)
            kept = self.add("Mul", [curve, coded[int(rng.integers(states))]])
            self.ends.append(self.coded(self.add("Add", [self.coded(kept, 0.0625), curve]), 0.0625))

    def coded(self, name: str, scale: float) -> str:
        zero = self.const(np.int8(0), np.int8)
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [name, np.float32(scale), zero]), np.float32(scale), zero])  # fmt: skip

    def graph(self, before: list[onnx.ValueInfoProto], outputs: list[str], more: list[onnx.NodeProto] = []) -> Any:  # noqa: B006
        inputs = [*before, *(tensor(n) for n in self.states)]
        return helper.make_graph(
            [*self.nodes, *more], "body", [*inputs, *(tensor(n) for n in self.parts)], [tensor(n) for n in outputs], self.constants
        )  # fmt: skip


def model_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: Any, output: Any, opset: int = 17
) -> onnx.ModelProto:
    values = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "net", [tensor("x", shape)], [tensor("y", output)], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
