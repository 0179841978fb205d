"""Integer model of hg_lane_shift: a shift, a rounding, an offset and bounds for each lane."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.arithmetic import LaneModel, jumps
from hlsgen.certify.netlist_reader import Cell, Memories, broken, split, two_complement
from hlsgen.numerics.fixed import Array

#: Bits of a number that int64 holds with a margin.
_NARROW = 62
#: Bits of FLAGS.
_UNSIGNED, _CLAMPS_LOW, _CLAMPS_HIGH, _CONSTANT = 1, 2, 4, 8


class LaneShiftModel(LaneModel):
    """hg_lane_shift: clamp(round(((x << LEFT) + B) / 2^SHIFT)) with numbers of its own in each lane."""

    names = frozenset("LANES IN_W IN_SIGNED OUT_W SUM_W WIDTHS LEFTS SHIFTS MODES FLAGS OFFSETS LOWS HIGHS ADD".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        del memories
        super().__init__(cell)
        sum_bits = cell.number("SUM_W", 1)
        if max(sum_bits, self.in_bits, self.out_bits) >= _NARROW or cell.number("ADD") > 1:
            raise broken(cell.name, "is larger than its model.")
        self.width, self.left, self.shift, self.mode, self.flags = (
            self._lanes(name, 8) for name in ("WIDTHS", "LEFTS", "SHIFTS", "MODES", "FLAGS")
        )
        self.offset = two_complement(self._lanes("OFFSETS", sum_bits + 1), sum_bits + 1)
        self.low, self.high = (
            two_complement(self._lanes(name, self.out_bits + 1), self.out_bits + 1) for name in ("LOWS", "HIGHS")
        )
        if (
            (self.width < 1).any()
            or (self.width > sum_bits).any()
            or (self.shift >= self.width).any()
            or (self.left + self.in_bits >= _NARROW).any()
            or (self.mode > 6).any()
            or (self.flags > 15).any()
        ):
            raise broken(cell.name, "has widths, shifts, roundings or flags that hg_lane_shift does not support.")
        if (self.low > self.high).any():
            raise broken(cell.name, "a lowest code exceeds the highest.")

    def _lanes(self, name: str, bits: int) -> Array:
        value = self.cell.sized(name, self.lanes * bits).value
        return np.asarray(split([value], self.lanes, bits)[0].astype(np.int64))

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        fields = (self.width, self.left, self.shift, self.mode, self.flags, self.offset, self.low, self.high)
        return tuple(int(field[lane]) for field in fields)

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        flags, shift = int(self.flags[lane]), int(self.shift[lane])
        if flags & _CONSTANT:
            return np.full(len(x), self.low[lane])
        total = self._cut(lane, (x << self.left[lane]) + self.offset[lane])
        down = total >> shift
        fraction = total - (down << shift)
        twice, unit = 2 * fraction, 1 << shift
        match int(self.mode[lane]):
            case 0:
                up = (twice > unit) | ((twice == unit) & (down % 2 == 1))
            case 1:
                up = fraction > 0
            case 2:
                up = np.zeros(len(x), np.bool_)
            case 3:
                up = (fraction > 0) & (total >= 0)
            case 4:
                up = (fraction > 0) & (total < 0)
            case 5:
                up = (twice > unit) | ((twice == unit) & (total >= 0))
            case _:
                up = (twice > unit) | ((twice == unit) & (total < 0))
        code = down + up
        if flags & _CLAMPS_LOW:
            code = np.maximum(code, self.low[lane])
        if flags & _CLAMPS_HIGH:
            code = np.minimum(code, self.high[lane])
        return np.asarray(code)

    def _cut(self, lane: int, total: Array) -> Array:
        """The sum in the bits of its lane."""
        width = int(self.width[lane])
        bits = total & ((1 << width) - 1)
        return bits if int(self.flags[lane]) & _UNSIGNED else two_complement(bits, width)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """Inputs at which the code changes between lo and hi, found by bisection: the function is monotone there.

        Raises HG055 if a sum wraps, as the function is then not monotone.
        """
        ends = (np.array([lo, hi]) << self.left[lane]) + self.offset[lane]
        if not int(self.flags[lane]) & _CONSTANT and (self._cut(lane, ends) != ends).any():
            raise broken(self.cell.name, f"lane {lane}: sums of {ends[0]}..{ends[1]} do not fit its bits.")
        return jumps(lambda x: self.apply(fold, lane, x), lo, hi)
