"""Layers become units: streams, widths, forks, and what lies between."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.builder import NamedStream, fold_table
from hlsgen.dataflow.folding import Targets
from hlsgen.dataflow.lower_windows import Images
from hlsgen.dataflow.units import (
    FLOAT_WORD,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    Crop,
    FloatKeyUnit,
    FloatUnit,
    JoinStreams,
    MatVec,
    Node,
    PadBorder,
    Port,
    Product,
    Reorder,
    RescaleUnit,
    SelectLanes,
    Stream,
    Unit,
    stream_of,
)
from hlsgen.dataflow.weighted_units import product_of
from hlsgen.dataflow.workload import Folding, divisors, work_of
from hlsgen.diagnostics import fail
from hlsgen.ir import (
    ArgMaxLayer,
    BinaryMap,
    Concatenation,
    Convolution,
    FloatKey,
    Graph,
    Linear,
    Map,
    PackBytes,
    Pad,
    Pooling,
    Rearrange,
    Repeat,
    Slice,
    View,
)
from hlsgen.ir.stream_order import StreamOrder, axes_of, common_axes, vectors
from hlsgen.ir.value_ranges import value_range
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Choice, FloatUnits, Indexed, realize, realize_join, specialize
from hlsgen.rescale.binary import search
from hlsgen.rescale.realize.float_ops import FloatCompare, ToCode

#: Lanes that the names of threshold files can tell apart.
MAX_LANES = 9999


class Planner(Images):
    """Appends nodes layer by layer."""

    def __init__(self, graph: Graph, layout: StreamOrder, folding: Folding, targets: Targets) -> None:
        super().__init__(graph, layout, folding, targets)
        self.choices: dict[str, Choice] = {}
        self._input()

    # ----------------------------------------------------------------- ends

    def _input(self) -> None:
        graph = self.graph
        lanes, group = self._input_lanes()
        stream = stream_of(graph.input.type, lanes, graph.input.size, group)
        if isinstance(graph.input.encoding, FloatKey):
            stream = replace(stream, type=FLOAT_WORD)
        self._deliver(0, self._append("s_axis", Port(), [NamedStream("input", stream)], stream))

    def _input_lanes(self) -> tuple[int, int]:
        """(lanes, group) of the input: what the first layer takes that is no function."""
        size = self.graph.input.size
        first = next((x for x in self.graph.layers if not isinstance(x, Map | View)), None)
        match first:
            case Linear():
                pe, simd = self.folding[first.name]
                windows = work_of(first).windows(pe)
                return windows * max(d for d in divisors(first.weight.shape[1]) if d <= simd), size
            case Convolution():
                pe, simd = self.folding[first.name]
                work = work_of(first)
                split = first.groups > 1 and not work.depthwise and not work.at_once(pe, simd)
                channels = first.weight.shape[3] if split else first.source.shape[-1]
                return self._pixels(first) * max(d for d in divisors(channels) if d <= work.elements(pe, simd)), size
            case _:
                pass
        least = -(-size // self.target) if self.folding else 1
        lanes = self.targets.lanes or (-(-size // self.targets.cycles) if self.targets.cycles else least)
        if not 1 <= lanes <= MAX_LANES:
            raise fail("HG040", "--lanes", f"{lanes} lanes.", "Supported: 1 to 9999.")
        if first is None:
            return min(lanes, size), size
        channels = first.result.shape[-1] if isinstance(first, BinaryMap | PackBytes) else self._channels(first)
        even = max(d for d in divisors(channels) if d <= lanes)
        if self.targets.lanes is None and size // even > self.target:
            even = next((d for d in divisors(size) if size // d <= self.target and d <= MAX_LANES), even)
        return even, size

    @staticmethod
    def _channels(layer: object) -> int:
        source = layer.sources[0] if isinstance(layer, Concatenation) else getattr(layer, "source", None)
        assert source is not None
        return int(source.shape[-1])

    def finish(self) -> list[Node]:
        flow = self.flows[self.root[-1]].pop(0)
        lanes, group = flow.stream.lanes, flow.stream.group
        if group % lanes and flow.stream.groups > 1:
            dense = max(d for d in divisors(group) if d <= lanes)
            if flow.elements // dense > self.target:
                dense, group = lanes, flow.elements
            flow = self._converted(flow, dense, group, "m_axis_width")
        self._append("m_axis", Port(), [flow], flow.stream)
        return self.nodes

    # ----------------------------------------------------------------- layers

    def add(self, i: int) -> None:
        """The nodes of layer i."""
        layer = self.graph.layers[i]
        number = sum(not isinstance(before, View) for before in self.graph.layers[:i])
        match layer:
            case View():
                return
            case Map():
                flow = self._map(i, layer, f"q{number}")
            case Linear():
                flow = self._linear(i, layer, f"mv{number}")
            case Convolution():
                flow = self._convolution(i, layer, f"conv{number}")
            case Pooling():
                flow = self._pooling(i, layer, f"pool{number}")
            case Rearrange():
                flow = self._rearrange(i, layer, f"move{number}")
            case Concatenation():
                flow = self._concatenation(i, layer, f"cat{number}")
            case BinaryMap():
                flow = self._merge(i, layer, f"add{number}")
            case PackBytes():
                flow = self._packing(i, layer, f"pack{number}")
            case ArgMaxLayer():
                flow = self._winner(i, layer, f"top{number}")
            case _:
                assert_never(layer)
        self._deliver(i + 1, flow)

    def _winner(self, i: int, layer: ArgMaxLayer, name: str) -> NamedStream:
        count = layer.source.shape[-1]
        flow = self._take(i, 0, name)
        flow = self._dense(flow, flow.stream.lanes, count, f"{name}_width")
        beats = count // flow.stream.lanes
        result = stream_of(layer.result.type, 1, layer.result.size, 1)
        return self._append(name, ArgMaxUnit(beats), [flow], result, layer.name, i)

    def _map(self, i: int, layer: Map, name: str) -> NamedStream:
        flow = self._take(i, 0, name)
        interval = value_range(self.graph, layer.inputs[0]) or (None, None)
        f = specialize(layer, self.layout.orders[i + 1], *interval)
        table = fold_table(f.index, flow.stream)
        choice = realize(f, table, self.targets.preference(layer.name))
        self.choices[layer.name] = choice
        if isinstance(choice.realization, FloatUnits):
            return self._float_units(i, layer, name, choice.realization, table, flow)
        if f.is_float:
            keys = replace(flow.stream, type=layer.source.type)
            flow = self._append(f"{name}_key", FloatKeyUnit(), [flow], keys, layer.name)
        return self._rescale(i, layer.name, name, choice, table, flow, layer.result.type)

    def _rescale(
        self, i: int, layer: str, name: str, choice: Choice, table: Array, flow: NamedStream, type_: IntType
    ) -> NamedStream:  # fmt: skip
        found = choice.realization
        assert not isinstance(found, FloatUnits)
        result = replace(flow.stream, type=type_)
        if isinstance(found, Indexed):
            index = replace(flow.stream, type=found.index)
            flow = self._append(f"{name}_search", RescaleUnit(found.search, table), [flow], index, layer)
            found = found.codes
        return self._append(name, RescaleUnit(found, table), [flow], result, layer, i)

    def _float_units(
        self, i: int, layer: Map, name: str, found: FloatUnits, table: Array, flow: NamedStream
    ) -> NamedStream:
        plain = flow.stream
        word, end = replace(plain, type=FLOAT_WORD), replace(plain, type=layer.result.type)
        for n, unit in enumerate(found.units):
            last = n == len(found.units) - 1
            to, position = (end, i) if last else (word, -1)
            match unit:
                case FloatCompare(thresholds):
                    flow = self._append(f"{name}_{n}_key", FloatKeyUnit(), [flow], word, layer.name)
                    count = IntType(thresholds.base, thresholds.base + len(thresholds.table))
                    to = to if last else replace(plain, type=count)
                    step: Unit = RescaleUnit(thresholds, table)
                case ToCode(output=output):
                    to = to if last else replace(plain, type=output)
                    step = FloatUnit(unit, table)
                case _:
                    step = FloatUnit(unit, table)
            flow = self._append(f"{name}_{n}", step, [flow], to, layer.name, position)
        return flow

    def _linear(self, i: int, layer: Linear, name: str) -> NamedStream:
        pe, simd = self.folding[layer.name]
        rows, columns = layer.weight.shape
        found = vectors(self.layout.of_input(self.graph, i), layer.source.shape)
        assert found is not None
        windows, product = work_of(layer).windows(pe), product_of(layer)
        flow = self._take(i, 0, name)
        zeros = product is not Product.INTEGER
        flow = self._converted(flow, windows * simd, windows * columns, f"{name}_width", zeros=zeros)
        unit = MatVec(
            weight=layer.weight.reshape(rows, 1, columns),
            order=found[1],
            product=product,
            pe=pe // windows,
            simd=simd,
            vectors=layer.source.size // columns,
            windows=windows,
        )
        result = stream_of(layer.result.type, pe, layer.result.size, windows * rows)
        return self._append(name, unit, [flow], result, layer.name, i)

    def _rearrange(self, i: int, layer: Rearrange, name: str) -> NamedStream:
        flow = self._take(i, 0, name)
        match layer.op:
            case Repeat(rows, columns):
                return self._repeat(i, layer, name, flow, rows, columns)
            case Pad(pads):
                height, width, channels = layer.source.shape[-3:]
                flow = self._converted(flow, min(flow.stream.lanes, channels), channels, f"{name}_width")
                flow = self._extended(flow, layer.result.type, name)
                unit = PadBorder(height, width, flow.stream.group_beats, pads, layer.pad)
                result = stream_of(layer.result.type, flow.stream.lanes, layer.result.size, channels)
                return self._append(name, unit, [flow], result, layer.name, i)
            case Slice(ranges):
                return self._slice(i, layer, name, flow, ranges)
            case _:
                assert_never(layer.op)

    def _extended(self, flow: NamedStream, type_: IntType, name: str) -> NamedStream:
        """With elements of another type: a function that changes nothing."""
        if (flow.stream.type.bits, flow.stream.type.signed) == (type_.bits, type_.signed):
            return flow
        raise fail("HG034", name, "the border's code is outside of the input's type.", "Pad with a quantized value.")

    def _repeat(self, i: int, layer: Rearrange, name: str, flow: NamedStream, rows: int, columns: int) -> NamedStream:
        """Rows from a buffer; columns too, or as wires, of several pixels in a beat, if the target needs it."""
        (height, width, channels), size = layer.source.shape[-3:], layer.result.size
        lanes = min(flow.stream.lanes, channels)
        if size // channels * -(-channels // lanes) > self.target:
            lanes = channels
        if size // channels > self.target:
            pixels = next((p for p in divisors(width) if height * rows * width // p <= self.target), width)
            group = pixels * channels
            flow = self._converted(flow, group, group, f"{name}_width")
            places = np.arange(group).reshape(pixels, channels).repeat(columns, axis=0).ravel()
            beats = width // pixels
            result = Stream(layer.result.type, group, height * rows * beats, group)
            steps: list[tuple[Unit, Stream]] = []
            if rows > 1:
                steps.append((Reorder(beats, ((rows, 0), (beats, 1))), result))
            if columns > 1 or not steps:
                steps.append(
                    (SelectLanes(tuple(places.tolist())), replace(result, lanes=len(places), group=len(places)))
                )
            for n, (part, sent) in enumerate(steps):
                last = n == len(steps) - 1
                own = name if last else f"{name}_rows"
                flow = self._append(own, part, [flow], sent, layer.name if last else "", i if last else -1)
            return flow
        flow = self._converted(flow, lanes, channels, f"{name}_width")
        folds = flow.stream.group_beats
        result = stream_of(layer.result.type, flow.stream.lanes, size, channels)
        if rows == 1:
            unit: Unit = Reorder(folds, ((columns, 0), (folds, 1)))
        else:
            unit = Reorder(width * folds, ((rows, 0), (width, folds), (columns, 0), (folds, 1)))
        return self._append(name, unit, [flow], result, layer.name, i)

    def _slice(
        self, i: int, layer: Rearrange, name: str, flow: NamedStream, ranges: tuple[tuple[int, int, int], ...]
    ) -> NamedStream:  # fmt: skip
        shape = layer.source.shape
        axes = axes_of(self.layout.of_input(self.graph, i), shape)
        assert axes is not None
        levels = [(shape[a], *ranges[a]) for a in axes if shape[a] > 1]
        merged: list[tuple[int, int, int, int]] = []
        for size, start, stop, step in levels:
            if merged and (start, stop, step) == (0, size, 1):
                # Full in the inner axis: whole pieces of the outer one, if that keeps neighbours.
                outer = merged[-1]
                if outer[3] == 1:
                    merged[-1] = (outer[0] * size, outer[1] * size, outer[2] * size, 1)
                    continue
            merged.append((size, start, stop, step))
        if len(merged) > 3:
            raise fail("HG010", layer.name, "it cuts in more than three axes.", "Cut in several steps.")
        merged = [(1, 0, 1, 1)] * (3 - len(merged)) + merged
        size, start, stop, step = merged[-1]
        common = math.gcd(size, start, stop) if step == 1 else 1
        lanes = math.gcd(common, flow.stream.lanes)
        if flow.elements // lanes > self.target:
            lanes = next((d for d in divisors(common) if flow.elements // d <= self.target), common)
            if flow.elements // lanes > self.target and size == shape[axes[-1]]:
                return self._picked(i, layer, name, flow, merged)
        flow = self._dense(flow, lanes, flow.elements, f"{name}_width")
        lanes = flow.stream.lanes
        merged[-1] = (size // lanes, start // lanes, stop // lanes, step)
        rows, columns, beats = ((m[1], m[2], m[3]) for m in merged)
        unit = Crop((merged[0][0], merged[1][0], merged[2][0]), rows, columns, beats)
        result = stream_of(layer.result.type, lanes, layer.result.size, layer.result.size)
        return self._append(name, unit, [flow], result, layer.name, i)

    def _picked(
        self, i: int, layer: Rearrange, name: str, flow: NamedStream, levels: list[tuple[int, int, int, int]]
    ) -> NamedStream:  # fmt: skip
        """A slice of the innermost level as wires, of several pieces in a beat if the target needs it."""
        size, *inner = levels[-1]
        outer, count = levels[:-1], flow.elements // size
        whole = all((start, stop, step) == (0, length, 1) for length, start, stop, step in outer)
        pieces = next(d for d in divisors(count) if count // d <= self.target) if whole else 1
        flow = self._converted(flow, pieces * size, pieces * size, f"{name}_width")
        if not whole:
            kept = [len(range(*level[1:])) for level in outer]
            cut = Crop((outer[0][0], outer[1][0], 1), outer[0][1:], outer[1][1:], (0, 1, 1))
            result = replace(flow.stream, beats=math.prod(kept))
            flow = self._append(f"{name}_rows", cut, [flow], result)
        places = np.arange(pieces * size).reshape(pieces, size)[:, slice(*inner)].ravel()
        result = Stream(layer.result.type, len(places), flow.stream.beats, len(places))
        return self._append(name, SelectLanes(tuple(places.tolist())), [flow], result, layer.name, i)

    def _concatenation(self, i: int, layer: Concatenation, name: str) -> NamedStream:
        shapes = [s.shape for s in layer.sources]
        orders = [self.layout.of_input(self.graph, i, n) for n in range(len(shapes))]
        axes = common_axes(orders, shapes)
        assert axes is not None
        inner = [math.prod(s[a] for a in axes[axes.index(layer.axis) :]) for s in shapes]
        flows = [self._take(i, n, name) for n in range(len(shapes))]
        lanes = max(d for d in divisors(math.gcd(*inner)) if d <= max(f.stream.lanes for f in flows))
        if axes[-1] == layer.axis and layer.result.size // lanes > self.target:
            return self._beside(i, layer, name, flows, inner)
        flows = [
            self._waiting(self._converted(f, lanes, size, f"{name}_width{n}"), f"{name}_wait{n}")
            for n, (f, size) in enumerate(zip(flows, inner, strict=True))
        ]
        flow, done = flows[0], inner[0]
        for n, (other, size) in enumerate(zip(flows[1:], inner[1:], strict=True), 1):
            last = n == len(flows) - 1
            result = stream_of(layer.result.type, lanes, flow.elements + other.elements, done + size)
            unit = ConcatBeats((done // lanes, size // lanes))
            own = name if last else f"{name}_{n}"
            flow = self._append(own, unit, [flow, other], result, layer.name, i if last else -1)
            done += size
        return flow

    def _beside(
        self, i: int, layer: Concatenation, name: str, flows: list[NamedStream], channels: list[int]
    ) -> NamedStream:
        """Whole pixels of both sides in a beat, as many as the target needs."""
        places = layer.result.size // sum(channels)
        pixels = next(d for d in divisors(places) if places // d <= self.target)
        sides = [
            self._waiting(self._converted(f, pixels * own, pixels * own, f"{name}_width{n}"), f"{name}_wait{n}")
            for n, (f, own) in enumerate(zip(flows, channels, strict=True))
        ]
        flow, done = sides[0], channels[0]
        for n, (other, own) in enumerate(zip(sides[1:], channels[1:], strict=True), 1):
            last, both = n == len(sides) - 1, pixels * (done + own)
            result = Stream(layer.result.type, both, places // pixels, both)
            at = (name, layer.name, i) if last else (f"{name}_{n}", layer.name, -1)
            flow = self._append(at[0], ConcatChannels((done, own), pixels), [flow, other], result, *at[1:])
            done += own
        return flow

    def _both(self, i: int, name: str) -> list[NamedStream]:
        """Two inputs in the same beats."""
        a, b = (self._take(i, n, name) for n in (0, 1))
        if a.stream.lanes > b.stream.lanes and b.stream.group % b.stream.lanes == 0:
            a = self._converted(a, b.stream.lanes, b.stream.group, f"{name}_width0")
        b = self._converted(b, a.stream.lanes, a.stream.group, f"{name}_width1")
        return [self._waiting(flow, f"{name}_wait{n}") for n, flow in enumerate((a, b))]

    def _packing(self, i: int, layer: PackBytes, name: str) -> NamedStream:
        flows = self._both(i, name)
        result = replace(flows[0].stream, type=layer.result.type)
        return self._append(name, JoinStreams(None, packed=True), flows, result, layer.name, i)

    def _merge(self, i: int, layer: BinaryMap, name: str) -> NamedStream:
        flows = self._both(i, name)
        first, second = (value_range(self.graph, j) for j in layer.inputs)
        found = search.find(layer, self.layout.orders[i + 1], (first, second))
        if isinstance(found, str):
            raise fail(
                "HG037", layer.name, f"no hardware was found for this function of two tensors. {found}.",
                "Quantize both tensors to fewer bits before they are joined.",
            )  # fmt: skip
        table = fold_table(found.index, flows[0].stream)
        choice = realize_join(found, table, self.targets.preference(layer.name))
        self.choices[layer.name] = choice
        way = choice.way
        assert way is not None
        for n, own in enumerate(way.tables):
            if own is not None:
                result = replace(flows[n].stream, type=way.operands[n])
                flows[n] = self._append(f"{name}_table{n}", RescaleUnit(own, table), [flows[n]], result, layer.name)
        joined = replace(flows[0].stream, type=way.type)
        unit = JoinStreams(way.factors, way.zeros, way.packed)
        flow = self._append(f"{name}_join", unit, flows, joined, layer.name)
        return self._rescale(i, layer.name, name, choice, table, flow, layer.result.type)
