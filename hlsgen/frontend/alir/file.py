"""Reads ALIR files: JSON or gzip-compressed JSON, checked field by field.

Source of the format: docs/alir.md of alkaid 0.8, version 4. All numbers are dyadic: integers times a power of two.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlsgen.diagnostics import fail

#: The only version of the format that is read.
VERSION = 4
#: First bytes of a file: of JSON, and of gzip-compressed JSON.
_JSON, _GZIP = b"{", b"\x1f\x8b"
#: Bounds of a file: bytes of JSON, operations, table entries, inputs and outputs.
_MAX_BYTES, _MAX_OPERATIONS, _MAX_ENTRIES, _MAX_ENDS = 1 << 26, 100_000, 1 << 22, 1 << 16
#: Largest shift, and largest exponent of a unit.
_MAX_SHIFT = 256
#: (operands, integers of data) by opcode; -1: any number.
_FORMS = {
    -2: (1, 0),
    -1: (0, 1),
    0: (2, 1),
    1: (2, 1),
    2: (1, 0),
    3: (1, 1),
    4: (1, 2),
    5: (0, 1),
    6: (3, 1),
    7: (2, 0),
    8: (1, 1),
    9: (1, 1),
    10: (2, 2),
    11: (-1, -1),
}
_FIELDS = 8


@dataclass(frozen=True)
class Interval:
    """The numbers low, low + 1, ..., high, times 2^exponent."""

    low: int
    high: int
    exponent: int


@dataclass(frozen=True)
class AlirOperation:
    """An operation: operands are numbers of earlier operations; the meaning of `data` depends on the opcode."""

    opcode: int
    operands: tuple[int, ...]
    data: tuple[int, ...]
    interval: Interval


@dataclass(frozen=True)
class AlirTable:
    """A lookup table: integers, times 2^exponent."""

    values: tuple[int, ...]
    exponent: int


@dataclass(frozen=True)
class AlirFile:
    """A program. Output k is operation output_numbers[k] times 2^output_shifts[k], negated if output_negated[k].

    A number of -1 gives 0. Input k is multiplied by 2^input_shifts[k] before its first operation.
    """

    input_shifts: tuple[int, ...]
    output_numbers: tuple[int, ...]
    output_shifts: tuple[int, ...]
    output_negated: tuple[bool, ...]
    operations: tuple[AlirOperation, ...]
    tables: tuple[AlirTable, ...]


def is_alir(data: bytes) -> bool:
    """True if an ALIR file begins with these bytes. No ONNX or TFLite file begins so."""
    return data.lstrip()[:1] == _JSON or data[:2] == _GZIP


def json_of(data: bytes, file_name: str) -> bytes:
    """The JSON text of a file, decompressed if needed. Raises HG002, HG004."""
    if data[:2] == _GZIP:
        inflater = zlib.decompressobj(wbits=31)
        try:
            data = inflater.decompress(data, _MAX_BYTES + 1)
        except zlib.error:
            raise fail("HG002", file_name, "its gzip compression is damaged.", "Save it again.") from None
    if len(data) > _MAX_BYTES:
        raise fail("HG004", file_name, f"the program has more than {_MAX_BYTES} bytes.")
    return data.lstrip()


def read_alir(data: bytes, file_name: str) -> AlirFile:
    """The checked content of a file. Raises HG002, HG004, HG010."""
    try:
        content = json.loads(json_of(data, file_name))
    except (ValueError, RecursionError):
        hint = "Save the program with alkaid's `CombLogic.save`. ONNX and TFLite files are read uncompressed only."
        raise fail("HG002", file_name, "is no ALIR program: its JSON cannot be read.", hint) from None
    reader = _Reader(file_name)
    reader.require(isinstance(content, dict) and content.get("meta") == "ALIRModel", "meta", "is not 'ALIRModel'")
    if content.get("spec_version") != VERSION:
        text = f"it has version {str(content.get('spec_version'))[:20]} of the format; version {VERSION} is supported."
        raise fail("HG002", file_name, text, "Load and save it with alkaid 0.8, which converts older versions.")
    return reader.file(content.get("model"))


class _Reader:
    """Checks that every value has its type and is within its bounds."""

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name

    def require(self, condition: bool, place: str, problem: str) -> None:
        if not condition:
            raise fail("HG002", self.file_name, f"{place} {problem}.", "Save the program with alkaid 0.8.")

    def file(self, model: Any) -> AlirFile:
        self.require(isinstance(model, list) and len(model) in (_FIELDS, _FIELDS + 1), "model", "is no list of 8 or 9")
        shape = self.integers(model[0], "shape", _MAX_ENDS)
        self.require(len(shape) == 2 and min(shape) > 0, "shape", "is no pair of positive integers")
        tables = model[_FIELDS] if len(model) > _FIELDS and model[_FIELDS] is not None else []
        self.require(isinstance(tables, list), "lookup_tables", "is no list")
        operations = model[5]
        self.require(isinstance(operations, list), "ops", "is no list")
        if len(operations) > _MAX_OPERATIONS:
            raise fail("HG004", self.file_name, f"the program has {len(operations)} operations.")
        file = AlirFile(
            self.integers(model[1], "inp_shifts", _MAX_SHIFT),
            self.integers(model[2], "out_idxs", _MAX_OPERATIONS),
            self.integers(model[3], "out_shifts", _MAX_SHIFT),
            tuple(bool(sign) for sign in self.integers(model[4], "out_negs", 1)),
            tuple(self.operation(record, n) for n, record in enumerate(operations)),
            self.tables(tables),
        )
        self.require(len(file.input_shifts) == shape[0], "inp_shifts", f"are not {shape[0]} integers")
        for values, name in (
            (file.output_numbers, "out_idxs"),
            (file.output_shifts, "out_shifts"),
            (file.output_negated, "out_negs"),
        ):
            self.require(len(values) == shape[1], name, f"are not {shape[1]} values")
        inside = all(-1 <= n < len(file.operations) for n in file.output_numbers)
        self.require(inside, "out_idxs", "name operations that the program does not have")
        for n, operation in enumerate(file.operations):
            if operation.opcode == -1:
                self.require(0 <= operation.data[0] < shape[0], f"operation {n}", "reads an input that does not exist")
            if operation.opcode == 8:
                self.require(0 <= operation.data[0] < len(tables), f"operation {n}", "uses a table that does not exist")
        return file

    def integers(self, values: Any, place: str, largest: int) -> tuple[int, ...]:
        self.require(isinstance(values, list) and len(values) <= _MAX_OPERATIONS, place, "is no list")
        legal = all(isinstance(v, int) and abs(v) <= largest for v in values)
        self.require(legal, place, f"has a value that is no integer of at most {largest}")
        return tuple(int(v) for v in values)

    def operation(self, record: Any, n: int) -> AlirOperation:
        place = f"operation {n}"
        self.require(isinstance(record, list) and len(record) == 6, place, "is no list of 6")
        operands, opcode, data, interval = record[:4]
        if not isinstance(opcode, int) or isinstance(opcode, bool) or opcode not in _FORMS:
            raise fail("HG010", place, f"opcode {str(opcode)[:20]} is not supported.", "Supported: opcodes -2 to 11.")
        operands = self.integers(operands, f"{place}, addr", _MAX_OPERATIONS)
        data = self.integers(data, f"{place}, data", 1 << 63)
        count, numbers = _FORMS[opcode]
        if count < 0:
            count, numbers = max(2, len(operands)), 2 * len(operands)
        self.require(len(operands) == count, place, f"has {len(operands)} operands, not {count}")
        self.require(len(data) == numbers, place, f"has {len(data)} integers of data, not {numbers}")
        self.require(all(0 <= k < n for k in operands), place, "uses a later operation")
        self.shifts(opcode, data, place)
        return AlirOperation(opcode, operands, data, self.interval(interval, place))

    def shifts(self, opcode: int, data: tuple[int, ...], place: str) -> None:
        """Check that shifts are small, and that bitwise operations exist."""
        shifts = {0: data, 1: data, 3: data, 4: data[1:], 6: data, 10: data[:1], 11: data[1::2]}.get(opcode, ())
        self.require(all(abs(shift) <= _MAX_SHIFT for shift in shifts), place, f"shifts by more than {_MAX_SHIFT}")
        kind = {9: data, 10: data[1:]}.get(opcode, ())
        self.require(all(0 <= k <= 2 for k in kind), place, "has an unknown bitwise operation")

    def interval(self, values: Any, place: str) -> Interval:
        """An interval [low, high, step]; the step is a power of two."""
        legal = isinstance(values, list) and len(values) == 3 and all(_is_number(v) for v in values)
        self.require(legal, f"{place}, interval", "is no list of 3 numbers")
        low, high, step = (Fraction(v) for v in values)
        if low == high == 0:
            return Interval(0, 0, 0)
        exponent = self.exponent(step, place)
        low, high = low / step, high / step
        are_whole = low.denominator == 1 and high.denominator == 1 and low <= high
        self.require(are_whole, f"{place}, interval", "has ends that are no multiples of its step")
        return Interval(int(low), int(high), exponent)

    def exponent(self, step: Fraction, place: str) -> int:
        """The exponent of a power of two."""
        legal = step > 0 and math.log2(step).is_integer() and Fraction(2) ** round(math.log2(step)) == step
        self.require(legal, f"{place}, step", "is no power of two")
        return round(math.log2(step))

    def tables(self, records: list[Any]) -> tuple[AlirTable, ...]:
        tables, entries = [], 0
        for n, record in enumerate(records):
            place = f"lookup table {n}"
            self.require(isinstance(record, dict), place, "is no object")
            values = record.get("table")
            spec = record.get("spec")
            interval = spec.get("out_qint") if isinstance(spec, dict) else None
            step = interval.get("step") if isinstance(interval, dict) else None
            self.require(isinstance(values, list) and bool(values), place, "has no values")
            entries += len(values)
            if entries > _MAX_ENTRIES:
                raise fail("HG004", self.file_name, f"the lookup tables have more than {_MAX_ENTRIES} entries.")
            legal = all(isinstance(v, int) and abs(v) < 1 << 31 for v in values)
            self.require(legal, place, "has a value that is no integer of 32 bits")
            if step is None or not _is_number(step):
                raise fail("HG002", self.file_name, f"{place} has no out_qint.", "Save the program with alkaid 0.8.")
            exponent = 0 if step == 0 and not any(values) else self.exponent(Fraction(step), place)
            tables.append(AlirTable(tuple(int(v) for v in values), exponent))
        return tuple(tables)


def _is_number(value: Any) -> bool:
    """True for a finite number of a moderate size."""
    return isinstance(value, int | float) and abs(value) <= 1e300 and (value == 0 or abs(value) >= 1e-300)
