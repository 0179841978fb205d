"""The ports among the nodes of a network: input ports come first, output ports last."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.dataflow.units import INPUT, Node, Port


def outside(port: str) -> str:
    """The stream that an input port consumes; `port`: the suffix of its name, "" for a single port."""
    return f"{INPUT}_{port}" if port else INPUT


def enters(node: Node) -> bool:
    """True if the node is an input port."""
    wire = consumed_stream(node)
    return isinstance(node.unit, Port) and (wire == INPUT or wire.startswith(f"{INPUT}_"))


def consumed_stream(node: Node) -> str:
    """The stream that a port consumes."""
    return node.inputs[0] if node.inputs else INPUT


def leaves(node: Node) -> bool:
    """True if the node is an output port."""
    return isinstance(node.unit, Port) and not enters(node)


def divided(nodes: Sequence[Node]) -> tuple[list[Node], list[Node], list[Node]]:
    """(input ports, inner nodes, output ports)."""
    first, last = [node for node in nodes if enters(node)], [node for node in nodes if leaves(node)]
    return first, [node for node in nodes if not isinstance(node.unit, Port)], last
