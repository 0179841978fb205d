"""Streams between units: forks, widths, orders, and who takes what."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.dataflow.units import Fifo, Fork, Node, Reorder, Stream, Unit, WidthConverter, stream_of
from hlsgen.dataflow.workload import divisors
from hlsgen.diagnostics import fail
from hlsgen.ir import Graph, View
from hlsgen.ir.stream_order import StreamOrder, block, nest
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class NamedStream:
    """A stream by name."""

    wire: str
    stream: Stream

    @property
    def elements(self) -> int:
        return self.stream.groups * self.stream.group


class Streams:
    """The units so far. `flows` has what still can be taken of each value of the graph."""

    def __init__(self, graph: Graph, layout: StreamOrder) -> None:
        self.graph, self.layout = graph, layout
        self.nodes: list[Node] = []
        self.flows: dict[int, list[NamedStream]] = {}
        self.root = list(range(len(graph.layers) + 1))
        for i, layer in enumerate(graph.layers):
            if isinstance(layer, View):
                self.root[i + 1] = self.root[layer.inputs[0]]
        self.users = [0] * len(self.root)
        for layer in graph.layers:
            for j in layer.inputs if not isinstance(layer, View) else ():
                self.users[self.root[j]] += 1
        self.users[self.root[-1]] += 1

    def _append(
        self, name: str, unit: Unit, sources: list[NamedStream], result: Stream, layer: str = "", position: int = -1
    ) -> NamedStream:  # fmt: skip
        inputs, streams = tuple(f.wire for f in sources), tuple(f.stream for f in sources)
        self.nodes.append(Node(name, unit, inputs, streams, (name,), result, layer, position))
        return NamedStream(name, result)

    def _deliver(self, value: int, flow: NamedStream) -> None:
        """The value is on that stream: forked, if several take it."""
        count = self.users[value]
        if count <= 1:
            self.flows[value] = [flow]
            return
        name = f"{flow.wire}_fork"
        outputs = tuple(f"{name}_{k}" for k in range(count))
        self.nodes.append(Node(name, Fork(count), (flow.wire,), (flow.stream,), outputs, flow.stream))
        self.flows[value] = [NamedStream(wire, flow.stream) for wire in outputs]

    def _take(self, i: int, n: int, name: str) -> NamedStream:
        """The n-th input of layer i, in the order in which it wants it."""
        value = self.graph.layers[i].inputs[n]
        flow = self.flows[self.root[value]].pop(0)
        wanted = self.layout.wanted.get((i, n))
        if wanted is None:
            return flow
        layer = self.graph.layers[i].name
        return self._reordered(flow, self.layout.orders[value], wanted, f"{name}_order{n}", layer)

    def _reordered(self, flow: NamedStream, given: Array, wanted: Array, name: str, layer: str) -> NamedStream:
        """The stream in another order, through a buffer. Raises HG035."""
        position: Array = np.empty_like(given)
        position[given] = np.arange(len(given))
        address = position[wanted]
        lanes = max(x for x in divisors(math.gcd(flow.stream.lanes, len(given))) if _together(address, x))
        flow = self._converted(flow, lanes, len(given), f"{name}_width")
        beats = address[::lanes] // lanes
        length = block(beats, len(beats))
        loops = nest(beats[:length])
        if loops is None:
            raise fail(
                "HG035", layer, "a Transpose or Reshape puts the elements of a layer's input in an order that no "
                "buffer can make.", "Move the Transpose out of the network.",
            )  # fmt: skip
        return self._append(name, Reorder(length, loops), [flow], flow.stream)

    def _converted(self, flow: NamedStream, lanes: int, group: int, name: str, *, zeros: bool = False) -> NamedStream:
        """The stream with so many lanes and groups of so many elements; `zeros`: its pad lanes must be 0."""
        own = flow.stream
        dense = own.group % lanes == 0 and group % lanes == 0
        if own.lanes == lanes and (dense or own.group == group) and not (zeros and group % lanes):
            return NamedStream(flow.wire, replace(own, group=group))
        result = stream_of(own.type, lanes, flow.elements, group)
        return self._append(name, WidthConverter(), [flow], result)

    def _dense(self, flow: NamedStream, lanes: int, group: int, name: str) -> NamedStream:
        """With no more than so many lanes, and none of them empty."""
        return self._converted(flow, max(d for d in divisors(group) if d <= lanes), group, name)

    def _waiting(self, flow: NamedStream, name: str) -> NamedStream:
        """Behind a FIFO, for a stream that waits for another one; its depth comes later."""
        return self._append(name, Fifo(2), [flow], flow.stream)


def _together(address: Array, lanes: int) -> bool:
    """Whether beats of so many elements stay together."""
    if len(address) % lanes:
        return False
    table = address.reshape(-1, lanes)
    return bool((table[:, 0] % lanes == 0).all() and (table == table[:, :1] + np.arange(lanes)).all())


def fold_table(index: Array, stream: Stream) -> Array:
    """(folds, lanes): the set that each lane of beat b uses is row b mod folds; empty lanes take any."""
    table: Array = np.full((stream.groups, stream.group_beats * stream.lanes), -1)
    table[:, : stream.group] = index.reshape(stream.groups, stream.group)
    table = table.reshape(stream.beats, stream.lanes)
    for folds in divisors(stream.beats):
        rows = table.reshape(-1, folds, stream.lanes)
        wanted = rows.max(axis=0)
        if ((rows == wanted) | (rows < 0)).all():
            break
    return np.asarray(np.maximum(wanted, 0))
