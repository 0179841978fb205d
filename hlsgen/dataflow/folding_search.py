"""Chooses the cheapest PE and SIMD of all layers together: a layer's SIMD is its input width, its PE its output
width."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from hlsgen.dataflow.regrouping import dense_lanes, regrouped_streams
from hlsgen.dataflow.units import Stream, stream_of
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.ir import Convolution, Graph, Linear, Map, View
from hlsgen.numerics.fixed import IntType

#: Number of output widths of a layer, the cheapest ones, with which the search continues.
KEPT = 12
#: Penalty of an input that is too slow; more than any cost.
TOO_LATE = 1e12

Pair = tuple[int, int]
#: A prefix of a chain of layers: its cost, the sum of SIMD (at equal cost less is better), the folding of each layer.
_Prefix = tuple[float, int, tuple[Pair, ...]]


@dataclass(frozen=True)
class FoldingPrice:
    """The cost of foldings, in any unit.

    - `layer`: cost of a layer with a PE and a SIMD.
    - `regrouping`: cost of the width converters from the first stream to the second.
    - `constants`: cost of a layer whose weights are part of the circuit; None: no layer is.
    - `dsp_layer`: cost of a layer with products in DSP blocks with this number of bits in the wider factor; None: as
      `layer`.
    - `consumer`: cost of the quantizer or port after a layer with a PE, for each row at once; part of the costs above.
    - `sources`: (lanes, group) of the stream that arrives at a layer from units that the search does not consider.
    """

    layer: Callable[[Workload, int, int], float]
    regrouping: Callable[[Stream, Stream], float] = lambda source, result: 0.0
    constants: Callable[[Workload, int, int], float] | None = None
    dsp_layer: Callable[[Workload, int, int, int], float] | None = None
    consumer: Callable[[Workload, int], float] = lambda work, pe: 0.0
    sources: Mapping[str, Pair] = field(default_factory=dict, hash=False)

    def of(self, work: Workload, pe: int, simd: int) -> float:
        """The cost of the cheaper variant, weights in memory or in the circuit."""
        stored = self.layer(work, pe, simd)
        return stored if self.constants is None else min(stored, self.constants(work, pe, simd))


def cheapest(
    graph: Graph,
    works: Mapping[str, Workload],
    options: Callable[[Workload], list[Pair]],
    target: int,
    price: FoldingPrice,
) -> tuple[float, Folding]:
    """Chooses one of the `options` of each layer; returns the cost of all layers, and the choice.

    Exact for layers that are connected through functions of single elements only, among the cheapest widths of each
    layer. All other neighbours are assumed to produce and consume beats without gaps, so their connection is free,
    unless the price knows their beats.
    """
    folding: Folding = {}
    total = 0.0
    for chain in _chains(graph, works):
        prefixes: dict[int, _Prefix] = {}
        for n, name in enumerate(chain):
            work, previous = works[name], works[chain[n - 1]] if n else None
            pairs = options(work)
            if n == len(chain) - 1:
                pairs = [pair for pair in pairs if work.outputs % pair[0] == 0] or pairs
            prefixes = _next(work, previous, prefixes, pairs, target, price)
        cost, _, chosen = min(prefixes.values())
        folding |= dict(zip(chain, chosen, strict=True))
        total += cost
    return total, {name: folding[name] for name in works}


def _next(
    work: Workload,
    previous: Workload | None,
    prefixes: dict[int, _Prefix],
    pairs: list[Pair],
    target: int,
    price: FoldingPrice,
) -> dict[int, _Prefix]:
    """The cheapest prefix for each PE of a layer, given the prefixes up to the previous layer."""
    arrivals: dict[Pair, _Prefix] = {}
    extended: dict[int, _Prefix] = {}
    for pe, simd in pairs:
        beat = work.elements(pe, simd), work.arriving(pe, simd)
        if beat not in arrivals:
            arrivals[beat] = _arrival(work, previous, prefixes, *beat, target, price)
        cost, columns, chosen = arrivals[beat]
        prefix = (cost + price.of(work, pe, simd), columns + simd, (*chosen, (pe, simd)))
        extended[pe] = min(extended.get(pe, prefix), prefix)
    return {pe: extended[pe] for pe in sorted(extended, key=lambda pe: extended[pe])[:KEPT]}


def _arrival(
    work: Workload,
    previous: Workload | None,
    prefixes: dict[int, _Prefix],
    lanes: int,
    group: int,
    target: int,
    price: FoldingPrice,
) -> _Prefix:
    """The cheapest prefix that delivers beats of `lanes` elements to a layer."""
    layer = work.layer
    if not isinstance(layer, Linear | Convolution):
        return 0.0, 0, ()
    type_, size = layer.source.type, layer.source.size
    if previous is None and layer.name in price.sources:
        return _regrouping(price, type_, *price.sources[layer.name], size, lanes, group, target), 0, ()
    if previous is None:
        input_lanes = dense_lanes(group, lanes, target * group // size)
        late = size // input_lanes > target and lanes > input_lanes
        cost = _regrouping(price, type_, input_lanes, group, size, lanes, group, target)
        return cost + TOO_LATE * late, 0, ()
    return min(
        (prefix[0] + _regrouping(price, type_, pe, previous.rows, size, lanes, group, target), *prefix[1:])
        for pe, prefix in prefixes.items()
    )


@lru_cache(maxsize=1 << 16)
def _regrouping(
    price: FoldingPrice,
    type_: IntType,
    source_lanes: int,
    source_group: int,
    elements: int,
    lanes: int,
    group: int,
    target: int,
) -> float:
    """Cost of the width converters between the beats of a producer and of a consumer."""
    source_group = max(source_group, source_lanes)
    if lanes > group or (
        source_lanes == lanes and (source_group == group or not math.gcd(source_group, group) % lanes)
    ):
        return 0.0
    source, total = stream_of(type_, source_lanes, elements, source_group), 0.0
    for stream in regrouped_streams(source, elements, lanes, group, target):
        total, source = total + price.regrouping(source, stream), stream
    return total


def _chains(graph: Graph, works: Mapping[str, Workload]) -> list[list[str]]:
    """Chains of layers, each layer after the one whose results it alone consumes as codes."""
    fanout = [0] * (len(graph.layers) + 1)
    for layer in graph.layers:
        for value in layer.inputs:
            fanout[value] += 1
    ends: dict[str, list[str]] = {}
    for name, work in works.items():
        chain: list[str] = []
        if isinstance(work.layer, Linear | Convolution):
            value = work.layer.inputs[0]
            while fanout[value] == 1 and value and isinstance(producer := graph.layers[value - 1], Map | View):
                value = producer.inputs[0]
            previous = graph.layers[value - 1] if value and fanout[value] == 1 else None
            if isinstance(previous, Linear | Convolution):
                chain = ends.pop(previous.name)
        ends[name] = [*chain, name]
    return list(ends.values())
