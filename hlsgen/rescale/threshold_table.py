"""A table of thresholds and codes: the explicit form of step functions, from which realizations are built.

Example: thresholds 3 and 6 with values 0, 1, 2 are the function that is 0 below 3, 1 from 3 on, and 2 from 6 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """`sets` step functions: f(x) = values[number of thresholds that x reaches] for lo <= x <= hi.

    `lo`, `hi` int64 (sets,). `table` int64 (steps, sets): the thresholds, ascending in every column. x reaches a
    threshold T if x >= T. All lie in lo..hi + 1: a threshold lo is always reached, hi + 1 never. Equal thresholds jump
    over several values. `values` int64 (steps + 1, sets): the code for each number of thresholds reached.

    Monotone functions have the dense form if possible, with one threshold for each code. Then values are base + k in
    sets that rise, and base + steps - k in sets that fall. All other functions are lists of runs.
    """

    name: str
    lo: Array
    hi: Array
    table: Array
    values: Array

    @property
    def sets(self) -> int:
        return len(self.lo)

    @property
    def steps(self) -> int:
        return len(self.table)

    @cached_property
    def rising(self) -> bool:
        """True if every set is base + number of thresholds reached, with one base for all sets."""
        return bool((self.values == self.values.min() + np.arange(self.steps + 1)[:, None]).all())

    @property
    def base(self) -> int:
        """The code below all thresholds. Only meaningful if `rising`."""
        return int(self.values[0, 0])

    @cached_property
    def first(self) -> Array:
        """f(lo), int64 (sets,)."""
        return self.apply(self.lo)

    @cached_property
    def last(self) -> Array:
        """f(hi), int64 (sets,)."""
        return self.apply(self.hi)

    @cached_property
    def changed(self) -> Array:
        """True if the code changes at each threshold, bool (steps, sets); False for thresholds outside the interval."""
        next_differs: Array = self.table[1:] != self.table[:-1]
        place, edge = np.arange(self.steps)[:, None], np.ones((1, self.sets), np.bool_)
        # For equal thresholds: how many lie below the first of them, and how many up to the last of them.
        below = np.maximum.accumulate(np.where(np.concatenate([edge, next_differs]), place, 0))
        up_to = np.where(np.concatenate([next_differs, edge]), place, self.steps)[::-1]
        up_to = np.minimum.accumulate(up_to)[::-1] + 1
        inside = (self.table > self.lo) & (self.table <= self.hi)
        sets = np.arange(self.sets)
        return np.asarray(inside & (self.values[below, sets] != self.values[up_to, sets]))

    def inner(self, s: int) -> Array:
        """The thresholds of set s inside of its interval, lo < T <= hi, ascending; int64 (thresholds,)."""
        column = self.table[:, s]
        return np.asarray(column[(column > self.lo[s]) & (column <= self.hi[s])])

    def index(self, codes: Array) -> Array:
        """Number of thresholds reached, int64 (..., sets), for int64 inputs (..., sets)."""
        flat = np.broadcast_to(codes, (*codes.shape[:-1], self.sets)).reshape(-1, self.sets)
        counts = np.empty(flat.shape, np.int64)
        for s in range(self.sets):
            counts[:, s] = np.searchsorted(self.table[:, s], flat[:, s], side="right")
        return counts.reshape(*codes.shape[:-1], self.sets)

    def apply(self, codes: Array) -> Array:
        """Codes, int64 (..., sets), for int64 inputs (..., sets)."""
        index = self.index(codes)
        return np.asarray(self.values[index, np.arange(self.sets)])

    def corners(self) -> Array:
        """Inputs, int64 (points, sets), that decide whether another function is equal to this one.

        They are both ends and both sides of every threshold. This function is constant between neighbouring thresholds.
        So another one that is monotone there and agrees at these inputs agrees everywhere.
        """
        inside = np.clip(self.table, self.lo, self.hi)
        below = np.clip(self.table - 1, self.lo, self.hi)
        return np.concatenate([self.lo[None], self.hi[None], inside, below])


def portions(sets: int, first: int = 1) -> Iterator[range]:
    """All sets, in portions that double: if there is no realization, one of the `first` sets mostly shows it."""
    start, count = 0, first
    while start < sets:
        yield range(start, min(sets, start + count))
        start, count = start + count, 2 * count
