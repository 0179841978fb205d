"""A port on a bus, as the cycle model has it: the port itself, which moves words, and a width converter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.ends import divided, enters
from hlsgen.dataflow.network import bus_streams
from hlsgen.dataflow.units import Node, Port, WidthConverter

#: What is added to the name of a port for its stream of words.
_WORDS = "_words"


def apart(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with each port on a bus as two. Elements are slots, or words where a beat takes several."""
    found: list[Node] = []
    for node in nodes:
        bus, wire = _bus(node), node.name + _WORDS
        if bus is None:
            found.append(node)
            continue
        words, beats = bus_streams(bus)
        if enters(node):
            found.append(replace(node, name=wire, unit=Port(), sources=(words,), outputs=(wire,), result=words))
            found.append(replace(node, unit=WidthConverter(), inputs=(wire,), sources=(words,), result=beats))
        else:
            found.append(Node(wire, WidthConverter(), node.inputs, (beats,), (wire,), words))
            found.append(replace(node, unit=Port(), inputs=(wire,), sources=(words,), result=words))
    return found


def together(nodes: Sequence[Node], ports: Sequence[Node]) -> list[Node]:
    """The nodes of `apart`, perhaps with others between them, with the ports that there were before."""
    first, _, last = divided(ports)
    by_name = {node.name: node for node in nodes}
    own = {name for node in (*first, *last) for name in (node.name, node.name + _WORDS)}
    ends = [replace(node, inputs=by_name.get(node.name + _WORDS, by_name[node.name]).inputs) for node in last]
    return [*first, *(node for node in nodes if node.name not in own), *ends]


def _bus(node: Node) -> BusLayout | None:
    """The bus of a port, if words and beats differ."""
    bus = node.unit.bus if isinstance(node.unit, Port) else None
    return None if bus is None or bus.plain else bus
