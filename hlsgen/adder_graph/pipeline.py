"""Registers in a graph: where the next sum would come too late for a clock, and where a value waits for others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hlsgen.adder_graph.graph import NOTHING, Adder, AdderGraph, carry_place, width

#: Picoseconds, about those of Xilinx 7 series: a register from clock to output, with the setup of the next; a net and a
#: table, with the net in front of a carry chain where several take a bit of the sum; from the table of a bit into the carry
#: chain and out at the next bit; along the chain by a bit; from the table of a bit to its sum; more for three terms, and of
#: these for the lowest bit, which is two tables, or one from which it is far to the carry chain.
_REGISTER, _TABLE, _INTO, _ALONG, _OUT, _THREE, _LOWEST = 500, 1120, 600, 30, 230, 130, 620
#: Picoseconds between registers for each adder one behind the other that is asked for, if these are several: more are in
#: a stage if they are fast enough, and fewer if they are slow. The least of them, and the steps between, that are tried for
#: stages of the same number.
_PICOSECONDS, _LEAST, _STEP = 2750, 2100, 50


@dataclass(frozen=True)
class Pipeline:
    """When each node of a graph is computed, and for how long it is needed.

    made    cycle in which a node is computed, those of the inputs in cycle 0
    needed  last cycle in which an adder or, behind the last register, an output takes it; -1 if none does
    latency cycles from inputs to outputs
    limit   picoseconds in which stages of several adders are ready
    """

    graph: AdderGraph
    made: tuple[int, ...]
    needed: tuple[int, ...]
    latency: int
    limit: int

    @property
    def registers(self) -> int:
        """Bits of all registers."""
        spans = zip(self.graph.intervals, self.made, self.needed, strict=True)
        return sum(width(*ends) * max(0, last - made) for ends, made, last in spans)


@lru_cache(maxsize=256)
def schedule(graph: AdderGraph, levels: int, behind: int | None = None, before: int = 0) -> Pipeline:
    """Stages of about `levels` adders, in the fewest cycles, and then as short as they can be in so many; nodes late where
    that takes fewer registers.

    behind: picoseconds from the outputs to a register that the taker has; None: the outputs are in registers. before: those
    from a register to the inputs.
    """
    latency, stages, early = _staged(graph, _PICOSECONDS * levels if levels > 1 else 0, behind, before)
    low, high = _LEAST // _STEP, _PICOSECONDS // _STEP
    while levels > 1 and low < high:
        middle = (low + high) // 2
        tried = _staged(graph, middle * _STEP * levels, behind, before)
        if tried[0] == latency:
            (_, stages, early), high = tried, middle
        else:
            low = middle + 1
    return min((_timed(stages, made, latency) for made in (early, stages.late(latency))), key=lambda p: p.registers)


def cycles(depth: int, levels: int) -> int:
    """Cycles of so many sums one behind the other, with a register after every `levels`, at least one in all."""
    return max(1, -(-depth // levels))


def _staged(graph: AdderGraph, limit: int, behind: int | None, before: int) -> tuple[int, _Stages, list[int]]:
    """Stages of at most `limit` picoseconds: how many cycles they take, and the first one for each node."""
    stages = _Stages(graph, limit, behind, before)
    early = stages.early()
    latency = max([1, *(stages.out(early, output.node) for output in graph.outputs if output.node != NOTHING)])
    return latency, stages, early[0]


class _Stages:
    """Nodes in stages in which they are ready before `limit`, or alone.

    A time of a node is that of each of its bits, the lowest first.
    """

    def __init__(self, graph: AdderGraph, limit: int, behind: int | None, before: int = 0) -> None:
        self.graph, self.limit, self.behind, self.before = graph, limit, behind, before
        self.widths = [width(*ends) for ends in graph.intervals]

    def early(self) -> tuple[list[int], list[list[int]]]:
        """The first cycle in which each node can be computed, and when it is ready there."""
        graph, first = self.graph, len(self.graph.inputs)
        made, ready = [0] * first, [[_REGISTER + self.before] * bits for bits in self.widths[:first]]
        for n, adder in enumerate(graph.adders, first):
            nodes = [node for node, _ in adder.terms]
            cycle = max(made[node] for node in nodes)
            found = self._sum(n, adder, [ready[node] if made[node] == cycle else None for node in nodes])
            if max(found) > self.limit and any(node >= first and made[node] == cycle for node in nodes):
                cycle += 1
                found = self._sum(n, adder, [None] * len(nodes))
            made.append(cycle)
            ready.append(found)
        return made, ready

    def out(self, early: tuple[list[int], list[list[int]]], node: int) -> int:
        """The first cycle in which an output can be taken."""
        made, ready = early[0][node], early[1][node]
        return made + (self.behind is None or max(ready) + self.behind > self.limit)

    def late(self, latency: int) -> list[int]:
        """The last cycle in which each node can be computed."""
        graph, first = self.graph, len(self.graph.inputs)
        made = [latency] * len(self.widths)
        left = [[0] * bits for bits in self.widths]
        for output in graph.outputs:
            if output.node != NOTHING:
                left[output.node] = [self.limit + 1 if self.behind is None else self.behind] * self.widths[output.node]
        for n in range(len(self.widths) - 1, first - 1, -1):
            adder = graph.adders[n - first]
            before = self._before(n, adder, left[n])
            if max(before) + _REGISTER > self.limit and max(left[n]) > 0:
                made[n] -= 1
                before = self._before(n, adder, [0] * self.widths[n])
            for node, shift in adder.terms:
                if made[node] < made[n]:
                    continue
                own, bits = before[shift:], self.widths[node]
                needed = [*own[: bits - 1], max(own[bits - 1 :])]
                same = made[node] == made[n]
                left[node] = [max(pair) for pair in zip(left[node], needed, strict=True)] if same else needed
                made[node] = made[n]
        return [0] * first + made[first:]

    def _sum(self, n: int, adder: Adder, operands: list[list[int] | None]) -> list[int]:
        """When the bits of a sum are ready, of operands that are, or that are in registers (None)."""
        start, carry, found = carry_place(adder, self.graph.intervals), 0, list[int]()
        table, lowest = (_TABLE, 0) if adder.c == NOTHING else (_TABLE + _THREE, _LOWEST)
        for k in range(self.widths[n]):
            time = _REGISTER
            for bits, (_, shift) in zip(operands, adder.terms, strict=True):
                if bits is not None and k >= shift:
                    time = max(time, bits[min(k - shift, len(bits) - 1)])
            if k >= start:
                time += table + lowest * (k == start)
            found.append(max(time + _OUT * (k >= start), carry))
            carry = max(carry + _ALONG, time + _INTO) if k >= start else 0
        return found

    def _before(self, n: int, adder: Adder, left: list[int]) -> list[int]:
        """Time from the bits of operands, in their places, to the end of the stage; `left`: of those of the sum."""
        start, carry, found = carry_place(adder, self.graph.intervals), 0, list[int]()
        table, lowest = (_TABLE, 0) if adder.c == NOTHING else (_TABLE + _THREE, _LOWEST)
        for k in range(self.widths[n] - 1, -1, -1):
            if k < start:
                found.append(left[k])
                continue
            found.append(table + lowest * (k == start) + max(left[k] + _OUT, carry))
            carry = max(carry + _ALONG, left[k] + _INTO)
        return found[::-1]


def _timed(stages: _Stages, made: list[int], latency: int) -> Pipeline:
    graph, first = stages.graph, len(stages.graph.inputs)
    needed = [-1] * len(made)
    for n, adder in enumerate(graph.adders):
        for node, _ in adder.terms:
            needed[node] = max(needed[node], made[first + n])
    for node, _, _ in graph.outputs:
        if node != NOTHING:
            needed[node] = latency
    return Pipeline(graph, tuple(made), tuple(needed), latency, stages.limit)
