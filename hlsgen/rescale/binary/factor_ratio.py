"""The simplest weights of a sum of two codes that orders all pairs of codes as the function does.

Steps can follow the sum fa * a + fb * b if every pair with a lower code has a lower sum. Only the ratio r = fb / fa
matters. If the sum misplaces two pairs at some ratio, they exclude that ratio and all others on one side of it: a
bound. The search starts at the ratio 1 or -1. The pairs that are misplaced most set bounds. The search goes on with the
simplest fraction between the bounds, until nothing is misplaced or no ratio remains. No ratio is excluded without two
pairs that prove it, so "no weighted sum" is a proof.

Example: code = round(0.5 * a + 0.25 * b) for a and b in 0..2, ties to even. At r = 1 the pairs (0, 2) with code 0 and
(1, 1) with code 1 have the same sum, and so r < 1. At r = -1 the pair (1, 0) with code 0 is above (1, 1) with code 1,
and so r > 0. The simplest fraction between 0 and 1 is 1/2: t = 2 * a + b, which misplaces no pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array

#: Largest weight of a sum, and largest factor of any join.
MAX_FACTOR = 1 << 24
_MAX_ROUNDS = 2000
#: More than any sum: marks a pair that does not exist.
_FAR = 1 << 60


@dataclass
class RatioBounds:
    """The ratios that are not excluded: above < ratio < below. None is no bound."""

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
            return -RatioBounds(-self.below, None if self.above is None else -self.above).simplest()
        assert self.above is not None
        return _simplest(self.above, self.below)


def _simplest(above: Fraction, below: Fraction | None) -> Fraction:
    """`RatioBounds.simplest` for above >= 0 and no integer inside: one step of the continued fraction a call."""
    integer_part = above.numerator // above.denominator
    if below is None or integer_part + 1 < below:
        return Fraction(integer_part + 1)
    remainder = above - integer_part
    return integer_part + 1 / _simplest(1 / (below - integer_part), None if remainder == 0 else 1 / remainder)


@dataclass(frozen=True, eq=False)
class RatioStaircase:
    """The border of each code in the plane of a and b, for one set whose codes do not fall with a.

    `reached` int64 (thresholds, codes of b): the first place in a at which the code is at least the threshold's. It is
    `places`, the number of codes of a, if the code never is. `across` int64 (codes of b,): the places in b.
    """

    reached: Array
    places: int
    across: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "across", np.arange(self.reached.shape[1]))

    @staticmethod
    def of(codes: Array, rising: bool) -> RatioStaircase | None:
        """The staircase of the codes (a, b) of every pair, or None if they neither rise nor fall with a.

        Codes that fall with a are negated. Codes that do not depend on a are negated if needed, so that they rise with
        b, or, if not `rising`, fall with b.
        """
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

    def tighten(self, ratio: Fraction, bounds: RatioBounds) -> bool:
        """True if a + ratio * b separates the pairs below each threshold from the pairs that reach it.

        If it does not, the two pairs that are misplaced most narrow `bounds`, so that the ratio lies outside.
        """
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
    """The simplest (fa, fb) with fa > 0 whose sum fa * a + fb * b separates the codes of every set.

    `codes`: one array (codes of a, codes of b) of integers for each set. `falling`: b is subtracted, so that the first
    ratio tried is -1, and codes that do not depend on a are taken to fall with b. Returns the reason, as text, if
    there are no such factors, if they exceed MAX_FACTOR, or if _MAX_ROUNDS did not find them.
    """
    sets = []
    for number, table in enumerate(codes):
        stairs = RatioStaircase.of(table, not falling)
        if stairs is None:
            return f"set {number} neither rises nor falls with the first operand"
        sets.append(stairs)
    bounds, set_order = RatioBounds(), list(range(len(sets)))
    ratio = Fraction(-1 if falling else 1)
    for _ in range(_MAX_ROUNDS):
        misplaced = next((s for s in set_order if not sets[s].tighten(ratio, bounds)), None)
        if misplaced is None:
            return ratio.denominator, ratio.numerator
        if bounds.empty:
            return f"set {misplaced}: the codes are in no order of a weighted sum"
        # The set that failed is tried first, as it most probably fails again.
        set_order.remove(misplaced)
        set_order.insert(0, misplaced)
        ratio = bounds.simplest()
        if max(ratio.denominator, abs(ratio.numerator)) > MAX_FACTOR:
            return f"a weighted sum with factors above {MAX_FACTOR}"
    return f"no weighted sum was found in {_MAX_ROUNDS} rounds"
