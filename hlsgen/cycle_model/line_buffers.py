"""Units with a memory from which they read words more than once: windows of an image, blocks, vectors.

Such a unit has two sides, each with its own function here. The reading side starts a window as soon as its last word is
stored. The writing side consumes a word as soon as its place in the memory is free. Each side continues as far as the
other side and the wires allow; the process yields when neither can continue.

Both sides translate between cycles and enabled cycles (see `processes`), each with its own `EnableClock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hlsgen.cycle_model.processes import Process, Wire, next_offer
from hlsgen.cycle_model.runs import Runs
from hlsgen.dataflow.flow import WordWindows, word_windows
from hlsgen.dataflow.units import WindowUnit
from hlsgen.numerics.fixed import Array


@dataclass
class Buffer:
    """The memory of a unit that emits one window (one block) after the other.

    A frame is `words` words. Window v of a frame may start when word needs[v] of the frame is stored. Until the window
    is emitted, the words from keeps[v] on stay in the memory, which has room for `depth` words. A window takes `period`
    enabled cycles; it starts at least `lag` cycles after its last word is stored. Entry v of `starts` is the enabled
    cycle in which window v (of all frames) began.
    """

    needs: Sequence[int]
    keeps: Sequence[int]
    words: int
    depth: int
    period: int
    lag: int = 0
    starts: list[int] = field(default_factory=list)

    def needed(self, window: int) -> int:
        """The last word that a window needs; windows and words are counted over all frames."""
        frame, place = divmod(window, len(self.needs))
        return frame * self.words + self.needs[place]

    def oldest_kept(self, window: int) -> int:
        """The first word that has to stay until a window is emitted; windows and words are counted over all frames."""
        frame, place = divmod(window, len(self.keeps))
        return frame * self.words + self.keeps[place]


class EnableClock:
    """Translates between the cycles and the enabled cycles of a unit, by the beats that it emits.

    The unit stalls from the cycle in which it offers a beat to the cycle in which the beat is consumed. The stalled
    cycles `lost` are therefore consumed - due of the last passed beat. A clock passes beats in order: its calls must be
    in the order of time.
    """

    __slots__ = ("consumed", "due", "lost", "passed")

    def __init__(self, result: Wire) -> None:
        self.due, self.consumed = result.due, result.consumed
        self.passed = self.lost = 0

    def enabled(self, cycle: int) -> int | None:
        """The number of the first enabled cycle that is not before `cycle`, or None if it is not known yet."""
        due, consumed = self.due, self.consumed
        while self.passed < len(due) and due[self.passed] + self.lost <= cycle:
            if self.passed == len(consumed):
                return None
            departure = consumed[self.passed]
            self.lost = departure - due[self.passed]
            self.passed += 1
            if departure > cycle:
                cycle = departure
        return cycle - self.lost

    def cycle(self, enabled: int) -> int | None:
        """The cycle in which an enabled cycle ends, or None if it is not known yet."""
        due, consumed = self.due, self.consumed
        while self.passed < len(due) and due[self.passed] <= enabled:
            if self.passed == len(consumed):
                return None
            self.lost = consumed[self.passed] - due[self.passed]
            self.passed += 1
        return enabled + self.lost


class WindowReader:
    """The reading side of `windows`."""

    def __init__(self, wire: Wire, result: Wire, buffer: Buffer, first: int, step: int) -> None:
        self.consumed, self.due, self.buffer = wire.consumed, result.due, buffer
        self.first, self.step = first, step
        self.clock = EnableClock(result)
        self.needed = buffer.needed(0)

    def start_windows(self) -> bool:
        """Starts all windows whose start is known; False if there are none."""
        buffer, starts = self.buffer, self.buffer.starts
        started_before = len(starts)
        while self.needed < len(self.consumed):
            stored = self.consumed[self.needed] + 1 + buffer.lag
            start = starts[-1] + buffer.period if starts else 0
            if stored - self.clock.lost > start:
                enabled = self.clock.enabled(stored)
                if enabled is None:
                    break
                start = max(start, enabled)
            starts.append(start)
            self.due.extend(range(start + self.first, start + self.first + buffer.period, self.step))
            self.needed = buffer.needed(len(starts))
        return len(starts) > started_before


class WindowWriter:
    """The writing side of `windows`."""

    def __init__(self, wire: Wire, result: Wire, buffer: Buffer) -> None:
        self.wire, self.buffer = wire, buffer
        self.clock = EnableClock(result)
        #: The first window that still needs words when the next word is written, and the first of these words.
        self.window, self.oldest_kept = 0, buffer.oldest_kept(0)
        #: Windows that are known to be emitted, and the first cycle after the last one of them.
        self.emitted, self.free = 0, 0

    def store_words(self) -> bool:
        """Consumes all words whose cycle is known; False if there are none."""
        wire, consumed, buffer = self.wire, self.wire.consumed, self.buffer
        stored_before = len(consumed)
        while len(consumed) < len(wire.due):
            overwritten = len(consumed) - buffer.depth
            while self.oldest_kept <= overwritten and self.window < len(buffer.starts):
                self.window += 1
                self.oldest_kept = buffer.oldest_kept(self.window)
            if self.oldest_kept <= overwritten:  # by a window that has not started
                break
            if self.emitted < self.window:
                end = self.clock.cycle(buffer.starts[self.window - 1] + buffer.period - 1)
                if end is None:
                    break
                self.emitted, self.free = self.window, end + 1
            cycle = next_offer(wire)
            consumed.append(cycle if cycle > self.free else self.free)
        return len(consumed) > stored_before


def windows(wire: Wire, result: Wire, buffer: Buffer, first: int, step: int) -> Process:
    """hg_conv, hg_dwconv, hg_pool, hg_gather: the unit has an enable; its memory is written without the enable.

    A window emits a beat every `step` enabled cycles of its period. The first beat is due `first` enabled cycles after
    the window began. A word is written no earlier than in the cycle after the last window that needs its place has read
    its last word.
    """
    reader, writer = WindowReader(wire, result, buffer, first, step), WindowWriter(wire, result, buffer)
    while True:
        started = reader.start_windows()
        stored = writer.store_words()
        if not (started or stored):
            yield


class VectorReader:
    """The reading side of `matrix`. `multiplied_at`: enabled cycle in which each beat is multiplied for the last
    time."""

    def __init__(self, wire: Wire, result: Wire, length: int, repeat: int, tail: int) -> None:
        self.consumed, self.due = wire.consumed, result.due
        self.length, self.repeat, self.tail = length, repeat, tail
        self.clock = EnableClock(result)
        self.multiplied_at: list[int] = []
        #: Beats that were read at least once, and the last enabled cycle in which the multipliers are busy.
        self.read, self.busy = 0, -1

    def multiply_beats(self) -> bool:
        """Reads all beats whose cycle is known; False if there are none."""
        length, passes = self.length, self.repeat
        read_before = self.read
        while self.read < len(self.consumed):
            # A beat needs two cycles from the port to the multipliers.
            enabled = self.clock.enabled(self.consumed[self.read] + 2)
            if enabled is None:
                break
            self.busy = max(enabled, self.busy + 1)
            self.read += 1
            if passes == 1:
                self.multiplied_at.append(self.busy)
            if self.read % length == 0:
                # The vector is complete: its first pass ends now, the other passes follow without a gap.
                self.due.extend(range(self.busy + self.tail, self.busy + self.tail + passes * length, length))
                self.busy += (passes - 1) * length
                if passes > 1:
                    self.multiplied_at.extend(range(self.busy - length + 1, self.busy + 1))
        return self.read > read_before


class VectorWriter:
    """The writing side of `matrix`. `multiplied_at`: see VectorReader."""

    def __init__(self, wire: Wire, result: Wire, length: int, repeat: int, multiplied_at: list[int]) -> None:
        self.wire, self.multiplied_at, self.repeated = wire, multiplied_at, repeat > 1
        # A repeated beat is freed while it is multiplied for the last time; a unit without memory does a cycle later.
        self.early = repeat > 1 and length > 1
        self.depth = 4 if repeat == 1 and length > 2 else 2 * length
        self.clock = EnableClock(result)

    def _read(self, beat: int) -> int:
        """The last enabled cycle in which the place of a beat must not be overwritten."""
        if self.repeated:
            return self.multiplied_at[beat] - self.early
        return self.multiplied_at[beat - 1] if beat else -1

    def store_beats(self) -> bool:
        """Consumes all beats whose cycle is known; False if there are none."""
        wire, consumed, multiplied_at = self.wire, self.wire.consumed, self.multiplied_at
        stored_before = len(consumed)
        while len(consumed) < len(wire.due):
            cycle = next_offer(wire)
            overwritten = len(consumed) - self.depth
            if overwritten >= 0:
                # Its place is read when the previous beat enters the multipliers, or later.
                if len(multiplied_at) < overwritten + self.repeated:
                    break
                end = self.clock.cycle(self._read(overwritten))
                if end is None:
                    break
                cycle = max(cycle, end + 1)
            consumed.append(cycle)
        return len(consumed) > stored_before


def matrix(wire: Wire, result: Wire, length: int, repeat: int, tail: int) -> Process:
    """hg_mvu: vectors of `length` beats, each of them read `repeat` times.

    The sum of a pass over a vector is offered `tail` enabled cycles after the last beat of the pass is multiplied. The
    register between memory and multipliers fills in lost cycles too.
    """
    reader = VectorReader(wire, result, length, repeat, tail)
    writer = VectorWriter(wire, result, length, repeat, reader.multiplied_at)
    while True:
        multiplied = reader.multiply_beats()
        stored = writer.store_beats()
        if not (multiplied or stored):
            yield


@lru_cache(maxsize=4096)
def window_runs(windows: WordWindows) -> tuple[Runs, Runs]:
    """The words of an image that each window needs: `needs` and `keeps` of a Buffer, an entry of each per window.

    The module hg_window counts in the same way. The result is cached and must not be changed.
    """
    height, width, folds = windows.height, windows.width, windows.folds
    (down, across), (top, left_pad, *_) = windows.window.strides, windows.window.pads
    last = Runs.of(windows.last_words)
    columns = len(last)
    first = Runs.of(min(max(ox * across - left_pad, 0), width) * folds for ox in range(columns))
    needs, keeps = Runs(), Runs()
    last_rows = windows.last_rows
    for oy, last_row in enumerate(last_rows):
        y = oy * down - top
        needs.extend(last, last_row * width * folds)
        oldest = min(max(y, 0), height) * width * folds
        if y < height and (y + down > 0 or oy == len(last_rows) - 1):
            keeps.extend(first, oldest)
        else:
            keeps.append(oldest, 0, columns)
    return needs, keeps


def window_lists(windows: WordWindows) -> tuple[list[int], list[int]]:
    """The same as `window_runs`, as lists."""
    needs, keeps = window_runs(windows)
    return needs.array().tolist(), keeps.array().tolist()


def min_depth(unit: WindowUnit) -> int:
    """The smallest depth, in words, with which the memory of a unit holds every window: less is a deadlock."""
    needs, keeps = window_runs(word_windows(unit))
    return int((needs.array() - keeps.array()).max()) + 1


def span(consumed: Array, ends: Array, keeps: Array, words: int, due: Array, departures: Array) -> int:
    """The most words that the memory ever spans, from the oldest kept word to the newest: a sufficient depth.

    All arrays are int64.

    - consumed (words,): the cycle in which each word was written.
    - ends (windows,): the last enabled cycle of each window.
    - keeps, words: as in Buffer.
    - due, departures (beats,): the cycles in which the emitted beats are due, and consumed.
    """
    lost: Array = np.concatenate([[0], departures - due])
    last = ends + lost[np.searchsorted(due, ends, "right")]
    window = np.searchsorted(last, consumed)
    frame, place = np.divmod(window, len(keeps))
    oldest_kept = frame * words + keeps[place]
    return int((np.arange(len(consumed)) - oldest_kept).max(initial=0)) + 1
