"""Finds repeated behaviour of a unit: rows of an image and whole frames that repeat with later times.

The next actions of a unit follow from its state and its inputs. If both equal an earlier state and its inputs, the unit
repeats its earlier actions. Their runs are then copied instead of computed. The choice of the beats that are compared
affects only speed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from hlsgen.cycle_model.runs import ENDLESS, Runs, common_prefix

#: Steps that a unit must make between two comparisons; with fewer there is nothing to gain.
LEAST_STEPS = 16
#: How many earlier places with the same state are compared, and the most repetitions found at a time.
PLACES, MOST_TIMES = 3, 256


class Read(NamedTuple):
    """A sequence that the unit reads next at number `at`.

    Times are relative to `base`. `ahead`: count of its numbers that belong to beats in the unit. `floor`: all numbers
    up to `base` count as equal.
    """

    runs: Runs
    at: int
    base: int
    ahead: int = 0
    floor: bool = False


class Written(NamedTuple):
    """A sequence that the unit has written so far, and the base of its times."""

    runs: Runs
    base: int


class _Place(NamedTuple):
    """A state of a unit, and the positions and bases of its sequences."""

    state: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


class Repeats:
    """The places at which a unit was compared, each after a multiple of `stride` beats.

    `at`: the beat before which `due` must be called next; no run may extend beyond it. `steps`: the steps since then,
    counted by the unit.
    """

    __slots__ = ("_gap", "_places", "_stride", "at", "steps")

    def __init__(self, stride: int) -> None:
        self._stride, self._gap, self.steps = stride, stride, 0
        self._places: dict[Hashable, list[_Place]] = {}
        self.at = stride or ENDLESS

    def due(self, k: int) -> bool:
        """True if calling `jump` before beat k is worth it."""
        enough, self.steps = self.steps >= LEAST_STEPS, 0
        if enough:
            self._gap = self._stride
            return True
        # The runs are long: do not cut them.
        self._gap *= 2
        self.at = (k // self._gap + 1) * self._gap
        return False

    def jump(
        self, k: int, phase: Hashable, state: tuple[int, ...], reads: Sequence[Read], writes: Sequence[Written]
    ) -> tuple[int, ...] | None:
        """The state after all repetitions, which are added to `writes`, or None if nothing repeats.

        `phase`: everything that the behaviour depends on, except the times and numbers in `state`. These may all be
        larger by their growth since the earlier place. The first of them is k.
        """
        places = self._places.setdefault(phase, [])
        current_place = _Place(
            state, tuple((r.at, r.base) for r in reads), tuple((w.runs.count, w.base) for w in writes)
        )
        jumped = None
        for place in reversed(places):
            repetitions = _times(place, reads)
            if repetitions:
                for (count, base), written in zip(place.writes, writes, strict=True):
                    written.runs.repeat(count, written.base - base, repetitions)
                jumped = tuple(now + repetitions * (now - then) for now, then in zip(state, place.state, strict=True))
                break
        places.append(current_place)
        if len(places) > PLACES:
            del places[0]
        self.at = ((jumped[0] if jumped else k) // self._stride + 1) * self._stride
        return jumped


def foreseen(guess: Runs, consumed: Runs, period: int, frame: int) -> Runs:
    """The next guess of consumption times, if `consumed` followed from `guess`: the certain part, then its repetition.

    The beats on which both agree are certain, and so is the beat after them. If the last two periods of them are alike,
    the rest of the frame is assumed to repeat them. A guess need not be right. A right guess saves the rounds in which
    one stall after the other would be found.
    """
    certain = common_prefix(guess, consumed) + 1
    if not period or certain < 2 * period or certain > consumed.count:
        return consumed
    times = ((certain - 1) // frame * frame + frame - certain) // period
    if not times:
        return consumed
    guessed = consumed.first(certain)
    period_ends = guessed.numbers(np.array([certain - 1 - period, certain - 1], np.int64))
    period_cycles = int(period_ends[1] - period_ends[0])
    if guessed.equal(certain - 2 * period, certain - period, period_cycles, period) < period:
        return consumed
    guessed.repeat(certain - period, period_cycles, times)
    delay = max(0, guessed.last() - int(consumed.numbers(np.array([guessed.count - 1], np.int64))[0]))
    for first, step, count in consumed.since(guessed.count, -delay) if guessed.count < consumed.count else ():
        guessed.append(first, step, count)
    return guessed


def _times(place: _Place, reads: Sequence[Read]) -> int:
    """How often everything that was read between a place and now repeats from now on."""
    limit = MOST_TIMES
    for trial in (1, MOST_TIMES):
        limit = min(limit, trial)
        for (index, base), read in zip(place.reads, reads, strict=True):
            period = read.at - index
            if not period or index >= read.runs.count:
                # Nothing of it was read.
                continue
            floors = (base, read.base) if read.floor else None
            required = limit * period + read.ahead
            equal = read.runs.equal(index, read.at, read.base - base, required, floors)
            limit = min(limit, (equal - read.ahead) // period)
            if limit <= 0:
                return 0
        if trial == 1:
            limit = MOST_TIMES
    return limit
