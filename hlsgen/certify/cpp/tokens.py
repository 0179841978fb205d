"""Tokens of the emitted C++. Any other text is an error, so everything that has a meaning is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hlsgen.certify.netlist_reader import TokenReader, broken

#: hlsgen never emits larger sources.
_MAX_BYTES = 1 << 29
_TOKEN = re.compile(
    r"[ \n]+|(?P<token>\#[^\n]*|/\* [A-Z]\w* "
    r"\*/|-?\d+(?:U?LL)?|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*|\"\w+\"|\+\+|[][(){}<>,;&=])",
    re.ASCII,
)
_COMMENT = re.compile(r"(?m)^//[^\n]*\n", re.ASCII)


def source(path: Path, name: str) -> str:
    """The text of a file of printable ASCII, without its comments, which are on lines of their own. Raises HG055."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise broken(name, f"has {path.stat().st_size} bytes.")
        data = path.read_bytes()
    except OSError:
        raise broken(name, "cannot be read.") from None
    # A backslash would join lines; C++14 reads ??/ as a backslash.
    odd = re.search(rb"[^\n -~]|\\|\?\?", data)
    if odd or not data.endswith(b"\n"):
        line = data.count(b"\n", 0, odd.start()) + 1 if odd else 0
        raise broken(name, f"line {line} has characters that are never emitted." if odd else "has no end of line.")
    return _COMMENT.sub("", data.decode("ascii"))


class Reader(TokenReader):
    """The tokens of a file of C++."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text, name, _TOKEN)

    def all(self, text: str) -> None:
        """Read tokens that are separated by spaces."""
        for token in text.split():
            self.next(token)

    def line(self, text: str) -> None:
        """Read a directive, which is one token."""
        self.next(text)

    def identifier(self) -> str:
        token = self.next()
        if not re.fullmatch(r"[A-Za-z_]\w*(?:::\w+)*", token, re.ASCII):
            raise broken(self.name, f"{token!r} is where a name is expected.")
        return token

    def number(self) -> int:
        token = self.next()
        if not re.fullmatch(r"-?\d{1,20}(U?LL)?", token, re.ASCII):
            raise broken(self.name, f"{token!r} is where a number is expected.")
        return int(token.rstrip("UL"))

    def integers(self) -> tuple[int, bool]:
        """(bits, signed) of an ap_int or ap_uint."""
        kind = self.next("ap_int", "ap_uint")
        self.next("<")
        bits = self.number()
        self.next(">")
        if not 1 <= bits <= 4096:
            raise broken(self.name, f"{kind} has {bits} bits.")
        return bits, kind == "ap_int"


@dataclass(frozen=True)
class Beats:
    """The type of the beats of a stream: `lanes` elements of `bits` bits."""

    bits: int
    signed: bool
    lanes: int
