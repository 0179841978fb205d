"""Reads a module of counters back: which bits its sums count the agreements with, and that every sum arrives in one cycle.

Such a module is written for one layer, so nothing of it is taken on trust. Every line must have one of the forms below.
The lines that are the same for all rows are read backwards: from what each bit of a row's sum is worth follows what the bits
that it is made of are worth, modulo two to the bits of the sum, down to the bits that a row chooses. Those of three
columns are evaluated for all their values, and must be a number for each column, and a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stage_frame import TAIL, frame
from hlsgen.diagnostics import HlsgenError
from hlsgen.numerics.fixed import Array

#: Bits of a sum, so that worths of all bits stay within 64 bits; bits that a counter counts.
_MOST_BITS, _MOST_COUNTED = 32, 5

_ABOUT = """\
// {name}: agreements with a constant matrix of bits, {rows} rows by {columns} columns.
//
// Purpose     counts the columns that are equal to the bits of a row: {triples} times three columns in LUTs that rows share.
//             `odd` is the parity of three columns, `most` their majority with no column inverted, the
//             first, the second, the third. `bits` are the bits that the rows add, all rows alike.
"""
_EXACT = "sums count all columns, modulo a power of two that is greater. Written by"
#: Parities of three columns a, b and c, and majorities: the lowest ones of a, b, c; then of ~a, b, c; of a, ~b, c; of a, b, ~c.
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
    rf"            (?P<module>\w+) #\(\.COUNTED\((?P<counted>[1-5])\), \.PLACES\((?P<places>[1-3])\), \.SUM_W\((?P<width>[1-4])\)\)"
    rf" count(?P<name>{_NUMBER}) \(",
    re.ASCII,
)
_PORTS = re.compile(rf"                \.x\((.+?)\), \.a\((.+?)\), \.carry\((.+?)\), \.sum\((c{_NUMBER})\)", re.ASCII)
_HIGH = re.compile(rf"            wire \[({_NUMBER}):0\] high = (.+) \+ (.+);", re.ASCII)

#: A bit of a vector; None: 0.
_Bit = tuple[str, int] | None


def words(text: str, cell: Cell) -> Array:
    """The bits int64 (rows, columns) with which the module of this text counts agreements. Raises HG055 otherwise."""
    return _Reader(text, cell).words()


class _Reader:
    """Lines are read once, from first to last: a vector is declared before its bits are used.

    widths, times  of the vectors of a row: cycles since `own`
    made           (vector, bits that it is the sum of, each with its shift; two to this or greater it is never, or is cut)
    """

    def __init__(self, text: str, cell: Cell) -> None:
        self.file, self.where = cell.file, f"rtl/{cell.file}.v"
        self.prefix = cell.file.removesuffix(f"{cell.name}_counts")
        self.rows, self.columns = cell.number("PE", 1), cell.number("SIMD", 1)
        self.y_bits = cell.number("ACC_W", 1)
        latency = _LATENCY.search(text)
        self.latency = int(latency[1]) if latency else 0
        start = text.find("\n", text.find("    wire unused = ")) + 1
        if not start or not text.endswith(TAIL) or self.y_bits > _MOST_BITS or self.columns >> self.y_bits:
            raise broken(self.where, f"is no module of counters with sums of {self.y_bits} bits.")
        first = _FIRST.match(text, start)
        self.triples = int(first[1]) + 1 if first else 0
        self.rest = self.columns - 3 * self.triples
        about = _ABOUT.format(name=self.file, rows=self.rows, columns=self.columns, triples=self.triples)
        bits = self.columns, self.rows * self.y_bits
        if text[:start] != about + frame(self.file, self.prefix, _EXACT, self.latency, bits):
            raise broken(self.where, "its head is not that of such a module.")
        self.text, self.at = text[: -len(TAIL)], start
        self.widths: dict[str, int] = {}
        self.times: dict[str, int] = {"own": 0}
        self.made: list[tuple[str, list[tuple[_Bit, int]], bool]] = []

    def words(self) -> Array:
        if self.triples:
            self._verbatim(self._triples())
        signals, inverted = self._rows()
        own = signals.shape[1]
        self.widths["own"] = own
        self._verbatim(_LOOP.format(rows=self.rows, own=own, own_top=own - 1))
        self._statements(iter(self._lines()))
        worth = self._worths()
        return self._agreements(signals, inverted, np.array([worth.get(("own", n), 0) for n in range(own)]))

    def _verbatim(self, wanted: str) -> None:
        if not self.text.startswith(wanted, self.at):
            raise self._unlike(self.text[self.at : self.at + 60])
        self.at += len(wanted)

    def _unlike(self, text: str) -> HlsgenError:
        return broken(self.where, f"{text.strip()[:80]!r} is no part of a module of counters here.")

    def _lines(self) -> list[str]:
        """Those of a row, with the last ones taken away."""
        end = _END.format(y=self.y_bits)
        if not self.text.endswith(end) or len(self.text) - len(end) < self.at:
            raise broken(self.where, "does not end as a module of counters does.")
        return self.text[self.at : -len(end)].split("\n")[:-1]

    def _triples(self) -> str:
        """The lines of three columns at a time."""
        t, rest = self.triples, self.rest
        if rest < 0:
            raise broken(self.where, f"has no {t} times three columns.")
        return _TRIPLES.format(
            top=t - 1,
            b=t,
            b_top=2 * t - 1,
            c=2 * t,
            c_top=3 * t - 1,
            most_top=4 * t - 1,
            rest=f"    reg  [{rest - 1}:0] rest;\n" if rest else "",
            moved=f"        rest <= s_data[{self.columns - 1}:{3 * t}];\n" if rest else "",
        )

    def _rows(self) -> tuple[Array, Array]:
        """Signals int64 (rows, bits) that the rows choose, and whether they are inverted: columns, parities, majorities."""
        match = _CHOSEN.match(self.text, self.at)
        if not match:
            raise self._unlike(self.text[self.at : self.at + 60])
        size = int(match[1]) + 1
        self.at = match.end()
        each, found = size // self.rows, list[tuple[list[int], list[bool]]]()
        for row in range(self.rows):
            end = max(self.at, self.text.find("\n", self.at))
            line = _ASSIGN.fullmatch(self.text, self.at, end)
            if not line or (int(line[1]), int(line[2])) != ((row + 1) * each - 1, row * each) or size % self.rows:
                raise self._unlike(self.text[self.at : end])
            literals = [self._literal(part) for part in reversed(self._parts(line[3]))]
            if len(literals) != each:
                raise broken(self.where, f"row {row} has {len(literals)} bits in the place of {each}.")
            found.append(([signal for signal, _ in literals], [inverted for _, inverted in literals]))
            self.at = end + 1
        return np.array([row[0] for row in found]), np.array([row[1] for row in found])

    def _parts(self, text: str) -> list[str]:
        """What stands in braces, or a single one without."""
        return text[1:-1].split(", ") if text.startswith("{") and text.endswith("}") else [text]

    def _literal(self, text: str) -> tuple[int, bool]:
        match, t = _LITERAL.fullmatch(text), self.triples
        if not match:
            raise self._unlike(text)
        first, count = {
            "s_data": (0, 0 if t else self.columns),
            "rest": (3 * t, self.rest if t else 0),
            "odd": (self.columns, t),
            "most": (self.columns + t, 4 * t),
        }[match[2]]
        if int(match[3]) >= count:
            raise self._unlike(text)
        return first + int(match[3]), bool(match[1])

    def _statements(self, lines: Iterator[str]) -> None:
        """All lines of a row: registers, counters, and the last sum."""
        for line in lines:
            if held := _HELD.fullmatch(line):
                self._register(held[2], int(held[1]) + 1, next(lines, ""))
            elif wire := _WIRE.fullmatch(line):
                self._counter(f"c{wire[2]}", int(wire[1]) + 1, next(lines, ""), next(lines, ""), next(lines, ""))
            elif high := _HIGH.fullmatch(line):
                first, second = self._bits(high[2]), self._bits(high[3])
                if len(first) != len(second) or len(first) != int(high[1]) + 1:
                    raise self._unlike(line)
                self._sum("high", len(first), [*enumerated(first), *enumerated(second)], cut=True)
            elif line == f"            reg [{self.y_bits - 1}:0] sum;":
                self._register("sum", self.y_bits, next(lines, ""))
                if next(lines, None) is not None or self.times["sum"] + (self.triples > 0) != self.latency:
                    raise broken(self.where, f"its sums are not there after {self.latency} cycles.")
                return
            else:
                raise self._unlike(line)
        raise broken(self.where, "has no sum.")

    def _register(self, name: str, width: int, line: str) -> None:
        move = _MOVE.fullmatch(line)
        if not move or move[1] != name:
            raise self._unlike(line)
        bits = self._bits(move[2], high=name == "sum")
        if len(bits) != width:
            raise broken(self.where, f"{name} has {width} bits, what it holds {len(bits)}.")
        self._sum(name, width, enumerated(bits), cut=False, delay=1)

    def _counter(self, name: str, width: int, line: str, ports: str, end: str) -> None:
        match, found = _COUNTER.fullmatch(line), _PORTS.fullmatch(ports)
        if not match or not found or end != "            );" or match["module"] != f"{self.prefix}hg_count":
            raise self._unlike(line)
        counted, plain, carry = (self._bits(found[n]) for n in (1, 2, 3))
        sizes = [int(match[key]) for key in ("counted", "places", "width")]
        if (
            [len(counted), len(plain), width] != sizes
            or len(carry) != 1
            or found[4] != name
            or f"c{match['name']}" != name
        ):
            raise self._unlike(ports)
        if len(counted) >> len(plain) or width > len(plain) + 1:
            raise broken(self.where, f"{name} counts more than it has places for.")
        terms = [*((bit, 0) for bit in counted), *enumerated(plain), (carry[0], 0)]
        most = sum(1 << shift for bit, shift in terms if bit is not None)
        self._sum(name, width, terms, cut=bool(most >> width))

    def _sum(self, name: str, width: int, terms: list[tuple[_Bit, int]], *, cut: bool, delay: int = 0) -> None:
        """A vector that is this sum, modulo two to its width if it is cut. All bits are of one cycle."""
        times = {self.times[bit[0]] for bit, _ in terms if bit is not None}
        if name in self.widths or len(times) > 1:
            raise broken(self.where, f"{name} is there twice, or made of bits of different cycles.")
        self.widths[name], self.times[name] = width, max(times, default=0) + delay
        self.made.append((name, terms, cut))

    def _bits(self, text: str, *, high: bool = False) -> list[_Bit]:
        """Bits of a vector, the lowest first. `high`: the vector of that name may be in front."""
        found: list[_Bit] = []
        parts = self._parts(text)
        if high and parts[0] == "high" and "high" in self.widths:
            parts[:1] = [""]
        for part in reversed(parts):
            match = _BIT.fullmatch(part)
            if not part:
                found += [("high", n) for n in range(self.widths["high"])]
            elif match and match[1] and int(match[2]) < self.widths.get(match[1], 0):
                found.append((match[1], int(match[2])))
            elif match and match[3] and 0 < int(match[3]) <= _MOST_BITS:
                found += [None] * int(match[3])
            else:
                raise self._unlike(part)
        return found

    def _worths(self) -> dict[tuple[str, int], int]:
        """What each bit adds to the sum, modulo two to its bits."""
        modulus = 1 << self.y_bits
        worth = {("sum", n): 1 << n for n in range(self.y_bits)}
        for name, terms, cut in reversed(self.made):
            width = self.widths[name]
            own = [worth.pop((name, n), 0) for n in range(width)]
            if name == "sum" or name.startswith("held"):  # bits for themselves
                values = [own[shift] for _, shift in terms]
            else:
                if any(value != (own[0] << n) % modulus for n, value in enumerate(own)):
                    raise broken(self.where, f"the bits of {name} do not add what that number is.")
                if cut and (own[0] << width) % modulus:
                    raise broken(self.where, f"{name} does not fit {width} bits.")
                values = [own[0] << shift for _, shift in terms]
            for (bit, _), value in zip(terms, values, strict=True):
                if bit is not None:
                    worth[bit] = (worth.get(bit, 0) + value) % modulus
        return worth

    def _agreements(self, signals: Array, inverted: Array, worth: Array) -> Array:
        """The bits of each row: of its sum, x agrees with 1 and 1 - x with 0."""
        mask, t = (1 << self.y_bits) - 1, self.triples
        factors = np.zeros((self.rows, self.columns), np.int64)
        constants = (inverted * worth).sum(axis=1)
        row = np.broadcast_to(np.arange(self.rows)[:, None], signals.shape)
        sign = np.where(inverted, -worth, worth)
        plain = signals < self.columns
        np.add.at(factors, (row[plain], signals[plain]), sign[plain])
        if t:
            cases = np.arange(8)[:, None] >> np.arange(3) & 1  # a, b, c
            flips = np.concatenate([np.zeros((1, 3), np.int64), np.eye(3, dtype=np.int64)])
            tables = np.stack([cases.sum(axis=1) % 2, *(((cases ^ flip).sum(axis=1) > 1) for flip in flips)])
            which, place = np.divmod(signals[~plain] - self.columns, t)
            values = np.zeros((self.rows, t, 8), np.int64)
            np.add.at(values, (row[~plain], place), sign[~plain][:, None] * tables[which])
            slopes = values[:, :, [1, 2, 4]] - values[:, :, :1]
            if ((values[:, :, :1] + slopes @ cases.T - values) & mask).any():
                raise broken(self.where, "what a row adds of three columns is no sum of them.")
            factors[:, : 3 * t] += slopes.transpose(0, 2, 1).reshape(self.rows, 3 * t)
            constants = constants + values[:, :, 0].sum(axis=1)
        # Of one column with a sum of one bit, the factor is 1 and -1.
        first = 1 - (constants[:, None] & 1)
        found: Array = first if self.y_bits == 1 else (factors & mask == 1).astype(np.int64)
        right = (np.where(found, 1, -1) - factors) & mask
        if right.any() or ((constants - (1 - found).sum(axis=1)) & mask).any():
            raise broken(self.where, "its sums are no counts of agreements.")
        return found


def enumerated(bits: list[_Bit]) -> list[tuple[_Bit, int]]:
    """Bits of a number, with their places."""
    return [(bit, n) for n, bit in enumerate(bits)]
