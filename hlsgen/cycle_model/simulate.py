"""Simulates a network of nodes: the cycle in which every beat of every stream moves, as RTL simulation would show it.

Cycle 0 is the one in which the sources offer the first input beats. All units are empty then. A network has a source for
each input port and a sink for each output port; a frame is what all of them carry together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.bus_ports import apart
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.runs import ENDLESS
from hlsgen.cycle_model.units import Latency, TimingModel, exact
from hlsgen.cycle_model.wiring import INPUT as INPUT
from hlsgen.cycle_model.wiring import OUTPUT as OUTPUT
from hlsgen.cycle_model.wiring import Blocked, Bounds, Ended, Moves
from hlsgen.dataflow.ends import consumed_stream, divided
from hlsgen.dataflow.units import Fifo, Node
from hlsgen.numerics.fixed import Array

#: Frames after which `measure` no longer waits for times that repeat, if units hold less than a frame, and the longest
#: period that it looks for. If they hold many frames, it waits for four times as many, within so many beats.
MOST_FRAMES, MOST_PERIOD, MOST_BEATS = 24, 64, 200_000
#: Beats of a frame, of all nodes together, below which going through them one by one is quick enough.
SMALL = 4000


@dataclass(frozen=True, eq=False)
class Trace:
    """What a simulation recorded.

    `offered`, `taken`: for each stream the cycles in which its beats are offered and taken, int64 (beats,).
    `occupancy`: the least depth of each FIFO and of each memory of windows with which every time would be the
    same. For a FIFO that is the most beats in it, for a memory the most words from the oldest to the newest.
    `inputs`: the streams in front of the input ports.
    `ends`: the cycle of the last output beat of each frame.
    `deadlock`: nodes that wait for each other in a circle, empty if all frames came through.
    """

    offered: dict[str, Array]
    taken: dict[str, Array]
    occupancy: dict[str, int]
    inputs: tuple[str, ...]
    ends: tuple[int, ...]
    deadlock: tuple[Blocked, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first beat that is taken to the last output beat of the first frame."""
        return self.ends[0] - self.begin

    @property
    def begin(self) -> int:
        """The cycle in which the first input beat is taken."""
        return min(int(self.taken[name][0]) for name in self.inputs)

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

    pace: cycles that each source takes for a frame; None: it always has a beat.
    unlimited: FIFOs and the memories of windows have room for everything.
    ready: the cycles in which every sink takes a beat, repeated for ever; empty: it takes one in every cycle.
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


def beats_of(nodes: Sequence[Node]) -> int:
    """Beats of a frame that all nodes together send."""
    return sum(node.result.beats for node in nodes)


def is_large(nodes: Sequence[Node]) -> bool:
    """Whether a network is simulated in runs of beats, where that pays."""
    return beats_of(nodes) >= SMALL


def has_loop(nodes: Sequence[Node]) -> bool:
    """Whether a stream comes back to a node in front of that which sends it."""
    sent: set[str] = set()
    for node in nodes[1:]:
        sent.update(nodes[0].outputs)
        if not sent.issuperset(node.inputs):
            return True
        sent.update(node.outputs)
    return False


class Simulation:
    """A network while frames go through it: in runs of beats or, where that does not pay, beat by beat.

    Both give the same times. `frames`: those that were offered. `reach`: how many have to be alike for all that follow to
    be alike; `patience`: how many `run` feeds at most. `bounds` end a large simulation by `Ended`. `spent`:
    the work of runs that led to no result.
    """

    def __init__(
        self, nodes: Sequence[Node], model: TimingModel, ready: Sequence[bool] = (), bounds: Bounds | None = None
    ) -> None:
        nodes = apart(nodes)
        self.nodes, self.model, self.ready, self.frames = tuple(nodes), model, ready, 0
        self.bounds, self.spent = bounds, 0
        self.reach = 2 + max(model.holds(node.unit) // node.source.beats for node in nodes)
        self.patience = max(MOST_FRAMES, min(4 * self.reach, MOST_BEATS // beats_of(nodes)))
        self.fed: list[tuple[int, int | None, bool]] = []
        runs = is_large(nodes) and not has_loop(nodes)
        self.moves: Moves = RunNetwork(nodes, model, ready, bounds) if runs else BeatNetwork(nodes, model, ready)

    def bound(self, bounds: Bounds) -> None:
        """Goes on with other bounds."""
        self.bounds = bounds
        if isinstance(self.moves, RunNetwork):
            self.moves.bounds = bounds

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams in front of the input ports."""
        return tuple(consumed_stream(node) for node in divided(self.nodes)[0])

    def feed(self, frames: int, pace: int | None = None, rows: bool = False) -> None:
        """Offers more frames at the input and runs them; pace as in `simulate`. Raises Ended at the bounds."""
        self.fed.append((frames, pace, rows))
        self.frames += frames
        bounds, beats = self.bounds, frames * beats_of(self.nodes)
        if bounds and bounds.strict and isinstance(self.moves, BeatNetwork) and self.work() + beats > bounds.work:
            raise Ended
        if not self.moves.feed(frames, pace, rows):
            beats = self.frames * beats_of(self.nodes)
            if bounds is not None and (bounds.only_runs or beats > bounds.work - self.moves.work()):
                raise Ended
            self.spent = self.moves.work()
            self.moves = BeatNetwork(self.nodes, self.model, self.ready)
            for earlier in self.fed:
                self.moves.feed(*earlier)

    def work(self) -> int:
        """How much was computed so far, in beats."""
        return self.spent + self.moves.work()

    def ends(self) -> tuple[int, ...]:
        """Cycle of the last output beat of each frame that is through."""
        return self.moves.ends()

    def blocked(self) -> tuple[Blocked, ...]:
        """The nodes of a deadlock, each waiting for the next one; empty if all frames are through."""
        return () if len(self.ends()) == self.frames else self.moves.blocked()

    def period(self) -> int:
        """After how many frames the times on all streams repeat for ever; 0 if that is not certain (yet).

        What a unit does next follows from the beats that are in it, and when they came. So it is enough that the
        last `reach` frames, more than any unit holds, moved as those before them.
        """
        ends = self.ends()
        for period in range(1, MOST_PERIOD + 1):
            if len(ends) >= self.reach + period and self.moves.alike(
                self.frames, self.reach, period, ends[-1] - ends[-1 - period]
            ):
                return period
        return 0

    def run(self, limit: int | None = None) -> bool:
        """Feeds frames until their times repeat or `patience` of them are through.

        False, as early as it is certain, at a deadlock or if two intervals in a row are above the limit.
        """
        self.feed(max(0, 3 - self.frames))
        while not self.blocked():
            ends = self.ends()
            if limit is not None and min(ends[-1] - ends[-2], ends[-2] - ends[-3]) > limit:
                return False
            if self.period() or self.frames >= self.patience:
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
        return self.ends()[0] - min(int(self.moves.taken(name, 1)[0]) for name in self.inputs)

    def fifo_occupancy(self) -> dict[str, int]:
        """The most beats that were in each FIFO at one time: a depth that would have been enough."""
        occupancy = {}
        for node in self.nodes:
            if isinstance(node.unit, Fifo):
                into, out = self.moves.taken(node.inputs[0]), self.moves.taken(node.outputs[0])
                gone = np.searchsorted(out, into)
                occupancy[node.name] = int((np.arange(len(gone)) - gone).max(initial=-1)) + 1
        return occupancy

    def occupancy(self) -> dict[str, int]:
        """The same, and of each memory of windows the most words from the oldest to the newest."""
        return self.fifo_occupancy() | self.moves.spans()

    def trace(self) -> Trace:
        """What was recorded so far."""
        taken = {name: self.moves.taken(name) for name in self.moves.names()}
        offered = {name: self.moves.offered(name) for name in self.moves.names()}
        return Trace(offered, taken, self.occupancy(), self.inputs, self.ends(), self.blocked())


@dataclass
class Budget:
    """What simulations may take together: so much work, in beats. It does not depend on the machine."""

    left: int

    def bounds(self, share: float = 1.0) -> Bounds:
        """Of a simulation that may take a share of what is left."""
        return Bounds(ENDLESS, int(share * max(0, self.left)), strict=True)

    def spend(self, network: Simulation) -> None:
        """What a simulation took is gone."""
        self.left -= network.work()
