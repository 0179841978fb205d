"""Second reading of an ALIR file: its program, derived with fractions, and compared with the Model.

It shares nothing with the frontend. A value of the file is a result of the program times a unit, a fraction.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.result import SecondReading
from hlsgen.ir import Model, RowStep
from hlsgen.ir.ops import BinaryKind, BinaryOf, IntQuant, Mul
from hlsgen.ir.programs import (
    Bitwise,
    BitwiseKind,
    Choose,
    Number,
    Operation,
    Product,
    Program,
    Table,
    Take,
    Term,
    Total,
    Wrap,
)
from hlsgen.numerics.fixed import IntType

_KINDS = {0: BitwiseKind.AND, 1: BitwiseKind.OR, 2: BitwiseKind.XOR}
#: The type of a change of units, which loses nothing.
_WIDE = IntType(-(1 << 59), (1 << 59) - 1)
#: A result, and its unit.
_Value = tuple[int, Fraction]


def is_alir(path: Path) -> bool:
    """True if the file begins like JSON or gzip."""
    with path.open("rb") as stream:
        head = stream.read(64)
    return head.lstrip().startswith(b"{") or head.startswith(b"\x1f\x8b")


def compare(data: bytes, model: Model) -> SecondReading:
    """Read an ALIR file and compare the Model's program, quantizer and scales with it."""
    try:
        text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        content = json.loads(text)["model"]
        return SecondReading(tuple(_differences(_File(content), model)), ())
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, OSError) as error:
        return SecondReading((("", f"the file cannot be read: {error}."),), ())


def _differences(file: _File, model: Model) -> Iterator[tuple[str, str]]:
    programs = [step.op.function for step in model.steps if isinstance(step.op, RowStep)]
    scales = [np.asarray(step.op.value).ravel() for step in model.steps if isinstance(step.op, Mul)]
    types = [step.op.type for step in model.steps if isinstance(step.op, IntQuant)]
    rests = [step.op for step in model.steps if isinstance(step.op, BinaryOf)]
    if len(programs) != 1 or len(scales) != 2 or len(types) != 1 or len(rests) != 1:
        yield "program", "the Model is not a quantizer, a program and scales."
        return
    if [float(scale) for scale in scales[0]] != [float(1 / unit) for unit, _ in file.ports]:
        yield "input", "the units of its elements differ."
    codes = 1 << file.port_bits
    if types[0] != IntType(0, codes - 1) or not _is_rest(rests[0], codes):
        yield "input", f"its codes are not the {file.port_bits} lowest bits."
    program, reader = programs[0], _Reader(file)
    operations, places = reader.operations()
    if not isinstance(program, Program) or len(operations) != len(program.operations):
        yield "program", f"the file means {len(operations)} operations."
        return
    for expected, imported, place in zip(operations, program.operations, places, strict=True):
        if expected != imported:
            yield place, f"it means {expected}, imported was {imported}."
    outputs, units = reader.outputs()
    if tuple(outputs) != program.outputs:
        yield "output", "its elements are other results."
    if [Fraction(float(scale)) for scale in scales[1]] != units:
        yield "output", "the units of its elements differ."


def _is_rest(modulo_codes: BinaryOf, codes: int) -> bool:
    """True for x - floor(x / codes) * codes."""
    if modulo_codes.kind is not BinaryKind.SUB or len(modulo_codes.ways) != 2 or modulo_codes.ways[0]:
        return False
    factors = [float(np.asarray(op.value).ravel()[0]) for op in modulo_codes.ways[1] if isinstance(op, Mul)]
    floors = [op for op in modulo_codes.ways[1] if not isinstance(op, Mul)]
    is_floor = (
        len(floors) == 1 and getattr(floors[0], "kind", "") == "Floor" and modulo_codes.ways[1].index(floors[0]) == 1
    )
    return is_floor and factors == [1 / codes, float(codes)]


class _File:
    """The fields of a file by their places, and the formats of its inputs."""

    def __init__(self, content: list[Any]) -> None:
        self.input_shifts, self.output_numbers, self.output_shifts, self.output_signs, self.records = content[1:6]
        self.tables = (content[8] if len(content) > 8 else None) or []
        formats: dict[int, list[tuple[Fraction, int]]] = {}
        for n, record in enumerate(self.records):
            low, high, step = self.interval(n)
            if record[1] == -1 and (low or high):
                element = record[2][0]
                unit = step / Fraction(2) ** self.input_shifts[element]
                formats.setdefault(element, []).append((unit, _full_type(low, high).bits))
        #: (unit, bits) of each input: the finest unit, and all bits that are used.
        self.ports: list[tuple[Fraction, int]] = []
        for element in range(content[0][0]):
            forms = formats.get(element, [(Fraction(1), 0)])
            unit = min(unit for unit, _ in forms)
            if element in formats:
                self.ports.append((unit, max(bits + _power(u / unit) for u, bits in forms)))
            else:
                self.ports.append((unit, 0))
        # An input whose only format is coarser than 1 still has a unit of its own.
        self.port_bits = max(1, *(bits for _, bits in self.ports))

    def interval(self, n: int) -> tuple[int, int, Fraction]:
        """Lowest and highest integer of an operation's claimed interval, and their unit."""
        low, high, step = (Fraction(value) for value in self.records[n][3])
        if low == 0 and high == 0:
            return 0, 0, Fraction(1)
        return int(low / step), int(high / step), step


def _power(ratio: Fraction) -> int:
    """The exponent of a power of two."""
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    if Fraction(2) ** exponent != ratio:
        raise ValueError(f"{ratio} is no power of two")
    return exponent


def _full_type(low: int, high: int) -> IntType:
    """The smallest integer type of whole bits that holds low..high; unsigned if low is not negative."""
    bits = 1
    if low >= 0:
        while (1 << bits) <= high:
            bits += 1
        return IntType(0, (1 << bits) - 1)
    bits = 0
    while -(1 << bits) > low or (1 << bits) <= high:
        bits += 1
    return IntType(-(1 << bits), (1 << bits) - 1)


class _Reader:
    """The operations that the outputs need, in the order of the file."""

    def __init__(self, file: _File) -> None:
        self.file = file
        self.made: list[Operation] = []
        self.places: list[str] = []
        self.values: dict[int, _Value] = {}
        self.place = ""

    def operations(self) -> tuple[list[Operation], list[str]]:
        """All operations of the program, and the place in the file of each."""
        needed = {n for n in self.file.output_numbers if n >= 0}
        for n in range(len(self.file.records) - 1, -1, -1):
            low, high, _ = self.file.interval(n)
            constant = low == high == 0 and self.file.records[n][1] in (-1, 2, 3, 6)
            if n in needed and not constant:
                needed.update(self.file.records[n][0])
        for n in sorted(needed):
            self.place = f"operation {n}"
            low, high, _ = self.file.interval(n)
            if low == high == 0 and self.file.records[n][1] in (-1, 2, 3, 6):
                self.values[n] = self.make(Number(0)), Fraction(1)
            else:
                self.values[n] = self.value(n, *self.file.records[n][:3])
        self.place = "output"
        self.zeros = [self.make(Number(0)) for n in self.file.output_numbers if n < 0]
        return self.made, self.places

    def outputs(self) -> tuple[list[int], list[Fraction]]:
        """Numbers of the operations that are outputs, and the real value of 1 in each, negative if the file negates."""
        results, units, zeros = [], [], iter(self.zeros)
        for n, shift, sign in zip(
            self.file.output_numbers, self.file.output_shifts, self.file.output_signs, strict=True
        ):
            result, unit = self.values[n] if n >= 0 else (next(zeros), Fraction(1))
            results.append(result)
            units.append(unit * Fraction(2) ** shift * (-1 if sign else 1))
        return results, units

    def make(self, operation: Operation) -> int:
        self.made.append(operation)
        self.places.append(self.place)
        return len(self.made) - 1

    def sum(self, a: _Value, b: _Value, factor: Fraction, *, minus: bool) -> _Value:
        """a + b * factor, or a - b * factor."""
        b = b[0], b[1] * factor
        unit = min(a[1], b[1])
        terms = Term(a[0], _power(a[1] / unit)), Term(b[0], _power(b[1] / unit))
        return self.make(Total(terms[0], terms[1], minus)), unit

    def wrapped(self, n: int, value: _Value, factor: Fraction, *, bounded: bool = False) -> _Value:
        low, high, unit = self.file.interval(n)
        shift = _power(value[1] * factor / unit)
        return self.make(Wrap(value[0], shift, _full_type(low, high), bounded)), unit

    def in_claimed_unit(self, n: int) -> int:
        """The result of an operation in the unit of its claimed interval."""
        result, unit = self.values[n]
        claimed = self.file.interval(n)[2]
        return result if unit == claimed else self.make(Wrap(result, _power(unit / claimed), _WIDE))

    def value(self, n: int, operands: list[int], opcode: int, data: list[int]) -> _Value:
        """The value of operation n."""
        unit = self.file.interval(n)[2]
        values = [self.values[k] for k in operands]
        two = Fraction(2)
        if opcode == -2:
            return self.sum((self.make(Number(0)), values[0][1]), values[0], two**0, minus=True)
        if opcode == -1:
            return self.input_bits(n, data[0])
        if opcode in (0, 1):
            return self.sum(values[0], values[1], two ** data[0], minus=opcode == 1)
        if opcode in (2, 3):
            return self.wrapped(n, values[0], two ** (data[0] if data else 0), bounded=opcode == 2)
        if opcode == 4:
            return self.sum(values[0], (self.make(Number(data[0])), two ** -data[1]), two**0, minus=False)
        if opcode == 5:
            return self.make(Number(data[0])), unit
        if opcode == 6:
            first = self.wrapped(n, values[0], two**0)[0]
            second = self.wrapped(n, values[1], two ** data[0])[0]
            condition = self.in_claimed_unit(operands[2])
            bottom, top, _ = self.file.interval(operands[2])
            if bottom < 0:
                return self.make(Choose(condition, 0, second, first)), unit
            return self.make(Choose(condition, (_full_type(0, top).hi + 1) // 2, first, second)), unit
        if opcode == 7:
            return self.make(Product(values[0][0], values[1][0])), values[0][1] * values[1][1]
        if opcode == 8:
            table, source = self.file.tables[data[0]], self.in_claimed_unit(operands[0])
            step = Fraction(table["spec"]["out_qint"]["step"])
            entries = tuple(int(entry) for entry in table["table"])
            result = self.make(Table(source, self.file.interval(operands[0])[0], entries))
            return result, step if any(entries) or step else Fraction(1)
        if opcode == 9:
            return self.of_all_bits(n, operands[0], data[0])
        if opcode == 10:
            b_unit = values[1][1] * two ** data[0]
            finest_unit = min(values[0][1], b_unit)
            terms = (
                Term(values[0][0], _power(values[0][1] / finest_unit)),
                Term(values[1][0], _power(b_unit / finest_unit)),
            )
            return self.make(Bitwise(_KINDS[data[1]], terms[0], terms[1])), finest_unit
        total = self.make(Number(0)), values[0][1] * two ** data[1]
        for value, plus, shift in zip(values, data[::2], data[1::2], strict=True):
            total = self.sum(total, value, two**shift, minus=not plus)
        return total

    def input_bits(self, n: int, element: int) -> _Value:
        """The bits of an input element from the unit of the interval up."""
        low, high, unit = self.file.interval(n)
        type_ = _full_type(low, high)
        finest, bits = self.file.ports[element]
        above = _power(unit / Fraction(2) ** self.file.input_shifts[element] / finest)
        if not above:
            return self.make(Take(element, type_)), unit
        return self.make(Wrap(self.make(Take(element, IntType(0, (1 << bits) - 1))), -above, type_)), unit

    def of_all_bits(self, n: int, operand: int, kind: int) -> _Value:
        """Inverse of all bits; or 1 if one bit is set, or if all are."""
        source = self.in_claimed_unit(operand)
        low, high, unit = self.file.interval(operand)
        if kind == 0:
            inverse = self.make(Total(Term(self.make(Number(-1))), Term(source), True))
            return self.wrapped(n, (inverse, unit), Fraction(1))
        yes, no = self.make(Number(1)), self.make(Number(0))
        if kind == 1:  # 0 is the only number without a bit
            outer, inner = (0, yes), Choose(source, 1, yes, no)
        elif low < 0:  # -1 is the only number with all bits
            outer, inner = (-1, no), Choose(source, 0, no, yes)
        else:
            outer, inner = (0, no), Choose(source, high, yes, no)
        result = self.make(Choose(source, outer[0], self.make(inner), outer[1]))
        return result, self.file.interval(n)[2]
