"""Simulates a network of nodes: the cycle in which every beat of every stream moves, as RTL simulation would show it.

Cycle 0 is the one in which the source offers the first input beat. All units are empty then.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.cycle_model import processes
from hlsgen.cycle_model.line_buffers import Buffer, span
from hlsgen.cycle_model.processes import Wire
from hlsgen.cycle_model.units import Latency, TimingModel, exact, room, traits
from hlsgen.dataflow.units import Fifo, Node, WidthConverter
from hlsgen.numerics.fixed import Array

#: Names of the streams outside.
INPUT, OUTPUT = "input", "output"
#: Frames after which `measure` no longer waits for times that repeat, and the longest period that it looks for.
MOST_FRAMES, MOST_PERIOD = 24, 8


@dataclass(frozen=True)
class Blocked:
    """A node that waits for ever: for a beat on a stream or, if `full`, for the consumer to take one from it."""

    node: str
    stream: str
    full: bool

    def __str__(self) -> str:
        return f"{self.node} waits for {'room in' if self.full else 'a beat on'} {self.stream}"


@dataclass(frozen=True, eq=False)
class Trace:
    """What a simulation recorded.

    `offered`, `taken`: for each stream the cycles in which its beats are offered and taken, int64 (beats,).
    `occupancy`: the least depth of each FIFO and of each memory of windows with which every time would be the
    same. For a FIFO that is the most beats in it, for a memory the most words from the oldest to the newest.
    `ends`: the cycle of the last output beat of each frame.
    `deadlock`: nodes that wait for each other in a circle, empty if all frames came through.
    """

    offered: dict[str, Array]
    taken: dict[str, Array]
    occupancy: dict[str, int]
    ends: tuple[int, ...]
    deadlock: tuple[Blocked, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first beat that is taken to the last output beat of the first frame."""
        return self.ends[0] - int(self.taken[INPUT][0])

    @property
    def interval(self) -> int:
        """Cycles between the last output beats of the last two frames."""
        return self.ends[-1] - self.ends[-2]


def simulate(
    nodes: Sequence[Node],
    frames: int,
    latency: Latency,
    *,
    pace: int | None = None,
    unlimited: bool = False,
    ready: Sequence[bool] = (),
) -> Trace:
    """Runs frames through the nodes.

    pace: cycles that the source takes for a frame; None: it always has a beat.
    unlimited: FIFOs and the memories of windows have room for everything.
    ready: the cycles in which the sink takes a beat, repeated for ever; empty: it takes one in every cycle.
    """
    network = Simulation(nodes, exact(latency, unlimited=unlimited), ready)
    network.feed(frames, pace)
    return network.trace()


def measure(nodes: Sequence[Node], latency: Latency) -> tuple[int, int]:
    """(latency, interval) with a source that always has a beat and a sink that takes at once.

    The interval holds for ever; it is the longest one if several take turns. Raises ValueError at a deadlock.
    """
    network = Simulation(nodes, exact(latency))
    if not network.run():
        raise ValueError("; ".join(map(str, network.blocked())))
    return network.result()


class Simulation:
    """The wires between the units, and the process of each unit."""

    def __init__(self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = ()) -> None:
        self.nodes, self.frames = tuple(nodes), 0
        # So many frames have to be alike for all that follow to be alike.
        self.reach = 2 + max(0 if model.unlimited else room(node.unit) // node.source.beats for node in nodes)
        self.buffers: dict[str, Buffer] = {}
        self.wires = {INPUT: Wire(INPUT, False)}
        for n, node in enumerate(nodes):
            for name in node.outputs or (OUTPUT,):
                self.wires[name] = Wire(name, n == 0 or traits(node.unit).enable)
        first = [[self.wires[name] for name in node.inputs] for node in nodes]
        first[0] = [self.wires[INPUT]]
        self.ins = [*first, [], [self.wires[nodes[-1].outputs[0] if nodes[-1].outputs else OUTPUT]]]
        self.outs = [[self.wires[name] for name in node.outputs or (OUTPUT,)] for node in nodes]
        self.outs += [first[0], []]
        for unit, (ins, outs) in enumerate(zip(self.ins, self.outs, strict=True)):
            for wire in ins:
                wire.consumer = unit
            for wire in outs:
                wire.producer = unit
        self.sink = self.ins[-1][0]
        self.steps: list[Callable[[], None]] = []
        for n, node in enumerate(nodes):
            process, buffer = model.process(node, self.ins[n], self.outs[n], n == 0)
            self.steps.append(process.__next__)
            if buffer is not None:
                self.buffers[node.name] = buffer
        self.steps += [processes.source(self.wires[INPUT]).__next__, processes.sink(self.sink, ready).__next__]

    @property
    def beats(self) -> tuple[int, int]:
        """(input beats, output beats) of a frame."""
        return self.nodes[0].source.beats, self.nodes[-1].result.beats

    def feed(self, frames: int, pace: int | None = None) -> None:
        """Offers more frames at the input and runs them; pace as in `simulate`."""
        beats, start = self.beats[0], self.frames
        due = self.wires[INPUT].due
        for frame in range(start, start + frames):
            due.extend(frame * pace + k * pace // beats for k in range(beats)) if pace else due.extend([0] * beats)
        self.frames += frames
        self._settle()

    def _settle(self) -> None:
        """Lets units move until nothing does."""
        steps, ins, outs = self.steps, self.ins, self.outs
        queue = deque([len(steps) - 2])
        queued = [False] * len(steps)
        while queue:
            unit = queue.popleft()
            queued[unit] = False
            steps[unit]()
            for wire in ins[unit]:
                if len(wire.taken) != wire.known_taken:
                    wire.known_taken = len(wire.taken)
                    if not queued[wire.producer]:
                        queued[wire.producer] = True
                        queue.append(wire.producer)
            for wire in outs[unit]:
                if len(wire.due) != wire.known_due:
                    wire.known_due = len(wire.due)
                    if not queued[wire.consumer]:
                        queued[wire.consumer] = True
                        queue.append(wire.consumer)

    def ends(self) -> tuple[int, ...]:
        """Cycle of the last output beat of each frame that is through."""
        return tuple(self.sink.taken[self.beats[1] - 1 :: self.beats[1]])

    def blocked(self) -> tuple[Blocked, ...]:
        """The nodes of a deadlock, each waiting for the next one; empty if all frames are through."""
        if len(self.sink.taken) == self.frames * self.beats[1]:
            return ()
        way: dict[int, Blocked] = {}
        unit = self.sink.producer
        while unit not in way and unit < len(self.nodes):
            name = self.nodes[unit].name
            starving = [wire for wire in self.ins[unit] if len(wire.due) == len(wire.taken)]
            full = [wire for wire in self.outs[unit] if len(wire.due) > len(wire.taken)]
            if starving and not (full and isinstance(self.nodes[unit].unit, Fifo | WidthConverter)):
                way[unit], unit = Blocked(name, starving[0].name, False), starving[0].producer
            elif full:
                way[unit], unit = Blocked(name, full[0].name, True), full[0].consumer
            else:
                way[unit] = Blocked(name, self.ins[unit][0].name, False)
        found = list(way)
        return tuple(way[unit] for unit in found[found.index(unit) if unit in way else 0 :])

    def period(self) -> int:
        """After how many frames the times on all streams repeat for ever; 0 if that is not certain (yet).

        A beat waits only for beats that lie back no further than a buffer has room. So it is enough that the
        last `reach` frames moved as those before them.
        """
        ends = self.ends()
        for period in range(1, MOST_PERIOD + 1):
            if len(ends) >= self.reach + period and all(
                _alike(wire.taken, len(wire.taken) // self.frames, self.reach, period, ends[-1] - ends[-1 - period])
                for wire in self.wires.values()
            ):
                return period
        return 0

    def run(self, limit: int | None = None) -> bool:
        """Feeds frames until their times repeat or MOST_FRAMES are through.

        False, as early as it is certain, at a deadlock or if two intervals in a row are above the limit.
        """
        self.feed(max(0, 3 - self.frames))
        while not self.blocked():
            ends = self.ends()
            if limit is not None and min(ends[-1] - ends[-2], ends[-2] - ends[-3]) > limit:
                return False
            if self.period() or self.frames >= MOST_FRAMES:
                return True
            self.feed(1)
        return False

    def result(self) -> tuple[int, int]:
        """(latency, interval): the longest interval of the period or, without one, of the second half of the frames."""
        ends = self.ends()
        last = ends[-1 - (self.period() or len(ends) // 2) :]
        return self.latency(), max(b - a for a, b in itertools.pairwise(last))

    def latency(self) -> int:
        """Cycles from the first input beat to the last output beat of the first frame."""
        return self.ends()[0] - self.wires[INPUT].taken[0]

    def fifo_occupancy(self) -> dict[str, int]:
        """The most beats that were in each FIFO at one time: a depth that would have been enough."""
        occupancy = {}
        for n, node in enumerate(self.nodes):
            if isinstance(node.unit, Fifo):
                into, out = self.ins[n][0].taken, self.outs[n][0].taken
                gone = np.searchsorted(out, into)
                occupancy[node.name] = int((np.arange(len(gone)) - gone).max(initial=-1)) + 1
        return occupancy

    def trace(self) -> Trace:
        """What was recorded so far."""
        taken = {name: np.array(wire.taken, np.int64) for name, wire in self.wires.items()}
        offered = {name: processes.offered(wire, taken[name]) for name, wire in self.wires.items()}
        occupancy = self.fifo_occupancy()
        for n, node in enumerate(self.nodes):
            into, out = self.ins[n][0], self.outs[n][0]
            if node.name in self.buffers:
                occupancy[node.name] = span(self.buffers[node.name], taken[into.name], out)
        return Trace(offered, taken, occupancy, self.ends(), self.blocked())


def _alike(times: list[int], beats: int, frames: int, period: int, cycles: int) -> bool:
    """Whether the last `frames` frames moved exactly `cycles` cycles after those that lie `period` frames back."""
    late, early = times[-frames * beats :], times[-(frames + period) * beats : -period * beats]
    return all(b - a == cycles for a, b in zip(early, late, strict=True))
