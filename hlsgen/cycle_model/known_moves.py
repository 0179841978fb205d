"""What machines did before: equal units at which beats arrive at the same pace do the same, only later.

Networks repeat blocks, and a simulation computes a unit again when a frame or a guess is added. Nothing that a machine
does depends on when time began. So what it did is kept, and taken again with other times.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hlsgen.cycle_model.run_processes import Machine, Moved
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import Runs

#: At most so many runs are kept; then it begins anew.
MOST_RUNS = 1 << 17


class Known:
    """What machines did. `computed` counts those that had to be run."""

    def __init__(self) -> None:
        self.kinds: dict[Hashable, int] = {}
        self.results: dict[Hashable, tuple[int, Moved]] = {}
        self.size = self.computed = 0

    def kind(self, machine: Machine) -> int:
        """A number for the kind of a machine, -1 for none."""
        return -1 if machine.kind is None else self.kinds.setdefault(machine.kind, len(self.kinds))

    def moved(self, kind: int, machine: Machine, ins: Sequence[Wire], outs: Sequence[Wire]) -> Moved:
        """What `machine.run` gives. `kind`: its number."""
        begin = min((wire.due.firsts[0] for wire in ins if wire.due.count), default=-1)
        if kind < 0 or begin < 0:
            self.computed += 1
            return machine.run(ins, outs)
        arrive = tuple([(wire.frozen, wire.due.content(begin)) for wire in ins])
        leave = tuple([None if wire.guess is None else wire.guess.content(begin) for wire in outs])
        key = kind, arrive, leave
        before = self.results.get(key)
        if before is None:
            self.computed += 1
            moved = machine.run(ins, outs)
            self._keep(key, begin, moved, [*(w.due for w in ins), *(w.guess for w in outs if w.guess is not None)])
            return moved
        late = begin - before[0]
        taken, due, starts, _ = before[1]
        if not late:
            return Moved(taken, due, starts)
        return Moved([x.later(late) for x in taken], [x.later(late) for x in due], starts and starts.later(late))

    def _keep(self, key: Hashable, begin: int, moved: Moved, given: Sequence[Runs]) -> None:
        runs = [*given, *moved.taken, *moved.due]
        self.size += sum(len(x.starts) for x in runs)
        if self.size > MOST_RUNS:
            self.results.clear()
            self.size = 0
        self.results[key] = begin, moved
