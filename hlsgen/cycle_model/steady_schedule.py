"""Depths of buffers from a schedule in which a frame arrives every `interval` cycles, without a simulation.

Units with a memory can emit their beats evenly spread over these cycles, if each starts late enough; others forward
beats as they arrive. The required delay of each beat follows from the needs of every node, and from its latency.
Nothing stalls in the schedule with the resulting buffers, so the network need not be slower. The hardware does not
follow the schedule: it moves beats as early as possible. The result is therefore close, but no proof.

If there is no interval, every unit emits as early as possible and nothing is ever full: this estimates the latency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.cycle_model.beat_counts import needs_of
from hlsgen.cycle_model.line_buffers import window_runs
from hlsgen.cycle_model.timing_models import Latency, busy
from hlsgen.dataflow.ends import consumed_stream, enters, leaves
from hlsgen.dataflow.flow import BufferFlow, QueueFlow, RegroupFlow, ReplayFlow, flow_of
from hlsgen.dataflow.units import Fifo, Fork, Node, Slice
from hlsgen.numerics.fixed import Array

#: Beats added to the scheduled depth of a FIFO: a beat on its way into it, and the register after it.
MARGIN = 2


@dataclass(frozen=True)
class Steady:
    """Buffered beats of a schedule.

    `buffered`: the beats that each FIFO holds, and the words that each window memory spans, by node. `missing`: the
    beats that wait where there is no FIFO, by stream.
    """

    buffered: dict[str, int]
    missing: dict[str, int]


def steady(nodes: Sequence[Node], latency: Latency, interval: int) -> Steady:
    """The buffered beats if a frame arrives every `interval` cycles, in a network without loops.

    There is a FIFO on each path from a fork to the next join. Window memories have at least the minimum depth.
    """
    schedule = _Schedule(latency, interval)
    for node in nodes:
        schedule.add(node)
    return Steady(schedule.buffered, schedule.missing)


def soonest(nodes: Sequence[Node], latency: Latency) -> int:
    """Estimated cycles from the first input beat to the last output beat, if nothing is ever full."""
    schedule = _Schedule(latency, None)
    for node in nodes:
        schedule.add(node)
    return math.ceil(schedule.end)


def with_fifos(nodes: Sequence[Node], missing: dict[str, int]) -> list[Node]:
    """The nodes with FIFOs of these depths on the `missing` streams."""
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
    """The cycles in which the beats of a frame are offered, by stream.

    `interval`: cycles between frames, or None to emit as early as possible.
    """

    def __init__(self, latency: Latency, interval: int | None) -> None:
        self.latency, self.interval = latency, interval
        self.offered: dict[str, Array] = {}
        #: The FIFO before a stream, and the cycles in which beats enter it.
        self.fifos: dict[str, tuple[str, Array]] = {}
        self.buffered: dict[str, int] = {}
        self.missing: dict[str, int] = {}
        self.end = 0.0

    def add(self, node: Node) -> None:
        """Adds the next node, after all producers of its inputs."""
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
        needs = needs_of(node)
        ready = [_when(arrived, need) for arrived, need in zip(offered, needs, strict=True)]
        emitted = np.maximum.reduce(ready)
        flow = flow_of(node)
        has_memory = isinstance(flow, BufferFlow | ReplayFlow)
        if has_memory and self.interval:
            even_cycles = np.arange(len(emitted)) * (self.interval / len(emitted))
            emitted = even_cycles + (emitted - even_cycles).max()
        else:
            is_slow = has_memory or (isinstance(flow, QueueFlow) and flow.delayed)
            step = busy(node) / len(emitted) if is_slow else 1.0
            even_cycles = np.arange(len(emitted)) * step
            emitted = even_cycles + np.maximum.accumulate(emitted - even_cycles)
            if self.interval:
                # Not before the last beat of the previous frame.
                emitted = np.maximum(emitted, even_cycles + (emitted[-1] - self.interval + step))
        if self.interval:
            for wire, arrived, need in zip(wires, offered, needs, strict=True):
                self._count_buffered(node, wire, arrived, emitted, need)
        emitted = emitted + _cycles(node, self.latency)
        if leaves(node):
            self.end = max(self.end, float(emitted[-1]))
        else:
            self.offered[node.outputs[0]] = emitted

    def _count_buffered(self, node: Node, wire: str, arrived: Array, emitted: Array, need: Array) -> None:
        """Counts the buffered beats before the node, or in it.

        `emitted`: the cycles in which it has everything that it needs for each result beat.
        """
        assert self.interval is not None
        name, entered = self.fifos.pop(wire, ("", arrived))
        if isinstance(node.unit, Slice):
            return
        flow, room = flow_of(node), 0
        if isinstance(flow, BufferFlow) and flow.sized:
            self.buffered[node.name] = _spanned(flow, arrived, emitted, self.interval)
            departures = arrived
        elif isinstance(flow, BufferFlow | ReplayFlow):
            block = flow.length if isinstance(flow, ReplayFlow) else flow.windows.words
            # Beats of a block stay until the last result beat of the block.
            ends = emitted[len(emitted) // (len(arrived) // block) - 1 :: len(emitted) // (len(arrived) // block)]
            departures, room = np.repeat(ends, block), 2 * block
        else:
            # Beats leave with their result beat or, if that needs no other input, after the previous result beat.
            last_use = np.searchsorted(need[1:], np.arange(len(arrived)), "right") - (len(node.inputs) == 1)
            previous_end = emitted[-1] - self.interval
            ends = np.append(emitted, previous_end)[np.minimum(last_use, len(emitted) - 1)]
            departures = np.maximum(arrived, ends)
            if isinstance(flow, RegroupFlow):
                room = max(1, len(arrived) // len(emitted))
        peak = _occupied(entered, departures, self.interval)
        if name:
            self.buffered[name] = peak + MARGIN
        elif peak > room:
            self.missing[wire] = peak - room + MARGIN


def _when(arrived: Array, need: Array) -> Array:
    """The cycle in which the needed beats have arrived, for each result beat."""
    times: Array = np.concatenate([[0.0], arrived])[need[1:]]
    return times


def _cycles(node: Node, latency: Latency) -> int:
    """Cycles from the arrival of everything that a beat needs to its offer."""
    flow = flow_of(node)
    reading = flow.step if isinstance(flow, BufferFlow) and flow.sized else 0
    return reading + latency(node.unit)


def _occupied(entered: Array, departures: Array, interval: int) -> int:
    """Peak occupancy if a frame arrives every `interval` cycles.

    `entered`, `departures`: the cycles in which the beats of a frame enter and leave.
    """
    frames = math.ceil((departures[-1] - entered[0]) / interval)
    departed = sum(np.searchsorted(departures, entered + frame * interval, "right") for frame in range(frames + 1))
    return int((np.arange(1, len(entered) + 1) + frames * len(entered) - departed).max())


def _spanned(flow: BufferFlow, arrived: Array, emitted: Array, interval: int) -> int:
    """The most words from the oldest kept word to the newest."""
    keeps = window_runs(flow.windows)[1].array()
    end = emitted[:: len(emitted) // len(keeps)] + flow.period
    frames = math.ceil((end[-1] - arrived[0]) / interval)
    stored = sum(np.searchsorted(arrived, end - frame * interval, "right") for frame in range(frames + 1))
    return int((stored - keeps).max()) + 1
