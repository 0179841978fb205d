"""A bundle of integer step functions: where they change and to which code. What all realizations start from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """f(x) = values[number of k with x >= table[k]] for lo <= x <= hi, in every set.

    `lo`, `hi` int64 (sets,). `table` int64 (steps, sets), ascending in every column (equal entries
    are jumps over several values), lo <= table <= hi + 1: entries of lo are always reached, entries
    of hi + 1 never. `values` int64 (steps + 1, sets).

    Dense form of monotone functions: values are base + k where all sets rise, base + steps - k where
    a set falls. Anything else is a list of runs.
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
        """Whether every set is base + number of thresholds reached, with one base."""
        return bool((self.values == self.values.min() + np.arange(self.steps + 1)[:, None]).all())

    @property
    def base(self) -> int:
        """The code below all thresholds, of functions that are `rising`."""
        return int(self.values[0, 0])

    @cached_property
    def first(self) -> Array:
        """f(lo), (sets,)."""
        return self.apply(self.lo)

    @cached_property
    def last(self) -> Array:
        """f(hi), (sets,)."""
        return self.apply(self.hi)

    def inner(self, s: int) -> Array:
        """Thresholds of set s at which it does change inside its interval: lo < T <= hi, ascending."""
        column = self.table[:, s]
        return np.asarray(column[(column > self.lo[s]) & (column <= self.hi[s])])

    def index(self, codes: Array) -> Array:
        """int64 inputs (..., sets) -> number of thresholds reached."""
        flat = np.broadcast_to(codes, (*codes.shape[:-1], self.sets)).reshape(-1, self.sets)
        found = np.empty(flat.shape, np.int64)
        for s in range(self.sets):
            found[:, s] = np.searchsorted(self.table[:, s], flat[:, s], side="right")
        return found.reshape(*codes.shape[:-1], self.sets)

    def apply(self, codes: Array) -> Array:
        """int64 inputs (..., sets) -> codes."""
        index = self.index(codes)
        return np.asarray(self.values[index, np.arange(self.sets)])

    def corners(self) -> Array:
        """Inputs (points, sets) that decide equality with any function that is monotone between
        neighbouring thresholds: both ends, and both sides of every threshold."""
        inside = np.clip(self.table, self.lo, self.hi)
        below = np.clip(self.table - 1, self.lo, self.hi)
        return np.concatenate([self.lo[None], self.hi[None], inside, below])
