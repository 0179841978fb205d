"""What a bound module is made of: parameters and memory files."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.fixed import Array, IntType


@dataclass(frozen=True)
class Bits:
    """A sized constant; negative values in two's complement."""

    width: int
    value: int


Parameter = int | str | Bits


@dataclass(frozen=True)
class Binding:
    """Module, its parameters, its memory files, and what a comment says of it.

    Parameter FILE is a file name, or the stem of several; names of files start with the stage's name.
    """

    module: str
    parameters: dict[str, Parameter]
    about: str
    memories: dict[str, str] = field(default_factory=dict)


def signed_bits(values: Array) -> int:
    """Bits of the two's complement that holds all values."""
    return IntType(min(-1, int(values.min())), int(values.max())).bits


def words(table: Array, bits: int) -> str:
    """$readmemh text: a word for each row of (words, lanes), lane 0 in the low bits."""
    mask, lanes = (1 << bits) - 1, table.shape[1]
    digits = -(-lanes * bits // 4)
    lines = []
    for row in table.tolist():
        word = 0
        for lane, value in enumerate(row):
            word |= (value & mask) << (lane * bits)
        lines.append(f"{word:0{digits}x}")
    return "\n".join(lines) + "\n"
