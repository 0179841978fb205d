"""LUTs of a graph of agreements with its registers, from the bits of the counters of a row."""

from __future__ import annotations

from functools import lru_cache

from hlsgen.adder_graph.agreements import ROW, AgreementGraph, Counter
from hlsgen.adder_graph.agreements import Bit as CountedBit
from hlsgen.verilog.mapped_luts import MINUS, PLUS, Bit, MappedLuts, Value, inverse


@lru_cache(maxsize=256)
def count_luts(graph: AgreementGraph, levels: int, y_bits: int, family: str) -> dict[str, float]:
    """LUTs by part, see `mapped_luts`, with a register after every `levels` counters. Sums have `y_bits`.

    All rows have the same counters. `shared`: LUTs of the triples, and of the complements of bits that a
    counter does not count.
    """
    luts = MappedLuts(family)
    row = _Row(graph, levels, luts)
    for n, counter in enumerate(graph.counters.counters):
        row.add(n, counter)
    row.end(y_bits)
    shared = {literal.signal for literals in graph.rows for literal in literals if literal.signal >= graph.columns}
    plain = {bit.place for c in graph.counters.counters for bit in (*c.plain, c.carry) if bit and bit.source == ROW}
    inverted = {literals[place].signal for literals in graph.rows for place in plain if literals[place].inverted}
    parts = {f"count {part}": number * len(graph.rows) for part, number in luts.parts.items()}
    return parts | {"shared": float(len(shared) + len(inverted))}


class _Row:
    """The counters of a row so far."""

    def __init__(self, graph: AgreementGraph, levels: int, luts: MappedLuts) -> None:
        self.graph, self.levels, self.luts = graph, levels, luts
        self.sums: list[list[Value]] = []

    def add(self, n: int, counter: Counter) -> None:
        """Module hg_count: a number and a count of bits, with a carry. It subtracts the complement of the count."""
        cycle = self.graph.counters.ready_cycle(n, self.levels)
        carry, *plain = (self._bit(bit, cycle) for bit in (counter.carry, *counter.plain))
        x = [self._bit(bit, cycle) for bit in counter.counted]
        parity = self.luts.function((n, "parity"), x[:3])
        majority = self.luts.function((n, "majority"), x[:3]) if len(x) > 1 else 0
        count = [self.luts.function((n, "count", place), [parity, majority, *x[3:]]) for place in range(len(plain))]
        second = [inverse(bit) for bit in (carry, *count, 0)]
        self.sums.append(self.luts.sum(n, [carry, *plain, 0], second, MINUS)[1:])

    def end(self, y_bits: int) -> None:
        """The last adder, and its register."""
        ends = self.graph.counters.ends
        last = self.graph.counters.cycles(self.levels) - 1
        low = next((n for n, end in enumerate(ends) if len(end) > 1), len(ends))
        places = [[self._bit(end[n] if n < len(end) else None, last) for end in ends] for n in range(2)]
        rows = [[*bits, *[0] * y_bits][:y_bits] for bits in places]
        for bit in rows[0][:low] + self.luts.sum("end", rows[0][low:], rows[1][low:], PLUS):
            self.luts.build(bit)

    def _bit(self, bit: CountedBit | None, cycle: int) -> Value:
        if bit is None:
            return 0
        if bit.source == ROW:
            return Bit((ROW, bit.place))
        value = self.sums[bit.source][bit.place]
        if cycle > self.graph.counters.ready_cycle(bit.source, self.levels):
            self.luts.build(value, as_is=True)
            return Bit((bit.source, bit.place, "register"))
        return value
