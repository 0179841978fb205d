"""Integer models of the modules with lookup tables of codes: hg_rank, hg_table, hg_correct."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.certify.models.arithmetic import LaneModel
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant, broken, split, two_complement
from hlsgen.numerics.fixed import Array

#: Maximum number of runs of one function.
_MAX_RUNS = 1 << 22


def tiled(start: Array, bits: int, lo: int, hi: int) -> Array:
    """The inputs of lo..hi whose low `bits` bits equal one of `start`, and the multiples of 2^bits."""
    first, last = lo >> bits, hi >> bits
    start = np.unique(np.append(start, 0))
    if (last - first + 1) * len(start) > _MAX_RUNS:
        return np.arange(lo, min(hi, lo + 2 * _MAX_RUNS) + 1)
    return ((np.arange(first, last + 1) << bits)[:, None] + start).ravel()


class RankModel(LaneModel):
    """hg_rank: a cascade of lookup tables. The state after the low bits of x, and the next bits, give the next state.

    Runs follow by induction over the levels. A state covers runs of the values of the low bits. For each value of the
    next bits, each run gets the state that the table has for it. Equal neighbours are merged.
    """

    names = frozenset("LANES IN_W OUT_W LOW LEVELS CHUNKS STATES TABLE_W FILE".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.low, levels, width = cell.number("LOW"), cell.number("LEVELS", 1), cell.number("TABLE_W", 1)
        if levels > self.in_bits:
            raise broken(cell.name, f"LEVELS is {levels}, more than the bits of IN_W.")
        chunks, states = (split([cell.sized(name, 8 * levels).value], levels, 8)[0] for name in ("CHUNKS", "STATES"))
        self.chunks, self.states = chunks.tolist(), states.tolist()
        self.top = self.low + sum(self.chunks)
        if self.top > self.in_bits or min(self.chunks) < 1 or min(self.states) < 1 or self.states[-1] != self.out_bits:
            raise broken(cell.name, "its LOW, CHUNKS and STATES do not fit IN_W and OUT_W.")
        states_before = [0, *self.states]
        sizes = [chunk + state for chunk, state in zip(self.chunks, states_before, strict=False)]
        if max(sizes) > 24 or max(next_ << size for next_, size in zip(self.states, sizes, strict=True)) > width:
            raise broken(cell.name, "its tables are larger than TABLE_W.")
        self.tables: list[list[Array]] = []
        self.text: list[tuple[int, ...]] = []
        for lane in range(self.lanes):
            words = memories.words(f"{cell.file}_{lane:04d}.mem", levels, width, even=False)
            self.text.append(tuple(words))
            shapes = zip(words, sizes, self.states, strict=True)
            tables = [split([word & ((1 << (b << a)) - 1)], 1 << a, b)[0] for word, a, b in shapes]
            self.tables.append(tables)

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return self.text[lane]

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        state = np.zeros(len(x), np.int64)
        remaining_bits = x >> self.low
        for chunk, bits, table in zip(self.chunks, [0, *self.states], self.tables[lane], strict=False):
            state = table[((remaining_bits & ((1 << chunk) - 1)) << bits) | state]
            remaining_bits = remaining_bits >> chunk
        return np.asarray(state)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        start, state, bit_position, bits = np.zeros(1, np.int64), np.zeros(1, np.int64), self.low, 0
        for chunk, result, table in zip(self.chunks, self.states, self.tables[lane], strict=True):
            value = np.arange(1 << chunk)[:, None]
            start = ((value << bit_position) + start).ravel()
            state = np.asarray(table[((value << bits) | state).ravel()])
            keep = np.append(True, state[1:] != state[:-1])
            start, state, bit_position, bits = start[keep], state[keep], bit_position + chunk, result
            if len(start) > _MAX_RUNS:
                raise broken(self.cell.name, f"its lookup tables have more than {_MAX_RUNS} runs.")
        return tiled(start, self.top, lo, hi)


class TableModel(LaneModel):
    """hg_table: the codes in a memory, addressed by the low bits of x or by a window around a center."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED OUT_W MODE ADDR_W C_W SUM FILE".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.mode, self.bits, width = cell.number("MODE"), cell.number("ADDR_W", 1), cell.number("C_W")
        self.even, self.total = self.mode == 3, cell.sized("SUM", self.out_bits).value
        centered = width > 0 and self.mode > 0
        too_wide = width > 60 or self.out_bits > 40 or self.bits > 24
        if self.mode > 3 or too_wide or (not self.mode and self.bits > self.in_bits):
            raise broken(cell.name, "MODE, ADDR_W, C_W or OUT_W exceeds its model.")
        self.center = np.zeros((self.folds, self.lanes), np.int64)
        if centered:
            self.center = two_complement(memories.fields(f"{cell.file}.mem", self.folds, self.lanes, width), width)
        names = [f"{cell.file}_{lane:04d}.mem" for lane in range(self.lanes)]
        entries = [memories.fields(name, self.folds << self.bits, 1, self.out_bits)[:, 0] for name in names]
        self.entries = np.stack(entries).reshape(self.lanes, self.folds, -1)

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return int(self.center[fold, lane]), self.entries[lane, fold].tobytes()

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        table, last_address = self.entries[lane, fold], (1 << self.bits) - 1
        if self.mode == 0:
            return np.asarray(table[x & last_address])
        distance = x - self.center[fold, lane]
        if self.mode == 1:
            return np.asarray(table[np.clip(distance, 0, last_address)])
        mirrored = self.total - table[np.clip(-distance - 1 + self.even, 0, last_address)]
        return np.asarray(np.where(distance < 0, mirrored, table[np.clip(distance, 0, last_address)]))

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        table = self.entries[lane, fold]
        steps = np.flatnonzero(table[1:] != table[:-1]) + 1
        if self.mode == 0:
            return tiled(steps, self.bits, lo, hi)
        center = int(self.center[fold, lane])
        return np.concatenate([[center], center + steps, center + self.even - steps])


class CorrectModel(LaneModel):
    """hg_correct: a bucket's code, a cell's count, and one comparison with y = x - the bucket's start."""

    names = frozenset(
        "LANES FOLDS IN_W IN_SIGNED OUT_W FRACTION REST COUNT SHAPES FIRST LAST ABOVE OPEN DEEP FILE".split()
    )

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.fraction, self.remainder_bits, self.count = (
            cell.number("FRACTION"),
            cell.number("REST"),
            cell.number("COUNT", 1),
        )
        self.flag("OPEN")
        if self.flag("DEEP") and (self.folds > 1 or self.remainder_bits > 0):
            raise broken(cell.name, "DEEP is 1 with FOLDS > 1 or REST > 0, which the module does not support.")
        shapes = self._packed("SHAPES", 32)
        self.shapes = [tuple((shape >> place) & 255 for place in (0, 8, 16, 24)) for shape in shapes.tolist()]
        first, last = self._packed("FIRST", self.in_bits), self._packed("LAST", self.in_bits)
        self.first, self.last = (two_complement(v, self.in_bits) if self.signed else v for v in (first, last))
        self.above = self._packed("ABOVE", self.count)
        self.tables: list[CellTables] = []
        for lane, (bucket, cells, coarse, fine) in enumerate(self.shapes):
            size = fine + self.fraction
            widths = (self.out_bits + cells + size, 1 + self.count + size, self.remainder_bits)
            if max(*widths, self.in_bits + self.fraction + cells, coarse) > 60:
                raise broken(cell.name, "is larger than its model.")
            if max(bucket, cells, self.out_bits) > 16 or min(bucket, cells, size) < 1:
                raise broken(cell.name, "OUT_W or SHAPES exceeds its model.")
            a, b, remainders = (
                self._table(memories, f"{cell.file}_{lane:04d}_{number:02d}.mem", address, width)
                for number, (address, width) in enumerate(zip((bucket, cells, self.out_bits), widths, strict=True))
            )
            start = a & ((1 << (cells + size)) - 1)
            count = (b >> size) & ((1 << self.count) - 1)
            level = b & ((1 << size) - 1)
            sure = b >> (size + self.count) == 1
            finer = (remainders << self.fraction) & ((1 << size) - 1)
            self.tables.append(CellTables(a >> (cells + size), start, count, level, sure, finer))

    def _packed(self, name: str, bits: int) -> Array:
        value: SizedConstant = self.cell.sized(name, bits * self.lanes)
        return np.asarray(split([value.value], self.lanes, bits)[0])

    def _table(self, memories: Memories, name: str, address: int, width: int) -> Array:
        """The entries as (folds, entries). A file of a single fold has a word for each bit of all entries."""
        if not width:
            return np.zeros((self.folds, 1 << address), np.int64)
        if self.folds > 1:
            return memories.fields(name, self.folds << address, 1, width).reshape(self.folds, -1)
        columns = memories.fields(name, width, 1 << address, 1)
        return np.asarray((columns << np.arange(width)[:, None]).sum(axis=0)[None])

    def guess(self, code: Array, count: Array) -> Array:
        """The code before the comparison, from the code of the bucket and the count of the cell."""
        return (code + count) & ((1 << self.out_bits) - 1)

    def remainder_index(self, code: Array) -> Array:
        """The index of the low bits of the threshold after a code."""
        return code

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        t, (bits, cells, coarse, fine) = self.tables[lane], self.shapes[lane]
        first, last, size = int(self.first[lane]), int(self.last[lane]), fine + self.fraction
        mask = (1 << self.out_bits) - 1
        below, above = x < first, x > last
        guide = np.where(below, first, np.where(above, last, x))
        bucket = (guide >> coarse) & ((1 << bits) - 1)
        y = ((x << self.fraction) - t.start[fold][bucket]) & ((1 << (size + cells)) - 1)
        cell = y >> size
        count = np.where(below, 0, np.where(above, self.above[lane], t.count[fold][cell]))
        code = self.guess(t.code[fold][bucket], count)
        level = t.level[fold][cell] | t.finer[fold][self.remainder_index(code)]
        reached = below | above | t.sure[fold][cell] | ((y & ((1 << size) - 1)) >= level)
        return np.asarray((code + reached) & mask)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All ends of buckets and cells, and all thresholds.

        In a bucket y rises with x; in a cell one comparison decides.
        """
        t, (bits, cells, coarse, fine) = self.tables[lane], self.shapes[lane]
        first, last, size = int(self.first[lane]), int(self.last[lane]), fine + self.fraction
        low, high = max(lo, min(first, hi + 1)), min(hi, max(last, lo - 1))
        change_points = [np.array([first, last + 1])]
        buckets = np.arange(low >> coarse, (high >> coarse) + 1) if low <= high else np.zeros(0, np.int64)
        if len(buckets) * ((1 << max(0, coarse - fine)) + 2) > _MAX_RUNS:
            raise broken(self.cell.name, "it has too many buckets and cells to check them all.")
        for number in buckets.tolist():
            begin, end = max(low, number << coarse), min(high, ((number + 1) << coarse) - 1)
            bucket = number & ((1 << bits) - 1)
            start = int(t.start[fold][bucket])
            # Numbers of cells, before they are cut to CELL bits.
            cell = np.arange(((begin << self.fraction) - start) >> size, (((end << self.fraction) - start) >> size) + 1)
            index = cell & ((1 << cells) - 1)
            code = self.guess(t.code[fold][bucket], t.count[fold][index])
            level = t.level[fold][index] | t.finer[fold][self.remainder_index(code)]
            for scaled_input in ((cell << size) + start, (cell << size) + start + level):
                change_points.append(-((-scaled_input) >> self.fraction))  # the smallest x with x * 2^FRACTION >= place
            change_points.append(np.array([begin]))
        return np.concatenate(change_points)


@dataclass(frozen=True, eq=False)
class CellTables:
    """The lookup tables of a lane of hg_correct, each (folds, entries): of buckets, of cells, of codes."""

    code: Array
    start: Array
    count: Array
    level: Array
    sure: Array
    finer: Array
