"""hlsgen.cycle_model.move_cache: repeated moves are computed once, and equal computed moves."""

from __future__ import annotations

import pytest
from networks import large

from hlsgen.cycle_model import simulate
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.cycle_model.run_network import RunNetwork
from hlsgen.cycle_model.simulate import Simulation
from hlsgen.cycle_model.timing_models import exact
from hlsgen.verilog.unit_table import latency


def test_equal_blocks_are_computed_once() -> None:
    """Networks of 5 and of 40 equal blocks: the same number of machines is run."""
    counts = []
    for layers in (5, 40):
        network = Simulation(large(layers, 60, 60), exact(latency))
        network.feed(2)
        counts.append(network.model.cache.computed)
    assert counts[0] == counts[1] < 40


def test_cached_blocks_move_like_computed_blocks() -> None:
    """On every stream, with a FIFO that is too small, so that guesses go back and forth."""
    nodes, model = large(4, 20, 30), exact(latency)
    cached = RunNetwork(nodes, model)
    assert cached.feed(1, None)
    assert cached.feed(2, None)
    computed = RunNetwork(nodes, exact(latency))
    computed.kinds = [-1] * len(computed.kinds)
    assert computed.feed(1, None)
    assert computed.feed(2, None)
    assert computed.cache.computed > 2 * model.cache.computed
    for name in computed.names():
        assert cached.consumed(name).tolist() == computed.consumed(name).tolist(), name
        assert cached.offered(name).tolist() == computed.offered(name).tolist(), name
    assert cached.spans() == computed.spans()


def test_depths_that_are_too_small_are_found_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the smallest depths of a large network never simulates beat by beat."""

    def refused(*_: object) -> None:
        raise AssertionError("beat by beat")

    nodes = large(3, 40, 50)
    monkeypatch.setattr(simulate, "BeatNetwork", refused)
    sized = size(nodes, latency)
    assert (sized.interval, len(sized.critical)) == (2000, 3)


def test_effort_bounds_the_search_in_large_networks() -> None:
    nodes = large(3, 40, 50)
    quick = size(nodes, latency, effort=0)
    assert (quick.interval, quick.critical) == (2000, ())
