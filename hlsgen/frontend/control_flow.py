"""Scan, Loop, If and QuantLSTMCell: the nodes of their bodies, in place, once for every step. Attention: its parts.

Hardware has no program counter: a body becomes as many copies as there are steps, and a state is a tensor from one
copy to the next. So the number of steps has to be known, and so has the branch that an If takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor, attributes, check_schema, label
from hlsgen.frontend.domains import MICROSOFT, ONNX, QONNX
from hlsgen.frontend.expansion import Expansion, Part, axis_of, renamed, stack_of
from hlsgen.frontend.initializers import tensor_array
from hlsgen.frontend.loop_once import Loop, not_once, once
from hlsgen.frontend.onnx_graph import captured, graphs_of
from hlsgen.frontend.ops_attention import ATTENTION, MULTI_HEAD, attention, multi_head_attention
from hlsgen.frontend.quant_lstm import QUANT_LSTM, quant_lstm

#: Most nodes that one operator becomes.
MAX_UNROLLED = 20_000
_MORE = "Unroll fewer steps: hardware has a copy of the body for each."


def is_expanded(node: onnx.NodeProto) -> bool:
    """Whether a node stands for many."""
    if node.domain in ONNX:
        return node.op_type in _KINDS
    return (node.op_type == QUANT_LSTM and node.domain in QONNX) or (node.op_type, node.domain) == (
        MULTI_HEAD,
        MICROSOFT,
    )


def expanded(
    proto: onnx.NodeProto, name: str, tensors: Mapping[str, Tensor], opset: int, share: bool
) -> Iterator[Part]:  # fmt: skip
    """What the node becomes, part by part; each part is imported before the next one is asked for.

    Raises HG004, HG010, HG013, HG014, HG020, HG023.
    """
    if proto.domain in QONNX:
        return quant_lstm(Expansion(proto, name, tensors, opset, share))
    if proto.domain == MICROSOFT:
        return multi_head_attention(Expansion(proto, name, tensors, opset))
    if proto.op_type == "Scan" and opset < 9:
        raise fail(
            "HG010", name, "Scan of opset 8, which has a batch of sequences.",
            "Convert the model to opset 9 or newer (onnx.version_converter).",
        )  # fmt: skip
    check_schema(proto, opset)
    return _KINDS[proto.op_type](Expansion(proto, name, tensors, opset, share))


# --------------------------------------------------------------------------- bodies


def _body(node: Expansion, key: str) -> _Body:
    graph = next((a.g for a in node.proto.attribute if a.name == key and a.HasField("g")), None)
    if graph is None:
        raise fail("HG013", node.name, f"attribute {key} is missing or no graph.")
    return _Body(graph, node.name)


class _Body:
    """A graph within a node. Copies get names of their own: those of the node and the step in front."""

    def __init__(self, graph: onnx.GraphProto, owner: str) -> None:
        self.graph, self.owner = graph, owner
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.constants = {f"{owner}/{t.name}": Const(tensor_array(t, t.name)) for t in graph.initializer}
        needed, kept = set(self.outputs), []
        for node in reversed(graph.node):
            if needed & set(node.output):
                needed |= set(node.input) | captured(node)
                kept.append(node)
        self.nodes = kept[::-1]

    def check_steps(self, steps: int) -> None:
        """Raises HG004 if so many copies are too large."""
        if steps * max(1, len(self.nodes)) > MAX_UNROLLED:
            raise fail(
                "HG004", self.owner, f"{steps} steps of {len(self.nodes)} nodes are {steps * len(self.nodes)} nodes; at most "
                f"{MAX_UNROLLED} are made of one loop.", _MORE,
            )  # fmt: skip

    def copy(self, where: str, given: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        """(nodes, names of the outputs) with these tensors as inputs; `where`: in front of names."""
        names = {t.name: f"{self.owner}/{t.name}" for t in self.graph.initializer}
        names |= dict(zip(self.inputs, given, strict=True))
        nodes = []
        for node in self.nodes:
            made = _renamed(node, names)
            made.name = f"{where}/{label(node)}"
            names |= {o: f"{where}/{o}" for o in node.output if o}
            del made.output[:]
            made.output.extend(names[o] if o else "" for o in node.output)
            nodes.append(made)
        return nodes, [names.get(o, o) for o in self.outputs]


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with other names of what it takes, in its own graphs too."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.input[:]
    made.input.extend(names.get(i, i) if i else "" for i in node.input)
    for graph in graphs_of(made):
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        own |= {o for inner in graph.node for o in inner.output}
        outer = {key: value for key, value in names.items() if key not in own}
        nodes = [_renamed(inner, outer) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for output in graph.output:
            output.name = outer.get(output.name, output.name)
    return made


# --------------------------------------------------------------------------- the operators


def _scan(node: Expansion) -> Iterator[Part]:
    attrs, proto, name = attributes(node.proto), node.proto, node.name
    body, scanned = _body(node, "body"), int(attrs.get("num_scan_inputs", 0))
    states = len(proto.input) - scanned
    if not scanned > 0 or states < 0 or len(body.inputs) != len(proto.input) or len(body.outputs) != len(proto.output):
        raise fail(
            "HG013", name, f"{len(proto.input)} inputs, {scanned} of them scanned, and {len(proto.output)} outputs, for a body "
            f"of {len(body.inputs)} inputs and {len(body.outputs)} outputs.",
        )  # fmt: skip
    stacked = len(proto.output) - states
    axes_in, back_in = _per_tensor(name, attrs, "scan_input", scanned)
    axes_out, back_out = _per_tensor(name, attrs, "scan_output", stacked)
    sources = list(proto.input[states:])
    axes = [axis_of(node, axis, source, 0) for axis, source in zip(axes_in, sources, strict=True)]
    lengths = {node.shape(source)[axis] for source, axis in zip(sources, axes, strict=True)}
    if len(lengths) != 1:
        raise fail("HG023", name, f"what is scanned has {sorted(lengths)} elements.", "All must have equally many.")
    (steps,) = lengths
    if node.once:
        if any([*back_in, *back_out]):
            raise not_once(node, "it goes back.")

        def shared(before: list[str], given: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
            return body.copy(f"{name}[]", [*before, *given])

        loop = Loop(steps, tuple(zip(sources, axes, strict=True)), tuple(proto.input[:states]), shared)
        yield Part([], body.constants)
        yield from once(node, loop, list(proto.output), axes_out)
        return
    body.check_steps(steps)
    state, collected = list(proto.input[:states]), [[] for _ in range(stacked)]  # type: list[str], list[list[str]]
    constants = dict(body.constants)
    for t in range(steps):
        where, nodes, given = f"{name}[{t}]", [], []
        for n, (source, axis, back) in enumerate(zip(sources, axes, back_in, strict=True)):
            index, part = f"{name}/index {steps - 1 - t if back else t}", f"{where}/scanned {n}"
            constants[index] = Const(np.array(steps - 1 - t if back else t, np.int64))
            nodes.append(helper.make_node("Gather", [source, index], [part], name=part, axis=axis))
            given.append(part)
        copied, results = body.copy(where, [*state, *given])
        yield Part([*nodes, *copied], constants, results)
        state, constants = results[:states], {}
        for parts, result in zip(collected, results[states:], strict=True):
            parts.append(result)
    nodes = renamed(state, list(proto.output[:states]), name)
    for parts, output, axis, back in zip(collected, proto.output[states:], axes_out, back_out, strict=True):
        if output:
            own = axis_of(node, axis, parts[0], 1)
            made, more = stack_of(node, parts[::-1] if back else parts, output, own, f"{name}/{output}")
            nodes, constants = [*nodes, *made], {**constants, **more}
    yield Part(nodes, constants)


def _per_tensor(name: str, attrs: dict[str, object], kind: str, count: int) -> tuple[list[int], list[int]]:
    """(axes, directions) of what is scanned, or of what comes out. Raises HG013."""
    found = []
    for key in (f"{kind}_axes", f"{kind}_directions"):
        values = attrs.get(key) or [0] * count
        if not isinstance(values, list) or len(values) != count:
            raise fail("HG013", name, f"attribute {key} is {values}.", f"It must be {count} numbers.")
        found.append([int(v) for v in values])
    if set(found[1]) - {0, 1}:
        raise fail("HG013", name, f"attribute {kind}_directions is {found[1]}.", "Each is 0 or 1.")
    return found[0], found[1]


def _loop(node: Expansion) -> Iterator[Part]:
    proto, name, body = node.proto, node.name, _body(node, "body")
    states, stacked = len(proto.input) - 2, len(body.outputs) - 1 - (len(proto.input) - 2)
    if states < 0 or len(body.inputs) != states + 2 or stacked < 0 or len(proto.output) > states + stacked:
        raise fail(
            "HG013", name, f"{len(proto.input)} inputs and {len(proto.output)} outputs, for a body of {len(body.inputs)} inputs "
            f"and {len(body.outputs)} outputs.",
        )  # fmt: skip
    most, going = _number(node, proto.input[0], "trip count"), _truth(node, proto.input[1], "condition")
    if most is None and going is None:
        raise fail("HG010", name, "a Loop without trip count and condition.", "It would never end.")
    state, collected = list(proto.input[2:]), [[] for _ in range(stacked)]  # type: list[str], list[list[str]]
    constants, t = dict(body.constants), 0
    truth = f"{name}/true"
    constants[truth] = Const(np.array(True))
    going = going is not False
    while going and (most is None or t < most):
        body.check_steps(t + 1 if most is None else most)
        where, count = f"{name}[{t}]", f"{name}/index {t}"
        constants[count] = Const(np.array(t, np.int64))
        nodes, results = body.copy(where, [count, truth, *state])
        yield Part(nodes, constants, results)
        constants, state = {}, results[1 : 1 + states]
        going = _truth(node, results[0], "condition behind a step") is not False
        for parts, result in zip(collected, results[1 + states :], strict=True):
            parts.append(result)
        t += 1
    outputs = [*proto.output, *[""] * (states + stacked - len(proto.output))]
    nodes = renamed(state, outputs[:states], name)
    for parts, output in zip(collected, outputs[states:], strict=True):
        if output and not parts:
            raise fail("HG012", name, "a Loop of no steps, of which an output is used.", "There is nothing in it.")
        if output:
            made, more = stack_of(node, parts, output, 0, f"{name}/{output}")
            nodes, constants = [*nodes, *made], {**constants, **more}
    yield Part(nodes, constants)


def _if(node: Expansion) -> Iterator[Part]:
    truth = _truth(node, node.proto.input[0], "condition")
    body = _body(node, "else_branch" if truth is False else "then_branch")
    if len(body.outputs) != len(node.proto.output):
        raise fail("HG013", node.name, f"{len(node.proto.output)} outputs for a branch of {len(body.outputs)}.")
    nodes, results = body.copy(node.name, [])
    yield Part([*nodes, *renamed(results, list(node.proto.output), node.name)], body.constants)


def _number(node: Expansion, tensor: str, what: str) -> int | None:
    """A whole constant; None where it is left out. Raises HG020."""
    found = _scalar(node, tensor, what)
    return None if found is None else int(found)


def _truth(node: Expansion, tensor: str, what: str) -> bool | None:
    found = _scalar(node, tensor, what)
    return None if found is None else bool(found)


def _scalar(node: Expansion, tensor: str, what: str) -> Any:
    if not tensor:
        return None
    found = node.tensors.get(tensor)
    if isinstance(found, Dynamic) or found is None:
        raise _computed(node, what)
    if found.array.size != 1:
        raise fail("HG013", node.name, f"the {what} of {node.proto.op_type} has the shape {list(found.array.shape)}.")
    return found.array.reshape(()).item()


def _computed(node: Expansion, what: str) -> HlsgenError:
    return fail(
        "HG020", node.name, f"the {what} of {node.proto.op_type} depends on the model's input.",
        "Hardware does the same steps for every frame: the condition and the number of steps must be constants.",
    )  # fmt: skip


_KINDS = {"Scan": _scan, "Loop": _loop, "If": _if, ATTENTION: attention}
