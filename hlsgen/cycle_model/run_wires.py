"""Streams between units as runs of beats, and when the beats on them can be taken; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.repeats import Read
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs, latest

#: (first, step) of a run.
Progression = tuple[int, int]


class Wire:
    """A stream between two units, as in `processes.Wire`.

    `stride`: beats after which units may look for repeats. `frame`: beats of a frame. `guesses`: how many were wrong.
    `foreseen`: whether the guess is more than the consumer said, and it has to say whether it is right.
    """

    __slots__ = (
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
        "taken",
    )

    def __init__(self, name: str, frozen: bool) -> None:
        self.name, self.frozen = name, frozen
        self.due, self.taken = Runs(), Runs()
        self.guess: Runs | None = None
        self.producer = self.consumer = -1
        self.stride = self.frame = self.guesses = 0
        self.foreseen = False


class Arrivals:
    """When the beats of a wire can be taken, by the consumer that says when it took those before."""

    __slots__ = ("cursor", "frozen", "late")

    def __init__(self, wire: Wire) -> None:
        self.frozen, self.cursor, self.late = wire.frozen, Cursor(wire.due), 0

    def took(self, k: int, cycle: int) -> None:
        """Beat k was taken."""
        if self.frozen:
            self.late = cycle - self.cursor.read(k)[0]

    def read(self, k: int, base: int) -> Read:
        """The beats from number k on, in front of which `base` is the time."""
        return Read(self.cursor.runs, k, base - self.late, floor=not self.frozen)

    def earliest(
        self, k: int, least: int, fixed: list[Progression], gap: int = 1, most: int = ENDLESS
    ) -> tuple[int, int, int]:
        """`runs.latest` for the beats from number k on, with what else they wait for."""
        first, pace, count = self.cursor.read(k)
        first += self.late
        if most < count:
            count = most
        if fixed:
            own = [(first, pace)]
            return latest(least, gap, count, fixed, own) if self.frozen else latest(least, gap, count, own + fixed)
        # As `latest`, in one go.
        if first >= least or self.frozen:
            return (first if first > least else least), (pace if pace > gap else gap), count
        if pace > gap:
            count = min(count, (least - first) // (pace - gap) + 1)
        return least, gap, count


def together(arrivals: Sequence[Arrivals], k: int, most: int) -> tuple[int, list[Progression], list[Progression]]:
    """(count, fixed, moving) of the beats from number k on that are taken together, for `runs.latest`."""
    fixed: list[Progression] = []
    moving: list[Progression] = []
    for arrival in arrivals:
        first, step, count = arrival.cursor.read(k)
        most = min(most, count)
        (moving if arrival.frozen else fixed).append((first + arrival.late, step))
    return most, fixed, moving
