"""Finds, exactly, the slopes and offsets with which a rounded straight line is a given staircase.

The line must be at or above code k at the threshold of k, and below k one input earlier. So every threshold is two
points, and a line is right if it passes between the points of both kinds. Two points bound the slope. The greatest
lower bound and the least upper bound are computed in fractions. There is a line if and only if the first is below the
second.

Example: thresholds 3 and 6 for the codes 1 and 2 on 0..6. The line is below 1 at x = 2 and at or above 2 at x = 6, so
its slope is above 1/4. It is at or above 1 at x = 3 and below 2 at x = 5, so its slope is below 1/2. The slope 3/8 will
do: floor((3 * x + r) / 8) for a fitting r.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize.multiplier_cost import digits
from hlsgen.rescale.threshold_table import portions

#: Most bits of a multiplier without its sign, of products and sums, and of a shift.
MAX_MULTIPLIER = 32
MAX_PRODUCT = 60
MAX_SHIFT = 59
#: Beyond every offset: marks a bound that does not exist.
UNBOUNDED = 1 << 62
#: Columns whose slopes are found first: a few together take no longer than one.
_FIRST = 8


@dataclass(frozen=True, eq=False)
class StaircasePoints:
    """Points that a line must pass: at or above k at x, and strictly below l at y.

    `x`, `k`, `y`, `l` int64 (points, columns). `at` and `under` bool of the same shape say which points of either kind
    count. Each column is a staircase of its own. `origin` int64 (columns,): its least input.
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
        """The points of clamp(base + number of thresholds reached, low, high) on lo..hi, which may be empty.

        `table` int64 (steps, columns), ascending. Every threshold inside lo..hi is two points. The codes at lo and hi
        are one more point each, unless the clamp makes them.
        """
        codes = np.broadcast_to(base + 1 + np.arange(len(table))[:, None], table.shape)
        first, last = (base + (table <= end).sum(axis=0) for end in (lo, hi))
        inner = (table > lo) & (table <= hi)
        nonempty = lo <= hi
        return StaircasePoints(
            x=np.concatenate([table, lo[None]]),
            k=np.concatenate([codes, first[None]]),
            at=np.concatenate([inner, (nonempty & (first > low))[None]]),
            y=np.concatenate([table - 1, hi[None]]),
            l=np.concatenate([codes, last[None] + 1]),
            under=np.concatenate([inner, (nonempty & (last < high))[None]]),
            origin=lo,
        )

    def columns(self, selection: range) -> StaircasePoints:
        """The points of some adjacent columns."""
        part = slice(selection.start, selection.stop)
        arrays = (getattr(self, field.name)[..., part] for field in fields(self))
        return StaircasePoints(*arrays)

    def offsets(self, slope: Array, shift: int, odd: Array | None = None) -> tuple[Array, Array]:
        """Least and greatest integer r with which floor((slope * x + r) / 2^shift) passes all points.

        Both int64 (columns,); least > greatest if there is none. If `odd` is given, the quotient is rounded to nearest
        instead, ties to codes of that parity.
        """
        half = 0 if odd is None else 1 << (shift - 1)
        # A code that gets no tie begins one above the tie.
        above_k, above_l = (0, 0) if odd is None else ((self.k & 1) ^ odd, (self.l & 1) ^ odd)
        lowest = (self.k << shift) - half + above_k - self.x * slope
        beyond = (self.l << shift) - half + above_l - self.y * slope
        return (
            np.where(self.at, lowest, -UNBOUNDED).max(axis=0),
            np.where(self.under, beyond, UNBOUNDED + 1).min(axis=0) - 1,
        )


@dataclass(frozen=True)
class Slopes:
    """The slopes of all lines through one column: above < slope < below.

    `below` None is no bound. `above` is -1 if no slope is too small. `why_above` and `why_below` name the points that
    prove the bounds.
    """

    above: Fraction
    below: Fraction | None
    why_above: str = ""
    why_below: str = ""

    @property
    def exist(self) -> bool:
        """True if any slope is between the bounds."""
        return self.below is None or self.above < self.below

    def intersect(self, bounds: Slopes) -> Slopes:
        """The slopes that lie between both pairs of bounds."""
        upper = max(self, bounds, key=lambda s: s.above)
        bounded = [s for s in (self, bounds) if s.below is not None]
        lower = min(bounded, key=lambda s: s.below or 0) if bounded else self
        return Slopes(upper.above, lower.below, upper.why_above, lower.why_below)

    def multipliers(self, shift: int, closed: bool = False) -> tuple[int, int]:
        """Least and greatest M >= 0 with M / 2^shift between the bounds, or, if `closed`, also on them."""
        above, unit = self.above.numerator << shift, self.above.denominator
        lowest = max(0, -(-above // unit) if closed else above // unit + 1)
        if self.below is None:
            return lowest, lowest + (1 << shift)
        below, unit = self.below.numerator << shift, self.below.denominator
        return lowest, below // unit if closed else -(-below // unit) - 1

    def __str__(self) -> str:
        return f"a slope above {self.above} ({self.why_above}) and below {self.below} ({self.why_below})"


def slopes(stairs: StaircasePoints) -> Iterator[Slopes]:
    """The exact bounds of the slope, one for each column. Codes times the length of an interval must be below 2^61.

    They come in portions, so that a caller can stop early at a column without a slope.
    """
    for portion in portions(stairs.x.shape[1], _FIRST):
        yield from _slopes(stairs.columns(portion))


def _slopes(stairs: StaircasePoints) -> list[Slopes]:
    """`slopes` of all columns at once.

    A point (x, k) and a point (y, l) leave room for an offset if and only if k - l < slope * (x - y). This is a lower
    bound of the slope if x > y, and an upper one if x < y. At a given slope, the pair that is missed most consists of
    the worst point of either kind. So Newton's method for the root of a convex piecewise linear function finds a bound:
    each pair is a tangent, and leads to the next.

    A bound may stop early, if the pair that is missed most belongs to the other bound. Then that bound goes beyond this
    one, and the column has no line.
    """
    x, y = stairs.x - stairs.origin, stairs.y - stairs.origin
    start = min(stairs.k.min(), stairs.l.min())
    k, l = stairs.k - start, stairs.l - start  # noqa: E741
    columns = np.arange(x.shape[1])

    def tighten(i: Array, j: Array, sign: int, active: Array) -> tuple[Array, Array]:
        """Moves the bound of the pair i, j to the tightest one. `sign` 1: a lower bound, -1: an upper one."""
        while True:
            p, q = sign * (k[i, columns] - l[j, columns]), sign * (x[i, columns] - y[j, columns])
            worst = np.where(stairs.at, k * q - x * p, -UNBOUNDED).argmax(axis=0)
            worst_under = np.where(stairs.under, l * q - y * p, UNBOUNDED).argmin(axis=0)
            rise = k[worst, columns] - l[worst_under, columns]
            run = x[worst, columns] - y[worst_under, columns]
            missed = active & (rise * q - run * p > 0)
            better = missed & (run * sign > 0)
            if not better.any():
                return i, j
            i, j = np.where(better, worst, i), np.where(better, worst_under, j)

    # Every threshold inside is a pair of slope 0, which is too small.
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

    bounds = []
    for c in range(len(columns)):
        above, why_above = slope(i, j, c) if inside[c] else (Fraction(-1), "")
        below, why_below = slope(upper_i, upper_j, c) if bounded[c] else (None, "")
        bounds.append(Slopes(above, below, why_above, why_below))
    return bounds


def multipliers(bounds: Iterable[Slopes]) -> tuple[Array, int] | str:
    """(multipliers int64 (columns,), shift) between the bounds, or the reason, as text, why there are none.

    The shift is the least that all columns can share. The chosen multipliers have few signed digits.
    """
    shift, checked = 0, []
    for s, bound in enumerate(bounds):
        checked.append(bound)
        if not bound.exist:
            return f"set {s} needs {bound}"
        while shift <= MAX_SHIFT and int.__gt__(*bound.multipliers(shift)):
            shift += 1
    if shift > MAX_SHIFT:
        return f"a shift of more than {MAX_SHIFT}"
    chosen = [_fewest(*bound.multipliers(shift)) for bound in checked]
    if max(chosen) >> MAX_MULTIPLIER:
        return f"a multiplier of more than {MAX_MULTIPLIER} bits"
    return np.array(chosen, np.int64), shift


def _fewest(lowest: int, highest: int) -> int:
    """A number of lowest..highest with few nonzero signed digits: the best among numbers with many trailing zeros."""
    if lowest == 0:
        return 0
    zeros = highest.bit_length()
    while (highest >> zeros) << zeros < lowest:
        zeros -= 1
    step = 1 << max(0, zeros - 3)
    return min(range(-(-lowest // step) * step, highest + 1, step), key=lambda m: (digits(m), m))


def simplest(lowest: Array, highest: Array) -> Array:
    """Addends of lowest..highest with the most trailing zeros that all of them can have, nearest to 0."""
    for zeros in range(MAX_PRODUCT, -1, -1):
        up, down = -((-lowest) >> zeros) << zeros, highest >> zeros << zeros
        if (up <= highest).all():
            return np.where(lowest > 0, up, np.where(highest < 0, down, 0))
    raise AssertionError("an empty interval")


def mirrored(right_window: tuple[Array, Array], left_window: tuple[Array, Array], shift: int) -> Array | None:
    """Addends within `right_window` that, with their `shift` low bits inverted, lie within `left_window`; or None.

    `right_window` and `left_window` are pairs (least, greatest) of int64 (columns,), for inputs right and left of the
    centre.
    """
    unit = 1 << shift
    for high in (right_window[0] >> shift, right_window[1] >> shift, np.zeros_like(right_window[0])):
        turn = (2 * high + 1) * unit - 1
        lowest = np.maximum(np.maximum(right_window[0], turn - left_window[1]), high * unit)
        highest = np.minimum(np.minimum(right_window[1], turn - left_window[0]), high * unit + unit - 1)
        if (lowest <= highest).all():
            return simplest(lowest, highest)
    return None
