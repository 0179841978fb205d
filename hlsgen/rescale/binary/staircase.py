"""A function of two integers as steps of one: of their weighted sum or product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.extract import MAX_STEPS
from hlsgen.rescale.realize.scale_fit import MAX_PRODUCT, StaircasePoints, multipliers, simplest, slopes
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True, eq=False)
class Points:
    """One set: all sums t that occur, ascending, and the code at each."""

    t: Array
    code: Array

    @staticmethod
    def of(t: Array, codes: Array) -> Points | None:
        """Of pairs in any shape; None: equal sums have different codes."""
        t, codes = t.ravel(), codes.ravel()
        low, span = int(t.min()), int(t.max()) - int(t.min()) + 1
        if span <= 4 * len(t) + 1024:
            table = np.zeros(span, codes.dtype)
            occurs = np.zeros(span, np.bool_)
            table[t - low], occurs[t - low] = codes, True
            if (table[t - low] != codes).any():
                return None
            found = np.flatnonzero(occurs)
            return Points(found + low, table[found].astype(np.int64))
        order = np.argsort(t, kind="stable")
        t, codes = t[order], codes[order]
        first = np.append(True, t[1:] != t[:-1])
        if (codes[1:] != codes[:-1])[~first[1:]].any():
            return None
        return Points(t[first], codes[first].astype(np.int64))

    @property
    def direction(self) -> int:
        """1: the codes rise, -1: they fall, 0: neither."""
        difference = np.diff(self.code)
        return 1 if (difference >= 0).all() else -1 if (difference <= 0).all() else 0

    def turned(self) -> Points:
        """The function of -t."""
        return Points(-self.t[::-1], self.code[::-1])


@dataclass(frozen=True, eq=False)
class Gaps:
    """Dense steps of sets that all rise, in the order of their codes, (steps, sets): any threshold of
    least..most will do. least = most = lo if it is always reached, hi + 1 if never."""

    lo: Array
    hi: Array
    base: int
    least: Array
    most: Array

    @staticmethod
    def of(points: list[Points], low: int, high: int) -> Gaps:
        wanted = np.arange(low + 1, max(high, low + 1) + 1)
        lo, hi = (np.array([int(p.t[end]) for p in points]) for end in (0, -1))
        least, most = np.empty((2, len(wanted), len(points)), np.int64)
        for s, p in enumerate(points):
            first = np.searchsorted(p.code, wanted)
            most[:, s] = np.append(p.t, hi[s] + 1)[first]
            least[:, s] = np.where(first == 0, lo[s], p.t[first - 1] + 1)
            least[:, s] = np.where(first == len(p.t), hi[s] + 1, least[:, s])
        return Gaps(lo, hi, low, least, most)

    @property
    def stairs(self) -> StaircasePoints:
        """What a line has to pass."""
        steps = len(self.most)
        found = StaircasePoints.of(self.most, self.base, self.lo, self.hi, self.base, self.base + steps)
        return StaircasePoints(
            found.x, found.k, found.at, np.concatenate([self.least - 1, found.y[-1:]]), found.l, found.under, found.origin
        )  # fmt: skip

    def line(self) -> tuple[Array, int] | None:
        """Slopes and their fraction bits of lines that are the function, rounded down, if there are any."""
        span = int((self.hi - self.lo).max()) + 2
        if span * (len(self.most) + 2) >= 1 << MAX_PRODUCT:
            return None
        found = multipliers(slopes(self.stairs))
        return None if isinstance(found, str) else found

    def on_line(self, slope: Array, shift: int) -> Array | None:
        """Thresholds, inside of the gaps, of floor((slope * t + r) / 2^shift) with some r, if it has them."""
        top = max(abs(self.base), abs(self.base + len(self.most))) + 2
        reach = int(np.maximum(np.abs(self.lo), np.abs(self.hi)).max()) + 1
        if top << shift >= 1 << MAX_PRODUCT or reach * int(slope.max()) >= 1 << MAX_PRODUCT:
            return None
        stairs = self.stairs
        least, most = stairs.offsets(slope, shift)
        if (least > most).any():
            return None
        addend = simplest(np.maximum(least, -(1 << MAX_PRODUCT)), np.minimum(most, 1 << MAX_PRODUCT))
        whole = stairs.k[:-1] << shift
        table = np.where(slope > 0, -((addend - whole) // np.maximum(slope, 1)), self.most)
        return np.clip(table, self.least, self.most)

    def thresholds(self, line: tuple[Array, int] | None) -> Array:
        """Those of a line if there is one, else the ones with the most trailing zeros."""
        table = None if line is None else self.on_line(*line)
        return roundest(self.least, self.most) if table is None else table

    def steps(self, name: str, table: Array, falling: Array) -> ThresholdTable:
        """The steps with these thresholds; `falling`: sets that were turned around."""
        count = np.arange(len(table) + 1)[:, None]
        values = self.base + np.where(falling, count[::-1], count)
        lo, hi = np.where(falling, -self.hi, self.lo), np.where(falling, -self.lo, self.hi)
        return ThresholdTable(name, lo, hi, np.where(falling, 1 - table[::-1], table), values)


def roundest(least: Array, most: Array) -> Array:
    """The numbers of least..most with the most trailing zeros, nearest to 0."""
    found = np.where((least <= 0) & (most >= 0), 0, np.where(least > 0, least, most))
    done = found == 0
    for zeros in range(62, 0, -1):
        up, down = -(-least >> zeros) << zeros, most >> zeros << zeros
        fits = ~done & (up <= most)
        found = np.where(fits, np.where(least > 0, up, down), found)
        done |= fits
    return found


def gaps_of(points: list[Points]) -> tuple[Gaps, Array] | str:
    """The steps of sets that rise or fall, and which of them were turned around to rise."""
    directions = np.array([p.direction for p in points])
    if not directions.all():
        return f"the codes of set {int(np.argmin(np.abs(directions)))} neither rise nor fall with the sum"
    low, high = min(int(p.code.min()) for p in points), max(int(p.code.max()) for p in points)
    if high - low > MAX_STEPS:
        return f"it has {high - low} steps; at most {MAX_STEPS}"
    turned = [p if d > 0 else p.turned() for p, d in zip(points, directions, strict=True)]
    return Gaps.of(turned, low, high), directions < 0


def runs(name: str, points: list[Points]) -> ThresholdTable | str:
    """Any function, as a list of runs."""
    places = [np.flatnonzero(np.diff(p.code)) + 1 for p in points]
    size = max(1, *map(len, places)) if places else 1
    if size > MAX_STEPS:
        return f"it has {size} steps; at most {MAX_STEPS}"
    lo, hi = (np.array([int(p.t[end]) for p in points]) for end in (0, -1))
    table = np.repeat(hi[None] + 1, size, axis=0)
    values = np.empty((size + 1, len(points)), np.int64)
    for s, (p, at) in enumerate(zip(points, places, strict=True)):
        table[: len(at), s] = roundest(p.t[at - 1] + 1, p.t[at])
        values[:, s] = p.code[-1]
        values[: len(at) + 1, s] = p.code[np.append(0, at)]
    return ThresholdTable(name, lo, hi, table, values)
