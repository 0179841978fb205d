"""Thresholds that look the same from every bucket of the input: what hlsgen.rescale.correct is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array

#: Fraction bits of starts and thresholds, and bits of the finer part, that are tried.
_FRACTIONS = range(9)
_RESTS = range(1, 15)
#: Bits of a bucket's number in logic, and the cells without buckets, that are tried.
_BUCKETS = (5, 4, 3, 6, 7)
_MAX_CELLS = 512
#: More than any input, and no threshold.
_NONE = 1 << 58


@dataclass(frozen=True, eq=False)
class Fit:
    """One set. Bucket b has start[b - bottom] and counts before[b - bottom] codes; y has thresholds
    `level`, ascending, all in units of 2^-fraction; rest by the threshold's number from the interval's low end."""

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
        """The longest cells with at most one threshold each."""
        gap = int(np.diff(self.level).min()) if len(self.level) > 1 else 1 << 62
        return max(0, min(self.coarse + self.fraction, gap.bit_length() - 1) - self.fraction)

    def cells(self, fine: int) -> tuple[int, int]:
        """The cell of the least and of the largest y."""
        number = (self.first >> self.coarse) + np.arange(len(self.start))
        low = np.maximum(number << self.coarse, self.first) << self.fraction
        high = np.minimum(((number + 1) << self.coarse) - 1, self.last) << self.fraction
        size = fine + self.fraction
        return int((low - self.start).min()) >> size, int((high - self.start).max()) >> size


def _solve(table: Array, step: int, grain: int, slack: int) -> tuple[Array, Array] | None:
    """start (buckets,), multiples of `grain`, level (columns,), multiples of `step`, with
    table - slack < start + level <= table wherever there is a threshold, or None if there are none.

    Relaxation of difference constraints from above: the greatest solution with start[widest] >= 0.
    """
    known = table < _NONE
    widest = int(known.sum(axis=1).argmax())
    back = np.full(len(table), _NONE)  # -start
    back[widest] = 0
    for _ in range(2 * sum(table.shape)):  # the longest path, twice for the rounding to the grids
        if back[widest] < -max(step, grain):
            break
        level = np.where(known, table + back[:, None], 2 * _NONE).min(axis=0) // step * step
        tight = np.where(known, level - table + slack - 1, 2 * _NONE).min(axis=1) // grain * grain
        tight = np.minimum(back, tight)
        if (tight == back).all():
            return -back, level
        back = tight
    return None


def _roundest(low: int, high: int) -> int:
    """The number of low + 1..high with the most trailing zeros."""
    z = max(z for z in range(64) if (high >> z << z) > low)
    return high >> z << z


def _spread(inner: Array, numbers: Array, coarse: int, folded: bool) -> tuple[Array, Array, Array]:
    """Thresholds (buckets, columns), _NONE where there is none; (buckets,): thresholds below the bucket,
    column of its first one. The last bucket in use is aligned at its end if nothing cuts it off."""
    begin = np.searchsorted(inner, numbers << coarse)
    end = np.searchsorted(inner, (numbers + 1) << coarse)
    columns = int((end - begin).max())
    shift = np.where(folded & (end == len(inner)) & (end > begin) & (begin > 0), columns - (end - begin), 0)
    index = begin[:, None] + np.arange(columns) - shift[:, None]
    known = (index >= begin[:, None]) & (index < end[:, None])
    return np.where(known, inner[np.clip(index, 0, len(inner) - 1)], _NONE), begin, shift


def fit_buckets(inner: Array, first: int, last: int, coarse: int, folded: bool) -> Fit | None:
    """Starts and thresholds of one set for buckets of 2^coarse inputs."""
    numbers = np.arange(first >> coarse, (last >> coarse) + 1)
    table, begin, shift = _spread(inner, numbers, coarse, folded)
    known = table < _NONE
    for fraction, rest_bits, grain in _grids():
        scaled = np.where(known, table << fraction, _NONE)
        solved = _solve(scaled, 1 << rest_bits, grain, 1 << max(fraction, rest_bits))
        if solved is not None:
            break
    else:
        return None
    start, level = solved
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


def _grids() -> Iterator[tuple[int, int, int]]:
    """Fraction bits, bits of the finer part and grain of the starts, the cheapest first."""
    yield from ((fraction, 0, 1) for fraction in _FRACTIONS)
    yield from ((0, rest, 1 << grain) for rest in _RESTS for grain in range(rest, -1, -1))


def fit_flat(inner: Array, first: int, last: int) -> Fit:
    """One bucket: the cells are those of x."""
    coarse = max(first.bit_length(), last.bit_length(), 1)
    zero = np.zeros((last >> coarse) - (first >> coarse) + 1, np.int64)
    none = np.zeros(len(inner), np.int64)
    return Fit(first, last, coarse, len(inner), 0, 0, zero, zero, inner, none)


def fit_constant(first: int, last: int, coarse: int) -> Fit:
    """A set without a step: every y is in front of the only threshold."""
    start = np.arange(first >> coarse, (last >> coarse) + 1) << coarse
    zero = np.zeros(1, np.int64)
    return Fit(first, last, coarse, 0, 0, 0, start, np.zeros(len(start), np.int64), zero + (1 << coarse), zero)


def candidates(inner: Array, lo: int, hi: int) -> Iterator[Fit]:
    """For one set with tables of its own, thresholds `inner` between lo and hi."""
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
