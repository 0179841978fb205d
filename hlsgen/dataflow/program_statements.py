"""Statements about the program that a module runs, where it is not the model's."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from hlsgen.ir.programs import Bitwise, Choose, Join, Number, Operation, Product, Program, Table, Take, Total, Wrap


def program_statement(program: Program) -> list[list[Any]]:
    """The operations as lists of a name and integers, then the outputs. docs/certificate.md describes them."""
    return [*(_row(operation) for operation in program.operations), ["outputs", *program.outputs]]


def _row(operation: Operation) -> list[Any]:
    match operation:
        case Take(element, type_):
            return ["take", element, type_.lo, type_.hi]
        case Number(value):
            return ["number", value]
        case Total(a, b, minus):
            return ["difference" if minus else "sum", a.source, a.shift, b.source, b.shift]
        case Wrap(source, shift, type_, bounded):
            return ["relu" if bounded else "wrap", source, shift, type_.lo, type_.hi]
        case Choose(condition, threshold, yes, no):
            return ["choose", condition, threshold, yes, no]
        case Product(a, b):
            return ["product", a, b]
        case Table(source, first, values):
            return ["table", source, first, *values]
        case Join(parts):
            return ["join", *(number for part in parts for number in part)]
        case Bitwise(kind, a, b):
            return [kind.value, a.source, a.shift, b.source, b.shift]
        case _:
            assert_never(operation)
