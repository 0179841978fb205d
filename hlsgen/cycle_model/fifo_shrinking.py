"""Smaller depths of buffers that cost no cycle: a search over simulations of the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hlsgen.cycle_model.deadlock import feed_frame
from hlsgen.cycle_model.runs import ENDLESS
from hlsgen.cycle_model.simulate import Budget, Simulation
from hlsgen.cycle_model.units import Latency, TimingModel, exact, least
from hlsgen.cycle_model.wiring import Bounds, Ended
from hlsgen.dataflow.units import ConvUnit, Fifo, Node, PoolUnit, SlidingWindow, WindowUnit

#: hg_fifo with less does not carry a beat a cycle.
LEAST_FIFO = 2

Depths = dict[str, int]
#: Latency and interval.
Cycles = tuple[int, int]


@dataclass
class Search:
    """Simulates variants of a network with other depths, each at most once. A depth of 0 leaves a FIFO out.

    `work` counts the beats that were simulated, or what takes as long in runs of beats; `effort` limits it. What would
    take more than is left of it counts as too slow. `lates`: limits of the first frame that a variant is above.
    `only_runs`: what has to be simulated beat by beat counts as too slow as well, where a limit is given.
    `budget`: of what is simulated without a limit, which ends by Ended.
    """

    nodes: Sequence[Node]
    latency: Latency
    effort: int
    work: int = 0
    firsts: dict[tuple[int, ...], int | None] = field(default_factory=dict)
    known: dict[tuple[int, ...], Cycles | None] = field(default_factory=dict)
    occupied: dict[tuple[int, ...], Depths] = field(default_factory=dict)
    moving: dict[tuple[int, ...], bool] = field(default_factory=dict)
    lates: dict[tuple[int, ...], int] = field(default_factory=dict)
    begun: tuple[tuple[int, ...], Simulation] | None = None
    only_runs: bool = False
    budget: Budget | None = None

    def has(self, share: float = 1.0) -> bool:
        """Whether a share of the effort is not spent yet."""
        return self.work < share * self.effort

    @cached_property
    def forks(self) -> bool:
        """Whether units could wait for each other at all."""
        return any(len(node.outputs) > 1 for node in self.nodes)

    def variant(self, depths: Depths) -> list[Node]:
        return with_depths(self.nodes, depths)

    def simulation(self, depths: Depths, latest: int | None) -> Simulation:
        """Of a variant, with all streams empty; `latest`: the end of the first frame, None: it takes what it takes."""
        return Simulation(self.variant(depths), self.model, bounds=self._bounds(latest))

    @cached_property
    def model(self) -> TimingModel:
        """Of all variants."""
        return exact(self.latency)

    @cached_property
    def model_of_pauses(self) -> TimingModel:
        """The model in which no pauses may lead to a deadlock."""
        return least()

    def _bounds(self, latest: int | None) -> Bounds | None:
        if latest is None:
            return Bounds(ENDLESS, self.left, strict=True) if self.budget else None
        return Bounds(latest, max(0, self.effort - self.work), self.only_runs)

    @property
    def left(self) -> int:
        """What of the budget is not spent yet."""
        return max(0, self.budget.left - self.work) if self.budget else ENDLESS

    def first(self, depths: Depths, latest: int | None = None) -> int | None:
        """The latency of the first frame, None if it does not come through, or not by `latest`."""
        key = tuple(depths.values())
        if key not in self.firsts:
            if latest is not None and latest <= self.lates.get(key, -1):
                return None
            network = self.simulation(depths, latest)
            try:
                network.feed(1)
                self.firsts[key] = None if network.blocked() else network.latency()
                self.begun = key, network
            except Ended:
                if latest is None:
                    raise
                self.lates[key] = latest
                return None
            finally:
                self.work += network.work()
        return self.firsts[key]

    def moves(self, depths: Depths) -> bool:
        """Whether no pauses of the ports can lead to a deadlock."""
        key = tuple(depths.values())
        if not self.forks:
            return True
        if key not in self.moving:
            network = Simulation(self.variant(depths), self.model_of_pauses, bounds=self._bounds(ENDLESS))
            try:
                feed_frame(network)
                self.moving[key] = not network.blocked()
            except Ended:
                self.moving[key] = False
            self.work += network.work()
        return self.moving[key]

    def measured(self, depths: Depths, limit: Cycles | None = None) -> Cycles | None:
        """(latency, interval), None if it blocks or, as far as is certain, is slower than the limit."""
        key = tuple(depths.values())
        if key not in self.known:
            first = self.first(depths, limit[0] if limit else None)
            if first is None or (limit and first > limit[0]):
                return None
            latest = limit[0] if limit else None
            network = self.begun[1] if self.begun and self.begun[0] == key else self.simulation(depths, latest)
            self.begun, before = None, network.work()
            try:
                fine = network.run(limit[1] if limit else None)
            except Ended:
                if limit is None:
                    raise
                fine = False
            self.known[key] = network.result() if fine else None
            self.occupied[key] = network.fifo_occupancy() if fine else {}
            self.work += network.work() - before
        return self.known[key]

    def in_runs(self, depths: Depths, goal: int, first: int, all_of_it: int) -> Cycles | None:
        """As `measured`, if simulating the first frame and all frames takes no more work than that, in runs."""
        limit, effort = (ENDLESS, goal), self.effort
        self.only_runs = True
        try:
            self.effort = self.work + min(first, self.left)
            if self.first(depths, ENDLESS) is None:
                return None
            all_of_it = min(all_of_it, self.left)
            self.effort = self.work + all_of_it
            if self.begun:
                self.begun[1].bound(Bounds(ENDLESS, all_of_it, only_runs=True))
            return self.measured(depths, limit)
        finally:
            self.only_runs, self.effort = False, effort

    def quick(self, depths: Depths, limit: Cycles) -> bool:
        """Whether the first frame is no later than the limit and nothing can stop the network."""
        first = self.first(depths, limit[0])
        return first is not None and first <= limit[0] and self.moves(depths)

    def as_fast(self, depths: Depths, limit: Cycles) -> Cycles | None:
        """What it takes if that is not more than the limit and nothing can stop it."""
        found = self.measured(depths, limit) if self.quick(depths, limit) else None
        return found if found and within(found, limit) else None

    def trimmed(self, depths: Depths) -> Depths:
        """Without the room in FIFOs that was never used in a network that was measured: not a cycle is another."""
        key = tuple(depths.values())
        fewer = {name: min(depth, self.occupied[key].get(name, depth)) for name, depth in depths.items()}
        own = tuple(fewer.values())
        self.firsts[own], self.known[own], self.occupied[own] = self.firsts[key], self.known[key], self.occupied[key]
        return fewer if self.moves(fewer) else depths


def within(found: Cycles, limit: Cycles) -> bool:
    """Whether neither latency nor interval is more than the limit."""
    return found[0] <= limit[0] and found[1] <= limit[1]


def with_depths(nodes: Sequence[Node], depths: Depths) -> list[Node]:
    """The nodes with other depths; a FIFO of depth 0 is left out."""
    left = {
        node.outputs[0]: node.inputs[0] for node in nodes if isinstance(node.unit, Fifo) and depths.get(node.name) == 0
    }
    result = []

    def sent(name: str) -> str:
        """The stream that is there instead of one behind FIFOs that are left out."""
        while name in left:
            name = left[name]
        return name

    for node in nodes:
        inputs = tuple(map(sent, node.inputs))
        unit, depth = node.unit, depths.get(node.name)
        if isinstance(unit, Fifo) and depth == 0:
            continue
        if isinstance(unit, SlidingWindow) and depth is not None:
            result.append(replace(node, unit=unit.with_depth(depth), inputs=inputs))
        elif isinstance(unit, ConvUnit | PoolUnit | Fifo) and depth is not None:
            result.append(replace(node, unit=replace(unit, depth=depth), inputs=inputs))
        else:
            result.append(replace(node, inputs=inputs))
    return result


def narrow(search: Search, depths: Depths, least: Depths, limit: Cycles) -> tuple[Depths, Cycles, tuple[str, ...]]:
    """Takes away depth that costs no cycle: from the memories of windows, then from the FIFOs.

    (depths, (latency, interval), names of the FIFOs of which one word less would cost cycles).
    What the first frame needs is found quickly; mostly, later ones need no more.
    """
    depths = search.trimmed(depths)
    fewer = _windows(search, depths, least, limit)
    fewer = _without(search, fewer, limit)
    bits = {s.name: s.result.bits for s in search.nodes if isinstance(s.unit, Fifo)}
    names = sorted(bits, key=lambda n: -bits[n] * depths[n])
    for name in names:
        fewer = _smaller(search, fewer, limit, name)
    depths, limit = _accepted(search, depths, limit, fewer, [n for n in depths if fewer[n] < depths[n]])
    waiting, critical = deque(n for n in names if depths[n]), set[str]()
    while waiting and search.has():
        name = waiting.popleft()
        fewer, found = _least(search, depths, limit, name)
        if fewer != depths:
            depths, limit, critical = fewer, found, set()
            waiting = deque(n for n in names if depths[n] and n != name)
        if depths[name] and search.has():
            less = search.measured({**depths, name: depths[name] - 1}, limit)
            critical |= set() if less and within(less, limit) else {name}
    return depths, limit, tuple(name for name in bits if name in critical)


def _windows(search: Search, depths: Depths, least: Depths, limit: Cycles) -> Depths:
    """Without what the memories of windows have beyond the least: of all, or of the largest by quarters."""
    bits = {s.name: s.source.bits for s in search.nodes if isinstance(s.unit, WindowUnit)}
    fewer = {**depths, **{name: least[name] for name in bits}}
    if search.quick(fewer, limit):
        return fewer
    for name in sorted(bits, key=lambda n: -bits[n] * (depths[n] - least[n])):
        excess = depths[name] - least[name]
        for kept in range(min(4, excess) - 1, -1, -1):
            fewer = {**depths, name: least[name] + kept * excess // 4}
            if not (search.has(0.1) and search.quick(fewer, limit)):
                break
            depths = fewer
    return depths


def _without(search: Search, depths: Depths, limit: Cycles) -> Depths:
    """Without the FIFOs that do nothing of those that need not hold much: all at once, or half of them, ..."""
    groups = [[s.name for s in search.nodes if isinstance(s.unit, Fifo) and depths[s.name] <= LEAST_FIFO]]
    while groups and search.has(0.5):
        group = groups.pop()
        fewer = {**depths, **dict.fromkeys(group, 0)}
        if search.quick(fewer, limit):
            depths = fewer
        elif len(group) > 1:
            half = len(group) // 2
            groups += [group[:half], group[half:]]
    return depths


def _smaller(search: Search, depths: Depths, limit: Cycles, name: str) -> Depths:
    """With the least depth of one FIFO that lets the first frame through in time, and is enough for pauses."""

    def in_time(depth: int) -> bool:
        first = search.first({**depths, name: depth}, limit[0])
        return first is not None and first <= limit[0]

    low, high = 0, depths[name]  # low is too small, or not looked at
    step = 1
    while high - low > 1 and search.has(0.8):
        # What comes in is mostly about right.
        depth = max(1, high - step) if not low else (low + high) // 2
        low, high = (low, depth) if in_time(depth) else (depth, high)
        step = max(4 * step, depths[name] // 64)
    low = high - 1
    while not search.moves({**depths, name: high}):
        if not search.has():
            return depths
        low, high = high, max(high + 1, (high + depths[name]) // 2)
    while high - low > 1 and search.has():
        depth = (low + high) // 2
        low, high = (low, depth) if search.moves({**depths, name: depth}) else (depth, high)
    return {**depths, name: high}


def _accepted(
    search: Search, depths: Depths, limit: Cycles, fewer: Depths, names: Sequence[str]
) -> tuple[Depths, Cycles]:  # fmt: skip
    """With fewer words in these buffers, as far as that is enough for all frames: in all, or in half of them, ..."""
    groups = [list(names)]
    while groups and search.has():
        group = groups.pop()
        some = {**depths, **{name: fewer[name] for name in group}}
        found = search.as_fast(some, limit)
        if found:
            depths, limit = some, found
        elif len(group) > 1:
            half = len(group) // 2
            groups += [group[:half], group[half:]]
    return search.trimmed(depths), limit


def _least(search: Search, depths: Depths, limit: Cycles, name: str) -> tuple[Depths, Cycles]:
    """With the least depth of one FIFO, if the effort is enough."""
    low, depth = -1, depths[name] - 1  # low is too small, or not looked at
    while low < depth and search.has():
        fewer = {**depths, name: depth}
        found = search.as_fast(fewer, limit)
        if found:
            depths, limit = search.trimmed(fewer), found
        else:
            low = depth
        depth = (low + depths[name]) // 2
    if low == 1 and depths[name] == LEAST_FIFO and search.has():
        fewer = {**depths, name: 0}
        found = search.as_fast(fewer, limit)
        return (fewer, found) if found else (depths, limit)
    return depths, limit
