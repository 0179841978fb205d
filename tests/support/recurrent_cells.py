"""Bodies of loops with quantized states, and models of one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_graph import OnnxGraph

Array = Any
#: States and inputs of `elman`.
WIDTH, SIZE = 4, 3


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
        return self.add(
            "DequantizeLinear", [self.add("QuantizeLinear", [name, np.float32(scale), zero]), np.float32(scale), zero]
        )

    def graph(self, before: list[onnx.ValueInfoProto], outputs: list[str], more: list[onnx.NodeProto] = []) -> Any:  # noqa: B006
        inputs = [*before, *(tensor(n) for n in self.states)]
        return helper.make_graph(
            [*self.nodes, *more],
            "body",
            [*inputs, *(tensor(n) for n in self.parts)],
            [tensor(n) for n in outputs],
            self.constants,
        )


def model_of(
    nodes: list[onnx.NodeProto], constants: dict[str, Array], shape: Any, output: Any, opset: int = 17
) -> onnx.ModelProto:
    values = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "net", [tensor("x", shape)], [tensor("y", output)], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def random_scan(seed: int) -> onnx.ModelProto:
    """One or two states, the sequence along axis 0 or 1, either direction, scanned once or twice; one output is
    used.
    """
    rng = np.random.default_rng(seed)
    steps, size, width, states = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3, int(rng.integers(1, 3))
    scanned = int(rng.integers(1, 3))
    axis = int(rng.integers(0, 2))
    cell = Cell(seed, [size] * scanned, states, width)
    outputs = [*cell.ends, *[f"o{n}" for n in range(states)]]
    body = cell.graph([], outputs, [helper.make_node("Identity", [e], [f"o{n}"]) for n, e in enumerate(cell.ends)])
    shape = [steps, 1, size] if axis == 0 else [1, steps, size]
    used = int(rng.integers(0, 2 * states))
    names = ["y" if n == used else f"y{n}" for n in range(2 * states)]
    out_axes = rng.integers(-3, 3, states).tolist()
    scan = helper.make_node(
        "Scan",
        [f"s{n}" for n in range(states)] + ["x"] * scanned,
        names,
        name="scan",
        body=body,
        num_scan_inputs=scanned,
        scan_input_axes=[axis - int(rng.integers(0, 2)) * 3 for _ in range(scanned)],
        scan_input_directions=rng.integers(0, 2, scanned).tolist(),
        scan_output_axes=out_axes,
        scan_output_directions=rng.integers(0, 2, states).tolist(),
    )
    constants = {f"s{n}": (rng.integers(-16, 16, (1, width)) / 16).astype(np.float32) for n in range(states)}
    return model_of([scan], constants, shape, None)


def loop(cond: Any, count: Any, computed: bool = False, last: int | None = None) -> onnx.ModelProto:
    """A state and one stacked output; the body's own condition is constant, false in step `last`, or made of the
    state.
    """
    cell = Cell(4, [], 1, 3)
    more = [helper.make_node("Identity", ["going"], ["again"]), helper.make_node("Identity", [cell.ends[0]], ["o"])]
    if last is not None:
        more[0] = helper.make_node("Less", ["t", cell.const(np.int64(last), np.int64)], ["again"])
    if computed:
        more[0] = helper.make_node("Greater", ["top", "zero"], ["again"])
        more += [
            helper.make_node("ReduceMax", [cell.ends[0]], ["top"], keepdims=0),
            helper.make_node("Constant", [], ["zero"], value_float=0.0),
        ]
        more = [more[2], more[3], more[0], more[1]]
    ends = [tensor("t", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL)]
    body = cell.graph(ends, ["again", cell.ends[0], "o"], more)
    body.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    inputs = ["" if count is None else "n", "" if cond is None else "c", "x"]
    constants = {k: v for k, v in (("n", count), ("c", cond)) if v is not None}
    node = helper.make_node("Loop", inputs, ["last", "y"], name="loop", body=body)
    return model_of([node], {k: np.asarray(v) for k, v in constants.items()}, [1, 3], None)


def elman(steps: int, seed: int = 0, last: bool = False) -> onnx.ModelProto:
    """h' = quantize(W x + U h + b) in a Scan; its outputs, or the last state in front of a layer."""
    rng = np.random.default_rng(seed)
    g = Cell(seed, [], 0, WIDTH)
    total = ""
    for name, size in (("h", WIDTH), ("x0", SIZE)):
        codes = g.const(rng.integers(-8, 8, (size, WIDTH)), np.int8)
        weight = g.add("DequantizeLinear", [codes, np.float32(0.125), g.const(np.int8(0), np.int8)])
        product = g.add("MatMul", [g.coded(name, 0.0625), weight])
        total = g.add("Add", [total, product]) if total else product
    end = g.coded(g.add("Add", [total, (rng.integers(-8, 8, WIDTH) / 32).astype(np.float32)]), 0.0625)
    body = helper.make_graph(
        [*g.nodes, helper.make_node("Identity", [end], ["o"])],
        "body",
        [tensor("h"), tensor("x0")],
        [tensor(end), tensor("o")],
        g.constants,
    )
    names = ["y0", "y"] if not last else ["state", "y1"]
    nodes = [helper.make_node("Scan", ["h0", "x"], names, name="scan", body=body, num_scan_inputs=1)]
    constants: dict[str, Any] = {"h0": (rng.integers(-16, 16, (1, WIDTH)) / 16).astype(np.float32)}
    if last:
        constants |= {"w": rng.integers(-8, 8, (WIDTH, 2)).astype(np.int8), "s": np.float32(0.125), "z": np.int8(0)}
        nodes += [
            helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
            helper.make_node("MatMul", ["state", "wd"], ["y"]),
        ]
    return model_of(nodes, constants, [steps, 1, SIZE], None)
