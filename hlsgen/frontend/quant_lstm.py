"""QuantLSTMCell of QONNX: Brevitas' QuantLSTM as one node, a layer of one direction over a complete sequence.

Each step becomes the nodes that Brevitas computes, in its order:

    i, f, o = quantize(sigmoid(quantize((x W^T + h R^T) + bias)))       g likewise, with tanh
    c = quantize(quantize(f * c) + quantize(i * g))                     the same quantizer three times
    h = quantize(o * quantize(tanh(c)))

If the gates are coupled (attribute cifg), f is quantize(1) - i, by the quantizer after the sigmoid of i.
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
from hlsgen.frontend.shared_loop_body import Loop, not_shared, shared_body

#: The operator.
QUANT_LSTM = "QuantLSTMCell"
#: The inputs: tensors, then a scale, a zero point and a bit width for each quantizer.
_TENSORS = (
    "x",
    "hidden",
    "cell",
    "weight_ii",
    "weight_if",
    "weight_ic",
    "weight_io",
    "weight_hi",
    "weight_hf",
    "weight_hc",
    "weight_ho",
    "bias_i",
    "bias_f",
    "bias_c",
    "bias_o",
)
_QUANTIZERS = (
    "output",
    "cell_state",
    "input_acc",
    "forget_acc",
    "cell_acc",
    "output_acc",
    "input_sigmoid",
    "forget_sigmoid",
    "cell_tanh",
    "output_sigmoid",
    "hidden_state_tanh",
)
_COUNT = len(_TENSORS) + 3 * len(_QUANTIZERS)
#: By gate: its letter in the names of tensors, the quantizer of its sum, the quantizer after its activation.
_GATES = {
    "input": ("i", "input_acc", "input_sigmoid"),
    "forget": ("f", "forget_acc", "forget_sigmoid"),
    "cell": ("c", "cell_acc", "cell_tanh"),
    "output": ("o", "output_acc", "output_sigmoid"),
}


@dataclass
class _Cell:
    """One step of the cell.

    node    the node that is expanded
    tensor  the node's tensors, by the names in `_TENSORS`
    attrs   the node's attributes
    prefix  prefix of all names in the step
    nodes   nodes of the step, in order
    """

    node: Expansion
    tensor: dict[str, str]
    attrs: dict[str, object]
    prefix: str
    nodes: list[onnx.NodeProto]

    def add(self, op: str, inputs: list[str], name: str, **attrs: Any) -> str:
        """Add a node, of QONNX if it is Quant, else of ONNX; returns the name of its output."""
        full_name = f"{self.prefix}/{name}"
        domain = self.node.proto.domain if op == "Quant" else ""
        self.nodes.append(helper.make_node(op, inputs, [full_name], name=full_name, domain=domain, **attrs))
        return full_name

    def quantized(self, tensor: str, quantizer: str, name: str) -> str:
        """Add the quantization of a tensor; returns the name of the result."""
        at = len(_TENSORS) + 3 * _QUANTIZERS.index(quantizer)
        parameters = list(self.node.proto.input[at : at + 3])
        # Brevitas calls one of these attributes narrow_range.
        narrow = self.attrs.get(f"{quantizer}_narrow", self.attrs.get(f"{quantizer}_narrow_range", 0))
        signed, mode = self.attrs.get(f"{quantizer}_signed", 1), self.attrs.get(f"{quantizer}_rounding_mode", "ROUND")
        return self.add("Quant", [tensor, *parameters], name, signed=signed, narrow=narrow, rounding_mode=mode)

    def gate(self, gate: str, x: str, hidden: str) -> str:
        """Add the nodes of a gate; returns the name of its result."""
        letter, sum_quantizer, activation_quantizer = _GATES[gate]
        products = [
            self.add("MatMul", [data, f"{self.node.name}/{weight}_{letter}"], f"{gate}_{weight}")
            for data, weight in ((x, "weight_i"), (hidden, "weight_h"))
        ]
        total = self.add("Add", products, f"{gate}_products")
        total = self.add("Add", [total, self.tensor[f"bias_{letter}"]], f"{gate}_sum")
        total = self.quantized(total, sum_quantizer, f"{gate}_acc")
        activation = self.add("Tanh" if gate == "cell" else "Sigmoid", [total], f"{gate}_activation")
        return self.quantized(activation, activation_quantizer, f"{gate}_gate")

    def step(self, x: str, hidden: str, cell: str) -> tuple[str, str]:
        """Add the nodes of the step; returns the names of (hidden state, cell state) after it."""
        i = self.gate("input", x, hidden)
        if self.attrs.get("cifg", 0):
            quantized_one = self.quantized(f"{self.node.name}/one", "input_sigmoid", "one")
            f = self.add("Sub", [quantized_one, i], "forget_gate")
        else:
            f = self.gate("forget", x, hidden)
        g, o = self.gate("cell", x, hidden), self.gate("output", x, hidden)
        forgotten = self.quantized(self.add("Mul", [f, cell], "kept_product"), "cell_state", "kept")
        added = self.quantized(self.add("Mul", [i, g], "added_product"), "cell_state", "added")
        cell = self.quantized(self.add("Add", [forgotten, added], "state_sum"), "cell_state", "state")
        tanh = self.quantized(self.add("Tanh", [cell], "state_activation"), "hidden_state_tanh", "state_tanh")
        return self.quantized(self.add("Mul", [o, tanh], "hidden_product"), "output", "hidden"), cell


def quant_lstm(node: Expansion) -> Iterator[Part]:
    """The nodes of every step. Raises HG012, HG013, HG014."""
    proto, name, attrs = node.proto, node.name, attributes(node.proto)
    if len(proto.input) != _COUNT or not all(proto.input) or len(proto.output) > 3:
        raise fail(
            "HG014",
            name,
            f"{QUANT_LSTM} has {len(proto.input)} inputs and {len(proto.output)} outputs, or an empty input.",
            f"Export it with Brevitas: it has {_COUNT} inputs, all present, and at most 3 outputs.",
        )
    tensor = dict(zip(_TENSORS, proto.input, strict=False))
    shape, axis = node.shape(tensor["x"]), int(bool(attrs.get("batch_first", 0)))
    if len(shape) != 3 or len(node.shape(tensor["hidden"])) != 2 or len(node.shape(tensor["cell"])) != 2:
        text = f"data of shape {list(shape)}, states of shapes {list(node.shape(tensor['hidden']))} and "
        text += f"{list(node.shape(tensor['cell']))}."
        raise fail("HG013", name, text, "The data needs three axes, a state two: batch and elements.")
    yield _weights(name, tensor)
    ends = [*proto.output, *[""] * (3 - len(proto.output))]
    if node.once:
        yield from _shared(node, tensor, attrs, axis, ends)
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
        stack_nodes, constants = stack_of(node, parts, ends[0], axis, f"{name}/{ends[0]}")
        nodes += stack_nodes
    yield Part(nodes, constants)


def _shared(
    node: Expansion, tensor: dict[str, str], attrs: dict[str, object], axis: int, ends: list[str]
) -> Iterator[Part]:
    """One body for all steps. Raises HG010."""
    if attrs.get("reverse_input", 0):
        raise not_shared(node, "it runs backwards (reverse_input).")

    def body(states: list[str], parts: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        step = _Cell(node, tensor, attrs, f"{node.name}[]", [])
        hidden, cell = step.step(parts[0], states[0], states[1])
        return step.nodes, [hidden, cell, hidden]

    loop = Loop(node.shape(tensor["x"])[axis], ((tensor["x"], axis),), (tensor["hidden"], tensor["cell"]), body)
    yield from shared_body(node, loop, [*ends[1:], ends[0]], [axis])


def _weights(name: str, tensor: dict[str, str]) -> Part:
    """The weights of all gates, transposed for MatMul, and the constant one."""
    pairs = [
        (tensor[f"weight_{operand}{letter}"], f"{name}/weight_{operand}_{letter}")
        for operand in "ih"
        for letter, *_ in _GATES.values()
    ]
    nodes = [
        helper.make_node("Transpose", [weight], [transposed], name=transposed, perm=[1, 0])
        for weight, transposed in pairs
    ]
    constants = {f"{name}/one": Const(np.ones((1, 1), np.float32))}
    return Part(nodes, constants, [transposed for _, transposed in pairs])
