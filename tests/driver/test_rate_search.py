"""The search for the fastest network: as fast as the best rate of all that are asked for one by one, whatever the
budget.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import DOMAIN, Net, save

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import device
from hlsgen.driver.compile import network_cost
from hlsgen.driver.fit import SHARE, allowed
from hlsgen.driver.rate_search import RateSearch, Trial, spread

#: Rates that are asked for one by one.
RATES = 24


def dense(sizes: list[int], bits: int) -> Net:
    """Layers without biases, random weights and quantizers of so many bits."""
    numbers, net = np.random.default_rng(1), Net((1, sizes[0])).quant(scale=0.1, bits=float(bits), signed=1)
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        weight = numbers.integers(1 - (1 << (bits - 1)), 1 << (bits - 1), (columns, rows)).astype(np.float32) * 0.01
        net.linear(rows, columns, weight=weight, scale=0.01, bits=float(bits), name=f"fc{n}")
        if n < len(sizes) - 2:
            net.then("Relu").quant(scale=0.1, bits=float(bits), signed=0)
    return net


def convolutions(channels: list[int], bits: int, depthwise: bool) -> Net:
    """Convolutions of 3 x 3 on 8 x 8 pixels, or depthwise ones each followed by one of 1 x 1."""
    numbers, net = np.random.default_rng(1), Net((1, channels[0], 8, 8)).quant(scale=0.1, bits=float(bits), signed=1)
    for columns, rows in itertools.pairwise(channels):
        layers = [(3, columns, columns), (1, 1, rows)] if depthwise else [(3, 1, rows)]
        for side, groups, count in layers:
            shape = count, columns // groups, side, side
            weight = numbers.integers(1 - (1 << (bits - 1)), 1 << (bits - 1), shape).astype(np.float32) * 0.01
            data = net.last
            net.node("IntQuant", weight, 0.01, 0.0, float(bits), domain=DOMAIN)
            net.node("Conv", data, net.last, group=groups, pads=[side // 2] * 4, kernel_shape=[side, side])
            net.then("Relu").quant(scale=0.1, bits=float(bits), signed=0)
    return net


NETS = {
    "two layers": lambda: dense([16, 16, 5], 4),
    "8 bits": lambda: dense([32, 32, 32, 10], 8),
    "binary": lambda: dense([64, 64, 10], 2),
    "images": lambda: convolutions([2, 8, 8], 4, depthwise=False),
    "depthwise": lambda: convolutions([4, 8, 16], 6, depthwise=True),
}
DEVICES = ("ice40-up5k", "ice40-hx8k", "gowin-gw1n-9", "ecp5-12k", "cyclone10-10cl025")
BUDGETS: list[dict[str, Any]] = [
    {"max_lut": 700},
    {"max_lut": 1500, "max_dsp": 0},
    {"max_lut": 1500, "max_dsp": 0, "prefer": "dsp"},
    {"max_lut": 900, "max_dsp": 8, "prefer": "dsp"},
    {"max_lut": 1200, "max_bram": 0},
]


@lru_cache(maxsize=4)
def at_rates(path: Path, prefer: str, name: str | None, dsp: int | None) -> list[tuple[int, Any]]:
    """(interval, build) of each rate that is asked for."""
    options = Options(prefer=prefer, device=name, max_dsp=dsp if prefer == "dsp" else None)
    slowest = hlsgen.check(path, Options(target_cycles=10**7)).timing.interval
    found = []
    for cycles in spread(range(1, slowest + 1), RATES):
        try:
            build = hlsgen.check(path, Options(**{**vars(options), "target_cycles": cycles}))
        except HlsgenError:
            continue
        found.append((build.timing.interval, build))
    return found


def fastest_of_rates(path: Path, options: Options) -> float:
    """The least interval of a rate whose network is within the budget; infinite if none is."""
    family = options.chosen_device.family.counted_as if options.chosen_device else "xc7"
    rates = at_rates(path, options.prefer, options.device, options.max_dsp)
    fitting = [x for x, build in rates if options.budget.excess(network_cost(build, family)) <= 1]
    return min(fitting, default=math.inf)


def found(path: Path, options: Options) -> float:
    """The interval of the search, whose network is within the budget; infinite if it is refused."""
    try:
        build = hlsgen.check(path, options)
    except HlsgenError:
        return math.inf
    family = options.chosen_device.family.counted_as if options.chosen_device else "xc7"
    assert options.budget.excess(network_cost(build, family)) <= 1
    return build.timing.interval


@pytest.mark.sweep
@pytest.mark.cases(3)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_rate_within_a_budget_is_faster(budget: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = saved("two layers", tmp_path_factory)
    options = Options(**budget)
    assert found(path, options) <= fastest_of_rates(path, options)


@pytest.mark.sweep
def test_more_tables_are_never_slower(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = saved("two layers", tmp_path_factory)
    intervals = [found(path, Options(max_lut=count)) for count in range(300, 1600, 300)]
    assert intervals == sorted(intervals, reverse=True)


@pytest.mark.sweep
def test_a_device_without_multipliers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It has 0 blocks, of which 0 are taken: no reason to slow down."""
    path, options = saved("two layers", tmp_path_factory), Options(device="ice40-hx8k", max_lut=3000)
    assert found(path, options) <= fastest_of_rates(path, options) < 48


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("net", NETS)
def test_no_rate_on_a_device_is_faster(net: str, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path, options = saved(net, tmp_path_factory), Options(device=name)
    assert found(path, options) <= 1.1 * fastest_of_rates(path, options)


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("net", NETS)
def test_no_rate_of_a_network_is_faster(
    net: str, budget: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, options = saved(net, tmp_path_factory), Options(**budget)
    assert found(path, options) <= 1.1 * fastest_of_rates(path, options)


def test_costs_that_do_not_fall_with_the_rate() -> None:
    """The fastest rate that fits is found, though slower ones do not fit."""
    excess = {1: 3.0, 2: 0.9, 4: 1.4, 8: 1.2, 16: 0.8, 32: 0.5}
    search = RateSearch(
        list(excess), lambda cycles: excess[cycles] / 2, lambda n: Trial(n, n, excess[n], excess[n], 0, None), 12
    )
    assert search.fastest().cycles == 2


def test_rates_that_make_nothing_faster_are_not_planned() -> None:
    """A loop takes 60 cycles at any rate: of all rates below, only the slowest can be cheaper than one that fits."""
    search = RateSearch(
        list(range(1, 101)), lambda n: 20 / n, lambda n: Trial(n, max(n, 60), 20 / n, 20 / n, 20 / n, None), 24
    )
    assert (search.fastest().cycles, search.fastest().interval) == (59, 60)
    assert sum(20 <= n < 60 for n in search.trials) <= 4


def test_resources_that_every_rate_fills_do_not_mislead() -> None:
    """The rough load is four times too high: the slowest network shows it, though its excess is near 1."""
    loads = {1: 1.5, 2: 0.8, 4: 0.4, 8: 0.3}
    search = RateSearch(
        list(loads), lambda n: 4 * loads[n], lambda n: Trial(n, n, max(loads[n], 0.99), loads[n], 0, None), 12
    )
    assert search.fastest().cycles == 2


def test_a_target_that_does_not_fit_is_met_by_a_faster_network() -> None:
    excess = {1: 3.0, 2: 0.9, 4: 1.4, 8: 1.2}
    search = RateSearch(
        list(excess), lambda cycles: excess[cycles], lambda n: Trial(n, n, excess[n], excess[n], 0, None), 12
    )
    assert search.slowest(8).cycles == 2
    assert search.slowest(1).cycles == 2


@pytest.mark.sweep
def test_weights_that_no_rate_makes_smaller(tmp_path: Path) -> None:
    path = save(dense([256, 256, 10], 8).model(), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match=r"The weights alone are 0\.54 Mbit; the device has 0\.12 Mbit in EBR"):
        hlsgen.check(path, Options(device="ice40-up5k"))


def test_registers_take_cells_of_the_ice40() -> None:
    budget = allowed(Budget(), device("ice40-hx8k"), SHARE)
    cost = Cost(lut=4000, ff=4000)
    assert budget.excess(cost) > 1
    assert allowed(Budget(), device("ecp5-12k"), SHARE).excess(cost) < 1


def saved(net: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a network, written once a session."""
    path = tmp_path_factory.getbasetemp() / f"{net.replace(' ', '_')}.onnx"
    return path if path.exists() else save(NETS[net]().model(), path)
