"""How a frame lies on a port: words of tdata, and the byte slots in them that hold the beats of the core.

The bus carries the bytes of a frame's beats in order, the lowest first. Each beat has a slot of whole bytes, filled up
with zeros. If a beat fits a word, its slot has a power of two of bytes, so a word holds 1, 2, 4 ... slots. A longer
beat begins and ends with a word. A frame begins a new word.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Widths of tdata in bits that a user can request.
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
#: The widths that `auto` chooses from.
AUTO_WIDTHS = (32, 64, 128, 256, 512)
#: AXI4-Lite: (direction, bits, name); addresses have the bits of the port.
AXI_LITE = (
    ("input", 0, "awaddr"),
    ("input", 1, "awvalid"),
    ("output", 1, "awready"),
    ("input", 32, "wdata"),
    ("input", 4, "wstrb"),
    ("input", 1, "wvalid"),
    ("output", 1, "wready"),
    ("output", 2, "bresp"),
    ("output", 1, "bvalid"),
    ("input", 1, "bready"),
    ("input", 0, "araddr"),
    ("input", 1, "arvalid"),
    ("output", 1, "arready"),
    ("output", 32, "rdata"),
    ("output", 2, "rresp"),
    ("output", 1, "rvalid"),
    ("input", 1, "rready"),
)


@dataclass(frozen=True)
class BusLayout:
    """A frame on a port.

    `width`: bits of tdata. `beats`: beats a frame of the core. `beat_bits`: bits of a beat. `slot_bytes`: bytes of a
    slot.
    """

    width: int
    beats: int
    beat_bits: int
    slot_bytes: int

    @property
    def word_bytes(self) -> int:
        return self.width // 8

    @property
    def slots(self) -> int:
        """Beats in a word, 1 if a beat takes several words."""
        return max(1, self.word_bytes // self.slot_bytes)

    @property
    def parts(self) -> int:
        """Words of a beat, 1 if a word holds several beats."""
        return max(1, self.slot_bytes // self.word_bytes)

    @property
    def words(self) -> int:
        """Words of a frame."""
        return -(-self.beats // self.slots) * self.parts

    @property
    def frame_bytes(self) -> int:
        return self.words * self.word_bytes

    @property
    def last_bytes(self) -> int:
        """Bytes of the last word of a frame that hold slots."""
        return self.beats * self.slot_bytes - (self.words - 1) * self.word_bytes

    @property
    def plain(self) -> bool:
        """True if every word is a beat."""
        return self.slots == self.parts == 1


def bus_layout(beat_bits: int, beats: int, width: int | None) -> BusLayout:
    """The layout of frames of `beats` beats. `width`: one of WIDTHS, or None if tdata is a beat in whole bytes."""
    size = -(-beat_bits // 8)
    if width is None:
        return BusLayout(8 * size, beats, beat_bits, size)
    word = width // 8
    slot = 1 << (size - 1).bit_length() if size <= word else -(-size // word) * word
    return BusLayout(width, beats, beat_bits, slot)
