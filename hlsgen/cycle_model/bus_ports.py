"""A port on a bus, as the cycle model has it: the port itself, which moves words, and a width converter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.units import Node, Port, WidthConverter, bus_streams

#: What is added to the name of a port for its stream of words.
_WORDS = "_words"


def apart(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with each port on a bus as two. Elements are slots, or words where a beat takes several."""
    first, *inner, last = nodes
    head, tail = [first], [last]
    if (bus := _bus(first)) is not None:
        words, beats = bus_streams(bus)
        wire = first.name + _WORDS
        port = replace(first, name=wire, unit=Port(), sources=(words,), outputs=(wire,), result=words)
        head = [port, replace(first, unit=WidthConverter(), inputs=(wire,), sources=(words,), result=beats)]
    if (bus := _bus(last)) is not None:
        words, beats = bus_streams(bus)
        wire = last.name + _WORDS
        port = replace(last, unit=Port(), inputs=(wire,), sources=(words,), result=words)
        tail = [Node(wire, WidthConverter(), last.inputs, (beats,), (wire,), words), port]
    return [*head, *inner, *tail]


def together(nodes: Sequence[Node], ports: Sequence[Node]) -> list[Node]:
    """The nodes of `apart`, perhaps with others between them, with the ports that there were before."""
    first, last = ports[0], ports[-1]
    inner = [node for node in nodes[1:-1] if node.name not in (first.name, last.name + _WORDS)]
    end = next((node for node in nodes if node.name == last.name + _WORDS), nodes[-1])
    return [first, *inner, replace(last, inputs=end.inputs)]


def _bus(node: Node) -> BusLayout | None:
    """The bus of a port, if words and beats differ."""
    bus = node.unit.bus if isinstance(node.unit, Port) else None
    return None if bus is None or bus.plain else bus
