"""A loop whose body stays one: the steps become rows of its tensors, and what a step leaves to the next one is a state.

Where a tensor of a step has the shape (1, ...), that of all steps has (steps, ...), and the nodes are the same. That holds
for nodes which work on each row alone, as a batch goes through them. In front of the body stands a `Previous` for each
state, and a `State` behind the quantizer that makes it.
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

#: The domain of nodes that stand for states, and their operators.
DOMAIN, PREVIOUS, STATE = "hlsgen_pattern", "Previous", "State"
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear", "Quant", "IntQuant")
#: Operators that work on each element, those of two operands included.
_ELEMENTS = frozenset(
    [
        *_QUANTIZERS, "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Min", "Max", "Clip", "Relu", "LeakyRelu", "Sigmoid", "Tanh",
        "HardSigmoid", "HardSwish", "Elu", "Selu", "Softsign", "Softplus", "Gelu", "Erf", "Exp", "Identity", "Cast", "QLinearAdd",
        "QLinearMul",
    ]
)  # fmt: skip
#: Products, with the number of the input that has the weights, and of those after which a bias may come.
_PRODUCTS = {"MatMul": (1, 2), "Gemm": (1, 2), "QLinearMatMul": (3, 8), "QGemm": (3, 6), "MatMulIntegerToFloat": (1, 6)}


@dataclass(frozen=True)
class Loop:
    """A loop of fixed steps, in order.

    scanned   tensors of which step t takes row t, and the number of the axis
    states    the initial ones
    body      nodes and results for these names of the inputs: states, then parts; results likewise
    """

    steps: int
    scanned: tuple[tuple[str, int], ...]
    states: tuple[str, ...]
    body: Callable[[list[str], list[str]], tuple[list[onnx.NodeProto], list[str]]]


def once(node: Expansion, loop: Loop, outputs: list[str], axes: list[int]) -> Iterator[Part]:
    """The body for all steps at once, and the outputs of the loop: last states, then results one along these axes.

    Raises HG010 where that is not what the steps one by one are.
    """
    if loop.steps < 2:
        raise not_once(node, "a loop of one step.")
    initial = [node.constant(state) for state in loop.states]
    if not all(initial):
        raise not_once(node, "an initial state is computed.")
    parts, constants, nodes = [], {}, list[onnx.NodeProto]()
    for n, (source, axis) in enumerate(loop.scanned):
        shape = node.shape(source)
        rest = (*shape[:axis], *shape[axis + 1 :])
        if any(size != 1 for size in shape[:axis]) or len(rest) < 2 or rest[0] != 1:
            raise not_once(node, f"{source!r} has {list(rest)} elements a step, not [1, ...].")
        parts.append(f"{node.name}/scanned {n}")
        constants[f"{parts[-1]} shape"] = Const(np.array([loop.steps, *rest[1:]], np.int64))
        nodes.append(helper.make_node("Reshape", [source, f"{parts[-1]} shape"], [parts[-1]], name=parts[-1]))
    before = [f"{node.name}/state {n}" for n in range(len(initial))]
    body, results = loop.body(before, parts)
    fixed, body = _apart(_with_states(node, body, results, len(before)), {*parts, *before})
    yield Part(fixed, constants, [o for one in fixed for o in one.output])
    _check(node, body, {*parts, *before})
    early, late = _apart(body, set(before))
    trigger, made = _codes(early, parts)
    for n, state in enumerate(before):
        quantized = _quantized(node, body, results[n], loop.states[n], f"{state} initial")
        made += quantized
        attrs = {"state": results[n], "name": state, "domain": DOMAIN}
        made.append(helper.make_node(PREVIOUS, [trigger, quantized[-1].output[0], loop.states[n]], [state], **attrs))
    yield Part([*nodes, *early, *made, *late], {}, results)
    for result in results:
        if node.shape(result)[0] != loop.steps:
            raise not_once(node, f"{result} has {list(node.shape(result))} elements, not {loop.steps} rows.")
    yield _ends(node, loop, results, outputs, axes)


def _ends(node: Expansion, loop: Loop, results: list[str], outputs: list[str], axes: list[int]) -> Part:
    """Each output stands for all states: also for those that nothing but the next step takes."""
    last, count = f"{node.name}/last", len(loop.states)
    nodes, constants = [], {last: Const(np.array([loop.steps - 1], np.int64))}
    for n, (result, output) in enumerate(zip(results, outputs, strict=True)):
        if not output:
            continue
        name = f"{node.name}/{output}"
        together = [result, *(state for state in results[:count] if state != result)]
        attrs = {"name": f"{name} states", "domain": DOMAIN, "state": ""}
        nodes.append(helper.make_node(STATE, together, [f"{name} states"], **attrs))
        if n < count:
            nodes.append(helper.make_node("Gather", [f"{name} states", last], [output], name=name, axis=0))
            continue
        _, *rest = node.shape(result)
        axis = axes[n - count] % (len(rest) + 2)
        if axis > 1:
            raise not_once(node, f"its outputs are put together along axis {axes[n - count]}.")
        shape = [loop.steps, 1, *rest] if axis == 0 else [1, loop.steps, *rest]
        constants[f"{name} shape"] = Const(np.array(shape, np.int64))
        nodes.append(helper.make_node("Reshape", [f"{name} states", f"{name} shape"], [output], name=name))
    return Part(nodes, constants)


def _with_states(
    node: Expansion, body: Sequence[onnx.NodeProto], results: list[str], states: int
) -> list[onnx.NodeProto]:  # fmt: skip
    """The nodes, with a State behind the quantizer of each state; `results` of states get the names of these."""
    nodes = list(body)
    for n in range(states):
        made = {o: i for i, one in enumerate(nodes) for o in one.output}
        while results[n] in made and nodes[made[results[n]]].op_type == "Identity":
            results[n] = nodes[made[results[n]]].input[0]
        at = made.get(results[n], -1)
        if at < 0 or nodes[at].op_type not in _QUANTIZERS[1:] or results[n] in results[:n]:
            raise not_once(node, f"state {n} is not made by a quantizer of its own.")
        raw = f"{results[n]} raw"
        nodes[at].output[0] = raw
        attrs = {"state": results[n], "name": results[n], "domain": DOMAIN}
        nodes.insert(at + 1, helper.make_node(STATE, [raw], [results[n]], **attrs))
    for n in range(states, len(results)):
        if results[n] not in {o for one in nodes for o in one.output}:
            raise not_once(node, f"output {n - states} of the body is no result of a node.")
    return nodes


def _quantized(
    node: Expansion, body: Sequence[onnx.NodeProto], state: str, initial: str, name: str
) -> list[onnx.NodeProto]:  # fmt: skip
    """The initial state through the quantizer of the state: the same numbers, and what they are codes of."""
    made = {o: one for one in body for o in one.output}
    chain = [made[f"{state} raw"]]
    if chain[0].op_type == "DequantizeLinear":
        chain.insert(0, made.get(chain[0].input[0], onnx.NodeProto()))
    if chain[0].op_type not in ("QuantizeLinear", "Quant", "IntQuant"):
        raise not_once(node, f"{state} is not made by a quantizer.")
    found: list[onnx.NodeProto] = []
    for n, one in enumerate(chain):
        copy = onnx.NodeProto()
        copy.CopyFrom(one)
        copy.name, copy.input[0], copy.output[0] = (
            f"{name} {n}",
            found[-1].output[0] if found else initial,
            f"{name} {n}",
        )
        found.append(copy)
    return found


def _apart(body: Sequence[onnx.NodeProto], before: set[str]) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """(nodes that take nothing of these tensors, those that do), each in order."""
    early, late, known = [], [], set(before)
    for one in body:
        if known.isdisjoint(one.input):
            early.append(one)
        else:
            late.append(one)
            known.update(one.output)
    return early, late


def _codes(early: Sequence[onnx.NodeProto], parts: Sequence[str]) -> tuple[str, list[onnx.NodeProto]]:
    """(a tensor that stands for codes and is made of the data of each step alone, nodes that it needs besides); the data
    itself if there is none."""
    known, quantizer = set(parts), None
    for one in early:
        if not known.isdisjoint(one.input):
            if one.op_type in _QUANTIZERS[1:]:
                return str(one.output[0]), []
            quantizer = one if quantizer is None and one.op_type == _QUANTIZERS[0] else quantizer
            known.update(one.output)
    if quantizer is None:
        return parts[0], []
    name = f"{quantizer.output[0]} dequantized"
    return name, [helper.make_node("DequantizeLinear", [quantizer.output[0], *quantizer.input[1:]], [name], name=name)]


def _check(node: Expansion, body: Sequence[onnx.NodeProto], rows: set[str]) -> None:
    """Whether every node works on each of the rows alone; what they take beside these is imported."""
    rows = set(rows)
    for one in body:
        attrs, op = attributes(one), one.op_type
        if op not in _ELEMENTS | _PRODUCTS.keys() | {STATE, "Split", "Concat"} or any(
            a.HasField("g") for a in one.attribute
        ):
            raise not_once(node, f"{op} is in its body.")
        weights, bias = _PRODUCTS.get(op, (0, 0))
        if op in _PRODUCTS and (one.input[weights] in rows or attrs.get("transA")):
            raise not_once(node, f"{op} of two computed tensors is in its body.")
        if op in ("Split", "Concat") and int(str(attrs.get("axis", 0))) not in (1, -1):
            raise not_once(node, f"{op} along axis {attrs.get('axis', 0)} is in its body.")
        if op == "Concat" and not rows.issuperset(one.input):
            raise not_once(node, "Concat of a constant is in its body.")
        operands = one.input[bias : bias + 1] if op in _PRODUCTS else [] if op in ("Split", "Concat") else one.input
        for name in sorted({*operands} - rows - {""}):
            shape = node.shape(name)
            by_row = op.endswith("Linear") and math.prod(shape) > 1 and attrs.get("axis", 1) == 0
            if by_row or (len(shape) > 1 and shape[0] != 1):
                raise not_once(node, f"{name!r}, which {op} takes beside a step, has a value for each row.")
        rows.update(one.output)


def not_once(node: Expansion, why: str) -> HlsgenError:
    return fail("HG010", node.name, f"its steps do not become one body: {why}", "Build with --recurrence unrolled.")
