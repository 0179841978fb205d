"""What a graph of ONNX is before it becomes steps: names of nodes, inputs, outputs; and steps that nothing needs."""

from __future__ import annotations

from collections.abc import Container, Sequence

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


def used_inputs(graph: onnx.GraphProto, constants: Container[str]) -> list[onnx.ValueInfoProto]:
    """The graph's inputs that are no constants, without those that nothing uses, if any is used."""
    used = {i for node in graph.node for i in node.input} | {o.name for o in graph.output}
    inputs = [i for i in graph.input if i.name not in constants]
    return [i for i in inputs if i.name in used] or inputs


def computed_outputs(graph: onnx.GraphProto, inputs: list[str], problems: Collector) -> list[onnx.ValueInfoProto]:
    """The graph's outputs that depend on its inputs, with a warning if that leaves one of several; else all of them."""
    known = set(inputs)
    for node in graph.node:
        if known.intersection(node.input):
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
