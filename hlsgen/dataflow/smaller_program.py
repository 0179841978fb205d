"""Rewrites a program for fewer LUTs: sums are derived again, and functions of one sum become lookup tables.

A result has a *base*, the number that all its operands are functions of. The base of a sum of numbers with different
bases is this sum without its constant and its power of two. Sums share an adder graph. A function of a base (an added
constant, Relu, rounding, wrapping, bounds) keeps its operations, or becomes a table of the bits that matter. If the
terms of the base have few bits, it can become a table of these.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hlsgen.adder_graph import AdderGraph, count_digits, find_exact
from hlsgen.adder_graph.graph import NOTHING
from hlsgen.dataflow.program_luts import LUT_INPUTS, operation_luts, program_luts
from hlsgen.ir.equal_programs import unproven_output
from hlsgen.ir.programs import (
    MAX_BITS,
    Bounds,
    Join,
    LinearForm,
    Number,
    Operation,
    Program,
    Table,
    Term,
    Total,
    Wrap,
    excess,
    intervals_of,
    linear_forms,
    nearest_codes,
    renumbered,
    result_of,
    sources_of,
)
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.lane_table import lane_luts, smallest_table, table_luts

#: Longer programs, and those whose sums have more terms, are not rewritten.
MOST_OPERATIONS, _MOST_TERMS = 20_000, 50_000
#: The most bits of the terms of a sum whose functions become tables of them: all of these are tried.
_JOINED_BITS = (0, 6, 8, 10)
#: Without and with constants that keep sums from being negative: both are tried.
_OFFSETS = (False, True)
#: Share of the LUTs of a sum that are saved without it: other sums have parts of it.
_UNSHARED = 0.6
#: Most values of a base whose functions become tables.
_MOST_VALUES = 1 << 15
_ALL_BITS = IntType(-(1 << (MAX_BITS - 1)), (1 << (MAX_BITS - 1)) - 1)

#: Tables of the bits of the base that matter, and of the bits of its terms.
_OF_BASE, _OF_TERMS = "base", "terms"
#: The terms (number of a result, factor) of a sum.
_Sum = tuple[tuple[int, int], ...]
#: The number of a result that is no sum, or a sum.
_Base = int | _Sum


def smaller_program(program: Program) -> Program:
    """A program with fewer estimated LUTs that is proven to have the same outputs, or the program itself."""
    if len(program.operations) > MOST_OPERATIONS:
        return program
    bases = _Bases(program)
    writers = [_Writer(bases, bits, offsets=offsets) for bits in _JOINED_BITS for offsets in _OFFSETS]
    if writers[0].terms > _MOST_TERMS:
        return program
    rewritten = sorted((writer.program() for writer in writers), key=_luts)
    smaller = (candidate for candidate in rewritten if _luts(candidate) < _luts(program))
    return next((candidate for candidate in smaller if _is_proven(program, candidate)), program)


def _is_proven(program: Program, candidate: Program) -> bool:
    fits = excess(candidate, intervals_of(candidate)) is None
    return fits and unproven_output(program, candidate, intervals_of) is None


def _luts(program: Program) -> float:
    return sum(program_luts(program).values())


@lru_cache(maxsize=64)
def _graph(weights: bytes, rows: int, inputs: tuple[tuple[int, int], ...]) -> AdderGraph:
    """The adder graph of a matrix int64 (rows, len(inputs)), cached for all programs that are tried."""
    return find_exact(np.frombuffer(weights, np.int64).reshape(rows, -1), inputs)


@dataclass(frozen=True)
class _Scaled:
    """base * factor + constant; the factor is a power of two or its negative."""

    base: _Base
    factor: int
    constant: int


def _scaled(form: LinearForm) -> _Scaled:
    """A sum from its base, whose factors have no power of two in common, and of which the first is positive."""
    terms = sorted(form.factors.items())
    common = math.gcd(*(factor for _, factor in terms))
    factor = (common & -common) * (1 if terms[0][1] > 0 else -1)
    return _Scaled(tuple((n, f // factor) for n, f in terms), factor, form.constant)


class _Bases:
    """The base of each result, and its values for all values of the base."""

    def __init__(self, program: Program) -> None:
        self.operations, self.outputs = program.operations, program.outputs
        self.forms, self.intervals = linear_forms(program)
        self.of: list[_Base | None] = []
        for n in range(len(self.operations)):
            self.of.append(self._base(n))
        self._listed_base: _Base | None = None
        self._listed: dict[int, Array] = {}

    def _base(self, n: int) -> _Base | None:
        """The base of result n. A constant has none."""
        form, operation = self.forms[n], self.operations[n]
        if not form.factors:
            return None
        is_sum = isinstance(operation, Total)
        bases = {self.of[k] for k in (form.factors if is_sum else sources_of(operation))} - {None}
        if len(bases) == 1:
            return bases.pop()
        return _scaled(form).base if is_sum else n

    def is_constant(self, n: int) -> bool:
        return self.intervals[n].lo == self.intervals[n].hi

    def sum_of(self, n: int) -> _Scaled | None:
        """Result n from its base if it is no other function of it, else None."""
        if not isinstance(self.operations[n], Total) or not self.forms[n].factors:
            return None
        scaled = _scaled(self.forms[n])
        return scaled if scaled.base == self.of[n] else None

    def ends(self, base: _Base) -> tuple[int, int]:
        """The least and the greatest value of a base."""
        terms = ((base, 1),) if isinstance(base, int) else base
        products = [sorted((factor * self.intervals[n].lo, factor * self.intervals[n].hi)) for n, factor in terms]
        return sum(low for low, _ in products), sum(high for _, high in products)

    def values(self, n: int) -> Array | None:
        """Result n for all values of its base in order, or None if these are many."""
        base = self.of[n]
        assert base is not None
        low, high = self.ends(base)
        if high - low >= _MOST_VALUES:
            return None
        if base != self._listed_base:
            self._listed_base, self._listed = base, {}
        return self._values(n, np.arange(low, high + 1))

    def _values(self, n: int, points: Array) -> Array:
        if n not in self._listed:
            self._listed[n] = self._computed(n, points)
        return self._listed[n]

    def _computed(self, n: int, points: Array) -> Array:
        if self.is_constant(n):
            return np.full(points.shape, self.intervals[n].lo)
        if n == self.of[n]:
            return points
        scaled = self.sum_of(n)
        if scaled is not None:
            return scaled.factor * points + scaled.constant
        if isinstance(self.operations[n], Total):
            form = self.forms[n]
            terms = [factor * self._values(k, points) for k, factor in form.factors.items()]
            return np.asarray(sum(terms) + form.constant)
        operands = {k: self._values(k, points) for k in sources_of(self.operations[n])}
        return np.broadcast_to(result_of(self.operations[n], points, operands), points.shape)

    def joined(self, n: int, bits: int) -> Array | None:
        """Result n for all patterns of the bits of its base's terms, or None if these are more than `bits`.

        A pattern that no code has counts as the nearest code.
        """
        base, values = self.of[n], None
        if isinstance(base, tuple) and sum(self.intervals[k].bits for k, _ in base) <= bits:
            values = self.values(n)
        if values is None or not isinstance(base, tuple):
            return None
        total = np.zeros(1, np.int64)
        for k, factor in base:
            total = (total[None] + factor * nearest_codes(self.intervals[k])[:, None]).ravel()
        return values[total - self.ends(base)[0]]

    def sum_luts(self, base: _Base) -> float:
        """LUTs of a sum by itself."""
        if isinstance(base, int):
            return 0.0
        low, high = self.ends(base)
        additions = sum(count_digits(np.array([factor])) for _, factor in base) - 1
        return additions * (IntType(min(low, 0), max(high, 0)).bits + 1) / 2

    def luts(self, n: int) -> float:
        """LUTs of the operations between result n and its base."""
        total, pending, visited = 0.0, [n], set[int]()
        while pending:
            k = pending.pop()
            if k in visited or self.is_constant(k) or k == self.of[n]:
                continue
            visited.add(k)
            scaled = self.sum_of(k)
            if scaled is None:
                total += operation_luts(self.operations[k], self.intervals[k], self.intervals)
                pending += sources_of(self.operations[k])
            elif scaled.constant or scaled.factor < 0:
                total += self.intervals[k].bits - _zeros(scaled.constant)
        return total


def _zeros(value: int) -> int:
    """Zeros below the lowest 1 of a number; 0 for 0."""
    return max(0, (value & -value).bit_length() - 1)


@dataclass(frozen=True)
class _Moved:
    """The result of this number less an offset."""

    number: int
    offset: int = 0


class _Writer:
    """Writes the results that the outputs need.

    - `joined_bits`: most bits of the terms of a sum whose functions become tables of them.
    - `offsets`: sums in adder graphs may have a constant more, so that none is negative. Then a difference is a sum
      with inverted bits and needs no carry, and its highest bit is a carry.
    - `tables`: the results that become tables of their base, or of the terms of their base.
    - `of_result`: the new number of each result.
    """

    def __init__(self, bases: _Bases, joined_bits: int, *, offsets: bool) -> None:
        self.bases, self.joined_bits, self.offsets = bases, joined_bits, offsets
        self.operations: list[Operation] = []
        self.bounds = Bounds()
        self.number_of: dict[Operation, int] = {}
        self.of_result: dict[int, int] = {}
        self.of_node: dict[tuple[int, int], _Moved] = {}
        #: For each sum: its adder graph, the results that are its inputs, and the row.
        self.graphs: dict[_Base, tuple[AdderGraph, list[int], int]] = {}
        self.tables: dict[int, str] = {}
        self.needed, self.sums = self._needed()

    @property
    def terms(self) -> int:
        """Terms of all sums."""
        return sum(map(len, self.sums))

    def program(self) -> Program:
        self._find_graphs()
        for n in sorted(self.needed):
            self.of_result[n] = self._written(n)
        return Program(tuple(self.operations), tuple(self.of_result[n] for n in self.bases.outputs))

    def _needed(self) -> tuple[set[int], list[_Sum]]:
        """The results that are written, and the sums among their bases; chooses the results that become tables."""
        bases, needed, sums = self.bases, set[int](), dict[_Sum, None]()
        pending = list(bases.outputs)
        while pending:
            n = pending.pop()
            if n in needed:
                continue
            needed.add(n)
            base = bases.of[n]
            if base is None:
                continue
            table = self._kind_of_table(n)
            if table:
                self.tables[n] = table
            elif n == base or bases.sum_of(n) is None:
                pending += sources_of(bases.operations[n])
                continue
            if isinstance(base, int):
                pending.append(base)
                continue
            pending += [k for k, _ in base]
            if table != _OF_TERMS:
                sums[base] = None
        return needed, list(sums)

    def _kind_of_table(self, n: int) -> str:
        """The kind of table that result n becomes, "" if it keeps its operations."""
        bases, base = self.bases, self.bases.of[n]
        if base is None or n == base or bases.sum_of(n) is not None:
            return ""
        luts, kind = bases.luts(n), ""
        values = bases.values(n) if luts else None
        table = None if values is None else smallest_table(values, bases.ends(base)[0])
        if table is not None and lane_luts(*table) < luts:
            luts, kind = lane_luts(*table), _OF_BASE
        joined = bases.joined(n, self.joined_bits)
        if joined is not None and table_luts(joined, LUT_INPUTS) < luts + _UNSHARED * bases.sum_luts(base):
            return _OF_TERMS
        return kind

    def _find_graphs(self) -> None:
        """A graph for all sums that have numbers in common, directly or through others."""
        group_of: dict[int, list[_Sum]] = {}
        for base in self.sums:
            groups = {id(group): group for group in (group_of.get(n) for n, _ in base) if group is not None}
            merged = max(groups.values(), key=len, default=[])
            joining = [base, *itertools.chain(*(group for group in groups.values() if group is not merged))]
            merged += joining
            for n, _ in itertools.chain(*joining):
                group_of[n] = merged
        for group in {id(group): group for group in group_of.values()}.values():
            columns = sorted({n for base in group for n, _ in base})
            place = {n: column for column, n in enumerate(columns)}
            weights = np.zeros((len(group), len(columns)), np.int64)
            for row, base in enumerate(group):
                for n, factor in base:
                    weights[row, place[n]] = factor
            types = [self.bases.intervals[n] for n in columns]
            inputs = tuple((min(t.lo, 0), max(t.hi, 0)) for t in types)
            graph = _graph(weights.tobytes(), len(group), inputs)
            for row, base in enumerate(group):
                self.graphs[base] = graph, columns, row

    # ----------------------------------------------------------------------- operations

    def _add(self, operation: Operation) -> int:
        if operation not in self.number_of:
            self.number_of[operation] = len(self.operations)
            self.operations.append(operation)
            self.bounds.add(operation)
        return self.number_of[operation]

    def _constant(self, value: int) -> Term:
        """A constant without its zeros, which are a shift: they need no adder."""
        return Term(self._add(Number(value >> _zeros(value))), _zeros(value))

    def _written(self, n: int) -> int:
        bases = self.bases
        if bases.is_constant(n):
            return self._add(Number(bases.intervals[n].lo))
        if n in self.tables:
            return self._joined(n) if self.tables[n] == _OF_TERMS else self._table(n)
        scaled = bases.sum_of(n)
        if scaled is not None:
            return self._of_base(scaled)
        return self._add(renumbered(bases.operations[n], self.of_result))

    def _of_base(self, scaled: _Scaled) -> int:
        moved, sign = self._base(scaled.base)
        factor = scaled.factor * sign
        term, constant = Term(moved.number, _zeros(factor)), scaled.constant - factor * moved.offset
        if factor < 0:
            return self._add(Total(self._constant(constant), term, True))
        if constant:
            return self._add(Total(term, self._constant(constant), False))
        return self._add(Wrap(term.source, term.shift, _ALL_BITS)) if term.shift else term.source

    def _base(self, base: _Base) -> tuple[_Moved, int]:
        """(number, 1 or -1): the base is their product."""
        if isinstance(base, int):
            return _Moved(self.of_result[base]), 1
        graph, columns, row = self.graphs[base]
        output = graph.outputs[row]
        assert not output.shift, "the factors of a base have no power of two in common"
        return self._node(graph, columns, output.node), -1 if output.inverted else 1

    def _node(self, graph: AdderGraph, columns: list[int], node: int) -> _Moved:
        """A node of an adder graph. Sums of three terms become two sums."""
        key = id(graph), node
        if key not in self.of_node:
            self.of_node[key] = self._new_node(graph, columns, node)
        return self.of_node[key]

    def _new_node(self, graph: AdderGraph, columns: list[int], node: int) -> _Moved:
        if node < len(columns):
            return self._input(self.of_result[columns[node]])
        adder = graph.adders[node - len(columns)]
        terms = [
            (self._node(graph, columns, k), i) for k, i in ((adder.a, adder.i), (adder.c, adder.k)) if k != NOTHING
        ]
        right = self._node(graph, columns, adder.b)
        if adder.minus and self.offsets:
            right = self._negated(right)
        terms = terms or [(_Moved(self._add(Number(0))), 0)]
        total = self._total(terms[0], (right, adder.j), minus=adder.minus and not self.offsets)
        return self._total((total, 0), terms[1], minus=False) if terms[1:] else total

    def _input(self, number: int) -> _Moved:
        """An input of an adder graph."""
        type_ = self.bounds.intervals[number]
        if not self.offsets or not type_.signed:
            return _Moved(number)
        offset = 1 << (type_.bits - 1)
        return _Moved(self._add(Total(Term(number), self._constant(offset), False)), offset)

    def _negated(self, x: _Moved) -> _Moved:
        """-x: all bits inverted."""
        ones = (1 << self.bounds.intervals[x.number].bits) - 1
        return _Moved(self._add(Total(self._constant(ones), Term(x.number), True)), ones - x.offset)

    def _total(self, a: tuple[_Moved, int], b: tuple[_Moved, int], *, minus: bool) -> _Moved:
        """a + b or a - b, of pairs (number, shift)."""
        number = self._add(Total(Term(a[0].number, a[1]), Term(b[0].number, b[1]), minus))
        return _Moved(number, (a[0].offset << a[1]) + (-1 if minus else 1) * (b[0].offset << b[1]))

    def _joined(self, n: int) -> int:
        """A table of the bits of the terms of the base."""
        base, values = self.bases.of[n], self.bases.joined(n, self.joined_bits)
        assert isinstance(base, tuple)
        assert values is not None
        index = self._add(Join(tuple((self.of_result[k], self.bases.intervals[k].bits) for k, _ in base)))
        return self._add(Table(index, 0, tuple(values.tolist())))

    def _table(self, n: int) -> int:
        """A table of the bits of the base that matter."""
        base, values = self.bases.of[n], self.bases.values(n)
        assert base is not None
        assert values is not None
        low, high = self.bases.ends(base)
        moved, sign = self._base(base)
        number, first = moved.number, moved.offset + (low if sign > 0 else -high)
        table = smallest_table(values[::sign], first)
        if table is None:
            number = self._add(Total(self._constant(moved.offset), Term(number), True))
            table = smallest_table(values, low)
            assert table is not None, "its LUTs were counted"
        offset, shift, entries = table
        if len(entries) == 1:
            return self._add(Number(int(entries[0])))
        if offset:
            number = self._add(Total(Term(number), self._constant(offset), False))
        index = self._add(Wrap(number, -shift, IntType(0, len(entries) - 1)))
        return self._add(Table(index, 0, tuple(entries.tolist())))
