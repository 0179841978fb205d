"""Finds starts of the buckets from which the thresholds of a set look the same, for the realization `correct`.

Each bucket may have a start of its own, and all buckets share one list of thresholds `level`. start + level must give
every threshold of the function, up to the bits that are stored apart. These are difference constraints, which
relaxation solves as in the algorithm of Bellman and Ford.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array

#: Widths of a bucket's number that are tried with logic, and the most cells of a fit with a single bucket.
_BUCKETS = (5, 4, 3, 6, 7)
_MAX_CELLS = 512
#: More than any input: stands for a threshold that does not exist.
_NONE = 1 << 58


@dataclass(frozen=True)
class Grid:
    """What starts and thresholds are multiples of: bits behind the point, bits of the finer part, grain of starts."""

    fraction: int
    rest_bits: int
    grain: int

    @property
    def step(self) -> int:
        """What thresholds are multiples of."""
        return 1 << self.rest_bits

    @property
    def slack(self) -> int:
        """By how much less than this a threshold may lie too low."""
        return 1 << max(self.fraction, self.rest_bits)


def _finer(rests: range) -> list[Grid]:
    return [Grid(0, rest, 1 << grain) for rest in rests for grain in range(rest, -1, -1)]


#: Grids in the order in which they are tried, the cheapest first; those of a list together.
_GRIDS = (
    [Grid(fraction, 0, 1) for fraction in range(9)],
    _finer(range(1, 6)),
    _finer(range(6, 11)),
    _finer(range(11, 15)),
)


@dataclass(frozen=True, eq=False)
class Fit:
    """Buckets and thresholds of one set.

    Buckets are numbered from that of input `first` on, 2^coarse inputs each. `start` int64 (buckets,) is what x is
    seen from, `before` int64 (buckets,) how many thresholds lie below. `level` int64 (columns,): the shared
    thresholds of y = x - start, ascending. start and level are in units of 2^-fraction. `rest` int64 (thresholds,):
    low bits of each threshold, `rest_bits` wide. Inputs beyond `last` reach `above` thresholds of the last bucket.
    """

    first: int
    last: int
    coarse: int
    above: int
    fraction: int
    rest_bits: int
    start: Array
    before: Array
    level: Array
    rest: Array

    @property
    def fine(self) -> int:
        """Lowest bit of a cell's number: the longest cells that hold at most one threshold each."""
        gap = int(np.diff(self.level).min()) if len(self.level) > 1 else 1 << 62
        return max(0, min(self.coarse + self.fraction, gap.bit_length() - 1) - self.fraction)

    def cells(self, fine: int) -> tuple[int, int]:
        """The numbers of the cells of the least and of the greatest y."""
        number = (self.first >> self.coarse) + np.arange(len(self.start))
        low = np.maximum(number << self.coarse, self.first) << self.fraction
        high = np.minimum(((number + 1) << self.coarse) - 1, self.last) << self.fraction
        size = fine + self.fraction
        return int((low - self.start).min()) >> size, int((high - self.start).max()) >> size


def _solve(table: Array, grids: Sequence[Grid]) -> tuple[Grid, Array, Array] | None:
    """The first grid that has a solution, and its start (buckets,) and level (columns,); None if none has.

    A solution has scaled - slack < start + level <= scaled, where `scaled` is the table with the grid's fraction bits.
    `table` int64 (buckets, columns), _NONE where there is no threshold, and no constraint. Starts are multiples of
    the grain, levels of the step. Relaxation goes from above to the greatest solution whose start is at least 0 in the
    bucket with the most thresholds; it is done for all grids at once.
    """
    known = table < _NONE
    widest = int(known.sum(axis=1).argmax())
    number = np.arange(len(grids))
    step, grain, slack = (np.array([getattr(g, f) for g in grids])[:, None] for f in ("step", "grain", "slack"))
    scaled = np.where(known, table << np.array([g.fraction for g in grids])[:, None, None], _NONE)
    back = np.full((len(grids), len(table)), _NONE)  # -start
    back[:, widest] = 0
    best: tuple[int, Array, Array] | None = None
    for _ in range(2 * sum(table.shape)):  # the longest path, twice for the rounding to the grids
        going = back[:, widest] >= -np.maximum(step, grain)[:, 0]
        if best is not None:
            going &= number < best[0]
        if not going.all():
            number, step, grain, slack, scaled, back = (x[going] for x in (number, step, grain, slack, scaled, back))
        if not len(number):
            break
        level = np.where(known, scaled + back[:, :, None], 2 * _NONE).min(axis=1) // step * step
        tight = (
            np.where(known, level[:, None, :] - scaled + slack[:, :, None] - 1, 2 * _NONE).min(axis=2) // grain * grain
        )
        tight = np.minimum(back, tight)
        still = (tight == back).all(axis=1)
        if still.any():
            i = int(still.argmax())
            best = int(number[i]), -back[i], level[i]
        back = tight
    return None if best is None else (grids[best[0]], best[1], best[2])


def _roundest(low: int, high: int) -> int:
    """The number of low + 1..high with the most trailing zeros."""
    z = max(z for z in range(64) if (high >> z << z) > low)
    return high >> z << z


def _spread(inner: Array, numbers: Array, coarse: int, folded: bool) -> tuple[Array, Array, Array]:
    """The thresholds `inner` by bucket: (buckets, columns), _NONE where there is none.

    Also (buckets,) each: how many thresholds lie below the bucket, and the column of its first one. That is 0, but
    if `folded` the thresholds of the last bucket with any are aligned at the last column.
    """
    begin = np.searchsorted(inner, numbers << coarse)
    end = np.searchsorted(inner, (numbers + 1) << coarse)
    columns = int((end - begin).max())
    shift = np.where(folded & (end == len(inner)) & (end > begin) & (begin > 0), columns - (end - begin), 0)
    index = begin[:, None] + np.arange(columns) - shift[:, None]
    known = (index >= begin[:, None]) & (index < end[:, None])
    return np.where(known, inner[np.clip(index, 0, len(inner) - 1)], _NONE), begin, shift


def fit_buckets(inner: Array, first: int, last: int, coarse: int, folded: bool) -> Fit | None:
    """The fit of one set for buckets of 2^coarse inputs, with the cheapest grid that has one; None if none has."""
    numbers = np.arange(first >> coarse, (last >> coarse) + 1)
    table, begin, shift = _spread(inner, numbers, coarse, folded)
    known = table < _NONE
    solved = next((found for grids in _GRIDS if (found := _solve(table, grids)) is not None), None)
    if solved is None:
        return None
    grid, start, level = solved
    fraction, rest_bits, grain = grid.fraction, grid.rest_bits, grid.grain
    # Buckets without thresholds lie below the first one.
    lowest = (((numbers + 1) << coarse) - 1 << fraction) - int(level[0]) + 1
    start = np.where(known.any(axis=1), start, -(-lowest // grain) * grain)
    y = (np.maximum(numbers << coarse, first) << fraction) - start
    move = min(int(y.min()), int(level[0])) >> rest_bits << rest_bits
    start, level = start + move, level - move
    rest = np.zeros(len(inner), np.int64)
    if rest_bits:
        at = (begin - shift)[:, None] + np.arange(table.shape[1])
        rest[at[known]] = (table - start[:, None] - level)[known]
    before = begin - shift
    above = len(inner) - int(before[-1])
    return Fit(first, last, coarse, above, fraction, rest_bits, start, before, level, rest)


def fit_flat(inner: Array, first: int, last: int) -> Fit:
    """The fit with a start of 0 everywhere: the cells are those of x itself."""
    coarse = max(first.bit_length(), last.bit_length(), 1)
    zero = np.zeros((last >> coarse) - (first >> coarse) + 1, np.int64)
    none = np.zeros(len(inner), np.int64)
    return Fit(first, last, coarse, len(inner), 0, 0, zero, zero, inner, none)


def fit_constant(first: int, last: int, coarse: int) -> Fit:
    """The fit of a set without a step: every y lies in front of the only threshold."""
    start = np.arange(first >> coarse, (last >> coarse) + 1) << coarse
    zero = np.zeros(1, np.int64)
    return Fit(first, last, coarse, 0, 0, 0, start, np.zeros(len(start), np.int64), zero + (1 << coarse), zero)


def candidates(inner: Array, lo: int, hi: int) -> Iterator[Fit]:
    """Fits for one set on lo..hi with tables of its own; `inner` int64: its thresholds, ascending."""
    if len(inner) == 0:
        yield fit_constant(lo, hi, max(lo.bit_length(), hi.bit_length(), 1))
        return
    # Beyond first and last, less than the distance of thresholds away, the code is fixed.
    gap = int(np.diff(inner).min()) if len(inner) > 1 else hi - lo + 1
    bottom, top = int(inner[0]), int(inner[-1])
    first = lo if lo > bottom - gap else _roundest(bottom - gap, bottom)
    last = hi if hi < top + gap else _roundest(top, top + gap) - 1
    if (last - first) // gap < _MAX_CELLS:
        yield fit_flat(inner, first, last)
    for bits in _BUCKETS:
        coarse = next(c for c in range(64) if (last >> c) - (first >> c) < 1 << bits)
        fit = fit_buckets(inner, first, last, coarse, False)
        if fit is not None:
            yield fit
