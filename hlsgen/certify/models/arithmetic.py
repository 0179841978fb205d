"""Integer models of the modules that compare or compute: hg_threshold, hg_compare, hg_shift, hg_scale.

Each model follows the contract at the head of its Verilog file, and is exact. A number that the hardware holds in
enough bits is a plain integer here. A number that the hardware cuts is cut here too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import lcm

import numpy as np

from hlsgen.certify.netlist_reader import Cell, Memories, broken, split, two_complement
from hlsgen.numerics.fixed import Array

#: Bits of a number that int64 holds with a margin, and of the widest supported number.
_NARROW, _WIDE = 62, 1024


def jumps(apply: Callable[[Array], Array], lo: int, hi: int) -> Array:
    """All x of lo + 1..hi with apply(x) != apply(x - 1), of a monotone function.

    It bisects: between two inputs with equal results, a monotone function does not change.
    """
    low, high = np.array([lo]), np.array([hi])
    result_low, result_high = apply(low), apply(high)
    changes = []
    while len(low):
        different = result_low != result_high
        adjacent = different & (high - low == 1)
        changes.append(high[adjacent])
        undecided = different & ~adjacent
        low, high, result_low, result_high = (
            low[undecided],
            high[undecided],
            result_low[undecided],
            result_high[undecided],
        )
        middle = low + ((high - low) >> 1)
        result_middle = apply(middle)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        result_low, result_high = (
            np.concatenate([result_low, result_middle]),
            np.concatenate([result_middle, result_high]),
        )
    return np.concatenate(changes)


class LaneModel(ABC):
    """Base class of the models of modules with lanes and folds. Raises HG055 for wrong parameters."""

    names: frozenset[str] = frozenset()
    #: Bits of input and output, if the parameters IN_W and OUT_W do not state them.
    widths: tuple[int | None, int | None] = (None, None)

    def __init__(self, cell: Cell) -> None:
        if set(cell.parameters) != self.names:
            unexpected = sorted(set(cell.parameters) ^ self.names)
            raise broken(cell.name, f"{cell.module} has other parameters than its model: {', '.join(unexpected)}.")
        self.cell = cell
        self.lanes = cell.number("LANES", 1)
        self.folds = cell.number("FOLDS", 1) if "FOLDS" in self.names else 1
        self.in_bits, self.out_bits = (
            width or cell.number(name, 1) for width, name in zip(self.widths, ("IN_W", "OUT_W"), strict=True)
        )
        self.signed = self.flag("IN_SIGNED") if "IN_SIGNED" in self.names else None

    def flag(self, name: str) -> bool:
        value = self.cell.number(name)
        if value > 1:
            raise broken(self.cell.name, f"parameter {name} of {self.cell.module} is {value}.")
        return bool(value)

    def clamp(self) -> tuple[int, int]:
        """The bounds LOW and HIGH. Raises HG055 if LOW > HIGH, because that clamp is not monotone."""
        low, high = (self.cell.sized(name, self.out_bits + 1).signed for name in ("LOW", "HIGH"))
        if low > high:
            raise broken(self.cell.name, f"LOW is {low}, HIGH is {high}.")
        return low, high

    def holds(self, lo: int, hi: int) -> bool:
        """True if the input can hold every number of lo..hi."""
        lowest, bits = (-(1 << (self.in_bits - 1)), self.in_bits - 1) if self.signed else (0, self.in_bits)
        return lowest <= lo and hi < 1 << bits

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return fold, lane

    @abstractmethod
    def apply(self, fold: int, lane: int, x: Array) -> Array:
        """The output integer for each x, before it is cut to the width of the output."""

    @abstractmethod
    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All x of lo + 1..hi with apply(x) != apply(x - 1), and perhaps other x."""


class CascadeModel:
    """Several units in a chain. The output can change only where the output of the first unit changes.

    If the first unit only adds a number to x, the changes of the second unit are used, moved by that number.
    """

    def __init__(self, units: list[LaneModel]) -> None:
        self.units = units
        self.folds = lcm(*(unit.folds for unit in units))

    @property
    def modules(self) -> list[str]:
        return [unit.cell.module for unit in self.units]

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return tuple(unit.constants(fold % unit.folds, lane) for unit in self.units)

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        for unit in self.units:
            if unit is not self.units[0]:
                x = x & ((1 << unit.in_bits) - 1)
                x = two_complement(x, unit.in_bits) if unit.signed else x
            x = unit.apply(fold % unit.folds, lane, x)
        return x

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        first, *later_units = self.units
        if isinstance(first, ShiftModel) and later_units:
            second, added = later_units[0], int(first.offset[fold % first.folds, lane])
            if first.only_adds(added, lo, hi) and second.holds(lo + added, hi + added):
                return second.changes(fold % second.folds, lane, lo + added, hi + added) - added
        return first.changes(fold % first.folds, lane, lo, hi)

    def changes_nothing(self, lo: int, hi: int) -> bool:
        """True if every lane is proven to return each number of lo..hi unchanged."""
        return all(isinstance(unit, ShiftModel) and unit.changes_nothing(lo, hi) for unit in self.units)


class ThresholdModel(LaneModel):
    """hg_threshold: a path through a binary tree of comparisons; the code is made of their results."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED BITS OUT_W OFFSET FALLING FILE EVERY".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.levels = cell.number("BITS", 1)
        self.offset = cell.number("OFFSET", -(1 << 31))
        falling = self.flag("FALLING")
        width = self.in_bits + (1 if self.signed else 2)
        if width + falling > _NARROW or self.levels > 24 or self.out_bits > 32 or self.lanes > 9999:
            raise broken(cell.name, "is larger than its model.")
        self.threshold: list[Array] = []
        self.turned: list[Array] = []
        for level in range(self.levels):
            count = self.folds << level
            words = np.stack(
                [
                    memories.fields(f"{cell.file}_{lane:04d}_{level:02d}.mem", count, 1, width + falling)[:, 0]
                    for lane in range(self.lanes)
                ]
            ).reshape(self.lanes, self.folds, 1 << level)
            self.threshold.append(two_complement(words & ((1 << width) - 1), width))
            self.turned.append(words >> width != 0)

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        node = np.zeros(len(x), np.int64)
        for threshold, falling in zip(self.threshold, self.turned, strict=True):
            reached = (x >= threshold[lane, fold][node]) ^ falling[lane, fold][node]
            node = 2 * node + reached
        return node + self.offset

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All thresholds: between two of them, no comparison changes."""
        return np.concatenate([threshold[lane, fold] for threshold in self.threshold])


class CompareModel(LaneModel):
    """hg_compare: compares with every threshold; the code is the exclusive or of all reached thresholds' changes."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED STEPS T_W OUT_W OFFSET FALLING FILE".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        steps, width, falling = cell.number("STEPS", 1), cell.number("T_W", self.in_bits), self.flag("FALLING")
        self.offset = cell.sized("OFFSET", self.out_bits).value
        if width + falling > _NARROW or self.out_bits > 32:
            raise broken(cell.name, "is larger than its model.")
        words = memories.fields(cell.file, self.folds, self.lanes * steps, width + falling)
        words = words.reshape(self.folds, self.lanes, steps)
        threshold = words & ((1 << width) - 1)
        self.threshold = two_complement(threshold, width) if self.signed else threshold
        self.turned = words >> width != 0

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        code = np.full(len(x), self.offset)
        rows = zip(self.threshold[fold, lane].tolist(), self.turned[fold, lane].tolist(), strict=True)
        for i, (threshold, turned) in enumerate(rows):
            change = (self.offset + i) ^ (self.offset + i + 1)
            code = np.where((x >= threshold) ^ turned, code ^ change, code)
        return code

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        return np.asarray(self.threshold[fold, lane])


class ShiftModel(LaneModel):
    """hg_shift: clamp(round(((x << LEFT) + B) / 2^SHIFT))."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED LEFT B_W SHIFT MODE OUT_W LOW HIGH FILE ADD SPLIT".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        if cell.parameters.get("ADD") == 0:
            self.names = self.names - {"FILE"}
        if "FLIP" in cell.parameters:  # the model works on bits after the flip: see `adder_modules.check_flips`
            self.names = self.names | {"FLIP"}
        super().__init__(cell)
        self.left_shift, self.shift, self.mode = (cell.number(name) for name in ("LEFT", "SHIFT", "MODE"))
        self.low, self.high = self.clamp()
        width = cell.number("B_W", 1)
        if max(self.in_bits + 1 + self.left_shift, width, self.shift, self.out_bits) >= _NARROW:
            raise broken(cell.name, "is larger than its model.")
        self.offset = np.zeros((self.folds, self.lanes), np.int64)
        if cell.number("ADD"):
            self.offset = two_complement(memories.fields(cell.file, self.folds, self.lanes, width), width)

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return (int(self.offset[fold, lane]),)

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        total = (x << self.left_shift) + self.offset[fold, lane]
        floor = total >> self.shift
        part = total - (floor << self.shift)
        negative, odd = total < 0, floor & 1 == 1
        middle = 1 << max(self.shift - 1, 0)
        half = (part >= middle) & (self.shift > 0)
        not_tie = (part != 0) & (part != middle)
        match self.mode:
            case 0:
                up = half & (not_tie | odd)
            case 1:
                up = half | not_tie
            case 3:
                up = ~negative & (half | not_tie)
            case 4:
                up = negative & (half | not_tie)
            case 5:
                up = half & (not_tie | ~negative)
            case 6:
                up = half & (not_tie | negative)
            case _:
                up = np.zeros_like(half)
        return np.asarray(np.clip(floor + up, self.low, self.high))

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """The function is monotone: a sum with x, a division rounded by a fixed rule, a clamp."""
        return jumps(lambda x: self.apply(fold, lane, x), lo, hi)

    def only_adds(self, added: int, lo: int, hi: int) -> bool:
        """True if the result is x + added for each number x of lo..hi."""
        return not self.left_shift and not self.shift and self.low <= lo + added and hi + added <= self.high

    def changes_nothing(self, lo: int, hi: int) -> bool:
        """True if the result is x for each number x of lo..hi."""
        is_identity = not self.left_shift and not self.shift and not self.offset.any()
        return is_identity and self.low <= lo and hi <= self.high


class ScaleModel(LaneModel):
    """hg_scale: clamp(round((x * M + R) / 2^SHIFT)), with one R below a centre and another from the centre on."""

    names = frozenset(
        (
            "LANES FOLDS IN_W IN_SIGNED M_W R_W R_LSB SHIFT MODE SYMMETRIC STYLE STAGES CONSTANTS OUT_W LOW HIGH FILE"
        ).split()
    )

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        m_bits, r_bits, zeros = cell.number("M_W", 1), cell.number("R_W", 1), cell.number("R_LSB")
        self.shift, self.mode, self.symmetric = (cell.number(name) for name in ("SHIFT", "MODE", "SYMMETRIC"))
        style = cell.number("STYLE")
        self.low, self.high = self.clamp()
        if self.mode > 3 or self.symmetric > 2 or style > 2 or cell.number("STAGES", 1) > 64:
            raise broken(cell.name, "MODE, SYMMETRIC, STYLE or STAGES has a value that hg_scale does not support.")
        if max(m_bits, r_bits, zeros, self.shift) > _WIDE:
            raise broken(cell.name, "is larger than its model.")
        c_bits = self.in_bits + 1
        parts = [m_bits, r_bits] + [1] * (self.mode == 3) + [r_bits, c_bits] * (self.symmetric == 2)
        words = np.array(memories.words(cell.file, self.folds, self.lanes * sum(parts)), object)
        fields, place = [], 0
        lanes = (words[:, None] >> (sum(parts) * np.arange(self.lanes).astype(object))).astype(object)
        for bits in parts:
            fields.append(lanes >> place & ((1 << bits) - 1))
            place += bits
        self.multiplier = two_complement(fields[0], m_bits)
        if style == 2:
            if self.folds != 1:
                raise broken(cell.name, "STYLE 2 has one fold.")
            packed = cell.sized("CONSTANTS", self.lanes * m_bits).value
            self.multiplier = two_complement(split([packed], self.lanes, m_bits).astype(object), m_bits)
        self.addend = two_complement(fields[1], r_bits) * (1 << zeros)
        self.odd = fields[2] == 1 if self.mode == 3 else np.full(self.addend.shape, self.mode == 2)
        self.below, self.centre = self.addend, np.zeros_like(self.addend)
        if self.symmetric == 2:
            self.below = two_complement(fields[-2], r_bits) * (1 << zeros)
            self.centre = two_complement(fields[-1], c_bits)
        elif self.symmetric == 1:
            self.below = self.addend ^ ((1 << self.shift) - 1)
        max_bits = max(self.in_bits + 1 + m_bits, r_bits + zeros, self.shift, self.out_bits)
        self.kind = np.int64 if max_bits < _NARROW else object

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        fold_lane = fold, lane
        return (
            self.multiplier[fold_lane],
            self.addend[fold_lane],
            self.below[fold_lane],
            self.centre[fold_lane],
            bool(self.odd[fold_lane]),
        )

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        fold_lane = fold, lane
        x = x.astype(self.kind)
        below, addend = (np.array(constants[fold_lane], self.kind) for constants in (self.below, self.addend))
        total = x * self.multiplier[fold_lane] + np.where(x < self.centre[fold_lane], below, addend)
        floor = total >> self.shift
        part = total - (floor << self.shift)
        if self.mode and self.shift:
            half = 1 << (self.shift - 1)
            floor = floor + ((part > half) | ((part == half) & ((floor & 1 == 1) ^ self.odd[fold_lane])))
        clamped: Array = np.clip(floor, self.low, self.high).astype(np.int64)
        return clamped

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """Monotone on each side of the centre: a product with x, a sum, rounding to the nearest, a clamp."""
        centre = min(max(int(self.centre[fold, lane]), lo), hi + 1)
        parts = [(lo, centre - 1), (centre, hi)]
        inner = [jumps(lambda x: self.apply(fold, lane, x), low, high) for low, high in parts if low <= high]
        return np.concatenate([[centre], *inner])
