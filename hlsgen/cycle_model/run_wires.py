"""Streams between units as runs of beats, and the times at which their beats can be consumed; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.repeats import Read
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs, latest

#: (first, step) of a run.
Progression = tuple[int, int]


class Wire:
    """A stream between two units, as in `processes.Wire`.

    `stride`: beats after which units may look for repeats. `frame`: beats of a frame. `guesses`: number of wrong
    guesses. `foreseen`: the guess extends the times that the consumer reported, so the consumer has to confirm it.
    """

    __slots__ = (
        "consumed",
        "consumer",
        "due",
        "foreseen",
        "frame",
        "frozen",
        "guess",
        "guesses",
        "name",
        "producer",
        "stride",
    )

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen
        self.due, self.consumed = Runs(), Runs()
        self.guess: Runs | None = None
        self.producer = self.consumer = -1
        self.stride = self.frame = self.guesses = 0
        self.foreseen = False


class Arrivals:
    """The times at which the beats of a wire can be consumed, given the times at which the earlier ones were."""

    __slots__ = ("cursor", "frozen", "lateness")

    def __init__(self, wire: Wire) -> None:
        self.frozen, self.cursor, self.lateness = wire.frozen, Cursor(wire.due), 0

    def consume(self, k: int, cycle: int) -> None:
        """Records that beat k was consumed in this cycle."""
        if self.frozen:
            self.lateness = cycle - self.cursor.read(k)[0]

    def read(self, k: int, base: int) -> Read:
        """The beats from number k on, with times relative to `base`."""
        return Read(self.cursor.runs, k, base - self.lateness, floor=not self.frozen)

    def earliest(
        self, k: int, lower_bound: int, fixed: list[Progression], gap: int = 1, max_count: int = ENDLESS
    ) -> tuple[int, int, int]:
        """`runs.latest` for the beats from number k on, with the other constraints on them."""
        first, spacing, count = self.cursor.read(k)
        first += self.lateness
        if max_count < count:
            count = max_count
        if fixed:
            arrival_runs = [(first, spacing)]
            return (
                latest(lower_bound, gap, count, fixed, arrival_runs)
                if self.frozen
                else latest(lower_bound, gap, count, arrival_runs + fixed)
            )
        # The same as `latest` without `fixed`, faster.
        if first >= lower_bound or self.frozen:
            return (first if first > lower_bound else lower_bound), (spacing if spacing > gap else gap), count
        if spacing > gap:
            count = min(count, (lower_bound - first) // (spacing - gap) + 1)
        return lower_bound, gap, count


def joint_constraints(
    arrivals: Sequence[Arrivals], k: int, max_count: int
) -> tuple[int, list[Progression], list[Progression]]:
    """(count, fixed, moving) of the beats from number k on that are consumed together, for `runs.latest`."""
    fixed: list[Progression] = []
    moving: list[Progression] = []
    for arrival in arrivals:
        first, step, count = arrival.cursor.read(k)
        max_count = min(max_count, count)
        (moving if arrival.frozen else fixed).append((first + arrival.lateness, step))
    return max_count, fixed, moving
