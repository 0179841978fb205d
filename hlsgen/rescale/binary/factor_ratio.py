"""The simplest weights of two integers whose sum puts pairs with different codes in the order of these."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Largest weight.
MAX_FACTOR = 1 << 24
_MAX_ROUNDS = 2000
#: Beyond every sum.
_FAR = 1 << 60


@dataclass
class Bounds:
    """Ratios that are not excluded: those between both bounds; None: no bound."""

    above: Fraction | None = None
    below: Fraction | None = None

    @property
    def empty(self) -> bool:
        return self.above is not None and self.below is not None and self.above >= self.below

    def inside(self, ratio: Fraction) -> bool:
        return (self.above is None or ratio > self.above) and (self.below is None or ratio < self.below)

    def simplest(self) -> Fraction:
        """The fraction inside with the least denominator and then the least numerator; 1 or -1 before 0."""
        for first in (1, -1, 0):
            if self.inside(Fraction(first)):
                return Fraction(first)
        if self.below is not None and self.below <= 0:
            return -Bounds(-self.below, None if self.above is None else -self.above).simplest()
        assert self.above is not None
        return _simplest(self.above, self.below)


def _simplest(above: Fraction, below: Fraction | None) -> Fraction:
    """Of the positive fractions, by continued fractions."""
    whole = above.numerator // above.denominator
    if below is None or whole + 1 < below:
        return Fraction(whole + 1)
    rest = above - whole
    return whole + 1 / _simplest(1 / (below - whole), None if rest == 0 else 1 / rest)


@dataclass(frozen=True, eq=False)
class RatioStaircase:
    """One set. `reached` int64 (thresholds, b): least place of a from which on the code is at least the
    threshold's, `places` if none. The codes do not fall with a."""

    reached: Array
    places: int
    across: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "across", np.arange(self.reached.shape[1]))

    @staticmethod
    def of(codes: Array, rising: bool) -> RatioStaircase | None:
        """Of codes (a, b), or their negatives, so that they rise with a; None: they do neither. Where a does
        not matter, they rise with b, or, if not `rising`, fall."""
        difference = np.diff(codes, axis=0)
        rises, falls = bool((difference >= 0).all()), bool((difference <= 0).all())
        if not rises and not falls:
            return None
        if rises and falls:
            falls = bool(codes[0, -1] >= codes[0, 0]) != rising
        if falls:
            codes = -codes
        levels = np.unique(codes)[1:]
        low = np.zeros((len(levels), codes.shape[1]), np.int64)
        high = np.full_like(low, len(codes))
        column = np.arange(codes.shape[1])
        while (low < high).any():
            middle = (low + high) >> 1
            reached = codes[np.minimum(middle, len(codes) - 1), column] >= levels[:, None]
            active = low < high
            high, low = np.where(active & reached, middle, high), np.where(active & ~reached, middle + 1, low)
        return RatioStaircase(low, len(codes))

    def tighten(self, ratio: Fraction, bounds: Bounds) -> bool:
        """Whether a + ratio * b separates the pairs below every threshold from those that reach it; else
        `bounds` excludes the ratio and others, by the pairs that it misplaces most."""
        a, b = ratio.denominator, ratio.numerator
        shifted = b * self.across
        at = np.where(self.reached < self.places, a * self.reached + shifted, _FAR)
        under = np.where(self.reached > 0, a * (self.reached - 1) + shifted, -_FAR)
        first, last = at.argmin(axis=1), under.argmax(axis=1)
        rows = np.arange(len(at))
        wrong = np.flatnonzero(at[rows, first] <= under[rows, last])
        for k in wrong.tolist():
            p, q = int(first[k]), int(last[k])
            bound = Fraction(int(self.reached[k, q]) - 1 - int(self.reached[k, p]), p - q)
            if p > q:
                bounds.above = bound if bounds.above is None else max(bounds.above, bound)
            else:
                bounds.below = bound if bounds.below is None else min(bounds.below, bound)
        return not len(wrong)


def factors(codes: list[Array], falling: bool) -> tuple[int, int] | str:
    """The simplest (fa, fb), fa > 0, with which fa * a + fb * b separates the codes (a, b) of every set; or why
    there is none. `falling`: where the codes do not depend on a, they are to fall with b as a rises.

    Exact: every pair of pairs in the wrong order excludes all ratios to one side, and the pair that is
    misplaced most at the simplest ratio that is left is the next one to do so.
    """
    sets = []
    for number, table in enumerate(codes):
        stairs = RatioStaircase.of(table, not falling)
        if stairs is None:
            return f"set {number} neither rises nor falls with the first operand"
        sets.append(stairs)
    bounds, left = Bounds(), list(range(len(sets)))
    ratio = Fraction(-1 if falling else 1)
    for _ in range(_MAX_ROUNDS):
        misplaced = next((s for s in left if not sets[s].tighten(ratio, bounds)), None)
        if misplaced is None:
            return ratio.denominator, ratio.numerator
        if bounds.empty:
            return f"set {misplaced}: the codes are in no order of a weighted sum"
        # The one that was misplaced first, as it most probably is again.
        left.remove(misplaced)
        left.insert(0, misplaced)
        ratio = bounds.simplest()
        if max(ratio.denominator, abs(ratio.numerator)) > MAX_FACTOR:
            return f"a weighted sum with factors above {MAX_FACTOR}"
    return f"no weighted sum was found in {_MAX_ROUNDS} rounds"
