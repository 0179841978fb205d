"""A graph of sums of two and three terms, with the range of every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlsgen.numerics.fixed import Array

#: The number 0 where a node is expected.
NOTHING = -1


class Adder(NamedTuple):
    """(a << i) + (b << j) + (c << k) + extra, or minus b; a or c may be NOTHING. One of the shifts is 0.

    `extra` of a sum: 0, or a 1 at `carry_place`. `extra` of a difference: 0, or a -1 there, which saves the carry into
    it.
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
        a, i, b, j, _, _, c, k = self
        if c == NOTHING:
            return ((b, j),) if a == NOTHING else ((a, i), (b, j))
        return ((b, j), (c, k)) if a == NOTHING else ((a, i), (b, j), (c, k))


class Output(NamedTuple):
    """node << shift, 0 if the node is NOTHING; or the node with all bits inverted, unshifted."""

    node: int
    shift: int
    inverted: bool = False


def width(low: int, high: int) -> int:
    """Bits that hold low..high: two's complement if low is negative, else unsigned."""
    if low >= 0:
        return max(1, high.bit_length())
    return max((-low - 1).bit_length(), high.bit_length() if high > 0 else 0) + 1


#: (lowest, highest) value of every node.
Intervals = Sequence[tuple[int, int]]


def interval(adder: Adder, intervals: Intervals) -> tuple[int, int]:
    """(lowest, highest) sum, as if the terms had no inputs in common."""
    low = high = adder.extra
    for node, shift in (adder.a, adder.i), (adder.c, adder.k):
        if node != NOTHING:
            low += intervals[node][0] << shift
            high += intervals[node][1] << shift
    low_b, high_b = (end << adder.j for end in intervals[adder.b])
    return (low - high_b, high - low_b) if adder.minus else (low + low_b, high + high_b)


def lowest(adder: Adder) -> Adder:
    """The same adder with the unshifted term first, if the terms can be exchanged."""
    a, i, b, j, minus, extra, c, k = adder
    return adder if minus or not i else Adder(b, j, a, i, False, extra, c, k)


def carry_place(adder: Adder, intervals: Intervals) -> int:
    """The lowest bit that is added, into which a carry comes; lower bits are copied from the unshifted term."""
    a, i, _, j, _, _, c, k = lowest(adder)
    if a == NOTHING or i:
        return 0
    place, ends = min(j, k) if c != NOTHING else j, intervals[a]
    return place if width(*ends) > place + (ends[0] < 0) else 0


def adder_bits(adder: Adder, intervals: Intervals, ends: tuple[int, int]) -> int:
    """LUTs of a sum within `ends`. The highest bit of two terms is the carry, if the sum grows."""
    place = carry_place(adder, intervals)
    if adder.c != NOTHING:
        return max(1, 2 * (width(*ends) - place) - 3)
    if all(intervals[node][0] >= 0 for node, _ in adder.terms):
        return _longest_term(adder, intervals, 0) - place
    return width(*ends) - grows(adder, intervals, ends) - place


def grows(adder: Adder, intervals: Intervals, ends: tuple[int, int]) -> bool:
    """True if both of two terms have fewer bits than the sum, in two's complement."""
    return adder.c == NOTHING and ends[0] < 0 and _longest_term(adder, intervals, 1) < width(*ends)


def _longest_term(adder: Adder, intervals: Intervals, sign: int) -> int:
    """Bits of the longest term; `sign`: extra bits of an unsigned term in a signed sum."""
    return max(shift + width(*intervals[node]) + sign * (intervals[node][0] >= 0) for node, shift in adder.terms)


def _output_value(value: Array, output: Output) -> Array:
    """The value of an output, from the value of its node."""
    return ~value if output.inverted else value << output.shift


@dataclass(frozen=True, eq=False)
class AdderGraph:
    """Nodes are the inputs, each within `inputs`, and then the adders, each of earlier nodes. A row has an output.

    - `intervals`: (lowest, highest) value of every node.
    - `depths`: adders on the longest path to every node.
    """

    inputs: tuple[tuple[int, int], ...]
    adders: tuple[Adder, ...]
    outputs: tuple[Output, ...]
    intervals: tuple[tuple[int, int], ...]
    depths: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Estimated LUTs of six inputs: the bits of the sums, and one LUT for each carry into them."""
        adder_intervals = self.intervals[len(self.inputs) :]
        sums = (adder_bits(x, self.intervals, ends) for x, ends in zip(self.adders, adder_intervals, strict=True))
        return sum(sums) + sum(x.minus == (x.extra == 0) for x in self.adders)

    def evaluate(self, x: Array) -> Array:
        """Vectors int64 (count, inputs) -> int64 (count, rows)."""
        nodes = list(x.T)
        zero = np.zeros(len(x), np.int64)
        for adder in self.adders:
            parts = [nodes[node] << shift for node, shift in adder.terms]
            right = nodes[adder.b] << adder.j
            nodes.append(zero + sum(parts) + (-2 * right if adder.minus else 0) + adder.extra)
        return np.stack([_output_value(nodes[x.node], x) if x.node != NOTHING else zero for x in self.outputs], axis=1)


def inverted_bits(graph: AdderGraph, bits: int) -> int:
    """Mask of the bits of all rows, `bits` bits each, that are inverted in their wires, the lowest row first.

    These are the highest bit of a sum that can be negative, with its copies, and all bits of an inverted row.
    """
    mask = 0
    for row, (node, shift, inverted) in enumerate(graph.outputs):
        row_mask = -1 if inverted else 0
        if node != NOTHING and graph.intervals[node][0] < 0:
            row_mask ^= -1 << (shift + width(*graph.intervals[node]) - 1)
        mask |= (row_mask & ((1 << bits) - 1)) << (row * bits)
    return mask


class Nodes:
    """A graph under construction: the inputs, and the adders so far.

    - `lean`: value of every node if all codes are 0 and no difference has a carry.
    - `forms`: for every node, the inputs that it contains and their factors.
    - `constants`: value of each node if all inputs are 0.
    """

    def __init__(self, inputs: Sequence[tuple[int, int]]) -> None:
        self.intervals, self.depths = list(inputs), [0] * len(inputs)
        self.lean = [0] * len(inputs)
        self.forms: list[dict[int, int]] = [{n: 1} for n in range(len(inputs))]
        self.constants = [0] * len(inputs)
        self.adders: list[Adder] = []
        self._node_of: dict[Adder, int] = {}

    def add(self, adder: Adder) -> int:
        """The node of this sum. Its interval is the range of the linear form: operands may share inputs."""
        if adder in self._node_of:
            return self._node_of[adder]
        low, high = self._interval(adder)
        needed = _longest_term(adder, self.intervals, 0)
        # No sum gets fewer bits than its terms: -4 would fit in fewer bits than the term 4.
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
        self._node_of[adder] = len(self.intervals) - 1
        return self._node_of[adder]

    def _interval(self, adder: Adder) -> tuple[int, int]:
        """(lowest, highest) sum; records the linear form of the new node."""
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
        """The finished graph, with these outputs."""
        inputs = self.intervals[: len(self.intervals) - len(self.adders)]
        return AdderGraph(tuple(inputs), tuple(self.adders), tuple(outputs), tuple(self.intervals), tuple(self.depths))
