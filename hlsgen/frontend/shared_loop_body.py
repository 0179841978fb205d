"""Import of a loop with one body for all steps: the steps become rows of its tensors.

A tensor of shape (1, ...) in one step has the shape (steps, ...) for all steps, and the nodes are the same. This
needs nodes that compute each row alone, like a batch. The loop-carried values are states: each has a `Previous`
before the body, and a `State` after the quantizer that computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.constant_folding import Const, attributes
from hlsgen.frontend.expansion import Expansion, Part

#: The domain of the nodes of states, and their operators.
DOMAIN, PREVIOUS, STATE = "hlsgen_pattern", "Previous", "State"
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear", "Quant", "IntQuant")
#: Operators that compute each element alone, of one or two operands.
_ELEMENTS = frozenset(
    [
        *_QUANTIZERS,
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Neg",
        "Abs",
        "Min",
        "Max",
        "Clip",
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "HardSigmoid",
        "HardSwish",
        "Elu",
        "Selu",
        "Softsign",
        "Softplus",
        "Gelu",
        "Erf",
        "Exp",
        "Identity",
        "Cast",
        "QLinearAdd",
        "QLinearMul",
    ]
)
#: Products, with the number of the weights' input, and the number of the bias's input.
_PRODUCTS = {"MatMul": (1, 2), "Gemm": (1, 2), "QLinearMatMul": (3, 8), "QGemm": (3, 6), "MatMulIntegerToFloat": (1, 6)}


@dataclass(frozen=True)
class Loop:
    """A loop with a fixed number of steps, in ascending order.

    scanned   (tensor, axis): step t uses element t along the axis
    states    names of the initial states
    body      from names of states and of scanned elements to (nodes, results); states come first in the results
    """

    steps: int
    scanned: tuple[tuple[str, int], ...]
    states: tuple[str, ...]
    body: Callable[[list[str], list[str]], tuple[list[onnx.NodeProto], list[str]]]


def shared_body(node: Expansion, loop: Loop, outputs: list[str], axes: list[int]) -> Iterator[Part]:
    """The body for all steps at once, and the loop's outputs: last states, then results stacked along `axes`.

    Raises HG010 if the body does not compute each row alone.
    """
    if loop.steps < 2:
        raise not_shared(node, "the loop has one step.")
    initial = [node.constant(state) for state in loop.states]
    if not all(initial):
        raise not_shared(node, "an initial state is computed from the model's input.")
    parts, constants, nodes = [], {}, list[onnx.NodeProto]()
    for n, (source, axis) in enumerate(loop.scanned):
        shape = node.shape(source)
        step_shape = (*shape[:axis], *shape[axis + 1 :])
        if any(size != 1 for size in shape[:axis]) or len(step_shape) < 2 or step_shape[0] != 1:
            raise not_shared(node, f"{source!r} has the shape {list(step_shape)} in a step, not [1, ...].")
        parts.append(f"{node.name}/scanned {n}")
        constants[f"{parts[-1]} shape"] = Const(np.array([loop.steps, *step_shape[1:]], np.int64))
        nodes.append(helper.make_node("Reshape", [source, f"{parts[-1]} shape"], [parts[-1]], name=parts[-1]))
    previous = [f"{node.name}/state {n}" for n in range(len(initial))]
    body, results = loop.body(previous, parts)
    constant_nodes, body = _split_by_use(_with_states(node, body, results, len(previous)), {*parts, *previous})
    yield Part(constant_nodes, constants, [o for inner in constant_nodes for o in inner.output])
    _check(node, body, {*parts, *previous})
    early, late = _split_by_use(body, set(previous))
    trigger, state_nodes = _codes(early, parts)
    for n, state in enumerate(previous):
        quantized = _quantized(node, body, results[n], loop.states[n], f"{state} initial")
        inputs = [trigger, quantized[-1].output[0], loop.states[n]]
        attrs = {"state": results[n], "name": state, "domain": DOMAIN}
        state_nodes += [*quantized, helper.make_node(PREVIOUS, inputs, [state], **attrs)]
    yield Part([*nodes, *early, *state_nodes, *late], {}, results)
    for result in results:
        if node.shape(result)[0] != loop.steps:
            raise not_shared(node, f"{result!r} has the shape {list(node.shape(result))}, not {loop.steps} rows.")
    yield _ends(node, loop, results, outputs, axes)


def _ends(node: Expansion, loop: Loop, results: list[str], outputs: list[str], axes: list[int]) -> Part:
    """The outputs of the loop. Each depends on all states, so that states used only by the next step are kept."""
    last, count = f"{node.name}/last", len(loop.states)
    nodes, constants = [], {last: Const(np.array([loop.steps - 1], np.int64))}
    for n, (result, output) in enumerate(zip(results, outputs, strict=True)):
        if not output:
            continue
        name = f"{node.name}/{output}"
        state_inputs = [result, *(state for state in results[:count] if state != result)]
        attrs = {"name": f"{name} states", "domain": DOMAIN, "state": ""}
        nodes.append(helper.make_node(STATE, state_inputs, [f"{name} states"], **attrs))
        if n < count:
            nodes.append(helper.make_node("Gather", [f"{name} states", last], [output], name=name, axis=0))
            continue
        _, *row_shape = node.shape(result)
        axis = axes[n - count] % (len(row_shape) + 2)
        if axis > 1:
            raise not_shared(node, f"its outputs are stacked along axis {axes[n - count]}.")
        shape = [loop.steps, 1, *row_shape] if axis == 0 else [1, loop.steps, *row_shape]
        constants[f"{name} shape"] = Const(np.array(shape, np.int64))
        nodes.append(helper.make_node("Reshape", [f"{name} states", f"{name} shape"], [output], name=name))
    return Part(nodes, constants)


def _with_states(
    node: Expansion, body: Sequence[onnx.NodeProto], results: list[str], states: int
) -> list[onnx.NodeProto]:
    """The nodes with a State after the quantizer of each state; `results` of states get the names of the States."""
    nodes = list(body)
    for n in range(states):
        producer = {o: i for i, inner in enumerate(nodes) for o in inner.output}
        while results[n] in producer and nodes[producer[results[n]]].op_type == "Identity":
            results[n] = nodes[producer[results[n]]].input[0]
        at = producer.get(results[n], -1)
        if at < 0 or nodes[at].op_type not in _QUANTIZERS[1:] or results[n] in results[:n]:
            raise not_shared(node, f"state {n} is not computed by a quantizer of its own.")
        raw = f"{results[n]} raw"
        nodes[at].output[0] = raw
        attrs = {"state": results[n], "name": results[n], "domain": DOMAIN}
        nodes.insert(at + 1, helper.make_node(STATE, [raw], [results[n]], **attrs))
    for n in range(states, len(results)):
        if results[n] not in {o for inner in nodes for o in inner.output}:
            raise not_shared(node, f"output {n - states} of the body is computed by no node of it.")
    return nodes


def _quantized(
    node: Expansion, body: Sequence[onnx.NodeProto], state: str, initial: str, name: str
) -> list[onnx.NodeProto]:
    """Copies of the state's quantizer for the initial state, which keep its numbers and give it codes."""
    producer = {o: inner for inner in body for o in inner.output}
    chain = [producer[f"{state} raw"]]
    if chain[0].op_type == "DequantizeLinear":
        chain.insert(0, producer.get(chain[0].input[0], onnx.NodeProto()))
    if chain[0].op_type not in ("QuantizeLinear", "Quant", "IntQuant"):
        raise not_shared(node, f"{state!r} is not computed by a quantizer.")
    copies: list[onnx.NodeProto] = []
    for n, quantizer in enumerate(chain):
        copy = onnx.NodeProto()
        copy.CopyFrom(quantizer)
        copy.name = f"{name} {n}"
        copy.input[0] = copies[-1].output[0] if copies else initial
        copy.output[0] = f"{name} {n}"
        copies.append(copy)
    return copies


def _split_by_use(
    body: Sequence[onnx.NodeProto], tensors: set[str]
) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """(nodes that do not depend on `tensors`, nodes that do), each in order."""
    independent, dependent, reached = [], [], set(tensors)
    for inner in body:
        if reached.isdisjoint(inner.input):
            independent.append(inner)
        else:
            dependent.append(inner)
            reached.update(inner.output)
    return independent, dependent


def _codes(early: Sequence[onnx.NodeProto], parts: Sequence[str]) -> tuple[str, list[onnx.NodeProto]]:
    """(a tensor with codes that depends only on the data of each step, nodes to be added for it).

    The tensor is the data itself if no node of `early` quantizes it.
    """
    reached, quantizer = set(parts), None
    for inner in early:
        if not reached.isdisjoint(inner.input):
            if inner.op_type in _QUANTIZERS[1:]:
                return str(inner.output[0]), []
            quantizer = inner if quantizer is None and inner.op_type == _QUANTIZERS[0] else quantizer
            reached.update(inner.output)
    if quantizer is None:
        return parts[0], []
    name = f"{quantizer.output[0]} dequantized"
    return name, [helper.make_node("DequantizeLinear", [quantizer.output[0], *quantizer.input[1:]], [name], name=name)]


def _check(node: Expansion, body: Sequence[onnx.NodeProto], rows: set[str]) -> None:
    """Check that every node computes each row alone. Its other inputs are imported already. Raises HG010."""
    rows = set(rows)
    for inner in body:
        attrs, op = attributes(inner), inner.op_type
        supported = op in _ELEMENTS or op in _PRODUCTS or op in (STATE, "Split", "Concat")
        if not supported or any(a.HasField("g") for a in inner.attribute):
            raise not_shared(node, f"its body contains {op}.")
        weights, bias = _PRODUCTS.get(op, (0, 0))
        if op in _PRODUCTS and (inner.input[weights] in rows or attrs.get("transA")):
            raise not_shared(node, f"its body contains {op} of two computed tensors, or with transA.")
        if op in ("Split", "Concat") and int(str(attrs.get("axis", 0))) not in (1, -1):
            raise not_shared(node, f"its body contains {op} along axis {attrs.get('axis', 0)}.")
        if op == "Concat" and not rows.issuperset(inner.input):
            raise not_shared(node, "its body contains Concat of a constant.")
        operands = inner.input[bias : bias + 1] if op in _PRODUCTS else [] if op in ("Split", "Concat") else inner.input
        for name in sorted({*operands} - rows - {""}):
            shape = node.shape(name)
            by_row = op.endswith("Linear") and math.prod(shape) > 1 and attrs.get("axis", 1) == 0
            if by_row or (len(shape) > 1 and shape[0] != 1):
                raise not_shared(node, f"{name!r}, an operand of {op}, has a value for each row.")
        rows.update(inner.output)


def not_shared(node: Expansion, reason: str) -> HlsgenError:
    """HG010 for a loop whose steps cannot share one body."""
    text = f"the steps of the loop cannot share one body: {reason}"
    return fail("HG010", node.name, text, "Build with --recurrence unrolled.")
