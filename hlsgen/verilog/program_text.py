"""The text of a module that runs a program: a wire for each result, and registers between stages."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import assert_never

from hlsgen.ir import programs
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.program_stages import StagedProgram
from hlsgen.verilog.stage_text import MOST_WAITS, between_streams, clocked_lines

_GATES = {programs.BitwiseKind.AND: "&", programs.BitwiseKind.OR: "|", programs.BitwiseKind.XOR: "^"}


def program_module_text(name: str, staged: StagedProgram, lanes: int, x_bits: int, y_bits: int) -> str:
    """The module `name`. lanes: elements of the input beat; x_bits, y_bits: bits of an element of input and output."""
    program = staged.program
    head = [
        f"// {name}: {len(program.operations)} operations on single numbers, {len(program.outputs)} results.",
        "//",
        "// Purpose     operations with the outputs of the model's program, each as wide as its result needs.",
        "//             nK_C is result K, C cycles after the input. Tables: bit B of result K is tK_B[operand].",
    ]
    contract = "no result wraps or rounds unless its operation says so. Written by"
    bits = lanes * x_bits, len(program.outputs) * y_bits
    return between_streams(name, head, contract, staged.latency, bits, _Text(staged, x_bits).lines(y_bits))


class _Text:
    def __init__(self, staged: StagedProgram, x_bits: int) -> None:
        self.staged, self.x_bits = staged, x_bits
        self.types = staged.intervals
        #: For each bit of a result, the registers that it has passed in series, in the latest cycle so far.
        self.waits = [[0] * type_.bits for type_ in self.types]

    def lines(self, y_bits: int) -> Iterator[str]:
        staged = self.staged
        operations = staged.program.operations
        for cycle in range(staged.latency + 1):
            if cycle:
                yield from self._registers(cycle)
            for n, operation in enumerate(operations):
                if staged.computed[n] == cycle:
                    self._copy_waits(n, operation)
                    if isinstance(operation, programs.Table):
                        yield from self._table_bits(n, operation)
                    yield f"    wire [{self.types[n].bits - 1}:0] n{n}_{cycle} = {self._value(n, operation, cycle)};"
        for k, n in enumerate(staged.program.outputs):
            value = self._extended(n, staged.latency, y_bits)
            yield f"    assign m_data[{(k + 1) * y_bits - 1}:{k * y_bits}] = {value};"
        last = [f"n{n}_{staged.needed[n]}" for n in range(len(operations)) if staged.computed[n] >= 0]
        yield f"    wire unused_results = &{{{', '.join([_constant(0, 1), 'en', *last])}}};"

    def _is_constant(self, n: int) -> bool:
        return self.types[n].lo == self.types[n].hi

    def _registers(self, cycle: int) -> Iterator[str]:
        """The registers that hold results in this cycle."""
        staged = self.staged
        waiting = [n for n in range(len(self.types)) if staged.computed[n] < cycle <= staged.needed[n]]
        reset = []
        for n in waiting:
            self.waits[n] = [waits + 1 for waits in self.waits[n]]
            if max(self.waits[n]) > MOST_WAITS:
                self.waits[n] = [0] * self.types[n].bits
                reset.append(n)
        yield from clocked_lines({n: self.types[n].bits for n in waiting}, reset, cycle)

    def _copy_waits(self, n: int, operation: programs.Operation) -> None:
        """Set the waits of result n, some of whose bits may be copied."""
        copied: list[int] = []
        match operation:
            case programs.Wrap(source, shift):
                copied = self.waits[source][-shift:] if shift <= 0 else [0] * shift + self.waits[source]
            case programs.Join(parts):
                copied = [wait for source, bits in parts for wait in self.waits[source][:bits]]
            case programs.Total(a, b, minus) if a.shift != b.shift and (not minus or b.shift):
                copied = self.waits[a.source if a.shift < b.shift else b.source][: abs(a.shift - b.shift)]
        for bit, waits in enumerate(copied[: len(self.waits[n])]):
            self.waits[n][bit] = waits

    def _value(self, n: int, operation: programs.Operation, cycle: int) -> str:
        """The expression of a result."""
        bits = self.types[n].bits
        match operation:
            case programs.Take(element):
                return _slice("s_data", element * self.x_bits + bits - 1, element * self.x_bits)
            case programs.Total():
                inverted = programs.inverted_bits(operation, self.types[n], self.types)
                return self._inverted(*inverted, cycle, bits) if inverted else self._total(operation, cycle, bits)
            case programs.Wrap():
                return self._wrapped(operation, cycle, bits)
            case programs.Choose(condition, threshold, yes, no):
                type_ = self.types[condition]
                if type_.lo >= threshold or type_.hi < threshold:
                    return self._extended(yes if type_.lo >= threshold else no, cycle, bits)
                yes_text, no_text = self._extended(yes, cycle, bits), self._extended(no, cycle, bits)
                return f"{self._reaches(condition, threshold, cycle)} ? {yes_text} : {no_text}"
            case programs.Product(a, b):
                return f"$signed({self._extended(a, cycle, bits)}) * $signed({self._extended(b, cycle, bits)})"
            case programs.Table(source):
                entries = _table_words(operation, self.types[source], bits)
                index = f"n{source}_{cycle}"
                parts = [
                    f"1'h{word & 1}" if word in (0, entries[0]) else f"t{n}_{b}[{index}]" for b, word in entries[1]
                ]
                return _concatenation(parts)
            case programs.Join(parts):
                return _concatenation(
                    [part for source, bits in reversed(parts) for part in self._extended_parts(source, cycle, bits)]
                )
            case programs.Bitwise(kind, a, b):
                return f"{self._term(a, cycle, bits)} {_GATES[kind]} {self._term(b, cycle, bits)}"
            case programs.Number():
                raise AssertionError("a constant has no wire")
            case _:
                assert_never(operation)

    def _table_bits(self, n: int, table: programs.Table) -> Iterator[str]:
        """A constant for each bit of a table that is not the same in all entries."""
        type_ = self.types[table.source]
        full, words = _table_words(table, type_, self.types[n].bits)
        count = 1 << type_.bits
        for bit, word in words:
            if word not in (0, full):
                yield f"    localparam [{count - 1}:0] t{n}_{bit} = {count}'h{word:x};"

    def _total(self, total: programs.Total, cycle: int, bits: int) -> str:
        """A sum; the lowest bits, where the other operand has zeros, do not pass the adder."""
        a, b = total.a, total.b
        sign = "-" if total.minus else "+"
        if not total.minus and a.shift > b.shift:
            a, b = b, a
        low = min(b.shift, bits) if b.shift > a.shift else 0
        if low == bits:
            return self._term(a, cycle, bits)
        first, second = (b, a) if self._is_inverter(a) and not total.minus else (a, b)
        high = f"{self._term(first, cycle, bits, low)} {sign} {self._term(second, cycle, bits, low)}"
        return f"{{{high}, {self._term(a, cycle, low)}}}" if low else high

    def _is_inverter(self, term: programs.Term) -> bool:
        """True for a sum with a constant that inverts bits. As second operand it needs no LUT before a carry chain."""
        operation = self.staged.program.operations[term.source]
        return programs.inverted_bits(operation, self.types[term.source], self.types) is not None

    def _inverted(self, n: int, mask: int, cycle: int, bits: int) -> str:
        """The lowest bits of result n, inverted where the mask has ones; all bits below the highest are alike."""
        name, top = f"n{n}_{cycle}", self.types[n].bits - 1
        if mask == (1 << (top + 1)) - 1:
            return "~" + (_slice(name, bits - 1, 0) if bits <= top else name)
        parts = [_slice(name, min(bits, top) - 1, 0)] if top else []
        head = ("~" if mask >> top & 1 else "") + _slice(name, top, top)
        parts = ["~" + part if mask & 1 and top else part for part in parts]
        return _concatenation([head, *parts] if bits > top else parts)

    def _wrapped(self, wrap: programs.Wrap, cycle: int, bits: int) -> str:
        source, name = self.types[wrap.source], f"n{wrap.source}_{cycle}"
        if wrap.shift > 0:
            text = self._term(programs.Term(wrap.source, wrap.shift), cycle, bits)
        else:
            text = self._extended(wrap.source, cycle, bits - wrap.shift, -wrap.shift)
        if wrap.bounded and source.lo < 0:
            return f"{_repeated(f'~{name}[{source.bits - 1}]', bits)} & {text}"
        return text

    def _reaches(self, n: int, threshold: int, cycle: int) -> str:
        """The condition that result n is at least the threshold, which lies within its interval."""
        type_, name = self.types[n], f"n{n}_{cycle}"
        top = type_.bits - 1
        if threshold == 0:
            return f"~{name}[{top}]"
        if not type_.signed and threshold == 1 << top:
            return f"{name}[{top}]"
        constant = _constant(threshold, type_.bits)
        return f"($signed({name}) >= $signed({constant}))" if type_.signed else f"({name} >= {constant})"

    def _term(self, term: programs.Term, cycle: int, bits: int, low: int = 0) -> str:
        """Bits low..bits - 1 of a shifted result."""
        if self._is_constant(term.source):
            return _constant((self.types[term.source].lo << term.shift) >> low, bits - low)
        if term.shift <= low:
            return self._extended(term.source, cycle, bits - term.shift, low - term.shift)
        zeros = min(term.shift, bits) - low
        parts = self._extended_parts(term.source, cycle, bits - term.shift) if bits > term.shift else []
        return _concatenation([*parts, f"{zeros}'h0"])

    def _extended(self, n: int, cycle: int, bits: int, low: int = 0) -> str:
        """Bits low..bits - 1 of a result in two's complement."""
        return _concatenation(self._extended_parts(n, cycle, bits, low))

    def _extended_parts(self, n: int, cycle: int, bits: int, low: int = 0) -> list[str]:
        """Bits `low` to `bits` - 1 of result n as operands of a concatenation, the highest first."""
        type_, name = self.types[n], f"n{n}_{cycle}"
        if self._is_constant(n):
            return [_constant(type_.lo >> low, bits - low)]
        above = bits - max(type_.bits, low)
        if above <= 0:
            return [_slice(name, bits - 1, low) if (bits, low) != (type_.bits, 0) else name]
        head = _repeated(f"{name}[{type_.bits - 1}]", above) if type_.signed else f"{above}'h0"
        if low >= type_.bits:
            return [head]
        return [head, _slice(name, type_.bits - 1, low) if low else name]


def _table_words(table: programs.Table, type_: IntType, bits: int) -> tuple[int, list[tuple[int, int]]]:
    """(a word of ones, [(bit, word)] from the highest bit); bit i of a word is that bit of the entry for operand i.

    Operands that cannot occur have the entry of the nearest one that can.
    """
    entries = programs.entries_of(table, type_)[::-1]
    words = [(bit, int("".join(map(str, (entries >> bit & 1).tolist())), 2)) for bit in reversed(range(bits))]
    return (1 << len(entries)) - 1, words


def _constant(value: int, bits: int) -> str:
    return f"{bits}'h{value & ((1 << bits) - 1):x}"


def _slice(name: str, high: int, low: int) -> str:
    return f"{name}[{high}:{low}]" if high > low else f"{name}[{high}]"


def _repeated(bit: str, count: int) -> str:
    return f"{{{count}{{{bit}}}}}" if count > 1 else bit


def _concatenation(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}" if len(parts) > 1 else parts[0]
