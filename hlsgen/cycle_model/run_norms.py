"""The units of a normalization of rows, for runs of beats; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.run_clock import Clock
from hlsgen.cycle_model.run_processes import Machine, UnitTimes
from hlsgen.cycle_model.run_wires import Arrivals, Wire
from hlsgen.cycle_model.runs import Cursor, Runs


def root(count: int, delay: int) -> Machine:
    """As `processes.fifo` of `count` beats, each of which is delayed by `delay` cycles; computed beat by beat."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        arrival, consumed, out = Arrivals(ins[0]), Runs(), Runs()
        guess = outs[0].guess
        departures = None if guess is None else Cursor(guess)
        due: list[int] = []
        t = -1
        for k in range(ins[0].due.count):
            earliest = t + 1
            if k >= count:
                earliest = max(earliest, due[k - count] + 1)
                if departures is not None and guess is not None and k - count < guess.count:
                    earliest = max(earliest, departures.read(k - count)[0] + 1)
            t = arrival.earliest(k, earliest, [])[0]
            consumed.append(t, 1, 1)
            due.append(t + delay)
            out.append(t + delay, 1, 1)
            arrival.consume(k, t)
        return UnitTimes([consumed], [out])

    return Machine(("root", count, delay), run)


def rows(latency: int, beats_per_second: int) -> Machine:
    """As `processes.join` if each beat of the second wire is used with `beats_per_second` beats of the first."""

    def run(ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        first, second = (Arrivals(wire) for wire in ins)
        consumed, rows_taken, out = Runs(), Runs(), Runs()
        clock = Clock(out, outs[0].guess)
        t = -1
        for k in range(min(ins[0].due.count, ins[1].due.count * beats_per_second)):
            t = second.earliest(k // beats_per_second, t + 1, [])[0]
            t = clock.enabled(first.earliest(k, t, [])[0])
            out.append(t - clock.lost + latency, 1, 1)
            consumed.append(t, 1, 1)
            first.consume(k, t)
            if k % beats_per_second == beats_per_second - 1:
                rows_taken.append(t, 1, 1)
                second.consume(k // beats_per_second, t)
        return UnitTimes([consumed, rows_taken], [out])

    return Machine(("rows", latency, beats_per_second), run)
