"""Integer models of the functions of the C++ library that give each element a code, written from their headers."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.models.arithmetic import LaneModel
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.numerics.fixed import Array


class TableModel(LaneModel):
    """What the models share: arrays [fold][lane]..., by the end of their name."""

    ends: tuple[str, ...] = ()

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        assert isinstance(memories, Tables)
        self.arrays = [memories.array(cell, end) for end in self.ends]
        for end, array in zip(self.ends, self.arrays, strict=True):
            if array.shape[:2] != (self.folds, self.lanes):
                raise broken(cell.name, f"table {end} is {array.shape}, for {self.folds} folds of {self.lanes} lanes.")

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return tuple(array[fold, lane].tobytes() for array in self.arrays)


class ThresholdsModel(TableModel):
    """hg::thresholds: BASE and the number of thresholds reached, found by binary search of an ascending list."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED OUT_W STEPS BASE TABLES".split())
    ends = ("thresholds",)

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell, memories)
        self.base, (table,) = cell.number("BASE", -(1 << 31)), self.arrays
        if table.shape[2:] != (cell.number("STEPS", 1),) or (np.diff(table, axis=2) < 0).any():
            raise broken(cell.name, "its thresholds are not STEPS ascending ones.")

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        return self.base + np.searchsorted(self.arrays[0][fold, lane], x, side="right")

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        return np.asarray(self.arrays[0][fold, lane])


#: Name of a function -> its model.
MODELS: dict[str, type[LaneModel]] = {"hg::thresholds": ThresholdsModel}
