"""What memories take of a device: tables, registers and block memories, as Yosys maps them on a family of devices."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.dataflow.resources import Cost

#: Bits of constants for which a block memory of Xilinx 7 series is taken, where the tools choose.
BLOCK_BITS = 8256
#: What Yosys weighs a memory of four tables of Xilinx 7 series, 64 x 3 bits, and a block memory with.
PIECE, BLOCK = 8, 129
#: Tables of Xilinx 7 series that a block memory is worth: more than the 72 that hold 128 words of its width, and fewer than the
#: 144 of 256; devices have some 190 for each.
BLOCK_TABLES = 128
#: STYLE of hg_weights for each kind of memory that a unit may name.
KIND_STYLES = {"tables": 3, "blocks": 2}
#: What Yosys weighs a read port, and what it builds around a block in which a word may be read while it is written.
READ, READ_FIRST, WRITE_FIRST = 2, 14, 8
#: Words and bits of a memory made of tables, the tables of one, and what Yosys weighs it with.
PIECE_WORDS, PIECE_BITS, PIECE_TABLES, PIECE_WEIGHT = 16, 4, 4, 4
#: Bits of constants in tables that Yosys weighs as much as 1.
ROM_BITS = 16


@dataclass(frozen=True)
class Shape:
    """A block as so many words of so many bits; a memory that is written takes its bits in groups of `group`."""

    words: int
    bits: int
    group: int


@dataclass(frozen=True)
class Memories:
    """What a family has. weight: what Yosys weighs a block with. tables: whether memories are made of tables as well, and
    scaled: whether one of which some bits are taken weighs less."""

    weight: int
    shapes: tuple[Shape, ...]
    tables: bool
    scaled: bool = False


_18_KBIT = (
    Shape(16384, 1, 1),
    Shape(8192, 2, 2),
    Shape(4096, 4, 4),
    Shape(2048, 9, 9),
    Shape(1024, 18, 9),
    Shape(512, 36, 9),
)
_4_KBIT = (Shape(2048, 2, 2), Shape(1024, 4, 4), Shape(512, 8, 8), Shape(256, 16, 1))
#: Of Xilinx 7 series; tables that memories are made of are counted apart.
_SERIES_7 = Memories(BLOCK, _18_KBIT, tables=True)
#: Families whose memories are not those of Xilinx 7 series.
FAMILIES = {
    "ecp5": Memories(128, _18_KBIT, tables=True),
    "gowin": Memories(128, _18_KBIT, tables=True, scaled=True),
    "ice40": Memories(64, _4_KBIT, tables=False),
}


def memory(words: int, width: int, style: int = 0, family: str = "xc7") -> Cost:
    """Cost of a memory of constants; style as in hg_weights."""
    if family in FAMILIES:
        return _constants(words, width, style, FAMILIES[family])
    weight, blocks = _blocks(words, width, _SERIES_7, written=False)
    # A block of which a few bits are taken weighs little.
    full = max(1.0, min(-(-words // shape.words) * width / shape.bits for shape in _SERIES_7.shapes))
    if style in (1, 3) or (style == 0 and words * width <= full * BLOCK_BITS):
        return Cost(lut=_tables(words, width))
    return Cost(lut=weight - _SERIES_7.weight * blocks, bram=blocks)


def weights_style(words: int, width: int, style: int = 0) -> int:
    """STYLE of hg_weights: as asked for, else block memory where that is worth less than tables; 0: the tools choose."""
    block = memory(words, width, 2)
    return 2 if style == 0 and _tables(words, width) > block.lut + BLOCK_TABLES * block.bram else style


def _tables(words: int, width: int) -> float:
    """Tables that hold constants; multiplexers of up to four are there for nothing."""
    if words <= 4:  # a bit is often that of another bit
        return 0.0 if words <= 2 else min(width, 14.0)
    return width * (1.0 if words <= 64 else 2.0 if words <= 128 else 4.0 if words <= 256 else words / 48)


def buffer(words: int, width: int, family: str = "xc7", *, new: bool = False, apart: bool = False) -> Cost:
    """Cost of a memory that is written as well, such as a line buffer or a FIFO.

    new: a word that is read while it is written is the new one. apart: no word is, as the module says.
    """
    if family in FAMILIES:
        return _written(words, width, FAMILIES[family], new, apart)
    if words <= 32:
        return Cost(lut=4 * -(-width // 6))
    banks, blocks = -(-words // 64), memory(words, width, 2)
    pieces = banks * -(-width // 3)
    if pieces * PIECE > blocks.bram * BLOCK:
        return blocks
    return Cost(lut=4 * pieces + (width * -(-banks // 4) if banks > 1 else 0))


def _constants(words: int, width: int, style: int, kinds: Memories) -> Cost:
    """Of constants, on tables of four inputs."""
    weight, blocks = _blocks(words, width, kinds, written=False)
    if style == 2 or (style == 0 and words * width > (weight + READ) * ROM_BITS):
        return Cost(bram=blocks)
    if words <= 4:
        return Cost(lut=0.0 if words <= 2 else min(width, 14.0))
    if words <= 16:
        return Cost(lut=float(width))
    # Multiplexers of tables are there for nothing, or are tables.
    return Cost(lut=width * (1 << (words - 1).bit_length()) / 16 if kinds.tables else width * words / 7)


def _written(words: int, width: int, kinds: Memories, new: bool, apart: bool) -> Cost:
    """Of a memory that is written, on tables of four inputs."""
    weight, blocks = _blocks(words, width, kinds, written=True)
    weight += 0 if apart else WRITE_FIRST if new else READ_FIRST
    address = (words - 1).bit_length()
    if kinds.tables:
        banks = -(-words // PIECE_WORDS)
        pieces = -(-banks * PIECE_BITS * -(-width // PIECE_BITS) // PIECE_BITS)
        weighed = banks * width / PIECE_BITS if kinds.scaled else pieces
        own = weighed * PIECE_WEIGHT + (banks - 1) * width / 2 + (banks / 2 if banks > 1 else 0) + READ
        if own <= weight:
            return Cost(lut=pieces * PIECE_TABLES + (banks - 1) * (1 + width / 2))
    elif words * width <= weight:
        return Cost(lut=words + (words - 1) * width * 0.6, ff=float(words * width))
    if apart:
        return Cost(bram=blocks)
    # What is just being written goes past the block.
    return Cost(lut=width + address / 2, ff=float(width + (0 if new else address)), bram=blocks)


def _blocks(words: int, width: int, kinds: Memories, *, written: bool) -> tuple[float, int]:
    """What Yosys weighs the best shape with, and the blocks of it."""
    found = []
    for shape in kinds.shapes:
        deep = -(-words // shape.words)
        wide = -(-width // shape.group) * shape.group if written else width
        blocks = -(-deep * wide // shape.bits)
        muxes = (deep - 1) * width / 2 + (deep / 2 if written and deep > 1 else 0)
        found.append((kinds.weight * blocks + muxes, blocks))
    return min(found)
