"""Reads the emitted text back: the top level, which may hold only wires and instances, and $readmemh files.

Any text that the parser does not know is an error. Therefore no text in these files can have a meaning that the checker
missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.numerics.fixed import Array

#: Most bits of a constant that is one token.
_PIECE = 1 << 14


@dataclass(frozen=True)
class SizedConstant:
    """A constant of `width` bits, as a nonnegative number."""

    width: int
    value: int

    @property
    def signed(self) -> int:
        return self.value - ((self.value >> (self.width - 1)) << self.width)

    def __str__(self) -> str:
        """As in Verilog: a longer constant is a concatenation of pieces of `_PIECE` bits."""
        if self.width <= _PIECE:
            return f"{self.width}'h{self.value:x}"
        starts = range(0, self.width, _PIECE)
        values = (self.value >> start & ((1 << _PIECE) - 1) for start in starts)
        sizes = (min(_PIECE, self.width - start) for start in starts)
        pieces = [f"{size}'h{value:x}" for size, value in zip(sizes, values, strict=True)]
        return f"{{{', '.join(reversed(pieces))}}}"


ParameterValue = int | str | SizedConstant
#: The connection of a port: a net, a constant, or several nets with the lowest bit first.
Nets = str | tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """An instance: its module without the prefix of the core, its parameters, and the nets of each port."""

    module: str
    name: str
    parameters: dict[str, ParameterValue]
    ports: dict[str, Nets]

    def number(self, name: str, minimum: int = 0) -> int:
        """A plain integer parameter, at least `minimum`. Raises HG055."""
        value = self.parameters[name]
        if not isinstance(value, int) or not minimum <= value < 1 << 31:
            raise broken(self.name, f"parameter {name} of {self.module} is {value}.")
        return value

    def sized(self, name: str, width: int) -> SizedConstant:
        """A sized parameter of this width. Raises HG055."""
        value = self.parameters[name]
        if not isinstance(value, SizedConstant) or value.width != width:
            raise broken(self.name, f"parameter {name} of {self.module} is {value}, not a constant of {width} bits.")
        return value

    @property
    def file(self) -> str:
        value = self.parameters["FILE"]
        if not isinstance(value, str):
            raise broken(self.name, f"parameter FILE of {self.module} is {value}, no text.")
        return value


@dataclass(frozen=True)
class TopModule:
    """A module that contains only wires and instances. Ports are (direction, bits, name)."""

    name: str
    ports: tuple[tuple[str, int, str], ...]
    wires: dict[str, int]
    cells: dict[str, Cell]


def broken(place: str, reason: str, hint: str = "") -> HlsgenError:
    """The error HG055: the certificate does not hold, with the place and the reason."""
    return fail("HG055", place, reason, hint)


# --------------------------------------------------------------------------- top level

#: Maximum digits of a decimal number; tools read at most 32 bits.
_MAX_DIGITS = 12

_TOKEN = re.compile(r"""[ \n]+|(?P<token>"[^"\\\n]*"|\d+'h[0-9a-f]+|\d+|[A-Za-z_]\w*|[][(){},;:.\#-])""", re.ASCII)


class TokenReader:
    """The tokens of a file, read in order. `pattern`: of a token, in its group `token`, or of space."""

    def __init__(self, text: str, name: str, pattern: re.Pattern[str]) -> None:
        self.name = name
        self.tokens = list(self._split(text, pattern))
        self.at = 0

    def _split(self, text: str, pattern: re.Pattern[str]) -> Iterator[str]:
        position = 0
        while position < len(text):
            match = pattern.match(text, position)
            if match is None:
                line = text.count("\n", 0, position) + 1
                raise broken(self.name, f"line {line} has text that is never emitted: {text[position:][:40]!r}.")
            if match["token"]:
                yield match["token"]
            position = match.end()

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, *expected: str) -> str:
        """The next token; one of `expected` if given. Raises HG055."""
        token = self.peek()
        if not token or (expected and token not in expected):
            raise broken(self.name, f"{token or 'the end'!r} is where {' or '.join(expected) or 'more'} is expected.")
        self.at += 1
        return token


class _Reader(TokenReader):
    """The tokens of a top level."""

    def skip(self, token: str) -> bool:
        matches = self.peek() == token
        self.at += matches
        return matches

    def identifier(self) -> str:
        token = self.next()
        if not re.fullmatch(r"[A-Za-z_]\w*", token, re.ASCII):
            raise broken(self.name, f"{token!r} is where a name is expected.")
        return token

    def number(self) -> int:
        minus = self.skip("-")
        token = self.next()
        if not token.isdigit():
            raise broken(self.name, f"{token!r} is where a number is expected.")
        return -self._decimal(token) if minus else self._decimal(token)

    def _decimal(self, digits: str) -> int:
        """Digits as a number. Python raises an error of its own for numbers with too many digits."""
        if len(digits) > _MAX_DIGITS:
            raise broken(self.name, f"{digits[:20]}... has {len(digits)} digits.")
        return int(digits)

    def value(self) -> ParameterValue:
        token = self.peek()
        if token.startswith('"'):
            return self.next()[1:-1]
        if self.skip("{"):
            pieces = [self._sized()]
            while self.next(",", "}") == ",":
                pieces.append(self._sized())
            digits = "".join(format(piece.value, f"0{piece.width}b") for piece in pieces)
            return SizedConstant(len(digits), int(digits, 2))
        return self._sized() if "'h" in token else self.number()

    def _sized(self) -> SizedConstant:
        token = self.next()
        size, _, digits = token.partition("'h")
        width = self._decimal(size) if size.isdigit() else 0
        if not digits or not width or int(digits, 16) >> width:
            raise broken(self.name, f"{token[:60]} does not fit its width.")
        return SizedConstant(width, int(digits, 16))

    def nets(self) -> Nets:
        """A net, a constant as text, or a concatenation of nets."""
        if "'h" in self.peek():
            return str(self.value())
        if not self.skip("{"):
            return self.identifier()
        nets = [self.identifier()]
        while self.next(",", "}") == ",":
            nets.append(self.identifier())
        return tuple(reversed(nets))

    def bits(self) -> int:
        """The width of an optional range."""
        if not self.skip("["):
            return 1
        high = self.number()
        for token in (":", "0", "]"):
            self.next(token)
        return high + 1


def parse(text: str, name: str) -> TopModule:
    """The only module of a file. Raises HG055 for anything except ports, wires and instances."""
    reader = _Reader(text, name, _TOKEN)
    reader.next("module")
    module = reader.identifier()
    ports = []
    reader.next("(")
    while True:
        direction = reader.next("input", "output")
        reader.next("wire")
        ports.append((direction, reader.bits(), reader.identifier()))
        if reader.next(",", ")") == ")":
            break
    reader.next(";")
    wires: dict[str, int] = {}
    cells: dict[str, Cell] = {}
    used_names = {port[2] for port in ports}
    while not reader.skip("endmodule"):
        if reader.skip("wire"):
            width, wire = reader.bits(), reader.identifier()
            wires[wire] = width
            new_name = wire
            reader.next(";")
        else:
            cell = _cell(reader, f"{module}_")
            cells[cell.name] = cell
            new_name = cell.name
        if new_name in used_names:
            raise broken(name, f"{new_name} is declared twice.")
        used_names.add(new_name)
    if reader.peek():
        raise broken(name, f"{reader.peek()!r} follows the module.")
    return TopModule(module, tuple(ports), wires, cells)


def _cell(reader: _Reader, prefix: str) -> Cell:
    module = reader.identifier()
    if not module.startswith(prefix):
        raise broken(reader.name, f"module {module} does not begin with {prefix}, the prefix of this core.")
    parameters: dict[str, Any] = {}
    if reader.skip("#"):
        parameters = _connections(reader, reader.value)
    name = reader.identifier()
    ports: dict[str, Any] = _connections(reader, reader.nets)
    reader.next(";")
    return Cell(module.removeprefix(prefix), name, parameters, ports)


def _connections(reader: _Reader, value: Any) -> dict[str, Any]:
    connections: dict[str, Any] = {}
    reader.next("(")
    while True:
        reader.next(".")
        name = reader.identifier()
        if name in connections:
            raise broken(reader.name, f"{name} is given twice.")
        reader.next("(")
        connections[name] = value()
        reader.next(")")
        if reader.next(",", ")") == ")":
            return connections


# --------------------------------------------------------------------------- memories


@dataclass
class Memories:
    """The .mem files of a folder. `used`: files that an instance reads; `sizes`: their words and bits of a word."""

    folder: Path
    used: set[str] = field(default_factory=set)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def words(self, name: str, count: int, width: int, *, even: bool = True) -> list[int]:
        """All words of a file: exactly `count` lines of `width` bits. Leading digits may be missing unless `even`."""
        file = f"rtl/{name}"
        self.used.add(file)
        self.sizes[file] = count, width
        if not re.fullmatch(r"\w+\.mem", name, re.ASCII):
            raise broken(file, "is no plain file name.")
        max_digits = -(-width // 4)
        try:
            size = (self.folder / name).stat().st_size
            if size > count * (max_digits + 1):  # before the file is read, because it may be huge
                raise broken(file, f"has {size} bytes; the module reads {count} words of {max_digits} digits.")
            *lines, last = (self.folder / name).read_bytes().split(b"\n")
        except OSError:
            raise broken(file, "cannot be read.") from None
        if len(lines) != count:
            raise broken(file, f"has {len(lines)} words; the module reads {count}.")
        min_digits = max_digits if even else 1
        if last or not all(
            re.fullmatch(rb"[0-9a-f]+", line) and min_digits <= len(line) <= max_digits for line in lines
        ):
            digits = max_digits if even else f"1 to {max_digits}"
            raise broken(file, f"has a line that is no word of {digits} hexadecimal digits.")
        words = [int(line, 16) for line in lines]
        for number, word in enumerate(words):
            if word >> width:
                raise broken(file, f"word {number} is {word:x}, more than {width} bits.")
        return words

    def fields(self, name: str, count: int, lanes: int, width: int) -> Array:
        """(words, lanes) fields of a file, the first in the low bits; int64, or Python int if wider than 62 bits."""
        words = self.words(name, count, lanes * width)
        return split(words, lanes, width)


def split(words: list[int], lanes: int, width: int) -> Array:
    """The fields of words; the first is in the low bits."""
    if width > 62:
        mask = (1 << width) - 1
        table = [[(word >> (lane * width)) & mask for lane in range(lanes)] for word in words]
        return np.array(table, object).reshape(len(words), lanes)
    size = -(-lanes * width // 8)
    data = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), np.uint8).reshape(-1, size)
    bits = np.unpackbits(data, axis=1, count=lanes * width, bitorder="little").reshape(-1, lanes, width)
    return np.asarray(bits.astype(np.int64) @ (np.int64(1) << np.arange(width)))


def two_complement(value: Array, width: int) -> Array:
    """Fields of this width, read as signed numbers in two's complement."""
    return np.asarray(value - ((value >> (width - 1)) << width))
