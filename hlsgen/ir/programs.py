"""`Program`: a list of integer operations on single numbers, as for trigger networks; its meaning and intervals.

Every operation has one result, and uses results of earlier operations. All numbers are integers, and exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from typing_extensions import assert_never

from hlsgen.numerics.fixed import Array, IntType

#: Most bits of a result, so that int64 holds every result and every shifted operand.
MAX_BITS = 60
#: Most bits of the operand of a table.
MAX_TABLE_BITS = 16
#: Most summands of all sums, which are bounded as linear forms.
MAX_SUMMANDS = 1 << 22


@dataclass(frozen=True)
class Take:
    """Bits of an element of the input, from the lowest up, as a number of `type`, which has a power of two of codes."""

    element: int
    type: IntType


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: int


@dataclass(frozen=True)
class Term:
    """A result times 2^shift."""

    source: int
    shift: int = 0


@dataclass(frozen=True)
class Total:
    """a + b, or a - b."""

    a: Term
    b: Term
    minus: bool


@dataclass(frozen=True)
class Wrap:
    """floor(x * 2^shift), modulo the number of codes of `type`; `bounded`: max(x, 0) in place of x."""

    source: int
    shift: int
    type: IntType
    bounded: bool = False


@dataclass(frozen=True)
class Choose:
    """condition >= threshold ? yes : no, all of them results."""

    condition: int
    threshold: int
    yes: int
    no: int


@dataclass(frozen=True)
class Product:
    """The product of two results."""

    a: int
    b: int


@dataclass(frozen=True)
class Table:
    """values[x - first]; an x beyond the ends counts as the nearest end."""

    source: int
    first: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Join:
    """The number, without a sign, of the lowest bits of results side by side: (result, bits), the lowest first."""

    parts: tuple[tuple[int, int], ...]


class BitwiseKind(Enum):
    """Bitwise operations on numbers in two's complement."""

    AND = "and"
    OR = "or"
    XOR = "xor"


@dataclass(frozen=True)
class Bitwise:
    """A bitwise operation on two numbers in two's complement of unlimited length."""

    kind: BitwiseKind
    a: Term
    b: Term


Operation = Take | Number | Total | Wrap | Choose | Product | Table | Join | Bitwise


@dataclass(frozen=True)
class Program:
    """operations: each uses earlier results. outputs: the numbers of the results that leave, in order."""

    operations: tuple[Operation, ...]
    outputs: tuple[int, ...]


def sources_of(operation: Operation) -> tuple[int, ...]:
    """The results that an operation uses."""
    match operation:
        case Take() | Number():
            return ()
        case Total(a, b) | Bitwise(_, a, b):
            return a.source, b.source
        case Wrap(source) | Table(source):
            return (source,)
        case Choose(condition, _, yes, no):
            return condition, yes, no
        case Product(a, b):
            return a, b
        case Join(parts):
            return tuple(source for source, _ in parts)
        case _:
            assert_never(operation)


def renumbered(operation: Operation, numbers: Mapping[int, int]) -> Operation:
    """The operation with other numbers of its operands."""
    match operation:
        case Take() | Number():
            return operation
        case Total(a, b) | Bitwise(_, a, b):
            terms = replace(a, source=numbers[a.source]), replace(b, source=numbers[b.source])
            return replace(operation, a=terms[0], b=terms[1])
        case Wrap(source) | Table(source):
            return replace(operation, source=numbers[source])
        case Choose(condition, _, yes, no):
            return replace(operation, condition=numbers[condition], yes=numbers[yes], no=numbers[no])
        case Product(a, b):
            return replace(operation, a=numbers[a], b=numbers[b])
        case Join(parts):
            return Join(tuple((numbers[source], bits) for source, bits in parts))
        case _:
            assert_never(operation)


def program_values(program: Program, x: Array) -> Array:
    """Run the program: int64 (..., elements) -> int64 (..., outputs)."""
    results: list[Array] = []
    for operation in program.operations:
        results.append(result_of(operation, x, results))
    return np.stack([np.broadcast_to(results[n], x.shape[:-1]) for n in program.outputs], axis=-1)


def result_of(operation: Operation, x: Array, results: Sequence[Array] | Mapping[int, Array]) -> Array:
    """The result of an operation on inputs (..., elements), from earlier results by number."""

    def term(operand: Term) -> Array:
        return np.asarray(results[operand.source] << operand.shift)

    match operation:
        case Take(element, type_):
            return _wrapped(x[..., element], type_)
        case Number(value):
            return np.asarray(value, np.int64)
        case Total(a, b, minus):
            return np.asarray(term(a) - term(b) if minus else term(a) + term(b))
        case Wrap(source, shift, type_, bounded):
            numbers = np.maximum(results[source], 0) if bounded else results[source]
            return _wrapped(numbers << shift if shift > 0 else numbers >> -shift, type_)
        case Choose(condition, threshold, yes, no):
            return np.where(results[condition] >= threshold, results[yes], results[no])
        case Product(first, second):
            return np.asarray(results[first] * results[second])
        case Table(source, start, values):
            entries = np.array(values, np.int64)
            return np.asarray(entries[np.clip(results[source] - start, 0, len(values) - 1)])
        case Join(parts):
            total, place = np.asarray(0, np.int64), 0
            for source, bits in parts:
                total = total + ((results[source] & ((1 << bits) - 1)) << place)
                place += bits
            return np.asarray(total)
        case Bitwise(kind, a, b):
            match kind:
                case BitwiseKind.AND:
                    return np.asarray(term(a) & term(b))
                case BitwiseKind.OR:
                    return np.asarray(term(a) | term(b))
                case BitwiseKind.XOR:
                    return np.asarray(term(a) ^ term(b))
                case _:
                    assert_never(kind)
        case _:
            assert_never(operation)


def _wrapped(x: Array, type_: IntType) -> Array:
    return np.asarray((x - type_.lo) % (type_.hi - type_.lo + 1) + type_.lo)


class Bounds:
    """Integer interval of each result. Sums are kept as linear forms: terms that cancel do not widen the interval."""

    def __init__(self) -> None:
        self.intervals: list[IntType] = []
        #: (factor by result, constant) of each result; a result that is no sum is 1 times itself.
        self.forms: list[tuple[dict[int, int], int]] = []

    def add(self, operation: Operation) -> None:
        n = len(self.intervals)
        self.forms.append(({n: 1}, 0))
        match operation:
            case Total(a, b, minus):
                form, constant = self._sum(a, b, -1 if minus else 1)
                self.forms[n] = form, constant
                ends = [constant, constant]
                for source, factor in form.items():
                    products = [factor * end for end in (self.intervals[source].lo, self.intervals[source].hi)]
                    ends = [ends[0] + min(products), ends[1] + max(products)]
                interval = IntType(ends[0], ends[1])
            case _:
                interval = self._interval(operation)
                if interval.lo == interval.hi:
                    self.forms[n] = {}, interval.lo
        self.intervals.append(interval)

    def _sum(self, a: Term, b: Term, sign: int) -> tuple[dict[int, int], int]:
        form = {source: factor << a.shift for source, factor in self.forms[a.source][0].items()}
        for source, factor in self.forms[b.source][0].items():
            form[source] = form.get(source, 0) + sign * (factor << b.shift)
        constant = (self.forms[a.source][1] << a.shift) + sign * (self.forms[b.source][1] << b.shift)
        return {source: factor for source, factor in form.items() if factor}, constant

    def _interval(self, operation: Operation) -> IntType:
        of = self.intervals
        match operation:
            case Take(_, type_):
                return type_
            case Number(value):
                return IntType(value, value)
            case Wrap(source, shift, type_, bounded):
                ends = [max(end, 0) if bounded else end for end in (of[source].lo, of[source].hi)]
                low, high = (end << shift if shift > 0 else end >> -shift for end in ends)
                return IntType(low, high) if type_.lo <= low and high <= type_.hi else type_
            case Choose(condition, threshold, yes, no):
                possible = []
                if of[condition].hi >= threshold:
                    low = max(of[yes].lo, threshold) if yes == condition else of[yes].lo
                    possible.append(IntType(low, of[yes].hi))
                if of[condition].lo < threshold:
                    high = min(of[no].hi, threshold - 1) if no == condition else of[no].hi
                    possible.append(IntType(of[no].lo, high))
                return IntType(min(t.lo for t in possible), max(t.hi for t in possible))
            case Product(a, b):
                corners = [p * q for p in (of[a].lo, of[a].hi) for q in (of[b].lo, of[b].hi)]
                return IntType(min(corners), max(corners))
            case Table(source, start, values):
                first, last = (min(max(end - start, 0), len(values) - 1) for end in (of[source].lo, of[source].hi))
                reached = values[first : last + 1]
                return IntType(min(reached), max(reached))
            case Join(parts):
                return IntType(0, (1 << sum(bits for _, bits in parts)) - 1)
            case Bitwise(_, a, b):
                ends = [end << term.shift for term in (a, b) for end in (of[term.source].lo, of[term.source].hi)]
                bits = IntType(min(ends), max(ends)).bits
                return (
                    IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if min(ends) < 0 else IntType(0, (1 << bits) - 1)
                )
            case _:
                raise AssertionError(operation)


def each_interval(program: Program) -> Iterator[IntType]:
    """The interval of each result, for any input; a caller that stops early saves the work for the others."""
    bounds = Bounds()
    for operation in program.operations:
        bounds.add(operation)
        yield bounds.intervals[-1]


@dataclass(frozen=True)
class LinearForm:
    """constant + sum of factors times results that are no sums, by number."""

    factors: dict[int, int]
    constant: int


def linear_forms(program: Program) -> tuple[list[LinearForm], list[IntType]]:
    """The linear form and the interval of each result."""
    bounds = Bounds()
    for operation in program.operations:
        bounds.add(operation)
    return [LinearForm(*form) for form in bounds.forms], bounds.intervals


def widest(operation: Operation, interval: IntType, intervals: Sequence[IntType]) -> int:
    """Bits of the result, in this interval, or of a shifted operand. `intervals`: the intervals of earlier results."""
    used = sources_of(operation)
    shifts = [operation.a.shift, operation.b.shift] if isinstance(operation, Total | Bitwise) else [0] * len(used)
    return max([interval.bits, *(intervals[k].bits + shift for k, shift in zip(used, shifts, strict=True))])


def excess(program: Program, intervals: Sequence[IntType]) -> tuple[int, int] | None:
    """(number, bits) of the first operation with a result or a shifted operand of more than MAX_BITS bits, or None."""
    for n, (operation, interval) in enumerate(zip(program.operations, intervals, strict=True)):
        bits = widest(operation, interval, intervals)
        if bits > MAX_BITS:
            return n, bits
    return None


def nearest_codes(type_: IntType) -> Array:
    """The number of each pattern of the bits of a type, int64 (2^bits,); a pattern without one has the nearest."""
    pattern = np.arange(1 << type_.bits)
    code = np.where(pattern > type_.hi, pattern - len(pattern), pattern) if type_.signed else pattern
    return np.asarray(np.clip(code, type_.lo, type_.hi))


def inverted_bits(operation: Operation, interval: IntType, intervals: Sequence[IntType]) -> tuple[int, int] | None:
    """(n, mask) if an operation, in this interval, is a sum with a constant that has the bits of n XOR the mask.

    Returns None for other operations. `intervals`: the intervals of earlier results.
    """
    if not isinstance(operation, Total):
        return None
    total = operation
    constants = [t for t in (total.a, total.b) if intervals[t.source].lo == intervals[t.source].hi]
    if len(constants) != 1 or (total.minus and constants[0] is total.b):
        return None
    term = total.b if constants[0] is total.a else total.a
    bits = intervals[term.source].bits
    if term.shift or interval.bits > bits:
        return None
    constant, half, ones = intervals[constants[0].source].lo << constants[0].shift, 1 << (bits - 1), (1 << bits) - 1
    # With mask `ones` the bits of x become those of -1 - x; the highest bit counts as half.
    constant_of = {ones: -1, half - 1: half - 1} if total.minus else {half: half}
    masks = [mask for mask, value in constant_of.items() if (constant - value) % (1 << interval.bits) == 0]
    return (term.source, masks[0]) if masks else None


def entries_of(table: Table, operand: IntType) -> Array:
    """The entry of a table for each pattern of its operand's bits, int64 (2^bits,)."""
    codes = nearest_codes(operand)
    return np.asarray(np.array(table.values, np.int64)[np.clip(codes - table.first, 0, len(table.values) - 1)])


def intervals_of(program: Program) -> list[IntType]:
    """The interval of each result, for any input."""
    return list(each_interval(program))


def most_summands(program: Program) -> int:
    """An upper bound of the summands in all sums, written as linear forms of results that are no sums."""
    counts: list[int] = []
    leaves = total = 0
    for operation in program.operations:
        is_sum = isinstance(operation, Total)
        leaves += not is_sum
        counts.append(min(leaves, sum(counts[k] for k in sources_of(operation))) if is_sum else 1)
        total += counts[-1]
    return total


def output_type(program: Program) -> IntType:
    """The least interval that holds all outputs."""
    intervals = intervals_of(program)
    ends = [intervals[n] for n in program.outputs]
    return IntType(min(t.lo for t in ends), max(t.hi for t in ends))
