"""Depths that are chosen: as fast as with endless buffers, and no smaller ones are; also in RTL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from network_bench import play
from networks import SHIFT, Image, Net, Random, convolution, large, matrix

from hlsgen.cycle_model import fifo_sizing
from hlsgen.cycle_model.deadlock import find_deadlock
from hlsgen.cycle_model.fifo_shrinking import Cycles, Search, with_depths
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.cycle_model.simulate import INPUT, OUTPUT, measure, simulate
from hlsgen.dataflow.units import (
    ConcatBeats,
    ConvUnit,
    Fifo,
    Fork,
    JoinStreams,
    Node,
    PadBorder,
    PoolUnit,
    RescaleUnit,
    TiledPool,
    WidthConverter,
)
from hlsgen.ir.window import Reduction, Window
from hlsgen.verilog.latency import latency

KINDS = ("conv", "depthwise", "pool", "shift", "fifo", "same", "branches", "width", "flat", "matrix", "gather", "take")


def conv(net: Net, x: Image, outputs: int, pe: int, simd: int, kernel: int, stride: int = 1) -> Image:
    """A convolution with padding and its quantizer."""
    if x.lanes != simd:
        x = net.add(WidthConverter(), [x], Image("", x.height, x.width, x.channels, simd))[0]
    window = Window((kernel, kernel), (stride, stride), pads=(kernel // 2,) * 4)
    folds, repeat = x.channels // simd, outputs // pe
    unit = convolution(window, x.height, x.width, folds=folds, repeat=repeat, pe=pe, simd=simd)
    y = net.add(unit, [x], Image("", *window.size(x.height, x.width), outputs, pe))[0]
    return net.add(RescaleUnit(SHIFT, np.zeros((1, pe), np.int64)), [y], y)[0]


def classifier(side: int = 6) -> list[Node]:
    """Two residual blocks, the second with a convolution in the short branch; pools; a matrix. All depths are 0."""
    net = Net()
    x = conv(net, net.start(Image("", side, side, 3, 3)), 8, 4, 3, 3)
    for stride in (1, 2):
        left, right = net.add(Fork(2), [x], x, 2)
        left = conv(net, conv(net, left, 8, 4, 8, 3), 8, 4, 4, 3, stride)
        right = net.add(Fifo(0), [right], right)[0]
        if stride > 1:
            right = conv(net, right, 8, 1, 2, 1, stride)
            right = net.add(WidthConverter(), [right], left)[0]
            right = net.add(Fifo(0), [right], right)[0]
        x = net.add(JoinStreams((1, 1)), [left, right], left)[0]
    x = net.add(Fifo(0), [x], x)[0]
    half = side // 2
    pool = PoolUnit(Reduction.SUM, Window((half, half)), half, half, x.stream.group_beats, 0, 0)
    x = net.add(pool, [x], Image("", 1, 1, 8, 4))[0]
    x = net.add(matrix(10, 8, pe=1, simd=4, vectors=1), [x], Image("", 1, 1, 10, 1))[0]
    return net.finish(x)


def in_rtl(nodes: list[Node], frames: int, cycles: int, work: Path) -> tuple[int, int]:
    """(latency, interval)"""
    _, taken = play(nodes, [0] * (nodes[0].source.beats * frames), [], cycles, work)
    ends = taken[OUTPUT][nodes[-1].result.beats - 1 :: nodes[-1].result.beats]
    assert len(ends) == frames
    return ends[0] - taken[INPUT][0], ends[-1] - ends[-2]


@pytest.mark.slow
@pytest.mark.sim
def test_classifier(tmp_path: Path) -> None:
    nodes = classifier(8)
    sized = size(nodes, latency)
    free = simulate(nodes, 4, latency, unlimited=True)
    assert sized.interval == sized.bottleneck == 8 * 8 * 36
    assert sized.latency <= free.latency
    assert in_rtl(sized.nodes, 4, sized.latency + 3 * sized.interval + 100, tmp_path) == (
        sized.latency,
        sized.interval,
    )
    for node in sized.nodes:
        if isinstance(node.unit, ConvUnit | PoolUnit):
            assert node.unit.depth >= min_depth(node.unit)


def slower(nodes: list[Node], limit: tuple[int, int]) -> bool:
    try:
        found = measure(nodes, latency)
    except ValueError:
        return True
    return found[0] > limit[0] or found[1] > limit[1]


@pytest.mark.sim
def test_critical_fifos_cannot_be_smaller(tmp_path: Path) -> None:
    """Not in RTL either."""
    sized, frames = size(classifier(), latency), 4
    assert sized.critical
    for name in sized.critical:
        fewer = with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1})
        cycles = sized.latency + frames * sized.interval
        _, taken = play(fewer, [0] * (fewer[0].source.beats * frames), [], cycles, tmp_path)
        ends = taken[OUTPUT][9::10]
        assert len(ends) < frames or ends[0] > sized.latency or ends[-1] - ends[-2] > sized.interval


@pytest.mark.sim
def test_random_networks(tmp_path: Path) -> None:
    """As fast as endless buffers, no unit that is not a FIFO gets lost, and RTL agrees."""
    dropped = critical = narrowed = 0
    for seed in range(40):
        nodes = Random(seed, KINDS).network(6)
        free = simulate(nodes, 6, latency, unlimited=True)
        if free.deadlock:
            with pytest.raises(ValueError, match="waits for"):
                size(nodes, latency)
            continue
        sized, quick = size(nodes, latency), size(nodes, latency, effort=0)
        assert sized.bottleneck <= sized.interval <= free.interval
        assert measure(sized.nodes, latency) == (sized.latency, sized.interval)
        kept = {node.name for node in sized.nodes}
        assert all(node.name in kept or isinstance(node.unit, Fifo) for node in nodes)
        windows = {s.name: min_depth(s.unit) for s in nodes if isinstance(s.unit, ConvUnit | PoolUnit)}
        now, before = depths(sized.nodes), depths(quick.nodes)
        assert all(least <= now[name] <= before[name] for name, least in windows.items())
        # Not only where all of them can have the least depth.
        narrowed += any(now[name] < before[name] for name in windows) and any(now[n] > windows[n] for n in windows)
        dropped += len(nodes) - len(sized.nodes)
        critical += len(sized.critical)
        for name in sized.critical:
            fewer = with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1})
            assert slower(fewer, (sized.latency, sized.interval))
        if seed % 4 == 0:
            measured = in_rtl(sized.nodes, 6, sized.latency + 6 * sized.interval + 100, tmp_path)
            assert measured == (sized.latency, sized.interval)
    assert min(dropped, critical, narrowed) >= 5


@pytest.mark.parametrize("seed", [98, 139])
def test_where_a_steady_source_needs_less(seed: int) -> None:
    """Networks in which what is held with a source of the right pace is not enough at full rate."""
    nodes = Random(seed, (*KINDS, "pad")).network(6)
    assert size(nodes, latency, effort=0).interval <= simulate(nodes, 12, latency, unlimited=True).interval


def short_branch() -> list[Node]:
    """A frame goes through one branch, then through another, whose registers could hold a part of it."""
    net = Net()
    x = net.start(Image("", 3, 4, 1, 1))
    left, right = net.add(Fork(2), [x], x, 2)
    for _ in range(3):
        right = net.add(RescaleUnit(SHIFT, np.zeros((1, 1), np.int64)), [right], right)[0]
    right = net.add(Fifo(0), [right], right)[0]
    return net.finish(net.add(ConcatBeats((12, 12)), [left, right], Image("", 1, 1, 24, 1))[0])


@pytest.mark.sim
def test_no_pauses_stop_a_network(tmp_path: Path) -> None:
    """At full rate the registers of pipelines are full; they must not be counted on, as they are not after pauses."""
    sized, frames = size(short_branch(), latency), 3
    (name,) = (node.name for node in sized.nodes if isinstance(node.unit, Fifo))
    fewer = with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1})
    assert sized.critical == ()
    assert measure(fewer, latency) == (sized.latency, sized.interval)
    due = [20 * k for k in range(12 * frames)]
    for nodes, beats in ((sized.nodes, 24 * frames), (fewer, 11)):
        _, taken = play(nodes, due, [], 20 * len(due) + 200, tmp_path)
        assert (len(taken[OUTPUT]), bool(find_deadlock(nodes))) == (beats, beats == 11)


def test_what_is_kept_for_pauses_is_needed() -> None:
    kept = 0
    for seed in range(30):
        nodes = Random(seed, ("branches", "shift", "same", "fifo", "matrix", "width")).network(5)
        if find_deadlock(with_depths(nodes, {s.name: 999 for s in nodes})):
            with pytest.raises(ValueError, match="waits for"):
                size(nodes, latency)
            continue
        sized = size(nodes, latency)
        assert not find_deadlock(sized.nodes)
        for name, depth in depths(sized.nodes).items():
            if any(s.name == name and isinstance(s.unit, Fifo) for s in nodes) and name not in sized.critical:
                fewer = with_depths(sized.nodes, {name: depth - 1})
                assert measure(fewer, latency) == (sized.latency, sized.interval)
                assert find_deadlock(fewer)
                kept += 1
    assert kept


@pytest.mark.sim
def test_a_border_in_front_of_a_convolution(tmp_path: Path) -> None:
    """While hg_pad sends it, a FIFO takes what comes from the unit that sets the pace."""
    net = Net()
    x = conv(net, net.start(Image("", 6, 6, 2, 2)), 2, 1, 2, 3)
    border = PadBorder(6, 6, x.stream.group_beats, (2, 2, 2, 2), 0)
    x = net.add(border, [x], Image("", 10, 10, 2, x.lanes))[0]
    nodes = net.finish(conv(net, x, 1, 1, 2, 1))
    sized = size(nodes, latency)
    assert sized.interval == sized.bottleneck == 6 * 6 * 18 < simulate(nodes, 6, latency, unlimited=True).interval
    (name,) = sized.critical
    assert slower(with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1}), (sized.latency, sized.interval))
    measured = in_rtl(sized.nodes, 6, sized.latency + 6 * sized.interval + 100, tmp_path)
    assert measured == (sized.latency, sized.interval)


def test_a_width_that_spreads_a_burst() -> None:
    """A unit that sets the pace and sends in bursts does not wait for a narrower one."""
    net = Net()
    x = net.start(Image("", 6, 6, 2, 2))
    x = net.add(TiledPool(Reduction.SUM, (3, 1), 6, 6, 1), [x], Image("", 2, 6, 2, 2))[0]
    nodes = net.finish(net.add(WidthConverter(), [x], Image("", 2, 6, 2, 1))[0])
    assert size(nodes, latency).interval == 36 < simulate(nodes, 6, latency, unlimited=True).interval


def test_the_same_every_time() -> None:
    """Given depths do not matter, nor does what ran before."""
    first, again = size(classifier(), latency), size(size(classifier(), latency).nodes, latency)
    other = size(with_depths(classifier(), {s.name: 99 for s in classifier()}), latency)
    assert depths(first.nodes) == depths(other.nodes)
    assert depths(again.nodes) == depths(first.nodes)


def depths(nodes: list[Node]) -> dict[str, int]:
    return {s.name: s.unit.depth for s in nodes if isinstance(s.unit, ConvUnit | PoolUnit | Fifo)}


def test_effort_bounds_the_search() -> None:
    """Without any the depths are right but not the least."""
    quick, full = size(classifier(), latency, effort=0), size(classifier(), latency)
    assert (quick.interval, quick.critical) == (full.interval, ())
    assert sum(depths(quick.nodes).values()) > sum(depths(full.nodes).values())


def test_a_fifo_that_is_left_out() -> None:
    nodes = classifier()
    fifo = next(node for node in nodes if isinstance(node.unit, Fifo))
    fewer = with_depths(nodes, {fifo.name: 0})
    assert fifo.name not in {node.name for node in fewer}
    (taker,) = (node for node in nodes if fifo.outputs[0] in node.inputs)
    (now,) = (node for node in fewer if node.name == taker.name)
    assert set(now.inputs) == {fifo.inputs[0]} | set(taker.inputs) - {fifo.outputs[0]}


def test_a_huge_network_gets_a_little_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the least depths take too long to simulate, others do not; the cycles are those of these depths."""
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    least = size(large(3, 30, 40), latency)
    assert least.spare == 0
    monkeypatch.setattr(fifo_sizing, "ROOMY", (1.25, 1.5))
    sized = size(large(3, 30, 40), latency)
    assert sized.spare == 0.25
    assert measure(sized.nodes, latency) == (sized.latency, sized.interval)
    assert sized.interval == least.interval == sized.bottleneck
    monkeypatch.setattr(fifo_sizing, "FIRST_WORK", 0)
    assert size(large(3, 30, 40), latency).spare == 0


def test_room_with_which_frames_come_too_late_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found quickly counts only if it is as fast as the slowest unit."""
    calls: list[int] = []
    in_runs = Search.in_runs

    def late_at_first(search: Search, *given: Any) -> Cycles | None:
        found = in_runs(search, *given)
        calls.append(1)
        return found and (found[0], found[1] + (len(calls) == 1))

    monkeypatch.setattr(Search, "in_runs", late_at_first)
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    sized = size(large(3, 30, 40), latency)
    assert (sized.spare, sized.interval) == (fifo_sizing.ROOMY[1] - 1, sized.bottleneck)
