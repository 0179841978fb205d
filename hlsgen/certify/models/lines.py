"""Integer model of hg_lines: lines between knots, symmetric about zero."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.arithmetic import LaneModel
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.numerics.fixed import Array

#: Most bits of numbers of its model, and most inputs that it evaluates.
_MAX_BITS, _MOST_INPUTS = 60, 1 << 20


class LinesModel(LaneModel):
    """hg_lines: the scaled magnitude selects a knot; its value, and its rise times the fraction, are summed."""

    names = frozenset(
        "LANES IN_W IN_SIGNED OUT_W M_W M SHIFT ADDR_W FRAC_W VALUE_W RISE_W LEFT RIGHT MIRROR STYLE M_STAGES STAGES "
        "FILE".split()
    )

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        m_bits = cell.number("M_W", 1)
        self.multiplier = cell.sized("M", m_bits).signed
        self.shift, self.left, self.right = (cell.number(name) for name in ("SHIFT", "LEFT", "RIGHT"))
        self.fraction = cell.number("FRAC_W", 1)
        self.mirror = cell.sized("MIRROR", self.out_bits).value
        address, value_bits, rise_bits = (cell.number(name, 1) for name in ("ADDR_W", "VALUE_W", "RISE_W"))
        self.flag("STYLE")
        for name in ("M_STAGES", "STAGES"):
            cell.number(name, 1)
        widths = (self.in_bits + m_bits + 2, value_bits + self.left, rise_bits + self.fraction + 3, self.right)
        if max(*widths, self.out_bits, self.shift) > _MAX_BITS or address > 16 or self.shift > self.in_bits + m_bits:
            raise broken(cell.name, "is larger than its model.")
        if self.multiplier < 0:
            raise broken(cell.name, f"M is {self.multiplier}, less than 0.")
        words = memories.fields(cell.file, 1 << address, 1, value_bits + rise_bits)[:, 0]
        self.values, self.rises = words & ((1 << value_bits) - 1), words >> value_bits

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return ()

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        scaled = x * self.multiplier
        if self.shift:
            scaled = (scaled + (1 << (self.shift - 1))) >> self.shift
        size = np.where(scaled < 0, -scaled, scaled)
        knot, fraction = size >> self.fraction, size % (1 << self.fraction)
        knot = np.where(knot < len(self.values), knot, len(self.values) - 1)
        height = (self.values[knot] * (1 << self.left) + self.rises[knot] * fraction) >> self.right
        return np.asarray(np.where(scaled < 0, self.mirror - height, height))

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        if hi - lo >= _MOST_INPUTS:
            raise broken(self.cell.name, f"has {hi - lo + 1} inputs, more than {_MOST_INPUTS}.")
        codes = self.apply(fold, lane, np.arange(lo, hi + 1))
        return np.asarray(np.flatnonzero(codes[1:] != codes[:-1]) + lo + 1)
