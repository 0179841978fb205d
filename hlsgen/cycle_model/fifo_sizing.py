"""Chooses the depths of all buffers: a frame every `bottleneck` cycles, and no more memory than that takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlsgen.cycle_model.bus_ports import apart, together
from hlsgen.cycle_model.counted_sizing import counted
from hlsgen.cycle_model.deadlock import find_deadlock
from hlsgen.cycle_model.fifo_shrinking import LEAST_FIFO, Search, narrow
from hlsgen.cycle_model.fifo_shrinking import with_depths as with_depths
from hlsgen.cycle_model.line_buffers import least_depth
from hlsgen.cycle_model.processes import ENDLESS
from hlsgen.cycle_model.simulate import Budget, Simulation, beats_of, has_loop
from hlsgen.cycle_model.units import Latency, busy, exact, traits
from hlsgen.cycle_model.wiring import Ended
from hlsgen.dataflow.units import Fifo, Node, Port, WidthConverter, WindowUnit

#: Beats that the search for smaller depths may simulate: some seconds. What correct depths need is simulated beyond
#: that, and takes long enough in networks of HUGE beats a frame or more.
EFFORT, EFFORT_HUGE, HUGE = 10_000_000, 1_000_000, 1_000_000
#: Frames of a simulation with unlimited buffers.
OPEN_FRAMES = 4
#: And in networks of HUGE beats. What they do with the first frame in particular is not looked for, either.
HUGE_FRAMES = 2
#: Share of memory that may be added so that the first frame does not wait.
FIRST_FRAME_SHARE = 0.25
#: How often depths are doubled at most; a network that is not faster then counts as being as fast as it can.
GROWTH = 8
#: Buffers that networks of HUGE beats get, of those with which a frame could come every so many cycles if all came at
#: its pace: the first with which the simulation takes no more work than these, for each beat of a frame, in runs.
ROOMY, FIRST_WORK, ALL_WORK = (1.0, 1.25, 1.5, 2.0), 2.0, 6.0


#: What simulating a network of HUGE beats may take, in beats, one by one: about ten seconds. The first of several
#: simulations may take a share of it. Beyond that, sizes come from counts of beats, and cycles are estimates.
BUDGET, FIRST_SHARE = 20_000_000, 0.15


@dataclass(frozen=True, eq=False)
class SizedBuffers:
    """The nodes with the chosen depths, without useless FIFOs, and the cycles that simulation gives for them.

    `bottleneck`: the least interval that any depths could give.
    `critical`: FIFOs whose depth, less by one, costs latency or interval, or is a deadlock, though the ports never
    pause. The other FIFOs have the least depth with which no pauses of the ports lead to a deadlock.
    `spare`: the share of all depths that is added so that the network can be simulated: less was not tried.
    `exact`: False if it was not simulated; the interval is then the bottleneck, and the latency an estimate.
    """

    nodes: list[Node]
    latency: int
    interval: int
    bottleneck: int
    critical: tuple[str, ...]
    spare: float = 0.0
    exact: bool = True


def size(
    nodes: Sequence[Node], latency: Latency, effort: int | None = None, budget: int | None = None
) -> SizedBuffers:  # fmt: skip
    """Chooses the depths of all FIFOs and of the memories of windows. The depths in `nodes` do not matter.

    It adds FIFOs if the network cannot be as fast as its slowest unit without them. `budget`: instead of BUDGET.
    The same nodes always give the same depths. Raises ValueError if the network blocks with any depths.
    """
    ports, nodes = nodes, apart(nodes)
    bounded = is_huge(nodes) and not has_loop(nodes)
    try:
        sized = _searched(nodes, latency, effort, Budget(BUDGET if budget is None else budget) if bounded else None)
    except Ended:
        found = counted(nodes, latency)
        sized = SizedBuffers(found.nodes, found.latency, found.interval, found.interval, (), exact=False)
    return replace(sized, nodes=together(sized.nodes, ports))


def _searched(nodes: list[Node], latency: Latency, effort: int | None, budget: Budget | None) -> SizedBuffers:
    """By simulation. Raises Ended at the budget."""
    bottleneck = max(busy(node) for node in nodes)
    ideal, interval, first_frame = _open(nodes, latency, bottleneck, budget)
    if interval > bottleneck:
        more = _with_fifos(nodes)
        found = _open(more, latency, bottleneck, budget)
        if found[1] < interval:
            nodes, (ideal, interval, first_frame) = more, found
    least = {s.name: least_depth(s.unit) for s in nodes if isinstance(s.unit, WindowUnit)}
    least |= {s.name: LEAST_FIFO for s in nodes if isinstance(s.unit, Fifo)}
    wanted = _occupancy(nodes, latency, max(bottleneck, interval), least, budget)
    wanted = _without_deadlock(nodes, wanted, budget)
    if effort is None:
        effort = EFFORT_HUGE if is_huge(nodes) else EFFORT
    search = Search(nodes, latency, effort, budget=budget)
    roomy = _roomy(search, wanted, max(bottleneck, interval)) if is_huge(nodes) else None
    spare, depths, limit = roomy or (0.0, *_grow(search, wanted, max(bottleneck, interval)))
    search.budget = None
    if limit[0] > ideal and not is_huge(nodes):
        depths, limit = _first_frame(search, depths, limit, first_frame)
    search.work = 0
    depths, limit, critical = narrow(search, depths, least, limit)
    return SizedBuffers(search.variant(depths), limit[0], limit[1], bottleneck, critical, spare)


def is_huge(nodes: Sequence[Node]) -> bool:
    """Whether the sizes of buffers are taken from few simulations."""
    return beats_of(nodes) >= HUGE


def _with_fifos(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with a FIFO in front of every unit that takes beats at an uneven pace and can store few of them."""
    result: list[Node] = []
    made = {wire: node for node in nodes for wire in node.outputs}
    for node in nodes:
        inputs = list(node.inputs)
        for n, wire in enumerate(inputs):
            narrows = isinstance(node.unit, WidthConverter) and node.source.lanes > node.result.lanes
            uneven = narrows or not traits(node.unit).even
            if uneven and not isinstance(made[wire].unit, Fifo | Port):
                inputs[n] = f"{wire}_wait"
                stream = node.sources[n]
                result.append(Node(inputs[n], Fifo(LEAST_FIFO), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(node, inputs=tuple(inputs)))
    return result


def _bits(nodes: Sequence[Node], depths: dict[str, int]) -> int:
    """Bits of all buffers together."""
    return sum(depths.get(node.name, 0) * node.source.bits for node in nodes)


def _open(
    nodes: Sequence[Node], latency: Latency, goal: int, budget: Budget | None
) -> tuple[int, int, dict[str, int]]:  # fmt: skip
    """(latency, interval, occupancy of the first frame) with unlimited buffers.

    If the interval is the goal for some frames, it counts as the goal for ever: without limits, times never repeat.
    """
    network = Simulation(nodes, exact(latency, unlimited=True), bounds=budget.bounds(FIRST_SHARE) if budget else None)
    first_frame: dict[str, int] = {}
    if is_huge(nodes):
        network.feed(HUGE_FRAMES)
    else:
        network.feed(1)
        first_frame = network.occupancy()
        network.feed(OPEN_FRAMES - 1)
    if network.blocked() or (network.result()[1] > goal and not network.run()):
        raise ValueError("; ".join(map(str, network.blocked())))
    if budget:
        budget.spend(network)
    return *network.result(), first_frame


def _occupancy(
    nodes: Sequence[Node], latency: Latency, interval: int, least: dict[str, int], budget: Budget | None
) -> dict[str, int]:  # fmt: skip
    """Occupancy of unlimited buffers when a frame comes every `interval` cycles; at least `least`."""
    network = Simulation(nodes, exact(latency, unlimited=True), bounds=budget.bounds() if budget else None)
    network.feed(HUGE_FRAMES if is_huge(nodes) else 3, interval, is_huge(nodes))
    while not is_huge(nodes) and not network.period() and network.frames < OPEN_FRAMES:
        network.feed(1, interval)
    occupancy = network.occupancy()
    if budget:
        budget.spend(network)
    return {name: max(depth, occupancy[name]) for name, depth in least.items()}


def _without_deadlock(nodes: Sequence[Node], depths: dict[str, int], budget: Budget | None) -> dict[str, int]:
    """Adds depth until no pauses can lead to a deadlock. Raises ValueError if no depth is enough."""
    if is_huge(nodes) and all(len(node.outputs) <= 1 for node in nodes):
        # Without a fork nothing can wait for each other: each memory has the least depth at least.
        return depths
    circle = find_deadlock(with_depths(nodes, depths), budget)
    never = find_deadlock(with_depths(nodes, dict.fromkeys(depths, ENDLESS)), budget) if circle else ()
    if never:
        raise ValueError("; ".join(map(str, never)))
    fifos = {s.name for s in nodes if isinstance(s.unit, Fifo)}
    while circle:
        # A buffer with room for a frame is never full, so this ends.
        full = [blocked.node for blocked in circle if blocked.full and blocked.node in fifos]
        growing = full or [blocked.node for blocked in circle if blocked.node in depths] or list(depths)
        depths = {**depths, **{name: depths[name] + 1 + depths[name] // 16 for name in growing}}
        circle = find_deadlock(with_depths(nodes, depths), budget)
    return depths


def _grow(search: Search, depths: dict[str, int], goal: int) -> tuple[dict[str, int], tuple[int, int]]:
    """Doubles all depths until the interval is the goal, at most GROWTH times. (depths, (latency, interval))."""
    best = search.measured(depths)
    chosen = depths
    for _ in range(GROWTH):
        if best and best[1] <= goal:
            break
        depths = {name: 2 * depth for name, depth in depths.items()}
        found = search.measured(depths)
        if found and (best is None or found[1] < best[1]):
            best, chosen = found, depths
    if best is None:
        raise ValueError("the network blocks with buffers of any depth")
    return chosen, best


def _roomy(
    search: Search, depths: dict[str, int], goal: int
) -> tuple[float, dict[str, int], tuple[int, int]] | None:  # fmt: skip
    """(share that is added, depths, (latency, interval)): little more room with which times are found quickly.

    Buffers that are as small as they can be are full and empty in turn, and units wait for each other in many small
    steps. With some more room they do not.
    """
    beats = beats_of(search.nodes)
    for share in ROOMY:
        more = {name: math.ceil(share * depth) for name, depth in depths.items()}
        found = search.in_runs(more, goal, int(FIRST_WORK * beats), int(ALL_WORK * beats))
        if found and found[1] <= goal:
            return share - 1, more, found
    search.known.clear()
    return None


def _first_frame(
    search: Search, depths: dict[str, int], limit: tuple[int, int], occupancy: dict[str, int]
) -> tuple[dict[str, int], tuple[int, int]]:
    """Adds the depth with which the first frame does not wait or, if that is too much memory, a share of it."""
    all_of_it = {name: max(depth, occupancy[name]) for name, depth in depths.items()}
    some = {name: min(all_of_it[name], int(depth * (1 + FIRST_FRAME_SHARE)) + 1) for name, depth in depths.items()}
    affordable = _bits(search.nodes, all_of_it) <= (1 + FIRST_FRAME_SHARE) * _bits(search.nodes, depths)
    more = all_of_it if affordable else some
    found = search.as_fast(more, (limit[0] - 1, limit[1]))
    return (more, found) if found else (depths, limit)
