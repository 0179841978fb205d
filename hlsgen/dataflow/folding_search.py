"""The cheapest PE and SIMD of all layers together: a layer's SIMD is the width of its input beats, its PE that of its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hlsgen.dataflow.regrouping import dense_lanes, regrouped_streams
from hlsgen.dataflow.units import Stream, stream_of
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.ir import Convolution, Graph, Linear, Map, View
from hlsgen.numerics.fixed import IntType

#: Widths of what a layer sends that the search goes on with, the cheapest ones.
KEPT = 12
#: What is too slow costs more than anything.
TOO_LATE = 1e12

Pair = tuple[int, int]
#: What the layers up to one cost, with less SIMD in all of them before more; and their foldings.
_Way = tuple[float, int, tuple[Pair, ...]]


@dataclass(frozen=True)
class FoldingPrice:
    """What foldings cost, in any unit. `layer`: a layer with a PE and a SIMD. `regrouping`: what makes the beats of the
    second stream of those of the first. `constants`: a layer whose weights are part of the circuit; None: none is. `blocks`:
    a layer with products in multiplier blocks with so many bits in the wider factor; None: as `layer`."""

    layer: Callable[[Workload, int, int], float]
    regrouping: Callable[[Stream, Stream], float] = lambda source, result: 0.0
    constants: Callable[[Workload, int, int], float] | None = None
    blocks: Callable[[Workload, int, int, int], float] | None = None

    def of(self, work: Workload, pe: int, simd: int) -> float:
        """The cheaper one."""
        own = self.layer(work, pe, simd)
        return own if self.constants is None else min(own, self.constants(work, pe, simd))


def cheapest(
    graph: Graph,
    works: Mapping[str, Workload],
    options: Callable[[Workload], list[Pair]],
    target: int,
    price: FoldingPrice,
) -> Folding:
    """One of the `options` of each layer.

    Exact where layers follow each other with nothing but functions of single elements between them, among the cheapest
    widths of each. All other neighbours are taken to send and to want beats without gaps, so what goes there has none.
    """
    found: Folding = {}
    for chain in _chains(graph, works):
        ways: dict[int, _Way] = {}
        for n, name in enumerate(chain):
            work, before = works[name], works[chain[n - 1]] if n else None
            pairs = options(work)
            if n == len(chain) - 1:
                pairs = [pair for pair in pairs if work.outputs % pair[0] == 0] or pairs
            ways = _next(work, before, ways, pairs, target, price)
        found |= dict(zip(chain, min(ways.values())[2], strict=True))
    return {name: found[name] for name in works}


def _next(
    work: Workload, before: Workload | None, ways: dict[int, _Way], pairs: list[Pair], target: int, price: FoldingPrice
) -> dict[int, _Way]:
    """The cheapest way to each PE of a layer, by those to each PE of the layer before."""
    into: dict[Pair, _Way] = {}
    found: dict[int, _Way] = {}
    for pe, simd in pairs:
        taken = work.elements(pe, simd), work.arriving(pe, simd)
        if taken not in into:
            into[taken] = _arrival(work, before, ways, *taken, target, price)
        cost, columns, chosen = into[taken]
        way = (cost + price.of(work, pe, simd), columns + simd, (*chosen, (pe, simd)))
        found[pe] = min(found.get(pe, way), way)
    return {pe: found[pe] for pe in sorted(found, key=lambda pe: found[pe])[:KEPT]}


def _arrival(
    work: Workload,
    before: Workload | None,
    ways: dict[int, _Way],
    lanes: int,
    group: int,
    target: int,
    price: FoldingPrice,
) -> _Way:
    """The cheapest way to beats of so many elements in front of a layer."""
    layer = work.layer
    if not isinstance(layer, Linear | Convolution):
        return 0.0, 0, ()
    type_, size = layer.source.type, layer.source.size
    if before is None:
        given = dense_lanes(group, lanes, target * group // size)
        late = size // given > target and lanes > given
        cost = _regrouping(price, type_, given, group, size, lanes, group, target)
        return cost + TOO_LATE * late, 0, ()
    return min(
        (way[0] + _regrouping(price, type_, pe, before.rows, size, lanes, group, target), *way[1:])
        for pe, way in ways.items()
    )


@lru_cache(maxsize=1 << 16)
def _regrouping(
    price: FoldingPrice,
    type_: IntType,
    given: int,
    given_group: int,
    elements: int,
    lanes: int,
    group: int,
    target: int,
) -> float:
    if (
        given > given_group
        or lanes > group
        or (given == lanes and (given_group == group or not math.gcd(given_group, group) % lanes))
    ):
        return 0.0
    own, total = stream_of(type_, given, elements, given_group), 0.0
    for stream in regrouped_streams(own, elements, lanes, group, target):
        total, own = total + price.regrouping(own, stream), stream
    return total


def _chains(graph: Graph, works: Mapping[str, Workload]) -> list[list[str]]:
    """The layers, each behind the one whose results it takes, as codes, and nobody else."""
    takers = [0] * (len(graph.layers) + 1)
    for layer in graph.layers:
        for value in layer.inputs:
            takers[value] += 1
    ends: dict[str, list[str]] = {}
    for name, work in works.items():
        chain: list[str] = []
        if isinstance(work.layer, Linear | Convolution):
            value = work.layer.inputs[0]
            while takers[value] == 1 and value and isinstance(before := graph.layers[value - 1], Map | View):
                value = before.inputs[0]
            sender = graph.layers[value - 1] if value and takers[value] == 1 else None
            if isinstance(sender, Linear | Convolution):
                chain = ends.pop(sender.name)
        ends[name] = [*chain, name]
    return list(ends.values())
