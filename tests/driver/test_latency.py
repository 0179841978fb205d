"""--latency-cycles: longer stages until the network keeps a latency, or an error that names the least one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models import Net, save

import hlsgen
from hlsgen import Options
from hlsgen.adder_graph import schedule
from hlsgen.dataflow.units import AdderMatVec


def network(tmp_path: Path) -> Path:
    net, rng = Net((1, 24)).quant(name="q0", signed=1), np.random.default_rng(3)
    net.linear(weight=(rng.integers(-7, 8, (24, 16)) * 0.25).astype(np.float32), name="fc0").quant(
        8.0, name="q1", signed=1
    )
    net.linear(weight=(rng.integers(-7, 8, (16, 5)) * 0.25).astype(np.float32), name="fc1")
    return save(net.model(), tmp_path / "net.onnx")


@pytest.mark.sweep
def test_the_first_stages_that_keep_the_limit(tmp_path: Path) -> None:
    path = network(tmp_path)
    plain = hlsgen.check(path, Options(target_cycles=1)).timing.latency
    latencies = {
        limit: hlsgen.check(path, Options(target_cycles=1, latency_cycles=limit)).timing.latency
        for limit in (plain, plain - 1, plain - 2)
    }
    assert latencies[plain] == plain
    assert all(latency <= limit for limit, latency in latencies.items())


def test_stages_are_no_longer_than_the_limit_needs(tmp_path: Path) -> None:
    """Two cycles fewer need stages of two adders and a quarter, not of three."""
    path = network(tmp_path)
    plain = hlsgen.check(path, Options(target_cycles=1)).timing.latency
    nodes = hlsgen.check(path, Options(target_cycles=1, latency_cycles=plain - 2)).network.nodes
    graphs = [node.unit for node in nodes if isinstance(node.unit, AdderMatVec)]
    assert {unit.adders_per_stage for unit in graphs} == {2.25}
    limits = [{n: schedule(unit.graph, n).limit for n in (2, 2.25, 3)} for unit in graphs]
    assert all(x[2.25] < x[3] for x in limits)


@pytest.mark.sweep
def test_a_limit_below_the_least_latency(tmp_path: Path) -> None:
    with pytest.raises(
        hlsgen.HlsgenError, match=r"--latency-cycles: 2: with the longest stages this network still takes \d+ cycles"
    ):
        hlsgen.check(network(tmp_path), Options(target_cycles=1, latency_cycles=2))


def test_only_verilog_has_it(tmp_path: Path) -> None:
    with pytest.raises(hlsgen.HlsgenError, match="its latency is that of the HLS tool"):
        hlsgen.check(network(tmp_path), Options(target="hls", latency_cycles=9))


@pytest.mark.sim
def test_long_stages_in_simulation(tmp_path: Path) -> None:
    """The predicted cycles are those of Verilog with three or more adders in a stage, and certify proves it."""
    path = network(tmp_path)
    latency = hlsgen.check(path, Options(target_cycles=1)).timing.latency
    build = hlsgen.build(path, tmp_path / "core", Options(target_cycles=1, latency_cycles=latency - 2))
    assert build.timing.latency <= latency - 2
    assert hlsgen.certify(tmp_path / "core").ok
    assert hlsgen.verify(tmp_path / "core", simulators=["verilator"], frames=20, oracle="none").ok
