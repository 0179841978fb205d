"""Reads a module of adders back: the weights of its codes, and that every sum arrives in one cycle.

Such a module is generated for one layer, so nothing of it is trusted. Every line must have one of the forms below.

A wire is an unsigned number: a linear function of the codes plus a constant. It is exact if its lowest and its highest
value fit. Or it is a linear function in two's complement.

A vector of bits is one of these, and may be inverted as a whole:

- a wire with zeros or ones before or after it;
- a wire whose highest bit is inverted and repeated, which subtracts half of the wire's range;
- a wire in two's complement whose highest bit is repeated.

A row is right if its constant is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hlsgen.certify import count_modules
from hlsgen.certify.netlist_reader import Cell, ParameterValue, SizedConstant, broken
from hlsgen.certify.stage_frame import CLOCK, JOINED, RESET, TAIL, cleared_registers, frame, module_text
from hlsgen.diagnostics import HlsgenError
from hlsgen.numerics.fixed import Array

#: The checker's name for a module of adders or counters.
ADDERS = "adders"
#: The MODE of units that count agreements.
_AGREEMENTS = 2
#: A module whose ready does not depend on its input data.
_STEADY_READY = "hg_shift"
#: Maximum bits of a wire, so that sums of shifted coefficients stay within 64 bits.
_MAX_BITS = 60

_ABOUT = """\
// {name}: product of a constant matrix, {rows} rows by {columns} columns.
//
// Purpose     sums of codes times constant weights, in {adders} adders that rows share.
//             nK_C is code or sum K, C cycles after its codes entered. A sum that can be negative is stored
//             with its highest bit inverted, so that this bit is a carry. A row that is a sum of three terms
//             is stored in two's complement.
//             a + ~b is 1 less than a - b, but needs no carry: in each row such constants add up to 0.
"""
_EXACT = "every sum has the bits that the ranges of the codes and the weights need. Written by"
_NUMBER = r"(?:0|[1-9]\d{0,6})"
_WIRE = re.compile(rf"    (?P<kind>wire|reg) \[({_NUMBER}):0\] (n{_NUMBER}_{_NUMBER})(?: = (.+))?;", re.ASCII)
_DECLARED = re.compile(rf"    (?:\(\* keep \*\) )?wire \[({_NUMBER}):0\] (n{_NUMBER}_{_NUMBER});", re.ASCII)
_THREE = re.compile(
    rf"    (?P<module>\w+) #\(\.WIDTH\((?P<width>{_NUMBER})\), \.CARRY\((?P<carry>[0-2])\)\) (?P<cell>n{_NUMBER}) \(",
    re.ASCII,
)
_TERMS = re.compile(
    r"        \.a\((~?)(.+)\), \.b\((~?)(.+)\), \.c\((~?)(.+)\), \.sum\((n\w+)(?:\[(\d+):(\d+)\])?\)", re.ASCII
)
_BELOW = re.compile(rf"    assign (n{_NUMBER}_{_NUMBER})(\[[\d:]+\]) = (~?)(.+);", re.ASCII)
_MOVE = re.compile(rf"        (n{_NUMBER}_{_NUMBER}) <= (n{_NUMBER}_{_NUMBER});", re.ASCII)
_ASSIGN = re.compile(rf"    assign m_data\[({_NUMBER}):({_NUMBER})\] = (.+);", re.ASCII)
_LATENCY = re.compile(rf"^        \.STAGES\(({_NUMBER})\)({re.escape(JOINED)})?$", re.ASCII | re.MULTILINE)
_PART = re.compile(
    rf"(?P<bits>{_NUMBER})'h(?P<hex>[0-9a-f]+)"
    rf"|(?P<not>~?)(?P<name>n{_NUMBER}_{_NUMBER}|s_data)\[(?P<high>{_NUMBER})(?::(?P<low>{_NUMBER}))?\]"
    rf"|\{{(?P<count>{_NUMBER})\{{(?P<turn>~?)(?P<of>n{_NUMBER}_{_NUMBER})\[(?P<at>{_NUMBER})\]\}}\}}",
    re.ASCII,
)
_UNUSED = re.compile(rf"    wire unused_sums = &\{{1'b0(?:, n{_NUMBER}_{_NUMBER})+\}};", re.ASCII)
#: A bit: a constant, or (wire, position, True if it is inverted).
_Bit = int | tuple[str, int, bool]


@dataclass(frozen=True, eq=False)
class _Wire:
    """A wire.

    `form` int64 (columns,): its linear function of the codes; `constant`: the addend; `time`: cycles since the codes.

    `signed`: right in two's complement. `unsigned`: right as an unsigned number. Both if its highest bit is always 0.
    """

    width: int
    form: Array
    constant: int
    time: int
    signed: bool = False
    unsigned: bool = True


@dataclass(frozen=True, eq=False)
class _Value:
    """A vector of bits as a number: form + constant, modulo a power of two."""

    form: Array
    constant: int
    time: int | None

    def inverted(self, low: int, width: int) -> _Value:
        """The number with its bits low..width - 1 inverted; the bits below are 0."""
        return _Value(-self.form, (1 << width) - (1 << low) - self.constant, self.time)


def as_library_unit(
    cell: Cell, prefix: str, shape: tuple[int, int], x: tuple[int, int, int], y_bits: int, cells: Iterable[Cell]
) -> Cell:
    """The instance of a module of adders or counters as an instance of the library unit that it replaces.

    prefix: of the names of all modules of the core. x: bits, lowest and highest code. cells: all instances of the core.
    """
    valid_net = cell.ports.get("m_valid", "")
    consumers = [
        other_cell for other_cell in cells if other_cell.name != cell.name and valid_net in other_cell.ports.values()
    ]
    steady = [other_cell.module for other_cell in consumers] == [_STEADY_READY]
    parameters: dict[str, ParameterValue] = {
        "SIMD": shape[1],
        "PE": shape[0],
        "COL_FOLDS": 1,
        "ROW_FOLDS": 1,
        "X_W": x[0],
        "X_SIGNED": int(x[1] < 0),
        "LOW": x[1],
        "HIGH": x[2],
        "W_W": 1,
        "JOINABLE": int(steady),
        "MODE": _AGREEMENTS if cell.module.endswith("_counts") else 0,
        "ACC_W": y_bits,
        "FILE": f"{prefix}{cell.module}",
        "FLIP": consumers[0].parameters.get("FLIP", 0) if steady else 0,
    }
    return Cell(ADDERS, cell.name, dict(parameters), cell.ports)


def check_flips(cell: Cell, cells: Iterable[Cell]) -> None:
    """Check that inverted bits come only from a module of adders, which is read with the same inversion.

    Raises HG055.
    """
    sources = [other_cell for other_cell in cells if other_cell.ports.get("m_valid") == cell.ports.get("s_valid")]
    if cell.module != _STEADY_READY or "FLIP" not in cell.parameters:
        return
    cell.sized("FLIP", cell.number("LANES", 1) * cell.number("IN_W", 1))
    if [other_cell.parameters.get("FLIP") for other_cell in sources if other_cell.module == ADDERS] != [
        cell.parameters["FLIP"]
    ]:
        raise broken(cell.name, "inverts bits that do not come from adders with the same inversion.")


def read(folder: Path, cell: Cell, code_range: tuple[Array, Array] | None = None) -> Array:
    """Weights int64 (rows, columns) of a unit of `as_library_unit`; bits if it counts.

    `code_range` int64 (columns,) each: the lowest and the highest code of each column, by default LOW and HIGH.

    Raises HG055 for anything uncertain.
    """
    text = module_text(folder, cell.file)
    return (
        count_modules.words(text, cell)
        if cell.number("MODE") == _AGREEMENTS
        else _Reader(text, cell, code_range).weights()
    )


class _Reader:
    """The wires so far. Lines are read once, in order: a wire is declared before it is used."""

    def __init__(self, text: str, cell: Cell, code_range: tuple[Array, Array] | None) -> None:
        self.file, self.place = cell.file, f"rtl/{cell.file}.v"
        self.prefix = cell.file.removesuffix(f"{cell.name}_adders")
        self.rows, self.columns = cell.number("PE", 1), cell.number("SIMD", 1)
        self.x_bits, self.y_bits = cell.number("X_W", 1), cell.number("ACC_W", 1)
        low, high = cell.parameters["LOW"], cell.parameters["HIGH"]
        assert isinstance(low, int)
        assert isinstance(high, int)
        self.low, self.high = code_range or (np.full(self.columns, low), np.full(self.columns, high))
        flips = cell.parameters["FLIP"]
        self.flips = flips.value if isinstance(flips, SizedConstant) else 0
        self.wires: dict[str, _Wire] = {}
        self.adders = 0
        latency = _LATENCY.search(text)
        self.latency, self.joined = (int(latency[1]), bool(latency[2])) if latency else (0, False)
        if self.joined and not cell.number("JOINABLE"):
            raise broken(self.place, "stalls with a consumer whose ready may depend on its input data.")
        begin = text.find("    wire unused")
        start = text.find("\n", begin) + 1
        if begin < 0 or not self.latency or not text.endswith(TAIL):
            raise broken(self.place, "is no module of adders.")
        self.head = text[:start]
        self.lines = text[start : -len(TAIL)].split("\n")
        if self.lines.pop():
            raise broken(self.place, "is no module of adders.")

    def weights(self) -> Array:
        """The weights of the outputs, row by row."""
        lines, weights = iter(self.lines), np.zeros((self.rows, self.columns), np.int64)
        pending_registers: dict[str, int] = {}
        row = 0
        for line in lines:
            if declared := _DECLARED.fullmatch(line):
                name, width = declared[2], int(declared[1]) + 1
                self._declare(name, width, pending_registers)
                self.wires[name] = self._instance(name, width, lines)
                continue
            wire, assign = _WIRE.fullmatch(line), _ASSIGN.fullmatch(line)
            if wire and (wire["kind"] == "reg") != bool(wire[4]):
                name, width = wire[3], int(wire[2]) + 1
                self._declare(name, width, pending_registers)
                if wire["kind"] == "reg":
                    pending_registers[name] = width
                else:
                    self.wires[name] = self._wire(wire[4], width)
            elif line == CLOCK:
                self._registers(lines, pending_registers)
            elif line == RESET:
                names = cleared_registers(lines, pending_registers, self.place)
                cleared = {name: pending_registers.pop(name) for name in names}
                self._registers(lines, cleared)
                pending_registers |= cleared
            elif assign and row < self.rows:
                if (int(assign[1]), int(assign[2])) != ((row + 1) * self.y_bits - 1, row * self.y_bits):
                    raise broken(self.place, f"row {row} of the sums is not where it should be: {line.strip()[:60]!r}.")
                weights[row] = self._output(assign[3], row)
                row += 1
            elif row < self.rows or not _UNUSED.fullmatch(line) or next(lines, None) is not None:
                raise broken(self.place, f"has a line that no module of adders has: {line[:80]!r}.")
        description = _ABOUT.format(name=self.file, rows=self.rows, columns=self.columns, adders=self.adders)
        bits = self.columns * self.x_bits, self.rows * self.y_bits
        head = description + frame(self.file, self.prefix, _EXACT, self.latency, bits, joined=self.joined)
        if row != self.rows or pending_registers or head != self.head:
            raise broken(self.place, "its head does not fit its body, or sums or registers are missing.")
        return weights

    def _declare(self, name: str, width: int, pending_registers: dict[str, int]) -> None:
        if name in self.wires or name in pending_registers or width > _MAX_BITS:
            raise broken(self.place, f"{name} is declared twice, or has {width} bits.")

    def _registers(self, lines: Iterator[str], pending_registers: dict[str, int]) -> None:
        """Read the block that writes the registers declared before it, each of them once."""
        for line in lines:
            if line == "    end":
                return
            move = _MOVE.fullmatch(line)
            source = self.wires.get(move[2]) if move else None
            if move is None or source is None or pending_registers.pop(move[1], 0) != source.width:
                raise broken(self.place, f"has no such registers and wires of the same width: {line.strip()[:60]!r}.")
            self.wires[move[1]] = replace(source, time=source.time + 1)
        raise broken(self.place, "has a block without an end.")

    def _wire(self, text: str, width: int) -> _Wire:
        if "s_data" in text:
            return self._code(text, width)
        low: list[_Bit] = []
        match = re.fullmatch(r"\{\((.+)\), (n\w+\[[\d:]+\])\}", text, re.ASCII)
        if match:
            text, low = match[1], self._bits(match[2])
        sides = re.split(r" ([+-]) (~?)(?=[{n\d])", text)
        if len(sides) != 4:
            raise broken(self.place, f"{text[:60]!r} is no sum of two numbers.")
        return self._sum(text, width, low, [("+", "", sides[0]), (sides[1], sides[2], sides[3])])

    def _instance(self, name: str, width: int, lines: Iterator[str]) -> _Wire:
        """A sum of three numbers and a carry, an instance of hg_add3. The lowest bits may come from another wire."""
        line = next(lines, "")
        match, ports, end = _THREE.fullmatch(line), _TERMS.fullmatch(next(lines, "")), next(lines, "")
        if not match or not ports or end != "    );" or match["module"] != f"{self.prefix}hg_add3":
            raise broken(self.place, f"has a line that no module of adders has: {line[:80]!r}.")
        place, low = int(ports[9] or 0), list[_Bit]()
        if ports[9]:
            low_assign = _BELOW.fullmatch(next(lines, ""))
            range_ = f"[{place - 1}:0]" if place > 1 else "[0]"
            # They belong to the first number: both are inverted or neither is.
            if low_assign is None or low_assign.groups()[:3] != (name, range_, ports[1]) or int(ports[8]) != width - 1:
                raise broken(self.place, f"{name} has no lowest bits.")
            low = self._bits(low_assign[4])
        sizes = ports[7], match["cell"], int(match["width"]), len(low)
        if sizes != (name, name.split("_")[0], width - place, place):
            raise broken(self.place, f"{name} is not the sum of its instance of hg_add3.")
        terms = [("+", ports[n], ports[n + 1]) for n in (1, 3, 5)]
        return self._sum(line.strip(), width, low, terms, int(match["carry"]))

    def _sum(self, text: str, width: int, low: list[_Bit], terms: list[tuple[str, str, str]], carry: int = 0) -> _Wire:
        """The sum of vectors (sign, inversion, bits) above the bits `low`, which belong to the first vector."""
        total = _Value(np.zeros(self.columns, np.int64), carry << len(low), None)
        for n, (sign, inverted, vector) in enumerate(terms):
            bits = self._bits(vector)
            if len(low) + len(bits) != width:
                raise broken(self.place, f"{text[:60]!r} has numbers of another width than {width}.")
            low_bits: list[_Bit] = [0] * len(low) if n else low
            term = self._value(low_bits + bits)
            if total.time is not None and term.time is not None and total.time != term.time:
                raise broken(self.place, f"{text[:60]!r} adds numbers of different beats.")
            if inverted:
                term = term.inverted(len(low) if n else 0, width)
            factor, time = -1 if sign == "-" else 1, total.time if total.time is not None else term.time
            total = _Value(total.form + factor * term.form, total.constant + factor * term.constant, time)
        self.adders += 1
        return self._checked_wire(text, width, total.form, total.constant, total.time or 0)

    def _checked_wire(self, text: str, width: int, form: Array, constant: int, time: int) -> _Wire:
        """A number as a wire, after a check that it fits."""
        constant %= 1 << width
        size = int(np.abs(form).max()) * int(np.maximum(-self.low, self.high).max()) * self.columns
        if size >> (_MAX_BITS + 2):
            raise broken(self.place, f"{text[:60]!r}: the sum is too large.")
        ends = [int(np.where((form > 0) == up, form * self.high, form * self.low).sum()) for up in (False, True)]
        half = 1 << (width - 1)
        if constant == 0 and -half <= min(ends) and max(ends) < half:
            return _Wire(width, form, 0, time, signed=True, unsigned=min(ends) >= 0)
        if min(ends) < -constant or max(ends) >= (1 << width) - constant:
            raise broken(self.place, f"{text[:60]!r}: a sum of {min(ends)}..{max(ends)} does not fit {width} bits.")
        return _Wire(width, form, constant, time)

    def _code(self, text: str, width: int) -> _Wire:
        """A column: the low bits of one code, with the highest of them inverted if the code can be negative.

        They are the number if each code of the column fits them.
        """
        bits = self._bits(text)
        columns = [bit[1] // self.x_bits for bit in bits if not isinstance(bit, int)]
        column = columns[0] if columns else -1
        plain_bits = [("s_data", column * self.x_bits + n, False) for n in range(width)]
        inverted = [*plain_bits[:-1], (*plain_bits[-1][:2], True)]
        if not 0 <= column < self.columns or width > self.x_bits or bits not in (plain_bits, inverted):
            raise broken(self.place, f"{text[:60]!r} is not the code of a column.")
        form = np.zeros(self.columns, np.int64)
        form[column] = 1
        return self._checked_wire(text, width, form, (1 << (width - 1)) * (bits == inverted), 0)

    def _output(self, text: str, row: int) -> Array:
        """The form of a row: its assigned vector, with the bits inverted that its consumer inverts."""
        flips = self.flips >> (row * self.y_bits)
        # The lowest bit decides for all bits; bits that differ from it are inverted twice.
        inverted = text.startswith("~") != bool(flips & 1)
        bits = [_turned(bit, (flips >> n ^ flips) & 1) for n, bit in enumerate(self._bits(text.removeprefix("~")))]
        value = self._value(bits, cut=True)
        if inverted:
            value = value.inverted(0, self.y_bits)
        if len(bits) != self.y_bits or value.constant % (1 << self.y_bits) or value.time not in (None, self.latency):
            raise broken(self.place, f"{text[:60]!r} is no sum of {self.y_bits} bits after {self.latency} cycles.")
        return value.form

    def _bits(self, text: str) -> list[_Bit]:
        """Bits of a vector, the lowest first."""
        inner = text[1:-1] if re.match(r"\{(?!\d+\{)", text) and text.endswith("}") else text
        parts: list[list[_Bit]] = []
        if re.match(r"\{\d+\{", text) and not re.fullmatch(r"\{\d+\{[^{}]*\}\}", text):
            raise broken(self.place, f"{text[:60]!r} is no vector of bits.")
        if inner.count(",") and inner is text:
            raise broken(self.place, f"{text[:60]!r} is no vector of bits.")
        for part in inner.split(", "):
            match = _PART.fullmatch(part)
            if match is None:
                raise broken(self.place, f"{part[:60]!r} is no vector of bits.")
            parts.append(self._part(part, match))
        return [bit for bits in reversed(parts) for bit in bits]

    def _part(self, part: str, match: re.Match[str]) -> list[_Bit]:
        if match["bits"]:
            count, value = int(match["bits"]), int(match["hex"][:32], 16)
            if not 0 < count <= _MAX_BITS or len(match["hex"]) > 16 or value >> count:
                raise broken(self.place, f"{part[:60]!r} does not fit its width.")
            return [value >> n & 1 for n in range(count)]
        if match["of"]:
            count = int(match["count"])
            if not 0 < count <= _MAX_BITS:
                raise broken(self.place, f"{part[:60]!r} has {count} bits.")
            return [(match["of"], int(match["at"]), bool(match["turn"]))] * count
        high = int(match["high"])
        low = int(match["low"]) if match["low"] else high
        if not 0 <= high - low < _MAX_BITS or (match["not"] and match["low"]):
            raise broken(self.place, f"{part[:60]!r} is no range of bits.")
        return [(match["name"], n, bool(match["not"])) for n in range(low, high + 1)]

    def _value(self, bits: list[_Bit], *, cut: bool = False) -> _Value:
        """The value of a vector modulo 2 to its length. `cut`: its highest bits may be missing."""
        shift = next((n for n, bit in enumerate(bits) if bit != 0), len(bits))
        first = bits[shift] if shift < len(bits) else 0
        if isinstance(first, int):
            if any(not isinstance(bit, int) for bit in bits):
                raise self._unknown_bits(bits)
            number = sum(bit << n for n, bit in enumerate(bits) if isinstance(bit, int))
            return _Value(np.zeros(self.columns, np.int64), number, None)
        name = first[0]
        wire = self.wires.get(name)
        if wire is None or (shift + wire.width > len(bits) and not cut):
            raise self._unknown_bits(bits)
        top, form, constant = wire.width - 1, wire.form << shift, wire.constant << shift
        if bits[shift : shift + top] != [(name, n, False) for n in range(top)][: len(bits) - shift]:
            raise self._unknown_bits(bits)
        high_bits, position = bits[shift + top :], shift + top
        if not high_bits:
            return _Value(form, constant, wire.time)
        if wire.signed and all(bit == (name, top, False) for bit in high_bits):
            return _Value(form, constant, wire.time)
        if not wire.unsigned:
            raise self._unknown_bits(bits)
        count = next((n for n, bit in enumerate(high_bits) if bit != (name, top, True)), len(high_bits))
        high_bits, position = high_bits[count:], position + count
        if count:  # two's complement, modulo 2 to the length: subtract half of the range
            constant -= 1 << (shift + top)
        if high_bits and high_bits[0] == (name, top, False):
            constant += (1 << position) if count else 0
            high_bits, position = high_bits[1:], position + 1
        elif not count or high_bits:
            raise self._unknown_bits(bits)
        if any(not isinstance(bit, int) for bit in high_bits):
            raise self._unknown_bits(bits)
        constant += sum(bit << (position + n) for n, bit in enumerate(high_bits) if isinstance(bit, int))
        return _Value(form, constant, wire.time)

    def _unknown_bits(self, bits: list[_Bit]) -> HlsgenError:
        shown = [bit if isinstance(bit, int) else f"{'~' * bit[2]}{bit[0]}[{bit[1]}]" for bit in reversed(bits)]
        return broken(self.place, f"the bits {shown[:6]} are no supported number.")


def _turned(bit: _Bit, turn: int) -> _Bit:
    return bit ^ turn if isinstance(bit, int) else (bit[0], bit[1], bit[2] != bool(turn))
