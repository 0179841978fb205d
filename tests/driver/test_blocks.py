"""Multiplier blocks under a budget: no more than it allows, where they save most, and never worse with more of them."""

from __future__ import annotations

import itertools

import pytest
from paths import ROOT

import hlsgen
from hlsgen.dataflow.units import WeightedUnit
from hlsgen.driver.compile import Build, network_cost

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def built(**options: int | str) -> Build:
    return hlsgen.check(DIGITS, hlsgen.Options(**options))


def in_blocks(build: Build) -> list[bool]:
    """Of each layer, whether its products are in blocks."""
    return [node.unit.dsp is not None for node in build.network.nodes if isinstance(node.unit, WeightedUnit)]


@pytest.mark.sweep
def test_a_rate_with_a_number_of_blocks() -> None:
    all_ = network_cost(built(target_cycles=64, prefer="dsp"))
    budgets = [0, *range(8, all_.dsp, 12), all_.dsp, 2 * all_.dsp]
    builds = [built(target_cycles=64, prefer="dsp", max_dsp=count) for count in budgets]
    costs = [network_cost(build) for build in builds]
    assert all(cost.dsp <= count for cost, count in zip(costs, budgets, strict=True))
    assert all(more.lut <= less.lut for less, more in itertools.pairwise(costs))
    assert {build.timing.interval for build in builds} == {64}
    assert costs[0] == network_cost(built(target_cycles=64))
    assert costs[-1] == costs[-2] == all_
    assert any(any(found) and not all(found) for found in map(in_blocks, builds))


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("tables", [2500, 4000])
def test_a_rate_within_tables_and_blocks(tables: int) -> None:
    builds = [built(prefer="dsp", max_lut=tables, max_dsp=count) for count in (0, 20, 60, 200)]
    costs = [network_cost(build) for build in builds]
    assert all(cost.dsp <= count and cost.lut <= tables for cost, count in zip(costs, (0, 20, 60, 200), strict=True))
    intervals = [build.timing.interval for build in builds]
    assert intervals == sorted(intervals, reverse=True)
    assert intervals[-1] < intervals[0]


def test_a_device_has_no_more_blocks() -> None:
    """The ECP5 25F has 28, and all products would take more."""
    build = built(target_cycles=64, prefer="dsp", device="ecp5-25k")
    assert 0 < network_cost(build, "ecp5").dsp <= 28
    assert any(in_blocks(build))
    assert not all(in_blocks(build))
