"""The units of `processes` once more, for whole runs of beats: the same times, much faster.

A function here gets all beats that are due on its input wires, and a guess when the beats that it sends are taken
(`Wire.guess`; None: each in the cycle in which it is offered). It returns the cycles in which it takes its inputs and
the times at which its results are due. `run_simulation` finds guesses that turn out to be right. Beats are handled in
runs as long as nothing stands still, one by one where something does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlsgen.cycle_model.repeats import Read, Repeats, Written
from hlsgen.cycle_model.run_clock import Clock, before
from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire, together
from hlsgen.cycle_model.runs import Cursor, Pattern, Runs, latest


class Moved(NamedTuple):
    """What a unit did: the beats that it took of each input wire, and those that it sends on each output wire.

    `starts`: the enabled cycle in which each window began, of units with a memory of windows. `steps`: how often it looked
    at what comes next, where that may be much more often than there are runs in the end.
    """

    taken: list[Runs]
    due: list[Runs]
    starts: Runs | None = None
    steps: int = 0


@dataclass(frozen=True)
class Memory:
    """The memory of a unit with windows, as `line_buffers.Buffer`."""

    needs: Runs
    keeps: Runs
    words: int
    depth: int
    period: int

    def of_frames(self, frames: int) -> tuple[Runs, Runs]:
        """(needs, keeps) of so many frames, one behind the other."""
        found = []
        for runs in (self.needs, self.keeps):
            every = Runs()
            every.extend(runs, 0)
            every.repeat(0, self.words, frames - 1)
            found.append(every)
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Machine:
    """A unit: `run` gets its input and its output wires.

    Machines of one `kind` do the same and, if all times on their wires are later by some cycles, do it later by so many.
    None: no other one does the same.
    """

    kind: Hashable
    run: Callable[[Sequence[Wire], Sequence[Wire]], Moved]
    memory: Memory | None = None

    @property
    def stores(self) -> bool:
        """Whether it has room for beats while its output waits."""
        return self.memory is not None or (isinstance(self.kind, tuple) and self.kind[0] == "fifo")


def _source(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
    """It does nothing: whoever runs the network fills the wire."""
    return Moved([], [wire.due for wire in outs])


source = Machine(None, _source)


def sink(ready: Sequence[bool]) -> Machine:
    """As `processes.sink`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        (wire,) = ins
        arrival, taken, period = Arrivals(wire), Runs(), len(ready)
        last = -1
        while taken.count < wire.due.count:
            first, step, count = arrival.earliest(taken.count, last + 1, [])
            if period:
                while not ready[first % period]:
                    first += 1
                count = 1
            taken.append(first, step, count)
            last = first + (count - 1) * step
            arrival.took(taken.count - 1, last)
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
        again = Repeats(ins[0].stride)
        while k < beats:
            again.steps += 1
            if k == again.at and again.due(k):
                clocked = clock.state
                phase = marks.place, clock.waiting(t), clock.now - t
                state = k, t, *clocked, *(arrival.late for arrival in arrivals)
                reads = [clock.read(t), *(arrival.read(k, t) for arrival in arrivals)]
                found = again.jump(k, phase, state, reads, [Written(taken, t), Written(out, t - clock.lost)])
                if found:
                    k, t, lost, clear, now, *lates = found
                    clock.seek(lost, clear, now)
                    for arrival, late in zip(arrivals, lates, strict=True):
                        arrival.late = late
                    continue
            count, fixed, moving = together(arrivals, k, min(marks.left, again.at - k))
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
        again = Repeats(ins[0].stride)
        while k < beats:
            again.steps += 1
            if k == again.at and again.due(k):
                sent = min(1, len(out))
                phase = marks.place, sent, out.last() - t if sent else 0, sent and len(out) <= gone.runs.count
                state = k, t, *(arrival.late for arrival in arrivals)
                reads = [Read(gone.runs, len(out) - sent, t, sent), *(arrival.read(k, t) for arrival in arrivals)]
                found = again.jump(k, phase, state, reads, [Written(taken, t), Written(out, t)])
                if found:
                    k, t, *lates = found
                    for arrival, late in zip(arrivals, lates, strict=True):
                        arrival.late = late
                    continue
            count, fixed, moving = together(arrivals, k, min(marks.left, again.at - k))
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
        again = Repeats(ins[0].stride)
        while k < beats:
            again.steps += 1
            if k == again.at and again.due(k):
                # Until it is full, nothing that was before says when that will be.
                phase = 0 if k >= depth or guess is None or beats <= depth else k
                reads = [arrival.read(k, t)]
                reads += [Read(guess, k - depth, t)] if guess is not None and k >= depth else []
                found = again.jump(k, phase, (k, t, arrival.late), reads, [Written(taken, t), Written(out, t)])
                if found:
                    k, t, arrival.late = found
                    continue
            fixed: list[Progression] = []
            most = again.at - k
            if k < depth:
                most = min(most, depth - k)
            elif gone is not None and guess is not None and k - depth < guess.count:
                left, pace, count = gone.read(k - depth)
                most = min(most, count)
                fixed.append((left + delay, pace))
            t, step, m = arrival.earliest(k, t + gap if k else 0, fixed, gap, most)
            taken.append(t, step, m)
            out.append(t + delay, step, m)
            k += m
            t += (m - 1) * step
            arrival.took(k - 1, t)
        return Moved([taken], [out])

    return Machine(("fifo", depth, delay), run)


def width(enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]) -> Machine:
    """As `processes.width`. What it sends is due no earlier than in the cycle after the beat before."""
    small, whole = enters[0], leaves[0]
    widens = set(enters) == {small} and set(leaves) == {whole} and whole % small == 0
    many = whole // small
    period = math.lcm(len(enters), len(rooms))

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        arrival, taken, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        gone = None if guess is None else Cursor(guess)
        own = Cursor(out)
        beats, k, t = ins[0].due.count, 0, -1
        stored = freed = left = 0
        offered, sent = leaves[0], -1
        again = Repeats(ins[0].stride)
        while k < beats:
            again.steps += 1
            if k == again.at and again.due(k):
                kept = out.count - left
                phase: Hashable = k % many if widens else None
                if not widens or gone is not None:
                    waits = out.since(left, t)
                    phase = k % period, left % len(leaves), kept, waits, stored - freed, stored - offered, sent - t
                reads = [arrival.read(k, t)]
                reads += [] if guess is None else [Read(guess, left, t, kept)]
                state = k, t, arrival.late, stored, freed, left, offered, sent
                found = again.jump(k, phase, state, reads, [Written(taken, t), Written(out, t)])
                if found:
                    k, t, arrival.late, stored, freed, left, offered, sent = found
                    continue
            if widens and gone is None:
                # A whole beat is gone before the next one is complete.
                t, step, m = arrival.earliest(k, t + 1, [], 1, again.at - k)
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
    again = Repeats(ins[0].stride)
    while k < beats:
        again.steps += 1
        if k == again.at and again.due(k):
            reads = [arrival.read(k, t), *(Read(guess, k, t) for guess, _ in guesses)]
            found = again.jump(k, (), (k, t, arrival.late), reads, [Written(taken, t), Written(out, t)])
            if found:
                k, t, arrival.late = found
                continue
        fixed: list[Progression] = []
        most = again.at - k
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
        again = Repeats(ins[0].stride)
        while k < beats:
            again.steps += 1
            if k == again.at and again.due(k):
                reads = [arrival.read(k, t)]
                reads += [] if guess is None else [Read(guess, len(out), t)]
                phase, writes = marks.place, [Written(taken, t), Written(out, t)]
                found = again.jump(k, phase, (k, t, arrival.late), reads, writes)
                if found:
                    k, t, arrival.late = found
                    continue
            offer, step, m = arrival.earliest(k, t + 1, [], 1, min(marks.left, again.at - k))
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
