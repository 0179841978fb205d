"""Searches smaller depths of buffers that cost no cycle, by simulating the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hlsgen.cycle_model.deadlock import feed_frame
from hlsgen.cycle_model.runs import ENDLESS
from hlsgen.cycle_model.simulate import Simulation, WorkBudget
from hlsgen.cycle_model.timing_models import Latency, TimingModel, exact, fewest_beats
from hlsgen.cycle_model.wiring import Bounds, BudgetExceeded
from hlsgen.dataflow.units import ConvUnit, Fifo, FrameMemory, Node, PoolUnit, SlidingWindow, WindowUnit

#: The smallest depth with which hg_fifo passes a beat every cycle.
MIN_FIFO_DEPTH = 2

Depths = dict[str, int]
#: Latency and interval.
Cycles = tuple[int, int]


@dataclass
class Search:
    """Simulates variants of a network with other depths, each at most once. A depth of 0 removes a FIFO.

    `work` counts the simulated beats, or the equivalent work in runs of beats; `effort` limits it. A simulation that
    would exceed the remaining effort counts as too slow. `lates`: limits of the first frame that a variant exceeds.
    `only_runs`: a simulation that would continue beat by beat counts as too slow too, if a limit is given. `budget`:
    for simulations without a limit, which end with BudgetExceeded.
    """

    nodes: Sequence[Node]
    latency: Latency
    effort: int
    work: int = 0
    firsts: dict[tuple[int, ...], int | None] = field(default_factory=dict)
    measurements: dict[tuple[int, ...], Cycles | None] = field(default_factory=dict)
    occupied: dict[tuple[int, ...], Depths] = field(default_factory=dict)
    moving: dict[tuple[int, ...], bool] = field(default_factory=dict)
    lates: dict[tuple[int, ...], int] = field(default_factory=dict)
    begun: tuple[tuple[int, ...], Simulation] | None = None
    only_runs: bool = False
    budget: WorkBudget | None = None

    def has_effort(self, share: float = 1.0) -> bool:
        """True if this share of the effort is not spent yet."""
        return self.work < share * self.effort

    @cached_property
    def forks(self) -> bool:
        """True if units could wait for each other at all."""
        return any(len(node.outputs) > 1 for node in self.nodes)

    @cached_property
    def has_states(self) -> bool:
        """True if the times of frames repeat late or never, so that simulations of many frames are long."""
        return any(isinstance(node.unit, FrameMemory) for node in self.nodes)

    def variant(self, depths: Depths) -> list[Node]:
        """The nodes with these depths."""
        return with_depths(self.nodes, depths)

    def simulation(self, depths: Depths, latest: int | None) -> Simulation:
        """The simulation of a variant, with all streams empty.

        `latest`: limit of the end of the first frame; None: no limit.
        """
        return Simulation(self.variant(depths), self.model, bounds=self._bounds(latest))

    @cached_property
    def model(self) -> TimingModel:
        """The model of all variants."""
        return exact(self.latency)

    @cached_property
    def model_of_pauses(self) -> TimingModel:
        """The model in which no pauses may lead to a deadlock."""
        return fewest_beats()

    def _bounds(self, latest: int | None) -> Bounds | None:
        if latest is None:
            return Bounds(ENDLESS, self.remaining, strict=True) if self.budget else None
        return Bounds(latest, max(0, self.effort - self.work), self.only_runs)

    @property
    def remaining(self) -> int:
        """The budget that is not spent yet."""
        return max(0, self.budget.remaining - self.work) if self.budget else ENDLESS

    def first(self, depths: Depths, latest: int | None = None) -> int | None:
        """The latency of the first frame, or None if it does not pass, or not by `latest`."""
        key = tuple(depths.values())
        if key not in self.firsts:
            if latest is not None and latest <= self.lates.get(key, -1):
                return None
            network = self.simulation(depths, latest)
            try:
                network.feed(1)
                self.firsts[key] = None if network.blocked() else network.latency()
                self.begun = key, network
            except BudgetExceeded:
                if latest is None:
                    raise
                self.lates[key] = latest
                return None
            finally:
                self.work += network.work()
        return self.firsts[key]

    def is_deadlock_free(self, depths: Depths) -> bool:
        """True if no pauses of the ports can lead to a deadlock."""
        key = tuple(depths.values())
        if not self.forks:
            return True
        if key not in self.moving:
            network = Simulation(self.variant(depths), self.model_of_pauses, bounds=self._bounds(ENDLESS))
            try:
                feed_frame(network)
                self.moving[key] = not network.blocked()
            except BudgetExceeded:
                self.moving[key] = False
            self.work += network.work()
        return self.moving[key]

    def measured(self, depths: Depths, limit: Cycles | None = None) -> Cycles | None:
        """(latency, interval), or None if the network deadlocks or is certainly slower than the limit."""
        key = tuple(depths.values())
        if key not in self.measurements:
            first = self.first(depths, limit[0] if limit else None)
            if first is None or (limit and first > limit[0]):
                return None
            latest = limit[0] if limit else None
            network = self.begun[1] if self.begun and self.begun[0] == key else self.simulation(depths, latest)
            self.begun, work_before = None, network.work()
            try:
                fast_enough = network.run(limit[1] if limit else None)
            except BudgetExceeded:
                if limit is None:
                    raise
                fast_enough = False
            self.measurements[key] = network.result() if fast_enough else None
            self.occupied[key] = network.fifo_occupancy() if fast_enough else {}
            self.work += network.work() - work_before
        return self.measurements[key]

    def in_runs(self, depths: Depths, goal: int, first: int, total: int) -> Cycles | None:
        """As `measured`, if the simulations of the first frame and of all frames take at most this work, in runs."""
        limit, effort = (ENDLESS, goal), self.effort
        self.only_runs = True
        try:
            self.effort = self.work + min(first, self.remaining)
            if self.first(depths, ENDLESS) is None:
                return None
            total = min(total, self.remaining)
            self.effort = self.work + total
            if self.begun:
                self.begun[1].bound(Bounds(ENDLESS, total, only_runs=True))
            return self.measured(depths, limit)
        finally:
            self.only_runs, self.effort = False, effort

    def quick(self, depths: Depths, limit: Cycles) -> bool:
        """True if the first frame is no later than the limit and no deadlock is possible."""
        first = self.first(depths, limit[0])
        return first is not None and first <= limit[0] and self.is_deadlock_free(depths)

    def begins_well(self, depths: Depths, limit: Cycles) -> bool:
        """True if the first three frames keep the limit and no deadlock is possible: later frames are not simulated."""
        if not self.quick(depths, limit):
            return False
        network = self.simulation(depths, limit[0])
        try:
            network.feed(3)
        except BudgetExceeded:
            return False
        finally:
            self.work += network.work()
        ends = network.ends()
        return not network.blocked() and min(ends[2] - ends[1], ends[1] - ends[0]) <= limit[1]

    def as_fast(self, depths: Depths, limit: Cycles) -> Cycles | None:
        """The cycles of the variant if they do not exceed the limit and no deadlock is possible; else None."""
        cycles = self.measured(depths, limit) if self.quick(depths, limit) else None
        return cycles if cycles and meets_limit(cycles, limit) else None

    def trimmed(self, depths: Depths) -> Depths:
        """The depths without the room in FIFOs that a measured simulation never used: no time changes."""
        key = tuple(depths.values())
        fewer = {name: min(depth, self.occupied[key].get(name, depth)) for name, depth in depths.items()}
        fewer_key = tuple(fewer.values())
        self.firsts[fewer_key], self.measurements[fewer_key], self.occupied[fewer_key] = (
            self.firsts[key],
            self.measurements[key],
            self.occupied[key],
        )
        return fewer if self.is_deadlock_free(fewer) else depths


def meets_limit(cycles: Cycles, limit: Cycles) -> bool:
    """True if neither latency nor interval exceeds the limit."""
    return cycles[0] <= limit[0] and cycles[1] <= limit[1]


def with_depths(nodes: Sequence[Node], depths: Depths) -> list[Node]:
    """The nodes with other depths; a FIFO of depth 0 is removed."""
    bypass = {
        node.outputs[0]: node.inputs[0] for node in nodes if isinstance(node.unit, Fifo) and depths.get(node.name) == 0
    }
    result = []

    def source_of(name: str) -> str:
        """The stream that replaces the output of removed FIFOs."""
        while name in bypass:
            name = bypass[name]
        return name

    for node in nodes:
        inputs = tuple(map(source_of, node.inputs))
        unit, depth = node.unit, depths.get(node.name)
        if isinstance(unit, Fifo) and depth == 0:
            continue
        if isinstance(unit, SlidingWindow) and depth is not None:
            unit = unit.with_depth(depth)
        elif isinstance(unit, ConvUnit | PoolUnit | Fifo) and depth is not None and depth != unit.depth:
            unit = replace(unit, depth=depth)
        # An unchanged node stays the same object: its flow is known.
        unchanged = unit is node.unit and inputs == node.inputs
        result.append(node if unchanged else replace(node, unit=unit, inputs=inputs))
    return result


def narrow(search: Search, depths: Depths, min_depths: Depths, limit: Cycles) -> tuple[Depths, Cycles, tuple[str, ...]]:
    """Removes depth that costs no cycle: from the window memories, then from the FIFOs.

    Returns (depths, (latency, interval), names of the FIFOs for which one word less would cost cycles). The depth that
    the first frame needs is found quickly; usually, later frames need no more.
    """
    depths, limit = _without_copies(search, search.trimmed(depths), limit)
    fewer = _shrink_windows(search, depths, min_depths, limit)
    fewer = _remove_fifos(search, fewer, limit)
    bits = {s.name: s.result.bits for s in search.nodes if isinstance(s.unit, Fifo)}
    names = sorted(bits, key=lambda n: -bits[n] * depths[n])
    for name in names:
        fewer = _shrink_for_first_frame(search, fewer, limit, name)
    depths, limit = _accept(search, depths, limit, fewer, [n for n in depths if fewer[n] < depths[n]])
    queue, critical = deque(n for n in names if depths[n]), set[str]()
    while queue and search.has_effort():
        name = queue.popleft()
        fewer, cycles = _shrink_to_limit(search, depths, limit, name)
        if fewer != depths:
            depths, limit, critical = fewer, cycles, set()
            queue = deque(n for n in names if depths[n] and n != name)
        if depths[name] and search.has_effort():
            less = search.measured({**depths, name: depths[name] - 1}, limit)
            critical |= set() if less and meets_limit(less, limit) else {name}
    return depths, limit, tuple(name for name in bits if name in critical)


def _without_copies(search: Search, depths: Depths, limit: Cycles) -> tuple[Depths, Cycles]:
    """Removes FIFOs after memories of states: such a FIFO would hold a second copy of its state."""
    memories = {node.outputs[0] for node in search.nodes if isinstance(node.unit, FrameMemory)}
    copies = [node.name for node in search.nodes if isinstance(node.unit, Fifo) and node.inputs[0] in memories]
    return _accept(search, depths, limit, {**depths, **dict.fromkeys(copies, 0)}, copies) if copies else (depths, limit)


def _shrink_windows(search: Search, depths: Depths, min_depths: Depths, limit: Cycles) -> Depths:
    """Removes the depth of window memories above the minimum: of all memories, or of the largest in quarters."""
    bits = {s.name: s.source.bits for s in search.nodes if isinstance(s.unit, WindowUnit)}
    fewer = {**depths, **{name: min_depths[name] for name in bits}}
    if search.quick(fewer, limit):
        return fewer
    for name in sorted(bits, key=lambda n: -bits[n] * (depths[n] - min_depths[n])):
        excess = depths[name] - min_depths[name]
        for quarters in range(min(4, excess) - 1, -1, -1):
            fewer = {**depths, name: min_depths[name] + quarters * excess // 4}
            if not (search.has_effort(0.1) and search.quick(fewer, limit)):
                break
            depths = fewer
    return depths


def _remove_fifos(search: Search, depths: Depths, limit: Cycles) -> Depths:
    """Removes the useless FIFOs among the shallow ones: all at once, or half of them, and so on."""
    shallow = [s.name for s in search.nodes if isinstance(s.unit, Fifo) and depths[s.name] <= MIN_FIFO_DEPTH]
    removed = dict.fromkeys(shallow, 0)
    return _bisected(search, depths, removed, shallow, lambda tried: search.quick(tried, limit), share=0.5)


def _shrink_for_first_frame(search: Search, depths: Depths, limit: Cycles, name: str) -> Depths:
    """The smallest depth of one FIFO that passes the first frame in time and excludes a deadlock."""

    def in_time(depth: int) -> bool:
        first = search.first({**depths, name: depth}, limit[0])
        return first is not None and first <= limit[0]

    low, high = 0, depths[name]  # low is too small, or not tried
    step = 1
    while high - low > 1 and search.has_effort(0.8):
        # The given depth is usually close to the result.
        depth = max(1, high - step) if not low else (low + high) // 2
        low, high = (low, depth) if in_time(depth) else (depth, high)
        step = max(4 * step, depths[name] // 64)
    low = high - 1
    while not search.is_deadlock_free({**depths, name: high}):
        if not search.has_effort():
            return depths
        low, high = high, max(high + 1, (high + depths[name]) // 2)
    while high - low > 1 and search.has_effort():
        depth = (low + high) // 2
        low, high = (low, depth) if search.is_deadlock_free({**depths, name: depth}) else (depth, high)
    return {**depths, name: high}


def _accept(
    search: Search, depths: Depths, limit: Cycles, fewer: Depths, names: Sequence[str]
) -> tuple[Depths, Cycles]:
    """Reduces the depths of these buffers as far as that suffices for all frames: of all, or of half of them, and so
    on.

    In networks with states, the first frames decide, and one simulation of all frames confirms the result.
    """
    if search.has_states:
        promising = _bisected(search, depths, fewer, names, lambda tried: search.begins_well(tried, limit))
        cycles = search.as_fast(promising, limit)
        if cycles:
            return search.trimmed(promising), cycles

    def accepted(tried: Depths) -> bool:
        nonlocal limit
        cycles = search.as_fast(tried, limit)
        limit = cycles or limit
        return cycles is not None

    depths = _bisected(search, depths, fewer, names, accepted)
    return search.trimmed(depths), limit


def _bisected(
    search: Search,
    depths: Depths,
    fewer: Depths,
    names: Sequence[str],
    accepted: Callable[[Depths], bool],
    share: float = 1.0,
) -> Depths:
    """Takes the fewer depths of all these buffers if they are accepted; else of half of them, and so on.

    `share`: the share of the effort at which the search ends.
    """
    groups = [list(names)]
    while groups and search.has_effort(share):
        group = groups.pop()
        partly_reduced = {**depths, **{name: fewer[name] for name in group}}
        if accepted(partly_reduced):
            depths = partly_reduced
        elif len(group) > 1:
            half = len(group) // 2
            groups += [group[:half], group[half:]]
    return depths


def _shrink_to_limit(search: Search, depths: Depths, limit: Cycles, name: str) -> tuple[Depths, Cycles]:
    """The smallest depth of one FIFO that keeps the cycles, if the effort is enough."""
    low, depth = -1, depths[name] - 1  # low is too small, or not tried
    while low < depth and search.has_effort():
        fewer = {**depths, name: depth}
        cycles = search.as_fast(fewer, limit)
        if cycles:
            depths, limit = search.trimmed(fewer), cycles
        else:
            low = depth
        depth = (low + depths[name]) // 2
    if low == 1 and depths[name] == MIN_FIFO_DEPTH and search.has_effort():
        fewer = {**depths, name: 0}
        cycles = search.as_fast(fewer, limit)
        return (fewer, cycles) if cycles else (depths, limit)
    return depths, limit
