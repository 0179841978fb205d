"""The networks that are tried: no two of the same folding, from the fastest to the slowest, within the requested
number."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from models import mlp, quantizer, save
from paths import ROOT
from sweeps import network

from hlsgen import HlsgenError, Options
from hlsgen.dataflow.folding import choose_folding
from hlsgen.dataflow.workload import works_of
from hlsgen.devices import device
from hlsgen.driver.backends import BACKENDS
from hlsgen.driver.compile import targets_of
from hlsgen.explore.points import Place, Point
from hlsgen.explore.settings import settings, split
from hlsgen.explore.work import graph_of, price, source_of
from hlsgen.ir import Graph


def graph(path: Path, **options: object) -> Graph:
    return graph_of(source_of(path, path.read_bytes()), Options(**options))[0]  # type: ignore[arg-type]


DIGITS = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 24, 1000])
def test_foldings_differ_and_reach_from_the_fastest_to_the_slowest(limit: int) -> None:
    net = graph(DIGITS)
    networks = settings(net, Options(), Place(), limit)
    assert 1 <= len(networks) <= limit
    price = BACKENDS["verilog"].folding_price
    for prefer in ("lut", "dsp"):
        of_preference = [options for options in networks if options.prefer == prefer]
        foldings = [tuple(sorted(choose_folding(net, targets_of(options), price).items())) for options in of_preference]
        assert len(set(foldings)) == len(foldings)
        cycles = [options.target_cycles for options in of_preference]
        assert cycles == sorted(set(cycles), key=lambda n: n or 0)
        # The slowest layer takes exactly these cycles: other targets of the same folding would be the same network.
        for options, folding in zip(of_preference, foldings, strict=True):
            assert options.target_cycles == max(works_of(net)[name].cycles(*pair) for name, pair in folding)
        assert not of_preference or cycles[-1] == 4608  # the smallest: if it does not fit, no network does
        if limit >= 24:
            # One product a cycle in every layer: a 3 x 3 convolution of 8 x 8 pixels and 8 channels takes 4608.
            assert (cycles[0], cycles[-1]) == (8, 4608)
    if limit == 24:
        assert len(networks) == 24


@pytest.mark.sweep
def test_powers_of_two_are_tried_if_the_number_allows() -> None:
    net = graph(DIGITS)
    price = BACKENDS["verilog"].folding_price
    foldings = [choose_folding(net, targets_of(options), price) for options in settings(net, Options(), Place(), 1000)]
    for n in range(14):
        assert choose_folding(net, targets_of(Options(target_cycles=1 << n)), price) in foldings


def test_spread_is_even() -> None:
    cycles = [
        options.target_cycles or 0
        for options in settings(graph(DIGITS), Options(), Place(), 24)
        if options.prefer == "lut"
    ]
    assert max(b / a for a, b in pairwise(cycles)) < 2.5


@pytest.mark.sweep
def test_small_devices_and_devices_without_multipliers() -> None:
    net = graph(DIGITS)
    networks = settings(net, Options(), Place(device("ice40-up5k")), 24)
    assert min(options.target_cycles or 0 for options in networks) > 8
    assert {options.prefer for options in settings(net, Options(), Place(device("ice40-hx8k")), 8)} == {"lut"}


@pytest.mark.sweep
def test_few_points_go_to_networks_that_fit() -> None:
    """By their estimate, with some kind of weight memory; the slowest network with DSP blocks is always tried."""
    source, place = source_of(DIGITS, DIGITS.read_bytes()), Place(device("ice40-up5k"))
    networks = settings(graph(DIGITS), Options(), place, 4)
    for tried in networks:
        records = price(source, tried, place).records
        points = [Point(options, place, **record) for options, record in zip(split(tried), records, strict=True)]
        slowest = tried.prefer == "dsp" and tried.target_cycles == max(
            setting.target_cycles or 0 for setting in networks
        )
        assert slowest or any(point.fits for point in points), tried.target_cycles
    assert len(networks) == 4
    # Few networks fit with its 28 DSP blocks: the others use none.
    assert [len(settings(graph(DIGITS), Options(), Place(device("ecp5-25k")), limit)) for limit in (2, 12)] == [2, 12]


def test_layers_of_given_folding_keep_it(tmp_path: Path) -> None:
    net = graph(network(tmp_path))
    base = Options(folding={"fc0": {"pe": 2, "simd": 3}})
    networks = settings(net, base, Place(), 50)
    assert all(options.folding == base.folding for options in networks)
    assert min(options.target_cycles or 0 for options in networks) == 8 // 2 * 12 // 3


def test_quantizers_have_lanes(tmp_path: Path) -> None:
    net = graph(save(quantizer().model(), tmp_path / "q.onnx"))
    assert [(options.lanes, options.prefer) for options in settings(net, Options(), Place(), 24)] == [
        (lanes, prefer) for lanes in (4, 2, 1) for prefer in ("lut", "dsp")
    ]
    assert [options.lanes for options in settings(net, Options(), Place(), 3)] == [2, 1, 1]


def test_memories_are_those_of_all_targets() -> None:
    assert [options.weights for options in split(Options())] == ["auto", "lutram", "bram"]
    assert [options.weights for options in split(Options(target="verilog,hls"))] == ["auto"]


def test_problems_of_the_model_are_all_named(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match="HG041"):
        graph(path, folding={"nothing": {"pe": 1, "simd": 1}})


def test_plain_ports_take_a_frame_in_each_cycle(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "net.onnx")
    networks = settings(graph(path, ports="plain"), Options(ports="plain"), Place(), 9)
    assert networks == [Options(ports="plain", target_cycles=1)]
