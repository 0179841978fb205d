"""Realization `correct`: guesses the code of a rising function from high bits, and corrects it by one comparison.

The high bits of x are its bucket, and a table gives each bucket a start and a first code. Evenly spaced thresholds
look the same in all buckets, seen from the right start: y = x - start. The high bits of y are its cell. A cell is
shorter than the distance of thresholds, so it holds at most one, and one comparison in it gives the code. This needs
no multiplier.

Example: thresholds 10, 20, 30 and so on, buckets of 32 inputs. Bucket 1 (32..63) has the thresholds 40, 50 and 60.
With start 30 they are y = 10, 20, 30, the same as in bucket 0 with start 0. In cells of 8, y = 21 is in cell 2
(16..23), which holds the threshold 20 only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.correct_fit import Buckets, Fit, candidates, fit_buckets, fit_constant
from hlsgen.rescale.threshold_table import ThresholdTable, portions

#: Widths of a bucket's number that are tried with memories, and the most bits of a cell's number.
_MEMORY_BUCKETS = (4, 5, 6, 7, 8, 9)
_MAX_CELL = 9
_MAX_STEPS = 1023
#: Bits of a code up to which the last sum has no carry chain (SHORT of hg_correct_lane), and bits of a cell's number up to
#: which a link of the comparison takes as many bits as have room in a table beside it (PART there).
_SHORT, _LINK = 4, 3
#: Bits of a cell's number up to which a bit of its table is one LUT everywhere.
_SMALL = 4
#: Memories of fewer words or fewer bits become logic.
_BLOCK_WORDS = 512
_BLOCK_BITS = 4096
#: Sets that are fitted first: a few together take no longer than one.
_FIRST = 8
#: Inputs that are compared at a time.
_PORTION = 1 << 18


@dataclass(frozen=True, eq=False)
class Correct:
    """Parameters of module hg_correct.

    int64 (sets,): `bucket` and `cell` are the bits of a bucket's and of a cell's number. `coarse` and `fine` are the
    lowest bits of x and of y that belong to them. Inputs below `first` count no threshold of their bucket, those
    beyond `last` count `above` of it. bool (sets,): `below` and `beyond` say whether such inputs occur.

    Tables by bucket, int64 (2^bucket, sets): `start` and `code`. Tables by cell (2^cell, sets): `count` int64 codes to
    add, `level` int64 the threshold inside of the cell, and `sure` bool whether that is always reached. The largest
    set gives the sizes. `rest` int64 (codes, sets): the low bits of the threshold, by the code below it, from `low` on.
    y has `fraction` bits behind the point; `rest_bits` is the width of `rest`; if `folded`, all sets have one shape.
    `every`: adders one behind the other between registers.
    """

    fraction: int
    rest_bits: int
    folded: bool
    low: int
    bucket: Array
    cell: Array
    coarse: Array
    fine: Array
    first: Array
    last: Array
    above: Array
    below: Array
    beyond: Array
    start: Array
    code: Array
    count: Array
    level: Array
    sure: Array
    rest: Array
    every: int = 2

    @property
    def deep(self) -> bool:
        """Whether tables of cells have registers behind them: they are logic, of more than one table of four inputs a bit."""
        return self.every == 1 and not self.folded and not self.rest_bits and int(self.cell.max()) > _SMALL

    @property
    def latency(self) -> int:
        return 3 + (self.rest_bits > 0) + 2 * self.folded + self.deep

    @property
    def size(self) -> Array:
        """Bits of the position inside of a cell, int64 (sets,)."""
        return self.fine + self.fraction

    @property
    def count_bits(self) -> int:
        """Bits of the number of codes that a cell adds."""
        return max(1, int(max(self.count.max(), self.above.max())).bit_length())

    def number(self, codes: Array) -> Array:
        """The bucket of each input, int64 (..., sets)."""
        inside = np.clip(codes, self.first, self.last)
        return np.asarray((inside >> self.coarse) & ((1 << self.bucket) - 1))

    def apply(self, codes: Array) -> Array:
        """What the hardware computes: codes (..., sets) -> codes."""
        sets, size = np.arange(len(self.fine)), self.size
        bucket = self.number(codes)
        y = (codes << self.fraction) - self.start[bucket, sets]
        cell = (y >> size) & ((1 << self.cell) - 1)
        below, above = codes < self.first, codes > self.last
        count = np.where(below, 0, np.where(above, self.above, self.count[cell, sets]))
        code = self.code[bucket, sets] + count
        rest = self.rest[np.clip(code - self.low, 0, len(self.rest) - 1), sets]
        level = self.level[cell, sets] | (rest << self.fraction)
        reached = below | above | self.sure[cell, sets] | ((y & ((1 << size) - 1)) >= level)
        return np.asarray(code + reached)

    def jumps(self, steps: ThresholdTable) -> Array | None:
        """Inputs, int64 (points, sets), on both sides of every border of a bucket or of a cell.

        Elsewhere the realization can jump only where y passes the one threshold of its cell. None if the numbers of
        cells could repeat within a bucket.
        """
        lo, hi = np.maximum(self.first, steps.lo), np.minimum(self.last, steps.hi)
        size, sets = self.size, np.arange(steps.sets)
        number = (lo >> self.coarse) + np.arange(len(self.start))[:, None]
        begin = np.clip(number << self.coarse, lo, hi + 1)
        end = np.clip((number + 1) << self.coarse, lo, hi + 1)
        start = np.asarray(self.start[number & ((1 << self.bucket) - 1), sets])
        cell = ((begin << self.fraction) - start) >> size
        more = ((((end - 1) << self.fraction) - start) >> size) - cell
        if (end[-1] <= hi).any() or (more >= 1 << self.cell).any():
            return None
        # A cell begins at the least x with x * 2^fraction - start >= cell * 2^size. A bucket has few of all cells.
        cells = cell + np.arange(max(0, int(more.max())) + 1)[:, None, None]
        cells = np.clip(-((-(cells << size) - start) >> self.fraction), begin, end)
        points = np.concatenate([cells.reshape(-1, steps.sets), begin, end])
        points = np.concatenate([points, points - 1])
        return np.clip(points, steps.lo, steps.hi, out=points)


def equal(found: Correct, steps: ThresholdTable) -> bool:
    """Whether `found` is proven equal to the steps.

    Both are monotone between neighbouring points of `jumps`, so agreement there and at the corners decides.
    """
    corners = steps.corners()
    if (found.apply(corners) != steps.apply(corners)).any():
        return False
    jumps = found.jumps(steps)
    if jumps is None:
        return False
    rows = max(1, _PORTION // steps.sets)
    parts = (jumps[start : start + rows] for start in range(0, len(jumps), rows))
    return all((found.apply(part) == steps.apply(part)).all() for part in parts)


def _build(steps: ThresholdTable, fits: list[Fit], folded: bool) -> Correct:
    """The tables of all sets, from the fit of each."""
    fine = np.array([fit.fine for fit in fits])
    if folded:
        fine[:] = fine.min()
    fraction = max(max(fit.fraction for fit in fits), int(fine.min() == 0))
    spans = [fit.cells(int(size)) for fit, size in zip(fits, fine, strict=True)]
    bucket = np.array([_bits(len(fit.start) - 1) for fit in fits])
    cell = np.array([_bits(high - low) for low, high in spans])
    if folded:
        bucket[:], cell[:] = bucket.max(), cell.max()
    start, code = np.zeros((2, 1 << int(bucket.max()), steps.sets), np.int64)
    count, level = np.zeros((2, 1 << int(cell.max()), steps.sets), np.int64)
    sure = np.zeros(level.shape, bool)
    rest = np.zeros((max(1, steps.steps), steps.sets), np.int64)
    reached = steps.index(steps.lo)
    first, last = np.array([(fit.first, fit.last) for fit in fits]).T
    for s, (fit, (low, high)) in enumerate(zip(fits, spans, strict=True)):
        size, up = int(fine[s]) + fraction, fraction - fit.fraction
        number = ((fit.first >> fit.coarse) + np.arange(len(fit.start))) & ((1 << int(bucket[s])) - 1)
        start[number, s] = fit.start << up
        code[number, s] = steps.base + reached[s] + fit.before - 1
        edges = np.arange(low, high + 2) << size
        passed = np.searchsorted(fit.level << up, edges)
        inside = passed[1:] > passed[:-1]
        number = np.arange(low, high + 1) & ((1 << int(cell[s])) - 1)
        count[number, s] = passed[:-1] + inside
        place = (fit.level << up)[np.minimum(passed[:-1], len(fit.level) - 1)] - edges[:-1]
        level[number, s] = np.where(inside, place, 0)
        sure[number, s] = ~inside & (fit.rest_bits > 0)
        rest[reached[s] : reached[s] + len(fit.rest), s] = fit.rest
    return Correct(
        fraction, max(fit.rest_bits for fit in fits), folded, steps.base,
        bucket, cell, np.array([fit.coarse for fit in fits]), fine,
        first, last, np.where(last < steps.hi, [fit.above for fit in fits], 0), first > steps.lo, last < steps.hi,
        start, code, count, level, sure, rest,
    )  # fmt: skip


def _bits(most: int) -> int:
    return max(1, most.bit_length())


def _cheapest(steps: ThresholdTable, s: int, fits: list[Fit]) -> Fit | None:
    """The cheapest of the fits of set s that are proven equal, or None."""
    lo, hi = int(steps.lo[s]), int(steps.hi[s])
    one = ThresholdTable(steps.name, steps.lo[[s]], steps.hi[[s]], steps.table[:, [s]], steps.values[:, [s]])
    best: tuple[float, Fit] | None = None
    for fit in fits:
        low, high = fit.cells(fit.fine)
        if high - low >= 1 << _MAX_CELL:
            continue
        found = _build(one, [fit], False)
        price = _luts(found, 0, IntType(lo, hi).bits, steps.steps.bit_length())
        if (best is None or price < best[0]) and equal(found, one):
            best = price, fit
    return None if best is None else best[1]


def find(steps: ThresholdTable, folded: bool = False) -> Correct | str:
    """A realization proven equal to `steps` on lo..hi of all sets, or the reason, as text, why there is none.

    `folded` gives all sets tables of one shape, for lanes that change between sets.
    """
    if not steps.rising:
        return "the codes do not rise by one from threshold to threshold"
    for s in range(steps.sets):
        inner = steps.inner(s)
        twice = inner[1:][inner[1:] == inner[:-1]]
        if len(twice):
            return f"set {s} rises by more than one code at input {twice[0]}"
        if len(inner) > _MAX_STEPS:
            return f"set {s} has more than {_MAX_STEPS} thresholds"
    if folded:
        return _find_folded(steps)
    fits = []
    for portion in portions(steps.sets):
        tried = candidates(
            [steps.inner(s) for s in portion], *(x[list(portion)].tolist() for x in (steps.lo, steps.hi))
        )
        for s, several in zip(portion, tried, strict=True):
            fit = _cheapest(steps, s, several)
            if fit is None:
                return f"the thresholds of set {s} do not lie evenly enough to look alike from a few places"
            fits.append(fit)
    found = _build(steps, fits, False)
    return found if equal(found, steps) else "the sets differ too much for the fraction bits of all"


def _find_folded(steps: ThresholdTable) -> Correct | str:
    """The realization with tables of one shape that takes the least memory; or the reason why there is none."""
    inner = [steps.inner(s) for s in range(steps.sets)]
    lowest = min((int(column[0]) for column in inner if len(column)), default=int(steps.lo.min()))
    highest = max((int(column[-1]) for column in inner if len(column)), default=lowest)
    best: tuple[int, Correct] | None = None
    for bits in _MEMORY_BUCKETS:
        # One bucket more on each side, below and above all thresholds, if inputs come there.
        for coarse in range(64):
            first = max(int(steps.lo.min()), (lowest >> coarse) << coarse)
            last = min(int(steps.hi.max()), (((highest >> coarse) + 2) << coarse) - 1)
            if (last >> coarse) - (first >> coarse) < 1 << bits:
                break
        fits = _folded_fits(inner, first, last, coarse, steps.steps.bit_length(), best[0] if best else None)
        if fits is None:
            continue
        found = _build(steps, fits, True)
        size = sum(words * bits for words, bits in memories(found, steps.steps.bit_length()))
        if (best is None or size < best[0]) and equal(found, steps):
            best = size, found
    if best is None:
        return "the thresholds of all sets do not lie evenly enough to look alike from the same few places"
    return best[1]


def _folded_fits(
    inner: list[Array], first: int, last: int, coarse: int, code_bits: int, most: int | None
) -> list[Fit] | None:
    """The fits of all sets with the same buckets.

    None if a set has none, if they need too many cells, or if they surely take `most` bits of memory or more.
    """
    fits: list[Fit] = []
    for portion in portions(len(inner), _FIRST):
        # Sets that follow can only make the cells finer, and so more.
        if most is not None and _least(fits, first, last, coarse, code_bits) >= most:
            return None
        varied = [s for s in portion if len(inner[s])]
        solved = fit_buckets([Buckets(inner[s], first, last, coarse) for s in varied], True) if varied else []
        own = dict(zip(varied, solved, strict=True))
        for s in portion:
            fit = own[s] if s in own else fit_constant(first, last, coarse)
            if fit is None:
                return None
            fits.append(fit)
        fine = min(fit.fine for fit in fits)
        if max(high - low for low, high in (fit.cells(fine) for fit in fits)) >= 4 << _MAX_CELL:
            return None
    return fits


def _least(fits: list[Fit], first: int, last: int, coarse: int, code_bits: int) -> int:
    """A lower bound of the bits that `memories` of all sets will have, from the fits of some.

    Sets that follow can only make the cells finer, and y, its fraction and the rest wider. Finer cells never take less:
    half the size is twice the number, and a word has at least two bits besides its position. Only where there are no
    more than two cells could half the size be less, so that two cells are the least.
    """
    count = (last >> coarse) - (first >> coarse) + 1
    # Whole bits of y. Of more than two buckets, one in the middle is whole.
    width = max([coarse if count > 2 else 0, *((fit.length >> fit.fraction).bit_length() for fit in fits)])
    fine = min([max(0, width - 1), *(fit.fine for fit in fits)])
    fraction = max((fit.fraction for fit in fits), default=0)
    rest = max((fit.rest_bits for fit in fits), default=0)
    starts = (code_bits + width + fraction) << _bits(count - 1)
    cells = (2 + fine + fraction) << max(1, width - fine)
    return starts + cells + (rest << code_bits)


def memories(found: Correct, code_bits: int) -> tuple[tuple[int, int], ...]:
    """(words, bits of a word) of the tables by bucket, by cell and by code, if all sets have one shape."""
    size, cell = int(found.size[0]), int(found.cell[0])
    return (
        (1 << int(found.bucket[0]), code_bits + size + cell),
        (1 << cell, 1 + found.count_bits + size),
        (1 << code_bits, found.rest_bits),
    )


def cost(found: Correct, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block memory) of hg_correct."""
    folds, lanes = table.shape
    luts = 10.0 + sum(_luts(found, s, source.bits, result.bits) for s in table[0].tolist())
    block = 0
    for words, bits in memories(found, result.bits) if folds > 1 else ():
        if folds * words >= _BLOCK_WORDS and folds * words * bits >= _BLOCK_BITS:
            block += lanes * folds * words * bits
        else:
            luts += lanes * folds * words * bits / 50
    return round(luts, 1), 0, block


def _luts(found: Correct, s: int, bits: int, code_bits: int) -> float:
    """LUT of a lane of set s, without memories. Tables that are logic share the LUT of the adders behind them."""
    bucket, cell = (0, 0) if found.folded else (int(found.bucket[s]), int(found.cell[s]))
    size, every = int(found.size[s]), int(found.size[s] + found.cell[s])
    starts = int(np.bitwise_or.reduce(found.start[:, s]))
    even = (starts & -starts).bit_length() - 1 if starts else every
    finer = 0 if found.folded else int(found.rest[:, s].max()).bit_length()
    direct, short = not found.folded and not found.rest_bits, code_bits <= _SHORT
    compared = (size - finer) * _bit(cell) + finer * _bit(code_bits)
    if direct and cell <= _LINK:
        compared = 2 * -(-size // (6 - cell))
    luts = (every - even) * _bit(bucket) + compared
    luts += found.count_bits * _table(cell) + (code_bits + (not short)) * _bit(bucket)
    luts += code_bits + 2 if found.rest_bits or found.folded else 0
    luts += code_bits + size if found.rest_bits and found.folded else 0  # shift registers
    sides = 0.0
    for bound, occurs in ((found.first, found.below), (found.last + 1, found.beyond)):
        if occurs[s]:
            edge = int(bound[s])
            sides += 2 + (bits - (edge & -edge).bit_length() + 1) / 5
    return luts + sides + (int(found.bucket[s]) if sides and (short or not direct) else 0)


def _table(address: int) -> int:
    """LUTs of a bit of a table."""
    return 1 if address <= 6 else 1 << (address - 6)


def _bit(address: int) -> int:
    """LUTs of a bit of an adder with an operand from a table."""
    return 1 if address <= 5 else _table(address) + 2
