"""Realization `indexed`: a binary search for the run of inputs that holds x, then a lookup of the run's code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import table as table_
from hlsgen.rescale.realize import thresholds
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True, eq=False)
class Indexed:
    """`search` gives the number of thresholds that x reaches, and `codes` the code for each number."""

    search: Thresholds
    codes: Table

    @property
    def index(self) -> IntType:
        """The type of the number that goes from the search to the lookup table."""
        return IntType(0, len(self.search.table))

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        return self.codes.apply(self.search.apply(codes))


def find(steps: ThresholdTable, folds: int = 1) -> Indexed | str:
    """The steps themselves in two memories, or the reason, as text, why not. `folds`: number of sets a lane stores.

    Thresholds and codes are stored as they are, so there is nothing to prove.
    """
    if not isinstance(thresholds.find(steps), str):
        return "it rises or falls through all codes: thresholds alone suffice"
    search = Thresholds(steps.table, np.zeros(steps.sets, np.bool_), 0)
    index = np.repeat(np.arange(1, steps.steps + 1)[:, None], steps.sets, axis=1)
    zero = np.zeros(steps.sets, np.int64)
    codes = table_.find(ThresholdTable(steps.name, zero, zero + steps.steps, index, steps.values), folds)
    return codes if isinstance(codes, str) else Indexed(search, codes)


def cost(realization: Indexed, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM) of the search and the lookup table together."""
    first = thresholds.cost(realization.search, table, source, realization.index)
    second = table_.cost(realization.codes, table, realization.index, result)
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]
