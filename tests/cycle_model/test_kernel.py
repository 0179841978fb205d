"""The kernel in C gives the times of the processes in Python; without a compiler, these are computed instead."""

from __future__ import annotations

import random
import shutil

import pytest
from networks import KINDS, Random, large, with_early_ports

from hlsgen.cycle_model import kernel, simulate
from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.cycle_model.kernel import compiled
from hlsgen.cycle_model.kernel_network import KernelNetwork
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.timing_models import exact, fewest_beats
from hlsgen.verilog.unit_table import latency

#: Units of a network whose matrix stalls for longer than it has run.
MORE = ("gather", "take", "pad", "fifo", "rows", "winner")
needs_compiler = pytest.mark.skipif(compiled() is None, reason="no C compiler (cc, gcc, clang) is on PATH")


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_times_as_in_python(kind: str) -> None:
    """On every stream, also after a deadlock and after more frames, with memories of any depth."""
    functions = compiled()
    assert functions is not None
    complete = 0
    for seed in range(16):
        nodes, rng = Random(seed, KINDS[kind]).network(6), random.Random(seed)
        if seed % 3 == 2:
            nodes = with_early_ports(nodes)
        ready = [rng.random() < 0.5 for _ in range(rng.randint(2, 17))] + [True] if seed & 2 else []
        if seed % 4 == 1:
            ready = [False] * 7 + [True]
        interval = rng.randint(1, 300) if seed & 1 else None
        for model in (exact(latency, unlimited=seed % 5 == 0), fewest_beats()):
            beats, compiled_beats = BeatNetwork(nodes, model, ready), KernelNetwork(nodes, model, ready, functions)
            for frames in (1, 2):
                beats.feed(frames, interval)
                compiled_beats.feed(frames, interval)
                assert compiled_beats.ends() == beats.ends(), seed
                assert compiled_beats.moved() == beats.moved(), seed
                assert compiled_beats.spans() == beats.spans(), seed
                for name in beats.names():
                    assert compiled_beats.consumed(name).tolist() == beats.consumed(name).tolist(), (seed, name)
                    assert compiled_beats.offered(name).tolist() == beats.offered(name).tolist(), (seed, name)
            ends = beats.ends()
            if len(ends) < 3:
                assert compiled_beats.blocked() == beats.blocked(), seed
                continue
            complete += 1
            for cycles in (ends[2] - ends[1], ends[2] - ends[1] + 1):
                assert compiled_beats.alike(3, 1, 1, cycles) == beats.alike(3, 1, 1, cycles), seed
    assert complete >= 16


@needs_compiler
def test_memories_fill_while_units_stall() -> None:
    """Words arrive in cycles that a long stall has lost: their enabled cycle is before the first one."""
    functions = compiled()
    assert functions is not None
    nodes = Random(21, ("conv", "depthwise", "pool", "shift", "same", "width", "flat", "matrix", *MORE)).network(7)
    nodes, ready = size(nodes, latency, effort=0).nodes, [False] * 7 + [True]
    beats, compiled_beats = (
        BeatNetwork(nodes, exact(latency), ready),
        KernelNetwork(nodes, exact(latency), ready, functions),
    )
    for network in (beats, compiled_beats):
        network.feed(3, None)
    assert len(beats.ends()) == 3
    assert compiled_beats.ends() == beats.ends()


@needs_compiler
def test_repeated_frames_are_recognized() -> None:
    """Frames that are far apart are alike; with other cycles between them they are not."""
    functions = compiled()
    assert functions is not None
    nodes = Random(3, KINDS["straight"]).network(6)
    network = KernelNetwork(nodes, exact(latency), (), functions)
    network.feed(4, 100_000)
    assert network.alike(4, 2, 1, 100_000)
    assert not network.alike(4, 2, 1, 100_001)


@needs_compiler
def test_the_same_depths_with_and_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is chosen from the first simulation on, or never."""
    nodes = Random(2, KINDS["windows"]).network(8)
    results = []
    for worth in (0, 1 << 60):
        monkeypatch.setattr(kernel, "WORTH", worth)
        engine = simulate.Simulation(nodes, exact(latency)).engine
        assert isinstance(engine, KernelNetwork) == (worth == 0)
        sized = size(nodes, latency)
        depths = {node.name: getattr(node.unit, "depth", 0) for node in sized.nodes}
        results.append((depths, sized.latency, sized.interval, sized.critical))
    assert results[0] == results[1]


def test_short_simulations_do_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler is called once so many beats were asked for that Python takes longer."""
    calls: list[None] = []
    monkeypatch.setattr(kernel, "compiled", lambda: calls.append(None))
    monkeypatch.setattr(kernel.Demand, "beats", 0)
    while kernel.Demand.beats + kernel.FRAMES * 1000 < kernel.WORTH:
        assert kernel.kernel(1000) is None
    assert not calls
    kernel.kernel(1000)
    assert len(calls) == 1


def test_without_a_compiler_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor with one that fails, or whose result cannot be loaded."""
    for program in (None, shutil.which("false"), shutil.which("true")):
        monkeypatch.setattr(shutil, "which", lambda name, program=program: program)
        assert compiled.__wrapped__() is None


@needs_compiler
def test_uncounted_simulations_move_every_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in runs that may fail is only worth its time if somebody reads its work, or there is no kernel."""
    monkeypatch.setattr(kernel, "WORTH", 0)
    nodes = large(4, 32, 32)
    assert simulate.is_large(nodes)
    assert isinstance(simulate.Simulation(nodes, exact(latency)).engine, RunNetwork)
    assert isinstance(simulate.Simulation(nodes, exact(latency), counts=False).engine, KernelNetwork)
    monkeypatch.setattr(simulate, "kernel", lambda beats: None)
    assert isinstance(simulate.Simulation(nodes, exact(latency), counts=False).engine, RunNetwork)
