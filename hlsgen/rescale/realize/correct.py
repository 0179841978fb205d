"""Realization `correct`: guesses the code of a rising function from high bits, and corrects it by one comparison.

The high bits of x are its bucket, and a table gives each bucket a start and a first code. Evenly spaced thresholds look
the same in all buckets, relative to the right start: y = x - start. The high bits of y are its cell. A cell is shorter
than the distance of thresholds. So it holds at most one, and one comparison in it gives the code. This needs no
multiplier.

Example: thresholds 10, 20, 30 and so on, buckets of 32 inputs. Bucket 1 (32..63) has the thresholds 40, 50 and 60.
Relative to start 30 they are y = 10, 20, 30, the same as in bucket 0 with start 0. In cells of 8, y = 21 is in cell 2
(16..23), which holds the threshold 20 only.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.correct_fit import Buckets, Fit, candidates, fit_buckets, fit_constant
from hlsgen.rescale.threshold_table import ThresholdTable, portions

#: Widths of a bucket's number that are tried with memories, and the most bits of a cell's number.
_MEMORY_BUCKETS = (4, 5, 6, 7, 8, 9)
_MAX_CELL = 9
_MAX_STEPS = 1023
#: Bits of a code up to which the last sum has no carry chain (SHORT of hg_correct). Bits of a cell's number up to
#: which a link of the comparison takes as many bits as fit in a LUT beside it (PART there).
_SHORT, _LINK = 4, 3
#: Bits of a cell's number up to which a bit of its table is one LUT everywhere.
_SMALL = 4
#: Memories of fewer words or fewer bits become logic.
_BLOCK_WORDS = 512
_BLOCK_BITS = 4096
#: Sets that are fitted first: a few together take no longer than one.
_FIRST = 8
#: Inputs of one vectorized comparison.
_PORTION = 1 << 16


@dataclass(frozen=True, eq=False)
class Correct:
    """Parameters of module hg_correct.

    int64 (sets,): `bucket` and `cell` are the bits of a bucket's and of a cell's number. `coarse` and `fine` are the
    lowest bits of x and of y that belong to them. Inputs below `first` count no threshold of their bucket, inputs above
    `last` count `above` of it. bool (sets,): `below` and `beyond` say whether such inputs occur.

    Tables by bucket, int64 (2^bucket, sets): `start` and `code`. Tables by cell (2^cell, sets): `count` int64 codes to
    add, `level` int64 the threshold inside the cell, and `sure` bool whether that is always reached. The largest set
    gives the sizes. `low_bits` int64 (codes, sets): the low bits of the threshold, by the code below it, from `low` on.
    y has `fraction` fraction bits; `rest_bits` is the width of `low_bits`; if `folded`, all sets have one shape.
    `every`: adders in series between registers.
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
    low_bits: Array
    every: int = 2

    @property
    def deep(self) -> bool:
        """True if registers follow the tables of cells: they are logic of more than one four-input LUT a bit."""
        return self.every == 1 and not self.folded and not self.rest_bits and int(self.cell.max()) > _SMALL

    @property
    def latency(self) -> int:
        return 3 + (self.rest_bits > 0) + 2 * self.folded + self.deep

    @property
    def size(self) -> Array:
        """Bits of the position inside a cell, int64 (sets,)."""
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
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        sets, size = np.arange(len(self.fine)), self.size
        bucket = self.number(codes)
        y = (codes << self.fraction) - self.start[bucket, sets]
        cell = (y >> size) & ((1 << self.cell) - 1)
        below, above = codes < self.first, codes > self.last
        count = np.where(below, 0, np.where(above, self.above, self.count[cell, sets]))
        code = self.code[bucket, sets] + count
        low_bits = self.low_bits[np.clip(code - self.low, 0, len(self.low_bits) - 1), sets]
        level = self.level[cell, sets] | (low_bits << self.fraction)
        reached = below | above | self.sure[cell, sets] | ((y & ((1 << size) - 1)) >= level)
        return np.asarray(code + reached)

    def jumps(self, steps: ThresholdTable) -> Array | None:
        """Inputs, int64 (points, sets), on both sides of every border of a bucket or of a cell.

        Elsewhere the realization can jump only where y passes the one threshold of its cell. Returns None if the
        numbers of cells could repeat within a bucket.
        """
        lo, hi = np.maximum(self.first, steps.lo), np.minimum(self.last, steps.hi)
        size, sets = self.size, np.arange(steps.sets)
        number = (lo >> self.coarse) + np.arange(len(self.start))[:, None]
        begin = np.clip(number << self.coarse, lo, hi + 1)
        end = np.clip((number + 1) << self.coarse, lo, hi + 1)
        start = np.asarray(self.start[number & ((1 << self.bucket) - 1), sets])
        cell = ((begin << self.fraction) - start) >> size
        further_cells = ((((end - 1) << self.fraction) - start) >> size) - cell
        if (end[-1] <= hi).any() or (further_cells >= 1 << self.cell).any():
            return None
        # A cell begins at the least x with x * 2^fraction - start >= cell * 2^size. A bucket has few of all cells.
        cells = cell + np.arange(max(0, int(further_cells.max())) + 1)[:, None, None]
        cells = np.clip(-((-(cells << size) - start) >> self.fraction), begin, end)
        points = np.concatenate([cells.reshape(-1, steps.sets), begin, end])
        points = np.concatenate([points, points - 1])
        return np.clip(points, steps.lo, steps.hi, out=points)


def equal(realization: Correct, steps: ThresholdTable) -> bool:
    """True if `realization` is proven equal to the steps.

    Both are monotone between neighbouring points of `jumps`, so agreement there and at the corners decides.
    """
    corners = steps.corners()
    if (realization.apply(corners) != steps.apply(corners)).any():
        return False
    jumps = realization.jumps(steps)
    if jumps is None:
        return False
    rows = max(1, _PORTION // steps.sets)
    parts = (jumps[start : start + rows] for start in range(0, len(jumps), rows))
    return all((realization.apply(part) == steps.apply(part)).all() for part in parts)


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
    low_bits = np.zeros((max(1, steps.steps), steps.sets), np.int64)
    reached = steps.index(steps.lo)
    first, last = np.array([(fit.first, fit.last) for fit in fits]).T
    for s, (fit, (low, high)) in enumerate(zip(fits, spans, strict=True)):
        size, up = int(fine[s]) + fraction, fraction - fit.fraction
        number = ((fit.first >> fit.coarse) + np.arange(len(fit.start))) & ((1 << int(bucket[s])) - 1)
        start[number, s] = fit.start << up
        code[number, s] = steps.base + reached[s] + fit.thresholds_below - 1
        edges = np.arange(low, high + 2) << size
        passed = np.searchsorted(fit.level << up, edges)
        inside = passed[1:] > passed[:-1]
        number = np.arange(low, high + 1) & ((1 << int(cell[s])) - 1)
        count[number, s] = passed[:-1] + inside
        place = (fit.level << up)[np.minimum(passed[:-1], len(fit.level) - 1)] - edges[:-1]
        level[number, s] = np.where(inside, place, 0)
        sure[number, s] = ~inside & (fit.rest_bits > 0)
        low_bits[reached[s] : reached[s] + len(fit.low_bits), s] = fit.low_bits
    return Correct(
        fraction=fraction,
        rest_bits=max(fit.rest_bits for fit in fits),
        folded=folded,
        low=steps.base,
        bucket=bucket,
        cell=cell,
        coarse=np.array([fit.coarse for fit in fits]),
        fine=fine,
        first=first,
        last=last,
        above=np.where(last < steps.hi, [fit.above for fit in fits], 0),
        below=first > steps.lo,
        beyond=last < steps.hi,
        start=start,
        code=code,
        count=count,
        level=level,
        sure=sure,
        low_bits=low_bits,
    )


def _bits(largest: int) -> int:
    return max(1, largest.bit_length())


def _cheapest(steps: ThresholdTable, s: int, fits: list[Fit]) -> Fit | None:
    """The cheapest fit of set s that is proven equal, or None."""
    lo, hi = int(steps.lo[s]), int(steps.hi[s])
    single_set = ThresholdTable(steps.name, steps.lo[[s]], steps.hi[[s]], steps.table[:, [s]], steps.values[:, [s]])
    priced: list[tuple[float, Fit, Correct]] = []
    for fit in fits:
        low, high = fit.cells(fit.fine)
        if high - low < 1 << _MAX_CELL:
            realization = _build(single_set, [fit], False)
            price = _luts(realization, 0, IntType(lo, hi).bits, steps.steps.bit_length())
            priced.append((price, fit, realization))
    by_price = sorted(priced, key=lambda candidate: candidate[0])
    return next((fit for _, fit, realization in by_price if equal(realization, single_set)), None)


def find(steps: ThresholdTable, folded: bool = False) -> Correct | str:
    """A realization proven equal to `steps` on lo..hi of all sets, or the reason, as text, why there is none.

    `folded` gives all sets tables of one shape, for lanes that change between sets.
    """
    if not steps.rising:
        return "the codes do not rise by one from threshold to threshold"
    for s in range(steps.sets):
        inner = steps.inner(s)
        repeated = inner[1:][inner[1:] == inner[:-1]]
        if len(repeated):
            return f"set {s} rises by more than one code at input {repeated[0]}"
        if len(inner) > _MAX_STEPS:
            return f"set {s} has more than {_MAX_STEPS} thresholds"
    if folded:
        return _find_folded(steps)
    fits = []
    for portion in portions(steps.sets):
        fits_by_set = candidates(
            [steps.inner(s) for s in portion], *(x[list(portion)].tolist() for x in (steps.lo, steps.hi))
        )
        for s, set_fits in zip(portion, fits_by_set, strict=True):
            fit = _cheapest(steps, s, set_fits)
            if fit is None:
                return f"the thresholds of set {s} are not evenly spaced enough to be shared by a few buckets"
            fits.append(fit)
    realization = _build(steps, fits, False)
    return realization if equal(realization, steps) else "the sets need too different fraction bits"


def _find_folded(steps: ThresholdTable) -> Correct | str:
    """The realization with tables of one shape that needs the least memory; or the reason why there is none.

    Searches the best first: the widths of buckets are ordered by their bounds, and only the first one goes on.
    """
    code_bits = steps.steps.bit_length()
    fits_by_width = [_FoldedFits(*buckets, code_bits) for buckets in _folded_buckets(steps)]
    queue = [(fits.least_memory(), width) for width, fits in enumerate(fits_by_width)]
    realizations: dict[int, Correct] = {}
    while queue:
        heapq.heapify(queue)
        _, width = heapq.heappop(queue)
        if width in realizations:
            # Its memory is at most the bound of all others.
            if equal(realizations[width], steps):
                return realizations[width]
            continue
        fits = fits_by_width[width]
        if not fits.extend():
            continue
        if fits.complete:
            realizations[width] = _build(steps, fits.fits, True)
            size = sum(words * bits for words, bits in memories(realizations[width], code_bits))
            queue.append((size, width))
        else:
            queue.append((fits.least_memory(), width))
    return "the thresholds of the sets are not evenly spaced enough to be shared by the same few buckets"


def _folded_buckets(steps: ThresholdTable) -> Iterator[tuple[list[Array], int, int, int]]:
    """The thresholds of each set, and the buckets of all sets (first, last, coarse), for each width of their number."""
    inner = [steps.inner(s) for s in range(steps.sets)]
    lowest = min((int(column[0]) for column in inner if len(column)), default=int(steps.lo.min()))
    highest = max((int(column[-1]) for column in inner if len(column)), default=lowest)
    for bits in _MEMORY_BUCKETS:
        # One bucket more on each side, below and above all thresholds, if inputs come there.
        for coarse in range(64):
            first = max(int(steps.lo.min()), (lowest >> coarse) << coarse)
            last = min(int(steps.hi.max()), (((highest >> coarse) + 2) << coarse) - 1)
            if (last >> coarse) - (first >> coarse) < 1 << bits:
                break
        yield inner, first, last, coarse


class _FoldedFits:
    """The fits of all sets with the same buckets, portion by portion.

    inner: thresholds of each set. code_bits: bits of the number of thresholds.
    """

    def __init__(self, inner: list[Array], first: int, last: int, coarse: int, code_bits: int) -> None:
        self.fits: list[Fit] = []
        self._inner, self._ends, self._coarse, self._code_bits = inner, (first, last), coarse, code_bits
        self._portions = portions(len(inner), _FIRST)

    @property
    def complete(self) -> bool:
        return len(self.fits) == len(self._inner)

    def least_memory(self) -> int:
        """A lower bound of the bits of memory of all sets."""
        return _least_memory(self.fits, *self._ends, self._coarse, self._code_bits)

    def extend(self) -> bool:
        """Fit the next portion of sets. False if a set has no fit, or if they need too many cells."""
        portion = next(self._portions)
        varied = [s for s in portion if len(self._inner[s])]
        buckets = [Buckets(self._inner[s], *self._ends, self._coarse) for s in varied]
        # All sets have the most fraction bits of any.
        fraction = max((fit.fraction for fit in self.fits), default=0)
        fit_by_set = dict(zip(varied, fit_buckets(buckets, True, fraction) if varied else [], strict=True))
        for s in portion:
            fit = fit_by_set[s] if s in fit_by_set else fit_constant(*self._ends, self._coarse)
            if fit is None:
                return False
            self.fits.append(fit)
        fine = min(fit.fine for fit in self.fits)
        return max(high - low for low, high in (fit.cells(fine) for fit in self.fits)) < 4 << _MAX_CELL


def _least_memory(fits: list[Fit], first: int, last: int, coarse: int, code_bits: int) -> int:
    """A lower bound of the bits that `memories` of all sets will have, from the fits of some.

    Later sets can only make the cells finer, and y, its fraction and its low bits wider. Finer cells never take less
    memory: half the size is twice the number, and a word has at least two bits besides its position. Half the size
    could only be less with one or two cells, so two cells are the least.
    """
    count = (last >> coarse) - (first >> coarse) + 1
    # Integer bits of y. If there are more than two buckets, one in the middle is complete.
    width = max([coarse if count > 2 else 0, *((fit.length >> fit.fraction).bit_length() for fit in fits)])
    fine = min([max(0, width - 1), *(fit.fine for fit in fits)])
    fraction = max((fit.fraction for fit in fits), default=0)
    rest_bits = max((fit.rest_bits for fit in fits), default=0)
    starts = (code_bits + width + fraction) << _bits(count - 1)
    cells = (2 + fine + fraction) << max(1, width - fine)
    return starts + cells + (rest_bits << code_bits)


def memories(realization: Correct, code_bits: int) -> tuple[tuple[int, int], ...]:
    """(words, bits of a word) of the tables by bucket, by cell and by code, if all sets have one shape."""
    size, cell = int(realization.size[0]), int(realization.cell[0])
    return (
        (1 << int(realization.bucket[0]), code_bits + size + cell),
        (1 << cell, 1 + realization.count_bits + size),
        (1 << code_bits, realization.rest_bits),
    )


def cost(realization: Correct, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM) of hg_correct."""
    folds, lanes = table.shape
    luts = 10.0 + sum(_luts(realization, s, source.bits, result.bits) for s in table[0].tolist())
    block = 0
    for words, bits in memories(realization, result.bits) if folds > 1 else ():
        if folds * words >= _BLOCK_WORDS and folds * words * bits >= _BLOCK_BITS:
            block += lanes * folds * words * bits
        else:
            luts += lanes * folds * words * bits / 50
    return round(luts, 1), 0, block


def _luts(realization: Correct, s: int, bits: int, code_bits: int) -> float:
    """LUT of a lane of set s, without memories. Tables that are logic share the LUT of the adders after them."""
    bucket, cell = (0, 0) if realization.folded else (int(realization.bucket[s]), int(realization.cell[s]))
    size, y_bits = int(realization.size[s]), int(realization.size[s] + realization.cell[s])
    starts = int(np.bitwise_or.reduce(realization.start[:, s]))
    even = (starts & -starts).bit_length() - 1 if starts else y_bits
    low_bits_width = 0 if realization.folded else int(realization.low_bits[:, s].max()).bit_length()
    single_table, short = not realization.folded and not realization.rest_bits, code_bits <= _SHORT
    compared = (size - low_bits_width) * _bit(cell) + low_bits_width * _bit(code_bits)
    if single_table and cell <= _LINK:
        compared = 2 * -(-size // (6 - cell))
    luts = (y_bits - even) * _bit(bucket) + compared
    luts += realization.count_bits * _table(cell) + (code_bits + (not short)) * _bit(bucket)
    luts += code_bits + 2 if realization.rest_bits or realization.folded else 0
    luts += code_bits + size if realization.rest_bits and realization.folded else 0  # shift registers
    sides = 0.0
    for bound, occurs in ((realization.first, realization.below), (realization.last + 1, realization.beyond)):
        if occurs[s]:
            edge = int(bound[s])
            sides += 2 + (bits - (edge & -edge).bit_length() + 1) / 5
    return luts + sides + (int(realization.bucket[s]) if sides and (short or not single_table) else 0)


def _table(address: int) -> int:
    """LUTs of a bit of a lookup table."""
    return 1 if address <= 6 else 1 << (address - 6)


def _bit(address: int) -> int:
    """LUTs of a bit of an adder with an operand from a lookup table."""
    return 1 if address <= 5 else _table(address) + 2
