"""The units of `processes` once more, for whole runs of beats: the same times, much faster.

A function here gets all beats that are due on its input wires, and a guess when the beats that it sends are taken
(`Wire.guess`; None: each in the cycle in which it is offered). It returns the cycles in which it takes its inputs and
the times at which its results are due. `run_simulation` finds guesses that turn out to be right. Beats are handled in
runs as long as nothing stands still, one by one where something does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire, together
from hlsgen.cycle_model.runs import ENDLESS, Cursor, Pattern, Runs, latest


class Moved(NamedTuple):
    """What a unit did: the beats that it took of each input wire, and those that it sends on each output wire.

    `starts`: the enabled cycle in which each window began, of units with a memory of windows.
    """

    taken: list[Runs]
    due: list[Runs]
    starts: Runs | None = None


@dataclass(frozen=True)
class Memory:
    """The memory of a unit with windows, as `line_buffers.Buffer`."""

    needs: Runs
    keeps: Runs
    words: int
    depth: int
    period: int


@dataclass(frozen=True, eq=False)
class Machine:
    """A unit: `run` gets its input and its output wires.

    Machines of one `kind` do the same and, if all times on their wires are later by some cycles, do it later by so many.
    None: no other one does the same.
    """

    kind: Hashable
    run: Callable[[Sequence[Wire], Sequence[Wire]], Moved]
    memory: Memory | None = None


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


def _source(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
    """It does nothing: whoever runs the network fills the wire."""
    return Moved([], [wire.due for wire in outs])


source = Machine(None, _source)


def sink(ready: Sequence[bool]) -> Machine:
    """As `processes.sink`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        (wire,) = ins
        taken, due, period = Runs(), Cursor(wire.due), len(ready)
        last = -1
        while taken.count < wire.due.count:
            first, step, count = due.read(taken.count)
            if period:
                last = max(first, last + 1)
                while not ready[last % period]:
                    last += 1
                taken.append(last, 1, 1)
                continue
            t, pace, m = latest(last + 1, 1, count, [(first, step)])
            taken.append(t, pace, m)
            last = t + (m - 1) * pace
        return Moved([taken], [])

    return Machine(None, run)


def pipeline(latency: int, gives: Pattern, gap: int = 1) -> Machine:
    """As `processes.pipeline`, and as `processes.join` with several inputs, of which every beat is marked."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrivals = [Arrivals(wire) for wire in ins]
        taken, out, marks = Runs(), Runs(), gives.begin()
        clock = Clock(out, outs[0].guess)
        beats = min(wire.due.count for wire in ins)
        k, t = 0, -1
        while k < beats:
            count, fixed, moving = together(arrivals, k, marks.left)
            first, step, m = latest(t + 1, gap, count, fixed, moving)
            t = clock.enabled(first)
            m = before(clock.stop(), t, step, m) if t == first else 1
            if marks.value:
                m = clock.room(t - clock.lost + latency, step, m)
                out.append(t - clock.lost + latency, step, m)
            taken.append(t, step, m)
            marks.skip(m)
            k += m
            t += (m - 1) * step
            for arrival in arrivals:
                if arrival.frozen:
                    arrival.took(k - 1, t)
        return Moved([taken] * len(ins), [out])

    return Machine(("pipeline", latency, *gives.parts, gap), run)


def hold(gives: Pattern) -> Machine:
    """A unit that takes a beat of every input when it holds none, as in `units.least`, and sends it at once."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrivals = [Arrivals(wire) for wire in ins]
        taken, out, marks = Runs(), Runs(), gives.begin()
        guess = outs[0].guess
        gone = Cursor(Runs() if guess is None else guess)
        beats = min(wire.due.count for wire in ins)
        k, t = 0, -1
        while k < beats:
            count, fixed, moving = together(arrivals, k, marks.left)
            least = t + 1
            if 0 < out.count <= gone.runs.count:
                left, pace, more = gone.read(out.count - 1)
                if marks.value:
                    count = min(count, more)
                    fixed.append((left, pace))
                least = max(least, left)
            elif gone.runs.count and marks.value:
                count = 1
            t, step, m = latest(least, 1, count, fixed, moving)
            if marks.value:
                out.append(t, step, m)
            taken.append(t, step, m)
            marks.skip(m)
            k += m
            t += (m - 1) * step
            for arrival in arrivals:
                if arrival.frozen:
                    arrival.took(k - 1, t)
        return Moved([taken] * len(ins), [out])

    return Machine(("hold", *gives.parts), run)


def fifo(depth: int, delay: int = 1) -> Machine:
    """As `processes.fifo`; a beat takes `delay` cycles, and so does room that is free again."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        beats, k, t = ins[0].due.count, 0, -1
        gap = 1 + delay if depth == 1 else 1
        while k < beats:
            fixed: list[Progression] = []
            most = ENDLESS
            if k < depth:
                most = depth - k
            elif gone is not None and guess is not None and k - depth < guess.count:
                left, pace, most = gone.read(k - depth)
                fixed.append((left + delay, pace))
            t, step, m = arrival.earliest(k, t + gap if k else 0, fixed, gap, most)
            taken.append(t, step, m)
            out.append(t + delay, step, m)
            k += m
            t += (m - 1) * step
            arrival.took(k - 1, t)
        return Moved([taken], [out])

    return Machine(("fifo", depth, delay), run)


def ways(count: int, delay: int) -> Machine:
    """As `processes.fifo` of `count` beats, each of which takes `delay` cycles; beat by beat."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        due: list[int] = []
        t = -1
        for k in range(ins[0].due.count):
            least = t + 1
            if k >= count:
                least = max(least, due[k - count] + 1)
                if gone is not None and guess is not None and k - count < guess.count:
                    least = max(least, gone.read(k - count)[0] + 1)
            t = arrival.earliest(k, least, [])[0]
            taken.append(t, 1, 1)
            due.append(t + delay)
            out.append(t + delay, 1, 1)
            arrival.took(k, t)
        return Moved([taken], [out])

    return Machine(("ways", count, delay), run)


def rows(latency: int, every: int) -> Machine:
    """As `processes.join` of which each beat of the second wire is there for `every` beats of the first one."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        first, second = (Arrivals(wire) for wire in ins)
        taken, rows_taken, out = Runs(), Runs(), Runs()
        clock = Clock(out, outs[0].guess)
        t = -1
        for k in range(min(ins[0].due.count, ins[1].due.count * every)):
            t = second.earliest(k // every, t + 1, [])[0]
            t = clock.enabled(first.earliest(k, t, [])[0])
            out.append(t - clock.lost + latency, 1, 1)
            taken.append(t, 1, 1)
            first.took(k, t)
            if k % every == every - 1:
                rows_taken.append(t, 1, 1)
                second.took(k // every, t)
        return Moved([taken, rows_taken], [out])

    return Machine(("rows", latency, every), run)


def width(enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]) -> Machine:
    """As `processes.width`. What it sends is due no earlier than in the cycle after the beat before."""
    small, whole = enters[0], leaves[0]
    widens = set(enters) == {small} and set(leaves) == {whole} and whole % small == 0
    many = whole // small

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        own = Cursor(out)
        beats, k, t = ins[0].due.count, 0, -1
        stored = freed = left = 0
        offered, sent = leaves[0], -1
        while k < beats:
            if widens and gone is None:
                # A whole beat is gone before the next one is complete.
                t, step, m = arrival.earliest(k, t + 1, [])
                taken.append(t, step, m)
                ends = (k + m) // many - k // many
                if ends:
                    begin = many - 1 - k % many
                    out.append(t + begin * step + 1, step * many, ends)
                k += m
                t += (m - 1) * step
                arrival.took(k - 1, t)
                continue
            least = t + 1
            room = rooms[k % len(rooms)]
            while stored - freed > room:
                freed += leaves[left % len(leaves)]
                left += 1
                if stored - freed <= room:
                    least = max(least, own.read(left - 1)[0] + 1)
                    if gone is not None and guess is not None and left - 1 < guess.count:
                        least = max(least, gone.read(left - 1)[0] + 1)
            t = arrival.earliest(k, least, [])[0]
            taken.append(t, 1, 1)
            arrival.took(k, t)
            stored += enters[k % len(enters)]
            k += 1
            m = 0
            begin = len(out)
            while offered <= stored:
                m += 1
                offered += leaves[(begin + m) % len(leaves)]
            if m:
                sent = max(t, sent) + 1
                out.append(sent, 1, m)
                sent += m - 1
        return Moved([taken], [out])

    return Machine(("width", tuple(enters), tuple(leaves), tuple(rooms)), run)


def _fork(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
    """As `processes.fork`."""
    arrival, taken, out = Arrivals(ins[0]), Runs(), Runs()
    guesses = [(wire.guess, Cursor(wire.guess)) for wire in outs if wire.guess is not None]
    beats, k, t = ins[0].due.count, 0, -1
    while k < beats:
        fixed: list[Progression] = []
        most = ENDLESS
        for guess, gone in guesses:
            if k < guess.count:
                left, pace, count = gone.read(k)
                fixed.append((left, pace))
                most = min(most, count)
        offer, step, m = arrival.earliest(k, t + 1, [], 1, most)
        t, pace, m = latest(offer, step, m, fixed) if arrival.frozen else latest(offer, 1, m, [(offer, step), *fixed])
        if (t, pace) != (offer, step):
            m = 1
        taken.append(t, pace, m)
        out.append(offer, step, m)
        k += m
        t += (m - 1) * pace
        arrival.took(k - 1, t)
    return Moved([taken], [out] * len(outs))


fork = Machine(("fork",), _fork)


def route(order: Pattern, count: int) -> Machine:
    """As `processes.route`, for `count` input wires."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrivals, taken, out = [Arrivals(wire) for wire in ins], [Runs() for _ in range(count)], Runs()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        marks, t, last = order.begin(), -1, [-1] * count
        while True:
            fixed: list[Progression] = []
            turn, most, k = marks.value, marks.left, len(out)
            if turn >= 0 or marks.first:
                wire = max(turn, 0)
                at = taken[wire].count
                if at == ins[wire].due.count:
                    break
                if turn < 0:
                    most = 1
                offer, step, m = arrivals[wire].earliest(at, max(last[wire] + 1, t + 1), [], 1, most)
            else:
                offer, step, m = t + 1, 1, most
            if gone is not None and guess is not None and k < guess.count:
                left, pace, more = gone.read(k)
                m = min(m, more)
                fixed.append((left, pace))
            frozen = turn >= 0 and arrivals[turn].frozen
            t, pace, m = latest(offer, step if frozen else 1, m, fixed if frozen else [(offer, step), *fixed])
            if (t, pace) != (offer, step):
                m = 1
            out.append(offer, step, m)
            if turn >= 0:
                taken[turn].append(t, pace, m)
            t += (m - 1) * pace
            if turn >= 0:
                last[turn] = t
                arrivals[turn].took(taken[turn].count - 1, t)
            marks.skip(m)
        return Moved(taken, [out])

    return Machine(("route", *order.parts, count), run)


def take(keeps: Pattern) -> Machine:
    """As `processes.take`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out, marks = Arrivals(ins[0]), Runs(), Runs(), keeps.begin()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        beats, k, t = ins[0].due.count, 0, -1
        while k < beats:
            offer, step, m = arrival.earliest(k, t + 1, [], 1, marks.left)
            t, pace = offer, step
            if marks.value:
                if gone is not None and guess is not None and len(out) < guess.count:
                    left, late, more = gone.read(len(out))
                    t, pace, m = latest(offer, step, min(m, more), [(left, late)])
                    if (t, pace) != (offer, step):
                        m = 1
                out.append(offer, step, m)
            taken.append(t, pace, m)
            marks.skip(m)
            k += m
            t += (m - 1) * pace
            arrival.took(k - 1, t)
        return Moved([taken], [out])

    return Machine(("take", *keeps.parts), run)
