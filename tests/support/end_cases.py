"""Models of several inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = Any
Tensors = dict[str, tuple[int, list[int]]]
FLOAT, INT8, UINT8, INT16 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16


@dataclass
class Case:
    """Nodes between inputs and outputs: (type, shape) of each by name."""

    inputs: Tensors
    outputs: Tensors
    nodes: list[onnx.NodeProto]
    constants: dict[str, Any]
    options: dict[str, Any]

    def proto(self) -> onnx.ModelProto:
        ends = [
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in tensors.items()]
            for tensors in (self.inputs, self.outputs)
        ]
        constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "ends", *ends, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)

    def frames(self, count: int) -> list[dict[str, Array]]:
        rng, found = np.random.default_rng(3), []
        for _ in range(count):
            frame = {}
            for name, (kind, shape) in self.inputs.items():
                dtype = helper.tensor_dtype_to_np_dtype(kind)
                if dtype.kind == "f":
                    frame[name] = (rng.integers(-60, 60, shape) / 8).astype(dtype)
                else:
                    info = np.iinfo(dtype)
                    frame[name] = rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
            found.append(frame)
        return found


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs, **attributes)


def quantized(x: str, scale: str, zero: str, made: str) -> list[onnx.NodeProto]:
    return [
        node("QuantizeLinear", f"{x} {scale} {zero}", f"{made}_q"),
        node("DequantizeLinear", f"{made}_q {scale} {zero}", made),
    ]


def inner_output() -> Case:
    """A sum, and a pool of it: both are outputs."""
    nodes = [node("Add", "a b", "s"), node("MaxPool", "s", "p", kernel_shape=[2, 2])]
    image, pooled = [1, 2, 4, 4], [1, 2, 3, 3]
    return Case({"a": (INT8, image), "b": (INT8, image)}, {"s": (INT8, image), "p": (INT8, pooled)}, nodes, {}, {})


def unlike_types() -> Case:
    """A float input behind a quantizer and an image of bytes, of other shapes; float and integer outputs."""
    nodes = [
        *quantized("x", "s", "z", "xd"),
        node("DequantizeLinear", "u su zu", "ud"),
        node("Flatten", "ud", "uf"),
        node("Concat", "xd uf", "c", axis=1),
        *quantized("c", "s", "z", "cd"),
        node("DequantizeLinear", "w s z0", "wd"),
        node("MatMul", "cd wd", "m"),
        *quantized("m", "sm", "z", "y"),
        node("Relu", "y", "r"),
    ]
    rng = np.random.default_rng(5)
    constants = {
        "s": np.float32(0.125),
        "z": np.int8(3),
        "su": np.float32(0.0625),
        "zu": np.uint8(7),
        "z0": np.int8(0),
        "w": rng.integers(-8, 8, (10, 3)).astype(np.int8),
        "sm": np.float32(0.5),
    }
    return Case(
        {"x": (FLOAT, [1, 6]), "u": (UINT8, [1, 2, 2])},
        {"r": (FLOAT, [1, 3]), "cd_q": (INT8, [1, 10]), "y": (FLOAT, [1, 3])},
        nodes,
        constants,
        {},
    )


def three_inputs() -> Case:
    """Three inputs of three types, of which one is passed on as it is."""
    nodes = [
        node("Cast", "a", "aw", to=INT16),
        node("Cast", "b", "bw", to=INT16),
        node("Sub", "aw bw", "d"),
        node("Identity", "c", "e"),
    ]
    small = [1, 5]
    inputs: Tensors = {"a": (INT8, small), "b": (UINT8, small), "c": (INT16, small)}
    return Case(inputs, {"d": (INT16, small), "e": (INT16, small)}, nodes, {}, {})


def fixed_inputs() -> Case:
    """Float inputs without quantizers, whose types are said: a layer each, and what they give together."""
    nodes = [
        node("DequantizeLinear", "w s z0", "wd"),
        node("MatMul", "x wd", "m"),
        node("Add", "m y", "t"),
        *quantized("t", "s2", "z0", "o"),
    ]
    weights = np.random.default_rng(7).integers(-8, 8, (4, 3)).astype(np.int8)
    constants = {"w": weights, "s": np.float32(0.125), "z0": np.int8(0), "s2": np.float32(0.5)}
    inputs: Tensors = {"x": (FLOAT, [1, 4]), "y": (FLOAT, [1, 3])}
    options = {"input": {"x": "fixed:8,5", "": "fixed:10,5"}}
    return Case(inputs, {"o": (FLOAT, [1, 3]), "m": (FLOAT, [1, 3])}, nodes, constants, options)


def floats() -> Case:
    """Two inputs that hardware quantizes, and one output."""
    nodes = [*quantized("x", "s", "z", "xd"), *quantized("y", "s2", "z", "yd"), node("Concat", "xd yd", "c", axis=1)]
    constants = {"s": np.float32(0.125), "s2": np.float32(0.375), "z": np.int8(-3)}
    inputs: Tensors = {"x": (FLOAT, [1, 3]), "y": (FLOAT, [1, 2])}
    return Case(inputs, {"c": (FLOAT, [1, 5])}, nodes, constants, {"input": "float32"})


def one_input() -> Case:
    """One input, two ways from it, an output each; one ends with what only the host does."""
    nodes = [
        *quantized("x", "s", "z", "q"),
        node("Transpose", "q_q", "t", perm=[0, 2, 1]),
        node("MaxPool", "q", "p", kernel_shape=[2]),
        node("Sigmoid", "p", "g"),
    ]
    constants = {"s": np.float32(0.125), "z": np.int8(0)}
    outputs: Tensors = {"t": (INT8, [1, 4, 3]), "g": (FLOAT, [1, 3, 3]), "p": (FLOAT, [1, 3, 3])}
    return Case({"x": (FLOAT, [1, 3, 4])}, outputs, nodes, constants, {})


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f for f in (inner_output, unlike_types, three_inputs, fixed_inputs, floats, one_input)
}
#: Cases that onnxruntime does not run (arithmetic of int16), or runs in fewer bits (products of floats and int8
#: weights).
REFERENCE = {"three_inputs", "fixed_inputs"}
#: Runtimes of `verify` for cases. onnx.reference ends with an error where a NaN becomes an integer, as in inner_output.
ORACLES = {**dict.fromkeys(REFERENCE, "onnx"), "inner_output": "none"}


def outputs_of(case: Case, got: Any) -> dict[str, Array]:
    """By name, also of a single one."""
    return got if isinstance(got, dict) else {next(iter(case.outputs)): got}
