"""Buffers of networks that are not simulated: no deadlock, the interval of the slowest unit, estimated cycles."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from network_bench import play
from networks import Image, Net, Random, large

from hlsgen.cycle_model import fifo_sizing
from hlsgen.cycle_model.beat_counts import needs_of, safe_depths, with_wait_fifos
from hlsgen.cycle_model.counted_sizing import counted
from hlsgen.cycle_model.deadlock import find_deadlock
from hlsgen.cycle_model.fifo_shrinking import MIN_FIFO_DEPTH, with_depths
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.cycle_model.processes import ENDLESS, Wire
from hlsgen.cycle_model.run_network import STEP, RunNetwork
from hlsgen.cycle_model.simulate import INPUT, OUTPUT, Simulation, WorkBudget, measure, simulate
from hlsgen.cycle_model.timing_models import exact, fewest_beats
from hlsgen.cycle_model.wiring import Bounds, BudgetExceeded
from hlsgen.dataflow.units import Fifo, Fork, JoinStreams, Node, Reorder, WindowUnit
from hlsgen.verilog.unit_table import latency

SIMPLE = ("conv", "depthwise", "pool", "shift", "same", "width", "flat", "matrix", "gather", "take", "pad")
BRANCHED = ("branches", "branches", "same", "shift", "fifo", "matrix", "width")
KINDS = {
    "all": (*SIMPLE, "fifo", "branches", "rows", "winner"),
    "branches": BRANCHED,
    "moved": ("branches", "take", "pad", "same", "pool", "gather"),
    "simple": SIMPLE,
}


def least_of(nodes: list[Node]) -> list[Node]:
    """The network with FIFOs where branches meet; all buffers have the minimum depth."""
    nodes = with_wait_fifos(nodes, MIN_FIFO_DEPTH)
    depths = {s.name: min_depth(s.unit) for s in nodes if isinstance(s.unit, WindowUnit)}
    return with_depths(nodes, depths | {s.name: MIN_FIFO_DEPTH for s in nodes if isinstance(s.unit, Fifo)})


@pytest.mark.parametrize("kinds", ["all", "branches", "moved"])
def test_counted_depths_exclude_deadlocks(kinds: str) -> None:
    """As the search for deadlocks confirms, which simulates a frame. Half of the depths do not."""
    networks = half = 0
    for seed in range(100):
        nodes = least_of(Random(seed, KINDS[kinds]).network(6))
        safe = safe_depths(nodes)
        assert not safe or any(isinstance(node.unit, Fork) for node in nodes)
        assert not find_deadlock(with_depths(nodes, {name: max(MIN_FIFO_DEPTH, d) for name, d in safe.items()})), seed
        if max(safe.values(), default=0) > MIN_FIFO_DEPTH:
            networks += 1
            half += bool(find_deadlock(with_depths(nodes, {name: max(1, d // 2) for name, d in safe.items()})))
    assert networks > 15
    assert half > networks // 4


def test_needed_beats_of_a_node() -> None:
    """If a frame stops after some beats, exactly the output beats that need no more of them are emitted."""
    checked = 0
    for seed in range(12):
        nodes = least_of(Random(seed, SIMPLE).network(3))
        for node in nodes[1:-1]:
            (need,) = needs_of(node)
            for beats in range(node.source.beats):
                wires = Wire("in", False), Wire("out", False)
                wires[0].due.extend(range(beats))
                process, _ = fewest_beats().process(node, wires[:1], wires[1:])
                for _ in range(2 * (beats + node.result.beats) + 2):
                    next(process)
                    wires[1].consumed[:] = wires[1].due
                assert len(wires[1].due) == (need[1:] <= beats).sum(), (seed, node.unit, beats)
                checked += 1
    assert checked > 100


def test_independent_branches_buffer_only_their_difference() -> None:
    """Padded windows of 3 x 3 on rows of 30 pixels: the bypass holds a row and two beats, the other branch nothing."""
    nodes = least_of(large(3, 20, 30))
    assert set(safe_depths(nodes).values()) == {30 + 2, 0}


def test_memory_does_not_grow_with_the_length_of_a_branch() -> None:
    """Only the streams of the fork and of FIFOs are kept."""
    sizes = []
    for length in (4, 16):
        net = Net()
        image = net.start(Image("", 8, 8, 1, 1))
        direct, branch = net.add(Fork(2), [image], image, 2)
        for _ in range(length):
            (branch,) = net.add(Reorder(64, ((64, 1),)), [branch], image)
        nodes = least_of(net.finish(net.add(JoinStreams((1, 1)), [branch, direct], image)[0]))
        tracemalloc.start()
        safe_depths(nodes)
        sizes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] < 1.5 * sizes[0]


def test_beats_that_arrive_with_the_first_beat_of_a_frame_are_counted() -> None:
    """One branch needs the whole frame for its first beat, so all other FIFOs hold a frame."""
    net = Net()
    image = net.start(Image("", 3, 4, 1, 1))
    first, second, third = net.add(Fork(3), [image], image, 3)
    late = net.add(Reorder(12, ((12, 1),)), [first], image)[0]
    joined = net.add(JoinStreams((1, 1)), [second, third], image)[0]
    nodes = least_of(net.finish(net.add(JoinStreams((1, 1)), [late, joined], image)[0]))
    safe = safe_depths(nodes)
    assert sorted(safe.values()) == [12, 12, 12, 12]
    assert find_deadlock(nodes)
    assert not find_deadlock(with_depths(nodes, safe))


@pytest.mark.sweep
def test_the_interval_of_the_slowest_unit_is_reached() -> None:
    """In nearly all networks. The latency is about right."""
    reached = close = count = 0
    for kinds in KINDS.values():
        for seed in range(20):
            # Units on vectors can take longer than their beats, at any depth.
            sized = counted(Random(seed, [kind for kind in kinds if kind != "rows"]).network(6), latency)
            assert not find_deadlock(sized.nodes)
            measured = measure(sized.nodes, latency)
            assert sized.interval <= measured[1] <= 1.1 * sized.interval + 10, (kinds, seed)
            count += 1
            reached += measured[1] == sized.interval
            close += abs(measured[0] - sized.latency) <= 0.05 * measured[0] + 5
    assert reached > 0.95 * count
    assert close > 0.9 * count


@pytest.mark.sim
def test_random_stalls_in_rtl(tmp_path: Path) -> None:
    """All frames pass with an uneven source and sink."""
    for seed in (1, 4):
        nodes = counted(Random(seed, BRANCHED).network(5), latency).nodes
        assert any(isinstance(node.unit, Fork) for node in nodes)
        frames, rng = 3, random.Random(seed)
        into, out = nodes[0].source.beats, nodes[-1].result.beats
        due, cycle = [], 0
        for _ in range(frames * into):
            cycle += rng.choice([1, 1, 1, 2, 9])
            due.append(cycle)
        ready = [rng.random() < 0.3 for _ in range(97)] + [True]
        cycles = cycle + 5 * frames * measure(nodes, latency)[1] + 1000
        _, consumed = play(nodes, due, ready, cycles, tmp_path)
        assert len(consumed[INPUT]) == frames * into
        assert len(consumed[OUTPUT]) == frames * out


def test_beyond_the_budget_sizes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only in huge networks. If the budget is enough, the search chooses the sizes."""
    nodes = large(3, 30, 40)
    usual = size(nodes, latency, budget=0)
    assert usual.exact
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    assert size(nodes, latency).exact
    assert size(nodes, latency, budget=10**9).exact
    for budget in (0, 300):
        sized = size(nodes, latency, budget=budget)
        assert not sized.exact
        assert (sized.interval, sized.critical, sized.bottleneck) == (1200, (), 1200)
        assert measure(sized.nodes, latency)[1] == 1200


def test_each_part_of_the_search_keeps_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The depths are the same wherever the search stops."""
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    nodes = Random(7, BRANCHED).network(6)
    sizings = [size(nodes, latency, budget=budget) for budget in (0, *(4**n for n in range(3, 12)))]
    depths = [{s.name: s.unit.depth for s in sized.nodes if isinstance(s.unit, Fifo)} for sized in sizings]
    estimated = [d for sized, d in zip(sizings, depths, strict=True) if not sized.exact]
    assert 3 <= len(estimated) < len(sizings)
    assert all(d == estimated[0] for d in estimated)
    exact = [d for sized, d in zip(sizings, depths, strict=True) if sized.exact]
    assert all(d == exact[0] for d in exact)


def test_each_simulation_spends_the_budget() -> None:
    """An empty budget allows no simulation."""
    nodes, budget = least_of(Random(1, SIMPLE).network(3)), WorkBudget(10_000)
    find_deadlock(nodes, budget)
    assert 0 < budget.remaining < 10_000
    with pytest.raises(BudgetExceeded):
        find_deadlock(nodes, WorkBudget(0))


def test_windows_that_stall_at_each_beat_cost_budget() -> None:
    """Their output is few runs in the end, but each beat is computed."""
    nodes, work = large(2, 20, 30), {}
    for ready in ((True,), (True, False)):
        for bounds in (None, Bounds(ENDLESS, 10**9, strict=True)):
            network = Simulation(nodes, exact(latency), ready, bounds)
            network.feed(2)
            assert isinstance(network.engine, RunNetwork)
            work[ready, bounds is None] = network.work()
    assert work[(True, False), False] > work[(True, False), True] + STEP * 2 * 600
    assert work[(True,), False] < work[(True, False), False] / 2
    with pytest.raises(BudgetExceeded):
        Simulation(nodes, exact(latency), (True, False), Bounds(ENDLESS, STEP * 2 * 600, strict=True)).feed(2)


@pytest.mark.sweep
def test_huge_networks_without_forks_need_no_search_for_deadlocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their nodes cannot wait for each other: sizes chosen without that search pass it."""
    searched: list[int] = []
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    find = fifo_sizing.find_deadlock
    monkeypatch.setattr(fifo_sizing, "find_deadlock", lambda *arguments: searched.append(1) or find(*arguments))
    for seed in range(40):
        nodes = Random(seed, (*SIMPLE, "fifo", "rows", "winner")).network(7)
        for budget in (None, 0):
            sized = size(nodes, latency, budget=budget)
            assert not find_deadlock(sized.nodes)
            assert not simulate(sized.nodes, 3, latency, ready=[False] * 7 + [True]).deadlock
    assert not searched


def test_the_search_finds_a_memory_that_is_too_small() -> None:
    """The previous test relies on it."""
    nodes = least_of(Random(3, ("same",)).network(3))
    small = [
        replace(s, unit=replace(s.unit, depth=s.unit.depth - 1)) if isinstance(s.unit, WindowUnit) else s for s in nodes
    ]
    assert not find_deadlock(nodes)
    assert find_deadlock(small)
