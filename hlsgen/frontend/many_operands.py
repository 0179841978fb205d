"""Sum, Max and Min of three and more tensors as chains of two-operand nodes, from left to right as in executors."""

from __future__ import annotations

import onnx
from onnx import helper

from hlsgen.frontend.domains import ONNX

#: The two-operand operator of each.
_PAIRWISE = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def split_operands(graph: onnx.GraphProto) -> None:
    """Replace such nodes in place; the results keep their names. All nodes must have names."""
    if not any(_has_many(node) for node in graph.node):
        return
    names = {name for node in graph.node for name in (*node.input, *node.output)}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.extend(_chain(node, names) if _has_many(node) else [node])
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _has_many(node: onnx.NodeProto) -> bool:
    return node.op_type in _PAIRWISE and node.domain in ONNX and len(node.input) > 2 and len(node.output) == 1


def _chain(node: onnx.NodeProto, names: set[str]) -> list[onnx.NodeProto]:
    chain: list[onnx.NodeProto] = []
    last = node.input[0]
    for number, operand in enumerate(node.input[1:], 1):
        end = number == len(node.input) - 1
        result = node.output[0] if end else _unused_name(f"{node.output[0]}_{number}", names)
        name = node.name if end else f"{node.name} (part {number})"
        chain.append(helper.make_node(_PAIRWISE[node.op_type], [last, operand], [result], name=name))
        last = result
    return chain


def _unused_name(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name
