"""Estimated LUTs of the operations of a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir.programs import Bitwise, Choose, Operation, Product, Program, Table, Total, Wrap, intervals_of
from hlsgen.numerics.fixed import Array, IntType
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
            shifted = abs(a.shift - b.shift) if not minus or b.shift else 0
            return max(0, interval.bits - shifted)
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


def entries_of(table: Table, operand: IntType) -> Array:
    """The entry for each pattern of the operand's bits, int64 (2^bits,).

    A pattern that no number has counts as the nearest.
    """
    pattern = np.arange(1 << operand.bits)
    code = np.where(pattern > operand.hi, pattern - len(pattern), pattern) if operand.lo < 0 else pattern
    code = np.clip(code, operand.lo, operand.hi)
    return np.array(table.values, np.int64)[np.clip(code - table.first, 0, len(table.values) - 1)]
