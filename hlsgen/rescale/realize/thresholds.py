"""Realization `thresholds`: the thresholds of a monotone function in memory, and a binary search over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Parameters of module hg_threshold.

    code = base + the number of thresholds with x >= table[k] in rising sets, x < table[k] in falling ones. `table`
    int64 (steps, sets), lo <= table <= hi + 1, ascending in rising sets, descending in falling ones. `falling` bool
    (sets,). `every`: 1 for a target clock that needs two more registers after memories of more than 64 words, else 2.
    """

    table: Array
    falling: Array
    base: int
    every: int = 2

    @property
    def bits(self) -> int:
        """Number of comparisons that the binary search makes in series."""
        return max(1, len(self.table).bit_length())

    def registers(self, folds: int) -> int:
        """Registers around memories of more than 64 words, which are several LUTs deep.

        One register is before each such memory, and two more after it if `every` is 1.
        """
        input_registers = sum(folds << level > 64 for level in range(1, self.bits))
        return input_registers + 2 * (self.every == 1) * sum(folds << level > 64 for level in range(self.bits))

    def latency(self, folds: int) -> int:
        """Cycles of a lane with this many sets."""
        return self.bits + 1 + self.registers(folds)

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        count = np.zeros(np.broadcast_shapes(codes.shape, self.falling.shape), np.int64)
        for row in self.table:
            count += (codes >= row) ^ self.falling
        return self.base + count


def find(steps: ThresholdTable) -> Thresholds | str:
    """The thresholds themselves, if every set rises or falls through all codes; else the reason, as text.

    The realization stores the function as it is, so there is nothing to prove.
    """
    low, count = int(steps.values.min()), np.arange(steps.steps + 1)[:, None]
    rising = (steps.values == low + count).all(axis=0)
    falling = (steps.values == low + steps.steps - count).all(axis=0)
    if not (rising | falling).all():
        return f"channel set {int(np.argmin(rising | falling))} neither rises nor falls through all codes"
    return Thresholds(np.where(falling, steps.table[::-1], steps.table), falling, low)


def cost(realization: Thresholds, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): for each level of the search, a comparator and a memory."""
    del result
    folds, lanes = table.shape
    width = source.bits + 1
    lut, memory = 0.0, 0
    for level in range(realization.bits):
        words = folds << level
        if words * width >= 1 << 14:
            memory += lanes * words * width
        else:
            lut += lanes * width * max(0.0 if words == 1 else 0.5, words / 64)
        lut += lanes * (source.bits * 0.55 if words > 1 else source.bits * 0.35)
    return lut, 0, memory
