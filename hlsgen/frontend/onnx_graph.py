"""ONNX graphs before their import: names of nodes, nested graphs, used inputs and outputs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend.constant_folding import label


def name_all(graph: onnx.GraphProto) -> None:
    """Give every node a unique name; one without a name, or with a used one, is named after operator and output."""
    file_names = {n.name for n in graph.node}
    used_names = {""}
    for i, node in enumerate(graph.node):
        if node.name in used_names:
            node.name = ""
            name = label(node)
            node.name = name if name not in file_names else f"{name} ({i})"
        used_names.add(node.name)


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs within a node: bodies or branches."""
    return [g for a in node.attribute for g in [*([a.g] if a.HasField("g") else []), *a.graphs]]


def captured(node: onnx.NodeProto) -> set[str]:
    """Outer tensors that the graphs within a node use."""
    outer: set[str] = set()
    for graph in graphs_of(node):
        defined = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        used = {o.name for o in graph.output}
        for inner in graph.node:
            used |= set(inner.input) | captured(inner)
            defined |= set(inner.output)
        outer |= used - defined
    return outer


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, each followed by the nodes of the graphs within it."""
    for node in graph.node:
        yield node
        yield from inner_nodes(node)


def inner_nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The nodes of all graphs within a node."""
    for graph in graphs_of(node):
        yield from all_nodes(graph)


def used_inputs(graph: onnx.GraphProto, constants: Container[str]) -> list[onnx.ValueInfoProto]:
    """The used inputs of the graph without constants; all of them if none is used."""
    used = {i for node in graph.node for i in (*node.input, *captured(node))} | {o.name for o in graph.output}
    inputs = [i for i in graph.input if i.name not in constants]
    return [i for i in inputs if i.name in used] or inputs


def computed_outputs(graph: onnx.GraphProto, inputs: list[str], problems: Collector) -> list[onnx.ValueInfoProto]:
    """The graph's outputs; if exactly one of several depends on the inputs, only that one, with a warning HG090."""
    computed = set(inputs)
    for node in graph.node:
        if computed.intersection(node.input) or computed & captured(node):
            computed.update(o for o in node.output if o)
    outputs = [o for o in graph.output if o.name in computed]
    if len(outputs) != 1 or len(graph.output) == 1:
        return list(graph.output)
    constant = ", ".join(o.name for o in graph.output if o.name not in computed)
    text = f"the other outputs of the graph ({constant}) do not depend on its input and are omitted."
    hint = "Remove them from the graph; in Brevitas set return_quant_tensor=False in the last layer."
    problems.warn("HG090", outputs[0].name, text, hint)
    return outputs


def with_outputs(node: onnx.NodeProto, outputs: Sequence[str]) -> onnx.NodeProto:
    """A copy of the node with these outputs, without nameless ones at the end."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.output[:]
    copy.output.extend(outputs)
    while copy.output and not copy.output[-1]:
        del copy.output[-1]
    return copy


def without_unused_outputs(node: onnx.NodeProto, used: Container[str]) -> onnx.NodeProto:
    """A copy of the node with "" for outputs that are not in `used`."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.output[:] = [o if o in used else "" for o in node.output]
    return copy
