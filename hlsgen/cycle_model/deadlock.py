"""Whether units could wait for each other for ever, whatever pauses the outside makes.

A unit with an enable holds a beat in every register of its pipeline if they come without a gap, but only the one
that it offers if they do not: it stands still then, with gaps in it. What must never happen cannot rest on
registers that may be empty. Here every unit holds as little as it ever does; units hold no less while others do,
nothing decides anything by the data, so a frame that comes through here comes through at any pace of both ports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlsgen.cycle_model import processes
from hlsgen.cycle_model.line_buffers import words_of
from hlsgen.cycle_model.processes import Process, Wire
from hlsgen.cycle_model.simulate import Blocked, Simulation
from hlsgen.dataflow.units import (
    ArgMaxUnit,
    ConcatChannels,
    ConvUnit,
    FloatKeyUnit,
    FloatUnit,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    PoolUnit,
    Port,
    ReduceTree,
    Reorder,
    RescaleUnit,
    SlidingWindow,
    TiledPool,
)


def find_deadlock(nodes: Sequence[Node]) -> tuple[Blocked, ...]:
    """Stages that could wait for each other in a circle, empty if there are none."""
    network = _Least(nodes)
    network.feed(1)
    return network.blocked()


class _Least(Simulation):
    """Units that hold as few beats as they ever do. Times say only what comes before what."""

    def _motion(self, n: int, node: Node, unlimited: bool) -> Process:
        unit, (wire, *more), result = node.unit, self.ins[n], self.outs[n][0]
        match unit:
            case Port() if n:
                pass
            case Port() | FloatKeyUnit() | RescaleUnit() | FloatUnit() | GroupedMatVec() | ReduceTree():
                return _single([wire], result, [True])
            case JoinStreams() | ConcatChannels():
                return _single([wire, *more], result, [True])
            case ArgMaxUnit():
                return _single([wire], result, [False] * (unit.beats - 1) + [True])
            case TiledPool():
                return _single([wire], result, processes.completing_beats(unit))
            case MatVec() if unit.row_folds == 1:
                return _sums(wire, result, unit.col_folds)
            case MatVec():
                length = unit.col_folds
                return _blocks(wire, result, [length - 1], [0], length, 2 * length, unit.row_folds)
            case Reorder():
                count = math.prod(extent for extent, _ in unit.loops)
                return _blocks(wire, result, [unit.block - 1], [0], unit.block, 2 * unit.block, count)
            case ConvUnit() | PoolUnit() | SlidingWindow():
                count = unit.groups * unit.repeat if isinstance(unit, ConvUnit) else unit.folds
                return _blocks(wire, result, *words_of(unit), unit.depth, count)
            case _:
                pass
        return super()._motion(n, node, unlimited)


def _single(wires: Sequence[Wire], result: Wire, gives: Sequence[bool]) -> Process:
    """A unit that takes a beat (of every wire) when it holds none; those that are marked give one."""
    k = 0
    while True:
        while all(k < len(wire.due) for wire in wires) and len(result.taken) == len(result.due):
            for wire in wires:
                wire.taken.append(k)
            if gives[k % len(gives)]:
                result.due.append(k)
            k += 1
        yield


def _sums(wire: Wire, result: Wire, length: int) -> Process:
    """hg_mvu with one pass: so many beats give one, and some more are stored before they are needed."""
    k = used = 0
    while True:
        moved = False
        while used < k and len(result.taken) == len(result.due):
            used += 1
            if used % length == 0:
                result.due.append(0)
            moved = True
        while k < len(wire.due) and k < used + (4 if length > 2 else 2 * length):
            wire.taken.append(0)
            k += 1
            moved = True
        if not moved:
            yield


def _blocks(
    wire: Wire, result: Wire, needs: Sequence[int], keeps: Sequence[int], words: int, depth: int, count: int
) -> Process:
    """A memory of so many words of frames of `words` words. Window v, when word needs[v] of a frame is there, gives
    `count` beats one after the other; words before keeps[v] are free until the last one of these is made."""
    k = v = made = 0
    while True:
        moved = False
        while needs[v % len(needs)] + v // len(needs) * words < k and len(result.taken) == len(result.due):
            result.due.append(0)
            made += 1
            if made == count:
                v, made = v + 1, 0
            moved = True
        while k < len(wire.due) and k - depth < keeps[v % len(keeps)] + v // len(keeps) * words:
            wire.taken.append(0)
            k += 1
            moved = True
        if not moved:
            yield
