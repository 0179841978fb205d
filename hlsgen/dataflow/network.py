"""The network of a graph, which is the same for every target, and the cycles that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlsgen.dataflow.bus import BusLayout, bus_layout
from hlsgen.dataflow.units import Node, Port, Stream
from hlsgen.ir import Graph
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.numerics.fixed import Array
from hlsgen.rescale import Choice


@dataclass(frozen=True, eq=False)
class Network:
    """All nodes in the order of the data, with the input and the output port first and last.

    `layout`: order of the elements of every value in its streams. `folding`: PE and SIMD of every layer that
    multiplies and the lanes of the input, as folding.yaml has them. `choices`: the realization of every
    quantizer, by the name of its layer.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    layout: StreamOrder
    folding: dict[str, Any]
    choices: dict[str, Choice] = field(default_factory=dict)

    @property
    def orders(self) -> list[Array]:
        """Order of every value of the graph, see ir/stream_order.py."""
        return self.layout.orders

    @property
    def input(self) -> Stream:
        """The stream behind the input port."""
        return self.nodes[0].source

    @property
    def output(self) -> Stream:
        """The stream in front of the output port."""
        return self.nodes[-1].result

    @property
    def layouts(self) -> tuple[BusLayout, BusLayout]:
        """How a frame lies on the input and on the output port."""
        return port_layouts(self.nodes)


def on_bus(nodes: Sequence[Node], width: int) -> list[Node]:
    """The nodes with both ports on a bus of so many bits."""
    first, *inner, last = nodes
    ends = [replace(node, unit=Port(bus_layout(node.result.bits, node.result.beats, width))) for node in (first, last)]
    return [ends[0], *inner, ends[1]]


def port_layouts(nodes: Sequence[Node]) -> tuple[BusLayout, BusLayout]:
    """How a frame lies on the input and on the output port of these nodes."""
    return _layout(nodes[0]), _layout(nodes[-1])


def _layout(node: Node) -> BusLayout:
    own = node.unit.bus if isinstance(node.unit, Port) else None
    return own or bus_layout(node.result.bits, node.result.beats, None)


@dataclass(frozen=True)
class Timing:
    """What a frame takes in cycles, with a source that always has a beat and a sink that takes at once.

    `latency`: from the first beat that is taken to the last output beat. `interval`: between two frames.
    `critical`: names of FIFOs that cannot be one beat smaller without costing cycles.
    """

    latency: int
    interval: int
    critical: tuple[str, ...] = ()
