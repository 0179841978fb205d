"""The network of a graph, the same for every target, and its timing in cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlsgen.dataflow.bus import BusLayout, bus_layout
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.units import FrameStart, Node, Port, Stream
from hlsgen.ir import Graph, Value
from hlsgen.ir.stream_order import StreamOrder
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice

#: Names of ports without handshake, by those of streams.
PLAIN_NAMES = {"s_axis": "in", "m_axis": "out"}


@dataclass(frozen=True, eq=False)
class CorePort:
    """A port of the core, which is `node`. It carries elements of `value` in this order.

    They are the elements from `offset` on of a frame of the graph's input or output. `number`: index of that value.
    """

    node: Node
    number: int
    offset: int
    value: Value
    order: Array

    @property
    def name(self) -> str:
        """s_axis or m_axis; if there are several, followed by the name of the tensor. in or out of plain ports."""
        return PLAIN_NAMES[self.node.name] if self.is_plain else self.node.name

    @property
    def label(self) -> str:
        """The suffix of the name, "" for a single port."""
        return self.node.name[len("s_axis") :]

    @property
    def stream(self) -> Stream:
        """The stream inside the core."""
        return self.node.result

    @property
    def cuts_ready(self) -> bool:
        """True if the input port cuts the ready path to the core's consumer, see Port."""
        return isinstance(self.node.unit, Port) and self.node.unit.cuts_ready

    @property
    def on_bus(self) -> bool:
        """True if the port is on a bus that the options request."""
        return isinstance(self.node.unit, Port) and self.node.unit.bus is not None

    @property
    def is_plain(self) -> bool:
        """True if the port has no handshake."""
        return isinstance(self.node.unit, Port) and self.node.unit.plain

    @property
    def data_bits(self) -> int:
        """Bits of the data pins: whole bytes, or the bits of a beat on plain ports."""
        return self.stream.bits if self.is_plain else self.layout.width

    @property
    def layout(self) -> BusLayout:
        """How a frame lies on the port; of a plain port, how its words lie in files."""
        return layout_of(self.node)

    def part(self, codes: Array) -> Array:
        """The elements (frames, elements) that pass this port, from codes (frames, *shape) of the graph's input or
        output."""
        return codes.reshape(len(codes), -1)[:, self.offset : self.offset + self.value.size]


@dataclass(frozen=True, eq=False)
class Network:
    """All nodes in the order of the data, with the input ports first and the output ports last.

    `layout`: order of the elements of every value in its streams. `folding`: PE and SIMD of every layer that
    multiplies, and the lanes of the input, as in folding.yaml. `choices`: the realization of every quantizer, by the
    name of its layer.
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
        nodes = divided(self.nodes)[0]
        ports = zip(nodes, self.graph.streamed_inputs[: len(nodes)], strict=True)
        return tuple(CorePort(node, *piece, self.orders[piece[0]]) for node, piece in ports)

    @property
    def outputs(self) -> tuple[CorePort, ...]:
        """The output ports."""
        nodes = divided(self.nodes)[2]
        ports = zip(nodes, self.graph.streamed_outputs[: len(nodes)], strict=True)
        return tuple(CorePort(node, *piece, self.orders[piece[0]]) for node, piece in ports)

    @property
    def inner(self) -> list[Node]:
        """The nodes between the ports."""
        return divided(self.nodes)[1]


def on_bus(nodes: Sequence[Node], width: int) -> list[Node]:
    """The nodes with all ports on buses of `width` bits."""

    def widened(node: Node) -> Node:
        return replace(node, unit=Port(bus_layout(node.result.bits, node.result.beats, width)))

    widened_nodes = [widened(node) if isinstance(node.unit, Port) else node for node in nodes]
    words = layout_of(widened_nodes[0]).words
    return [
        replace(node, unit=replace(node.unit, words=words)) if isinstance(node.unit, FrameStart) else node
        for node in widened_nodes
    ]


def layout_of(node: Node) -> BusLayout:
    """How a frame lies on a port."""
    bus = node.unit.bus if isinstance(node.unit, Port) else None
    return bus or bus_layout(node.result.bits, node.result.beats, None)


@dataclass(frozen=True)
class Timing:
    """Cycles of a frame, with a source that always offers a beat and a sink that is always ready.

    `latency`: from the first input beat to the last output beat. `interval`: cycles between two frames. `critical`:
    names of FIFOs that cannot be one beat smaller without costing cycles. `spare`: the share that was added to all
    depths because the network is too large for a search. `exact`: False if the network is too large to simulate. Then
    `latency` is an estimate, and `interval` is a lower bound: the interval of the slowest unit. `fixed`: every frame
    has this latency, as the ports have no handshake.
    """

    latency: int
    interval: int
    critical: tuple[str, ...] = ()
    spare: float = 0.0
    exact: bool = True
    fixed: bool = False

    @property
    def cycles(self) -> dict[str, int | bool]:
        """The fields as written for programs; `estimated` and `fixed` only if true."""
        marks = {"estimated": not self.exact, "fixed": self.fixed}
        return {"latency": self.latency, "interval": self.interval, **{k: True for k, mark in marks.items() if mark}}


def bus_streams(bus: BusLayout) -> tuple[Stream, Stream]:
    """The streams of bus words and of beats, both in elements that make up both.

    An element is a beat or, if a beat is longer than a word, a word.
    """
    type_ = IntType(0, (1 << (bus.beat_bits if bus.parts == 1 else bus.width)) - 1)
    elements = bus.beats * bus.parts
    return Stream(type_, bus.slots, bus.words, elements), Stream(type_, bus.parts, bus.beats, elements)
