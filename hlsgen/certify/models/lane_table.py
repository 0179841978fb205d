"""Integer model of hg_lane_table: a lookup table for each lane, over the bits of its input that matter."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.arithmetic import LaneModel
from hlsgen.certify.netlist_reader import Cell, Memories, broken, split
from hlsgen.numerics.fixed import Array

#: Most bits of x that the model supports, most bits of the number of an entry, and most inputs of a lane.
_MOST_BITS, _MOST_INDEX, _MOST_INPUTS = 48, 16, 1 << 20


class LaneTableModel(LaneModel):
    """hg_lane_table: entry ((x + B) >> SHIFT) mod 2^BITS of the table of a lane."""

    names = frozenset("LANES IN_W IN_SIGNED OUT_W SHIFTS BITS OFFSETS SIZE TABLES ADD".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        del memories
        super().__init__(cell)
        shift, bits = (self._lanes(name, 8) for name in ("SHIFTS", "BITS"))
        if self.in_bits > _MOST_BITS or self.out_bits > _MOST_BITS or cell.number("ADD") > 1:
            raise broken(cell.name, "is larger than its model.")
        if (shift > self.in_bits).any() or (bits > _MOST_INDEX).any():
            raise broken(cell.name, "has shifts or tables that hg_lane_table does not support.")
        offset = self._lanes("OFFSETS", self.in_bits + 1)
        sizes = (self.out_bits << bits).tolist()
        if cell.number("SIZE") != sum(sizes):
            raise broken(cell.name, f"SIZE is {cell.number('SIZE')}, its tables have {sum(sizes)} bits.")
        tables = cell.sized("TABLES", sum(sizes)).value
        text = format(tables, f"0{sum(sizes)}b")[::-1]
        self.entries: list[tuple[int, int, tuple[int, ...]]] = []
        start = 0
        for lane, size in enumerate(sizes):
            words = np.array(list(text[start : start + size]), np.int64).reshape(self.out_bits, -1)
            codes = (words << np.arange(self.out_bits)[:, None]).sum(axis=0)
            self.entries.append((int(offset[lane]), int(shift[lane]), tuple(codes.tolist())))
            start += size

    def _lanes(self, name: str, bits: int) -> Array:
        value = self.cell.sized(name, self.lanes * bits).value
        return np.asarray(split([value], self.lanes, bits)[0].astype(np.int64))

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return self.entries[lane]

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        offset, shift, codes = self.entries[lane]
        return np.asarray(np.array(codes, np.int64)[((x + offset) >> shift) & (len(codes) - 1)])

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All inputs at which the number of the entry changes. Raises HG055 if they are too many to list."""
        offset, shift, codes = self.entries[lane]
        if len(codes) == 1:
            return np.zeros(0, np.int64)
        first, last = (lo + offset) >> shift, (hi + offset) >> shift
        if last - first > _MOST_INPUTS:
            raise broken(self.cell.name, f"lane {lane}: {last - first} changes of its entry are too many to list.")
        return (np.arange(first + 1, last + 1) << shift) - offset
