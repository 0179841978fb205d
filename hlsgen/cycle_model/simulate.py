"""Simulates a network of nodes: the cycle in which every beat of every stream moves, as in RTL simulation.

Cycle 0 is the one in which the sources offer the first input beats. All units are empty then. A network has a source
for each input port and a sink for each output port; a frame comprises the beats of all ports.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.bus_ports import split_ports
from hlsgen.cycle_model.kernel import kernel
from hlsgen.cycle_model.kernel_network import KernelNetwork
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.runs import ENDLESS
from hlsgen.cycle_model.timing_models import Latency, TimingModel, exact
from hlsgen.cycle_model.wiring import INPUT as INPUT
from hlsgen.cycle_model.wiring import OUTPUT as OUTPUT
from hlsgen.cycle_model.wiring import Blocked, Bounds, BudgetExceeded, Engine
from hlsgen.dataflow.ends import consumed_stream, divided
from hlsgen.dataflow.units import Fifo, FrameMemory, Node
from hlsgen.numerics.fixed import Array

#: Frames after which `measure` stops waiting for repeated times if units hold less than a frame, and the longest period
#: that it looks for. If units hold many frames, it waits for four times as many frames, within MOST_BEATS beats.
MOST_FRAMES, MOST_PERIOD, MOST_BEATS = 24, 64, 200_000
#: Beats of a frame, of all nodes together, below which the beat-by-beat simulation is fast enough.
SMALL = 4000


@dataclass(frozen=True, eq=False)
class Trace:
    """The recorded times of a simulation.

    `offered`, `consumed`: for each stream the cycles in which its beats are offered and consumed, int64 (beats,).
    `occupancy`: the smallest depth of each FIFO and of each window memory that does not change any time. For a FIFO it
    is the peak number of buffered beats, for a memory the most words from the oldest to the newest. `inputs`: the
    streams before the input ports. `ends`: the cycle of the last output beat of each frame. `deadlock`: nodes that wait
    for each other in a circle, empty if all frames passed.
    """

    offered: dict[str, Array]
    consumed: dict[str, Array]
    occupancy: dict[str, int]
    inputs: tuple[str, ...]
    ends: tuple[int, ...]
    deadlock: tuple[Blocked, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first consumed input beat to the last output beat of the first frame."""
        return self.ends[0] - self.begin

    @property
    def begin(self) -> int:
        """The cycle in which the first input beat is consumed."""
        return min(int(self.consumed[name][0]) for name in self.inputs)

    @property
    def interval(self) -> int:
        """Cycles between the last output beats of the last two frames."""
        return self.ends[-1] - self.ends[-2]


def simulate(
    nodes: Sequence[Node],
    frames: int,
    latency: Latency,
    *,
    interval: int | None = None,
    unlimited: bool = False,
    ready: Sequence[bool] = (),
) -> Trace:
    """Runs frames through the nodes.

    - `interval`: cycles in which each source offers a frame, or None if it always offers a beat.
    - `unlimited`: FIFOs and window memories have unlimited room.
    - `ready`: the cycles in which every sink is ready, repeated forever; empty: it is always ready.
    """
    network = Simulation(nodes, exact(latency, unlimited=unlimited), ready)
    network.feed(frames, interval)
    return network.trace()


def measure(nodes: Sequence[Node], latency: Latency) -> tuple[int, int]:
    """(latency, interval) with a source that always offers a beat and a sink that is always ready.

    The interval holds forever; if several intervals alternate, it is the longest. Raises ValueError at a deadlock.
    """
    network = Simulation(nodes, exact(latency))
    if not network.run():
        raise ValueError("; ".join(map(str, network.blocked())))
    return network.result()


def beats_of(nodes: Sequence[Node]) -> int:
    """Beats of a frame that all nodes together emit."""
    return sum(node.result.beats for node in nodes)


def is_large(nodes: Sequence[Node]) -> bool:
    """True if a network is large enough to be simulated in runs of beats."""
    return beats_of(nodes) >= SMALL


def has_loop(nodes: Sequence[Node]) -> bool:
    """True if a stream returns to a node before its producer."""
    emitted: set[str] = set()
    for node in nodes[1:]:
        emitted.update(nodes[0].outputs)
        if not emitted.issuperset(node.inputs):
            return True
        emitted.update(node.outputs)
    return False


class Simulation:
    """A network while frames pass through it: in runs of beats or, if that does not pay, beat by beat.

    Both engines give the same times. `frames`: number of offered frames. `reach`: how many frames have to be alike so
    that all following frames are alike. `patience`: the most frames that `run` feeds. `bounds` end a large simulation
    with BudgetExceeded. `spent`: the work of runs that led to no result. `counts`: False if nobody reads `work`. Then
    the kernel moves every beat if it is available: it needs less time than a search in runs that may fail.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        model: TimingModel,
        ready: Sequence[bool] = (),
        bounds: Bounds | None = None,
        *,
        counts: bool = True,
    ) -> None:
        nodes = split_ports(nodes)
        self.nodes, self.model, self.ready, self.frames = tuple(nodes), model, ready, 0
        self.bounds, self.spent = bounds, 0
        self.reach = 2 + max(model.holds(node) // node.source.beats for node in nodes)
        self.patience = max(MOST_FRAMES, min(4 * self.reach, MOST_BEATS // beats_of(nodes)))
        self.fed: list[tuple[int, int | None, bool]] = []
        runs = is_large(nodes) and not has_loop(nodes) and (counts or not kernel(beats_of(nodes)))
        self.engine: Engine = RunNetwork(nodes, model, ready, bounds) if runs else self._beat_by_beat()

    def _beat_by_beat(self) -> Engine:
        """An engine that moves every beat: the kernel if there is one and the simulations are long enough."""
        states = any(isinstance(node.unit, FrameMemory) for node in self.nodes)
        functions = None if states else kernel(beats_of(self.nodes))
        if functions is None:
            return BeatNetwork(self.nodes, self.model, self.ready)
        return KernelNetwork(self.nodes, self.model, self.ready, functions)

    def bound(self, bounds: Bounds) -> None:
        """Continues with other bounds."""
        self.bounds = bounds
        if isinstance(self.engine, RunNetwork):
            self.engine.bounds = bounds

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams before the input ports."""
        return tuple(consumed_stream(node) for node in divided(self.nodes)[0])

    def feed(self, frames: int, interval: int | None = None, rows: bool = False) -> None:
        """Offers more frames at the input and runs them; `interval` as in `simulate`.

        Raises BudgetExceeded at the bounds.
        """
        self.fed.append((frames, interval, rows))
        self.frames += frames
        bounds, beats = self.bounds, frames * beats_of(self.nodes)
        if bounds and bounds.strict and not isinstance(self.engine, RunNetwork) and self.work() + beats > bounds.work:
            raise BudgetExceeded
        if not self.engine.feed(frames, interval, rows):
            beats = self.frames * beats_of(self.nodes)
            if bounds is not None and (bounds.only_runs or beats > bounds.work - self.engine.work()):
                raise BudgetExceeded
            self.spent = self.engine.work()
            self.engine = self._beat_by_beat()
            for earlier in self.fed:
                self.engine.feed(*earlier)

    def work(self) -> int:
        """Work so far, in beats."""
        return self.spent + self.engine.work()

    def ends(self) -> tuple[int, ...]:
        """Cycle of the last output beat of each complete frame."""
        return self.engine.ends()

    def blocked(self) -> tuple[Blocked, ...]:
        """The nodes of a deadlock, each waiting for the next one; empty if all frames are complete."""
        return () if len(self.ends()) == self.frames else self.engine.blocked()

    def period(self) -> int:
        """Number of frames after which the times on all streams repeat forever; 0 if that is not certain (yet).

        The next actions of a unit follow from the beats in it, and their arrival times. Hence it suffices that the last
        `reach` frames, more than any unit holds, moved as the frames before them.
        """
        ends = self.ends()
        for period in range(1, MOST_PERIOD + 1):
            if len(ends) >= self.reach + period and self.engine.alike(
                self.frames, self.reach, period, ends[-1] - ends[-1 - period]
            ):
                return period
        return 0

    def run(self, limit: int | None = None) -> bool:
        """Feeds frames until their times repeat or `patience` frames are complete.

        Returns False, as early as possible, at a deadlock or if two intervals in a row are above the limit.
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
        return self.ends()[0] - min(int(self.engine.consumed(name, 1)[0]) for name in self.inputs)

    def fifo_occupancy(self) -> dict[str, int]:
        """The peak number of beats in each FIFO: a sufficient depth."""
        occupancy = {}
        for node in self.nodes:
            if isinstance(node.unit, Fifo):
                arrivals, leaving = self.engine.consumed(node.inputs[0]), self.engine.consumed(node.outputs[0])
                departed = np.searchsorted(leaving, arrivals)
                occupancy[node.name] = int((np.arange(len(departed)) - departed).max(initial=-1)) + 1
        return occupancy

    def occupancy(self) -> dict[str, int]:
        """The peak occupancy of each FIFO, and for each window memory the most words from the oldest to the newest."""
        return self.fifo_occupancy() | self.engine.spans()

    def trace(self) -> Trace:
        """The times recorded so far."""
        consumed = {name: self.engine.consumed(name) for name in self.engine.names()}
        offered = {name: self.engine.offered(name) for name in self.engine.names()}
        return Trace(offered, consumed, self.occupancy(), self.inputs, self.ends(), self.blocked())


@dataclass
class WorkBudget:
    """The work that several simulations together may take, in beats. It does not depend on the machine."""

    remaining: int

    def bounds(self, share: float = 1.0) -> Bounds:
        """Bounds of a simulation that may take this share of the remaining budget."""
        return Bounds(ENDLESS, int(share * max(0, self.remaining)), strict=True)

    def spend(self, network: Simulation) -> None:
        """Subtracts the work of a simulation."""
        self.remaining -= network.work()
