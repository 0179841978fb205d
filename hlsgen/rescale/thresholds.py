"""Monotone step functions as thresholds, found by bisecting the float chain itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.fixed import Array
from hlsgen.rescale.step import StepFunction
from hlsgen.semantics import KEY_NEG_INF, KEY_POS_INF

#: Lanes of one vectorized evaluation.
_CHUNK = 1 << 21


@dataclass(frozen=True, eq=False)
class Thresholds:
    """code = base + count of (x >= table[k]) where rising, of (x < table[k]) where falling.

    table int64 (steps, sets), lo <= table <= hi + 1; `falling` bool (sets,).
    """

    table: Array
    falling: Array
    base: int

    @property
    def bits(self) -> int:
        """Comparisons of a binary search."""
        return max(1, len(self.table).bit_length())

    def apply(self, codes: Array) -> Array:
        """What the hardware computes: codes (..., sets) -> codes."""
        count = np.zeros(np.broadcast_shapes(codes.shape, self.falling.shape), np.int64)
        for row in self.table:
            count += (codes >= row) ^ self.falling
        return self.base + count


def ends(f: StepFunction) -> tuple[Array, Array]:
    """f at both ends of the domain, (sets,) each."""
    return f.evaluate(f.lo), f.evaluate(f.hi)


def is_monotone(f: StepFunction) -> bool:
    """Whether f is monotone in every set.

    Rounding, and each operation that a Map may hold, is monotone in float arithmetic, so their
    composition is; only NaN and infinities of float32 input need a look.
    """
    if not f.is_float:
        return True
    keys = np.array([0, KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF - 1, KEY_POS_INF])
    codes = f.evaluate(np.broadcast_to(keys[:, None], (5, f.sets)))
    return bool((np.diff(codes, axis=0) >= 0).all())


def bisect(f: StepFunction, codes: Array) -> Array:
    """Least x of lo..hi + 1 with f(x) >= code (rising) or f(x) < code (falling), (len(codes), sets).

    hi + 1 means never.
    """
    first, last = ends(f)
    falling = first > last
    rows = max(1, _CHUNK // f.sets)
    return np.concatenate([_bisect(f, codes[i : i + rows, None], falling) for i in range(0, len(codes), rows)])


def _bisect(f: StepFunction, codes: Array, falling: Array) -> Array:
    low: Array = np.broadcast_to(f.lo, (len(codes), f.sets)).copy()
    high = np.broadcast_to(f.hi + 1, (len(codes), f.sets)).copy()
    while (low < high).any():
        middle = low + ((high - low) >> 1)
        reached = (f.evaluate(np.minimum(middle, f.hi)) >= codes) ^ falling
        reached |= middle > f.hi
        active = low < high
        high = np.where(active & reached, middle, high)
        low = np.where(active & ~reached, middle + 1, low)
    return low


def find(f: StepFunction, max_steps: int) -> Thresholds | None:
    """The thresholds of all sets, if f is monotone with at most `max_steps` steps."""
    if not is_monotone(f):
        return None
    first, last = ends(f)
    low, high = int(min(first.min(), last.min())), int(max(first.max(), last.max()))
    if high - low > max_steps:
        return None
    if high == low:
        high = low + 1
    table = bisect(f, np.arange(low + 1, high + 1))
    return Thresholds(table, first > last, low)
