"""Registers in a graph: after every so many levels of adders, and where a value waits for others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hlsgen.adder_graph.graph import NOTHING, AdderGraph, width


@dataclass(frozen=True)
class Pipeline:
    """When each node of a graph is computed, and for how long it is needed.

    made    cycle in which a node is computed, those of the inputs in cycle 0
    needed  last cycle in which an adder or, behind the last register, an output takes it; -1 if none does
    latency cycles from inputs to outputs
    """

    graph: AdderGraph
    made: tuple[int, ...]
    needed: tuple[int, ...]
    latency: int

    @property
    def registers(self) -> int:
        """Bits of all registers."""
        spans = zip(self.graph.intervals, self.made, self.needed, strict=True)
        return sum(width(*ends) * max(0, last - made) for ends, made, last in spans)


@lru_cache(maxsize=256)
def schedule(graph: AdderGraph, levels: int) -> Pipeline:
    """A register after every `levels` adders, at least one in all; nodes late where that takes fewer registers."""
    outputs = [node for node, _, _ in graph.outputs if node != NOTHING]
    latency = cycles(max((graph.depths[node] for node in outputs), default=0), levels)
    early = [max(0, depth - 1) for depth in graph.depths]
    return min(
        (_timed(graph, x, levels, latency) for x in (early, _late(graph, latency * levels))), key=lambda p: p.registers
    )


def cycles(depth: int, levels: int) -> int:
    """Cycles of so many sums one behind the other, with a register after every `levels`, at least one in all."""
    return max(1, -(-depth // levels))


def _late(graph: AdderGraph, levels: int) -> list[int]:
    """The last level in which each node can be computed; inputs come in level 0."""
    first = len(graph.inputs)
    found = [levels - 1] * len(graph.intervals)
    for n in range(len(graph.adders) - 1, -1, -1):
        for node in (graph.adders[n].a, graph.adders[n].b):
            if node != NOTHING:
                found[node] = min(found[node], found[first + n] - 1)
    return [0] * first + found[first:]


def _timed(graph: AdderGraph, level: list[int], levels: int, latency: int) -> Pipeline:
    made, first = [x // levels for x in level], len(graph.inputs)
    needed = [-1] * len(made)
    for n, adder in enumerate(graph.adders):
        for node in (adder.a, adder.b):
            if node != NOTHING:
                needed[node] = max(needed[node], made[first + n])
    for node, _, _ in graph.outputs:
        if node != NOTHING:
            needed[node] = latency
    return Pipeline(graph, tuple(made), tuple(needed), latency)
