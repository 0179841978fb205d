"""The time of a unit that stands still while a beat that it sends waits, for whole runs of beats."""

from __future__ import annotations

from hlsgen.cycle_model.repeats import Read
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Runs


class Clock:
    """Translates between cycles and enabled cycles of a unit, as `line_buffers.EnableClock`, by the guess."""

    __slots__ = ("_ahead", "_due", "_gone", "_later", "_next", "clear", "due", "gone", "lost", "now", "passed")

    def __init__(self, due: Runs, gone: Runs | None) -> None:
        self.due, self.gone = due, Runs() if gone is None else gone
        self._due, self._ahead = Cursor(due), Cursor(due)
        self._gone, self._next, self._later = Cursor(self.gone), Cursor(self.gone), Cursor(self.gone)
        #: Beats that have left, cycles lost until then; beats that are known to leave without a wait after that.
        self.passed = self.lost = self.clear = 0
        #: The last answer of `enabled`.
        self.now = 0

    def enabled(self, cycle: int) -> int:
        """The first cycle, not before `cycle`, in which the unit is enabled. `lost` belongs to it then."""
        cycle = max(cycle, self.now)
        while True:
            stop = self.stop()
            if stop > cycle:
                self.now = cycle
                return cycle
            self.passed = self.clear
            left = self._gone.read(self.passed)[0]
            self.lost = left - self._due.read(self.passed)[0]
            self.passed += 1
            self.clear = self.passed
            cycle = max(cycle, left)

    def cycle(self, enabled: int) -> int:
        """The cycle in which an enabled cycle is over."""
        while True:
            stop = self.stop()
            if stop > enabled + self.lost:
                return enabled + self.lost
            self.passed = self.clear
            self.lost = self._gone.read(self.passed)[0] - self._due.read(self.passed)[0]
            self.passed += 1
            self.clear = self.passed

    @property
    def state(self) -> tuple[int, int, int]:
        """What grows while it repeats; `seek` goes there. It says as well which beats are known to leave at once."""
        self.stop()
        return self.lost, self.clear, self.now

    def seek(self, lost: int, clear: int, now: int) -> None:
        self.lost, self.passed, self.clear, self.now = lost, clear, clear, now

    def waiting(self, base: int) -> tuple[tuple[int, int, int], ...]:
        """The beats in the unit from the first one on that waits: when they would be offered if that one did not."""
        if self.clear >= self.gone.count:
            return ()
        return self.due.since(self.clear, base - self.lost)

    def read(self, base: int) -> Read:
        """The guess, from the first beat on that may matter."""
        return Read(self.gone, self.clear, base, max(0, self.due.count - self.clear))

    def stop(self) -> int:
        """The cycle in which the next beat is offered that waits; ENDLESS if none of those that are due does."""
        stop = min(self.due.count, self.gone.count)
        while self.clear < stop:
            due, step, count = self._ahead.read(self.clear)
            gone, pace, more = self._next.read(self.clear)
            if gone > due + self.lost:
                return due + self.lost
            count = min(count, more)
            if pace > step:
                count = min(count, (due + self.lost - gone) // (pace - step) + 1)
            self.clear += count
        return ENDLESS

    def room(self, due: int, step: int, count: int) -> int:
        """How many of the next beats, due at first + i * step, can be sent before it matters that one of them waits:
        up to and with the first one that does; 1 or more."""
        at, done = self.due.count, 0
        while done < count and at + done < self.gone.count:
            first = due + done * step + self.lost
            gone, pace, more = self._later.read(at + done)
            if gone > first:
                return done + 1
            more = min(more, count - done)
            if pace > step:
                more = min(more, (first - gone) // (pace - step) + 1)
            done += more
        return count


def before(stop: int, first: int, step: int, count: int) -> int:
    """How many of the cycles first + i * step, i < count, are before `stop`; first is, and step is at least 1."""
    return min(count, (stop - first + step - 1) // step)
