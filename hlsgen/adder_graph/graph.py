"""A graph of two-term sums, and what every node of it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlsgen.numerics.fixed import Array

#: In place of a node: the number 0.
NOTHING = -1


class Adder(NamedTuple):
    """(a << i) + (b << j) + extra, or minus; a may be NOTHING. One of the shifts is 0.

    extra: of a sum 0, or a 1 at `carry_place`, of a difference 0 or a -1 there, which saves the carry into it.
    """

    a: int
    i: int
    b: int
    j: int
    minus: bool
    extra: int = 0


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


def ends_of(adder: Adder, intervals: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The interval of an adder's first operand."""
    return intervals[adder.a] if adder.a != NOTHING else (0, 0)


def interval(adder: Adder, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """(least, greatest) sum of operands within a and b."""
    low, high = b[0] << adder.j, b[1] << adder.j
    if adder.minus:
        low, high = -high, -low
    return (a[0] << adder.i) + low + adder.extra, (a[1] << adder.i) + high + adder.extra


def low_bits(adder: Adder, a: tuple[int, int]) -> int:
    """Bits at the low end of a sum that are those of the operand that is not shifted, a where that can be chosen."""
    if adder.a == NOTHING or (adder.minus and adder.i):
        return 0
    return adder.j if width(*a) > adder.j + (a[0] < 0) else 0


def first_bit(adder: Adder, a: tuple[int, int], b: tuple[int, int]) -> int:
    """The lowest bit that is added; those below go through."""
    if adder.i:
        return low_bits(Adder(adder.b, 0, adder.a, adder.i, adder.minus), b) if not adder.minus else 0
    return low_bits(adder, a)


def carry_place(adder: Adder, intervals: Sequence[tuple[int, int]]) -> int:
    """Where a carry comes into an adder."""
    return first_bit(adder, ends_of(adder, intervals), intervals[adder.b])


def adder_bits(adder: Adder, a: tuple[int, int], b: tuple[int, int], ends: tuple[int, int]) -> int:
    """Tables of a sum within `ends` of operands within a and b: of the highest bit it is the carry, if the sum grows."""
    through = first_bit(adder, a, b)
    if a[0] >= 0 and b[0] >= 0:
        return max(adder.i + width(*a), adder.j + width(*b)) - through
    return width(*ends) - grows(adder, a, b, ends) - through


def grows(adder: Adder, a: tuple[int, int], b: tuple[int, int], ends: tuple[int, int]) -> bool:
    """Whether both operands have fewer bits than the sum, in two's complement."""
    most = max(adder.i + width(*a) + (a[0] >= 0), adder.j + width(*b) + (b[0] >= 0))
    return ends[0] < 0 and most < width(*ends)


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
        first, ends = len(self.inputs), self.intervals
        sums = (adder_bits(x, ends_of(x, ends), ends[x.b], ends[first + n]) for n, x in enumerate(self.adders))
        return sum(sums) + sum(x.minus == (x.extra == 0) for x in self.adders)

    def evaluate(self, x: Array) -> Array:
        """Vectors int64 (count, inputs) -> int64 (count, rows)."""
        nodes = list(x.T)
        zero = np.zeros(len(x), np.int64)
        for a, i, b, j, minus, extra in self.adders:
            right = nodes[b] << j
            nodes.append((nodes[a] << i if a != NOTHING else zero) + (-right if minus else right) + extra)
        return np.stack([_sent(nodes[x.node], x) if x.node != NOTHING else zero for x in self.outputs], axis=1)


class Nodes:
    """A graph that grows: the inputs, and the adders so far.

    lean  what every node is if all codes are 0 and no difference has a carry
    """

    def __init__(self, inputs: Sequence[tuple[int, int]]) -> None:
        self.intervals, self.depths = list(inputs), [0] * len(inputs)
        self.lean = [0] * len(inputs)
        self.adders: list[Adder] = []
        self._known: dict[Adder, int] = {}

    def add(self, adder: Adder) -> int:
        """The node of this sum. Its interval holds for any values of the operands, as if they had no inputs in common."""
        if adder in self._known:
            return self._known[adder]
        a, b, depth = ends_of(adder, self.intervals), self.intervals[adder.b], self.depths[adder.b]
        low, high = interval(adder, a, b)
        needed = max(adder.i + width(*a), adder.j + width(*b))
        # No sum is held in fewer bits than its terms, as -4 could be, and 4 not.
        if low >= 0 and width(low, high) < needed:
            low = -1
        if width(low, high) < needed:
            high = 1 << (needed - 2)
        right = self.lean[adder.b] << adder.j
        left = self.lean[adder.a] << adder.i if adder.a != NOTHING else 0
        self.lean.append(
            left + (-right - (1 << first_bit(adder, a, self.intervals[adder.b])) if adder.minus else right)
        )
        self.intervals.append((low, high))
        self.depths.append(1 + (depth if adder.a == NOTHING else max(depth, self.depths[adder.a])))
        self.adders.append(adder)
        self._known[adder] = len(self.intervals) - 1
        return self._known[adder]

    def graph(self, outputs: Sequence[Output]) -> AdderGraph:
        """What has grown, with these outputs."""
        inputs = self.intervals[: len(self.intervals) - len(self.adders)]
        return AdderGraph(tuple(inputs), tuple(self.adders), tuple(outputs), tuple(self.intervals), tuple(self.depths))
