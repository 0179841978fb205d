"""Reads the program of a module as certificate.json states it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hlsgen.certify.netlist_reader import broken
from hlsgen.ir.programs import (
    MAX_BITS,
    MAX_TABLE_BITS,
    Bitwise,
    BitwiseKind,
    Choose,
    Join,
    Number,
    Operation,
    Product,
    Program,
    Table,
    Take,
    Term,
    Total,
    Wrap,
    sources_of,
)
from hlsgen.numerics.fixed import IntType

_MOST_OPERATIONS = 200_000
_LARGEST = 1 << MAX_BITS


def _power_of_two(lo: int, hi: int) -> IntType:
    if lo > hi or (hi - lo + 1) & (hi - lo):
        raise ValueError
    return IntType(lo, hi)


#: For each name, the operation from its numbers.
_READ: dict[str, Callable[..., Operation]] = {
    "take": lambda element, lo, hi: Take(element, _power_of_two(lo, hi)),
    "number": Number,
    "sum": lambda a, i, b, j: Total(Term(a, i), Term(b, j), False),
    "difference": lambda a, i, b, j: Total(Term(a, i), Term(b, j), True),
    "wrap": lambda source, shift, lo, hi: Wrap(source, shift, _power_of_two(lo, hi)),
    "relu": lambda source, shift, lo, hi: Wrap(source, shift, _power_of_two(lo, hi), True),
    "choose": Choose,
    "product": Product,
    "table": lambda source, first, *values: Table(source, first, values),
    "join": lambda *numbers: Join(tuple(zip(numbers[::2], numbers[1::2], strict=True))),
    **{kind.value: lambda a, i, b, j, kind=kind: Bitwise(kind, Term(a, i), Term(b, j)) for kind in BitwiseKind},
}


def read_program(name: str, rows: list[list[Any]], elements: int) -> Program:
    """The program of a statement, for an input of this number of elements. Raises HG055."""
    if not 1 < len(rows) <= _MOST_OPERATIONS or rows[-1][:1] != ["outputs"]:
        raise broken(name, "certificate.json: its program has no outputs, or too many operations.")
    operations: list[Operation] = []
    for row in rows[:-1]:
        operations.append(_operation(name, row, len(operations), elements))
    outputs = rows[-1][1:]
    if not all(type(n) is int and 0 <= n < len(operations) for n in outputs):
        raise broken(name, f"certificate.json: outputs of its program are {str(outputs)[:60]}.")
    return Program(tuple(operations), tuple(outputs))


def _operation(name: str, row: list[Any], number: int, elements: int) -> Operation:
    wrong = broken(name, f"certificate.json: operation {number} of its program is {str(row)[:60]}.")
    if not row or row[0] not in _READ or not all(type(value) is int and abs(value) < _LARGEST for value in row[1:]):
        raise wrong
    try:
        operation = _READ[row[0]](*row[1:])
    except (TypeError, ValueError):
        raise wrong from None
    if not all(0 <= source < number for source in sources_of(operation)) or not _is_legal(operation, elements):
        raise wrong
    return operation


def _is_legal(operation: Operation, elements: int) -> bool:
    """True if the numbers of an operation, other than its operands, are in their ranges."""
    match operation:
        case Take(element):
            return 0 <= element < elements
        case Total(a, b) | Bitwise(_, a, b):
            return 0 <= a.shift < MAX_BITS and 0 <= b.shift < MAX_BITS
        case Wrap(_, shift):
            return abs(shift) < MAX_BITS
        case Table(_, _, values):
            return 0 < len(values) <= 1 << MAX_TABLE_BITS
        case Join(parts):
            widths = [bits for _, bits in parts]
            return min(widths, default=0) > 0 and sum(widths) < MAX_BITS
        case _:
            return True
