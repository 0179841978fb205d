"""Integer models of the modules that look codes up: hg_rank, hg_table, hg_correct."""

from __future__ import annotations

import numpy as np

from hlsgen.certify.arithmetic import Lanes
from hlsgen.certify.verilog import Cell, Memories, Sized, broken, split, two_complement
from hlsgen.fixed import Array

#: Runs of one function.
_MAX_RUNS = 1 << 22


def tiled(start: Array, bits: int, lo: int, hi: int) -> Array:
    """The places in lo..hi that have the low `bits` bits of one of `start`; and multiples of 2^bits."""
    first, last = lo >> bits, hi >> bits
    start = np.unique(np.append(start, 0))
    if (last - first + 1) * len(start) > _MAX_RUNS:
        return np.arange(lo, min(hi, lo + 2 * _MAX_RUNS) + 1)
    return ((np.arange(first, last + 1) << bits)[:, None] + start).ravel()


class Rank(Lanes):
    """hg_rank: a cascade of tables. The state after the low bits of x, and more bits, give the next state.

    The runs are made by induction over the levels: a state covers runs of the low bits' values; with
    each value of the next bits, each run gets the state that the table has for it. Equal neighbours
    are joined.
    """

    names = frozenset("LANES IN_W OUT_W LOW LEVELS CHUNKS STATES TABLE_W FILE".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.low, levels, width = cell.number("LOW"), cell.number("LEVELS", 1), cell.number("TABLE_W", 1)
        chunks, states = (split([cell.sized(name, 8 * levels).value], levels, 8)[0] for name in ("CHUNKS", "STATES"))
        self.chunks, self.states = chunks.tolist(), states.tolist()
        self.top = self.low + sum(self.chunks)
        if self.top > self.in_bits or min(self.chunks) < 1 or min(self.states) < 1 or self.states[-1] != self.out_bits:
            raise broken(cell.name, "its LOW, CHUNKS and STATES do not fit IN_W and OUT_W.")
        before = [0, *self.states]
        sizes = [chunk + state for chunk, state in zip(self.chunks, before, strict=False)]
        if max(sizes) > 24 or max(next_ << size for next_, size in zip(self.states, sizes, strict=True)) > width:
            raise broken(cell.name, "its tables are larger than TABLE_W.")
        self.tables: list[list[Array]] = []
        self.text: list[tuple[int, ...]] = []
        for lane in range(self.lanes):
            words = memories.words(f"{cell.file}_{lane:04d}.mem", levels, width)
            self.text.append(tuple(words))
            shapes = zip(words, sizes, self.states, strict=True)
            tables = [split([word & ((1 << (b << a)) - 1)], 1 << a, b)[0] for word, a, b in shapes]
            self.tables.append(tables)

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return self.text[lane]

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        state = np.zeros(len(x), np.int64)
        rest = x >> self.low
        for chunk, bits, table in zip(self.chunks, [0, *self.states], self.tables[lane], strict=False):
            state = table[((rest & ((1 << chunk) - 1)) << bits) | state]
            rest = rest >> chunk
        return np.asarray(state)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        start, state, at, bits = np.zeros(1, np.int64), np.zeros(1, np.int64), self.low, 0
        for chunk, result, table in zip(self.chunks, self.states, self.tables[lane], strict=True):
            value = np.arange(1 << chunk)[:, None]
            start = ((value << at) + start).ravel()
            state = np.asarray(table[((value << bits) | state).ravel()])
            keep = np.append(True, state[1:] != state[:-1])
            start, state, at, bits = start[keep], state[keep], at + chunk, result
            if len(start) > _MAX_RUNS:
                raise broken(self.cell.name, "its tables have no end of runs.")
        return tiled(start, self.top, lo, hi)


class Table(Lanes):
    """hg_table: the codes in a memory: of the low bits of x, or of a window around a center."""

    names = frozenset("LANES FOLDS IN_W IN_SIGNED OUT_W MODE ADDR_W CENTERED C_W EVEN SUM FILE".split())

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.mode, self.bits, width = cell.number("MODE"), cell.number("ADDR_W", 1), cell.number("C_W", 1)
        self.even, self.total = self.flag("EVEN"), cell.sized("SUM", self.out_bits).value
        centered = self.flag("CENTERED") and self.mode > 0
        wide = width > 60 or self.out_bits > 32 or self.bits > 24
        if self.mode > 2 or wide or (not self.mode and self.bits > self.in_bits):
            raise broken(cell.name, "MODE, ADDR_W, C_W or OUT_W is beyond its model.")
        self.center = np.zeros((self.folds, self.lanes), np.int64)
        if centered:
            self.center = two_complement(memories.fields(f"{cell.file}.mem", self.folds, self.lanes, width), width)
        names = [f"{cell.file}_{lane:04d}.mem" for lane in range(self.lanes)]
        entries = [memories.fields(name, self.folds << self.bits, 1, self.out_bits)[:, 0] for name in names]
        self.entries = np.stack(entries).reshape(self.lanes, self.folds, -1)

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        return int(self.center[fold, lane]), self.entries[lane, fold].tobytes()

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        table, most = self.entries[lane, fold], (1 << self.bits) - 1
        if self.mode == 0:
            return np.asarray(table[x & most])
        far = x - self.center[fold, lane]
        if self.mode == 1:
            return np.asarray(table[np.clip(far, 0, most)])
        mirrored = self.total - table[np.clip(-far - 1 + self.even, 0, most)]
        return np.asarray(np.where(far < 0, mirrored, table[np.clip(far, 0, most)]))

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        table = self.entries[lane, fold]
        steps = np.flatnonzero(table[1:] != table[:-1]) + 1
        if self.mode == 0:
            return tiled(steps, self.bits, lo, hi)
        center = int(self.center[fold, lane])
        return np.concatenate([[center], center + steps, center + self.even - steps])


class Correct(Lanes):
    """hg_correct: a bucket's code, and a cell's count, and one comparison with y = x - the bucket's start."""

    names = frozenset(
        "LANES FOLDS IN_W IN_SIGNED OUT_W BUCKET CELL FRACTION PLACE REST COUNT SHAPES FIRST LAST ABOVE FILE".split()
    )

    def __init__(self, cell: Cell, memories: Memories) -> None:
        super().__init__(cell)
        self.bucket, self.cells, self.fraction = (
            cell.number(name, 1 - (name == "FRACTION")) for name in ("BUCKET", "CELL", "FRACTION")
        )
        self.place, self.rest, self.count = cell.number("PLACE", 1), cell.number("REST"), cell.number("COUNT", 1)
        shapes = self._packed("SHAPES", 16)
        self.coarse, self.fine = shapes & 255, shapes >> 8
        first, last = self._packed("FIRST", self.in_bits), self._packed("LAST", self.in_bits)
        self.first, self.last = (two_complement(v, self.in_bits) if self.signed else v for v in (first, last))
        self.above = self._packed("ABOVE", self.count)
        start = self.place + self.cells
        if max(self.out_bits + start, 1 + self.count + self.place, self.in_bits + self.fraction + self.cells) > 60:
            raise broken(cell.name, "is larger than its model.")
        inside = int(self.fine.max()) + self.fraction <= self.place
        if max(self.bucket, self.cells, self.out_bits) > 16 or not inside:
            raise broken(cell.name, "BUCKET, CELL, OUT_W or PLACE is beyond its model.")
        a = self._tables(memories, 0, self.bucket, self.out_bits + start)
        self.code, self.start = a >> start, a & ((1 << start) - 1)
        b = self._tables(memories, 1, self.cells, 1 + self.count + self.place)
        self.sure, self.counts = b >> (self.count + self.place), (b >> self.place) & ((1 << self.count) - 1)
        self.level = b & ((1 << self.place) - 1)
        self.finer = self._tables(memories, 2, self.out_bits, self.rest) if self.rest else None

    def _packed(self, name: str, bits: int) -> Array:
        value: Sized = self.cell.sized(name, bits * self.lanes)
        return np.asarray(split([value.value], self.lanes, bits)[0])

    def _tables(self, memories: Memories, number: int, address: int, width: int) -> Array:
        """(lanes, folds, entries). With one fold a file holds a word for each bit, of that bit of all entries."""
        found = []
        for lane in range(self.lanes):
            name = f"{self.cell.file}_{lane:04d}_{number:02d}.mem"
            if self.folds > 1:
                found.append(memories.fields(name, self.folds << address, 1, width)[:, 0])
            else:
                columns = memories.fields(name, width, 1 << address, 1)
                found.append((columns << np.arange(width)[:, None]).sum(axis=0))
        return np.stack(found).reshape(self.lanes, self.folds, 1 << address)

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        at = lane, fold
        first, last = int(self.first[lane]), int(self.last[lane])
        low_bits = int(self.fine[lane]) + self.fraction
        y_mask, code_mask = (1 << (low_bits + self.cells)) - 1, (1 << self.out_bits) - 1
        below, above = x < first, x > last
        guide = np.where(below, first, np.where(above, last, x))
        bucket = (guide >> int(self.coarse[lane])) & ((1 << self.bucket) - 1)
        y = ((x << self.fraction) - self.start[at][bucket]) & y_mask
        cell = y >> low_bits
        count = np.where(below, 0, np.where(above, self.above[lane], self.counts[at][cell]))
        code = (self.code[at][bucket] + count) & code_mask
        level = self.level[at][cell] & ((1 << low_bits) - 1)
        if self.finer is not None:
            level = level | ((self.finer[at][code] << self.fraction) & ((1 << low_bits) - 1))
        reached = below | above | (self.sure[at][cell] == 1) | ((y & ((1 << low_bits) - 1)) >= level)
        return np.asarray((code + reached) & code_mask)

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """In a bucket y rises with x, in a cell one comparison decides: the ends of all these, and the thresholds."""
        at = lane, fold
        first, last, coarse = int(self.first[lane]), int(self.last[lane]), int(self.coarse[lane])
        low, high = max(lo, min(first, hi + 1)), min(hi, max(last, lo - 1))
        size = int(self.fine[lane]) + self.fraction
        found = [np.array([first, last + 1])]
        buckets = np.arange(low >> coarse, (high >> coarse) + 1) if low <= high else np.zeros(0, np.int64)
        cells = (1 << max(0, coarse + self.fraction - size)) + 2
        if len(buckets) * cells > _MAX_RUNS:
            raise broken(self.cell.name, "its buckets and cells are too many to follow.")
        for number in buckets.tolist():
            begin, end = max(low, number << coarse), min(high, ((number + 1) << coarse) - 1)
            bucket = number & ((1 << self.bucket) - 1)
            start = int(self.start[at][bucket])
            # Cells by their numbers before these are cut to CELL bits.
            cell = np.arange(((begin << self.fraction) - start) >> size, (((end << self.fraction) - start) >> size) + 1)
            index = cell & ((1 << self.cells) - 1)
            level = self.level[at][index] & ((1 << size) - 1)
            if self.finer is not None:
                code = (self.code[at][bucket] + self.counts[at][index]) & ((1 << self.out_bits) - 1)
                level = level | ((self.finer[at][code] << self.fraction) & ((1 << size) - 1))
            for place in ((cell << size) + start, (cell << size) + start + level):
                found.append(-((-place) >> self.fraction))  # the least x with x * 2^FRACTION >= place
            found.append(np.array([begin]))
        return np.concatenate(found)
