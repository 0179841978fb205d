"""A graph of sums of two and three terms, and what every node of it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlsgen.numerics.fixed import Array

#: In place of a node: the number 0.
NOTHING = -1


class Adder(NamedTuple):
    """(a << i) + (b << j) + (c << k) + extra, or minus b; a or c may be NOTHING. One of the shifts is 0.

    extra: of a sum 0, or a 1 at `carry_place`, of a difference 0 or a -1 there, which saves the carry into it.
    """

    a: int
    i: int
    b: int
    j: int
    minus: bool
    extra: int = 0
    c: int = NOTHING
    k: int = 0

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """(node, shift) of each term."""
        found = (self.a, self.i), (self.b, self.j), (self.c, self.k)
        return tuple(term for term in found if term[0] != NOTHING)


class Output(NamedTuple):
    """node << shift, 0 if the node is NOTHING; or with all bits inverted, not shifted."""

    node: int
    shift: int
    inverted: bool = False


def width(low: int, high: int) -> int:
    """Bits that hold low..high: two's complement if low is negative, else unsigned."""
    if low >= 0:
        return max(1, high.bit_length())
    return max((-low - 1).bit_length(), high.bit_length() if high > 0 else 0) + 1


#: (least, greatest) value of every node.
Intervals = Sequence[tuple[int, int]]


def interval(adder: Adder, intervals: Intervals) -> tuple[int, int]:
    """(least, greatest) sum, as if the terms had no inputs in common."""
    low = high = adder.extra
    for n, (node, shift) in enumerate(adder.terms, adder.a == NOTHING):
        ends = intervals[node][0] << shift, intervals[node][1] << shift
        low, high = (low - ends[1], high - ends[0]) if n == 1 and adder.minus else (low + ends[0], high + ends[1])
    return low, high


def lowest(adder: Adder) -> Adder:
    """The same with the term first that is not shifted, where terms can change places."""
    a, i, b, j, minus, extra, c, k = adder
    return adder if minus or not i else Adder(b, j, a, i, False, extra, c, k)


def carry_place(adder: Adder, intervals: Intervals) -> int:
    """The lowest bit that is added, into which a carry comes; those below are those of the term that is not shifted."""
    a, i, _, j, _, _, c, k = lowest(adder)
    if a == NOTHING or i:
        return 0
    place, ends = min(j, k) if c != NOTHING else j, intervals[a]
    return place if width(*ends) > place + (ends[0] < 0) else 0


def adder_bits(adder: Adder, intervals: Intervals, ends: tuple[int, int]) -> int:
    """Tables of a sum within `ends`: of the highest bit of two terms it is the carry, if the sum grows."""
    place = carry_place(adder, intervals)
    if adder.c != NOTHING:
        return max(1, 2 * (width(*ends) - place) - 3)
    if all(intervals[node][0] >= 0 for node, _ in adder.terms):
        return _most(adder, intervals, 0) - place
    return width(*ends) - grows(adder, intervals, ends) - place


def grows(adder: Adder, intervals: Intervals, ends: tuple[int, int]) -> bool:
    """Whether both of two terms have fewer bits than the sum, in two's complement."""
    return adder.c == NOTHING and ends[0] < 0 and _most(adder, intervals, 1) < width(*ends)


def _most(adder: Adder, intervals: Intervals, sign: int) -> int:
    """Bits of the longest term; `sign`: those that others take for it."""
    return max(shift + width(*intervals[node]) + sign * (intervals[node][0] >= 0) for node, shift in adder.terms)


def _sent(value: Array, output: Output) -> Array:
    return ~value if output.inverted else value << output.shift


@dataclass(frozen=True, eq=False)
class AdderGraph:
    """Nodes are the inputs, each within `inputs`, and then the adders, each of nodes before it. A row has an output.

    intervals  (least, greatest) value of every node
    depths     adders on the longest way to every node
    """

    inputs: tuple[tuple[int, int], ...]
    adders: tuple[Adder, ...]
    outputs: tuple[Output, ...]
    intervals: tuple[tuple[int, int], ...]
    depths: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Tables of six inputs that the graph takes, about: those of sums, and one for each carry into them."""
        own = self.intervals[len(self.inputs) :]
        sums = (adder_bits(x, self.intervals, ends) for x, ends in zip(self.adders, own, strict=True))
        return sum(sums) + sum(x.minus == (x.extra == 0) for x in self.adders)

    def evaluate(self, x: Array) -> Array:
        """Vectors int64 (count, inputs) -> int64 (count, rows)."""
        nodes = list(x.T)
        zero = np.zeros(len(x), np.int64)
        for adder in self.adders:
            parts = [nodes[node] << shift for node, shift in adder.terms]
            right = nodes[adder.b] << adder.j
            nodes.append(zero + sum(parts) + (-2 * right if adder.minus else 0) + adder.extra)
        return np.stack([_sent(nodes[x.node], x) if x.node != NOTHING else zero for x in self.outputs], axis=1)


def inverted_bits(graph: AdderGraph, bits: int) -> int:
    """Which bits of all rows, of so many bits each, are inverted in the wires that hold them: the lowest row first.

    The highest bit of a sum that can be negative is, with its copies, and all bits of a row that comes out negative are.
    """
    found = 0
    for row, (node, shift, inverted) in enumerate(graph.outputs):
        own = -1 if inverted else 0
        if node != NOTHING and graph.intervals[node][0] < 0:
            own ^= -1 << (shift + width(*graph.intervals[node]) - 1)
        found |= (own & ((1 << bits) - 1)) << (row * bits)
    return found


class Nodes:
    """A graph that grows: the inputs, and the adders so far.

    lean       what every node is if all codes are 0 and no difference has a carry
    forms      how often every input is in each node: those that are
    constants  what each node is if all inputs are 0
    """

    def __init__(self, inputs: Sequence[tuple[int, int]]) -> None:
        self.intervals, self.depths = list(inputs), [0] * len(inputs)
        self.lean = [0] * len(inputs)
        self.forms: list[dict[int, int]] = [{n: 1} for n in range(len(inputs))]
        self.constants = [0] * len(inputs)
        self.adders: list[Adder] = []
        self._known: dict[Adder, int] = {}

    def add(self, adder: Adder) -> int:
        """The node of this sum. Its interval is that of the codes: operands may have some in common."""
        if adder in self._known:
            return self._known[adder]
        low, high = self._interval(adder)
        needed = _most(adder, self.intervals, 0)
        # No sum is held in fewer bits than its terms, as -4 could be, and 4 not.
        if low >= 0 and width(low, high) < needed:
            low = -1
        if width(low, high) < needed:
            high = 1 << (needed - 2)
        lean = sum(self.lean[node] << shift for node, shift in adder.terms)
        if adder.minus:
            lean -= (self.lean[adder.b] << (adder.j + 1)) + (1 << carry_place(adder, self.intervals))
        self.lean.append(lean)
        self.intervals.append((low, high))
        self.depths.append(1 + max(self.depths[node] for node, _ in adder.terms))
        self.adders.append(adder)
        self._known[adder] = len(self.intervals) - 1
        return self._known[adder]

    def _interval(self, adder: Adder) -> tuple[int, int]:
        """(least, greatest) sum; what the new node is made of is noted."""
        form, constant = dict[int, int](), adder.extra
        for n, (node, shift) in enumerate(adder.terms, adder.a == NOTHING):
            factor = (-1 if n == 1 and adder.minus else 1) << shift
            constant += factor * self.constants[node]
            for column, times in self.forms[node].items():
                form[column] = form.get(column, 0) + factor * times
        self.forms.append(form)
        self.constants.append(constant)
        ends = [sorted((times * self.intervals[n][0], times * self.intervals[n][1])) for n, times in form.items()]
        return constant + sum(low for low, _ in ends), constant + sum(high for _, high in ends)

    def graph(self, outputs: Sequence[Output]) -> AdderGraph:
        """What has grown, with these outputs."""
        inputs = self.intervals[: len(self.intervals) - len(self.adders)]
        return AdderGraph(tuple(inputs), tuple(self.adders), tuple(outputs), tuple(self.intervals), tuple(self.depths))
