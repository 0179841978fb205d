"""Connects units by streams: forks, width converters, orders, and the consumers of each value."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from hlsgen.dataflow import units
from hlsgen.dataflow.code_ranges import code_ranges
from hlsgen.dataflow.folding import Targets, pixels_moved
from hlsgen.dataflow.layer_names import layer_names
from hlsgen.dataflow.pipelining import pipelined
from hlsgen.dataflow.regrouping import regrouped_streams
from hlsgen.dataflow.weighted_units import weight_bits, worth_a_dsp_block
from hlsgen.dataflow.workload import Folding, divisors, work_of
from hlsgen.diagnostics import fail
from hlsgen.ir import Convolution, Delay, Graph, Linear, MatrixProduct, View
from hlsgen.ir.stream_order import StreamOrder, block_length, loop_nest
from hlsgen.ir.value_ranges import ValueRange, value_range
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice, Preference, Prices

Result = TypeVar("Result")


@dataclass(frozen=True)
class NamedStream:
    """A stream and its name."""

    wire: str
    stream: units.Stream

    @property
    def elements(self) -> int:
        return self.stream.groups * self.stream.group


def _layer_names(graph: Graph) -> dict[int, str]:
    """The name of the node of each layer, by position of the layer; views have no nodes."""
    layers = {i: layer.name for i, layer in enumerate(graph.layers) if not isinstance(layer, View)}
    return dict(zip(layers, layer_names(layers.values()), strict=True))


class NetworkBuilder:
    """The nodes so far, and the streams that carry the values of the graph.

    `target`: cycles that a frame may take. `prices`: prices by which realizations are chosen. `choices`: the
    realization of every quantizer so far. `is_finished`: the output ports are among the nodes. `neurons`: quantizers
    that are in tables with the matrix before them, by position, and their result. `unit_lut`: see `Backend`.
    `layer_names`: the name of each layer's node. `once_by_key`: results that do not depend on the folding, shared by
    all builders of a graph.
    """

    def __init__(
        self,
        graph: Graph,
        layout: StreamOrder,
        folding: Folding,
        targets: Targets,
        prices: Prices,
        adders_pay: Callable[[units.Node, units.Node], bool] | None = None,
        tables_of: Callable[[units.Node, Targets], units.SumTables | None] | None = None,
        once_by_key: dict[Hashable, Any] | None = None,
        unit_lut: Callable[[units.Node, str], float] = lambda node, family: 0.0,
    ) -> None:
        self.once_by_key: dict[Hashable, Any] = {} if once_by_key is None else once_by_key
        self.graph, self.layout, self.folding = graph, layout, folding
        self.targets, self.prices, self.adders_pay, self.tables_of = targets, prices, adders_pay, tables_of
        self.unit_lut = unit_lut
        works = [(work_of(x), x.name) for x in graph.layers if isinstance(x, Linear | MatrixProduct | Convolution)]
        min_cycles = targets.cycles or pixels_moved(graph)
        self.target = max([min_cycles, *(w.cycles(*folding[n]) for w, n in works)])
        # With a frame a cycle, each element has a lane of its own, whose adders fit the codes that it can have.
        self.narrows = bool(works) and self.target == 1 and adders_pay is not None
        self.nodes: list[units.Node] = []
        self.is_finished = False
        self.choices: dict[str, Choice] = {}
        self.neurons: dict[int, tuple[Choice, units.Stream]] = {}
        self.layer_names = self.once("layer names", lambda: _layer_names(graph))
        self._root = list(range(len(graph.layers) + 1))
        for i, layer in enumerate(graph.layers):
            if isinstance(layer, View):
                self._root[i + 1] = self._root[layer.inputs[0]]
        # Consumers of each value as (layer, input of the layer). Each consumer has its own stream.
        self._consumers: list[list[tuple[int, int]]] = [[] for _ in self._root]
        for i, layer in enumerate(graph.layers):
            for n, value in enumerate(layer.inputs if not isinstance(layer, View) else ()):
                self._consumers[self._root[value]].append((i, n))
        self._consumers[self._root[-1]].append((len(graph.layers), 0))
        for i, layer in enumerate(graph.layers):
            if isinstance(layer, Delay):
                self._consumers[self._root[layer.delayed]].append((i, 1))
        if graph.states:
            # The frames of the first input begin sequences.
            self._consumers[graph.streamed_inputs[0][0]].append(self._first_state)
        # Streams that are consumed before their producer exists, by number of the layer.
        self.unfed_loops: dict[int, NamedStream] = {}
        self._streams: dict[int, tuple[NamedStream, ...]] = {}

    def once(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of `compute`, computed once per key for all builders of the graph."""
        if key not in self.once_by_key:
            self.once_by_key[key] = compute()
        computed: Result = self.once_by_key[key]
        return computed

    def choice_once(self, i: int, table: Array, preference: Preference, choose: Callable[[], Choice]) -> Choice:
        """The realization of layer i for these channel parameters in these lanes, computed once."""
        return self.once(
            ("choice", i, self.narrows, table.shape, table.tobytes(), preference.prefer, preference.forced), choose
        )

    def code_range(self, value: int) -> ValueRange | None:
        """The interval of each element of a value, or None for all codes of its type."""
        if not self.narrows:
            return value_range(self.graph, value)
        return self.once("code ranges", lambda: code_ranges(self.graph))[value]

    def append(
        self,
        name: str,
        unit: units.Unit,
        sources: list[NamedStream],
        result: units.Stream,
        layer: str = "",
        position: int = -1,
    ) -> NamedStream:
        """Adds a node and returns its stream; `position`: the layer whose result it is, -1 if none."""
        inputs, streams = tuple(f.wire for f in sources), tuple(f.stream for f in sources)
        unit = pipelined(unit, self.targets.pipelining)
        if layer and self.targets.uses_dsp(layer):
            unit = _in_dsp_blocks(unit, streams[0].type, self.targets.dsp_factor_bits)
        self.nodes.append(units.Node(name, unit, inputs, streams, (name,), result, layer, position))
        return NamedStream(name, result)

    def deliver(self, value: int, flow: NamedStream) -> None:
        """Registers `flow` as the stream of the value, forked if the value has several consumers."""
        count = len(self._consumers[value])
        self._streams[value] = (flow,) if count <= 1 else self.forked(flow, count, f"{flow.wire}_fork")

    def forked(self, flow: NamedStream, count: int, name: str) -> tuple[NamedStream, ...]:
        """Copies of the stream for `count` consumers."""
        outputs = tuple(f"{name}_{k}" for k in range(count))
        self.nodes.append(units.Node(name, units.Fork(count), (flow.wire,), (flow.stream,), outputs, flow.stream))
        return tuple(NamedStream(wire, flow.stream) for wire in outputs)

    def input_stream(self, i: int, n: int, name: str) -> NamedStream:
        """The n-th input of layer i, in the order that the layer requires."""
        value = self.graph.layers[i].inputs[n]
        flow = self._stream_for(value, i, n)
        required_order = self.layout.reorderings.get((i, n))
        if required_order is None:
            return flow
        layer = self.graph.layers[i].name
        return self.reordered(flow, self.layout.orders[value], required_order, f"{name}_order{n}", layer)

    def feedback_stream(self, i: int, layer: Delay) -> NamedStream:
        """The stream that returns to a Delay, layer i."""
        return self._stream_for(layer.delayed, i, 1)

    @property
    def _first_state(self) -> tuple[int, int]:
        """The first state as a consumer of the first input: its layer, and an input that the layer does not have."""
        return self.graph.streamed_inputs[-len(self.graph.states)][0] - 1, 1

    def frame_stream(self) -> NamedStream:
        """The stream of the first input, for the beginnings of frames."""
        return self._stream_for(self.graph.streamed_inputs[0][0], *self._first_state)

    def consumers(self, value: int) -> list[tuple[int, int]]:
        """The consumers of a value as (layer, input of the layer)."""
        return self._consumers[self._root[value]]

    def root(self, value: int) -> int:
        """The value of which this value is a View (itself if none)."""
        return self._root[value]

    def output_stream(self) -> NamedStream:
        """The graph's output, for the port."""
        last = len(self.graph.layers)
        return self._stream_for(last, last, 0)

    def _stream_for(self, value: int, i: int, n: int) -> NamedStream:
        """The stream of the value that input n of layer i consumes."""
        value = self._root[value]
        return self._streams[value][self._consumers[value].index((i, n))]

    def reordered(
        self, flow: NamedStream, source_order: Array, result_order: Array, name: str, layer: str
    ) -> NamedStream:
        """The stream in another order, through a buffer. Raises HG035."""
        position: Array = np.empty_like(source_order)
        position[source_order] = np.arange(len(source_order))
        address = position[result_order]
        lanes = max(x for x in divisors(math.gcd(flow.stream.lanes, len(source_order))) if _keeps_beats(address, x))
        flow = self.converted(flow, lanes, len(source_order), f"{name}_width")
        beats = address[::lanes] // lanes
        length = block_length(beats, len(beats))
        loops = loop_nest(beats[:length])
        if loops is None:
            raise fail(
                "HG035",
                layer,
                "a Transpose or Reshape puts the elements of a layer's input in an order that no buffer can make.",
                "Move the Transpose out of the network.",
            )
        return self.append(name, units.Reorder(length, loops), [flow], flow.stream)

    def converted(self, flow: NamedStream, lanes: int, group: int, name: str, *, zeros: bool = False) -> NamedStream:
        """The stream with `lanes` lanes and groups of `group` elements; `zeros`: its pad lanes must be 0."""
        source = flow.stream
        dense = source.group % lanes == 0 and group % lanes == 0
        if source.lanes == lanes and (dense or source.group == group) and not (zeros and group % lanes):
            return NamedStream(flow.wire, replace(source, group=group))
        *intermediate, last = regrouped_streams(source, flow.elements, lanes, group, self.target)
        for stream in intermediate:
            flow = self.append(f"{name}_narrow", units.WidthConverter(), [flow], stream)
        return self.append(name, units.WidthConverter(), [flow], last)

    def dense(self, flow: NamedStream, lanes: int, group: int, name: str) -> NamedStream:
        """The stream with at most `lanes` lanes, all of them used."""
        return self.converted(flow, max(d for d in divisors(group) if d <= lanes), group, name)

    def buffered(self, flow: NamedStream, name: str) -> NamedStream:
        """The stream after a FIFO, where it waits for another stream. The depth of the FIFO is set later."""
        return self.append(name, units.Fifo(2), [flow], flow.stream)


def _in_dsp_blocks(unit: units.Unit, x: IntType, factor_bits: int) -> units.Unit:
    """The unit with products in DSP blocks, if any of them is worth a block. `x`: type of the input codes."""
    match unit:
        case units.DynamicMatVec() if worth_a_dsp_block(unit.operands[0], unit.word.bits, units.Product.INTEGER):
            return replace(unit, dsp=units.DspProducts(factor_bits, unit.operands[0]))
        case units.MatVec() | units.ConvUnit() | units.GroupedMatVec() if worth_a_dsp_block(
            x, weight_bits(unit), unit.product
        ):
            return replace(unit, dsp=units.DspProducts(factor_bits, x))
        case _:
            return unit


def _keeps_beats(address: Array, lanes: int) -> bool:
    """True if the order `address` keeps the elements of each beat of `lanes` elements together."""
    if len(address) % lanes:
        return False
    table = address.reshape(-1, lanes)
    return bool((table[:, 0] % lanes == 0).all() and (table == table[:, :1] + np.arange(lanes)).all())


def fold_table(index: Array, stream: units.Stream) -> Array:
    """Channel parameters of each lane, (folds, lanes): beat b uses row b mod folds.

    Lanes without an element may use any parameters.
    """
    table: Array = np.full((stream.groups, stream.group_beats * stream.lanes), -1)
    table[:, : stream.group] = index.reshape(stream.groups, stream.group)
    table = table.reshape(stream.beats, stream.lanes)
    for folds in divisors(stream.beats):
        rows = table.reshape(-1, folds, stream.lanes)
        merged_rows = rows.max(axis=0)
        if ((rows == merged_rows) | (rows < 0)).all():
            break
    return np.asarray(np.maximum(merged_rows, 0))
