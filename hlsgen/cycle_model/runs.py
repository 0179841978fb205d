"""Times of beats as arithmetic progressions, and the progression of beats that wait for several things at once.

Beats mostly come with even spacing: a pixel a cycle for a whole frame, or a burst for each pixel. A sequence of times
is therefore stored as runs, each of them first + i * step for a number of beats. Its cost is the number of runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable

import numpy as np

from hlsgen.numerics.fixed import Array

#: Larger than any number of beats or cycles.
ENDLESS = 1 << 60
#: Runs compared one by one until two sequences have runs that begin at the same numbers, then in bulk.
FEW, MANY = 32, 2048


class Runs:
    """A sequence of integers that grows at its end. Run r starts with number starts[r] of the sequence."""

    __slots__ = ("_table", "count", "firsts", "starts", "steps")

    def __init__(self) -> None:
        self._table: tuple[Array, Array, Array] | None = None
        self.firsts: list[int] = []
        self.steps: list[int] = []
        self.starts: list[int] = []
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def append(self, first: int, step: int, count: int) -> None:
        """Adds first + i * step for i in range(count), to the last run if they continue it."""
        if self.starts:
            last_count = self.count - self.starts[-1]
            gap = first - self.firsts[-1]
            if last_count == 1:
                if count == 1 or step == gap:
                    self.steps[-1] = gap
                    self.count += count
                    return
            elif gap == last_count * self.steps[-1] and (count == 1 or step == self.steps[-1]):
                self.count += count
                return
        self.firsts.append(first)
        self.steps.append(step)
        self.starts.append(self.count)
        self.count += count

    def extend(self, appended: Runs, offset: int) -> None:
        """Adds the numbers of another sequence, each increased by `offset`."""
        stops = [*appended.starts[1:], appended.count]
        for first, step, start, stop in zip(appended.firsts, appended.steps, appended.starts, stops, strict=True):
            self.append(first + offset, step, stop - start)

    def since(self, k: int, base: int) -> tuple[tuple[int, int, int], ...]:
        """The runs from number k on, each as (first - base, step, count)."""
        runs = []
        at = bisect_right(self.starts, k) - 1
        while k < self.count:
            stop = self.starts[at + 1] if at + 1 < len(self.starts) else self.count
            runs.append((self.firsts[at] + (k - self.starts[at]) * self.steps[at] - base, self.steps[at], stop - k))
            k, at = stop, at + 1
        return tuple(runs)

    def repeat(self, begin: int, offset: int, times: int) -> None:
        """Repeats the numbers from number `begin` on `times` times, each time increased by `offset`."""
        at = bisect_right(self.starts, begin) - 1
        stop, period = len(self.starts), self.count - begin
        if not period:
            return
        ends = [*self.starts[at + 1 : stop], self.count]
        first = self.firsts[at] + (begin - self.starts[at]) * self.steps[at]
        step, count = self.steps[at], ends[0] - begin
        if stop == at + 1 and (period == 1 or offset == step * period):
            self.append(first + offset, offset if period == 1 else step, period * times)
            return
        firsts, steps, starts = self.firsts[at + 1 : stop], self.steps[at + 1 : stop], self.starts[at + 1 : stop]
        for time in range(1, times + 1):
            time_offset, count_offset = time * offset, time * period
            self.append(first + time_offset, step, count)
            if firsts:
                self.firsts += [number + time_offset for number in firsts]
                self.steps += steps
                self.starts += [number + count_offset for number in starts]
                self.count = begin + count_offset + period

    def equal(self, early: int, late: int, offset: int, limit: int, floors: tuple[int, int] | None = None) -> int:
        """How many numbers from `early` on equal the numbers from `late` on minus `offset`; at most `limit`.

        `floors`: numbers up to the first floor equal numbers from `late` on that are up to the second floor. The count
        may be too small if runs begin at different places for long.
        """
        starts, firsts, steps, total = self.starts, self.firsts, self.steps, self.count
        limit = min(limit, total - late)
        equal_count, trials = 0, FEW
        a, b = bisect_right(starts, early) - 1, bisect_right(starts, late) - 1
        last = len(starts) - 1
        while equal_count < limit and trials:
            trials -= 1
            i, j = early + equal_count, late + equal_count
            if i == starts[a] and j == starts[b]:
                runs = self._equal_runs(a, b, offset, late + limit)
                if runs:
                    a, b = a + runs, b + runs
                    equal_count = (starts[b] if b <= last else total) - late
                    trials = FEW
                    continue
            stop_a, stop_b = starts[a + 1] if a < last else total, starts[b + 1] if b < last else total
            x, y = firsts[a] + (i - starts[a]) * steps[a], firsts[b] + (j - starts[b]) * steps[b]
            count = min(stop_a - i, stop_b - j)
            if floors is not None and x <= floors[0] and y <= floors[1]:
                if steps[a] > 0:
                    count = min(count, (floors[0] - x) // steps[a] + 1)
                if steps[b] > 0:
                    count = min(count, (floors[1] - y) // steps[b] + 1)
            elif y - x != offset:
                break
            elif steps[a] != steps[b]:
                count = 1
            equal_count += count
            a += i + count == stop_a
            b += j + count == stop_b
        return min(equal_count, limit)

    def _equal_runs(self, a: int, b: int, offset: int, stop: int) -> int:
        """How many runs from a on equal the runs from b on minus `offset`, among runs that begin before number
        `stop`."""
        if self._table is None or len(self._table[0]) != len(self.starts):
            starts = np.array([*self.starts, self.count], np.int64)
            self._table = np.array(self.firsts, np.int64), np.array(self.steps, np.int64), np.diff(starts)
        firsts, steps, counts = self._table
        end, equal_count, size = min(len(firsts), bisect_right(self.starts, stop)), 0, 32
        while b + equal_count < end:
            size = min(size, end - b - equal_count)
            early, late = slice(a + equal_count, a + equal_count + size), slice(b + equal_count, b + equal_count + size)
            matches = (firsts[late] - firsts[early] == offset) & (steps[late] == steps[early])
            matches &= counts[late] == counts[early]
            if not matches.all():
                return equal_count + int(matches.argmin())
            equal_count += size
            size = min(2 * size, MANY)
        return equal_count

    def last(self) -> int:
        """The last number; the sequence is not empty."""
        return self.firsts[-1] + (self.count - 1 - self.starts[-1]) * self.steps[-1]

    def content(self, base: int = 0) -> Hashable:
        """A key that is equal for sequences with the same runs, relative to `base`."""
        return tuple([first - base for first in self.firsts]), tuple(self.steps), tuple(self.starts), self.count

    def first(self, count: int) -> Runs:
        """The first `count` numbers."""
        prefix = Runs()
        at = bisect_right(self.starts, count - 1) if count else 0
        prefix.firsts, prefix.steps, prefix.starts = self.firsts[:at], self.steps[:at], self.starts[:at]
        prefix.count = min(count, self.count)
        return prefix

    def later(self, cycles: int) -> Runs:
        """The same numbers, each increased by `cycles`. The result must not be appended to."""
        shifted = Runs()
        shifted.firsts = [first + cycles for first in self.firsts]
        shifted.steps, shifted.starts, shifted.count = self.steps, self.starts, self.count
        return shifted

    def numbers(self, places: Array) -> Array:
        """The numbers at these places, int64."""
        starts = np.array(self.starts, np.int64)
        run = np.searchsorted(starts, places, "right") - 1
        numbers: Array = np.array(self.firsts, np.int64)[run]
        numbers += (places - starts[run]) * np.array(self.steps, np.int64)[run]
        return numbers

    def array(self, stop: int | None = None) -> Array:
        """All numbers, or the numbers before index `stop`, int64."""
        starts = np.array(self.starts, np.int64)
        counts = np.diff(np.append(starts, self.count))
        place = np.arange(self.count) - np.repeat(starts, counts)
        numbers: Array = np.repeat(np.array(self.firsts, np.int64), counts)
        numbers += place * np.repeat(np.array(self.steps, np.int64), counts)
        return numbers[:stop]

    @staticmethod
    def of(numbers: Iterable[int]) -> Runs:
        """The runs of a sequence of numbers."""
        runs = Runs()
        for number in numbers:
            runs.append(number, 0, 1)
        return runs


class Cursor:
    """Reads a sequence in forward direction."""

    __slots__ = ("_first", "_start", "_step", "_stop", "at", "runs")

    def __init__(self, runs: Runs) -> None:
        self.runs, self.at = runs, 0
        # The cached run. Another run follows it, so it cannot grow.
        self._first = self._step = self._start = self._stop = 0

    def read(self, k: int) -> tuple[int, int, int]:
        """(number k, step, count of numbers left in this run, including number k)."""
        if k < self._stop:
            step = self._step
            return self._first + (k - self._start) * step, step, self._stop - k
        runs, at = self.runs, self.at
        starts = runs.starts
        last = len(starts) - 1
        while at < last and starts[at + 1] <= k:
            at += 1
            if at & 15 == 0:
                at = bisect_right(starts, k) - 1
        self.at = at
        first, start, step = runs.firsts[at], starts[at], runs.steps[at]
        if at < last:
            stop = self._stop = starts[at + 1]
            self._first, self._start, self._step = first, start, step
        else:
            stop = runs.count
        return first + (k - start) * step, step, stop - k


class Pattern:
    """Values that repeat forever, as runs of equal values."""

    __slots__ = ("at", "parts", "remaining")

    def __init__(self, values: Iterable[int]) -> None:
        self.parts: list[tuple[int, int]] = []
        for value in values:
            if self.parts and self.parts[-1][0] == value:
                self.parts[-1] = (value, self.parts[-1][1] + 1)
            else:
                self.parts.append((value, 1))
        if len(self.parts) == 1:
            self.parts = [(self.parts[0][0], ENDLESS)]
        self.at, self.remaining = 0, self.parts[0][1]

    def begin(self) -> Pattern:
        """The same pattern from its start."""
        pattern = Pattern.__new__(Pattern)
        pattern.parts, pattern.at, pattern.remaining = self.parts, 0, self.parts[0][1]
        return pattern

    @property
    def value(self) -> int:
        return self.parts[self.at][0]

    @property
    def place(self) -> tuple[int, int]:
        """The position of the next value in the pattern."""
        return (self.at, self.remaining) if len(self.parts) > 1 else (0, 0)

    @property
    def first(self) -> bool:
        """True if the next value is the first of the pattern."""
        return self.at == 0 and self.remaining == self.parts[0][1]

    def skip(self, count: int) -> None:
        """Advances by at most `remaining` values."""
        self.remaining -= count
        if not self.remaining:
            self.at = self.at + 1 if self.at + 1 < len(self.parts) else 0
            self.remaining = self.parts[self.at][1]


def alike(early: Cursor, late: Cursor, start: int, stop: int, lag: int, cycles: int) -> bool:
    """True if the numbers start + lag .. stop + lag - 1 of `late` are the numbers `lag` places earlier in `early`, +
    cycles."""
    k = start
    while k < stop:
        a, step_a, remaining_a = early.read(k)
        b, step_b, remaining_b = late.read(k + lag)
        count = min(remaining_a, remaining_b, stop - k)
        if b - a != cycles or (count > 1 and step_a != step_b):
            return False
        k += count
    return True


def common_prefix(a: Runs, b: Runs) -> int:
    """A lower bound of the number of equal numbers at the beginning of two sequences."""
    count = min(a.count, b.count)
    if not count:
        return 0
    begins = np.union1d(np.array(a.starts, np.int64), np.array(b.starts, np.int64))
    places = np.union1d(begins, np.append(begins[1:] - 1, count - 1))
    places = places[places < count]
    differ = np.flatnonzero(a.numbers(places) != b.numbers(places))
    if not len(differ):
        return count
    return int(places[differ[0] - 1]) + 1 if differ[0] else 0


def runs_equal(a: Runs, b: Runs) -> bool:
    """True if two sequences hold the same numbers."""
    if a.count != b.count:
        return False
    # Usually the runs are equal too, or the sequences differ early.
    if a.starts == b.starts and a.firsts == b.firsts and a.steps == b.steps:
        return True
    if len(a.starts) < FEW or len(b.starts) < FEW:
        return alike(Cursor(a), Cursor(b), 0, a.count, 0, 0)
    if not alike(Cursor(a), Cursor(b), 0, min(a.starts[FEW - 1], b.starts[FEW - 1]), 0, 0):
        return False
    # Between two of these places both sequences have a constant step.
    begins = np.union1d(np.array(a.starts, np.int64), np.array(b.starts, np.int64))
    places = np.concatenate([begins, begins[1:] - 1, [a.count - 1]])
    return bool((a.numbers(places) == b.numbers(places)).all())


def latest(
    lower_bound: int, gap: int, count: int, fixed: Iterable[tuple[int, int]], moving: Iterable[tuple[int, int]] = ()
) -> tuple[int, int, int]:
    """(first, step, m): the first m <= count of beats that each come as soon as all constraints allow.

    No beat comes before `lower_bound`, and each at least `gap` after the previous beat. `fixed`: (first, step), beat i
    comes no earlier than first + i * step. `moving`: (first, step), the first beat comes no earlier than `first`, and
    each at least `step` after the previous beat.
    """
    step = gap
    for first, spacing in moving:
        lower_bound = max(lower_bound, first)
        step = max(step, spacing)
    for first, _ in fixed:
        lower_bound = max(lower_bound, first)
    for first, spacing in fixed:
        if first == lower_bound and spacing > step:
            step = spacing
    for first, spacing in fixed:
        if spacing > step:
            count = min(count, (lower_bound - first) // (spacing - step) + 1)
    return lower_bound, step, count
