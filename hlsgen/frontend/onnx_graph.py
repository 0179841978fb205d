"""What a graph of ONNX is before it becomes steps: names of nodes, inputs, outputs; and steps that nothing needs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend.constant_folding import label


def name_all(graph: onnx.GraphProto) -> None:
    """Gives every node a name of its own: nameless and equal ones by what they compute."""
    taken = {n.name for n in graph.node}
    seen = {""}
    for i, node in enumerate(graph.node):
        if node.name in seen:
            node.name = ""
            name = label(node)
            node.name = name if name not in taken else f"{name} ({i})"
        seen.add(node.name)


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs within a node: its bodies or branches."""
    return [g for a in node.attribute for g in [*([a.g] if a.HasField("g") else []), *a.graphs]]


def captured(node: onnx.NodeProto) -> set[str]:
    """Tensors from outside that the graphs within a node take."""
    found: set[str] = set()
    for graph in graphs_of(node):
        own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        taken = {o.name for o in graph.output}
        for inner in graph.node:
            taken |= set(inner.input) | captured(inner)
            own |= set(inner.output)
        found |= taken - own
    return found


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and of the graphs within them."""
    for node in graph.node:
        yield node
        yield from inner_nodes(node)


def inner_nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The nodes of all graphs within a node."""
    for graph in graphs_of(node):
        yield from all_nodes(graph)


def used_inputs(graph: onnx.GraphProto, constants: Container[str]) -> list[onnx.ValueInfoProto]:
    """The graph's inputs that are no constants, without those that nothing uses, if any is used."""
    used = {i for node in graph.node for i in (*node.input, *captured(node))} | {o.name for o in graph.output}
    inputs = [i for i in graph.input if i.name not in constants]
    return [i for i in inputs if i.name in used] or inputs


def computed_outputs(graph: onnx.GraphProto, inputs: list[str], problems: Collector) -> list[onnx.ValueInfoProto]:
    """The graph's outputs that depend on its inputs, with a warning if that leaves one of several; else all of them."""
    known = set(inputs)
    for node in graph.node:
        if known.intersection(node.input) or known & captured(node):
            known.update(o for o in node.output if o)
    found = [o for o in graph.output if o.name in known]
    if len(found) != 1 or len(graph.output) == 1:
        return list(graph.output)
    others = ", ".join(o.name for o in graph.output if o.name not in known)
    problems.warn(
        "HG090", found[0].name, f"the other outputs of the graph ({others}) do not depend on its input and are left out.",
        "Remove them from the graph; with Brevitas return_quant_tensor=False in the last layer.",
    )  # fmt: skip
    return found


def with_outputs(node: onnx.NodeProto, outputs: Sequence[str]) -> onnx.NodeProto:
    """The node with these names of outputs, without nameless ones at the end."""
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    del kept.output[:]
    kept.output.extend(outputs)
    while kept.output and not kept.output[-1]:
        del kept.output[-1]
    return kept


def of_used(node: onnx.NodeProto, used: Container[str]) -> onnx.NodeProto:
    """The node without names of the outputs that nothing uses."""
    kept = onnx.NodeProto()
    kept.CopyFrom(node)
    kept.output[:] = [o if o in used else "" for o in node.output]
    return kept
