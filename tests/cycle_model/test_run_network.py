"""The simulation in runs of beats against the one beat by beat, and how much it computes."""

from __future__ import annotations

import random

import pytest
from networks import Random, large, with_early_ports

from hlsgen.cycle_model import repeats, run_network
from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.run_buffers import windows
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.run_processes import Memory
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import Runs
from hlsgen.cycle_model.simulate import Simulation
from hlsgen.cycle_model.timing_models import exact, least
from hlsgen.cycle_model.wiring import stride
from hlsgen.dataflow.flow import regroup_flow
from hlsgen.dataflow.units import Stream
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.latency import latency

KINDS = {
    "straight": ("shift", "fifo", "width", "flat", "matrix", "winner"),
    "routes": ("shift", "fifo", "width", "matrix", "gather", "take", "pad", "branches"),
    "rows": ("shift", "fifo", "width", "rows", "gather", "branches"),
    "joined": ("joined", "shift", "fifo", "width", "flat", "winner"),
    "windows": ("conv", "depthwise", "pool", "shift", "fifo", "width", "flat", "same", "branches", "matrix", "pad"),
}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on as long as it takes on small networks, and foresees what it can."""
    monkeypatch.setattr(run_network, "FEW", 20_000)
    monkeypatch.setattr(run_network, "PLAIN", 1)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_times_as_beat_by_beat(kind: str) -> None:
    """On every stream, also with a sink that is not always ready, and with ready cut at either port; a network that
    blocks is given up."""
    equal = 0
    for seed in range(12):
        nodes, rng = Random(seed, KINDS[kind]).network(6), random.Random(seed)
        if seed % 3 == 2:
            nodes = with_early_ports(nodes)
        ready = [rng.random() < 0.5 for _ in range(rng.randint(2, 17))] + [True] if seed & 2 else []
        pace = rng.randint(1, 300) if seed & 1 else None
        model = exact(latency, unlimited=seed % 5 == 0)
        beats, runs = BeatNetwork(nodes, model, ready), RunNetwork(nodes, model, ready)
        beats.feed(3, pace)
        found = runs.feed(3, pace)
        assert len(beats.ends()) == 3 or not found
        if not found:
            continue
        equal += 1
        for name in beats.names():
            assert runs.consumed(name).tolist() == beats.consumed(name).tolist(), (seed, name)
            assert runs.offered(name).tolist() == beats.offered(name).tolist(), (seed, name)
        assert runs.spans() == beats.spans()
    assert equal >= 8


@pytest.mark.usefixtures("patient")
def test_what_comes_through_in_runs_comes_through() -> None:
    """With units that hold as little as they ever do; and the other way round, as far as the search goes."""
    alive = blocked = 0
    for seed in range(10):
        for kinds in (KINDS["routes"], ("branches", "shift", "same", "fifo", "matrix", "width")):
            nodes = Random(seed, kinds).network(6)
            beats, runs = BeatNetwork(nodes, least()), RunNetwork(nodes, least())
            beats.feed(1, None)
            found = runs.feed(1, 3 * nodes[0].source.beats)
            assert found <= (len(beats.ends()) == 1), (seed, kinds)
            alive += found
            blocked += not beats.ends()
    assert alive > 6
    assert blocked > 2


@pytest.mark.parametrize(("layers", "height", "width"), [(10, 100, 100), (10, 400, 400), (40, 100, 100)])
def test_what_is_computed_follows_what_is_different(layers: int, height: int, width: int) -> None:
    """A few runs for each unit, however many pixels: 0.5, 8 and 2 million beats a frame."""
    nodes = large(layers, height, width)
    network = Simulation(nodes, exact(latency))
    network.feed(3)
    assert isinstance(network.engine, RunNetwork)
    assert network.engine.cost < 40 * len(nodes)
    assert network.result()[1] == height * width
    assert network.engine.moved() > 3 * layers * height * width
    network = Simulation(nodes, least())
    network.feed(1, height * width)
    assert isinstance(network.engine, RunNetwork)
    assert network.engine.cost < 40 * len(nodes)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", KINDS)
def test_what_repeats_is_as_if_it_were_computed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units look for repeats as often as they can, after any number of beats; several frames, also with waits."""
    monkeypatch.setattr(repeats, "LEAST_STEPS", 0)
    skipped, times = 0, repeats._times

    def counted(*args: object) -> int:
        nonlocal skipped
        found = times(*args)  # type: ignore[arg-type]
        skipped += found
        return found

    monkeypatch.setattr(repeats, "_times", counted)
    for seed in range(8):
        nodes, rng = Random(seed, KINDS[kind]).network(6), random.Random(seed)
        ready = [rng.random() < 0.6 for _ in range(rng.randint(2, 9))] + [True] if seed & 2 else []
        pace = rng.randint(100, 300) if seed & 1 else None
        for make in (lambda seed=seed: exact(latency, unlimited=seed % 5 == 0), least):
            monkeypatch.setattr(run_network, "stride", lambda beats, groups: 0)
            plain = RunNetwork(nodes, make(), ready)
            monkeypatch.setattr(run_network, "stride", lambda beats, groups, rng=rng: rng.randint(1, 6))
            again = RunNetwork(nodes, make(), ready)
            if plain.feed(2, pace) and again.feed(2, pace) and plain.feed(3, pace) and again.feed(3, pace):
                for name in plain.names():
                    assert again.consumed(name).tolist() == plain.consumed(name).tolist(), (seed, name)
                    assert again.offered(name).tolist() == plain.offered(name).tolist(), (seed, name)
    assert skipped > 100


def test_where_rows_may_repeat() -> None:
    """Within a frame, also where a stream does not say what a pixel is; a converter of equal beats has one phase."""
    assert stride(8664, 4332) == 8664 // 57
    assert stride(8664, 1) == 8664 // 76
    assert stride(4096, 64) == 64
    assert stride(7, 1) == 3
    enters, leaves = Stream(IntType(0, 255), 3, 100, 300), Stream(IntType(0, 255), 2, 150, 300)
    flow = regroup_flow(enters, leaves)
    assert (flow.enters, flow.leaves) == ([3], [2])


def memory(rng: random.Random, pace: int) -> Memory:
    """Windows of 3 x 3 words on a random image, or blocks that are sent again, with more or less room than they need."""
    beats = rng.choice([pace, rng.randint(1, 5)])
    if rng.random() < 0.4:
        block = rng.randint(2, 8)
        return Memory(Runs.of([block - 1]), Runs.of([0]), block, 2 * block, rng.choice([1, beats, pace * block]))
    height, width = rng.randint(4, 12), rng.randint(3, 9)
    needs = [min(y + 1, height - 1) * width + min(x + 1, width - 1) for y in range(height) for x in range(width)]
    keeps = [max(y - 1, 0) * width + max(x - 1, 0) for y in range(height) for x in range(width)]
    needs = [max(needs[: v + 1]) for v in range(len(needs))]
    keeps = [min(keeps[v:]) for v in range(len(keeps))]
    depth = rng.choice([2 * width + 3, 3 * width, 4 * width + 1, 1 << 60])
    return Memory(Runs.of(needs), Runs.of(keeps), height * width, depth, beats)


def test_windows_that_wait_repeat_as_if_they_were_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their beats wait for a consumer that takes them at a pace of its own, known to the cycle or guessed too early."""
    monkeypatch.setattr(repeats, "LEAST_STEPS", 0)
    rng, skipped = random.Random(0), 0
    for _ in range(200):
        pace = rng.randint(1, 4)
        kept = memory(rng, pace)
        machine = windows(kept, rng.randint(0, 3), 1, rng.randint(0, 1))
        waits = [rng.choice([0, 0, 1, rng.randint(0, 40)]) for _ in range(rng.randint(1, 6))]
        gap, frozen, guess, often = rng.randint(0, 1), rng.random() < 0.5, None, rng.choice([1, 0.97, 0.05, 0.01])
        for _ in range(3):
            moved = []
            for apart in (0, rng.randint(1, 9)):
                enters, leaves = Wire("in", frozen), Wire("out", True)
                for frame in range(20 if kept.words < 9 else 3):
                    enters.due.append(frame * kept.words * (pace + gap), pace, kept.words)
                enters.stride, leaves.guess = apart, guess
                moved.append(machine.run([enters], [leaves]))
            plain, again = (
                [runs.array().tolist() for runs in (*m.consumed, *m.due, m.starts or Runs())] for m in moved
            )
            assert again == plain, kept
            skipped += moved[1].steps < moved[0].steps // 2
            guess, last, late = Runs(), -1, 0
            for k, due in enumerate(plain[1]):
                last = max(last + 1, due + late)
                late += waits[k % len(waits)] * (rng.random() < often)
                last = max(last, due + late)
                guess.append(last, 1, 1)
    assert skipped > 50
