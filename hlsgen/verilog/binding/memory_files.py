"""A bound module as data: its name, its parameters, and the text of its memory files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hlsgen.numerics.fixed import Array, IntType

#: Words of one vectorized conversion.
_CHUNK = 4096


@dataclass(frozen=True)
class Bits:
    """A sized constant; negative values in two's complement."""

    width: int
    value: int


Parameter = int | str | Bits


@dataclass(frozen=True)
class Binding:
    """A module, its parameters, its memory files, and `summary`, the comment on the instance.

    Parameter FILE is a file name, or the stem of several. File names start with the node's name. `text` prints a module
    that is made for this node alone, given its name; then `module` ends its name.
    """

    module: str
    parameters: dict[str, Parameter]
    summary: str
    memories: dict[str, str] = field(default_factory=dict)
    text: Callable[[str], str] | None = None


def signed_bits(values: Array) -> int:
    """Bits of the two's complement that holds all values."""
    return IntType(min(-1, int(values.min())), int(values.max())).bits


def words(table: Array, bits: int) -> str:
    """$readmemh text: a word for each row of (words, lanes), lane 0 in the low bits."""
    digits = -(-table.shape[1] * bits // 4)
    if bits > 32:
        return "".join(f"{_word(row, bits):0{digits}x}\n" for row in table.tolist())
    lines = []
    for start in range(0, len(table), _CHUNK):
        part = table[start : start + _CHUNK].astype(np.int64)
        planes = ((part[:, :, None] >> np.arange(bits)) & 1).astype(np.uint8).reshape(len(part), -1)
        packed = np.packbits(planes, axis=1, bitorder="little")[:, ::-1]
        text, size = np.ascontiguousarray(packed).tobytes().hex(), 2 * packed.shape[1]
        lines += [text[n + size - digits : n + size] for n in range(0, len(text), size)]
    return "\n".join(lines) + "\n"


def _word(row: list[int], bits: int) -> int:
    mask = (1 << bits) - 1
    return sum((value & mask) << (lane * bits) for lane, value in enumerate(row))
