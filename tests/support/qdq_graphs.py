"""Random graphs of QDQ groups: shared quantizers, ends of codes, constants, biases, pairs in a row, moves in
between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = Any
#: (scale, zero point, type of the codes)
Meaning = tuple[float, int, str]
_OPSETS = (13, 14, 17, 18, 19, 20, 21, 22, 23)
_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


class QdqGraph:
    """Nodes and constants that are added one by one; `model` keeps what its output needs."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        #: By tensor: pairs of quantizers in a row before it. What three become depends on the order of onnxruntime's
        #: passes.
        self.row: dict[str, int] = {}
        self.main = str(rng.choice(["int8", "uint8"]))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """A random integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def const(self, values: Any, dtype: str = "float32") -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values).astype(dtype), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def meaning(self) -> Meaning:
        kind = self.main if self.chance(0.85) else str(self.rng.choice(["int8", "uint8"]))
        info = np.iinfo(kind)
        middle = 0 if kind == "int8" else 128
        zero = int(self.rng.choice([middle, self.whole(info.min, info.max), int(info.min)]))
        return float(np.float32(self.rng.uniform(0.005, 0.1))), zero, kind

    def parameters(self, meaning: Meaning) -> tuple[str, str]:
        return self.const(meaning[0]), self.const(meaning[1], meaning[2])

    def pair(self, tensor: str, meaning: Meaning | None = None) -> str:
        """QuantizeLinear and DequantizeLinear, of the same constants or of equal ones."""
        meaning = meaning or self.meaning()
        names = self.parameters(meaning)
        codes = self.node("QuantizeLinear", tensor, *names)
        real = self.node("DequantizeLinear", codes, *(self.parameters(meaning) if self.chance(0.5) else names))
        self.row[real] = self.row.get(tensor, 0) + 1
        return real

    def weights(self, shape: Sequence[int], outputs: int, axis: int) -> str:
        kind = str(self.rng.choice(["int8", "uint8"])) if self.chance(0.3) else "int8"
        many = self.chance(0.4)
        scale = self.rng.uniform(0.002, 0.05, outputs if many else ())
        zero = np.full(np.shape(scale), 128 if kind == "uint8" else 3 if self.chance(0.2) else 0)
        codes = self.const(self.rng.integers(0, 200, shape) - (100 if kind == "int8" else 0), kind)
        attributes = {"axis": axis} if many else {}
        return self.node("DequantizeLinear", codes, self.const(scale), self.const(zero, kind), **attributes)

    def bias(self, size: int) -> str:
        """Floats, or codes of int32 with a scale of their own."""
        if self.chance(0.35):
            codes = self.const(self.rng.integers(-500, 500, size), "int32")
            return self.node(
                "DequantizeLinear", codes, self.const(self.rng.uniform(0.0005, 0.002)), self.const(0, "int32")
            )
        return self.const(self.rng.normal(0, 1, size))

    def model(self, output: str, shape: Sequence[int], source: str, result: str) -> onnx.ModelProto:
        needed, kept = {output}, []
        for node in reversed(self.nodes):
            if node.output[0] in needed:
                kept.insert(0, node)
                needed.update(node.input)
        graph = helper.make_graph(
            kept,
            "g",
            [helper.make_tensor_value_info("x", _TYPES[source], shape)],
            [helper.make_tensor_value_info(output, _TYPES[result], None)],
            [one for one in self.constants if one.name in needed],
        )
        opsets = [helper.make_opsetid("", int(self.rng.choice(_OPSETS)))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def random_qdq(seed: int) -> tuple[onnx.ModelProto, Array]:
    """A model whose output depends on x, and 40 frames of it."""
    rng = np.random.default_rng(seed)
    g = QdqGraph(rng)
    if g.chance(0.4):
        shape: tuple[int, ...] = (1, g.whole(1, 3), g.whole(3, 5), g.whole(3, 5))
    else:
        shape = (1, g.whole(2, 5)) if g.chance(0.6) else (1, g.whole(1, 3), g.whole(2, 5))
    first, source = g.meaning(), "float32"
    if g.chance(0.25):
        source = first[2]
        start = g.node("DequantizeLinear", "x", *g.parameters(first))
    else:
        start = g.pair("x", first)
    tensors = [(start, shape)]
    for _ in range(g.whole(1, 5)):
        taken = tensors[g.whole(0, len(tensors) - 1)] if g.chance(0.35) else tensors[-1]
        tensors.append(_step(g, *taken, tensors))
    output, result = tensors[-1][0], "float32"
    if g.chance(0.4):
        last = g.meaning()
        output, result = g.node("QuantizeLinear", output, *g.parameters(last)), last[2]
    frames = (40, *shape[1:])
    if source == "float32":
        x = rng.normal(0, 2, frames).astype(np.float32)
    else:
        x = rng.integers(np.iinfo(source).min, np.iinfo(source).max + 1, frames).astype(source)
    return g.model(output, shape, source, result), x


def _step(
    g: QdqGraph, tensor: str, shape: tuple[int, ...], tensors: list[tuple[str, tuple[int, ...]]]
) -> tuple[str, tuple[int, ...]]:
    """One operator, often with quantizers after it: its result and shape."""
    operators = ["Add constant", "Mul constant", "Add", "Mul", "Relu", "Reshape", "Transpose", "pair", "Identity"]
    if len(shape) == 4 and min(shape[2:]) > 1:
        operators += ["Conv"] * 4 + ["AveragePool", "GlobalAveragePool", "MaxPool"]
    elif len(shape) < 4:
        operators += ["MatMul"] * 3 + ["MatMul and Add"] * 2 + ["Gemm"] * 2 * (len(shape) == 2)
    operator = str(g.rng.choice(operators))
    size = int(np.prod(shape))
    match operator:
        case "Add constant" | "Mul constant":
            if g.chance(0.6):
                meaning = g.meaning()
                codes = g.rng.integers(np.iinfo(meaning[2]).min, np.iinfo(meaning[2]).max + 1, shape[-1:])
                other = g.node("DequantizeLinear", g.const(codes, meaning[2]), *g.parameters(meaning))
            else:
                other = g.const(g.rng.normal(0, 1, shape[-1:]))
            y = g.node(operator[:3], *((tensor, other) if g.chance(0.7) else (other, tensor)))
        case "Add" | "Mul":
            alike = [name for name, known in tensors if known == shape]
            y = g.node(operator, tensor, alike[g.whole(0, len(alike) - 1)])
        case "Relu" | "Identity":
            y = g.node(operator, tensor)
            g.row[y] = g.row.get(tensor, 0) if operator == "Identity" else 0
        case "pair" if g.row.get(tensor, 0) > 1:
            return tensor, shape
        case "pair":
            y = g.pair(tensor)
        case "Reshape":
            shape = (1, size) if g.chance(0.5) else (1, 1, size)
            y = g.node("Reshape", tensor, g.const(shape, "int64"))
        case "Transpose":
            order = [0, *(1 + g.rng.permutation(len(shape) - 1)).tolist()]
            if order == sorted(order):  # onnxruntime leaves such a node out
                return tensor, shape
            shape = tuple(shape[i] for i in order)
            y = g.node("Transpose", tensor, perm=order)
        case "Conv":
            rows, kernel = g.whole(1, 3), g.whole(1, 2)
            inputs = [tensor, g.weights((rows, shape[1], kernel, kernel), rows, 0)]
            inputs += [g.bias(rows)] if g.chance(0.5) else []
            y = g.node("Conv", *inputs, kernel_shape=[kernel, kernel])
            shape = (1, rows, shape[2] - kernel + 1, shape[3] - kernel + 1)
        case "AveragePool" | "MaxPool":
            y = g.node(operator, tensor, kernel_shape=[2, 2])
            shape = (1, shape[1], shape[2] - 1, shape[3] - 1)
        case "GlobalAveragePool":
            y, shape = g.node(operator, tensor), (1, shape[1], 1, 1)
        case _:
            columns = g.whole(1, 5)
            if g.chance(0.25):
                weights = g.node("Transpose", g.weights((columns, shape[-1]), columns, 0), perm=[1, 0])
            else:
                weights = g.weights((shape[-1], columns), columns, 1)
            inputs = [tensor, weights]
            if operator == "Gemm":
                factor = {"alpha": 0.5} if g.chance(0.2) else {}
                y = g.node("Gemm", *inputs, *([g.bias(columns)] if g.chance(0.6) else []), **factor)
            else:
                y = g.node("MatMul", *inputs)
                if operator == "MatMul and Add":
                    bias = g.bias(columns)
                    y = g.node("Add", *((y, bias) if g.chance(0.5) else (bias, y)))
            shape = (*shape[:-1], columns)
    if g.chance(0.15):
        y = g.node("Relu", y)
    if g.chance(0.15) and len(shape) == 4:
        shape = (1, int(np.prod(shape)))
        y = g.node("Reshape", y, g.const(shape, "int64"))
    if g.row.get(y, 0) < 2 and (g.chance(0.85) or operator in ("Relu", "Identity")):
        scale, zero, kind = g.meaning()
        y = g.pair(y, (scale, int(np.iinfo(kind).min) if g.chance(0.3) else zero, kind))
    return y, shape
