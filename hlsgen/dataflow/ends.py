"""The ports of a network among its nodes: those of inputs come first, those of outputs last."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.dataflow.units import INPUT, Node, Port


def outside(port: str) -> str:
    """The stream that an input port takes; `port`: what ends its name, "" of an only one."""
    return f"{INPUT}_{port}" if port else INPUT


def enters(node: Node) -> bool:
    """Whether the node is an input port."""
    wire = taken(node)
    return isinstance(node.unit, Port) and (wire == INPUT or wire.startswith(f"{INPUT}_"))


def taken(node: Node) -> str:
    """The stream that a port takes."""
    return node.inputs[0] if node.inputs else INPUT


def leaves(node: Node) -> bool:
    """Whether the node is an output port."""
    return isinstance(node.unit, Port) and not enters(node)


def divided(nodes: Sequence[Node]) -> tuple[list[Node], list[Node], list[Node]]:
    """(input ports, what is between, output ports)."""
    first, last = [node for node in nodes if enters(node)], [node for node in nodes if leaves(node)]
    return first, [node for node in nodes if not isinstance(node.unit, Port)], last
