"""Realization `table`: a lookup table of all inputs' codes, of the window in which they change, or of half a window.

Example: a function that is 0 below 1000, 7 from 1030 on, and rises in between. A window of 32 inputs from 999 on holds
all changes. Inputs outside it get its first or last entry. If f(2029 - x) = 7 - f(x), half the entries suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.rank import changes
from hlsgen.rescale.threshold_table import ThresholdTable

#: Most address bits of a lookup table, and of one for a function with more steps than 2^12 inputs can have.
MAX_ADDRESS_BITS, MAX_WIDE_ADDRESS_BITS = 12, 16
#: Most entries of a lookup table, over all sets.
_MAX_ENTRIES = 1 << 24
#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 21
#: A memory of up to this many bits is made of LUTs.
_LUT_BITS = 1 << 13
#: Bits of block RAM that are worth as much as a LUT.
_BITS_OF_A_LUT = 128


class TableMode(IntEnum):
    """The contents of the lookup table. The number is parameter MODE of module hg_table; 3 for HALF if `even`."""

    DIRECT = 0
    WINDOW = 1
    HALF = 2


@dataclass(frozen=True, eq=False)
class Table:
    """Parameters of module hg_table: code = entries[index]. `entries` int64 (2^bits, sets), `center` int64 (sets,).

    DIRECT: the index is the low bits of x. WINDOW: it is x - center, clamped to the table. HALF: it is x - center,
    clamped. Below the center, HALF has the index center - x - 1 + even, clamped, and the code total - entries[index].
    """

    mode: TableMode
    entries: Array
    center: Array
    even: bool = False
    total: int = 0

    @property
    def bits(self) -> int:
        """Bits of the index."""
        return len(self.entries).bit_length() - 1

    @property
    def latency(self) -> int:
        return (2, 4, 5)[self.mode]

    def apply(self, codes: Array) -> Array:
        """The codes that the hardware computes: codes (..., sets) -> codes."""
        last, column = len(self.entries) - 1, np.arange(self.entries.shape[1])
        if self.mode == TableMode.DIRECT:
            return np.asarray(self.entries[codes & last, column])
        distance = codes - self.center
        below = distance < 0
        if self.mode == TableMode.WINDOW:
            return np.asarray(self.entries[np.clip(distance, 0, last), column])
        index = np.where(below, -distance - 1 + self.even, distance)
        values = self.entries[np.minimum(index, last), column]
        return np.where(below, self.total - values, values)


def find(steps: ThresholdTable, folds: int = 1) -> Table | str:
    """The cheapest lookup table, or the reason, as text, why all are too large.

    `folds`: number of sets that a lane stores. The proof: `_equal` compares every x of lo..hi whose index is not
    clamped, and one more on either side. Beyond, the table is constant, and so are the steps, by the choice of its
    size. The corners of the steps are compared as well.
    """
    tables = [table for table in (_full_table(steps), _window(steps), *_halves(steps)) if isinstance(table, Table)]
    if not tables:
        return (
            f"neither the inputs nor the steps of some set lie within 2^{_most_bits(steps)} inputs"
            if steps.sets << _most_bits(steps) <= _MAX_ENTRIES
            else f"it needs more than {_MAX_ENTRIES} entries"
        )
    source = IntType(int(steps.lo.min()), int(steps.hi.max()))
    result = IntType(int(steps.values.min()), int(steps.values.max()))

    def score(table: Table) -> float:
        sites, _, memory = cost(table, np.zeros((folds, 1), np.int64), source, result)
        return sites + memory / _BITS_OF_A_LUT

    best = min(tables, key=score)
    if not _equal(best, steps):
        raise AssertionError(f"{steps.name}: the table differs from its function")
    return best


def _most_bits(steps: ThresholdTable) -> int:
    """Most address bits: a function of few steps always has smaller hardware than a wide table."""
    return MAX_ADDRESS_BITS if steps.steps < 1 << MAX_ADDRESS_BITS else MAX_WIDE_ADDRESS_BITS


def _fits(steps: ThresholdTable, largest: int) -> int | None:
    """Bits of an index 0..largest, or None if the table would be too large."""
    bits = max(1, largest.bit_length())
    return bits if bits <= _most_bits(steps) and steps.sets << bits <= _MAX_ENTRIES else None


def _full_table(steps: ThresholdTable) -> Table | None:
    """The lookup table of all inputs, or None if it is too large."""
    bits = _fits(steps, int((steps.hi - steps.lo).max()))
    if bits is None:
        return None
    # The one x of lo..lo + 2^bits - 1 with those low bits.
    address = np.arange(1 << bits)[:, None]
    x = steps.lo + ((address - steps.lo) & ((1 << bits) - 1))
    return Table(TableMode.DIRECT, steps.apply(np.minimum(x, steps.hi)), np.zeros_like(steps.lo))


def _window(steps: ThresholdTable) -> Table | None:
    """The lookup table from the input before the first change to the last change, or None if it is too large."""
    first, last = _span(steps)
    bits = _fits(steps, int((last - first).max()))
    if bits is None:
        return None
    # Around zero if that holds all changes: no subtraction.
    aligned = (first >= 0).all() and (last < 1 << bits).all()
    center = np.zeros_like(first) if aligned else first
    x = center + np.arange(1 << bits)[:, None]
    return Table(TableMode.WINDOW, steps.apply(np.clip(x, steps.lo, steps.hi)), center)


def _span(steps: ThresholdTable) -> tuple[Array, Array]:
    """The input before the first change and the input of the last one, int64 (sets,) each; lo if there is none."""
    changed = steps.changed
    has_changes = changed.any(axis=0)
    begin, end = changed.argmax(axis=0), steps.steps - 1 - changed[::-1].argmax(axis=0)
    sets = np.arange(steps.sets)
    return np.where(has_changes, steps.table[begin, sets] - 1, steps.lo), np.where(
        has_changes, steps.table[end, sets], steps.lo
    )


def _halves(steps: ThresholdTable) -> Iterator[Table]:
    """Lookup tables of f(x) for x >= center, if every set is point-symmetric: f(mirror - x) = total - f(x).

    Each set has a mirror of its own, mirror = 2 * center - 1 + even. All sets share `total` and `even`.
    """
    constant: Array = np.logical_not(steps.changed.any(axis=0))
    candidates: dict[int, list[tuple[int, int]]] = {}
    shared: set[tuple[int, int]] = set()
    for s in np.flatnonzero(~constant).tolist():
        candidates[s] = _mirrors(steps, s)
        kinds = {(mirror & 1, total) for mirror, total in candidates[s]}
        shared = shared & kinds if len(candidates) > 1 else kinds
        if not shared:
            return
    for odd, total in sorted(shared):
        # A constant set has its center at lo, so that no input is below it.
        mirror = np.array(
            [
                2 * int(steps.lo[s]) - odd if constant[s] else _first(candidates[s], odd, total)
                for s in range(steps.sets)
            ]
        )
        if (table := _half(steps, mirror, not odd, total)) is not None:
            yield table


def _first(candidates: list[tuple[int, int]], odd: int, total: int) -> int:
    """The first mirror with that total and parity."""
    return next(mirror for mirror, candidate_total in candidates if mirror & 1 == odd and candidate_total == total)


def _mirrors(steps: ThresholdTable, s: int) -> list[tuple[int, int]]:
    """Pairs (mirror, total) with f(mirror - x) = total - f(x) for every x whose mirror image is in the interval.

    f(x) + f(mirror - x) is a step function that is symmetric itself. It is constant if it has one value at both ends
    and on both sides of every jump of f(x), as the jumps of f(mirror - x) are the images of these.
    """
    thresholds, _ = changes(steps, s)
    lo, hi = int(steps.lo[s]), int(steps.hi[s])
    if not len(thresholds):
        return []
    proven = []
    for mirror in sorted({int(thresholds[0] + thresholds[-1]) - 1, lo + hi, lo + hi + 1, 0, -1}, key=abs):
        low, high = max(lo, mirror - hi), min(hi, mirror - lo)
        if not lo <= -(-mirror // 2) <= hi or low > high:
            continue
        x = np.concatenate([[low, high], thresholds, thresholds - 1])
        x = x[(x >= low) & (x <= high)]
        sums = _column(steps, s, x) + _column(steps, s, mirror - x)
        if (sums == sums[0]).all():
            proven.append((mirror, int(sums[0])))
    return proven


def _column(steps: ThresholdTable, s: int, x: Array) -> Array:
    """f of set s at x, int64 (points,) -> int64 (points,)."""
    return np.asarray(steps.values[np.searchsorted(steps.table[:, s], x, side="right"), s])


def _half(steps: ThresholdTable, mirror: Array, even: bool, total: int) -> Table | None:
    """The half table with these mirrors, int64 (sets,), or None if it is too large."""
    center = -(-mirror // 2)
    first, last = _span(steps)
    # Index of the first input and of the last one: nothing changes beyond them.
    ends = [np.where(x >= center, x - center, mirror - x - center) for x in (first, last)]
    bits = _fits(steps, int(np.maximum(*ends).max()))
    if bits is None:
        return None
    # Above hi, the image below the center gives the entry; if there is none, the entry is not used.
    x = center + np.arange(1 << bits)[:, None]
    upper = steps.apply(np.minimum(x, steps.hi))
    lower = total - steps.apply(np.clip(mirror - x, steps.lo, steps.hi))
    return Table(TableMode.HALF, np.where(x <= steps.hi, upper, lower), center, even, total)


def _equal(table: Table, steps: ThresholdTable) -> bool:
    """True if the lookup table is proven equal to the steps, as described in `find`."""
    size = len(table.entries) + 1
    start = np.where(table.mode == TableMode.HALF, table.center - size, table.center - 1)
    start, stop = np.maximum(start, steps.lo), np.minimum(table.center + size, steps.hi)
    if table.mode == TableMode.DIRECT:
        start, stop = steps.lo, steps.hi
    points = int((stop - start).max()) + 1
    rows = max(1, _CHUNK // steps.sets)
    for row in range(0, points, rows):
        x = np.clip(start + np.arange(row, min(row + rows, points))[:, None], steps.lo, steps.hi)
        if (table.apply(x) != steps.apply(x)).any():
            return False
    corners = steps.corners()
    return bool((table.apply(corners) == steps.apply(corners)).all())


def cost(realization: Table, table: Array, source: IntType, result: IntType) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM): the memory, and the arithmetic of its index."""
    folds, lanes = table.shape
    sites = 0.0
    if realization.mode != TableMode.DIRECT:
        width = max(source.bits, realization.bits) + 1
        sites += width * bool(realization.center.any()) + realization.bits + (width - realization.bits) / 5
        if realization.mode == TableMode.HALF:
            sites += 1.5 * (realization.bits + 1) * realization.even + result.bits
    words = folds << realization.bits
    memory = words * result.bits
    if memory <= _LUT_BITS:
        return lanes * (sites + memory / 64 * (1.0 if words <= 256 else 1.4)), 0, 0
    return lanes * sites, 0, lanes * memory
