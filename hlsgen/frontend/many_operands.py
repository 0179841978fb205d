"""Sum, Max and Min of three and more tensors as operations on two, from left to right as executors compute them."""

from __future__ import annotations

import onnx
from onnx import helper

from hlsgen.frontend.domains import ONNX

#: What each of two operands goes into.
_OF_TWO = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def in_pairs(graph: onnx.GraphProto) -> None:
    """Replaces such nodes, in place. Results keep their names, nodes have names."""
    if not any(_has_many(node) for node in graph.node):
        return
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.extend(_chain(node, taken) if _has_many(node) else [node])
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _has_many(node: onnx.NodeProto) -> bool:
    return node.op_type in _OF_TWO and node.domain in ONNX and len(node.input) > 2 and len(node.output) == 1


def _chain(node: onnx.NodeProto, taken: set[str]) -> list[onnx.NodeProto]:
    found: list[onnx.NodeProto] = []
    last = node.input[0]
    for number, operand in enumerate(node.input[1:], 1):
        end = number == len(node.input) - 1
        result = node.output[0] if end else _free(f"{node.output[0]}_{number}", taken)
        name = node.name if end else f"{node.name} (part {number})"
        found.append(helper.make_node(_OF_TWO[node.op_type], [last, operand], [result], name=name))
        last = result
    return found


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
