"""Caches the results of machines: equal units whose beats arrive with equal spacing do the same, only later.

Networks repeat blocks, and a simulation computes a unit again when a frame or a guess is added. The result of a machine
does not depend on the absolute time. Hence it is stored, and reused with shifted times.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hlsgen.cycle_model.run_processes import Machine, UnitTimes
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import Runs

#: Number of stored runs at which the cache is cleared.
MOST_RUNS = 1 << 17


class MoveCache:
    """Results of machines. `computed` counts the machines that had to run."""

    def __init__(self) -> None:
        self.kinds: dict[Hashable, int] = {}
        self.results: dict[Hashable, tuple[int, UnitTimes]] = {}
        self.size = self.computed = 0

    def kind(self, machine: Machine) -> int:
        """An index for the kind of a machine, -1 for none."""
        return -1 if machine.kind is None else self.kinds.setdefault(machine.kind, len(self.kinds))

    def run(self, kind: int, machine: Machine, ins: Sequence[Wire], outs: Sequence[Wire]) -> UnitTimes:
        """The result of `machine.run`, computed or from the cache. `kind`: index of its kind."""
        begin = min((wire.due.firsts[0] for wire in ins if wire.due.count), default=-1)
        if kind < 0 or begin < 0:
            self.computed += 1
            return machine.run(ins, outs)
        arrive = tuple([(wire.frozen, wire.due.content(begin)) for wire in ins])
        leave = tuple([None if wire.guess is None else wire.guess.content(begin) for wire in outs])
        key = kind, arrive, leave
        stored = self.results.get(key)
        if stored is None:
            self.computed += 1
            times = machine.run(ins, outs)
            self._keep(key, begin, times, [*(w.due for w in ins), *(w.guess for w in outs if w.guess is not None)])
            return times
        shift = begin - stored[0]
        consumed, due, starts, _ = stored[1]
        if not shift:
            return UnitTimes(consumed, due, starts)
        return UnitTimes(
            [x.later(shift) for x in consumed], [x.later(shift) for x in due], starts and starts.later(shift)
        )

    def _keep(self, key: Hashable, begin: int, times: UnitTimes, inputs: Sequence[Runs]) -> None:
        """Stores a result, and clears the cache first if it would become too large."""
        runs = [*inputs, *times.consumed, *times.due]
        self.size += sum(len(x.starts) for x in runs)
        if self.size > MOST_RUNS:
            self.results.clear()
            self.size = 0
        self.results[key] = begin, times
