"""Times of beats as arithmetic progressions, and what follows for beats that wait for several things at once.

Beats mostly come at a steady pace: a pixel a cycle for a whole frame, or a burst for each pixel. So a sequence of
times is kept as runs, each of them first + i * step for some beats, and costs as much as it has runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable

import numpy as np

from hlsgen.numerics.fixed import Array

#: More than any number of beats or cycles.
ENDLESS = 1 << 60
#: Runs that are compared one by one until those of two sequences begin at the same numbers, and then at once.
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
        """Adds first + i * step for i in range(count), to the last run if it goes on like that."""
        if self.starts:
            held = self.count - self.starts[-1]
            gap = first - self.firsts[-1]
            if held == 1:
                if count == 1 or step == gap:
                    self.steps[-1] = gap
                    self.count += count
                    return
            elif gap == held * self.steps[-1] and (count == 1 or step == self.steps[-1]):
                self.count += count
                return
        self.firsts.append(first)
        self.steps.append(step)
        self.starts.append(self.count)
        self.count += count

    def extend(self, other: Runs, more: int) -> None:
        """Adds the numbers of another sequence, each `more` higher."""
        stops = [*other.starts[1:], other.count]
        for first, step, start, stop in zip(other.firsts, other.steps, other.starts, stops, strict=True):
            self.append(first + more, step, stop - start)

    def since(self, k: int, base: int) -> tuple[tuple[int, int, int], ...]:
        """The runs from number k on, each as (first - base, step, count)."""
        found = []
        at = bisect_right(self.starts, k) - 1
        while k < self.count:
            stop = self.starts[at + 1] if at + 1 < len(self.starts) else self.count
            found.append((self.firsts[at] + (k - self.starts[at]) * self.steps[at] - base, self.steps[at], stop - k))
            k, at = stop, at + 1
        return tuple(found)

    def repeat(self, begin: int, more: int, times: int) -> None:
        """Adds the numbers from number `begin` on so many times, each time `more` higher."""
        at = bisect_right(self.starts, begin) - 1
        stop, period = len(self.starts), self.count - begin
        if not period:
            return
        ends = [*self.starts[at + 1 : stop], self.count]
        first = self.firsts[at] + (begin - self.starts[at]) * self.steps[at]
        step, count = self.steps[at], ends[0] - begin
        if stop == at + 1 and (period == 1 or more == step * period):
            self.append(first + more, more if period == 1 else step, period * times)
            return
        firsts, steps, starts = self.firsts[at + 1 : stop], self.steps[at + 1 : stop], self.starts[at + 1 : stop]
        for time in range(1, times + 1):
            late, later = time * more, time * period
            self.append(first + late, step, count)
            if firsts:
                self.firsts += [number + late for number in firsts]
                self.steps += steps
                self.starts += [number + later for number in starts]
                self.count = begin + later + period

    def equal(self, early: int, late: int, more: int, most: int, floors: tuple[int, int] | None = None) -> int:
        """How many of the numbers from `early` on are those from `late` on less `more`; `most` at the most.

        `floors`: numbers up to the first are equal to numbers from `late` on that are up to the second one. It may be
        more where runs begin at other places for long.
        """
        starts, firsts, steps, total = self.starts, self.firsts, self.steps, self.count
        most = min(most, total - late)
        done, few = 0, FEW
        a, b = bisect_right(starts, early) - 1, bisect_right(starts, late) - 1
        last = len(starts) - 1
        while done < most and few:
            few -= 1
            i, j = early + done, late + done
            if i == starts[a] and j == starts[b]:
                runs = self._equal_runs(a, b, more, late + most)
                if runs:
                    a, b = a + runs, b + runs
                    done = (starts[b] if b <= last else total) - late
                    few = FEW
                    continue
            stop_a, stop_b = starts[a + 1] if a < last else total, starts[b + 1] if b < last else total
            x, y = firsts[a] + (i - starts[a]) * steps[a], firsts[b] + (j - starts[b]) * steps[b]
            count = min(stop_a - i, stop_b - j)
            if floors is not None and x <= floors[0] and y <= floors[1]:
                if steps[a] > 0:
                    count = min(count, (floors[0] - x) // steps[a] + 1)
                if steps[b] > 0:
                    count = min(count, (floors[1] - y) // steps[b] + 1)
            elif y - x != more:
                break
            elif steps[a] != steps[b]:
                count = 1
            done += count
            a += i + count == stop_a
            b += j + count == stop_b
        return min(done, most)

    def _equal_runs(self, a: int, b: int, more: int, stop: int) -> int:
        """How many runs from a on are those from b on less `more`; of those that begin before number `stop`."""
        if self._table is None or len(self._table[0]) != len(self.starts):
            starts = np.array([*self.starts, self.count], np.int64)
            self._table = np.array(self.firsts, np.int64), np.array(self.steps, np.int64), np.diff(starts)
        firsts, steps, counts = self._table
        end, done, size = min(len(firsts), bisect_right(self.starts, stop)), 0, 32
        while b + done < end:
            size = min(size, end - b - done)
            early, late = slice(a + done, a + done + size), slice(b + done, b + done + size)
            fine = (firsts[late] - firsts[early] == more) & (steps[late] == steps[early])
            fine &= counts[late] == counts[early]
            if not fine.all():
                return done + int(fine.argmin())
            done += size
            size = min(2 * size, MANY)
        return done

    def last(self) -> int:
        """The last number; the sequence is not empty."""
        return self.firsts[-1] + (self.count - 1 - self.starts[-1]) * self.steps[-1]

    def content(self, base: int = 0) -> Hashable:
        """Equal for sequences of the same runs, each number less by `base`."""
        return tuple([first - base for first in self.firsts]), tuple(self.steps), tuple(self.starts), self.count

    def first(self, count: int) -> Runs:
        """The first so many numbers."""
        made = Runs()
        at = bisect_right(self.starts, count - 1) if count else 0
        made.firsts, made.steps, made.starts = self.firsts[:at], self.steps[:at], self.starts[:at]
        made.count = min(count, self.count)
        return made

    def later(self, cycles: int) -> Runs:
        """The same numbers, each higher by so many; not to be appended to."""
        made = Runs()
        made.firsts = [first + cycles for first in self.firsts]
        made.steps, made.starts, made.count = self.steps, self.starts, self.count
        return made

    def numbers(self, places: Array) -> Array:
        """The numbers at these places, int64."""
        starts = np.array(self.starts, np.int64)
        run = np.searchsorted(starts, places, "right") - 1
        found: Array = np.array(self.firsts, np.int64)[run]
        found += (places - starts[run]) * np.array(self.steps, np.int64)[run]
        return found

    def array(self, stop: int | None = None) -> Array:
        """All numbers, or those in front of number `stop`, int64."""
        starts = np.array(self.starts, np.int64)
        counts = np.diff(np.append(starts, self.count))
        place = np.arange(self.count) - np.repeat(starts, counts)
        every: Array = np.repeat(np.array(self.firsts, np.int64), counts)
        every += place * np.repeat(np.array(self.steps, np.int64), counts)
        return every[:stop]

    @staticmethod
    def of(numbers: Iterable[int]) -> Runs:
        made = Runs()
        for number in numbers:
            made.append(number, 0, 1)
        return made


class Cursor:
    """Reads a sequence forwards."""

    __slots__ = ("_first", "_start", "_step", "_stop", "at", "runs")

    def __init__(self, runs: Runs) -> None:
        self.runs, self.at = runs, 0
        # Of a run that others follow, which thus stays as it is.
        self._first = self._step = self._start = self._stop = 0

    def read(self, k: int) -> tuple[int, int, int]:
        """(number k, step, how many numbers of this run are left, number k included)."""
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
    """Values that repeat for ever, as runs of equal ones."""

    __slots__ = ("at", "left", "parts")

    def __init__(self, values: Iterable[int]) -> None:
        self.parts: list[tuple[int, int]] = []
        for value in values:
            if self.parts and self.parts[-1][0] == value:
                self.parts[-1] = (value, self.parts[-1][1] + 1)
            else:
                self.parts.append((value, 1))
        if len(self.parts) == 1:
            self.parts = [(self.parts[0][0], ENDLESS)]
        self.at, self.left = 0, self.parts[0][1]

    def begin(self) -> Pattern:
        """The same from its start."""
        made = Pattern.__new__(Pattern)
        made.parts, made.at, made.left = self.parts, 0, self.parts[0][1]
        return made

    @property
    def value(self) -> int:
        return self.parts[self.at][0]

    @property
    def place(self) -> tuple[int, int]:
        """Where in the pattern the next value is."""
        return (self.at, self.left) if len(self.parts) > 1 else (0, 0)

    @property
    def first(self) -> bool:
        """Whether the next value is the first one of the pattern."""
        return self.at == 0 and self.left == self.parts[0][1]

    def skip(self, count: int) -> None:
        """Goes on by at most `left` values."""
        self.left -= count
        if not self.left:
            self.at = self.at + 1 if self.at + 1 < len(self.parts) else 0
            self.left = self.parts[self.at][1]


def alike(early: Cursor, late: Cursor, start: int, stop: int, lag: int, cycles: int) -> bool:
    """Whether numbers start + lag .. stop + lag - 1 of `late` are those `lag` in front of them in `early`, + cycles."""
    k = start
    while k < stop:
        a, step_a, left_a = early.read(k)
        b, step_b, left_b = late.read(k + lag)
        count = min(left_a, left_b, stop - k)
        if b - a != cycles or (count > 1 and step_a != step_b):
            return False
        k += count
    return True


def agreed(a: Runs, b: Runs) -> int:
    """So many numbers at the beginning of two sequences are the same, or some more."""
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


def same(a: Runs, b: Runs) -> bool:
    """Whether two sequences hold the same numbers."""
    if a.count != b.count:
        return False
    # Mostly the runs are the same, too, or something is different soon.
    if a.starts == b.starts and a.firsts == b.firsts and a.steps == b.steps:
        return True
    if len(a.starts) < FEW or len(b.starts) < FEW:
        return alike(Cursor(a), Cursor(b), 0, a.count, 0, 0)
    if not alike(Cursor(a), Cursor(b), 0, min(a.starts[FEW - 1], b.starts[FEW - 1]), 0, 0):
        return False
    # Between two of these places both go on at one pace.
    begins = np.union1d(np.array(a.starts, np.int64), np.array(b.starts, np.int64))
    places = np.concatenate([begins, begins[1:] - 1, [a.count - 1]])
    return bool((a.numbers(places) == b.numbers(places)).all())


def latest(
    least: int, gap: int, count: int, fixed: Iterable[tuple[int, int]], moving: Iterable[tuple[int, int]] = ()
) -> tuple[int, int, int]:
    """(first, step, m): the first m <= count of beats that each come as soon as nothing keeps them back.

    No beat comes before `least`, and each at least `gap` after the one before. `fixed`: (first, step), beat i comes no
    earlier than first + i * step. `moving`: (first, step), the first beat comes no earlier than `first`, and each at
    least `step` after the one before.
    """
    step = gap
    for first, pace in moving:
        least = max(least, first)
        step = max(step, pace)
    for first, _ in fixed:
        least = max(least, first)
    for first, pace in fixed:
        if first == least and pace > step:
            step = pace
    for first, pace in fixed:
        if pace > step:
            count = min(count, (least - first) // (pace - step) + 1)
    return least, step, count
