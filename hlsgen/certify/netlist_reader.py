"""Reads the emitted text back: the top level, which may hold only wires and instances, and $readmemh files.

What the parser does not know is an error. So no text in these files can mean something that the checker missed.
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


@dataclass(frozen=True)
class SizedConstant:
    """A constant of so many bits, as a nonnegative number."""

    width: int
    value: int

    @property
    def signed(self) -> int:
        return self.value - ((self.value >> (self.width - 1)) << self.width)

    def __str__(self) -> str:
        return f"{self.width}'h{self.value:x}"


ParameterValue = int | str | SizedConstant
#: What a port is connected to: a net, a constant, or several nets, the one of the lowest bit first.
Nets = str | tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """An instance: its module without the prefix of the core, its parameters, and the nets of each port."""

    module: str
    name: str
    parameters: dict[str, ParameterValue]
    ports: dict[str, Nets]

    def number(self, name: str, least: int = 0) -> int:
        """A plain integer parameter, not below `least`."""
        value = self.parameters[name]
        if not isinstance(value, int) or not least <= value < 1 << 31:
            raise broken(self.name, f"parameter {name} of {self.module} is {value}.")
        return value

    def sized(self, name: str, width: int) -> SizedConstant:
        """A sized parameter of that width."""
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
    """A module of nothing but wires and instances. Ports are (direction, bits, name)."""

    name: str
    ports: tuple[tuple[str, int, str], ...]
    wires: dict[str, int]
    cells: dict[str, Cell]


def broken(where: str, what: str, hint: str = "") -> HlsgenError:
    """The error HG055: the certificate does not hold, where and why."""
    return fail("HG055", where, what, hint)


# --------------------------------------------------------------------------- top level

#: Digits of a decimal number, of which no tool takes more than those of 32 bits.
_MOST_DIGITS = 12

_TOKEN = re.compile(r"""[ \n]+|(?P<token>"[^"\\\n]*"|\d+'h[0-9a-f]+|\d+|[A-Za-z_]\w*|[][(){},;:.\#-])""", re.ASCII)


class _Reader:
    """Tokens of a file, one after the other."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.tokens = list(self._split(text))
        self.at = 0

    def _split(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                line = text.count("\n", 0, at) + 1
                raise broken(self.name, f"line {line} has more than wires and instances: {text[at : at + 40]!r}.")
            if match["token"]:
                yield match["token"]
            at = match.end()

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, *wanted: str) -> str:
        """The next token, one of `wanted` if given."""
        token = self.peek()
        if not token or (wanted and token not in wanted):
            raise broken(self.name, f"{token or 'the end'!r} stands where {' or '.join(wanted) or 'more'} is expected.")
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.at += found
        return found

    def identifier(self) -> str:
        token = self.next()
        if not re.fullmatch(r"[A-Za-z_]\w*", token, re.ASCII):
            raise broken(self.name, f"{token!r} stands where a name is expected.")
        return token

    def number(self) -> int:
        minus = self.skip("-")
        token = self.next()
        if not token.isdigit():
            raise broken(self.name, f"{token!r} stands where a number is expected.")
        return -self._decimal(token) if minus else self._decimal(token)

    def _decimal(self, digits: str) -> int:
        """Digits as a number. Python refuses those of many digits with an error of its own."""
        if len(digits) > _MOST_DIGITS:
            raise broken(self.name, f"{digits[:20]}... has {len(digits)} digits.")
        return int(digits)

    def value(self) -> ParameterValue:
        token = self.peek()
        if token.startswith('"'):
            return self.next()[1:-1]
        if "'h" in token:
            size, digits = self.next().split("'h")
            width = self._decimal(size)
            if not width or int(digits, 16) >> width:
                raise broken(self.name, f"{token[:60]} does not fit its width.")
            return SizedConstant(width, int(digits, 16))
        return self.number()

    def nets(self) -> Nets:
        """A net, a constant as text, or a concatenation of nets."""
        if "'h" in self.peek():
            return str(self.value())
        if not self.skip("{"):
            return self.identifier()
        found = [self.identifier()]
        while self.next(",", "}") == ",":
            found.append(self.identifier())
        return tuple(reversed(found))

    def bits(self) -> int:
        """Width of an optional range."""
        if not self.skip("["):
            return 1
        high = self.number()
        for token in (":", "0", "]"):
            self.next(token)
        return high + 1


def parse(text: str, name: str) -> TopModule:
    """The one module of a file. Raises HG055 for anything but ports, wires and instances."""
    reader = _Reader(text, name)
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
    taken = {port[2] for port in ports}
    while not reader.skip("endmodule"):
        if reader.skip("wire"):
            width, wire = reader.bits(), reader.identifier()
            wires[wire] = width
            new = wire
            reader.next(";")
        else:
            cell = _cell(reader, f"{module}_")
            cells[cell.name] = cell
            new = cell.name
        if new in taken:
            raise broken(name, f"{new} is declared twice.")
        taken.add(new)
    if reader.peek():
        raise broken(name, f"{reader.peek()!r} follows the module.")
    return TopModule(module, tuple(ports), wires, cells)


def _cell(reader: _Reader, prefix: str) -> Cell:
    module = reader.identifier()
    if not module.startswith(prefix):
        raise broken(reader.name, f"module {module} does not begin with {prefix}, as those of this core do.")
    parameters: dict[str, Any] = {}
    if reader.skip("#"):
        parameters = _connections(reader, reader.value)
    name = reader.identifier()
    ports: dict[str, Any] = _connections(reader, reader.nets)
    reader.next(";")
    return Cell(module.removeprefix(prefix), name, parameters, ports)


def _connections(reader: _Reader, value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    reader.next("(")
    while True:
        reader.next(".")
        name = reader.identifier()
        if name in found:
            raise broken(reader.name, f"{name} is given twice.")
        reader.next("(")
        found[name] = value()
        reader.next(")")
        if reader.next(",", ")") == ")":
            return found


# --------------------------------------------------------------------------- memories


@dataclass
class Memories:
    """The .mem files of a folder; `used` are those that some instance reads, `sizes` their words and bits of a word."""

    folder: Path
    used: set[str] = field(default_factory=set)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def words(self, name: str, count: int, width: int, *, even: bool = True) -> list[int]:
        """All words of a file: exactly `count`, of `width` bits, a line each; unless `even`, digits may be missing."""
        where = f"rtl/{name}"
        self.used.add(where)
        self.sizes[where] = count, width
        if not re.fullmatch(r"\w+\.mem", name, re.ASCII):
            raise broken(where, "is no plain file name.")
        most = -(-width // 4)
        try:
            size = (self.folder / name).stat().st_size
            if size > count * (most + 1):  # before it is read, as nobody knows how large it is
                raise broken(where, f"has {size} bytes; the module reads {count} words of {most} digits.")
            *lines, last = (self.folder / name).read_bytes().split(b"\n")
        except OSError:
            raise broken(where, "cannot be read.") from None
        if len(lines) != count:
            raise broken(where, f"has {len(lines)} words; the module reads {count}.")
        least = most if even else 1
        if last or not all(re.fullmatch(rb"[0-9a-f]+", line) and least <= len(line) <= most for line in lines):
            some = most if even else f"1 to {most}"
            raise broken(where, f"has a line that is no word of {some} hexadecimal digits.")
        found = [int(line, 16) for line in lines]
        for number, word in enumerate(found):
            if word >> width:
                raise broken(where, f"word {number} is {word:x}, more than {width} bits.")
        return found

    def fields(self, name: str, count: int, lanes: int, width: int) -> Array:
        """(words, lanes) fields of a file, the first in the low bits; int64, or int if wider than 62 bits."""
        found = self.words(name, count, lanes * width)
        return split(found, lanes, width)


def split(found: list[int], lanes: int, width: int) -> Array:
    """The fields of words, the first in the low bits."""
    if width > 62:
        mask = (1 << width) - 1
        table = [[(word >> (lane * width)) & mask for lane in range(lanes)] for word in found]
        return np.array(table, object).reshape(len(found), lanes)
    size = -(-lanes * width // 8)
    data = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in found), np.uint8).reshape(-1, size)
    bits = np.unpackbits(data, axis=1, count=lanes * width, bitorder="little").reshape(-1, lanes, width)
    return np.asarray(bits.astype(np.int64) @ (np.int64(1) << np.arange(width)))


def two_complement(value: Array, width: int) -> Array:
    """Fields of this width, read as signed numbers in two's complement."""
    return np.asarray(value - ((value >> (width - 1)) << width))
