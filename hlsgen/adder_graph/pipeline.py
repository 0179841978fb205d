"""Registers in a graph: where the next sum would miss the clock, and where a value is delayed for others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hlsgen.adder_graph.graph import NOTHING, Adder, AdderGraph, carry_place, width

# Delays in picoseconds, approximately the ones of Xilinx 7 series.
#: A register from clock to output, with the setup of the next register.
_REGISTER = 500
#: A net and a LUT, with the net before a carry chain if several LUTs use a bit of the sum.
_TABLE = 1120
#: From a bit's LUT into the carry chain and out at the next bit; along the chain by a bit; from a LUT to its sum bit.
_INTO, _ALONG, _OUT = 600, 30, 230
#: Additional delay for three terms, and for their lowest bit: two LUTs, or one with a long net to the carry chain.
_THREE, _LOWEST = 130, 620
#: Picoseconds of a stage for each requested adder in series, if several are requested. Stages of fast adders have more
#: adders, stages of slow adders fewer.
_PICOSECONDS = 2750
#: The smallest value, and the step between the values, that are tried for stages of the same number.
_LEAST, _STEP = 2100, 50


@dataclass(frozen=True)
class Pipeline:
    """The cycle in which each node of a graph is computed, and the cycles for which it is needed.

    - `computed`: cycle in which a node is computed; 0 for the inputs.
    - `needed`: last cycle in which an adder uses it, or an output after the last register; -1 if it is not used.
    - `latency`: cycles from inputs to outputs.
    - `limit`: picoseconds of a stage of several adders.
    """

    graph: AdderGraph
    computed: tuple[int, ...]
    needed: tuple[int, ...]
    latency: int
    limit: int

    @property
    def registers(self) -> int:
        """Bits of all registers."""
        spans = zip(self.graph.intervals, self.computed, self.needed, strict=True)
        return sum(width(*ends) * max(0, last - computed) for ends, computed, last in spans)


@lru_cache(maxsize=256)
def schedule(graph: AdderGraph, levels: float, consumer_ps: int | None = None, producer_ps: int = 0) -> Pipeline:
    """Stages of about `levels` adders: the fewest cycles, then the shortest stages, then the fewest registers.

    Nodes are computed late if that saves registers. `consumer_ps`: picoseconds from the outputs to a register of the
    consumer, or None if the outputs are registered. `producer_ps`: picoseconds from a register to the inputs.
    """
    latency, stages, early = _stages_of(
        graph, int(_PICOSECONDS * levels) if levels > 1 else 0, consumer_ps, producer_ps
    )
    low, high = _LEAST // _STEP, _PICOSECONDS // _STEP
    while levels > 1 and low < high:
        middle = (low + high) // 2
        trial = _stages_of(graph, int(middle * _STEP * levels), consumer_ps, producer_ps)
        if trial[0] == latency:
            (_, stages, early), high = trial, middle
        else:
            low = middle + 1
    return min(
        (_timed(stages, computed, latency) for computed in (early, stages.late(latency))), key=lambda p: p.registers
    )


def cycles(depth: int, levels: int) -> int:
    """Cycles of `depth` sums in series, with a register after every `levels`, at least one in all."""
    return max(1, -(-depth // levels))


def _stages_of(
    graph: AdderGraph, limit: int, consumer_ps: int | None, producer_ps: int
) -> tuple[int, _Stages, list[int]]:
    """Stages of at most `limit` picoseconds: their number of cycles, and the first cycle of each node."""
    stages = _Stages(graph, limit, consumer_ps, producer_ps)
    early = stages.early()
    latency = max([1, *(stages.out(early, output.node) for output in graph.outputs if output.node != NOTHING)])
    return latency, stages, early[0]


class _Stages:
    """Nodes in stages in which they are ready before `limit`, or in a stage of their own.

    The time of a node is a list of the times of its bits, the lowest first.
    """

    def __init__(self, graph: AdderGraph, limit: int, consumer_ps: int | None, producer_ps: int = 0) -> None:
        self.graph, self.limit, self.consumer_ps, self.producer_ps = graph, limit, consumer_ps, producer_ps
        self.widths = [width(*ends) for ends in graph.intervals]

    def early(self) -> tuple[list[int], list[list[int]]]:
        """The first cycle in which each node can be computed, and its time in that cycle."""
        graph, first = self.graph, len(self.graph.inputs)
        computed, ready = [0] * first, [[_REGISTER + self.producer_ps] * bits for bits in self.widths[:first]]
        for n, adder in enumerate(graph.adders, first):
            nodes = [node for node, _ in adder.terms]
            cycle = max(computed[node] for node in nodes)
            times = self._sum(n, adder, [ready[node] if computed[node] == cycle else None for node in nodes])
            if max(times) > self.limit and any(node >= first and computed[node] == cycle for node in nodes):
                cycle += 1
                times = self._sum(n, adder, [None] * len(nodes))
            computed.append(cycle)
            ready.append(times)
        return computed, ready

    def out(self, early: tuple[list[int], list[list[int]]], node: int) -> int:
        """The first cycle in which an output can be consumed."""
        computed, ready = early[0][node], early[1][node]
        return computed + (self.consumer_ps is None or max(ready) + self.consumer_ps > self.limit)

    def late(self, latency: int) -> list[int]:
        """The last cycle in which each node can be computed."""
        graph, first = self.graph, len(self.graph.inputs)
        computed = [latency] * len(self.widths)
        remaining_ps = [[0] * bits for bits in self.widths]
        for output in graph.outputs:
            if output.node != NOTHING:
                remaining_ps[output.node] = [
                    self.limit + 1 if self.consumer_ps is None else self.consumer_ps
                ] * self.widths[output.node]
        for n in range(len(self.widths) - 1, first - 1, -1):
            adder = graph.adders[n - first]
            operand_ps = self._times_before(n, adder, remaining_ps[n])
            if max(operand_ps) + _REGISTER > self.limit and max(remaining_ps[n]) > 0:
                computed[n] -= 1
                operand_ps = self._times_before(n, adder, [0] * self.widths[n])
            for node, shift in adder.terms:
                if computed[node] < computed[n]:
                    continue
                shifted, bits = operand_ps[shift:], self.widths[node]
                needed = [*shifted[: bits - 1], max(shifted[bits - 1 :])]
                same_cycle = computed[node] == computed[n]
                remaining_ps[node] = (
                    [max(pair) for pair in zip(remaining_ps[node], needed, strict=True)] if same_cycle else needed
                )
                computed[node] = computed[n]
        return [0] * first + computed[first:]

    def _sum(self, n: int, adder: Adder, operands: list[list[int] | None]) -> list[int]:
        """Times of the bits of a sum, from the times of its operands. The time of a registered operand is None."""
        start, carry, times = carry_place(adder, self.graph.intervals), 0, list[int]()
        table, lowest = (_TABLE, 0) if adder.c == NOTHING else (_TABLE + _THREE, _LOWEST)
        unregistered = [
            (bits, shift, len(bits) - 1)
            for bits, (_, shift) in zip(operands, adder.terms, strict=True)
            if bits is not None
        ]
        for k in range(self.widths[n]):
            time = _REGISTER
            for bits, shift, top in unregistered:
                if k >= shift:
                    time = max(time, bits[min(k - shift, top)])
            if k >= start:
                time += table + lowest * (k == start)
            times.append(max(time + _OUT * (k >= start), carry))
            carry = max(carry + _ALONG, time + _INTO) if k >= start else 0
        return times

    def _times_before(self, n: int, adder: Adder, remaining_ps: list[int]) -> list[int]:
        """Picoseconds from the bits of operands, in their places, to the end of the stage.

        `remaining_ps`: picoseconds from each bit of the sum to the end of the stage.
        """
        start, carry, times = carry_place(adder, self.graph.intervals), 0, list[int]()
        table, lowest = (_TABLE, 0) if adder.c == NOTHING else (_TABLE + _THREE, _LOWEST)
        for k in range(self.widths[n] - 1, -1, -1):
            if k < start:
                times.append(remaining_ps[k])
                continue
            times.append(table + lowest * (k == start) + max(remaining_ps[k] + _OUT, carry))
            carry = max(carry + _ALONG, remaining_ps[k] + _INTO)
        return times[::-1]


def _timed(stages: _Stages, computed: list[int], latency: int) -> Pipeline:
    """The pipeline whose nodes are computed in these cycles."""
    graph, first = stages.graph, len(stages.graph.inputs)
    needed = [-1] * len(computed)
    for n, adder in enumerate(graph.adders):
        for node, _ in adder.terms:
            needed[node] = max(needed[node], computed[first + n])
    for node, _, _ in graph.outputs:
        if node != NOTHING:
            needed[node] = latency
    return Pipeline(graph, tuple(computed), tuple(needed), latency, stages.limit)
