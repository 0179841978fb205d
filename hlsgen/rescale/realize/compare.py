"""Realization `compare`: a comparator for each threshold of a monotone function that has few of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.threshold_table import ThresholdTable

#: Beyond this many steps any other realization is smaller.
MAX_STEPS = 31


@dataclass(frozen=True, eq=False)
class Comparators:
    """code = base + the number of comparators that hold: x >= table[k] in rising sets, x < table[k] in falling ones.

    `table` int64 (steps, sets) in the order of the codes: ascending in rising sets, descending in falling ones.
    `falling` bool (sets,).
    """

    table: Array
    falling: Array
    base: int
    latency: int = 2

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        count = np.zeros(np.broadcast_shapes(codes.shape, self.falling.shape), np.int64)
        for row in self.table:
            count += (codes >= row) ^ self.falling
        return self.base + count


def find(steps: ThresholdTable) -> Comparators | str:
    """The comparators, if every set rises or falls by one at each threshold; else the reason, as text.

    The thresholds define such a function, so the construction is the proof. Rows at which no set changes are left out.
    """
    base, places = int(steps.values.min()), np.arange(steps.steps + 1)[:, None]
    falling = np.asarray(steps.values[0] > steps.values[-1])
    wrong = (steps.values != base + np.where(falling, places[::-1], places)).any(axis=0)
    if wrong.any():
        return f"set {int(np.argmax(wrong))} does not rise or fall by one at each threshold, from one least code"
    table = np.where(falling, steps.table[::-1], steps.table)
    from_lo = ((steps.lo >= table) ^ falling).all(axis=1) & ((steps.hi >= table) ^ falling).all(axis=1)
    never = ((steps.lo < table) ^ falling).all(axis=1) & ((steps.hi < table) ^ falling).all(axis=1)
    table, base = table[~(from_lo | never)], base + int(from_lo.sum())
    if not 1 <= len(table) <= MAX_STEPS:
        return f"it has {len(table)} thresholds at which the code changes, not 1 to {MAX_STEPS}"
    comparators = Comparators(table, falling, base)
    corners = steps.corners()
    if (comparators.apply(corners) != steps.apply(corners)).any():
        raise AssertionError(f"{steps.name}: the comparisons differ from the function")
    return comparators


def threshold_bits(comparators: Comparators, source: IntType) -> int:
    """Bits of a threshold: as many as x has, and one more if a threshold lies above the type of x."""
    return source.bits + (int(comparators.table.max()) >= 1 << (source.bits - source.signed))


def cost(comparators: Comparators, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): comparators, the exclusive or of each code bit, the memory."""
    folds, lanes = table.shape
    width = threshold_bits(comparators, source)
    codes = (comparators.base + np.arange(len(comparators.table) + 1)) & ((1 << result.bits) - 1)
    turns = [np.count_nonzero(np.diff((codes >> bit) & 1)) for bit in range(result.bits)]
    sites = 1.0 + lanes * sum(-(-(n - 1) // 5) for n in turns if n > 1)
    if folds == 1:
        # Trailing zeros of a constant need no logic.
        image = (comparators.table & ((1 << width) - 1))[:, table[0]]
        digits = width - np.log2(np.maximum(image & -image, 1))
        return sites + float(np.where(image == 0, 0, np.maximum(1, 1 + 0.3 * (digits - 6))).sum()), 0, 0
    sites += lanes * len(comparators.table) * 0.7 * width
    bits = lanes * len(comparators.table) * (width + bool(comparators.falling[table].any()))
    if bits * folds >= 1 << 14 and folds > 64:
        return sites, 0, bits * folds
    return sites + bits * (0.0 if folds <= 4 else max(1.0, folds / 64)), 0, 0
