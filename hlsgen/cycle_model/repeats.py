"""What a unit does again: rows of an image and whole frames, found where it is as it was before, only later.

What a unit does next follows from its state and from what reaches it. If both are as they were some beats ago, it does
what it did then. So those runs are copied instead of computed. Which beats are looked at is only a matter of speed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from hlsgen.cycle_model.runs import ENDLESS, Runs, agreed

#: Steps that a unit has to make between two looks; with fewer there is nothing to gain.
LEAST_STEPS = 16
#: How many earlier places with the same state are tried, and how many repetitions are found at a time.
PLACES, MOST_TIMES = 3, 256


class Read(NamedTuple):
    """A sequence that the unit goes on to read at number `at`.

    Times count from `base`. `ahead`: how many numbers of it that belong to beats that are in the unit.
    `floor`: numbers up to `base` are all alike.
    """

    runs: Runs
    at: int
    base: int
    ahead: int = 0
    floor: bool = False


class Written(NamedTuple):
    """A sequence that the unit made so far, and from where its times count."""

    runs: Runs
    base: int


class _Place(NamedTuple):
    state: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]


class Repeats:
    """The places at which a unit was looked at, each after a multiple of `stride` beats.

    `at`: the beat in front of which `due` is to be called next; no run is to go beyond it. `steps`: what was computed
    since then, which the unit counts.
    """

    __slots__ = ("_gap", "_places", "_stride", "at", "steps")

    def __init__(self, stride: int) -> None:
        self._stride, self._gap, self.steps = stride, stride, 0
        self._places: dict[Hashable, list[_Place]] = {}
        self.at = stride or ENDLESS

    def due(self, k: int) -> bool:
        """Whether `jump` is worth a call in front of beat k."""
        enough, self.steps = self.steps >= LEAST_STEPS, 0
        if enough:
            self._gap = self._stride
            return True
        # Long runs: they are not to be cut.
        self._gap *= 2
        self.at = (k // self._gap + 1) * self._gap
        return False

    def jump(
        self, k: int, phase: Hashable, state: tuple[int, ...], reads: Sequence[Read], writes: Sequence[Written]
    ) -> tuple[int, ...] | None:
        """The state after all that repeats, which is added to `writes`; None if nothing does.

        `phase`: all that the unit does depends on, but for the times and numbers in `state`, which may all be more by
        what they grew since. The first of these is k.
        """
        places = self._places.setdefault(phase, [])
        here = _Place(state, tuple((r.at, r.base) for r in reads), tuple((w.runs.count, w.base) for w in writes))
        found = None
        for place in reversed(places):
            times = _times(place, reads)
            if times:
                for (count, base), written in zip(place.writes, writes, strict=True):
                    written.runs.repeat(count, written.base - base, times)
                found = tuple(now + times * (now - then) for now, then in zip(state, place.state, strict=True))
                break
        places.append(here)
        if len(places) > PLACES:
            del places[0]
        self.at = ((found[0] if found else k) // self._stride + 1) * self._stride
        return found


def foreseen(guess: Runs, taken: Runs, period: int, frame: int) -> Runs:
    """The next guess when beats are taken, if `taken` followed from `guess`: what is certain, and then that again.

    What both say is certain, and so is the beat after it. If the last two periods of it are alike, the rest of the frame
    will be. A guess need not be right; one that is saves the rounds in which a wait after the other would turn up.
    """
    known = agreed(guess, taken) + 1
    if not period or known < 2 * period or known > taken.count:
        return taken
    times = ((known - 1) // frame * frame + frame - known) // period
    if not times:
        return taken
    made = taken.first(known)
    ends = made.numbers(np.array([known - 1 - period, known - 1], np.int64))
    more = int(ends[1] - ends[0])
    if made.equal(known - 2 * period, known - period, more, period) < period:
        return taken
    made.repeat(known - period, more, times)
    late = max(0, made.last() - int(taken.numbers(np.array([made.count - 1], np.int64))[0]))
    for first, step, count in taken.since(made.count, -late) if made.count < taken.count else ():
        made.append(first, step, count)
    return made


def _times(place: _Place, reads: Sequence[Read]) -> int:
    """How often all that was read between a place and now comes again from now on."""
    most = MOST_TIMES
    for trial in (1, MOST_TIMES):
        most = min(most, trial)
        for (index, base), read in zip(place.reads, reads, strict=True):
            period = read.at - index
            if not period or index >= read.runs.count:
                # Nothing of it was read.
                continue
            floors = (base, read.base) if read.floor else None
            wanted = most * period + read.ahead
            equal = read.runs.equal(index, read.at, read.base - base, wanted, floors)
            most = min(most, (equal - read.ahead) // period)
            if most <= 0:
                return 0
        if trial == 1:
            most = MOST_TIMES
    return most
