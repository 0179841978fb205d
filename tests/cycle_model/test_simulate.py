"""Predicted times equal the RTL simulation of the library, beat by beat on every stream."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from network_bench import play
from networks import SHIFT, Image, Net, Random, convolution, matrix, with_early_ports

from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.cycle_model.simulate import INPUT, OUTPUT, Trace, measure, simulate
from hlsgen.dataflow import units
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.ready_chains import cut_ready_chains
from hlsgen.verilog.unit_table import latency

STRAIGHT = ("shift", "fifo", "width", "flat", "matrix", "winner")
ROUTES = ("shift", "fifo", "width", "matrix", "gather", "take", "pad", "branches")
WINDOWS = ("conv", "conv", "depthwise", "pool", "shift", "fifo", "width", "flat", "same", "branches", "matrix", "pad")
FRAMES = 3


def compare(
    nodes: Sequence[units.Node], interval: int | None, ready: Sequence[bool], work: Path, frames: int = FRAMES
) -> Trace:
    """Simulates both until nothing moves according to the prediction, and some cycles longer.

    Streams of adders are not compared: see `test_adders_that_stall_with_their_consumer`.
    """
    flow = simulate(nodes, frames, latency, interval=interval, ready=ready)
    beats = nodes[0].source.beats
    due = [f * (interval or 0) + k * (interval or 0) // beats for f in range(frames) for k in range(beats)]
    cycles = max(int(times[-1]) for times in flow.consumed.values() if len(times)) + 60
    offered, consumed = play(nodes, due, ready, cycles, work)
    inside = {name for node in nodes if isinstance(node.unit, units.AdderMatVec) for name in node.outputs}
    for name in flow.consumed.keys() - inside:
        assert flow.consumed[name].tolist() == consumed[name], name
        assert [cycle for cycle in flow.offered[name].tolist() if cycle < cycles] == offered[name], name
    return flow


def case(seed: int) -> tuple[int | None, list[bool]]:
    """Interval of the source and readiness of the sink."""
    rng = random.Random(seed)
    probability = rng.choice([0.2, 0.5, 0.8])
    ready = [rng.random() < probability for _ in range(rng.randint(2, 17))] + [True]
    return (None, rng.randint(1, 300))[seed & 1], ready if seed & 2 else []


@pytest.mark.sim
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_straight_networks(first: int, tmp_path: Path) -> None:
    """Also with ready cut at the input port: then the sink stalls all units."""
    for seed in range(first, first + 10):
        nodes = Random(seed, STRAIGHT).network(6)
        compare(with_early_ports(nodes) if seed % 3 == 2 else nodes, *case(seed), tmp_path)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("kinds", [ROUTES, WINDOWS])
@pytest.mark.parametrize("first", range(0, 45, 15))
def test_networks_with_branches(first: int, kinds: tuple[str, ...], tmp_path: Path) -> None:
    """Also networks that deadlock: all beats that move agree."""
    for seed in range(first, first + 15):
        compare(Random(seed, kinds).network(6), *case(seed), tmp_path)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("first", range(0, 18, 6))
def test_networks_with_slices(first: int, tmp_path: Path) -> None:
    """Slices after every unit, or after every second one, on the ready path. Few networks need none."""
    with_slices = 0
    for seed in range(first, first + 6):
        nodes = cut_ready_chains(Random(seed, ROUTES).network(6), seed & 1)
        with_slices += any(isinstance(node.unit, units.Slice) for node in nodes)
        compare(nodes, *case(seed >> 1), tmp_path)
    assert with_slices >= 4


@pytest.mark.sim
def test_adders_that_stall_with_their_consumer(tmp_path: Path) -> None:
    """On all streams except those between the two: there the prediction has the times of the input."""
    for seed in range(12):
        compare(Random(seed, ("joined", "joined", "fifo", "width", "branches")).network(5), *case(seed), tmp_path)


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_more_networks(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        compare(Random(seed, (*WINDOWS, *ROUTES, "winner")).network(7), *case(seed), tmp_path)


def test_the_seeds_cover_all_situations() -> None:
    """Networks that deadlock, that stall for the sink, and full FIFOs and window memories."""
    blocked = full_fifos = full_windows = 0
    for seed in range(60):
        nodes = Random(seed, WINDOWS).network(6)
        flow = simulate(nodes, FRAMES, latency, interval=case(seed)[0], ready=case(seed)[1])
        blocked += bool(flow.deadlock)
        for node in nodes:
            if isinstance(node.unit, units.Fifo):
                full_fifos += flow.occupancy[node.name] == node.unit.depth
            elif isinstance(node.unit, units.ConvUnit | units.PoolUnit):
                full_windows += flow.occupancy[node.name] == node.unit.depth
    assert min(blocked, full_fifos // 5, full_windows // 5) > 3


@pytest.mark.sim
def test_widths(tmp_path: Path) -> None:
    """Groups that end within a beat, equal and not."""
    for channels, lanes in [
        (5, (2, 4, 3)),
        (3, (2, 2, 1)),
        (7, (4, 6, 2)),
        (9, (6, 4, 8)),
        (1, (2, 2, 2)),
        (8, (1, 3, 9)),
        (11, (2, 8, 2)),
    ]:
        net = Net()
        x = net.start(Image("", 4, 3, channels, lanes[0]))
        for n in lanes[1:]:
            x = net.add(units.WidthConverter(), [x], Image("", 4, 3, channels, n))[0]
        x = net.add(units.WidthConverter(), [x], Image("", 1, 1, 12 * channels, 4))[0]
        for ready in ([], [False, False, True], [False] * 15 + [True]):
            compare(net.finish(x) if ready == [] else net.nodes, None, ready, tmp_path)


@pytest.mark.sim
@pytest.mark.parametrize("kinds", [(True,), (False,), (False, True), (True, False), (False, False)])
def test_slices_of_two_registers_and_of_one(kinds: tuple[bool, ...], tmp_path: Path) -> None:
    """A slice of one register accepts a beat after the previous one left: at most every other cycle."""
    for interval, ready in [(None, []), (None, [False, True]), (3, [False] * 7 + [True] * 5), (1, [True, True, False])]:
        net = Net()
        x = net.start(Image("", 2, 6, 4, 2))
        for full in kinds:
            x = net.add(units.Slice(full), [x], x)[0]
        flow = compare(net.finish(x), interval, ready, tmp_path)
        if not ready and interval is None:
            assert flow.interval == 24 * (1 if all(kinds) else 2)


@pytest.mark.sim
def test_vectors_of_a_beat(tmp_path: Path) -> None:
    """Vectors of one beat are repeated from a register; the unit consumes two beats ahead."""
    for passes in (1, 2, 5):
        net = Net()
        x = net.start(Image("", 2, 3, 4, 4))
        net.finish(net.add(matrix(2 * passes, 4, 2, 4, 6), [x], Image("", 2, 3, 2 * passes, 2))[0])
        for ready in ([], [False, True], [False] * 7 + [True, True]):
            compare(net.nodes, None, ready, tmp_path)


@pytest.mark.sim
@pytest.mark.parametrize("early", [False, True])
def test_keys(early: bool, tmp_path: Path) -> None:
    """Beats wait where ready is cut: at the output port, or at the input port."""
    word, port = units.Stream(IntType(0, 2**32 - 1), 2, 6, 12), units.Port(cuts_ready=early)
    nodes = [
        units.Node("s_axis", port, (), (word,), ("s_axis",), word),
        units.Node("key", units.FloatKeyUnit(), ("s_axis",), (word,), ("key",), word),
        units.Node("m_axis", port, ("key",), (word,), (), word),
    ]
    compare(nodes, 9, [True, False, False], tmp_path)


# --------------------------------------------------------------------------- residual block


def residual(depth: int, rows: int = 5, extra_words: int = 0) -> list[units.Node]:
    """A convolution with a bypass FIFO of that depth."""
    net = Net()
    x = net.start(Image("", rows, 6, 4, 2))
    branch, bypass = net.add(units.Fork(2), [x], x, 2)
    window = Window((3, 3), pads=(1, 1, 1, 1))
    unit = convolution(window, rows, 6, folds=2, repeat=2, pe=2, simd=2)
    branch = net.add(replace(unit, depth=min_depth(unit) + extra_words), [branch], x)[0]
    bypass = net.add(units.Fifo(depth), [bypass], x)[0]
    return net.finish(net.add(units.JoinStreams((1, 1)), [branch, bypass], x)[0])


@pytest.mark.sim
def test_latency_and_interval(tmp_path: Path) -> None:
    nodes = residual(40, extra_words=8)
    flow = compare(nodes, None, [], tmp_path, frames=5)
    ends = flow.consumed[OUTPUT][59::60]
    assert (flow.ends, flow.deadlock) == (tuple(ends.tolist()), ())
    assert (flow.latency, flow.interval) == (ends[0] - flow.consumed[INPUT][0], ends[-1] - ends[-2])
    assert measure(nodes, latency) == (flow.latency, flow.interval)
    assert flow.interval == 5 * 6 * 36


@pytest.mark.sim
@pytest.mark.parametrize(
    "seed, kinds, intervals",
    [
        (209, WINDOWS, (176, 176, 172, 172)),
        (240, WINDOWS, (37, 35, 35, 34)),
        (117, WINDOWS, (217, 270, 217, 270)),
        (1157, ROUTES, (105, 110, 105, 105)),
    ],
)
def test_intervals_that_change(seed: int, kinds: tuple[str, ...], intervals: tuple[int, ...], tmp_path: Path) -> None:
    """At the beginning, or forever: the longest interval counts."""
    nodes = Random(seed, kinds).network(6)
    flow = compare(nodes, None, [], tmp_path, frames=5)
    assert tuple(np.diff(flow.ends)) == intervals
    assert measure(nodes, latency)[1] == max(np.diff(simulate(nodes, 30, latency).ends)[-8:])


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(40))
def test_intervals_of_short_frames(seed: int) -> None:
    """Two branches of slow units, which hold many frames: the final interval may appear late."""
    rng = random.Random(seed)
    net = Net()
    x = net.start(Image("", 1, rng.randint(1, 2), 3, 3))
    branches = net.add(units.Fork(2), [x], x, 2)
    delays: dict[int, int] = {}
    for n in range(2):
        for _ in range(rng.randint(1, 3)):
            rescale, product = (
                units.RescaleUnit(SHIFT, np.zeros((1, 3), np.int64)),
                matrix(3, 3, 3, 3, x.height * x.width),
            )
            unit = rng.choice([rescale, product, units.Fifo(rng.randint(2, 9))])
            branches[n] = net.add(unit, [branches[n]], x)[0]
            delays[id(unit)] = 1 if isinstance(unit, units.Fifo) else rng.randint(3, 14)
    nodes = net.finish(net.add(units.JoinStreams((1, 1)), branches, x)[0])

    def slow(unit: units.Unit) -> int:
        return delays.get(id(unit), latency(unit))

    flow = simulate(nodes, 200, slow)
    assert measure(nodes, slow) == (flow.latency, max(np.diff(flow.ends[-100:])))


@pytest.mark.sim
def test_a_deadlock_names_the_waiting_nodes(tmp_path: Path) -> None:
    nodes = residual(3)
    flow = compare(nodes, None, [], tmp_path)
    circle = [
        "u4 waits for a beat on u2",
        "u2 waits for a beat on u1_0",
        "u1 waits for room in u1_1",
        "u3 waits for room in u3",
    ]
    assert [str(blocked) for blocked in flow.deadlock] == circle
    with pytest.raises(ValueError, match="u4 waits for a beat on u2"):
        measure(nodes, latency)


def with_depth(nodes: Sequence[units.Node], name: str, depth: int) -> list[units.Node]:
    return [
        replace(s, unit=replace(s.unit, depth=depth))
        if s.name == name and isinstance(s.unit, units.Fifo | units.ConvUnit | units.PoolUnit)
        else s
        for s in nodes
    ]


def test_occupancy_is_the_depth_that_is_needed() -> None:
    """Depths equal to the occupancy of unlimited buffers change nothing; one word less anywhere does."""
    tested = 0
    for seed in (*range(6), 12, 16, 32, 44, 49):
        kinds = ("conv", "pool", "same", "shift", "depthwise", *("fifo",) * (seed % 2))
        nodes = Random(seed, kinds).network(6)
        ready = [True] * 4 + [False] * 9 * (seed % 3)
        free = simulate(nodes, FRAMES, latency, interval=90, unlimited=True, ready=ready)
        for name, occupied in free.occupancy.items():
            nodes = with_depth(nodes, name, occupied)
        limited = simulate(nodes, FRAMES, latency, interval=90, ready=ready)
        assert all((limited.consumed[name] == free.consumed[name]).all() for name in free.consumed)
        assert limited.occupancy == free.occupancy
        for node in nodes:
            if isinstance(node.unit, units.Fifo | units.ConvUnit | units.PoolUnit):
                minimum = 1 if isinstance(node.unit, units.Fifo) else min_depth(node.unit)
                if node.unit.depth > minimum:
                    smaller = with_depth(nodes, node.name, node.unit.depth - 1)
                    slower = simulate(smaller, FRAMES, latency, interval=90, ready=ready)
                    assert any(not np.array_equal(slower.consumed[name], free.consumed[name]) for name in free.consumed)
                    tested += 1
    assert tested > 10


def test_more_frames_do_not_change_earlier_ones() -> None:
    nodes = Random(4, WINDOWS).network(6)
    few, many = simulate(nodes, 2, latency), simulate(nodes, 5, latency)
    assert not few.deadlock
    assert all((many.consumed[name][: len(few.consumed[name])] == few.consumed[name]).all() for name in few.consumed)
