"""The simulation in runs of beats gives the times of the beat-by-beat simulation, with little computation."""

from __future__ import annotations

import random

import pytest
from networks import KINDS, Random, large, with_early_ports

from hlsgen.cycle_model import repeats, run_network
from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.run_buffers import windows
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.run_processes import Memory
from hlsgen.cycle_model.run_wires import Wire
from hlsgen.cycle_model.runs import Runs
from hlsgen.cycle_model.simulate import Simulation
from hlsgen.cycle_model.timing_models import exact, fewest_beats
from hlsgen.cycle_model.wiring import stride
from hlsgen.dataflow.flow import regroup_flow
from hlsgen.dataflow.units import Stream
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.unit_table import latency


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On small networks the search goes on as long as it takes, and foresees guesses as early as possible."""
    monkeypatch.setattr(run_network, "FEW", 20_000)
    monkeypatch.setattr(run_network, "PLAIN", 1)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_times_as_beat_by_beat(kind: str) -> None:
    """On every stream, also with a sink that is not always ready, and with ready cut at either port.

    A network that deadlocks gives no result.
    """
    equal = 0
    for seed in range(12):
        nodes, rng = Random(seed, KINDS[kind]).network(6), random.Random(seed)
        if seed % 3 == 2:
            nodes = with_early_ports(nodes)
        ready = [rng.random() < 0.5 for _ in range(rng.randint(2, 17))] + [True] if seed & 2 else []
        interval = rng.randint(1, 300) if seed & 1 else None
        model = exact(latency, unlimited=seed % 5 == 0)
        beats, runs = BeatNetwork(nodes, model, ready), RunNetwork(nodes, model, ready)
        beats.feed(3, interval)
        finished = runs.feed(3, interval)
        assert len(beats.ends()) == 3 or not finished
        if not finished:
            continue
        equal += 1
        for name in beats.names():
            assert runs.consumed(name).tolist() == beats.consumed(name).tolist(), (seed, name)
            assert runs.offered(name).tolist() == beats.offered(name).tolist(), (seed, name)
        assert runs.spans() == beats.spans()
    assert equal >= 8


@pytest.mark.sweep
@pytest.mark.usefixtures("patient")
def test_a_frame_that_passes_in_runs_passes_beat_by_beat() -> None:
    """In the model of the fewest stored beats; usually the reverse holds too."""
    passed = blocked = 0
    for seed in range(10):
        for kinds in (KINDS["routes"], ("branches", "shift", "same", "fifo", "matrix", "width")):
            nodes = Random(seed, kinds).network(6)
            beats, runs = BeatNetwork(nodes, fewest_beats()), RunNetwork(nodes, fewest_beats())
            beats.feed(1, None)
            finished = runs.feed(1, 3 * nodes[0].source.beats)
            assert finished <= (len(beats.ends()) == 1), (seed, kinds)
            passed += finished
            blocked += not beats.ends()
    assert passed > 6
    assert blocked > 2


@pytest.mark.parametrize(("layers", "height", "width"), [(10, 100, 100), (10, 400, 400), (40, 100, 100)])
def test_work_does_not_depend_on_the_number_of_pixels(layers: int, height: int, width: int) -> None:
    """A few runs for each unit: 0.5, 8 and 2 million beats a frame."""
    nodes = large(layers, height, width)
    network = Simulation(nodes, exact(latency))
    network.feed(3)
    assert isinstance(network.engine, RunNetwork)
    assert network.engine.cost < 40 * len(nodes)
    assert network.result()[1] == height * width
    assert network.engine.moved() > 3 * layers * height * width
    network = Simulation(nodes, fewest_beats())
    network.feed(1, height * width)
    assert isinstance(network.engine, RunNetwork)
    assert network.engine.cost < 40 * len(nodes)


@pytest.mark.sweep
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", KINDS)
def test_repeats_equal_computed_runs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units compare states as often as possible, after any number of beats; several frames, also with stalls."""
    monkeypatch.setattr(repeats, "LEAST_STEPS", 0)
    skipped, times = 0, repeats._times

    def counted(*args: object) -> int:
        nonlocal skipped
        repetitions = times(*args)  # type: ignore[arg-type]
        skipped += repetitions
        return repetitions

    monkeypatch.setattr(repeats, "_times", counted)
    for seed in range(8):
        nodes, rng = Random(seed, KINDS[kind]).network(6), random.Random(seed)
        ready = [rng.random() < 0.6 for _ in range(rng.randint(2, 9))] + [True] if seed & 2 else []
        interval = rng.randint(100, 300) if seed & 1 else None
        for make in (lambda seed=seed: exact(latency, unlimited=seed % 5 == 0), fewest_beats):
            monkeypatch.setattr(run_network, "stride", lambda beats, groups: 0)
            computed = RunNetwork(nodes, make(), ready)
            monkeypatch.setattr(run_network, "stride", lambda beats, groups, rng=rng: rng.randint(1, 6))
            repeated = RunNetwork(nodes, make(), ready)
            if (
                computed.feed(2, interval)
                and repeated.feed(2, interval)
                and computed.feed(3, interval)
                and repeated.feed(3, interval)
            ):
                for name in computed.names():
                    assert repeated.consumed(name).tolist() == computed.consumed(name).tolist(), (seed, name)
                    assert repeated.offered(name).tolist() == computed.offered(name).tolist(), (seed, name)
    assert skipped > 100


def test_stride_of_repeats() -> None:
    """Within a frame, also if a stream does not tell its pixels; a converter of equal beats has one phase."""
    assert stride(8664, 4332) == 8664 // 57
    assert stride(8664, 1) == 8664 // 76
    assert stride(4096, 64) == 64
    assert stride(7, 1) == 3
    enters, leaves = Stream(IntType(0, 255), 3, 100, 300), Stream(IntType(0, 255), 2, 150, 300)
    flow = regroup_flow(enters, leaves)
    assert (flow.enters, flow.leaves) == ([3], [2])


def memory(rng: random.Random, spacing: int) -> Memory:
    """Windows of 3 x 3 words on a random image, or repeated blocks, with more or less room than they need."""
    beats = rng.choice([spacing, rng.randint(1, 5)])
    if rng.random() < 0.4:
        block = rng.randint(2, 8)
        return Memory(Runs.of([block - 1]), Runs.of([0]), block, 2 * block, rng.choice([1, beats, spacing * block]))
    height, width = rng.randint(4, 12), rng.randint(3, 9)
    needs = [min(y + 1, height - 1) * width + min(x + 1, width - 1) for y in range(height) for x in range(width)]
    keeps = [max(y - 1, 0) * width + max(x - 1, 0) for y in range(height) for x in range(width)]
    needs = [max(needs[: v + 1]) for v in range(len(needs))]
    keeps = [min(keeps[v:]) for v in range(len(keeps))]
    depth = rng.choice([2 * width + 3, 3 * width, 4 * width + 1, 1 << 60])
    return Memory(Runs.of(needs), Runs.of(keeps), height * width, depth, beats)


@pytest.mark.sweep
def test_stalled_windows_repeat_as_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their consumer has its own rate, known to the cycle or guessed too early."""
    monkeypatch.setattr(repeats, "LEAST_STEPS", 0)
    rng, skipped = random.Random(0), 0
    for _ in range(200):
        spacing = rng.randint(1, 4)
        buffer = memory(rng, spacing)
        machine = windows(buffer, rng.randint(0, 3), 1, rng.randint(0, 1))
        waits = [rng.choice([0, 0, 1, rng.randint(0, 40)]) for _ in range(rng.randint(1, 6))]
        gap, frozen, guess, stall_probability = (
            rng.randint(0, 1),
            rng.random() < 0.5,
            None,
            rng.choice([1, 0.97, 0.05, 0.01]),
        )
        for _ in range(3):
            moved = []
            for compare_stride in (0, rng.randint(1, 9)):
                enters, leaves = Wire("in", frozen), Wire("out", True)
                for frame in range(20 if buffer.words < 9 else 3):
                    enters.due.append(frame * buffer.words * (spacing + gap), spacing, buffer.words)
                enters.stride, leaves.guess = compare_stride, guess
                moved.append(machine.run([enters], [leaves]))
            computed, repeated = (
                [runs.array().tolist() for runs in (*m.consumed, *m.due, m.starts or Runs())] for m in moved
            )
            assert repeated == computed, buffer
            skipped += moved[1].steps < moved[0].steps // 2
            guess, last, delay = Runs(), -1, 0
            for k, due in enumerate(computed[1]):
                last = max(last + 1, due + delay)
                delay += waits[k % len(waits)] * (rng.random() < stall_probability)
                last = max(last, due + delay)
                guess.append(last, 1, 1)
    assert skipped > 50
