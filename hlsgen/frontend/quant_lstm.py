"""QuantLSTMCell of QONNX: Brevitas' QuantLSTM as one node, a layer of one direction over a whole sequence.

Each step becomes the nodes that Brevitas computes, in its order:

    i, f, o = quantize(sigmoid(quantize((x W^T + h R^T) + bias)))       g likewise, with tanh
    c = quantize(quantize(f * c) + quantize(i * g))                     the same quantizer three times
    h = quantize(o * quantize(tanh(c)))

With coupled gates (`cifg`) f is quantize(1) - i, by the quantizer behind the sigmoid of i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const, attributes
from hlsgen.frontend.expansion import Expansion, Part, renamed, stack_of
from hlsgen.frontend.loop_once import Loop, not_once, once

#: The operator.
QUANT_LSTM = "QuantLSTMCell"
#: Inputs before the quantizers, and the quantizers, of which each has a scale, a zero point and a number of bits.
_TENSORS = (
    "x", "hidden", "cell", "weight_ii", "weight_if", "weight_ic", "weight_io",
    "weight_hi", "weight_hf", "weight_hc", "weight_ho", "bias_i", "bias_f", "bias_c", "bias_o",
)  # fmt: skip
_QUANTIZERS = (
    "output", "cell_state", "input_acc", "forget_acc", "cell_acc", "output_acc",
    "input_sigmoid", "forget_sigmoid", "cell_tanh", "output_sigmoid", "hidden_state_tanh",
)  # fmt: skip
_COUNT = len(_TENSORS) + 3 * len(_QUANTIZERS)
#: Of each gate: its letter in the names of tensors, the quantizer of its sum, and that behind its activation.
_GATES = {
    "input": ("i", "input_acc", "input_sigmoid"),
    "forget": ("f", "forget_acc", "forget_sigmoid"),
    "cell": ("c", "cell_acc", "cell_tanh"),
    "output": ("o", "output_acc", "output_sigmoid"),
}


@dataclass
class _Cell:
    """The node's tensors and attributes, and the nodes of the step so far."""

    node: Expansion
    tensor: dict[str, str]
    attrs: dict[str, object]
    where: str
    nodes: list[onnx.NodeProto]

    def add(self, op: str, inputs: list[str], name: str, **attrs: Any) -> str:
        """The result of a node; of an operator of QONNX if that is Quant."""
        made = f"{self.where}/{name}"
        domain = self.node.proto.domain if op == "Quant" else ""
        self.nodes.append(helper.make_node(op, inputs, [made], name=made, domain=domain, **attrs))
        return made

    def quantized(self, tensor: str, by: str, name: str) -> str:
        at = len(_TENSORS) + 3 * _QUANTIZERS.index(by)
        parameters = list(self.node.proto.input[at : at + 3])
        # One name of Brevitas is not like the others.
        narrow = self.attrs.get(f"{by}_narrow", self.attrs.get(f"{by}_narrow_range", 0))
        signed, mode = self.attrs.get(f"{by}_signed", 1), self.attrs.get(f"{by}_rounding_mode", "ROUND")
        return self.add("Quant", [tensor, *parameters], name, signed=signed, narrow=narrow, rounding_mode=mode)

    def gate(self, gate: str, x: str, hidden: str) -> str:
        letter, summed, activated = _GATES[gate]
        products = [
            self.add("MatMul", [data, f"{self.node.name}/{own}_{letter}"], f"{gate}_{own}")
            for data, own in ((x, "weight_i"), (hidden, "weight_h"))
        ]
        total = self.add("Add", products, f"{gate}_products")
        total = self.add("Add", [total, self.tensor[f"bias_{letter}"]], f"{gate}_sum")
        total = self.quantized(total, summed, f"{gate}_acc")
        curve = self.add("Tanh" if gate == "cell" else "Sigmoid", [total], f"{gate}_activation")
        return self.quantized(curve, activated, f"{gate}_gate")

    def step(self, x: str, hidden: str, cell: str) -> tuple[str, str]:
        """(hidden state, cell state) behind the step."""
        into = self.gate("input", x, hidden)
        if self.attrs.get("cifg", 0):
            one = self.quantized(f"{self.node.name}/one", "input_sigmoid", "one")
            keep = self.add("Sub", [one, into], "forget_gate")
        else:
            keep = self.gate("forget", x, hidden)
        new, out = self.gate("cell", x, hidden), self.gate("output", x, hidden)
        kept = self.quantized(self.add("Mul", [keep, cell], "kept_product"), "cell_state", "kept")
        added = self.quantized(self.add("Mul", [into, new], "added_product"), "cell_state", "added")
        cell = self.quantized(self.add("Add", [kept, added], "state_sum"), "cell_state", "state")
        curve = self.quantized(self.add("Tanh", [cell], "state_activation"), "hidden_state_tanh", "state_tanh")
        return self.quantized(self.add("Mul", [out, curve], "hidden_product"), "output", "hidden"), cell


def quant_lstm(node: Expansion) -> Iterator[Part]:
    """The nodes of every step. Raises HG012, HG013, HG014."""
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    if len(proto.input) != _COUNT or not all(proto.input) or len(proto.output) > 3:
        raise fail(
            "HG014", name, f"{len(proto.input)} inputs and {len(proto.output)} outputs.",
            f"{QUANT_LSTM} as Brevitas exports it has {_COUNT} inputs, all of them given, and 3 outputs.",
        )  # fmt: skip
    tensor = dict(zip(_TENSORS, proto.input, strict=False))
    shape, axis = node.shape(tensor["x"]), int(bool(attrs.get("batch_first", 0)))
    if len(shape) != 3 or len(node.shape(tensor["hidden"])) != 2 or len(node.shape(tensor["cell"])) != 2:
        raise fail(
            "HG013", name, f"data of shape {list(shape)}, states of shapes {list(node.shape(tensor['hidden']))} and "
            f"{list(node.shape(tensor['cell']))}.", "Data has three axes, a state two: batch and elements.",
        )  # fmt: skip
    yield _weights(name, tensor)
    ends = [*proto.output, *[""] * (3 - len(proto.output))]
    if node.once:
        yield from _once(node, tensor, attrs, axis, ends)
        return
    hidden, cell, outputs = tensor["hidden"], tensor["cell"], []
    for t in range(shape[axis]):
        at = shape[axis] - 1 - t if attrs.get("reverse_input", 0) else t
        step = _Cell(node, tensor, attrs, f"{name}[{t}]", [])
        index = f"{name}/index {at}"
        x = step.add("Gather", [tensor["x"], index], "x", axis=axis)
        hidden, cell = step.step(x, hidden, cell)
        yield Part(step.nodes, {index: Const(np.array(at, np.int64))}, [hidden, cell])
        outputs.append(hidden)
    nodes = renamed([hidden, cell], ends[1:], name)
    constants: dict[str, Const] = {}
    if ends[0]:
        parts = outputs[::-1] if attrs.get("reverse_input", 0) else outputs
        made, constants = stack_of(node, parts, ends[0], axis, f"{name}/{ends[0]}")
        nodes += made
    yield Part(nodes, constants)


def _once(
    node: Expansion, tensor: dict[str, str], attrs: dict[str, object], axis: int, ends: list[str]
) -> Iterator[Part]:  # fmt: skip
    if attrs.get("reverse_input", 0):
        raise not_once(node, "it goes back.")

    def body(states: list[str], parts: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        step = _Cell(node, tensor, attrs, f"{node.name}[]", [])
        hidden, cell = step.step(parts[0], states[0], states[1])
        return step.nodes, [hidden, cell, hidden]

    loop = Loop(node.shape(tensor["x"])[axis], ((tensor["x"], axis),), (tensor["hidden"], tensor["cell"]), body)
    yield from once(node, loop, [*ends[1:], ends[0]], [axis])


def _weights(name: str, tensor: dict[str, str]) -> Part:
    """The weights of all gates, columns for rows, as MatMul takes them, and a one."""
    turned = [
        (tensor[f"weight_{own}{letter}"], f"{name}/weight_{own}_{letter}") for own in "ih" for letter, *_ in _GATES.values()
    ]  # fmt: skip
    nodes = [helper.make_node("Transpose", [given], [made], name=made, perm=[1, 0]) for given, made in turned]
    return Part(nodes, {f"{name}/one": Const(np.ones((1, 1), np.float32))}, [made for _, made in turned])
