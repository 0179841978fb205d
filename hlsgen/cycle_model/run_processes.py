"""The units of `processes` again, for whole runs of beats: the same times, computed much faster.

A function here receives all beats that are due on its input wires, and a guess of the cycles in which its output beats
are consumed (`Wire.guess`). Without a guess (None), each beat is consumed in the cycle in which it is offered. The
function returns the cycles in which it consumes its inputs, and the times at which its results are due. `run_network`
searches for guesses that turn out to be right. Beats are handled in runs while nothing stalls, and one by one at a
stall.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlsgen.cycle_model.repeats import Read, Repeats, Written
from hlsgen.cycle_model.run_clock import Clock, count_before
from hlsgen.cycle_model.run_wires import Arrivals, Progression, Wire, joint_constraints
from hlsgen.cycle_model.runs import Cursor, Pattern, Runs, latest


class UnitTimes(NamedTuple):
    """The beats that a unit consumed of each input wire, and the due times of its beats on each output wire.

    `starts`: the enabled cycle in which each window began, for units with a window memory. `steps`: the number of
    computed steps, if it may be much larger than the number of runs in the result.
    """

    consumed: list[Runs]
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
        """(needs, keeps) of `frames` consecutive frames."""
        all_frames = []
        for runs in (self.needs, self.keeps):
            repeated = Runs()
            repeated.extend(runs, 0)
            repeated.repeat(0, self.words, frames - 1)
            all_frames.append(repeated)
        return all_frames[0], all_frames[1]


@dataclass(frozen=True, eq=False)
class Machine:
    """A unit: `run` gets its input and its output wires.

    Machines of one `kind` do the same and, if all times on their wires are later by some cycles, do it later by the
    same number of cycles. If `kind` is None, no other machine does the same.
    """

    kind: Hashable
    run: Callable[[Sequence[Wire], Sequence[Wire]], UnitTimes]
    memory: Memory | None = None

    @property
    def stores(self) -> bool:
        """True if it can consume beats while its output is stalled."""
        return self.memory is not None or (isinstance(self.kind, tuple) and self.kind[0] == "fifo")


def _source(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
    """It does nothing: the caller fills the wire."""
    return UnitTimes([], [wire.due for wire in outs])


source = Machine(None, _source)


def sink(ready: Sequence[bool]) -> Machine:
    """As `processes.sink`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        (wire,) = ins
        arrival, consumed, period = Arrivals(wire), Runs(), len(ready)
        last = -1
        while consumed.count < wire.due.count:
            first, step, count = arrival.earliest(consumed.count, last + 1, [])
            if period:
                while not ready[first % period]:
                    first += 1
                count = 1
            consumed.append(first, step, count)
            last = first + (count - 1) * step
            arrival.consume(consumed.count - 1, last)
        return UnitTimes([consumed], [])

    return Machine(None, run)


def pipeline(latency: int, emits: Pattern, gap: int = 1) -> Machine:
    """As `processes.pipeline`; with several inputs, as `processes.join` if every beat is marked."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrivals = [Arrivals(wire) for wire in ins]
        consumed, out, marks = Runs(), Runs(), emits.begin()
        clock = Clock(out, outs[0].guess)
        beats = min(wire.due.count for wire in ins)
        k, t = 0, -1
        repeats = Repeats(ins[0].stride)
        while k < beats:
            repeats.steps += 1
            if k == repeats.at and repeats.due(k):
                clock_state = clock.state
                phase = marks.place, clock.buffered(t), clock.now - t
                state = k, t, *clock_state, *(arrival.lateness for arrival in arrivals)
                reads = [clock.read(t), *(arrival.read(k, t) for arrival in arrivals)]
                jumped = repeats.jump(k, phase, state, reads, [Written(consumed, t), Written(out, t - clock.lost)])
                if jumped:
                    k, t, lost, clear, now, *latenesses = jumped
                    clock.seek(lost, clear, now)
                    for arrival, lateness in zip(arrivals, latenesses, strict=True):
                        arrival.lateness = lateness
                    continue
            count, fixed, moving = joint_constraints(arrivals, k, min(marks.remaining, repeats.at - k))
            first, step, m = latest(t + 1, gap, count, fixed, moving)
            t = clock.enabled(first)
            m = count_before(clock.stop(), t, step, m) if t == first else 1
            if marks.value:
                m = clock.room(t - clock.lost + latency, step, m)
                out.append(t - clock.lost + latency, step, m)
            consumed.append(t, step, m)
            marks.skip(m)
            k += m
            t += (m - 1) * step
            for arrival in arrivals:
                if arrival.frozen:
                    arrival.consume(k - 1, t)
        return UnitTimes([consumed] * len(ins), [out])

    return Machine(("pipeline", latency, *emits.parts, gap), run)


def hold(emits: Pattern) -> Machine:
    """A unit that consumes a beat of every input when it is empty, and emits it at once (see `fewest_beats`)."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrivals = [Arrivals(wire) for wire in ins]
        consumed, out, marks = Runs(), Runs(), emits.begin()
        guess = outs[0].guess
        departures = Cursor(Runs() if guess is None else guess)
        beats = min(wire.due.count for wire in ins)
        k, t = 0, -1
        repeats = Repeats(ins[0].stride)
        while k < beats:
            repeats.steps += 1
            if k == repeats.at and repeats.due(k):
                buffered = min(1, len(out))
                phase = (
                    marks.place,
                    buffered,
                    out.last() - t if buffered else 0,
                    buffered and len(out) <= departures.runs.count,
                )
                state = k, t, *(arrival.lateness for arrival in arrivals)
                reads = [
                    Read(departures.runs, len(out) - buffered, t, buffered),
                    *(arrival.read(k, t) for arrival in arrivals),
                ]
                jumped = repeats.jump(k, phase, state, reads, [Written(consumed, t), Written(out, t)])
                if jumped:
                    k, t, *latenesses = jumped
                    for arrival, lateness in zip(arrivals, latenesses, strict=True):
                        arrival.lateness = lateness
                    continue
            count, fixed, moving = joint_constraints(arrivals, k, min(marks.remaining, repeats.at - k))
            lower_bound = t + 1
            if 0 < out.count <= departures.runs.count:
                departure, spacing, departure_count = departures.read(out.count - 1)
                if marks.value:
                    count = min(count, departure_count)
                    fixed.append((departure, spacing))
                lower_bound = max(lower_bound, departure)
            elif departures.runs.count and marks.value:
                count = 1
            t, step, m = latest(lower_bound, 1, count, fixed, moving)
            if marks.value:
                out.append(t, step, m)
            consumed.append(t, step, m)
            marks.skip(m)
            k += m
            t += (m - 1) * step
            for arrival in arrivals:
                if arrival.frozen:
                    arrival.consume(k - 1, t)
        return UnitTimes([consumed] * len(ins), [out])

    return Machine(("hold", *emits.parts), run)


def fifo(depth: int, delay: int = 1) -> Machine:
    """As `processes.fifo`; a beat is delayed by `delay` cycles, and so is the space that it frees."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrival, consumed, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        departures = None if guess is None else Cursor(guess)
        beats, k, t = ins[0].due.count, 0, -1
        gap = 1 + delay if depth == 1 else 1
        repeats = Repeats(ins[0].stride)
        while k < beats:
            repeats.steps += 1
            if k == repeats.at and repeats.due(k):
                # Until it is full, its earlier state does not tell when that will be.
                phase = 0 if k >= depth or guess is None or beats <= depth else k
                reads = [arrival.read(k, t)]
                reads += [Read(guess, k - depth, t)] if guess is not None and k >= depth else []
                jumped = repeats.jump(
                    k, phase, (k, t, arrival.lateness), reads, [Written(consumed, t), Written(out, t)]
                )
                if jumped:
                    k, t, arrival.lateness = jumped
                    continue
            fixed: list[Progression] = []
            max_count = repeats.at - k
            if k < depth:
                max_count = min(max_count, depth - k)
            elif departures is not None and guess is not None and k - depth < guess.count:
                departure, spacing, count = departures.read(k - depth)
                max_count = min(max_count, count)
                fixed.append((departure + delay, spacing))
            t, step, m = arrival.earliest(k, t + gap if k else 0, fixed, gap, max_count)
            consumed.append(t, step, m)
            out.append(t + delay, step, m)
            k += m
            t += (m - 1) * step
            arrival.consume(k - 1, t)
        return UnitTimes([consumed], [out])

    return Machine(("fifo", depth, delay), run)


def width(enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]) -> Machine:
    """As `processes.width`. Output beats are due no earlier than in the cycle after the previous output beat."""
    small, large = enters[0], leaves[0]
    widens = set(enters) == {small} and set(leaves) == {large} and large % small == 0

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        if widens and outs[0].guess is None:
            return _widen(ins[0], large // small)
        return _regroup(ins[0], outs[0].guess, enters, leaves, rooms)

    return Machine(("width", tuple(enters), tuple(leaves), tuple(rooms)), run)


def _widen(wire: Wire, ratio: int) -> UnitTimes:
    """`ratio` beats to one, where an output beat has left before the next one is complete."""
    arrival, consumed, out = Arrivals(wire), Runs(), Runs()
    beats, k, t = wire.due.count, 0, -1
    repeats = Repeats(wire.stride)
    while k < beats:
        repeats.steps += 1
        if k == repeats.at and repeats.due(k):
            reads, state = [arrival.read(k, t)], (k, t, arrival.lateness)
            jumped = repeats.jump(k, k % ratio, state, reads, [Written(consumed, t), Written(out, t)])
            if jumped:
                k, t, arrival.lateness = jumped
                continue
        t, step, m = arrival.earliest(k, t + 1, [], 1, repeats.at - k)
        consumed.append(t, step, m)
        ends = (k + m) // ratio - k // ratio
        if ends:
            begin = ratio - 1 - k % ratio
            out.append(t + begin * step + 1, step * ratio, ends)
        k += m
        t += (m - 1) * step
        arrival.consume(k - 1, t)
    return UnitTimes([consumed], [out])


def _regroup(
    wire: Wire, guess: Runs | None, enters: Sequence[int], leaves: Sequence[int], rooms: Sequence[int]
) -> UnitTimes:
    """Any converter, beat by beat. `guess`: cycles in which its output beats leave, or None if each leaves when due."""
    period = math.lcm(len(enters), len(rooms))
    arrival, consumed, out = Arrivals(wire), Runs(), Runs()
    departures = None if guess is None else Cursor(guess)
    emitted_at = Cursor(out)
    beats, k, t = wire.due.count, 0, -1
    # Elements that were stored, that have left, and up to the end of the next output beat.
    stored, freed, offered = 0, 0, leaves[0]
    freed_beats, last_due = 0, -1
    repeats = Repeats(wire.stride)
    while k < beats:
        repeats.steps += 1
        if k == repeats.at and repeats.due(k):
            buffered_beats = out.count - freed_beats
            buffered = out.since(freed_beats, t)
            places = k % period, freed_beats % len(leaves), buffered_beats
            phase: Hashable = (*places, buffered, stored - freed, stored - offered, last_due - t)
            reads = [arrival.read(k, t)]
            reads += [] if guess is None else [Read(guess, freed_beats, t, buffered_beats)]
            state = k, t, arrival.lateness, stored, freed, freed_beats, offered, last_due
            jumped = repeats.jump(k, phase, state, reads, [Written(consumed, t), Written(out, t)])
            if jumped:
                k, t, arrival.lateness, stored, freed, freed_beats, offered, last_due = jumped
                continue
        lower_bound = t + 1
        room = rooms[k % len(rooms)]
        while stored - freed > room:
            freed += leaves[freed_beats % len(leaves)]
            freed_beats += 1
            if stored - freed <= room:
                lower_bound = max(lower_bound, emitted_at.read(freed_beats - 1)[0] + 1)
                if departures is not None and guess is not None and freed_beats - 1 < guess.count:
                    lower_bound = max(lower_bound, departures.read(freed_beats - 1)[0] + 1)
        t = arrival.earliest(k, lower_bound, [])[0]
        consumed.append(t, 1, 1)
        arrival.consume(k, t)
        stored += enters[k % len(enters)]
        k += 1
        m = 0
        begin = len(out)
        while offered <= stored:
            m += 1
            offered += leaves[(begin + m) % len(leaves)]
        if m:
            last_due = max(t, last_due) + 1
            out.append(last_due, 1, m)
            last_due += m - 1
    return UnitTimes([consumed], [out])


def _fork(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
    """As `processes.fork`."""
    arrival, consumed, out = Arrivals(ins[0]), Runs(), Runs()
    guesses = [(wire.guess, Cursor(wire.guess)) for wire in outs if wire.guess is not None]
    beats, k, t = ins[0].due.count, 0, -1
    repeats = Repeats(ins[0].stride)
    while k < beats:
        repeats.steps += 1
        if k == repeats.at and repeats.due(k):
            reads = [arrival.read(k, t), *(Read(guess, k, t) for guess, _ in guesses)]
            jumped = repeats.jump(k, (), (k, t, arrival.lateness), reads, [Written(consumed, t), Written(out, t)])
            if jumped:
                k, t, arrival.lateness = jumped
                continue
        fixed: list[Progression] = []
        max_count = repeats.at - k
        for guess, departures in guesses:
            if k < guess.count:
                departure, spacing, count = departures.read(k)
                fixed.append((departure, spacing))
                max_count = min(max_count, count)
        offer, step, m = arrival.earliest(k, t + 1, [], 1, max_count)
        t, spacing, m = (
            latest(offer, step, m, fixed) if arrival.frozen else latest(offer, 1, m, [(offer, step), *fixed])
        )
        if (t, spacing) != (offer, step):
            m = 1
        consumed.append(t, spacing, m)
        out.append(offer, step, m)
        k += m
        t += (m - 1) * spacing
        arrival.consume(k - 1, t)
    return UnitTimes([consumed], [out] * len(outs))


fork = Machine(("fork",), _fork)


def route(order: Pattern, count: int) -> Machine:
    """As `processes.route`, for `count` input wires."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrivals, consumed, out = [Arrivals(wire) for wire in ins], [Runs() for _ in range(count)], Runs()
        guess = outs[0].guess
        departures = None if guess is None else Cursor(guess)
        marks, t, last = order.begin(), -1, [-1] * count
        while True:
            fixed: list[Progression] = []
            selected, max_count, k = marks.value, marks.remaining, len(out)
            if selected >= 0 or marks.first:
                wire = max(selected, 0)
                at = consumed[wire].count
                if at == ins[wire].due.count:
                    break
                if selected < 0:
                    max_count = 1
                offer, step, m = arrivals[wire].earliest(at, max(last[wire] + 1, t + 1), [], 1, max_count)
            else:
                offer, step, m = t + 1, 1, max_count
            if departures is not None and guess is not None and k < guess.count:
                departure, spacing, departure_count = departures.read(k)
                m = min(m, departure_count)
                fixed.append((departure, spacing))
            frozen = selected >= 0 and arrivals[selected].frozen
            t, spacing, m = latest(offer, step if frozen else 1, m, fixed if frozen else [(offer, step), *fixed])
            if (t, spacing) != (offer, step):
                m = 1
            out.append(offer, step, m)
            if selected >= 0:
                consumed[selected].append(t, spacing, m)
            t += (m - 1) * spacing
            if selected >= 0:
                last[selected] = t
                arrivals[selected].consume(consumed[selected].count - 1, t)
            marks.skip(m)
        return UnitTimes(consumed, [out])

    return Machine(("route", *order.parts, count), run)


def keep(keeps: Pattern) -> Machine:
    """As `processes.keep`."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrival, consumed, out, marks = Arrivals(ins[0]), Runs(), Runs(), keeps.begin()
        guess = outs[0].guess
        departures = None if guess is None else Cursor(guess)
        beats, k, t = ins[0].due.count, 0, -1
        repeats = Repeats(ins[0].stride)
        while k < beats:
            repeats.steps += 1
            if k == repeats.at and repeats.due(k):
                reads = [arrival.read(k, t)]
                reads += [] if guess is None else [Read(guess, len(out), t)]
                phase, writes = marks.place, [Written(consumed, t), Written(out, t)]
                jumped = repeats.jump(k, phase, (k, t, arrival.lateness), reads, writes)
                if jumped:
                    k, t, arrival.lateness = jumped
                    continue
            offer, step, m = arrival.earliest(k, t + 1, [], 1, min(marks.remaining, repeats.at - k))
            t, spacing = offer, step
            if marks.value:
                if departures is not None and guess is not None and len(out) < guess.count:
                    departure, departure_spacing, departure_count = departures.read(len(out))
                    t, spacing, m = latest(offer, step, min(m, departure_count), [(departure, departure_spacing)])
                    if (t, spacing) != (offer, step):
                        m = 1
                out.append(offer, step, m)
            consumed.append(t, spacing, m)
            marks.skip(m)
            k += m
            t += (m - 1) * spacing
            arrival.consume(k - 1, t)
        return UnitTimes([consumed], [out])

    return Machine(("keep", *keeps.parts), run)
