"""The model of hg::correct. It is hg_correct, except that codes before the comparison are numbers and do not wrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify.models.tables import CorrectModel
from hlsgen.certify.netlist_reader import Cell, Memories
from hlsgen.numerics.fixed import Array


class CppCorrectModel(CorrectModel):
    """`finer` is a table of CODES entries for the codes from LOW on; other codes use its first or last entry."""

    names = CorrectModel.names | {"LOW", "CODES", "FINER", "C_W"}

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell, memories)
        self.low, self.codes = cell.number("LOW", -(1 << 40)), cell.number("CODES", 1)
        bits, width = cell.number("C_W", 1), cell.number("FINER", 1)
        for lane, (tables, shape) in enumerate(zip(self.tables, self.shapes, strict=True)):
            stem = f"{cell.file}_{lane:04d}"
            finer = memories.fields(f"{stem}_rest.mem", self.folds * self.codes, 1, width).reshape(self.folds, -1)
            code = memories.fields(f"{stem}_code.mem", self.folds << shape[0], 1, bits).reshape(self.folds, -1)
            signed = np.asarray(code - ((code >> (bits - 1)) << bits))
            self.tables[lane] = replace(tables, code=signed, finer=finer << self.fraction)

    def guess(self, code: Array, count: Array) -> Array:
        return code + count

    def remainder_index(self, code: Array) -> Array:
        return np.asarray(np.clip(code - self.low, 0, self.codes - 1))
