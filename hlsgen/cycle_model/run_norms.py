"""The units of a normalization of rows, for runs of beats; see `run_processes`."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.run_clock import Clock
from hlsgen.cycle_model.run_processes import Machine, Moved
from hlsgen.cycle_model.run_wires import Arrivals, Wire
from hlsgen.cycle_model.runs import Cursor, Runs


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
