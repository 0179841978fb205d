"""Reads a module of counters back: the bits with which its sums count agreements, and that every sum arrives in one
cycle.

Such a module is generated for one layer, so nothing of it is trusted. Every line must have one of the forms below.

The lines that are the same for all rows are read backwards, from the sum down to the bits that a row chooses. The worth
of each bit, modulo two to the bits of the sum, determines the worth of its operand bits. The functions of three columns
are evaluated for all values. They must be a number for each column, and a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stage_frame import TAIL, frame
from hlsgen.diagnostics import HlsgenError
from hlsgen.numerics.fixed import Array

#: Maximum bits of a sum, so that worths of all bits stay within 64 bits; maximum bits that a counter counts.
_MAX_BITS, _MAX_COUNTED = 32, 5

_ABOUT = """\
// {name}: agreements with a constant matrix of bits, {rows} rows by {columns} columns.
//
// Purpose     counts the columns that are equal to the bits of a row: {triples} times three columns in \
LUTs that rows share.
//             `odd` is the parity of three columns, `most` their majority with no column inverted, the
//             first, the second, the third. `bits` are the bits that the rows add, all rows alike.
"""
_EXACT = "sums count all columns, modulo a power of two that is greater. Written by"
#: Parities of three columns a, b and c; then majorities, from the lowest: of a, b, c; ~a, b, c; a, ~b, c; a, b, ~c.
_TRIPLES = """\
    wire [{top}:0] a = s_data[{top}:0];
    wire [{top}:0] b = s_data[{b_top}:{b}];
    wire [{top}:0] c = s_data[{c_top}:{c}];
    reg  [{top}:0] odd;
    reg  [{most_top}:0] most;
{rest}    always @(posedge clk) if (en) begin
        odd  <= a ^ b ^ c;
        most <= {{
            (a & b) | (a & ~c) | (b & ~c), (a & ~b) | (a & c) | (~b & c),
            (~a & b) | (~a & c) | (b & c), (a & b) | (a & c) | (b & c)
        }};
{moved}    end
    wire unused_triples = &{{1'b0, odd, most}};
"""
_LOOP = """\
    genvar r;
    generate
        for (r = 0; r < {rows}; r = r + 1) begin : row
            wire [{own_top}:0] own = bits[{own}*r +: {own}];
"""
_END = """\
            assign m_data[{y}*r +: {y}] = sum;
        end
    endgenerate
"""
_NUMBER = r"(?:0|[1-9]\d{0,6})"
_FIRST = re.compile(rf"    wire \[({_NUMBER}):0\] a = s_data", re.ASCII)
_LATENCY = re.compile(rf"^        \.STAGES\(({_NUMBER})\)$", re.ASCII | re.MULTILINE)
_LITERAL = re.compile(rf"(~?)(s_data|rest|odd|most)\[({_NUMBER})\]", re.ASCII)
_CHOSEN = re.compile(rf"    wire \[({_NUMBER}):0\] bits;\n", re.ASCII)
_ASSIGN = re.compile(rf"    assign bits\[({_NUMBER}):({_NUMBER})\] = (.+);", re.ASCII)
_BIT = re.compile(rf"(own|c{_NUMBER}|held{_NUMBER})\[({_NUMBER})\]|({_NUMBER})'h0", re.ASCII)
_HELD = re.compile(rf"            reg \[({_NUMBER}):0\] (held{_NUMBER});", re.ASCII)
_MOVE = re.compile(rf"            always @\(posedge clk\) if \(en\) (held{_NUMBER}|sum) <= (.+);", re.ASCII)
_WIRE = re.compile(rf"            wire \[({_NUMBER}):0\] c({_NUMBER});", re.ASCII)
_COUNTER = re.compile(
    rf"            (?P<module>\w+) #\(\.COUNTED\((?P<counted>[1-5])\), \.PLACES\((?P<places>[1-3])\), "
    rf"\.SUM_W\((?P<width>[1-4])\)\)"
    rf" count(?P<name>{_NUMBER}) \(",
    re.ASCII,
)
_PORTS = re.compile(rf"                \.x\((.+?)\), \.a\((.+?)\), \.carry\((.+?)\), \.sum\((c{_NUMBER})\)", re.ASCII)
_HIGH = re.compile(rf"            wire \[({_NUMBER}):0\] high = (.+) \+ (.+);", re.ASCII)

#: A bit of a vector; None means 0.
_Bit = tuple[str, int] | None


def words(text: str, cell: Cell) -> Array:
    """The bits int64 (rows, columns) with which the module of this text counts agreements. Raises HG055."""
    return _Reader(text, cell).words()


class _Reader:
    """Lines are read once, in order: a vector is declared before its bits are used.

    widths, times  of the vectors of a row; a time is the number of cycles since `own`
    sums           (vector, its operand bits with their shifts, True if it is cut to its width)
    """

    def __init__(self, text: str, cell: Cell) -> None:
        self.file, self.place = cell.file, f"rtl/{cell.file}.v"
        self.prefix = cell.file.removesuffix(f"{cell.name}_counts")
        self.rows, self.columns = cell.number("PE", 1), cell.number("SIMD", 1)
        self.y_bits = cell.number("ACC_W", 1)
        latency = _LATENCY.search(text)
        self.latency = int(latency[1]) if latency else 0
        start = text.find("\n", text.find("    wire unused = ")) + 1
        if not start or not text.endswith(TAIL) or self.y_bits > _MAX_BITS or self.columns >> self.y_bits:
            raise broken(self.place, f"is no module of counters with sums of {self.y_bits} bits.")
        first = _FIRST.match(text, start)
        self.triples = int(first[1]) + 1 if first else 0
        self.rest = self.columns - 3 * self.triples
        description = _ABOUT.format(name=self.file, rows=self.rows, columns=self.columns, triples=self.triples)
        bits = self.columns, self.rows * self.y_bits
        if text[:start] != description + frame(self.file, self.prefix, _EXACT, self.latency, bits):
            raise broken(self.place, "its head is not the head of a module of counters.")
        self.text, self.at = text[: -len(TAIL)], start
        self.widths: dict[str, int] = {}
        self.times: dict[str, int] = {"own": 0}
        self.sums: list[tuple[str, list[tuple[_Bit, int]], bool]] = []

    def words(self) -> Array:
        if self.triples:
            self._verbatim(self._triples())
        signals, inverted = self._rows()
        own_bits = signals.shape[1]
        self.widths["own"] = own_bits
        self._verbatim(_LOOP.format(rows=self.rows, own=own_bits, own_top=own_bits - 1))
        self._statements(iter(self._lines()))
        worth = self._worths()
        return self._agreement_bits(signals, inverted, np.array([worth.get(("own", n), 0) for n in range(own_bits)]))

    def _verbatim(self, expected: str) -> None:
        if not self.text.startswith(expected, self.at):
            raise self._unexpected(self.text[self.at : self.at + 60])
        self.at += len(expected)

    def _unexpected(self, text: str) -> HlsgenError:
        return broken(self.place, f"{text.strip()[:80]!r} is not allowed here in a module of counters.")

    def _lines(self) -> list[str]:
        """The lines of a row, without the last ones, which are checked here."""
        end = _END.format(y=self.y_bits)
        if not self.text.endswith(end) or len(self.text) - len(end) < self.at:
            raise broken(self.place, "does not end as a module of counters does.")
        return self.text[self.at : -len(end)].split("\n")[:-1]

    def _triples(self) -> str:
        """The lines of triples of columns."""
        t, remaining_columns = self.triples, self.rest
        if remaining_columns < 0:
            raise broken(self.place, f"has no {t} times three columns.")
        return _TRIPLES.format(
            top=t - 1,
            b=t,
            b_top=2 * t - 1,
            c=2 * t,
            c_top=3 * t - 1,
            most_top=4 * t - 1,
            rest=f"    reg  [{remaining_columns - 1}:0] rest;\n" if remaining_columns else "",
            moved=f"        rest <= s_data[{self.columns - 1}:{3 * t}];\n" if remaining_columns else "",
        )

    def _rows(self) -> tuple[Array, Array]:
        """Signals int64 (rows, bits) that the rows choose, and True for inverted: columns, parities, majorities."""
        match = _CHOSEN.match(self.text, self.at)
        if not match:
            raise self._unexpected(self.text[self.at : self.at + 60])
        size = int(match[1]) + 1
        self.at = match.end()
        bits_a_row, literals_of_rows = size // self.rows, list[tuple[list[int], list[bool]]]()
        for row in range(self.rows):
            end = max(self.at, self.text.find("\n", self.at))
            line = _ASSIGN.fullmatch(self.text, self.at, end)
            if (
                not line
                or (int(line[1]), int(line[2])) != ((row + 1) * bits_a_row - 1, row * bits_a_row)
                or size % self.rows
            ):
                raise self._unexpected(self.text[self.at : end])
            literals = [self._literal(part) for part in reversed(self._parts(line[3]))]
            if len(literals) != bits_a_row:
                raise broken(self.place, f"row {row} has {len(literals)} bits instead of {bits_a_row}.")
            literals_of_rows.append(([signal for signal, _ in literals], [inverted for _, inverted in literals]))
            self.at = end + 1
        return np.array([row[0] for row in literals_of_rows]), np.array([row[1] for row in literals_of_rows])

    def _parts(self, text: str) -> list[str]:
        """Operands of a Verilog concatenation; a lone operand counts as one."""
        return text[1:-1].split(", ") if text.startswith("{") and text.endswith("}") else [text]

    def _literal(self, text: str) -> tuple[int, bool]:
        match, t = _LITERAL.fullmatch(text), self.triples
        if not match:
            raise self._unexpected(text)
        first, count = {
            "s_data": (0, 0 if t else self.columns),
            "rest": (3 * t, self.rest if t else 0),
            "odd": (self.columns, t),
            "most": (self.columns + t, 4 * t),
        }[match[2]]
        if int(match[3]) >= count:
            raise self._unexpected(text)
        return first + int(match[3]), bool(match[1])

    def _statements(self, lines: Iterator[str]) -> None:
        """Read all lines of a row: registers, counters, and the last sum."""
        for line in lines:
            if register := _HELD.fullmatch(line):
                self._register(register[2], int(register[1]) + 1, next(lines, ""))
            elif wire := _WIRE.fullmatch(line):
                self._counter(f"c{wire[2]}", int(wire[1]) + 1, next(lines, ""), next(lines, ""), next(lines, ""))
            elif high := _HIGH.fullmatch(line):
                first, second = self._bits(high[2]), self._bits(high[3])
                if len(first) != len(second) or len(first) != int(high[1]) + 1:
                    raise self._unexpected(line)
                self._sum("high", len(first), [*with_shifts(first), *with_shifts(second)], cut=True)
            elif line == f"            reg [{self.y_bits - 1}:0] sum;":
                self._register("sum", self.y_bits, next(lines, ""))
                if next(lines, None) is not None or self.times["sum"] + (self.triples > 0) != self.latency:
                    raise broken(self.place, f"its sums are not complete after {self.latency} cycles.")
                return
            else:
                raise self._unexpected(line)
        raise broken(self.place, "has no sum.")

    def _register(self, name: str, width: int, line: str) -> None:
        move = _MOVE.fullmatch(line)
        if not move or move[1] != name:
            raise self._unexpected(line)
        bits = self._bits(move[2], high=name == "sum")
        if len(bits) != width:
            raise broken(self.place, f"{name} has {width} bits, its input {len(bits)}.")
        self._sum(name, width, with_shifts(bits), cut=False, delay=1)

    def _counter(self, name: str, width: int, line: str, ports: str, end: str) -> None:
        match, port_match = _COUNTER.fullmatch(line), _PORTS.fullmatch(ports)
        if not match or not port_match or end != "            );" or match["module"] != f"{self.prefix}hg_count":
            raise self._unexpected(line)
        counted, addend, carry = (self._bits(port_match[n]) for n in (1, 2, 3))
        sizes = [int(match[key]) for key in ("counted", "places", "width")]
        if (
            [len(counted), len(addend), width] != sizes
            or len(carry) != 1
            or port_match[4] != name
            or f"c{match['name']}" != name
        ):
            raise self._unexpected(ports)
        if len(counted) >> len(addend) or width > len(addend) + 1:
            raise broken(self.place, f"{name} counts more than its bits can hold.")
        terms = [*((bit, 0) for bit in counted), *with_shifts(addend), (carry[0], 0)]
        maximum = sum(1 << shift for bit, shift in terms if bit is not None)
        self._sum(name, width, terms, cut=bool(maximum >> width))

    def _sum(self, name: str, width: int, terms: list[tuple[_Bit, int]], *, cut: bool, delay: int = 0) -> None:
        """Declare a vector that is this sum, modulo two to its width if it is cut. All bits belong to one cycle."""
        times = {self.times[bit[0]] for bit, _ in terms if bit is not None}
        if name in self.widths or len(times) > 1:
            raise broken(self.place, f"{name} is declared twice, or made of bits of different cycles.")
        self.widths[name], self.times[name] = width, max(times, default=0) + delay
        self.sums.append((name, terms, cut))

    def _bits(self, text: str, *, high: bool = False) -> list[_Bit]:
        """Bits of a vector, the lowest first. `high`: the vector of that name may come first."""
        bits: list[_Bit] = []
        parts = self._parts(text)
        if high and parts[0] == "high" and "high" in self.widths:
            parts[:1] = [""]
        for part in reversed(parts):
            match = _BIT.fullmatch(part)
            if not part:
                bits += [("high", n) for n in range(self.widths["high"])]
            elif match and match[1] and int(match[2]) < self.widths.get(match[1], 0):
                bits.append((match[1], int(match[2])))
            elif match and match[3] and 0 < int(match[3]) <= _MAX_BITS:
                bits += [None] * int(match[3])
            else:
                raise self._unexpected(part)
        return bits

    def _worths(self) -> dict[tuple[str, int], int]:
        """The contribution of each bit to the sum, modulo two to its bits."""
        modulus = 1 << self.y_bits
        worth = {("sum", n): 1 << n for n in range(self.y_bits)}
        for name, terms, cut in reversed(self.sums):
            width = self.widths[name]
            bit_worths = [worth.pop((name, n), 0) for n in range(width)]
            if name == "sum" or name.startswith("held"):  # independent bits
                values = [bit_worths[shift] for _, shift in terms]
            else:
                if any(value != (bit_worths[0] << n) % modulus for n, value in enumerate(bit_worths)):
                    raise broken(self.place, f"the bits of {name} do not add up to its value.")
                if cut and (bit_worths[0] << width) % modulus:
                    raise broken(self.place, f"{name} does not fit {width} bits.")
                values = [bit_worths[0] << shift for _, shift in terms]
            for (bit, _), value in zip(terms, values, strict=True):
                if bit is not None:
                    worth[bit] = (worth.get(bit, 0) + value) % modulus
        return worth

    def _agreement_bits(self, signals: Array, inverted: Array, worth: Array) -> Array:
        """The bits of each row: in a sum, x is an agreement with 1 and 1 - x an agreement with 0."""
        mask, t = (1 << self.y_bits) - 1, self.triples
        factors = np.zeros((self.rows, self.columns), np.int64)
        constants = (inverted * worth).sum(axis=1)
        row = np.broadcast_to(np.arange(self.rows)[:, None], signals.shape)
        sign = np.where(inverted, -worth, worth)
        is_column = signals < self.columns
        np.add.at(factors, (row[is_column], signals[is_column]), sign[is_column])
        if t:
            cases = np.arange(8)[:, None] >> np.arange(3) & 1  # a, b, c
            flips = np.concatenate([np.zeros((1, 3), np.int64), np.eye(3, dtype=np.int64)])
            tables = np.stack([cases.sum(axis=1) % 2, *(((cases ^ flip).sum(axis=1) > 1) for flip in flips)])
            function, triple = np.divmod(signals[~is_column] - self.columns, t)
            values = np.zeros((self.rows, t, 8), np.int64)
            np.add.at(values, (row[~is_column], triple), sign[~is_column][:, None] * tables[function])
            slopes = values[:, :, [1, 2, 4]] - values[:, :, :1]
            if ((values[:, :, :1] + slopes @ cases.T - values) & mask).any():
                raise broken(self.place, "a row's function of three columns is no sum of these columns.")
            factors[:, : 3 * t] += slopes.transpose(0, 2, 1).reshape(self.rows, 3 * t)
            constants = constants + values[:, :, 0].sum(axis=1)
        # One column with a sum of one bit has the factor 1 as well as -1.
        first = 1 - (constants[:, None] & 1)
        bits: Array = first if self.y_bits == 1 else (factors & mask == 1).astype(np.int64)
        factor_errors = (np.where(bits, 1, -1) - factors) & mask
        if factor_errors.any() or ((constants - (1 - bits).sum(axis=1)) & mask).any():
            raise broken(self.place, "its sums are no counts of agreements.")
        return bits


def with_shifts(bits: list[_Bit]) -> list[tuple[_Bit, int]]:
    """Bits of a number, with their positions."""
    return [(bit, n) for n, bit in enumerate(bits)]
