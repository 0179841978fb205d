"""Cut of a graph at chosen tensors, and the suggestion of tensors for `--outputs` if the end of a graph is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import onnx

from hlsgen.diagnostics import Collector, Diagnostic, fail, printable
from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.onnx_graph import captured

#: Codes of errors in a node before which a graph may be cut.
_REFUSED = frozenset(("HG010", "HG011", "HG013", "HG015", "HG020", "HG026"))
#: Maximum number of names in a message.
_LISTED = 8


def cut_to(graph: onnx.GraphProto, outputs: Sequence[str]) -> None:
    """Make `outputs` the outputs of a graph, in this order, and remove all nodes that they do not depend on.

    Raises HG040 if a node computes no tensor of that name.
    """
    results = [name for node in graph.node for name in node.output if name]
    unknown = [name for name in outputs if name not in results]
    if unknown:
        names = [o.name for o in graph.output] + results[::-1]
        last_names = ", ".join(list(dict.fromkeys(printable(name) for name in names))[:_LISTED])
        text = f"no node of the graph computes a tensor {unknown[0]!r}."
        raise fail("HG040", "--outputs", text, f"The last tensors are: {last_names}.")
    types = {value.name: value for value in (*graph.value_info, *graph.output)}
    ends = [types.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    copies = [onnx.ValueInfoProto.FromString(end.SerializeToString()) for end in ends]
    needed = set(outputs)
    for i in reversed(range(len(graph.node))):
        node = graph.node[i]
        if needed.isdisjoint(node.output):
            del graph.node[i]
        else:
            needed |= {*node.input, *captured(node)}
    del graph.output[:]
    graph.output.extend(copies)


def suggest_outputs(graph: onnx.GraphProto, followed: Collection[str], problems: Collector, first: int) -> None:
    """Extend the hints of errors after the last quantizer or layer by tensors that `--outputs` could name.

    `followed`: tensors before a quantizer or a layer. `first`: index of the first problem of this file.
    """
    inputs = {i.name for i in graph.input} - {t.name for t in graph.initializer}
    nodes = {label(node): node for node in graph.node}
    errors = [d for d in problems.items[first:] if d.severity == "error"]
    tails = [nodes[d.node] for d in errors if d.node in nodes and _is_tail(d, nodes[d.node], followed)]
    if not tails or any(d.code in _REFUSED and d.node in nodes and nodes[d.node] not in tails for d in errors):
        return
    computed, lost = set(inputs), {name for node in tails for name in node.output}
    candidates: dict[str, None] = {}
    for node in graph.node:
        operands = (set(node.input) | captured(node)) & computed
        if not operands:
            continue
        computed.update(filter(None, node.output))
        if not lost.isdisjoint(node.output) or not lost.isdisjoint(operands):
            lost.update(filter(None, node.output))
            candidates.update(dict.fromkeys(name for name in node.input if name in operands - lost - set(inputs)))
    candidates.update(dict.fromkeys(o.name for o in graph.output if o.name in computed - lost))
    ends = _independent(graph, candidates)
    if not ends:
        return
    flags = " ".join(f"--outputs {printable(name)}" for name in ends[:_LISTED])
    text = f"To build the part of the graph before it: {flags}."
    for i, item in enumerate(problems.items[first:], first):
        if item in errors and item.node in nodes and nodes[item.node] in tails:
            problems.items[i] = replace(item, hint=f"{item.hint} {text}".strip())


def _independent(graph: onnx.GraphProto, ends: Collection[str]) -> list[str]:
    """The tensors of `ends` that depend on no other one of them; otherwise the host's operations would branch."""
    sources: dict[str, set[str]] = {}
    for node in graph.node:
        operands = {*node.input, *captured(node)}
        ancestors = (operands & set(ends)).union(*(sources.get(name, set()) for name in operands))
        sources.update((name, ancestors) for name in node.output if name)
    return [name for name in ends if not sources.get(name, set()) - {name}]


def _is_tail(problem: Diagnostic, node: onnx.NodeProto, followed: Collection[str]) -> bool:
    return problem.code in _REFUSED and not any(name in followed for name in node.output)
