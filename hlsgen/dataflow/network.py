"""The network of a graph, which is the same for every target, and the cycles that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlsgen.dataflow.bus import BusLayout, bus_layout
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.units import Node, Port, Stream
from hlsgen.ir import Graph, Value
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice


@dataclass(frozen=True, eq=False)
class CorePort:
    """A port of the core, which is `node`: elements of `value` in this order.

    They are those from `offset` on of the graph's input or output, of which a frame consists. `number`: of that value.
    """

    node: Node
    number: int
    offset: int
    value: Value
    order: Array

    @property
    def name(self) -> str:
        """s_axis or m_axis; of several, with the name of the tensor behind it."""
        return self.node.name

    @property
    def label(self) -> str:
        """What ends the name, "" of an only one."""
        return self.name[len("s_axis") :]

    @property
    def stream(self) -> Stream:
        """The stream inside."""
        return self.node.result

    @property
    def early(self) -> bool:
        """Whether the core's ready is kept from the taker's at the input, see Port."""
        return isinstance(self.node.unit, Port) and self.node.unit.early

    @property
    def on_bus(self) -> bool:
        """Whether the port is on a bus that the options ask for."""
        return isinstance(self.node.unit, Port) and self.node.unit.bus is not None

    @property
    def layout(self) -> BusLayout:
        """How a frame lies on the port."""
        return layout_of(self.node)

    def part(self, codes: Array) -> Array:
        """What goes through this port of codes (frames, *shape) of the graph's input or output: (frames, elements)."""
        return codes.reshape(len(codes), -1)[:, self.offset : self.offset + self.value.size]


@dataclass(frozen=True, eq=False)
class Network:
    """All nodes in the order of the data, with the input ports first and the output ports last.

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
    def inputs(self) -> tuple[CorePort, ...]:
        """The input ports."""
        ports = zip(divided(self.nodes)[0], self.graph.streamed_inputs, strict=True)
        return tuple(CorePort(node, *what, self.orders[what[0]]) for node, what in ports)

    @property
    def outputs(self) -> tuple[CorePort, ...]:
        """The output ports."""
        ports = zip(divided(self.nodes)[2], self.graph.streamed_outputs, strict=True)
        return tuple(CorePort(node, *what, self.orders[what[0]]) for node, what in ports)

    @property
    def inner(self) -> list[Node]:
        """The nodes between the ports."""
        return divided(self.nodes)[1]


def on_bus(nodes: Sequence[Node], width: int) -> list[Node]:
    """The nodes with all ports on buses of so many bits."""
    return [
        replace(node, unit=Port(bus_layout(node.result.bits, node.result.beats, width)))
        if isinstance(node.unit, Port) else node
        for node in nodes
    ]  # fmt: skip


def layout_of(node: Node) -> BusLayout:
    """How a frame lies on a port."""
    own = node.unit.bus if isinstance(node.unit, Port) else None
    return own or bus_layout(node.result.bits, node.result.beats, None)


@dataclass(frozen=True)
class Timing:
    """What a frame takes in cycles, with a source that always has a beat and a sink that takes at once.

    `latency`: from the first beat that is taken to the last output beat. `interval`: between two frames.
    `critical`: names of FIFOs that cannot be one beat smaller without costing cycles. `spare`: the share of all depths
    that was added since the network is too large for a search. `exact`: False if it is too large to be simulated as well:
    then `latency` is an estimate, and `interval` what the slowest unit needs, which it may be more than.
    """

    latency: int
    interval: int
    critical: tuple[str, ...] = ()
    spare: float = 0.0
    exact: bool = True

    @property
    def cycles(self) -> dict[str, int | bool]:
        """As they are written for programs: `estimated` only where they are not exact."""
        return {"latency": self.latency, "interval": self.interval, **({} if self.exact else {"estimated": True})}


def bus_streams(bus: BusLayout) -> tuple[Stream, Stream]:
    """The words of a frame and its beats, in elements of which both are made: beats or, if they are longer, words."""
    type_ = IntType(0, (1 << (bus.beat_bits if bus.parts == 1 else bus.width)) - 1)
    elements = bus.beats * bus.parts
    return Stream(type_, bus.slots, bus.words, elements), Stream(type_, bus.parts, bus.beats, elements)
