"""Steps over the sum or product t of two codes: where the thresholds may lie, and which place is the cheapest.

Only some t occur. A threshold may lie anywhere between the last t with a lower code and the first t with a higher one:
the code is right at every t that occurs. The choice is free: thresholds on one straight line, which need a
multiplication only, or thresholds with many trailing zeros, which need less logic.

Example: t is 0, 2, 4 or 6 with the codes 0, 0, 1, 1. The threshold of code 1 may be 3 or 4. The threshold 4 has two
trailing zeros: a comparison with it does not look at the two lowest bits of t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.extract import MAX_STEPS
from hlsgen.rescale.realize.scale_fit import MAX_PRODUCT, StaircasePoints, multipliers, simplest, slopes
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True, eq=False)
class Samples:
    """The function of one set. `t` int64 (samples,): every sum that occurs, ascending. `code`: the code at each."""

    t: Array
    code: Array

    @staticmethod
    def of(t: Array, codes: Array) -> Samples | None:
        """The samples of all pairs' sums and codes, arrays of one shape, or None if equal sums have different codes."""
        t, codes = t.ravel(), codes.ravel()
        low, span = int(t.min()), int(t.max()) - int(t.min()) + 1
        if span <= 4 * len(t) + 1024:
            table = np.zeros(span, codes.dtype)
            occurs = np.zeros(span, np.bool_)
            table[t - low], occurs[t - low] = codes, True
            if (table[t - low] != codes).any():
                return None
            offsets = np.flatnonzero(occurs)
            return Samples(offsets + low, table[offsets].astype(np.int64))
        order = np.argsort(t, kind="stable")
        t, codes = t[order], codes[order]
        first = np.append(True, t[1:] != t[:-1])
        if (codes[1:] != codes[:-1])[~first[1:]].any():
            return None
        return Samples(t[first], codes[first].astype(np.int64))

    @property
    def direction(self) -> int:
        """1 if the codes rise or are constant, -1 if they fall, 0 otherwise."""
        difference = np.diff(self.code)
        return 1 if (difference >= 0).all() else -1 if (difference <= 0).all() else 0

    def mirrored(self) -> Samples:
        """The function of -t."""
        return Samples(-self.t[::-1], self.code[::-1])


@dataclass(frozen=True, eq=False)
class ThresholdRanges:
    """The range of each threshold of rising functions. Row k belongs to code base + 1 + k, column s to set s.

    `lo`, `hi` int64 (sets,): least and greatest t. `lowest`, `highest` int64 (steps, sets): every threshold of
    lowest..highest gives the right codes. Both are lo if the code is always reached, and hi + 1 if it never is.
    """

    lo: Array
    hi: Array
    base: int
    lowest: Array
    highest: Array

    @staticmethod
    def of(samples: list[Samples], low: int, high: int) -> ThresholdRanges:
        """The ranges of functions that rise, with one row for each code of low + 1..high."""
        codes = np.arange(low + 1, max(high, low + 1) + 1)
        lo, hi = (np.array([int(p.t[end]) for p in samples]) for end in (0, -1))
        lowest, highest = np.empty((2, len(codes), len(samples)), np.int64)
        for s, p in enumerate(samples):
            first = np.searchsorted(p.code, codes)
            highest[:, s] = np.append(p.t, hi[s] + 1)[first]
            lowest[:, s] = np.where(first == 0, lo[s], p.t[first - 1] + 1)
            lowest[:, s] = np.where(first == len(p.t), hi[s] + 1, lowest[:, s])
        return ThresholdRanges(lo, hi, low, lowest, highest)

    @property
    def stairs(self) -> StaircasePoints:
        """The points that a line must pass so that its thresholds lie in lowest..highest."""
        steps = len(self.highest)
        points = StaircasePoints.of(self.highest, self.base, self.lo, self.hi, self.base, self.base + steps)
        y = np.concatenate([self.lowest - 1, points.y[-1:]])
        return StaircasePoints(points.x, points.k, points.at, y, points.l, points.under, points.origin)

    def fit_line(self) -> tuple[Array, int] | None:
        """(slopes (sets,), shift) with which floor((slope * t + r) / 2^shift) is the function for some r.

        Returns None if a set has no such line, or its arithmetic exceeds 64 bits.
        """
        span = int((self.hi - self.lo).max()) + 2
        if span * (len(self.highest) + 2) >= 1 << MAX_PRODUCT:
            return None
        line = multipliers(slopes(self.stairs))
        return None if isinstance(line, str) else line

    def thresholds_on_line(self, slope: Array, shift: int) -> Array | None:
        """The thresholds (steps, sets) of floor((slope * t + r) / 2^shift), with an r that keeps them in range.

        Returns None if no r does, or the arithmetic exceeds 64 bits.
        """
        top = max(abs(self.base), abs(self.base + len(self.highest))) + 2
        reach = int(np.maximum(np.abs(self.lo), np.abs(self.hi)).max()) + 1
        if top << shift >= 1 << MAX_PRODUCT or reach * int(slope.max()) >= 1 << MAX_PRODUCT:
            return None
        stairs = self.stairs
        lowest, highest = stairs.offsets(slope, shift)
        if (lowest > highest).any():
            return None
        addend = simplest(np.maximum(lowest, -(1 << MAX_PRODUCT)), np.minimum(highest, 1 << MAX_PRODUCT))
        scaled_codes = stairs.k[:-1] << shift
        table = np.where(slope > 0, -((addend - scaled_codes) // np.maximum(slope, 1)), self.highest)
        return np.clip(table, self.lowest, self.highest)

    def thresholds(self, line: tuple[Array, int] | None) -> Array:
        """Thresholds (steps, sets): on the line if one is given and fits, else the roundest ones."""
        table = None if line is None else self.thresholds_on_line(*line)
        return roundest(self.lowest, self.highest) if table is None else table

    def to_table(self, name: str, table: Array, falling: Array) -> ThresholdTable:
        """The steps with the thresholds `table`. `falling` bool (sets,): these sets are functions of -t here."""
        count = np.arange(len(table) + 1)[:, None]
        values = self.base + np.where(falling, count[::-1], count)
        lo, hi = np.where(falling, -self.hi, self.lo), np.where(falling, -self.lo, self.hi)
        return ThresholdTable(name, lo, hi, np.where(falling, 1 - table[::-1], table), values)


def roundest(lowest: Array, highest: Array) -> Array:
    """Elementwise, the number of lowest..highest with the most trailing zeros. Ties go to the one nearest to 0."""
    rounded = np.where((lowest <= 0) & (highest >= 0), 0, np.where(lowest > 0, lowest, highest))
    final = rounded == 0
    for zeros in range(62, 0, -1):
        up, down = -(-lowest >> zeros) << zeros, highest >> zeros << zeros
        fits = ~final & (up <= highest)
        rounded = np.where(fits, np.where(lowest > 0, up, down), rounded)
        final |= fits
    return rounded


def threshold_ranges(samples: list[Samples]) -> tuple[ThresholdRanges, Array] | str:
    """The range of every threshold, and bool (sets,): the sets that fall, and so are given as functions of -t.

    Returns the reason as text if a set neither rises nor falls, or there are more than MAX_STEPS steps.
    """
    directions = np.array([p.direction for p in samples])
    if not directions.all():
        return f"the codes of set {int(np.argmin(np.abs(directions)))} neither rise nor fall with the sum"
    low, high = min(int(p.code.min()) for p in samples), max(int(p.code.max()) for p in samples)
    if high - low > MAX_STEPS:
        return f"it has {high - low} steps; at most {MAX_STEPS}"
    turned = [p if d > 0 else p.mirrored() for p, d in zip(samples, directions, strict=True)]
    return ThresholdRanges.of(turned, low, high), directions < 0


def runs(name: str, samples: list[Samples]) -> ThresholdTable | str:
    """The steps of functions with codes in any order: a threshold at each change of the code. Text if too many."""
    places = [np.flatnonzero(np.diff(p.code)) + 1 for p in samples]
    size = max(1, *map(len, places)) if places else 1
    if size > MAX_STEPS:
        return f"it has {size} steps; at most {MAX_STEPS}"
    lo, hi = (np.array([int(p.t[end]) for p in samples]) for end in (0, -1))
    table = np.repeat(hi[None] + 1, size, axis=0)
    values = np.empty((size + 1, len(samples)), np.int64)
    for s, (p, at) in enumerate(zip(samples, places, strict=True)):
        table[: len(at), s] = roundest(p.t[at - 1] + 1, p.t[at])
        values[:, s] = p.code[-1]
        values[: len(at) + 1, s] = p.code[np.append(0, at)]
    return ThresholdTable(name, lo, hi, table, values)
