"""Streams between units: forks, widths, orders, and who takes what."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from hlsgen.dataflow.folding import Targets, pixels_moved
from hlsgen.dataflow.pipelining import pipelined
from hlsgen.dataflow.regrouping import regrouped_streams
from hlsgen.dataflow.units import (
    Blocks,
    ConvUnit,
    DynamicMatVec,
    Fifo,
    Fork,
    GroupedMatVec,
    MatVec,
    Node,
    Product,
    Reorder,
    Stream,
    SumTables,
    Unit,
    WidthConverter,
)
from hlsgen.dataflow.weighted_units import weight_bits, worth_a_block
from hlsgen.dataflow.workload import Folding, divisors, work_of
from hlsgen.diagnostics import fail
from hlsgen.ir import Convolution, Delay, Graph, Linear, MatrixProduct, View
from hlsgen.ir.stream_order import StreamOrder, block, nest
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice, Preference, Prices

Result = TypeVar("Result")


@dataclass(frozen=True)
class NamedStream:
    """A stream by name."""

    wire: str
    stream: Stream

    @property
    def elements(self) -> int:
        return self.stream.groups * self.stream.group


class NetworkBuilder:
    """The nodes so far, and the streams that carry the values of the graph.

    `target`: cycles that a frame may take. `prices`: those by which realizations are chosen. `choices`: the realization of every quantizer so far.
    `known`: results that do not depend on the folding, shared by all builders of a graph.
    """

    def __init__(
        self,
        graph: Graph,
        layout: StreamOrder,
        folding: Folding,
        targets: Targets,
        prices: Prices,
        adders_pay: Callable[[Node, Node], bool] | None = None,
        tables_of: Callable[[Node, Targets], SumTables | None] | None = None,
        known: dict[Hashable, Any] | None = None,
    ) -> None:
        self.known: dict[Hashable, Any] = {} if known is None else known
        self.graph, self.layout, self.folding = graph, layout, folding
        self.targets, self.prices, self.adders_pay, self.tables_of = targets, prices, adders_pay, tables_of
        works = [(work_of(x), x.name) for x in graph.layers if isinstance(x, Linear | MatrixProduct | Convolution)]
        least = targets.cycles or pixels_moved(graph)
        self.target = max([least, *(w.cycles(*folding[n]) for w, n in works)])
        self.nodes: list[Node] = []
        self.choices: dict[str, Choice] = {}
        self._root = list(range(len(graph.layers) + 1))
        for i, layer in enumerate(graph.layers):
            if isinstance(layer, View):
                self._root[i + 1] = self._root[layer.inputs[0]]
        # Who takes a value, by number of the layer and of its input, each from a stream of its own.
        self._takers: list[list[tuple[int, int]]] = [[] for _ in self._root]
        for i, layer in enumerate(graph.layers):
            for n, value in enumerate(layer.inputs if not isinstance(layer, View) else ()):
                self._takers[self._root[value]].append((i, n))
        self._takers[self._root[-1]].append((len(graph.layers), 0))
        for i, layer in enumerate(graph.layers):
            if isinstance(layer, Delay):
                self._takers[self._root[layer.delayed]].append((i, 1))
        # Streams that units take before there is what sends them, by number of the layer.
        self.open: dict[int, NamedStream] = {}
        self._streams: dict[int, tuple[NamedStream, ...]] = {}

    def once(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of `compute`, computed once for a key, whichever builder of the graph asks first."""
        if key not in self.known:
            self.known[key] = compute()
        result: Result = self.known[key]
        return result

    def choice_once(self, i: int, table: Array, preference: Preference, choose: Callable[[], Choice]) -> Choice:
        """The realization of layer i for these sets in these lanes, computed once."""
        return self.once(("choice", i, table.shape, table.tobytes(), preference.prefer, preference.forced), choose)

    def append(
        self, name: str, unit: Unit, sources: list[NamedStream], result: Stream, layer: str = "", position: int = -1
    ) -> NamedStream:
        """The stream of a new node; `position`: the layer whose result it is, -1 if none."""
        inputs, streams = tuple(f.wire for f in sources), tuple(f.stream for f in sources)
        unit = pipelined(unit, self.targets.pipelining)
        if layer and self.targets.in_blocks(layer):
            unit = _in_blocks(unit, streams[0].type, self.targets.block)
        self.nodes.append(Node(name, unit, inputs, streams, (name,), result, layer, position))
        return NamedStream(name, result)

    def deliver(self, value: int, flow: NamedStream) -> None:
        """The value is on that stream: forked, if several take it."""
        count = len(self._takers[value])
        self._streams[value] = (flow,) if count <= 1 else self.forked(flow, count, f"{flow.wire}_fork")

    def forked(self, flow: NamedStream, count: int, name: str) -> tuple[NamedStream, ...]:
        """The same stream for several takers."""
        outputs = tuple(f"{name}_{k}" for k in range(count))
        self.nodes.append(Node(name, Fork(count), (flow.wire,), (flow.stream,), outputs, flow.stream))
        return tuple(NamedStream(wire, flow.stream) for wire in outputs)

    def take(self, i: int, n: int, name: str) -> NamedStream:
        """The n-th input of layer i, in the order in which it wants it."""
        value = self.graph.layers[i].inputs[n]
        flow = self._taken(value, i, n)
        wanted = self.layout.wanted.get((i, n))
        if wanted is None:
            return flow
        layer = self.graph.layers[i].name
        return self.reordered(flow, self.layout.orders[value], wanted, f"{name}_order{n}", layer)

    def take_back(self, i: int, layer: Delay) -> NamedStream:
        """What comes back to a Delay, layer i."""
        return self._taken(layer.delayed, i, 1)

    def root(self, value: int) -> int:
        """The value that a value is only another name of."""
        return self._root[value]

    def take_output(self) -> NamedStream:
        """The graph's output, for the port."""
        last = len(self.graph.layers)
        return self._taken(last, last, 0)

    def _taken(self, value: int, i: int, n: int) -> NamedStream:
        value = self._root[value]
        return self._streams[value][self._takers[value].index((i, n))]

    def reordered(self, flow: NamedStream, given: Array, wanted: Array, name: str, layer: str) -> NamedStream:
        """The stream in another order, through a buffer. Raises HG035."""
        position: Array = np.empty_like(given)
        position[given] = np.arange(len(given))
        address = position[wanted]
        lanes = max(x for x in divisors(math.gcd(flow.stream.lanes, len(given))) if _together(address, x))
        flow = self.converted(flow, lanes, len(given), f"{name}_width")
        beats = address[::lanes] // lanes
        length = block(beats, len(beats))
        loops = nest(beats[:length])
        if loops is None:
            raise fail(
                "HG035", layer, "a Transpose or Reshape puts the elements of a layer's input in an order that no "
                "buffer can make.", "Move the Transpose out of the network.",
            )  # fmt: skip
        return self.append(name, Reorder(length, loops), [flow], flow.stream)

    def converted(self, flow: NamedStream, lanes: int, group: int, name: str, *, zeros: bool = False) -> NamedStream:
        """The stream with so many lanes and groups of so many elements; `zeros`: its pad lanes must be 0."""
        own = flow.stream
        dense = own.group % lanes == 0 and group % lanes == 0
        if own.lanes == lanes and (dense or own.group == group) and not (zeros and group % lanes):
            return NamedStream(flow.wire, replace(own, group=group))
        *first, last = regrouped_streams(own, flow.elements, lanes, group, self.target)
        for stream in first:
            flow = self.append(f"{name}_narrow", WidthConverter(), [flow], stream)
        return self.append(name, WidthConverter(), [flow], last)

    def dense(self, flow: NamedStream, lanes: int, group: int, name: str) -> NamedStream:
        """With no more than so many lanes, and none of them empty."""
        return self.converted(flow, max(d for d in divisors(group) if d <= lanes), group, name)

    def waiting(self, flow: NamedStream, name: str) -> NamedStream:
        """Behind a FIFO, for a stream that waits for another one; its depth comes later."""
        return self.append(name, Fifo(2), [flow], flow.stream)


def _in_blocks(unit: Unit, x: IntType, factor: int) -> Unit:
    """The unit with its products in multiplier blocks, if it has any that are worth it. `x`: the type of what comes."""
    match unit:
        case DynamicMatVec() if worth_a_block(unit.operands[0], unit.word.bits, Product.INTEGER):
            return replace(unit, blocks=Blocks(factor, unit.operands[0]))
        case MatVec() | ConvUnit() | GroupedMatVec() if worth_a_block(x, weight_bits(unit), unit.product):
            return replace(unit, blocks=Blocks(factor, x))
        case _:
            return unit


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
