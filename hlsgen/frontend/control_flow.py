"""Expansion of Scan, Loop, If and QuantLSTMCell into one copy of their bodies per step, and of attention operators.

Hardware has no program counter: a body becomes as many copies as there are steps, and a state is a tensor from one
copy to the next. Therefore the number of steps and the branch of an If must be known.
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
from hlsgen.frontend.onnx_graph import captured, graphs_of
from hlsgen.frontend.ops_attention import ATTENTION, MULTI_HEAD, attention, multi_head_attention
from hlsgen.frontend.ops_interpolate import RESIZE, interpolated
from hlsgen.frontend.quant_lstm import QUANT_LSTM, quant_lstm
from hlsgen.frontend.shared_loop_body import Loop, not_shared, shared_body

#: Maximum number of nodes that one operator is expanded into.
MAX_UNROLLED = 20_000


def is_expanded(node: onnx.NodeProto) -> bool:
    """True for an operator that is expanded into several nodes."""
    if node.domain in ONNX:
        return node.op_type in _EXPANSIONS
    if node.domain in QONNX:
        return node.op_type == QUANT_LSTM
    return node.op_type == MULTI_HEAD and node.domain == MICROSOFT


def expanded(
    proto: onnx.NodeProto, name: str, tensors: Mapping[str, Tensor], opset: int, share: bool
) -> Iterator[Part]:
    """The nodes that replace `proto`, in parts; the caller imports each part before it requests the next one.

    `share`: one body for all steps of a Scan. Raises HG004, HG010, HG013, HG014, HG020, HG023.
    """
    if proto.domain in QONNX:
        return quant_lstm(Expansion(proto, name, tensors, opset, share))
    if proto.domain == MICROSOFT:
        return multi_head_attention(Expansion(proto, name, tensors, opset))
    if proto.op_type == "Scan" and opset < 9:
        raise fail(
            "HG010",
            name,
            "Scan of opset 8, which scans a batch of sequences, is not supported.",
            "Convert the model to opset 9 or newer (onnx.version_converter).",
        )
    check_schema(proto, opset)
    if proto.op_type == RESIZE:
        return interpolated(Expansion(proto, name, tensors, opset))
    return _EXPANSIONS[proto.op_type](Expansion(proto, name, tensors, opset, share))


def check_copies(name: str, count: int) -> None:
    """Raise HG004 if an operator and the loops in its body have been expanded into too many nodes."""
    if count > MAX_UNROLLED:
        text = f"all steps of it and of the loops around it are more than {MAX_UNROLLED} nodes."
        hint = f"At most {MAX_UNROLLED} are supported: hardware has a copy of the body per step, so use fewer steps."
        raise fail("HG004", name, text, hint)


# --------------------------------------------------------------------------- bodies


def _body(node: Expansion, key: str) -> _Body:
    graph = next((a.g for a in node.proto.attribute if a.name == key and a.HasField("g")), None)
    if graph is None:
        text = f"attribute {key} of {node.proto.op_type} is missing or no graph."
        raise fail("HG013", node.name, text, "Export the model again.")
    return _Body(graph, node.name)


class _Body:
    """A graph within a node. Names in a copy have the node and the step as a prefix."""

    def __init__(self, graph: onnx.GraphProto, owner: str) -> None:
        self.graph, self.owner = graph, owner
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]
        self.constants = {f"{owner}/{t.name}": Const(tensor_array(t, t.name)) for t in graph.initializer}
        needed, nodes = set(self.outputs), []
        for node in reversed(graph.node):
            if needed & set(node.output):
                needed |= set(node.input) | captured(node)
                nodes.append(node)
        self.nodes = nodes[::-1]

    def check_steps(self, steps: int) -> None:
        """Raise HG004 if `steps` copies have too many nodes."""
        if steps * max(1, len(self.nodes)) > MAX_UNROLLED:
            text = f"{steps} steps of {len(self.nodes)} nodes are {steps * len(self.nodes)} nodes."
            hint = (
                f"At most {MAX_UNROLLED} are supported: hardware has a copy of the body per step, so use fewer steps."
            )
            raise fail("HG004", self.owner, text, hint)

    def copy(self, prefix: str, inputs: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        """(nodes, names of the outputs) of a copy with these inputs; `prefix` begins all names in it."""
        names = {t.name: f"{self.owner}/{t.name}" for t in self.graph.initializer}
        names |= dict(zip(self.inputs, inputs, strict=True))
        nodes = []
        for node in self.nodes:
            renamed_node = _renamed(node, names)
            renamed_node.name = f"{prefix}/{label(node)}"
            names |= {o: f"{prefix}/{o}" for o in node.output if o}
            del renamed_node.output[:]
            renamed_node.output.extend(names[o] if o else "" for o in node.output)
            nodes.append(renamed_node)
        return nodes, [names.get(o, o) for o in self.outputs]


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of the node with renamed inputs, also in the graphs within it."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(names.get(i, i) if i else "" for i in node.input)
    for graph in graphs_of(copy):
        defined = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        defined |= {o for inner in graph.node for o in inner.output}
        outer = {old: new for old, new in names.items() if old not in defined}
        nodes = [_renamed(inner, outer) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for output in graph.output:
            output.name = outer.get(output.name, output.name)
    return copy


# --------------------------------------------------------------------------- the operators


def _scan(node: Expansion) -> Iterator[Part]:
    attrs, proto, name = attributes(node.proto), node.proto, node.name
    body, scanned = _body(node, "body"), int(attrs.get("num_scan_inputs", 0))
    states = len(proto.input) - scanned
    if not scanned > 0 or states < 0 or len(body.inputs) != len(proto.input) or len(body.outputs) != len(proto.output):
        text = f"Scan has {len(proto.input)} inputs, {scanned} of them scanned, and {len(proto.output)} outputs; "
        text += f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs."
        raise fail("HG013", name, text, "Node and body must have equally many, and at least one scanned input.")
    stacked = len(proto.output) - states
    axes_in, back_in = _per_tensor(name, attrs, "scan_input", scanned)
    axes_out, back_out = _per_tensor(name, attrs, "scan_output", stacked)
    sources = list(proto.input[states:])
    axes = [axis_of(node, axis, source, 0) for axis, source in zip(axes_in, sources, strict=True)]
    lengths = {node.shape(source)[axis] for source, axis in zip(sources, axes, strict=True)}
    if len(lengths) != 1:
        text = f"the scanned inputs have {sorted(lengths)} elements along their axes."
        raise fail("HG023", name, text, "All must have equally many.")
    (steps,) = lengths
    if node.once:
        if any([*back_in, *back_out]):
            raise not_shared(node, "it scans backwards.")

        def shared(states: list[str], elements: list[str]) -> tuple[list[onnx.NodeProto], list[str]]:
            return body.copy(f"{name}[]", [*states, *elements])

        loop = Loop(steps, tuple(zip(sources, axes, strict=True)), tuple(proto.input[:states]), shared)
        yield Part([], body.constants)
        yield from shared_body(node, loop, list(proto.output), axes_out)
        return
    body.check_steps(steps)
    state, collected = list(proto.input[:states]), [[] for _ in range(stacked)]  # type: list[str], list[list[str]]
    constants = dict(body.constants)
    for t in range(steps):
        prefix, nodes, elements = f"{name}[{t}]", [], []
        for n, (source, axis, back) in enumerate(zip(sources, axes, back_in, strict=True)):
            index, element = f"{name}/index {steps - 1 - t if back else t}", f"{prefix}/scanned {n}"
            constants[index] = Const(np.array(steps - 1 - t if back else t, np.int64))
            nodes.append(helper.make_node("Gather", [source, index], [element], name=element, axis=axis))
            elements.append(element)
        copied, results = body.copy(prefix, [*state, *elements])
        yield Part([*nodes, *copied], constants, results)
        state, constants = results[:states], {}
        for parts, result in zip(collected, results[states:], strict=True):
            parts.append(result)
    nodes = renamed(state, list(proto.output[:states]), name)
    for parts, output, axis, back in zip(collected, proto.output[states:], axes_out, back_out, strict=True):
        if output:
            stack_axis = axis_of(node, axis, parts[0], 1)
            stack = stack_of(node, parts[::-1] if back else parts, output, stack_axis, f"{name}/{output}")
            nodes, constants = [*nodes, *stack[0]], {**constants, **stack[1]}
    yield Part(nodes, constants)


def _per_tensor(name: str, attrs: dict[str, object], kind: str, count: int) -> tuple[list[int], list[int]]:
    """(axes, directions) of the scanned inputs or outputs; `kind`: prefix of the attributes. Raises HG013."""
    axes_directions = []
    for key in (f"{kind}_axes", f"{kind}_directions"):
        values = attrs.get(key) or [0] * count
        if not isinstance(values, list) or len(values) != count:
            raise fail("HG013", name, f"attribute {key} is {values}.", f"It must be {count} numbers.")
        axes_directions.append([int(v) for v in values])
    axes, directions = axes_directions
    if set(directions) - {0, 1}:
        text = f"attribute {kind}_directions is {directions}."
        raise fail("HG013", name, text, "Each must be 0 (forward) or 1 (backward).")
    return axes, directions


def _loop(node: Expansion) -> Iterator[Part]:
    proto, name, body = node.proto, node.name, _body(node, "body")
    states, stacked = len(proto.input) - 2, len(body.outputs) - 1 - (len(proto.input) - 2)
    if states < 0 or len(body.inputs) != states + 2 or stacked < 0 or len(proto.output) > states + stacked:
        text = f"Loop has {len(proto.input)} inputs and {len(proto.output)} outputs; "
        text += f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs."
        raise fail("HG013", name, text, "The body must have the inputs of the node, and one output more.")
    trips, going = _number(node, proto.input[0], "trip count"), _truth(node, proto.input[1], "condition")
    if trips is None and going is None:
        text = "a Loop without trip count and condition never ends."
        raise fail("HG010", name, text, "Export the loop with a constant trip count.")
    state, collected = list(proto.input[2:]), [[] for _ in range(stacked)]  # type: list[str], list[list[str]]
    constants, t = dict(body.constants), 0
    truth = f"{name}/true"
    constants[truth] = Const(np.array(True))
    going = going is not False
    while going and (trips is None or t < trips):
        body.check_steps(t + 1 if trips is None else trips)
        count = f"{name}/index {t}"
        constants[count] = Const(np.array(t, np.int64))
        nodes, results = body.copy(f"{name}[{t}]", [count, truth, *state])
        yield Part(nodes, constants, results)
        constants, state = {}, results[1 : 1 + states]
        going = _truth(node, results[0], "condition after a step") is not False
        for parts, result in zip(collected, results[1 + states :], strict=True):
            parts.append(result)
        t += 1
    outputs = [*proto.output, *[""] * (states + stacked - len(proto.output))]
    nodes = renamed(state, outputs[:states], name)
    for parts, output in zip(collected, outputs[states:], strict=True):
        if output and not parts:
            text = f"the Loop has no steps, so that its used output {output!r} is empty."
            raise fail("HG012", name, text, "Remove the loop and the consumers of the output.")
        if output:
            stack_nodes, stack_constants = stack_of(node, parts, output, 0, f"{name}/{output}")
            nodes, constants = [*nodes, *stack_nodes], {**constants, **stack_constants}
    yield Part(nodes, constants)


def _if(node: Expansion) -> Iterator[Part]:
    truth = _truth(node, node.proto.input[0], "condition")
    body = _body(node, "else_branch" if truth is False else "then_branch")
    if len(body.outputs) != len(node.proto.output):
        text = f"If has {len(node.proto.output)} outputs, its branch has {len(body.outputs)}."
        raise fail("HG013", node.name, text, "Both must have equally many: export the model again.")
    nodes, results = body.copy(node.name, [])
    yield Part([*nodes, *renamed(results, list(node.proto.output), node.name)], body.constants)


def _number(node: Expansion, tensor: str, subject: str) -> int | None:
    """The value of a whole constant, or None if it is absent. Raises HG013, HG020."""
    scalar = _scalar(node, tensor, subject)
    return None if scalar is None else int(scalar)


def _truth(node: Expansion, tensor: str, subject: str) -> bool | None:
    """The value of a boolean constant, or None if it is absent. Raises HG013, HG020."""
    scalar = _scalar(node, tensor, subject)
    return None if scalar is None else bool(scalar)


def _scalar(node: Expansion, tensor: str, subject: str) -> Any:
    if not tensor:
        return None
    const = node.tensors.get(tensor)
    if isinstance(const, Dynamic) or const is None:
        raise _computed(node, subject)
    if const.array.size != 1:
        text = f"the {subject} of {node.proto.op_type} has the shape {list(const.array.shape)}."
        raise fail("HG013", node.name, text, "It must have one element.")
    return const.array.reshape(()).item()


def _computed(node: Expansion, subject: str) -> HlsgenError:
    return fail(
        "HG020",
        node.name,
        f"the {subject} of {node.proto.op_type} depends on the model's input.",
        "Hardware does the same steps for every frame: the condition and the number of steps must be constants.",
    )


_EXPANSIONS = {"Scan": _scan, "Loop": _loop, "If": _if, ATTENTION: attention}
