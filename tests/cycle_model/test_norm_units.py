"""Normalizations in both engines of the cycle model, beat by beat and in runs of beats: the same times."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from hlsgen.cycle_model import run_network
from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.timing_models import exact, fewest_beats
from hlsgen.dataflow.norm_units import RowCodes, units_of
from hlsgen.dataflow.units import INPUT, Fifo, Fork, Node, Port, stream_of
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.unit_table import latency


def network(rng: random.Random) -> list[Node]:
    """Ports around one normalization, with any number of roots at a time and a FIFO of any depth that does."""
    lanes, beats, rows = rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 5)
    codes = RowCodes(lanes * beats, IntType(-2, 1), 0, 0, rng.random() < 0.5)
    moments, root, scale = units_of(codes, Fraction(rng.randint(1, 9), 7), lanes, rng.randint(1, 6))
    data = stream_of(IntType(-2, 1), lanes, lanes * beats * rows, lanes * beats)
    row, real = (
        stream_of(IntType(0, 255), 1, rows, 1),
        stream_of(IntType(0, 0xFFFFFFFF), lanes, data.beats * lanes, data.group),
    )
    depth = beats * (root.rows_in_flight + 1) + 20 + rng.randint(0, 40)
    return [
        Node("s_axis", Port(), (INPUT,), (data,), ("s_axis",), data),
        Node("split", Fork(2), ("s_axis",), (data,), ("a", "b"), data),
        Node("moments", moments, ("a",), (data,), ("moments",), row, "norm"),
        Node("root", root, ("moments",), (row,), ("root",), row, "norm"),
        Node("wait", Fifo(depth), ("b",), (data,), ("wait",), data),
        Node("norm", scale, ("wait", "root"), (data, row), ("norm",), real, "norm", 0),
        Node("m_axis", Port(), ("norm",), (real,), ("m_axis",), real),
    ]


def test_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_network, "FEW", 20_000)
    equal = 0
    for seed in range(30):
        rng = random.Random(seed)
        nodes = network(rng)
        ready = [rng.random() < 0.5 for _ in range(rng.randint(2, 17))] + [True] if seed & 2 else []
        model = exact(latency)
        beats, runs = BeatNetwork(nodes, model, ready), RunNetwork(nodes, model, ready)
        beats.feed(4, None)
        finished = runs.feed(4, None)
        assert len(beats.ends()) == 4
        equal += finished
        for name in beats.names() if finished else ():
            assert runs.consumed(name).tolist() == beats.consumed(name).tolist(), (seed, name)
            assert runs.offered(name).tolist() == beats.offered(name).tolist(), (seed, name)
    assert equal >= 25


def test_the_least_comes_through() -> None:
    for seed in range(10):
        nodes = network(random.Random(seed))
        for engine in (BeatNetwork(nodes, fewest_beats()), RunNetwork(nodes, fewest_beats())):
            engine.feed(1, None)
            assert len(engine.ends()) == 1
