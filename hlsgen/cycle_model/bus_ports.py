"""A port on a bus in the cycle model: the port itself, which moves words, and a width converter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.ends import divided, enters
from hlsgen.dataflow.network import bus_streams
from hlsgen.dataflow.units import Node, Port, WidthConverter

#: Suffix of a port's name for its stream of words.
_WORDS = "_words"


def split_ports(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with each port on a bus as two nodes.

    Elements are slots, or words if a beat takes several words.
    """
    result: list[Node] = []
    for node in nodes:
        bus, wire = _bus(node), node.name + _WORDS
        if bus is None:
            result.append(node)
            continue
        words, beats = bus_streams(bus)
        if enters(node):
            result.append(replace(node, name=wire, unit=Port(), sources=(words,), outputs=(wire,), result=words))
            result.append(replace(node, unit=WidthConverter(), inputs=(wire,), sources=(words,), result=beats))
        else:
            result.append(Node(wire, WidthConverter(), node.inputs, (beats,), (wire,), words))
            result.append(replace(node, unit=Port(), inputs=(wire,), sources=(words,), result=words))
    return result


def merge_ports(nodes: Sequence[Node], ports: Sequence[Node]) -> list[Node]:
    """The nodes of `split_ports`, possibly with others inserted, with the original ports again."""
    first, _, last = divided(ports)
    by_name = {node.name: node for node in nodes}
    port_names = {name for node in (*first, *last) for name in (node.name, node.name + _WORDS)}
    output_ports = [replace(node, inputs=by_name.get(node.name + _WORDS, by_name[node.name]).inputs) for node in last]
    return [*first, *(node for node in nodes if node.name not in port_names), *output_ports]


def _bus(node: Node) -> BusLayout | None:
    """The bus of a port, if words and beats differ."""
    bus = node.unit.bus if isinstance(node.unit, Port) else None
    return None if bus is None or bus.plain else bus
