"""Depths of buffers by a schedule in which a frame comes every so many cycles, without simulating one.

Units with a memory can send their beats evenly spread over these cycles, if each begins late enough; others pass on what
comes as it comes. How late each beat has to be for that follows from what every node needs, and from its latency. With
the buffers that this takes, nothing waits in the schedule, so the network need not be slower. The hardware does not
keep to the schedule: it moves beats as early as it can. So what follows from the schedule is close, but no proof.

Without a pace, every unit sends as early as it can and nothing is ever full: that tells about the latency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.cycle_model.beat_counts import Needs
from hlsgen.cycle_model.line_buffers import runs_of
from hlsgen.cycle_model.units import Latency, busy, step_of
from hlsgen.dataflow.ends import consumed_stream, enters, leaves
from hlsgen.dataflow.units import (
    Fifo,
    Fork,
    MatVec,
    Node,
    NormRoot,
    Reorder,
    RowsUnit,
    Slice,
    SoftmaxUnit,
    Unit,
    WidthConverter,
    WindowUnit,
)
from hlsgen.numerics.fixed import Array

#: Beats by which a FIFO is deeper than the schedule says: what is on its way into it, and the register behind it.
MARGIN = 2


@dataclass(frozen=True)
class Steady:
    """`waits`: the beats that each FIFO holds, and the words that each memory of windows spans, by node.

    `missing`: the beats that wait where no FIFO is, by stream.
    """

    waits: dict[str, int]
    missing: dict[str, int]


def steady(nodes: Sequence[Node], needs: Needs, latency: Latency, interval: int) -> Steady:
    """What waits where if a frame comes every `interval` cycles, in a network without loops.

    There is a FIFO on the way from each fork to the next join. Memories of windows have the least depth or more.
    """
    schedule = _Schedule(needs, latency, interval)
    for node in nodes:
        schedule.add(node)
    return Steady(schedule.waits, schedule.missing)


def soonest(nodes: Sequence[Node], needs: Needs, latency: Latency) -> int:
    """About how many cycles there are from the first input beat to the last output beat, if nothing is ever full."""
    schedule = _Schedule(needs, latency, None)
    for node in nodes:
        schedule.add(node)
    return math.ceil(schedule.end)


def with_fifos(nodes: Sequence[Node], missing: dict[str, int]) -> list[Node]:
    """The nodes with FIFOs of so many beats on these streams."""
    result: list[Node] = []
    for node in nodes:
        inputs = list(node.inputs)
        for n, (wire, stream) in enumerate(zip(node.inputs, node.sources, strict=False)):
            if wire in missing:
                inputs[n] = f"{wire}_even"
                result.append(Node(inputs[n], Fifo(missing[wire]), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(node, inputs=tuple(inputs)))
    return result


class _Schedule:
    """The cycles in which the beats of a frame are offered, stream by stream; `interval`: None without a pace."""

    def __init__(self, needs: Needs, latency: Latency, interval: int | None) -> None:
        self.needs, self.latency, self.interval = needs, latency, interval
        self.offered: dict[str, Array] = {}
        #: The FIFO from which a stream comes, and when beats go into it.
        self.fifos: dict[str, tuple[str, Array]] = {}
        self.waits: dict[str, int] = {}
        self.missing: dict[str, int] = {}
        self.end = 0.0

    def add(self, node: Node) -> None:
        """The next node, behind all from which it takes beats."""
        if enters(node):
            beats = np.arange(node.source.beats, dtype=float)
            self.offered[consumed_stream(node)] = beats * ((self.interval or node.source.beats) / node.source.beats)
        wires = node.inputs or (consumed_stream(node),)
        offered = [self.offered.pop(wire) for wire in wires]
        if isinstance(node.unit, Fifo):
            (out,), (arrived,) = node.outputs, offered
            self.offered[out], self.fifos[out] = arrived + 1, (node.name, arrived)
            return
        if isinstance(node.unit, Fork):
            self.offered |= dict.fromkeys(node.outputs, offered[0])
            return
        if isinstance(node.unit, Slice) and wires[0] in self.fifos:
            (self.fifos[node.outputs[0]],) = (self.fifos.pop(node.inputs[0]),)
        needs = self.needs.of(node)
        ready = [_when(arrived, need) for arrived, need in zip(offered, needs, strict=True)]
        sent = np.maximum.reduce(ready)
        if _remembers(node.unit) and self.interval:
            every = np.arange(len(sent)) * (self.interval / len(sent))
            sent = every + (sent - every).max()
        else:
            step = busy(node) / len(sent) if _remembers(node.unit) or isinstance(node.unit, NormRoot) else 1.0
            every = np.arange(len(sent)) * step
            sent = every + np.maximum.accumulate(sent - every)
            if self.interval:
                # Not in front of the last beat of the frame before.
                sent = np.maximum(sent, every + (sent[-1] - self.interval + step))
        if self.interval:
            for wire, arrived, need in zip(wires, offered, needs, strict=True):
                self._wait(node, wire, arrived, sent, need)
        sent = sent + _cycles(node, self.latency)
        if leaves(node):
            self.end = max(self.end, float(sent[-1]))
        else:
            self.offered[node.outputs[0]] = sent

    def _wait(self, node: Node, wire: str, arrived: Array, sent: Array, need: Array) -> None:
        """What waits in front of the node, or in it. `sent`: when it has what it needs for each beat of its result."""
        assert self.interval is not None
        name, came = self.fifos.pop(wire, ("", arrived))
        if isinstance(node.unit, Slice):
            return
        if isinstance(node.unit, WindowUnit):
            self.waits[node.name] = _spanned(node.unit, arrived, sent, self.interval)
            gone, room = arrived, 0
        elif isinstance(node.unit, MatVec | Reorder | RowsUnit | SoftmaxUnit):
            block = _block(node.unit)
            # Beats of a block stay until the last one that is made of it.
            ends = sent[len(sent) // (len(arrived) // block) - 1 :: len(sent) // (len(arrived) // block)]
            gone, room = np.repeat(ends, block), 2 * block
        else:
            # With its beat of the result or, if nothing else has to come for that, behind the one before.
            first = np.searchsorted(need[1:], np.arange(len(arrived)), "right") - (len(node.inputs) == 1)
            before = sent[-1] - self.interval
            gone, room = np.maximum(arrived, np.append(sent, before)[np.minimum(first, len(sent) - 1)]), 0
            if isinstance(node.unit, WidthConverter):
                room = max(1, len(arrived) // len(sent))
        most = _occupied(came, gone, self.interval)
        if name:
            self.waits[name] = most + MARGIN
        elif most > room:
            self.missing[wire] = most - room + MARGIN


def _when(arrived: Array, need: Array) -> Array:
    """When so many beats have arrived."""
    times: Array = np.concatenate([[0.0], arrived])[need[1:]]
    return times


def _remembers(unit: Unit) -> bool:
    """Whether it has room for what comes before it is needed."""
    return isinstance(unit, WindowUnit | MatVec | Reorder | RowsUnit | SoftmaxUnit)


def _block(unit: MatVec | Reorder | RowsUnit | SoftmaxUnit) -> int:
    """Beats that are stored before any of them is freed."""
    return unit.col_folds if isinstance(unit, MatVec) else unit.block if isinstance(unit, Reorder) else unit.beats


def _cycles(node: Node, latency: Latency) -> int:
    """From the cycle in which all that a beat needs is there to that in which it is offered."""
    if isinstance(node.unit, WindowUnit):
        return step_of(node.unit) + latency(node.unit)
    return latency(node.unit)


def _occupied(came: Array, gone: Array, interval: int) -> int:
    """The most beats that are somewhere, if a frame comes every `interval` cycles."""
    frames = math.ceil((gone[-1] - came[0]) / interval)
    left = sum(np.searchsorted(gone, came + frame * interval, "right") for frame in range(frames + 1))
    return int((np.arange(1, len(came) + 1) + frames * len(came) - left).max())


def _spanned(unit: WindowUnit, arrived: Array, sent: Array, interval: int) -> int:
    """The most words from the oldest that stays to the newest."""
    keeps = runs_of(unit)[1].array()
    end = sent[:: len(sent) // len(keeps)] + unit.period
    frames = math.ceil((end[-1] - arrived[0]) / interval)
    stored = sum(np.searchsorted(arrived, end - frame * interval, "right") for frame in range(frames + 1))
    return int((stored - keeps).max()) + 1
