"""The part of a graph that ends in named tensors, and which tensors a refused end of a graph leaves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import onnx

from hlsgen.diagnostics import Collector, Diagnostic, fail, printable
from hlsgen.frontend.constant_folding import label
from hlsgen.frontend.onnx_graph import captured

#: Codes of nodes that a graph may end in front of.
_REFUSED = frozenset(("HG010", "HG011", "HG013", "HG015", "HG020", "HG026"))
#: Most names that a message lists.
_LISTED = 8


def cut_to(graph: onnx.GraphProto, outputs: Sequence[str]) -> None:
    """Makes these tensors the outputs of a graph, in this order, and removes all nodes that none of them needs.

    Raises HG040 if a name is no result of a node.
    """
    results = [name for node in graph.node for name in node.output if name]
    unknown = [name for name in outputs if name not in results]
    if unknown:
        names = [o.name for o in graph.output] + results[::-1]
        known = ", ".join(list(dict.fromkeys(printable(name) for name in names))[:_LISTED])
        raise fail("HG040", "--outputs", f"no node gives a tensor {unknown[0]!r}.", f"The last tensors are: {known}.")
    types = {value.name: value for value in (*graph.value_info, *graph.output)}
    ends = [types.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    kept = [onnx.ValueInfoProto.FromString(end.SerializeToString()) for end in ends]
    needed = set(outputs)
    for i in reversed(range(len(graph.node))):
        node = graph.node[i]
        if needed.isdisjoint(node.output):
            del graph.node[i]
        else:
            needed |= {*node.input, *captured(node)}
    del graph.output[:]
    graph.output.extend(kept)


def suggest_outputs(graph: onnx.GraphProto, followed: Collection[str], problems: Collector, first: int) -> None:
    """Adds to errors of nodes after the last quantizer or layer which tensors `--outputs` could name instead.

    `followed`: tensors that a quantizer or a layer follows. `first`: number of the first problem.
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
        taken = (set(node.input) | captured(node)) & computed
        if not taken:
            continue
        computed.update(filter(None, node.output))
        if not lost.isdisjoint(node.output) or not lost.isdisjoint(taken):
            lost.update(filter(None, node.output))
            candidates.update(dict.fromkeys(name for name in node.input if name in taken - lost - set(inputs)))
    candidates.update(dict.fromkeys(o.name for o in graph.output if o.name in computed - lost))
    ends = _not_made_of_others(graph, candidates)
    if not ends:
        return
    flags = " ".join(f"--outputs {printable(name)}" for name in ends[:_LISTED])
    text = f"The part of the graph before it: {flags}."
    for i, item in enumerate(problems.items[first:], first):
        if item in errors and item.node in nodes and nodes[item.node] in tails:
            problems.items[i] = replace(item, hint=f"{item.hint} {text}".strip())


def _not_made_of_others(graph: onnx.GraphProto, ends: Collection[str]) -> list[str]:
    """The tensors that none of the others is a source of: the host's operations between would branch."""
    sources: dict[str, set[str]] = {}
    for node in graph.node:
        taken = {*node.input, *captured(node)}
        found = (taken & set(ends)).union(*(sources.get(name, set()) for name in taken))
        sources.update((name, found) for name in node.output if name)
    return [name for name in ends if not sources.get(name, set()) - {name}]


def _is_tail(problem: Diagnostic, node: onnx.NodeProto, followed: Collection[str]) -> bool:
    return problem.code in _REFUSED and not any(name in followed for name in node.output)
