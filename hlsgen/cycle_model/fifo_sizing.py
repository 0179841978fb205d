"""Chooses the depths of all buffers: a frame every `bottleneck` cycles, with as little memory as that needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlsgen.cycle_model.bus_ports import merge_ports, split_ports
from hlsgen.cycle_model.counted_sizing import counted
from hlsgen.cycle_model.deadlock import find_deadlock
from hlsgen.cycle_model.fifo_shrinking import MIN_FIFO_DEPTH, Search, narrow
from hlsgen.cycle_model.fifo_shrinking import with_depths as with_depths
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.cycle_model.processes import ENDLESS
from hlsgen.cycle_model.simulate import Simulation, WorkBudget, beats_of, has_loop
from hlsgen.cycle_model.timing_models import Latency, busy, exact
from hlsgen.cycle_model.wiring import BudgetExceeded
from hlsgen.dataflow import units

#: Units before which a FIFO does not help: a FIFO after them does as well, or they have their own memory.
EVEN_UNITS = (
    units.FrameStart
    | units.Port
    | units.Fifo
    | units.Slice
    | units.WidthConverter
    | units.Fork
    | units.FloatKeyUnit
    | units.RescaleUnit
    | units.FloatUnit
    | units.AdderMatVec
    | units.NeuronUnit
    | units.ProgramUnit
    | units.WindowUnit
)

#: Beats that the search for smaller depths may simulate: some seconds. The simulations for correct depths are not
#: counted; they take long in networks of HUGE beats a frame or more. Networks with states are simulated without the
#: compiled kernel, ten times as long for each beat.
EFFORT, EFFORT_STATES, EFFORT_HUGE, HUGE = 10_000_000, 2_000_000, 1_000_000, 1_000_000
#: Frames of a simulation with unlimited buffers.
OPEN_FRAMES = 4
#: The same in networks of HUGE beats. Their buffers are not sized for the first frame in particular.
HUGE_FRAMES = 2
#: Share of memory that may be added so that the first frame does not stall.
FIRST_FRAME_SHARE = 0.25
#: Most doublings of the depths; a network that is not faster then is taken to be as fast as possible.
GROWTH = 8
#: Buffers of networks of HUGE beats: multiples of the depths for evenly spaced frames. The smallest multiple is chosen
#: with which simulation takes no more work than FIRST_WORK (first frame) and ALL_WORK (all frames), in runs a beat.
ROOMY, FIRST_WORK, ALL_WORK = (1.0, 1.25, 1.5, 2.0), 2.0, 6.0
#: Most work of simulating a network of HUGE beats, in beats: about ten seconds. The first of several simulations may
#: take the share FIRST_SHARE. Above that, sizes come from counts of beats, and cycles are estimates.
BUDGET, FIRST_SHARE = 20_000_000, 0.15


@dataclass(frozen=True, eq=False)
class SizedBuffers:
    """The nodes with the chosen depths, without useless FIFOs, and their simulated cycles.

    `bottleneck`: lower bound of the interval for any depths. `critical`: FIFOs whose depth, reduced by one, costs
    latency or interval, or is a deadlock, even if the ports never pause. The other FIFOs have the smallest depth with
    which no pauses of the ports lead to a deadlock. `spare`: the share added to all depths so that the network can be
    simulated: smaller depths were not tried. `exact`: False if it was not simulated; the interval is then the
    bottleneck, and the latency an estimate.
    """

    nodes: list[units.Node]
    latency: int
    interval: int
    bottleneck: int
    critical: tuple[str, ...]
    spare: float = 0.0
    exact: bool = True


def size(
    nodes: Sequence[units.Node], latency: Latency, effort: int | None = None, budget: int | None = None
) -> SizedBuffers:
    """Chooses the depths of all FIFOs and window memories. The depths in `nodes` are ignored.

    Adds FIFOs if the network cannot be as fast as its slowest unit without them. `budget`: replaces BUDGET. The same
    nodes always give the same depths. Raises ValueError if the network deadlocks with any depths.
    """
    ports, nodes = nodes, split_ports(nodes)
    bounded = is_huge(nodes) and not has_loop(nodes)
    try:
        sized = _size_by_simulation(
            nodes, latency, effort, WorkBudget(BUDGET if budget is None else budget) if bounded else None
        )
    except BudgetExceeded:
        estimate = counted(nodes, latency)
        sized = SizedBuffers(estimate.nodes, estimate.latency, estimate.interval, estimate.interval, (), exact=False)
    return replace(sized, nodes=merge_ports(sized.nodes, ports))


def _size_by_simulation(
    nodes: list[units.Node], latency: Latency, effort: int | None, budget: WorkBudget | None
) -> SizedBuffers:
    """Sizes buffers by simulation. Raises BudgetExceeded at the budget."""
    bottleneck = max(busy(node) for node in nodes)
    ideal, interval, first_frame = _measure_unlimited(nodes, latency, bottleneck, budget)
    if interval > bottleneck:
        with_more_fifos = _with_fifos(nodes)
        unlimited = _measure_unlimited(with_more_fifos, latency, bottleneck, budget)
        if unlimited[1] < interval:
            nodes, (ideal, interval, first_frame) = with_more_fifos, unlimited
    min_depths = {s.name: min_depth(s.unit) for s in nodes if isinstance(s.unit, units.WindowUnit)}
    min_depths |= {s.name: MIN_FIFO_DEPTH for s in nodes if isinstance(s.unit, units.Fifo)}
    needed = _occupancy(nodes, latency, max(bottleneck, interval), min_depths, budget)
    needed = _without_deadlock(nodes, needed, budget)
    if effort is None:
        effort = EFFORT_HUGE if is_huge(nodes) else EFFORT
    search = Search(nodes, latency, effort, budget=budget)
    if search.has_states:
        search.effort = min(search.effort, EFFORT_STATES)
    enlarged = _enlarged(search, needed, max(bottleneck, interval)) if is_huge(nodes) else None
    spare, depths, limit = enlarged or (0.0, *_doubled(search, needed, max(bottleneck, interval)))
    search.budget = None
    if limit[0] > ideal and not is_huge(nodes):
        depths, limit = _first_frame(search, depths, limit, first_frame)
    search.work = 0
    depths, limit, critical = narrow(search, depths, min_depths, limit)
    return SizedBuffers(search.variant(depths), limit[0], limit[1], bottleneck, critical, spare)


def is_huge(nodes: Sequence[units.Node]) -> bool:
    """True if the sizes of buffers are chosen by few simulations."""
    return beats_of(nodes) >= HUGE


def _with_fifos(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes with a FIFO before every unit that consumes beats unevenly and can store few of them."""
    result: list[units.Node] = []
    producers = {wire: node for node in nodes for wire in node.outputs}
    for node in nodes:
        inputs = list(node.inputs)
        for n, wire in enumerate(inputs):
            narrows = isinstance(node.unit, units.WidthConverter) and node.source.lanes > node.result.lanes
            uneven = narrows or not isinstance(node.unit, EVEN_UNITS)
            if uneven and not isinstance(producers[wire].unit, units.Fifo | units.Port):
                inputs[n] = f"{wire}_wait"
                stream = node.sources[n]
                result.append(
                    units.Node(inputs[n], units.Fifo(MIN_FIFO_DEPTH), (wire,), (stream,), (inputs[n],), stream)
                )
        result.append(replace(node, inputs=tuple(inputs)))
    return result


def _bits(nodes: Sequence[units.Node], depths: dict[str, int]) -> int:
    """Bits of all buffers together."""
    return sum(depths.get(node.name, 0) * node.source.bits for node in nodes)


def _measure_unlimited(
    nodes: Sequence[units.Node], latency: Latency, goal: int, budget: WorkBudget | None
) -> tuple[int, int, dict[str, int]]:
    """(latency, interval, occupancy of the first frame) with unlimited buffers.

    If some frames reach the goal as their interval, all frames are taken to reach it: without limits, times never
    repeat.
    """
    bounds = budget.bounds(FIRST_SHARE) if budget else None
    network = Simulation(nodes, exact(latency, unlimited=True), bounds=bounds, counts=is_huge(nodes))
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
    nodes: Sequence[units.Node], latency: Latency, interval: int, min_depths: dict[str, int], budget: WorkBudget | None
) -> dict[str, int]:
    """Occupancy of unlimited buffers if a frame arrives every `interval` cycles; at least `min_depths`."""
    bounds = budget.bounds() if budget else None
    network = Simulation(nodes, exact(latency, unlimited=True), bounds=bounds, counts=is_huge(nodes))
    network.feed(HUGE_FRAMES if is_huge(nodes) else 3, interval, is_huge(nodes))
    while not is_huge(nodes) and not network.period() and network.frames < OPEN_FRAMES:
        network.feed(1, interval)
    occupancy = network.occupancy()
    if budget:
        budget.spend(network)
    return {name: max(depth, occupancy[name]) for name, depth in min_depths.items()}


def _without_deadlock(nodes: Sequence[units.Node], depths: dict[str, int], budget: WorkBudget | None) -> dict[str, int]:
    """Adds depth until no pauses can lead to a deadlock. Raises ValueError if no depth is enough."""
    if is_huge(nodes) and all(len(node.outputs) <= 1 for node in nodes):
        # If there is no fork, no circle of waiting nodes is possible: each memory has at least the minimum depth.
        return depths
    circle = find_deadlock(with_depths(nodes, depths), budget)
    unavoidable = find_deadlock(with_depths(nodes, dict.fromkeys(depths, ENDLESS)), budget) if circle else ()
    if unavoidable:
        raise ValueError("; ".join(map(str, unavoidable)))
    fifos = {s.name for s in nodes if isinstance(s.unit, units.Fifo)}
    while circle:
        # A buffer with room for a frame is never full, so this ends.
        full = [blocked.node for blocked in circle if blocked.full and blocked.node in fifos]
        growing = full or [blocked.node for blocked in circle if blocked.node in depths] or list(depths)
        depths = {**depths, **{name: depths[name] + 1 + depths[name] // 16 for name in growing}}
        circle = find_deadlock(with_depths(nodes, depths), budget)
    return depths


def _doubled(search: Search, depths: dict[str, int], goal: int) -> tuple[dict[str, int], tuple[int, int]]:
    """(depths, (latency, interval)) after doubling all depths until the interval is the goal, at most GROWTH times."""
    if search.has_states:
        # Frames that are too late are found soon; the best of such depths are measured only if no others are found.
        for growth in range(GROWTH + 1):
            larger = {name: depth << growth for name, depth in depths.items()}
            cycles = search.measured(larger, (ENDLESS, goal))
            if cycles and cycles[1] <= goal:
                return larger, cycles
        search.measurements.clear()
    best = search.measured(depths)
    chosen = depths
    for _ in range(GROWTH):
        if best and best[1] <= goal:
            break
        depths = {name: 2 * depth for name, depth in depths.items()}
        cycles = search.measured(depths)
        if cycles and (best is None or cycles[1] < best[1]):
            best, chosen = cycles, depths
    if best is None:
        raise ValueError("the network blocks with buffers of any depth")
    return chosen, best


def _enlarged(
    search: Search, depths: dict[str, int], goal: int
) -> tuple[float, dict[str, int], tuple[int, int]] | None:
    """(added share, depths, (latency, interval)): slightly larger depths with which simulation is fast.

    Buffers of the smallest depth alternate between full and empty, and units wait for each other in many small steps.
    Slightly larger depths prevent this.
    """
    beats = beats_of(search.nodes)
    for share in ROOMY:
        larger = {name: math.ceil(share * depth) for name, depth in depths.items()}
        cycles = search.in_runs(larger, goal, int(FIRST_WORK * beats), int(ALL_WORK * beats))
        if cycles and cycles[1] <= goal:
            return share - 1, larger, cycles
    search.measurements.clear()
    return None


def _first_frame(
    search: Search, depths: dict[str, int], limit: tuple[int, int], occupancy: dict[str, int]
) -> tuple[dict[str, int], tuple[int, int]]:
    """Adds the depth with which the first frame does not stall or, if that is too much memory, a share of it."""
    full_depths = {name: max(depth, occupancy[name]) for name, depth in depths.items()}
    partial_depths = {
        name: min(full_depths[name], int(depth * (1 + FIRST_FRAME_SHARE)) + 1) for name, depth in depths.items()
    }
    affordable = _bits(search.nodes, full_depths) <= (1 + FIRST_FRAME_SHARE) * _bits(search.nodes, depths)
    chosen_depths = full_depths if affordable else partial_depths
    cycles = search.as_fast(chosen_depths, (limit[0] - 1, limit[1]))
    return (chosen_depths, cycles) if cycles else (depths, limit)
