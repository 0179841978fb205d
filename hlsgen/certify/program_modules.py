"""Reads a module that runs a program back: every wire must be the result that its number names, in the right cycle.

Such a module is generated for one layer, so nothing of it is trusted. Each vector of bits in it becomes a list of bits,
and must be the list that the program's operation needs. A bit belongs to a result in two's
complement, to the zeros of a shift, or to a table. Every wire must have exactly the bits of its result's interval,
which is bounded here once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.program_bounds import bounds_of
from hlsgen.certify.stage_frame import CLOCK, RESET, TAIL, cleared_registers, frame, module_text
from hlsgen.certify.stream_contents import StreamContents, check_codes
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import IntegerRows, programs
from hlsgen.numerics.fixed import IntType

#: The checker's name for a module that runs a program.
PROGRAM = "program"
_ABOUT = """\
// {name}: {operations} operations on single numbers, {outputs} results.
//
// Purpose     operations with the outputs of the model's program, each as wide as its result needs.
//             nK_C is result K, C cycles after the input. Tables: bit B of result K is tK_B[operand].
"""
_EXACT = "no result wraps or rounds unless its operation says so. Written by"
_N = r"(?:0|[1-9]\d{0,6})"
_WIRE = re.compile(rf"    wire \[({_N}):0\] n({_N})_({_N}) = (.+);", re.ASCII)
_REG = re.compile(rf"    reg \[({_N}):0\] n({_N})_({_N});", re.ASCII)
_MOVE = re.compile(rf"        n({_N})_({_N}) <= n({_N})_({_N});", re.ASCII)
_TABLE = re.compile(rf"    localparam \[({_N}):0\] (t{_N}_{_N}) = ({_N})'h([0-9a-f]+);", re.ASCII)
_ASSIGN = re.compile(rf"    assign m_data\[({_N}):({_N})\] = (.+);", re.ASCII)
_LATENCY = re.compile(rf"^        \.STAGES\(({_N})\)$", re.ASCII | re.MULTILINE)
_UNUSED = re.compile(rf"    wire unused_results = &\{{1'h0, en(?:, n{_N}_{_N})*\}};", re.ASCII)
_PART = re.compile(
    rf"(?P<bits>{_N})'h(?P<hex>[0-9a-f]+)"
    rf"|(?P<table>t{_N}_{_N})\[(?P<index>n{_N}_{_N})\]"
    rf"|(?P<inverse>~?)(?P<name>n{_N}_{_N}|s_data)(?:\[(?P<high>{_N})(?::(?P<low>{_N}))?\])?"
    rf"|\{{(?P<count>{_N})\{{(?P<not>~?)(?P<of>n{_N}_{_N})\[(?P<at>{_N})\]\}}\}}",
    re.ASCII,
)
_SYMBOLS = {programs.BitwiseKind.AND: "&", programs.BitwiseKind.OR: "|", programs.BitwiseKind.XOR: "^"}
#: Most bits of a vector, and most inputs of a table.
_MOST_BITS, _MOST_INPUTS = 1 << 20, 16

#: A bit: 0, 1, (name of a wire, position, whether inverted), or (name of a table, name of its operand).
_Bit = int | tuple[str, int, bool] | tuple[str, str]


def check_beat_of_program(layer: IntegerRows, cell: Cell, stream: StreamContents, columns: list[int]) -> None:
    """Check that a beat has all elements of a row, in order. Raises HG055."""
    count = layer.source.shape[-1]
    if stream.lanes != count or not stream.filled.all() or columns != list(range(count)):
        raise broken(layer.name, f"{cell.name} does not get the {count} elements of a row in a beat, in order.")
    check_codes(cell.name, stream, layer.source.type, layer.source.type.bits, int(layer.source.type.signed))


def check_program(layer: IntegerRows, program: programs.Program, cell: Cell, prefix: str, folder: Path) -> None:
    """Prove that a generated module computes the program. prefix: of the names of all modules. Raises HG055."""
    file = f"{prefix}{cell.name}_{PROGRAM}"
    x_bits, y_bits = layer.source.type.bits, layer.result.type.bits
    reader = _Reader(module_text(folder, file), file, prefix, program)
    reader.check((layer.source.shape[-1], x_bits), y_bits)
    ends = [reader.bounds[n] for n in program.outputs]
    if min(t.lo for t in ends) < layer.result.type.lo or max(t.hi for t in ends) > layer.result.type.hi:
        raise broken(layer.name, f"its results do not fit {layer.result.type}.")


class _Reader:
    """Compares the Verilog of a program with its operations, line by line; `wires`: those declared so far."""

    def __init__(self, text: str, file: str, prefix: str, program: programs.Program) -> None:
        self.place, self.file, self.prefix, self.program = f"rtl/{file}.v", file, prefix, program
        self.bounds = bounds_of(program)
        self.wires: set[str] = set()
        self.tables: dict[str, tuple[int, int]] = {}
        self.x_bits = 0
        latency = _LATENCY.search(text)
        begin = text.find("    wire unused = ")
        start = text.find("\n", begin) + 1
        if begin < 0 or latency is None or not text.endswith(TAIL) or not int(latency[1]):
            raise broken(self.place, "is no module of a program.")
        self.latency = int(latency[1])
        self.head, self.lines = text[:start], text[start : -len(TAIL)].split("\n")
        if self.lines.pop():
            raise broken(self.place, "is no module of a program.")

    def check(self, source: tuple[int, int], y_bits: int) -> None:
        """Check all lines. source: lanes of the input and bits of a lane. y_bits: bits of an output element."""
        lanes, self.x_bits = source
        outputs = self.program.outputs
        sizes = {"operations": len(self.program.operations), "outputs": len(outputs)}
        head = _ABOUT.format(name=self.file, **sizes)
        head += frame(self.file, self.prefix, _EXACT, self.latency, (lanes * self.x_bits, len(outputs) * y_bits))
        if head != self.head:
            raise broken(self.place, "its head is not that of this layer's program.")
        lines, row = iter(self.lines), 0
        registers: set[str] = set()
        for line in lines:
            wire, register, table, assign = (p.fullmatch(line) for p in (_WIRE, _REG, _TABLE, _ASSIGN))
            if wire and not row:
                self._wire(int(wire[1]) + 1, int(wire[2]), int(wire[3]), wire[4])
            elif register:
                name = self._declared(int(register[1]) + 1, int(register[2]), int(register[3]))
                if name in registers:
                    raise self._wrong(line)
                registers.add(name)
            elif line == CLOCK:
                self._moves(lines, registers)
            elif line == RESET:
                widths = {name: self.bounds[int(name[1:].split("_")[0])].bits for name in registers}
                cleared = set(cleared_registers(lines, widths, self.place))
                registers -= cleared
                self._moves(lines, cleared)
                registers |= cleared
            elif table and table[2] not in self.tables and int(table[1]) + 1 == int(table[3]) <= 1 << _MOST_INPUTS:
                self.tables[table[2]] = int(table[3]), int(table[4], 16)
            elif assign and row < len(outputs):
                if (int(assign[1]), int(assign[2])) != ((row + 1) * y_bits - 1, row * y_bits):
                    raise self._wrong(line)
                self._expect(assign[3], self._bits_of(outputs[row], self.latency, y_bits))
                row += 1
            else:
                names = re.findall(rf"n{_N}_{_N}", line, re.ASCII)
                is_last = row == len(outputs) and _UNUSED.fullmatch(line) and next(lines, None) is None
                if not is_last or not self.wires.issuperset(names):
                    raise self._wrong(line)
        if row != len(outputs) or registers:
            raise broken(self.place, "outputs or registers are missing.")

    def _wrong(self, line: str) -> HlsgenError:
        return broken(self.place, f"has a line that the program does not need: {line.strip()[:80]!r}.")

    def _declared(self, bits: int, number: int, cycle: int) -> str:
        """The name of a result's wire or register, after a check of its width."""
        name = f"n{number}_{cycle}"
        if number >= len(self.bounds) or name in self.wires or self.bounds[number].bits != bits:
            raise broken(self.place, f"{name} is declared twice, or has {bits} bits.")
        return name

    def _moves(self, lines: Iterator[str], registers: set[str]) -> None:
        """Read the block that writes the registers declared before it, each of them once."""
        for line in lines:
            if line == "    end":
                return
            move = _MOVE.fullmatch(line)
            if move is None or move[1] != move[3] or int(move[2]) != int(move[4]) + 1:
                raise self._wrong(line)
            name = f"n{move[1]}_{move[2]}"
            if name not in registers or f"n{move[3]}_{move[4]}" not in self.wires:
                raise self._wrong(line)
            registers.remove(name)
            self.wires.add(name)
        raise broken(self.place, "has a block without an end.")

    # ----------------------------------------------------------------------- wires

    def _wire(self, bits: int, number: int, cycle: int, text: str) -> None:
        name = self._declared(bits, number, cycle)
        self._operation(self.program.operations[number], number, cycle, bits, text)
        self.wires.add(name)

    def _operation(self, operation: programs.Operation, number: int, cycle: int, bits: int, text: str) -> None:
        """Check that `text`, the Verilog expression of a wire, computes the operation of this number. Raises HG055."""
        bounds = self.bounds
        match operation:
            case programs.Take(element):
                input_bits: list[_Bit] = [("s_data", element * self.x_bits + k, False) for k in range(bits)]
                if cycle or bits > self.x_bits:
                    raise self._wrong(text)
                self._expect(text, input_bits)
            case programs.Total():
                self._total(operation, cycle, bits, text)
            case programs.Wrap(source, shift, _, bounded):
                value = [self._bit_of(source, k - shift, cycle) for k in range(bits)]
                if bounded and bounds[source].lo < 0:
                    mask, _, text = text.partition(" & ")
                    self._expect(mask, [(f"n{source}_{cycle}", bounds[source].bits - 1, True)] * bits)
                self._expect(text, value)
            case programs.Choose(condition, threshold, yes, no):
                interval = bounds[condition]
                if interval.lo >= threshold or interval.hi < threshold:
                    only = yes if interval.lo >= threshold else no
                    self._expect(text, self._bits_of(only, cycle, bits))
                    return
                test, _, choices = text.partition(" ? ")
                yes_text, _, no_text = choices.partition(" : ")
                self._test(test, f"n{condition}_{cycle}", interval, threshold)
                self._expect(yes_text, self._bits_of(yes, cycle, bits))
                self._expect(no_text, self._bits_of(no, cycle, bits))
            case programs.Product(a, b):
                factors = re.fullmatch(r"\$signed\((.+)\) \* \$signed\((.+)\)", text)
                if factors is None:
                    raise self._wrong(text)
                self._expect(factors[1], self._bits_of(a, cycle, bits))
                self._expect(factors[2], self._bits_of(b, cycle, bits))
            case programs.Table():
                self._table(operation, number, cycle, bits, text)
            case programs.Join(parts):
                self._expect(text, [bit for source, count in parts for bit in self._bits_of(source, cycle, count)])
            case programs.Bitwise(kind, a, b):
                first, _, second = text.partition(f" {_SYMBOLS[kind]} ")
                self._expect(first, self._shifted(a, cycle, bits))
                self._expect(second, self._shifted(b, cycle, bits))
            case programs.Number():
                raise self._wrong(text)

    def _total(self, total: programs.Total, cycle: int, bits: int, text: str) -> None:
        """Check a sum of two vectors of this width, or of their higher bits beside bits of the first one."""
        below = re.fullmatch(r"\{(.+?) ([+-]) (.+), ([^,]+)\}", text)
        plain = re.fullmatch(r"(.+) ([+-]) (.+)", text)
        first, second = self._shifted(total.a, cycle, bits), self._shifted(total.b, cycle, bits)
        orders = [(first, second)] if total.minus else [(first, second), (second, first)]
        if plain is None:
            if self._is_inverted(total, cycle, bits, text):
                return
            # All bits of the other operand that the result has are zeros.
            if not any(not any(b) and self._read(text) == a for a, b in orders):
                raise self._wrong(text)
            return
        if plain[2] != ("-" if total.minus else "+"):
            raise self._wrong(text)
        for a, b in orders:
            if self._try(plain[1]) == a and self._try(plain[3]) == b:
                return
            for split in re.finditer(rf" [{plain[2]}] ", text) if below else ():
                first_text, second_text = text[1 : split.start()], text[split.end() : -1]
                for comma in re.finditer(", ", second_text):
                    low = self._try(second_text[comma.end() :])
                    high = self._try(first_text), self._try(second_text[: comma.start()])
                    cut = len(low or ())
                    parts = (a[cut:], b[cut:])
                    is_sum = high == parts or (not total.minus and high == parts[::-1])
                    if low == a[:cut] and cut and is_sum and not any(b[:cut]):
                        return
        raise self._wrong(text)

    def _is_inverted(self, total: programs.Total, cycle: int, bits: int, text: str) -> bool:
        """True if a sum with a constant is an operand of which `text` inverts bits.

        Modulo 2^bits a number equals its lowest `bits` bits.
        """
        for constant, term in ((total.a, total.b), (total.b, total.a)):
            value, operand = self.bounds[constant.source], self.bounds[term.source]
            if value.lo != value.hi or operand.lo == operand.hi or term.shift or operand.bits < bits:
                continue
            if total.minus and constant is total.b:
                continue
            vector = self._try(text) or []
            inverted = [k for k, bit in enumerate(vector) if bit == (f"n{term.source}_{cycle}", k, True)]
            straight = [k for k, bit in enumerate(vector) if bit == (f"n{term.source}_{cycle}", k, False)]
            if len(inverted) + len(straight) != len(vector) or len(vector) != bits:
                continue
            # An inverted bit b at place k is 2^k - b * 2^k; bits of place bits - 1 have either sign.
            sign = -1 if total.minus else 1
            against = [k for k in (inverted if sign > 0 else straight) if k != bits - 1]
            if not against and (sum(1 << k for k in inverted) - (value.lo << constant.shift)) % (1 << bits) == 0:
                return True
        return False

    def _test(self, text: str, name: str, interval: IntType, threshold: int) -> None:
        """Check the condition that a result is at least the threshold, which lies within its interval."""
        top, bits = interval.bits - 1, interval.bits
        constant = f"{bits}'h{threshold % (1 << bits):x}"
        if threshold == 0:
            expected = f"~{name}[{top}]"
        elif interval.lo >= 0 and threshold == 1 << top:
            expected = f"{name}[{top}]"
        elif interval.lo < 0:
            expected = f"($signed({name}) >= $signed({constant}))"
        else:
            expected = f"({name} >= {constant})"
        if text != expected or name not in self.wires:
            raise self._wrong(text)

    def _table(self, table: programs.Table, number: int, cycle: int, bits: int, text: str) -> None:
        """Check every entry that an operand can select; the others are never read."""
        interval, operand = self.bounds[table.source], f"n{table.source}_{cycle}"
        vector = self._read(text)
        if operand not in self.wires or interval.bits > _MOST_INPUTS or len(vector) != bits:
            raise self._wrong(text)
        for bit, value in enumerate(vector):
            count, word = 1 << interval.bits, 0
            if isinstance(value, int):
                word = value * ((1 << count) - 1)
            elif value == (f"t{number}_{bit}", operand) and f"t{number}_{bit}" in self.tables:
                size, word = self.tables[f"t{number}_{bit}"]
                if size != count:
                    raise self._wrong(text)
            else:
                raise self._wrong(text)
            for code in range(interval.lo, interval.hi + 1):
                entry = table.values[min(max(code - table.first, 0), len(table.values) - 1)]
                if (word >> (code % count)) & 1 != (entry >> bit) & 1:
                    raise broken(self.place, f"table t{number}_{bit} is wrong for operand {code}.")

    # ----------------------------------------------------------------------- vectors of bits

    def _bit_of(self, n: int, place: int, cycle: int) -> _Bit:
        """Bit `place` of a result in two's complement; 0 below its lowest."""
        interval = self.bounds[n]
        if place < 0:
            return 0
        if interval.lo == interval.hi:
            return (interval.lo >> place) & 1
        if place >= interval.bits:
            if interval.lo >= 0:
                return 0
            place = interval.bits - 1
        return f"n{n}_{cycle}", place, False

    def _bits_of(self, n: int, cycle: int, bits: int) -> list[_Bit]:
        return [self._bit_of(n, k, cycle) for k in range(bits)]

    def _shifted(self, term: programs.Term, cycle: int, bits: int) -> list[_Bit]:
        return [self._bit_of(term.source, k - term.shift, cycle) for k in range(bits)]

    def _expect(self, text: str, bits: list[_Bit]) -> None:
        """Check that a vector has these bits, the lowest first. Raises HG055."""
        if self._read(text) != bits:
            raise self._wrong(text)

    def _try(self, text: str) -> list[_Bit] | None:
        """The bits of a vector, or None if the text is none."""
        try:
            return self._read(text)
        except HlsgenError:
            return None

    def _read(self, text: str) -> list[_Bit]:
        """The bits of a vector, the lowest first. Raises HG055."""
        parts = [text]
        if text.startswith("{") and not _PART.fullmatch(text):
            if not text.endswith("}"):
                raise self._wrong(text)
            parts = text[1:-1].split(", ")
        bits: list[_Bit] = []
        for part in reversed(parts):
            match = _PART.fullmatch(part)
            if match is None:
                raise self._wrong(text)
            bits += self._part(match, text)
            if len(bits) > _MOST_BITS:
                raise self._wrong(text)
        return bits

    def _part(self, match: re.Match[str], text: str) -> list[_Bit]:
        if match["bits"]:
            count, value = int(match["bits"]), int(match["hex"], 16)
            if count > _MOST_BITS or value >> count:
                raise self._wrong(text)
            return [(value >> k) & 1 for k in range(count)]
        if match["table"]:
            return [(match["table"], match["index"])]
        if match["name"]:
            name = match["name"]
            width = self._width(name, text)
            high = int(match["high"]) if match["high"] else width - 1
            low = int(match["low"]) if match["low"] else high if match["high"] else 0
            if not low <= high < width:
                raise self._wrong(text)
            return [(name, k, bool(match["inverse"])) for k in range(low, high + 1)]
        name, place, count = match["of"], int(match["at"]), int(match["count"])
        if place >= self._width(name, text) or count > _MOST_BITS:
            raise self._wrong(text)
        return [(name, place, bool(match["not"]))] * count

    def _width(self, name: str, text: str) -> int:
        if name == "s_data":
            return _MOST_BITS
        if name not in self.wires:
            raise self._wrong(text)
        return self.bounds[int(name[1:].split("_")[0])].bits
