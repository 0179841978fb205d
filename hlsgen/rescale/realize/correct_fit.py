"""Finds starts of the buckets relative to which the thresholds look the same, for the realization `correct`.

Each bucket may have a start of its own, and all buckets share one list of thresholds, `level`. The sum of start and
level must give every threshold of the function, up to the bits that are stored apart. These are difference constraints,
solved by relaxation as in the algorithm of Bellman and Ford.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlsgen.numerics.fixed import Array

#: Widths of a bucket's number that are tried with logic, and the most cells of a fit with a single bucket.
_BUCKETS = (5, 4, 3, 6, 7)
_MAX_CELLS = 512
#: More than any input: marks a threshold that does not exist.
_NONE = 1 << 58
#: At most this many table entries are relaxed at once, so that they stay in the caches.
_TOGETHER = 1 << 17


@dataclass(frozen=True)
class Grid:
    """The grid of starts and thresholds: fraction bits, bits of the finer part, grain of starts."""

    fraction: int
    rest_bits: int
    grain: int

    @property
    def step(self) -> int:
        """Thresholds are multiples of this."""
        return 1 << self.rest_bits

    @property
    def slack(self) -> int:
        """A threshold may be too low by less than this."""
        return 1 << max(self.fraction, self.rest_bits)


def _finer(widths: range) -> list[Grid]:
    return [Grid(0, rest_bits, 1 << grain) for rest_bits in widths for grain in range(rest_bits, -1, -1)]


#: Fraction bits that are tried without low bits apart.
_FRACTIONS = range(9)
#: Grids with low bits apart. The grids of one list are tried together.
_FINER_GRIDS = (_finer(range(1, 6)), _finer(range(6, 11)), _finer(range(11, 15)))


def _grids(fraction: int) -> list[list[Grid]]:
    """Grids in the order in which they are tried, the cheapest first, from `fraction` on.

    Thresholds that fit a number of fraction bits also fit a greater one.
    """
    without_low_bits = [Grid(bits, 0, 1) for bits in _FRACTIONS[fraction:]]
    first = 1 if fraction else len(without_low_bits)
    return [without_low_bits[:first], without_low_bits[first:], *_FINER_GRIDS]


@dataclass(frozen=True, eq=False)
class Buckets:
    """The thresholds `inner` int64, ascending, of a set, and buckets of 2^coarse inputs on first..last."""

    inner: Array
    first: int
    last: int
    coarse: int

    @property
    def numbers(self) -> Array:
        """The numbers of all buckets, int64 (buckets,)."""
        return np.arange(self.first >> self.coarse, (self.last >> self.coarse) + 1)

    @staticmethod
    def of(inner: Array, first: int, last: int, bits: int) -> Buckets:
        """The smallest buckets whose numbers have at most `bits` bits."""
        coarse = next(c for c in range(64) if (last >> c) - (first >> c) < 1 << bits)
        return Buckets(inner, first, last, coarse)


@dataclass(frozen=True, eq=False)
class Fit:
    """Buckets and thresholds of one set.

    Buckets are numbered from the bucket of input `first` on, 2^coarse inputs each. `start` int64 (buckets,) is
    subtracted from x, `thresholds_below` int64 (buckets,) counts the thresholds below the bucket. `level` int64
    (columns,): the shared thresholds of y = x - start, ascending. start and level are in units of 2^-fraction.
    `low_bits` int64 (thresholds,): low bits of each threshold, `rest_bits` wide. Inputs beyond `last` reach `above`
    thresholds of the last bucket.
    """

    first: int
    last: int
    coarse: int
    above: int
    fraction: int
    rest_bits: int
    start: Array
    thresholds_below: Array
    level: Array
    low_bits: Array

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest y, in units of 2^-fraction."""
        number = (self.first >> self.coarse) + np.arange(len(self.start))
        low = np.maximum(number << self.coarse, self.first) << self.fraction
        high = np.minimum(((number + 1) << self.coarse) - 1, self.last) << self.fraction
        return int((low - self.start).min()), int((high - self.start).max())

    @property
    def length(self) -> int:
        """The distance from the least to the greatest y, in units of 2^-fraction."""
        return self.ends[1] - self.ends[0]

    @cached_property
    def fine(self) -> int:
        """Lowest bit of a cell's number: the longest cells that hold at most one threshold each."""
        gap = int(np.diff(self.level).min()) if len(self.level) > 1 else 1 << 62
        return max(0, min(self.coarse + self.fraction, gap.bit_length() - 1) - self.fraction)

    def cells(self, fine: int) -> tuple[int, int]:
        """The numbers of the cells of the least and of the greatest y."""
        low, high = self.ends
        size = fine + self.fraction
        return low >> size, high >> size


#: A grid, the starts (buckets,) and the levels (columns,).
Solution = tuple[Grid, Array, Array]


def _solve(tables: Sequence[Array], grids: Sequence[Grid]) -> list[Solution | None]:
    """The first grid with a solution for each table, with its start (buckets,) and level (columns,); else None.

    A solution has scaled - slack < start + level <= scaled, where `scaled` is the table with the grid's fraction bits.
    Each table is int64 (buckets, columns), _NONE where there is no threshold, and no constraint. Starts are multiples
    of the grain, levels of the step. Relaxation goes from above to the greatest solution whose start is at least 0 in
    the bucket with the most thresholds. It runs for all tables and grids at once, each pair on a row of its own.
    """
    buckets, columns = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    padded = np.full((len(tables), buckets, columns), _NONE)
    for place, table in zip(padded, tables, strict=True):
        place[: table.shape[0], : table.shape[1]] = table
    exists = (padded < _NONE)[:, None]
    # Array rows belong to table `owner` and grid `number`.
    owner: Array = np.repeat(np.arange(len(tables)), len(grids))
    number: Array = np.tile(np.arange(len(grids)), len(tables))
    step, grain, slack, fraction = (
        np.array([getattr(grid, name) for grid in grids])[number] for name in ("step", "grain", "slack", "fraction")
    )
    scaled = padded[:, None] << fraction[: len(grids), None, None]
    # A threshold that does not exist is never the least of a row or column.
    above, below = (np.where(exists, scaled, end).reshape(-1, buckets, columns) for end in (2 * _NONE, -2 * _NONE))
    widest = exists[:, 0].sum(axis=2).argmax(axis=1)[owner]
    # The longest path, twice for the rounding to the grids.
    round_limit = np.array([2 * sum(table.shape) for table in tables])
    back = np.full((len(owner), buckets), _NONE)  # Holds -start.
    back[np.arange(len(owner)), widest] = 0
    active: Array = np.ones(len(owner), np.bool_)
    best = np.full(len(tables), len(grids))
    solutions: list[Solution | None] = [None] * len(tables)
    for round_number in range(int(round_limit.max())):
        active &= (back[np.arange(len(owner)), widest] >= -np.maximum(step, grain)) & (number < best[owner])
        active &= round_number < round_limit[owner]
        active_rows = np.count_nonzero(active)
        if not active_rows:
            break
        if 4 * active_rows <= 3 * len(active):
            owner, number, step, grain, slack, above, below, widest, back, active = (
                x[active] for x in (owner, number, step, grain, slack, above, below, widest, back, active)
            )
        level = (above + back[:, :, None]).min(axis=1) & -step[:, None]
        tight = ((level[:, None, :] - below).min(axis=2) + (slack - 1)[:, None]) & -grain[:, None]
        tight = np.minimum(back, tight)
        for row in np.flatnonzero(active & (tight == back).all(axis=1)):
            active[row], table_number = False, int(owner[row])
            if number[row] < best[table_number]:
                best[table_number], (height, width) = number[row], tables[table_number].shape
                solutions[table_number] = grids[int(number[row])], -back[row, :height], level[row, :width]
        back = tight
    return solutions


def _solved(tables: Sequence[Array], fraction: int) -> list[Solution | None]:
    """The solution of each table on the cheapest grid from `fraction` on that has one, or None if no grid has one."""
    solutions: list[Solution | None] = [None] * len(tables)
    for grids in filter(None, _grids(fraction)):
        unsolved = [i for i, solution in enumerate(solutions) if solution is None]
        while unsolved:
            count = max(1, _TOGETHER // (len(grids) * max(tables[i].size for i in unsolved)))
            batch, unsolved = unsolved[:count], unsolved[count:]
            for i, solution in zip(batch, _solve([tables[i] for i in batch], grids), strict=True):
                solutions[i] = solution
    return solutions


def _roundest(low: int, high: int) -> int:
    """The number of low + 1..high with the most trailing zeros."""
    z = max(z for z in range(64) if (high >> z << z) > low)
    return high >> z << z


def _spread(inner: Array, numbers: Array, coarse: int, folded: bool) -> tuple[Array, Array, Array]:
    """The thresholds `inner` by bucket: (buckets, columns), _NONE where there is none.

    Also (buckets,) each: the number of thresholds below the bucket, and the column of its first one. That column is 0.
    If `folded`, the thresholds of the last bucket with any are aligned at the last column.
    """
    begin = np.searchsorted(inner, numbers << coarse)
    end = np.searchsorted(inner, (numbers + 1) << coarse)
    columns = int((end - begin).max())
    shift = np.where(folded & (end == len(inner)) & (end > begin) & (begin > 0), columns - (end - begin), 0)
    index = begin[:, None] + np.arange(columns) - shift[:, None]
    exists = (index >= begin[:, None]) & (index < end[:, None])
    return np.where(exists, inner[np.clip(index, 0, len(inner) - 1)], _NONE), begin, shift


def fit_buckets(buckets_by_set: Sequence[Buckets], folded: bool, fraction: int = 0) -> list[Fit | None]:
    """The fit of each set for its buckets, with the cheapest grid that has one, or None if no grid has one.

    fraction: the fewest fraction bits that are tried.
    """
    spread = [_spread(buckets.inner, buckets.numbers, buckets.coarse, folded) for buckets in buckets_by_set]
    solved = _solved([table for table, _, _ in spread], fraction)
    return [
        None if solution is None else _fitted(buckets, *parts, *solution)
        for buckets, parts, solution in zip(buckets_by_set, spread, solved, strict=True)
    ]


def _fitted(buckets: Buckets, table: Array, begin: Array, shift: Array, grid: Grid, start: Array, level: Array) -> Fit:
    """The fit of `buckets` that a solution on a grid gives."""
    inner, numbers, first, last, coarse = buckets.inner, buckets.numbers, buckets.first, buckets.last, buckets.coarse
    exists = table < _NONE
    fraction, rest_bits, grain = grid.fraction, grid.rest_bits, grid.grain
    # A bucket without thresholds lies below the first level.
    lowest = (((numbers + 1) << coarse) - 1 << fraction) - int(level[0]) + 1
    start = np.where(exists.any(axis=1), start, -(-lowest // grain) * grain)
    y = (np.maximum(numbers << coarse, first) << fraction) - start
    move = min(int(y.min()), int(level[0])) >> rest_bits << rest_bits
    start, level = start + move, level - move
    low_bits = np.zeros(len(inner), np.int64)
    if rest_bits:
        at = (begin - shift)[:, None] + np.arange(table.shape[1])
        low_bits[at[exists]] = (table - start[:, None] - level)[exists]
    thresholds_below = begin - shift
    above = len(inner) - int(thresholds_below[-1])
    return Fit(first, last, coarse, above, fraction, rest_bits, start, thresholds_below, level, low_bits)


def fit_flat(inner: Array, first: int, last: int) -> Fit:
    """The fit with a start of 0 everywhere: its cells are cells of x itself."""
    coarse = max(first.bit_length(), last.bit_length(), 1)
    zero = np.zeros((last >> coarse) - (first >> coarse) + 1, np.int64)
    none = np.zeros(len(inner), np.int64)
    return Fit(first, last, coarse, len(inner), 0, 0, zero, zero, inner, none)


def fit_constant(first: int, last: int, coarse: int) -> Fit:
    """The fit of a set without a step: every y lies before the only threshold."""
    start = np.arange(first >> coarse, (last >> coarse) + 1) << coarse
    zero = np.zeros(1, np.int64)
    return Fit(first, last, coarse, 0, 0, 0, start, np.zeros(len(start), np.int64), zero + (1 << coarse), zero)


def candidates(inner: Sequence[Array], lo: Sequence[int], hi: Sequence[int]) -> list[list[Fit]]:
    """Fits for each set on lo..hi with tables of its own; `inner` int64: its thresholds, ascending."""
    fits: list[list[Fit]] = [[] for _ in inner]
    ends = {}
    for s, (column, low, high) in enumerate(zip(inner, lo, hi, strict=True)):
        if not len(column):
            fits[s].append(fit_constant(low, high, max(low.bit_length(), high.bit_length(), 1)))
            continue
        # Beyond first and last, less than the distance of thresholds away, the code is fixed.
        gap = int(np.diff(column).min()) if len(column) > 1 else high - low + 1
        bottom, top = int(column[0]), int(column[-1])
        first = low if low > bottom - gap else _roundest(bottom - gap, bottom)
        last = high if high < top + gap else _roundest(top, top + gap) - 1
        if (last - first) // gap < _MAX_CELLS:
            fits[s].append(fit_flat(column, first, last))
        ends[s] = first, last
    for bits in _BUCKETS:
        buckets_by_set = {s: Buckets.of(inner[s], first, last, bits) for s, (first, last) in ends.items()}
        for s, fit in zip(buckets_by_set, fit_buckets(list(buckets_by_set.values()), False), strict=True):
            if fit is not None:
                fits[s].append(fit)
    return fits
