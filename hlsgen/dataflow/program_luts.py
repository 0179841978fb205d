"""Estimated LUTs of the operations of a program."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.ir.programs import (
    Bitwise,
    Choose,
    Operation,
    Product,
    Program,
    Table,
    Total,
    Wrap,
    entries_of,
    intervals_of,
    inverted_bits,
)
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale.realize.lane_table import table_luts

#: Inputs of a LUT.
LUT_INPUTS = 6
#: LUTs of a gate that shares its LUT with the next operation.
_GATE = 0.5
#: The kind of each operation with LUTs.
KINDS: dict[type[Operation], str] = {
    Total: "sums",
    Table: "tables",
    Choose: "choices",
    Bitwise: "choices",
    Wrap: "choices",
    Product: "products",
}


def program_luts(program: Program) -> dict[str, float]:
    """LUTs of six inputs by kind of operation."""
    parts = dict.fromkeys(KINDS.values(), 0.0)
    intervals = intervals_of(program)
    for n, operation in enumerate(program.operations):
        if type(operation) in KINDS:
            parts[KINDS[type(operation)]] += operation_luts(operation, intervals[n], intervals)
    return parts


def operation_luts(operation: Operation, interval: IntType, intervals: Sequence[IntType]) -> float:
    """LUTs of an operation whose result has this interval. `intervals`: the intervals of earlier results."""
    if interval.lo == interval.hi:
        return 0.0
    match operation:
        case Total(a, b, minus):
            if inverted_bits(operation, interval, intervals) is not None:
                return 0.0
            shifted = abs(a.shift - b.shift) if not minus or b.shift else 0
            terms = [intervals[t.source] for t in (a, b)]
            # The highest bit of a sum of numbers without signs is a carry.
            is_carry = not minus and not any(t.signed for t in terms)
            longest = max(type_.bits + t.shift for type_, t in zip(terms, (a, b), strict=True))
            return max(0, (min(longest, interval.bits) if is_carry else interval.bits) - shifted)
        case Table(source):
            return table_luts(entries_of(operation, intervals[source]), LUT_INPUTS)
        case Choose() | Bitwise():
            return interval.bits
        case Wrap(source, _, _, bounded) if bounded and intervals[source].lo < 0:
            return _GATE * interval.bits
        case Product(a, b):
            return intervals[a].bits * intervals[b].bits
        case _:
            return 0.0
