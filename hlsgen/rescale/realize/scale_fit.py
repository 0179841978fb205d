"""Straight lines through staircases: the exact slopes and offsets with which a rounded line is a step function."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize.multiplier_cost import digits

#: Bits of a multiplier without its sign, of products and sums, and the most places to shift.
MAX_MULTIPLIER = 32
MAX_PRODUCT = 60
MAX_SHIFT = 59
#: Beyond every offset that is looked for.
UNBOUNDED = 1 << 62


@dataclass(frozen=True, eq=False)
class StaircasePoints:
    """Points (points, columns) that a line passes: at or above k at x, strictly below l at y.

    `at` and `under` tell which of them count. Columns are independent of each other.
    """

    x: Array
    k: Array
    at: Array
    y: Array
    l: Array  # noqa: E741
    under: Array
    origin: Array

    @staticmethod
    def of(table: Array, base: int, lo: Array, hi: Array, low: int, high: int) -> StaircasePoints:
        """Of clamp(base + number of thresholds reached, low, high) on lo..hi, which may be empty.

        table (steps, columns) ascending. Inside, every threshold is two points. Codes that are not
        clamped at the ends are one more point each.
        """
        codes = np.broadcast_to(base + 1 + np.arange(len(table))[:, None], table.shape)
        first, last = (base + (table <= end).sum(axis=0) for end in (lo, hi))
        inner = (table > lo) & (table <= hi)
        some = lo <= hi
        return StaircasePoints(
            np.concatenate([table, lo[None]]), np.concatenate([codes, first[None]]),
            np.concatenate([inner, (some & (first > low))[None]]),
            np.concatenate([table - 1, hi[None]]), np.concatenate([codes, last[None] + 1]),
            np.concatenate([inner, (some & (last < high))[None]]), lo,
        )  # fmt: skip

    def offsets(self, slope: Array, shift: int, odd: Array | None = None) -> tuple[Array, Array]:
        """Least and greatest integer r, per column, with which floor((slope * x + r) / 2^shift)
        passes all points; where `odd` is given, rounded to nearest instead, ties to codes of that parity."""
        half = 0 if odd is None else 1 << (shift - 1)
        # A code that a tie does not go to begins one above the tie.
        above_k, above_l = (0, 0) if odd is None else ((self.k & 1) ^ odd, (self.l & 1) ^ odd)
        least = (self.k << shift) - half + above_k - self.x * slope
        beyond = (self.l << shift) - half + above_l - self.y * slope
        return (
            np.where(self.at, least, -UNBOUNDED).max(axis=0),
            np.where(self.under, beyond, UNBOUNDED + 1).min(axis=0) - 1,
        )


@dataclass(frozen=True)
class Slopes:
    """Bounds of one column: a line exists iff its slope is between them, and above < below.

    `below` None: no bound. `above` is -1 where no slope is too small. `why_above` and `why_below`
    are the points that prove the bounds.
    """

    above: Fraction
    below: Fraction | None
    why_above: str = ""
    why_below: str = ""

    @property
    def exist(self) -> bool:
        return self.below is None or self.above < self.below

    def both(self, other: Slopes) -> Slopes:
        """The slopes of either one that the other one has too."""
        upper = max(self, other, key=lambda s: s.above)
        bounded = [s for s in (self, other) if s.below is not None]
        lower = min(bounded, key=lambda s: s.below or 0) if bounded else self
        return Slopes(upper.above, lower.below, upper.why_above, lower.why_below)

    def multipliers(self, shift: int, closed: bool = False) -> tuple[int, int]:
        """Least and greatest M >= 0 with M / 2^shift between the bounds, or also on them."""
        unit = 1 << shift
        least = -((-self.above * unit) // 1) if closed else self.above * unit // 1 + 1
        if self.below is None:
            return max(0, least), max(0, least) + unit
        greatest = self.below * unit // 1 if closed else -((-self.below * unit) // 1) - 1
        return max(0, least), greatest

    def __str__(self) -> str:
        return f"a slope above {self.above} ({self.why_above}) and below {self.below} ({self.why_below})"


def slopes(stairs: StaircasePoints) -> list[Slopes]:
    """The slopes of each column, exactly; codes times the length of an interval are below 2^61.

    A point (x, k) and a point (y, l) leave an offset between them iff k - l < slope * (x - y): a
    lower bound where x > y, an upper one where x < y. The pair that is missed most at a given slope
    consists of the worst point of either kind, so a bound is found as Newton's method finds the
    root of a convex piecewise linear function: from one tangent, a pair, to the next. A bound may
    stop where the pair missed most is of the other kind; then the other bound goes beyond it, as what
    misses a lower slope less cannot be what misses a greater one most.
    """
    x, y = stairs.x - stairs.origin, stairs.y - stairs.origin
    start = min(stairs.k.min(), stairs.l.min())
    k, l = stairs.k - start, stairs.l - start  # noqa: E741
    columns = np.arange(x.shape[1])

    def tighten(i: Array, j: Array, sign: int, active: Array) -> tuple[Array, Array]:
        """From the bound of the pair i, j to the tightest one, or as far as the other bound."""
        while True:
            p, q = sign * (k[i, columns] - l[j, columns]), sign * (x[i, columns] - y[j, columns])
            worst = np.where(stairs.at, k * q - x * p, -UNBOUNDED).argmax(axis=0)
            beside = np.where(stairs.under, l * q - y * p, UNBOUNDED).argmin(axis=0)
            rise = k[worst, columns] - l[beside, columns]
            run = x[worst, columns] - y[beside, columns]
            missed = active & (rise * q - run * p > 0)
            better = missed & (run * sign > 0)
            if not better.any():
                return i, j
            i, j = np.where(better, worst, i), np.where(better, beside, j)

    # Every threshold inside is a pair of slope 0, which is too little.
    inside: Array = np.asarray(stairs.at[:-1].any(axis=0))
    begin = stairs.at.argmax(axis=0)
    i, j = tighten(begin, begin, 1, inside)
    # The flattest upper bound: the first point of the one kind and the last of the other.
    first = np.where(stairs.at, x, UNBOUNDED).argmin(axis=0)
    last = np.where(stairs.under, y, -UNBOUNDED).argmax(axis=0)
    bounded = stairs.at.any(axis=0) & stairs.under.any(axis=0) & (x[first, columns] < y[last, columns])
    upper_i, upper_j = tighten(first, last, -1, bounded)

    def slope(i: Array, j: Array, c: int) -> tuple[Fraction, str]:
        a, b = int(i[c]), int(j[c])
        value = Fraction(int(k[a, c] - l[b, c]), int(x[a, c] - y[b, c]))
        x_is, y_is = stairs.x[a, c], stairs.y[b, c]
        return value, f"code {stairs.k[a, c]} at x = {x_is} and less than {stairs.l[b, c]} at {y_is}"

    found = []
    for c in range(len(columns)):
        above, why_above = slope(i, j, c) if inside[c] else (Fraction(-1), "")
        below, why_below = slope(upper_i, upper_j, c) if bounded[c] else (None, "")
        found.append(Slopes(above, below, why_above, why_below))
    return found


def multipliers(bounds: list[Slopes]) -> tuple[Array, int] | str:
    """Multipliers with the least common shift, and of these the ones with the fewest digits."""
    shift = 0
    for s, bound in enumerate(bounds):
        if not bound.exist:
            return f"set {s} needs {bound}"
        while shift <= MAX_SHIFT and int.__gt__(*bound.multipliers(shift)):
            shift += 1
    if shift > MAX_SHIFT:
        return f"a shift of more than {MAX_SHIFT}"
    chosen = [_fewest(*bound.multipliers(shift)) for bound in bounds]
    if max(chosen) >> MAX_MULTIPLIER:
        return f"a multiplier of more than {MAX_MULTIPLIER} bits"
    return np.array(chosen, np.int64), shift


def _fewest(least: int, most: int) -> int:
    """A number of least..most with few nonzero signed digits: the best of the roundest ones."""
    if least == 0:
        return 0
    zeros = most.bit_length()
    while (most >> zeros) << zeros < least:
        zeros -= 1
    step = 1 << max(0, zeros - 3)
    return min(range(-(-least // step) * step, most + 1, step), key=lambda m: (digits(m), m))


def simplest(least: Array, most: Array) -> Array:
    """The addends least..most that have the most low zeros in common, nearest to 0."""
    for zeros in range(MAX_PRODUCT, -1, -1):
        up, down = -((-least) >> zeros) << zeros, most >> zeros << zeros
        if (up <= most).all():
            return np.where(least > 0, up, np.where(most < 0, down, 0))
    raise AssertionError("an empty interval")


def mirrored(right: tuple[Array, Array], left: tuple[Array, Array], shift: int) -> Array | None:
    """Addends of `right` that, with their low bits inverted, are addends of `left`."""
    unit = 1 << shift
    for high in (right[0] >> shift, right[1] >> shift, np.zeros_like(right[0])):
        turn = (2 * high + 1) * unit - 1
        least = np.maximum(np.maximum(right[0], turn - left[1]), high * unit)
        most = np.minimum(np.minimum(right[1], turn - left[0]), high * unit + unit - 1)
        if (least <= most).all():
            return simplest(least, most)
    return None
