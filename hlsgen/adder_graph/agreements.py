"""Agreements of bits with the rows of a constant matrix: counts of three columns that rows share, and bit counters.

Three columns agree with a row in 0 to 3 places. The low bit of that count is the parity of the columns. The high bit is
the majority of the columns with at most one of them inverted. Either bit may be complemented. Five LUTs therefore serve
every row. The counters that add the bits of a row are the same for all rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from hlsgen.adder_graph.pipeline import cycles
from hlsgen.numerics.fixed import Array

#: Most weights of a matrix that is implemented with counters.
MOST_AGREEMENTS = 400_000
#: Source of a bit that is a bit of the row and not of a counter.
ROW = -1
#: Share of the LUTs of all rows' counters that may be added to save a level.
_LEVEL = 0.01


class Bit(NamedTuple):
    """Bit `place` of a counter's sum, or of the row."""

    source: int
    place: int


class Counter(NamedTuple):
    """2^place * (a number + the count of ones + a carry): a carry chain with the count in its LUTs.

    - `counted`: up to five bits, which LUTs turn into a number.
    - `plain`: the other number, lowest bit first; None is 0.
    - `width`: bits of the sum that can be 1.
    - `level`: counters on the longest path to the sum.
    """

    place: int
    counted: tuple[Bit, ...]
    plain: tuple[Bit | None, ...]
    carry: Bit | None
    width: int
    level: int

    @property
    def inputs(self) -> tuple[Bit, ...]:
        """All bits that it adds."""
        return (*self.counted, *(bit for bit in (*self.plain, self.carry) if bit is not None))


@dataclass(frozen=True)
class Counters:
    """The counters that add the bits of a row: first `ones` bits of weight 1, then `twos` bits of weight 2.

    - `ends`: one or two bits of every place (or none: 0) that the final adder adds.
    - `levels`: counters and final adder on the longest path.
    - `tables`: LUTs of six inputs, one for each bit of a sum but the highest.
    """

    ones: int
    twos: int
    counters: tuple[Counter, ...]
    ends: tuple[tuple[Bit, ...], ...]
    levels: int
    tables: int

    def cycles(self, levels: int) -> int:
        """Cycles with a register after every `levels` counters; the last register is after the final adder."""
        return cycles(self.levels, levels)

    def ready_cycle(self, source: int, levels: int) -> int:
        """The cycle in which a counter's sum is ready; 0 for the bits of the row."""
        return 0 if source == ROW else (self.counters[source].level - 1) // levels

    def registered(self, levels: int) -> list[list[Bit]]:
        """Bits that are registered in each cycle: bits of an earlier cycle that are still needed."""
        needed: dict[Bit, int] = {}
        for n, counter in enumerate(self.counters):
            needed |= {bit: max(self.ready_cycle(n, levels), needed.get(bit, 0)) for bit in counter.inputs}
        count = self.cycles(levels)
        needed |= {bit: count - 1 for end in self.ends for bit in end}
        return [
            sorted(bit for bit, last in needed.items() if self.ready_cycle(bit.source, levels) < cycle <= last)
            for cycle in range(count)
        ]


class Literal(NamedTuple):
    """A signal or its complement."""

    signal: int
    inverted: bool


@dataclass(frozen=True, eq=False)
class AgreementGraph:
    """Counters of agreements.

    Signals are the columns, then the parities of the triples, then their majorities: with no column inverted, with the
    first inverted, and so on. Triple t is the columns t, triples + t and 2 * triples + t; the remaining columns are in
    no triple. `rows`: the bits that are added for each row, of weight 1 and then of weight 2, uninverted bits first.
    """

    columns: int
    triples: int
    rows: tuple[tuple[Literal, ...], ...]
    counters: Counters

    @property
    def bits(self) -> int:
        """Estimated LUTs of six inputs."""
        shared = {literal.signal for row in self.rows for literal in row if literal.signal >= self.columns}
        plain = {bit.place for c in self.counters.counters for bit in (*c.plain, c.carry) if bit and bit.source == ROW}
        inverted = {row[place].signal for row in self.rows for place in plain if row[place].inverted}
        return len(shared) + len(inverted) + len(self.rows) * self.counters.tables

    def latency(self, levels: int) -> int:
        """Cycles, with a register after the triples and then after every `levels` counters."""
        return (self.triples > 0) + self.counters.cycles(levels)

    def registers(self, levels: int) -> int:
        """Bits of all registers except the sums."""
        shared = self.columns + 2 * self.triples if self.triples else 0
        return shared + len(self.rows) * sum(map(len, self.counters.registered(levels)))


def agreements(weight: Array) -> AgreementGraph:
    """The graph of weights int64 (rows, columns) of 0 and 1."""
    rows, columns = weight.shape
    triples = _triples(rows, columns)
    counters = find_counters(columns - 2 * triples, triples, columns.bit_length())
    literals = tuple(_literals(row, triples) for row in weight.tolist())
    return AgreementGraph(columns, triples, literals, counters)


def agreement_tables(rows: int, columns: int) -> int:
    """LUTs of a graph, if its rows use all signals and no bit is inverted where that costs a LUT."""
    return min(_tables(rows, columns, triples) for triples in {0, columns // 3})


def _triples(rows: int, columns: int) -> int:
    """The number of triples with the fewest LUTs."""
    return min((0, columns // 3), key=lambda triples: _tables(rows, columns, triples))


def _tables(rows: int, columns: int, triples: int) -> int:
    """LUTs of a graph with this number of triples."""
    return 5 * triples + rows * find_counters(columns - 2 * triples, triples, columns.bit_length()).tables


def _literals(row: list[int], triples: int) -> tuple[Literal, ...]:
    """The bits that are added for a row, of weight 1 and then of weight 2."""
    columns = len(row)
    ones = [Literal(c, not row[c]) for c in range(3 * triples, columns)]
    twos = []
    for t in range(triples):
        triple_bits = row[t : 3 * triples : triples]
        inverted = sum(triple_bits) < 2
        odd = int(inverted)  # the value that at most one of the three columns has
        inverted_column = 1 + triple_bits.index(odd) if odd in triple_bits else 0
        ones.append(Literal(columns + t, sum(triple_bits) % 2 == 0))
        twos.append(Literal(columns + (1 + inverted_column) * triples + t, inverted))
    return tuple(sorted(ones, key=_rank) + sorted(twos, key=_rank))


def _rank(literal: Literal) -> tuple[bool, int]:
    """Sort key: uninverted bits first, as these are not counted; then by signal, so that rows share inverters."""
    return literal.inverted, literal.signal


class _Form(NamedTuple):
    """A kind of counter: number of counted bits, which bits the number has, and whether there is a carry."""

    counted: int
    plain: tuple[bool, ...]
    carry: bool

    @property
    def inputs(self) -> list[int]:
        """Number of bits of each place."""
        return [self.plain[0] + self.counted + self.carry, *self.plain[1:]]

    @property
    def width(self) -> int:
        return sum(count << n for n, count in enumerate(self.inputs)).bit_length()


#: Nine bits become four with three LUTs, three become two with one. If LUTs have fewer inputs, as with three counted
#: bits, tools share parts of them among rows, which costs more LUTs, in series.
_NINE, _THREE = _Form(5, (True, True, True), True), _Form(1, (True,), True)
_EIGHT, _SEVEN = _Form(5, (True, True, False), True), _Form(5, (True, False, False), True)


@lru_cache(maxsize=256)
def find_counters(ones: int, twos: int, bits: int) -> Counters:
    """Counters for `ones` and `twos` bits, whose sum has `bits` bits: the best of a few orders of forms."""
    tries = product([(), (_EIGHT,), (_SEVEN,), (_EIGHT, _SEVEN)], [3, 4, 6, 99])
    candidates = [_counters(ones, twos, bits, (_NINE, *forms), height) for forms, height in tries]
    return min(candidates, key=lambda c: c.tables * (1 + _LEVEL * c.levels))


def _counters(ones: int, twos: int, bits: int, forms: tuple[_Form, ...], height: int) -> Counters:
    """Counters chosen level by level, each for the bits that the previous level left.

    Counters of three bits are used in places of at most `height` bits.
    """
    places = [deque[Bit]() for _ in range(bits)]
    places[0] += [Bit(ROW, n) for n in range(ones)]
    if twos:
        places[1] += [Bit(ROW, ones + n) for n in range(twos)]
    counters: list[Counter] = []
    level = 0
    while max(map(len, places)) > 2:
        level += 1
        sum_bits: list[tuple[int, Bit]] = []
        for place in range(bits):
            allowed_forms = (*forms, _THREE) if len(places[place]) <= height else forms
            for form in allowed_forms:
                while _fits(form, places[place : place + len(form.plain)], form is _THREE):
                    counters.append(_take(form, place, places, level))
                    sum_bits += [(place + n, Bit(len(counters) - 1, n)) for n in range(counters[-1].width)]
        if not sum_bits:
            height += 1
        for place, bit in sum_bits:
            places[place].append(bit)
    ends = tuple(map(tuple, places))
    added = [n for n, end in enumerate(ends) if len(end) > 1]
    top = max((n for n, end in enumerate(ends) if end), default=-1)
    tables = sum(len(c.plain) for c in counters) + (top + 1 - added[0] if added else 0)
    return Counters(ones, twos, tuple(counters), ends, level + bool(added), tables)


def _fits(form: _Form, places: list[deque[Bit]], only_high: bool) -> bool:
    """True if the places have enough bits for a counter of this form."""
    if len(places) < len(form.plain):
        return False
    return all(len(bits) >= count for bits, count in zip(places, form.inputs, strict=True)) and (
        not only_high or len(places[0]) > 2
    )


def _take(form: _Form, place: int, places: list[deque[Bit]], level: int) -> Counter:
    """A counter of this form; removes its bits from the places: the first bits are not counted."""
    plain = tuple(places[place + n].popleft() if has else None for n, has in enumerate(form.plain))
    carry = places[place].popleft() if form.carry else None
    counted = tuple(places[place].pop() for _ in range(form.counted))
    return Counter(place, counted, plain, carry, min(form.width, len(places) - place), level)
