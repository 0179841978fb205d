"""Integer models of modules that follow float32 or that have two operands: hg_scale_f32, hg_pair_add, hg_pair_scale."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.arithmetic import LaneModel, jumps
from hlsgen.certify.netlist_reader import Cell, Memories, broken, split, two_complement
from hlsgen.numerics.fixed import Array


def _length(x: Array) -> Array:
    """Bits of numbers below 2^53."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


class FloatScaleModel(LaneModel):
    """hg_scale_f32: |x + B| shifted, saturated, rounded to 24 bits, times M; rounded with a window around ties.

    The window: in float32, a fraction within half a unit in the last place of 1/2 becomes 1/2.
    """

    names = frozenset(
        "LANES FOLDS IN_W IN_SIGNED OFFSET_W LEFT U_W M_W SHIFT Z_W STYLE STAGES CONSTANTS OUT_W LOW HIGH FILE".split()
    )

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        widths = [cell.number("M_W", 1), cell.number("OFFSET_W"), cell.number("LEFT").bit_length(), cell.number("Z_W")]
        self.wide, self.shift = cell.number("U_W", 1), cell.number("SHIFT", 1)
        style = cell.number("STYLE")
        self.low, self.high = self.clamp()
        sums = max(self.in_bits + 1, widths[1]) + 1 + cell.number("LEFT")
        if max(sums, widths[3]) > 62 or self.wide > 52 or widths[0] > 24 or self.shift > 1024:
            raise broken(cell.name, "is larger than its model.")
        self.kind = np.int64 if max(self.wide + 1 + widths[0], self.shift) < 62 else object
        if max(0, self.wide + 1 + widths[0] - self.shift) > 52 or style > 2 or cell.number("STAGES", 1) > 64:
            raise broken(cell.name, "SHIFT, STYLE or STAGES has a value that hg_scale_f32 does not support.")
        words = np.array(memories.words(cell.file, self.folds, self.lanes * sum(widths)), object)
        lanes, fields = words[:, None] >> (sum(widths) * np.arange(self.lanes).astype(object)), []
        for width in widths:
            fields.append((lanes & ((1 << width) - 1)).astype(np.int64))
            lanes = lanes >> width
        self.factor, offset, self.left_shift, zero = fields
        self.offset = two_complement(offset, widths[1]) if widths[1] else offset
        self.zero = two_complement(zero, widths[3]) if widths[3] else zero
        if (self.left_shift > cell.number("LEFT")).any():
            raise broken(cell.name, "has a left shift above LEFT.")
        constants = cell.sized("CONSTANTS", self.lanes * widths[0]).value
        if style == 2:
            if self.folds != 1:
                raise broken(cell.name, "STYLE 2 has one fold.")
            self.factor = split([constants], self.lanes, widths[0])

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return tuple(int(v[fold, lane]) for v in (self.factor, self.offset, self.left_shift, self.zero))

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        fold_lane = fold, lane
        value = (x + self.offset[fold_lane]) << self.left_shift[fold_lane]
        size = np.minimum(np.abs(value), (1 << self.wide) - 1)
        drop = np.maximum(_length(size) - 24, 0)
        mantissa = size >> drop
        remainder, half = size - (mantissa << drop), (1 << drop) >> 1
        mantissa = mantissa + ((remainder > half) | ((remainder == half) & (drop > 0) & (mantissa & 1 == 1)))
        product = (mantissa << drop).astype(self.kind) * int(self.factor[fold_lane])
        integer_part = product >> self.shift
        part = product - (integer_part << self.shift)
        # In units of 2^-end: the upper bits of the fraction, and half a unit in the last place of integer_part + 1/2.
        end = min(25, self.shift)
        top, below = part >> (self.shift - end), part & ((1 << (self.shift - end)) - 1) != 0
        length = _length(integer_part)
        place = length + end - 25
        tie_window = np.where((place >= 0) & (length <= 22), 1 << np.clip(place, 0, 60), 0)
        twice = 2 * top + below
        up = np.where(integer_part & 1 == 0, twice > (1 << end) + 2 * tie_window, twice + 2 * tie_window >= 1 << end)
        integer_part = (integer_part + up).astype(np.int64)
        total = self.zero[fold_lane] + np.where(value < 0, -integer_part, integer_part)
        return np.asarray(np.clip(total, self.low, self.high))

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """Monotone on each side of -B: a rounded magnitude times M >= 0; the window depends on the integer part."""
        centre = min(max(-int(self.offset[fold, lane]), lo), hi + 1)
        parts = [(lo, centre - 1), (centre, hi)]
        inner = [jumps(lambda x: self.apply(fold, lane, x), low, high) for low, high in parts if low <= high]
        return np.concatenate([[centre], *inner])


class _Pair(LaneModel):
    """Base class of modules with two operands in 16 bits: every input is evaluated."""

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return ()

    def operands(self, x: Array, signed: bool) -> tuple[Array, Array]:
        a, b = x & 255, x >> 8 & 255
        return (two_complement(a, 8), two_complement(b, 8)) if signed else (a, b)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        return np.arange(lo, hi + 1)


class PairAddModel(_Pair):
    """hg_pair_add: the steps of hg_eltwise_add_fn."""

    names = frozenset("LANES ZP0 ZP1 ZPO S0 S1 SO SH".split())
    widths = 16, 8

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.zero = [cell.sized(name, 16).signed for name in ("ZP0", "ZP1", "ZPO")]
        self.scale = [cell.sized(name, bits).value for name, bits in (("S0", 16), ("S1", 16), ("SO", 8))]
        self.shift = cell.sized("SH", 8).signed

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        a, b = self.operands(x, True)
        first, second = (
            two_complement((v + zero) * scale & 0xFFFFFFFF, 32)
            for v, zero, scale in zip((a, b), self.zero, self.scale, strict=False)
        )
        total = np.clip(first + second, -(1 << 31), (1 << 31) - 1)
        total = two_complement(total * self.scale[2] & 0xFFFFFFFF, 32)
        if abs(self.shift) >= 32:
            rounded = np.zeros_like(total)
        elif self.shift <= 0:
            rounded = two_complement(total << -self.shift & 0xFFFFFFFF, 32)
        else:
            floor = total >> self.shift
            remainder, half = total - (floor << self.shift), 1 << (self.shift - 1)
            rounded = floor + ((remainder > half) | ((remainder == half) & (floor & 1 == 1)))
        narrow = np.clip(rounded, -(1 << 15), (1 << 15) - 1)
        return np.asarray(np.clip(narrow - self.zero[2], -128, 127))


class PairScaleModel(_Pair):
    """hg_pair_scale: clamp(round((a * MA + b * MB + R) / 2^SHIFT)), or the same for the product of both."""

    names = frozenset("LANES SIGNED PRODUCT ZA ZB M_W MA MB R_W R SHIFT EVEN OUT_W LOW HIGH".split())
    widths = 16, None

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.pair_signed, self.product, self.even = (self.flag(name) for name in ("SIGNED", "PRODUCT", "EVEN"))
        width, r_bits, self.shift = cell.number("M_W", 1), cell.number("R_W", 1), cell.number("SHIFT", 1)
        if max(width + 20, r_bits, self.shift + self.out_bits) > 60:
            raise broken(cell.name, "is larger than its model.")
        self.zero = [cell.sized(name, 9).signed for name in ("ZA", "ZB")]
        self.scale = [cell.sized(name, width).signed for name in ("MA", "MB")]
        self.offset = cell.sized("R", r_bits).signed
        self.low, self.high = self.clamp()

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        a, b = self.operands(x, self.pair_signed)
        if self.product:
            total = (a - self.zero[0]) * (b - self.zero[1]) * self.scale[0] + self.offset
        else:
            total = a * self.scale[0] + b * self.scale[1] + self.offset
        floor = total >> self.shift
        remainder, half = total - (floor << self.shift), 1 << (self.shift - 1)
        if self.even:
            floor = floor + ((remainder > half) | ((remainder == half) & (floor & 1 == 1)))
        return np.asarray(np.clip(floor, self.low, self.high))
