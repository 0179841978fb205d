"""Resources of memories: LUTs, registers and block RAM, as Yosys maps them on a family of devices."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.dataflow.resources import Cost

#: Bits of constants from which a block RAM of Xilinx 7 series is used, if the tools choose.
BLOCK_BITS = 8256
#: Weights in Yosys' choice: a memory of four LUTs of Xilinx 7 series with 64 x 3 bits, and a block RAM.
PIECE, BLOCK = 8, 129
#: Price of a block RAM in LUTs of Xilinx 7 series. It is more than the 72 LUTs that hold 128 words of its width. It is
#: fewer than the 144 LUTs that hold 256 words. Devices have some 190 LUTs for each block RAM.
BLOCK_RAM_LUTS = 128
#: STYLE of hg_weights for each kind of memory that a unit may name.
KIND_STYLES = {"tables": 3, "blocks": 2}
#: Weights in Yosys' choice: a read port, and the logic around a block RAM whose word may be read while it is written.
READ, READ_FIRST, WRITE_FIRST = 2, 14, 8
#: Words and bits of a memory made of LUTs, its number of LUTs, and its weight in Yosys' choice.
PIECE_WORDS, PIECE_BITS, PIECE_TABLES, PIECE_WEIGHT = 16, 4, 4, 4
#: Bits of constants in LUTs that have weight 1 in Yosys' choice.
ROM_BITS = 16


@dataclass(frozen=True)
class Shape:
    """A block RAM as `words` words of `bits` bits; a written memory uses its bits in groups of `group`."""

    words: int
    bits: int
    group: int


@dataclass(frozen=True)
class Memories:
    """The memories of a device family.

    `weight`: the weight of a block RAM in Yosys' choice.

    `lut_memories`: memories can be made of LUTs as well. `scaled`: a LUT memory of which only some bits are used has
    less weight.
    """

    weight: int
    shapes: tuple[Shape, ...]
    lut_memories: bool
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
#: Xilinx 7 series; its LUT memories are counted separately.
_SERIES_7 = Memories(BLOCK, _18_KBIT, lut_memories=True)
#: Families whose memories differ from Xilinx 7 series.
FAMILIES = {
    "ecp5": Memories(128, _18_KBIT, lut_memories=True),
    "gowin": Memories(128, _18_KBIT, lut_memories=True, scaled=True),
    "ice40": Memories(64, _4_KBIT, lut_memories=False),
}


def memory(words: int, width: int, style: int = 0, family: str = "xc7") -> Cost:
    """Cost of a memory of constants; style as in hg_weights."""
    if family in FAMILIES:
        return _constants(words, width, style, FAMILIES[family])
    weight, blocks = _blocks(words, width, _SERIES_7, written=False)
    # A block RAM of which a few bits are used has little weight.
    full = max(1.0, min(-(-words // shape.words) * width / shape.bits for shape in _SERIES_7.shapes))
    if style in (1, 3) or (style == 0 and words * width <= full * BLOCK_BITS):
        return Cost(lut=_constant_luts(words, width))
    return Cost(lut=weight - _SERIES_7.weight * blocks, bram=blocks)


def weights_style(words: int, width: int, style: int = 0) -> int:
    """STYLE of hg_weights: `style` if given, else block RAM if it costs less than LUTs; 0: the tools choose."""
    block = memory(words, width, 2)
    return 2 if style == 0 and _constant_luts(words, width) > block.lut + BLOCK_RAM_LUTS * block.bram else style


def _constant_luts(words: int, width: int) -> float:
    """LUTs that hold constants; multiplexers of up to four are free."""
    # Few words have many equal bits.
    if words <= 4:
        return 0.0 if words <= 2 else min(width, 14.0)
    return width * (1.0 if words <= 64 else 2.0 if words <= 128 else 4.0 if words <= 256 else words / 48)


def buffer(
    words: int, width: int, family: str = "xc7", *, write_first: bool = False, no_collision: bool = False
) -> Cost:
    """Cost of a memory that is written as well, such as a line buffer or a FIFO.

    write_first: a word that is read while it is written has the new value. no_collision: the module guarantees that no
    word is read while it is written.
    """
    if family in FAMILIES:
        return _written(words, width, FAMILIES[family], write_first, no_collision)
    if words <= 32:
        return Cost(lut=4 * -(-width // 6))
    banks, blocks = -(-words // 64), memory(words, width, 2)
    pieces = banks * -(-width // 3)
    if pieces * PIECE > blocks.bram * BLOCK:
        return blocks
    return Cost(lut=4 * pieces + (width * -(-banks // 4) if banks > 1 else 0))


def _constants(words: int, width: int, style: int, memories: Memories) -> Cost:
    """Cost of constants on LUTs of four inputs."""
    weight, blocks = _blocks(words, width, memories, written=False)
    if style == 2 or (style == 0 and words * width > (weight + READ) * ROM_BITS):
        return Cost(bram=blocks)
    if words <= 4:
        return Cost(lut=0.0 if words <= 2 else min(width, 14.0))
    if words <= 16:
        return Cost(lut=float(width))
    # Multiplexers of LUTs are free, or are LUTs.
    return Cost(lut=width * (1 << (words - 1).bit_length()) / 16 if memories.lut_memories else width * words / 7)


def _written(words: int, width: int, memories: Memories, write_first: bool, no_collision: bool) -> Cost:
    """Cost of a memory that is written, on LUTs of four inputs."""
    weight, blocks = _blocks(words, width, memories, written=True)
    weight += 0 if no_collision else WRITE_FIRST if write_first else READ_FIRST
    address = (words - 1).bit_length()
    if memories.lut_memories:
        banks = -(-words // PIECE_WORDS)
        pieces = -(-banks * PIECE_BITS * -(-width // PIECE_BITS) // PIECE_BITS)
        weighed = banks * width / PIECE_BITS if memories.scaled else pieces
        lut_weight = weighed * PIECE_WEIGHT + (banks - 1) * width / 2 + (banks / 2 if banks > 1 else 0) + READ
        if lut_weight <= weight:
            return Cost(lut=pieces * PIECE_TABLES + (banks - 1) * (1 + width / 2))
    elif words * width <= weight:
        return Cost(lut=words + (words - 1) * width * 0.6, ff=float(words * width))
    if no_collision:
        return Cost(bram=blocks)
    # The word that is being written bypasses the block RAM.
    return Cost(lut=width + address / 2, ff=float(width + (0 if write_first else address)), bram=blocks)


def _blocks(words: int, width: int, memories: Memories, *, written: bool) -> tuple[float, int]:
    """The weight of the best shape in Yosys' choice, and its number of block RAMs."""
    candidates = []
    for shape in memories.shapes:
        deep = -(-words // shape.words)
        used_width = -(-width // shape.group) * shape.group if written else width
        blocks = -(-deep * used_width // shape.bits)
        muxes = (deep - 1) * width / 2 + (deep / 2 if written and deep > 1 else 0)
        candidates.append((memories.weight * blocks + muxes, blocks))
    return min(candidates)
