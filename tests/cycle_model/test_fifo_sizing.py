"""Chosen depths are as fast as unlimited buffers, and no smaller depths are; also in RTL."""

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
from hlsgen.dataflow import units
from hlsgen.ir.window import Reduction, Window
from hlsgen.verilog.unit_table import latency

KINDS = ("conv", "depthwise", "pool", "shift", "fifo", "same", "branches", "width", "flat", "matrix", "gather", "take")


def conv(net: Net, x: Image, outputs: int, pe: int, simd: int, kernel: int, stride: int = 1) -> Image:
    """A convolution with padding and its quantizer."""
    if x.lanes != simd:
        x = net.add(units.WidthConverter(), [x], Image("", x.height, x.width, x.channels, simd))[0]
    window = Window((kernel, kernel), (stride, stride), pads=(kernel // 2,) * 4)
    folds, repeat = x.channels // simd, outputs // pe
    unit = convolution(window, x.height, x.width, folds=folds, repeat=repeat, pe=pe, simd=simd)
    y = net.add(unit, [x], Image("", *window.size(x.height, x.width), outputs, pe))[0]
    return net.add(units.RescaleUnit(SHIFT, np.zeros((1, pe), np.int64)), [y], y)[0]


def classifier(side: int = 6) -> list[units.Node]:
    """Two residual blocks, the second with a convolution in the short branch; pools; a matrix. All depths are 0."""
    net = Net()
    x = conv(net, net.start(Image("", side, side, 3, 3)), 8, 4, 3, 3)
    for stride in (1, 2):
        main_branch, bypass = net.add(units.Fork(2), [x], x, 2)
        main_branch = conv(net, conv(net, main_branch, 8, 4, 8, 3), 8, 4, 4, 3, stride)
        bypass = net.add(units.Fifo(0), [bypass], bypass)[0]
        if stride > 1:
            bypass = conv(net, bypass, 8, 1, 2, 1, stride)
            bypass = net.add(units.WidthConverter(), [bypass], main_branch)[0]
            bypass = net.add(units.Fifo(0), [bypass], bypass)[0]
        x = net.add(units.JoinStreams((1, 1)), [main_branch, bypass], main_branch)[0]
    x = net.add(units.Fifo(0), [x], x)[0]
    half = side // 2
    pool = units.PoolUnit(Reduction.SUM, Window((half, half)), half, half, x.stream.group_beats, 0, 0)
    x = net.add(pool, [x], Image("", 1, 1, 8, 4))[0]
    x = net.add(matrix(10, 8, pe=1, simd=4, vectors=1), [x], Image("", 1, 1, 10, 1))[0]
    return net.finish(x)


def in_rtl(nodes: list[units.Node], frames: int, cycles: int, work: Path) -> tuple[int, int]:
    """(latency, interval) in RTL simulation."""
    _, consumed = play(nodes, [0] * (nodes[0].source.beats * frames), [], cycles, work)
    ends = consumed[OUTPUT][nodes[-1].result.beats - 1 :: nodes[-1].result.beats]
    assert len(ends) == frames
    return ends[0] - consumed[INPUT][0], ends[-1] - ends[-2]


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
        if isinstance(node.unit, units.ConvUnit | units.PoolUnit):
            assert node.unit.depth >= min_depth(node.unit)


def slower(nodes: list[units.Node], limit: tuple[int, int]) -> bool:
    try:
        cycles = measure(nodes, latency)
    except ValueError:
        return True
    return cycles[0] > limit[0] or cycles[1] > limit[1]


@pytest.mark.sim
def test_critical_fifos_cannot_be_smaller(tmp_path: Path) -> None:
    """In RTL too."""
    sized, frames = size(classifier(), latency), 4
    assert sized.critical
    for name in sized.critical:
        fewer = with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1})
        cycles = sized.latency + frames * sized.interval
        _, consumed = play(fewer, [0] * (fewer[0].source.beats * frames), [], cycles, tmp_path)
        ends = consumed[OUTPUT][9::10]
        assert len(ends) < frames or ends[0] > sized.latency or ends[-1] - ends[-2] > sized.interval


@pytest.mark.sim
def test_random_networks(tmp_path: Path) -> None:
    """As fast as unlimited buffers, only FIFOs are removed, and RTL agrees."""
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
        remaining = {node.name for node in sized.nodes}
        assert all(node.name in remaining or isinstance(node.unit, units.Fifo) for node in nodes)
        windows = {s.name: min_depth(s.unit) for s in nodes if isinstance(s.unit, units.ConvUnit | units.PoolUnit)}
        searched, unsearched = depths(sized.nodes), depths(quick.nodes)
        assert all(minimum <= searched[name] <= unsearched[name] for name, minimum in windows.items())
        # Count networks in which some memory is above its minimum.
        narrowed += any(searched[name] < unsearched[name] for name in windows) and any(
            searched[n] > windows[n] for n in windows
        )
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
def test_depths_for_an_even_source_are_increased_for_full_rate(seed: int) -> None:
    """Networks whose depths for a source at the interval are not enough for a source at full rate."""
    nodes = Random(seed, (*KINDS, "pad")).network(6)
    assert size(nodes, latency, effort=0).interval <= simulate(nodes, 12, latency, unlimited=True).interval


def short_branch() -> list[units.Node]:
    """A frame passes one branch, then another whose registers could hold a part of it."""
    net = Net()
    x = net.start(Image("", 3, 4, 1, 1))
    first_branch, second_branch = net.add(units.Fork(2), [x], x, 2)
    for _ in range(3):
        second_branch = net.add(units.RescaleUnit(SHIFT, np.zeros((1, 1), np.int64)), [second_branch], second_branch)[0]
    second_branch = net.add(units.Fifo(0), [second_branch], second_branch)[0]
    return net.finish(net.add(units.ConcatBeats((12, 12)), [first_branch, second_branch], Image("", 1, 1, 24, 1))[0])


@pytest.mark.sim
def test_pauses_do_not_deadlock_a_network(tmp_path: Path) -> None:
    """Pipeline registers are full at full rate, but not after pauses, so sizing must not rely on them."""
    sized, frames = size(short_branch(), latency), 3
    (name,) = (node.name for node in sized.nodes if isinstance(node.unit, units.Fifo))
    fewer = with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1})
    assert sized.critical == ()
    assert measure(fewer, latency) == (sized.latency, sized.interval)
    due = [20 * k for k in range(12 * frames)]
    for nodes, beats in ((sized.nodes, 24 * frames), (fewer, 11)):
        _, consumed = play(nodes, due, [], 20 * len(due) + 200, tmp_path)
        assert (len(consumed[OUTPUT]), bool(find_deadlock(nodes))) == (beats, beats == 11)


def test_depth_for_pauses_is_needed() -> None:
    needed = 0
    for seed in range(30):
        nodes = Random(seed, ("branches", "shift", "same", "fifo", "matrix", "width")).network(5)
        if find_deadlock(with_depths(nodes, {s.name: 999 for s in nodes})):
            with pytest.raises(ValueError, match="waits for"):
                size(nodes, latency)
            continue
        sized = size(nodes, latency)
        assert not find_deadlock(sized.nodes)
        for name, depth in depths(sized.nodes).items():
            if any(s.name == name and isinstance(s.unit, units.Fifo) for s in nodes) and name not in sized.critical:
                fewer = with_depths(sized.nodes, {name: depth - 1})
                assert measure(fewer, latency) == (sized.latency, sized.interval)
                assert find_deadlock(fewer)
                needed += 1
    assert needed


@pytest.mark.sim
def test_a_border_before_a_convolution_does_not_stall_the_slowest_unit(tmp_path: Path) -> None:
    """While hg_pad emits the border, a FIFO buffers the beats of the slowest unit."""
    net = Net()
    x = conv(net, net.start(Image("", 6, 6, 2, 2)), 2, 1, 2, 3)
    border = units.PadBorder(6, 6, x.stream.group_beats, (2, 2, 2, 2), 0)
    x = net.add(border, [x], Image("", 10, 10, 2, x.lanes))[0]
    nodes = net.finish(conv(net, x, 1, 1, 2, 1))
    sized = size(nodes, latency)
    assert sized.interval == sized.bottleneck == 6 * 6 * 18 < simulate(nodes, 6, latency, unlimited=True).interval
    (name,) = sized.critical
    assert slower(with_depths(sized.nodes, {name: depths(sized.nodes)[name] - 1}), (sized.latency, sized.interval))
    measured = in_rtl(sized.nodes, 6, sized.latency + 6 * sized.interval + 100, tmp_path)
    assert measured == (sized.latency, sized.interval)


def test_a_width_converter_spreads_a_burst() -> None:
    """The slowest unit, which emits bursts, does not wait for a narrower unit."""
    net = Net()
    x = net.start(Image("", 6, 6, 2, 2))
    x = net.add(units.TiledPool(Reduction.SUM, (3, 1), 6, 6, 1), [x], Image("", 2, 6, 2, 2))[0]
    nodes = net.finish(net.add(units.WidthConverter(), [x], Image("", 2, 6, 2, 1))[0])
    assert size(nodes, latency).interval == 36 < simulate(nodes, 6, latency, unlimited=True).interval


def test_sizes_do_not_depend_on_earlier_depths_or_runs() -> None:
    first, repeated = size(classifier(), latency), size(size(classifier(), latency).nodes, latency)
    from_depths_of_99 = size(with_depths(classifier(), {s.name: 99 for s in classifier()}), latency)
    assert depths(first.nodes) == depths(from_depths_of_99.nodes)
    assert depths(repeated.nodes) == depths(first.nodes)


def depths(nodes: list[units.Node]) -> dict[str, int]:
    return {s.name: s.unit.depth for s in nodes if isinstance(s.unit, units.ConvUnit | units.PoolUnit | units.Fifo)}


def test_effort_bounds_the_search() -> None:
    """No effort gives correct depths, but not the smallest."""
    quick, full = size(classifier(), latency, effort=0), size(classifier(), latency)
    assert (quick.interval, quick.critical) == (full.interval, ())
    assert sum(depths(quick.nodes).values()) > sum(depths(full.nodes).values())


def test_a_fifo_of_depth_0_is_removed() -> None:
    nodes = classifier()
    fifo = next(node for node in nodes if isinstance(node.unit, units.Fifo))
    fewer = with_depths(nodes, {fifo.name: 0})
    assert fifo.name not in {node.name for node in fewer}
    (consumer,) = (node for node in nodes if fifo.outputs[0] in node.inputs)
    (reconnected,) = (node for node in fewer if node.name == consumer.name)
    assert set(reconnected.inputs) == {fifo.inputs[0]} | set(consumer.inputs) - {fifo.outputs[0]}


def test_a_huge_network_gets_slightly_larger_depths(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the smallest depths take too long to simulate, larger ones do not; the cycles are simulated with these."""
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    smallest = size(large(3, 30, 40), latency)
    assert smallest.spare == 0
    monkeypatch.setattr(fifo_sizing, "ROOMY", (1.25, 1.5))
    sized = size(large(3, 30, 40), latency)
    assert sized.spare == 0.25
    assert measure(sized.nodes, latency) == (sized.latency, sized.interval)
    assert sized.interval == smallest.interval == sized.bottleneck
    monkeypatch.setattr(fifo_sizing, "FIRST_WORK", 0)
    assert size(large(3, 30, 40), latency).spare == 0


def test_larger_depths_are_rejected_if_frames_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast simulation counts only if the network is as fast as its slowest unit."""
    calls: list[int] = []
    in_runs = Search.in_runs

    def late_at_first(search: Search, *arguments: Any) -> Cycles | None:
        cycles = in_runs(search, *arguments)
        calls.append(1)
        return cycles and (cycles[0], cycles[1] + (len(calls) == 1))

    monkeypatch.setattr(Search, "in_runs", late_at_first)
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    sized = size(large(3, 30, 40), latency)
    assert (sized.spare, sized.interval) == (fifo_sizing.ROOMY[1] - 1, sized.bottleneck)
