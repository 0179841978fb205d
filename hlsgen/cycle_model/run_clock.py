"""The enabled cycles of a unit that stalls while its offered beat waits, for whole runs of beats."""

from __future__ import annotations

from hlsgen.cycle_model.repeats import Read
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs


class Clock:
    """Translates between cycles and enabled cycles of a unit, as `line_buffers.EnableClock`, by the guess."""

    __slots__ = (
        "_ahead",
        "_departures",
        "_due",
        "_later",
        "_next",
        "clear",
        "departures",
        "due",
        "lost",
        "now",
        "passed",
    )

    def __init__(self, due: Runs, departures: Runs | None) -> None:
        self.due, self.departures = due, Runs() if departures is None else departures
        self._due, self._ahead = Cursor(due), Cursor(due)
        self._departures, self._next, self._later = (
            Cursor(self.departures),
            Cursor(self.departures),
            Cursor(self.departures),
        )
        #: Beats that have left, and cycles lost until then. `clear`: beats known to leave without a stall.
        self.passed = self.lost = self.clear = 0
        #: The last result of `enabled`.
        self.now = 0

    def enabled(self, cycle: int) -> int:
        """The first cycle, not before `cycle`, in which the unit is enabled. `lost` is updated to that cycle."""
        cycle = max(cycle, self.now)
        while True:
            stop = self.stop()
            if stop > cycle:
                self.now = cycle
                return cycle
            self.passed = self.clear
            departure = self._departures.read(self.passed)[0]
            self.lost = departure - self._due.read(self.passed)[0]
            self.passed += 1
            self.clear = self.passed
            cycle = max(cycle, departure)

    def cycle(self, enabled: int) -> int:
        """The cycle in which an enabled cycle ends."""
        while True:
            stop = self.stop()
            if stop > enabled + self.lost:
                return enabled + self.lost
            self.passed = self.clear
            self.lost = self._departures.read(self.passed)[0] - self._due.read(self.passed)[0]
            self.passed += 1
            self.clear = self.passed

    @property
    def state(self) -> tuple[int, int, int]:
        """The values that grow while the clock repeats; `seek` restores them.

        Computing them also determines the beats that are known to leave without a stall.
        """
        self.stop()
        return self.lost, self.clear, self.now

    def seek(self, lost: int, clear: int, now: int) -> None:
        """Sets the state."""
        self.lost, self.passed, self.clear, self.now = lost, clear, clear, now

    def buffered(self, base: int) -> tuple[tuple[int, int, int], ...]:
        """The beats in the unit from the first beat that waits on: when they would be offered if it did not wait."""
        if self.clear >= self.departures.count:
            return ()
        return self.due.since(self.clear, base - self.lost)

    def read(self, base: int) -> Read:
        """The guess, from the first beat on that may matter."""
        return Read(self.departures, self.clear, base, max(0, self.due.count - self.clear))

    def stop(self) -> int:
        """The cycle in which the next waiting beat is offered, or ENDLESS if all due beats leave at once."""
        stop = min(self.due.count, self.departures.count)
        while self.clear < stop:
            due, step, count = self._ahead.read(self.clear)
            departures, spacing, departure_count = self._next.read(self.clear)
            if departures > due + self.lost:
                return due + self.lost
            count = min(count, departure_count)
            if spacing > step:
                count = min(count, (due + self.lost - departures) // (spacing - step) + 1)
            self.clear += count
        return ENDLESS

    def room(self, due: int, step: int, count: int) -> int:
        """How many of the next beats, due at due + i * step, can be emitted before a stall matters.

        They end with the first beat that waits; 1 or more.
        """
        at, emitted = self.due.count, 0
        while emitted < count and at + emitted < self.departures.count:
            first = due + emitted * step + self.lost
            departures, spacing, departure_count = self._later.read(at + emitted)
            if departures > first:
                return emitted + 1
            departure_count = min(departure_count, count - emitted)
            if spacing > step:
                departure_count = min(departure_count, (first - departures) // (spacing - step) + 1)
            emitted += departure_count
        return count


def count_before(stop: int, first: int, step: int, count: int) -> int:
    """How many of the cycles first + i * step, i < count, are before `stop`. `first` is, and step is at least 1."""
    return min(count, (stop - first + step - 1) // step)
