"""The search for foldings, compared with all combinations, and its results if nothing divides."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import Net, save
from paths import needs_icarus

import hlsgen
from hlsgen.dataflow import folding_search
from hlsgen.dataflow.folding import fitting
from hlsgen.dataflow.folding_search import FoldingPrice, cheapest
from hlsgen.dataflow.regrouping import dense_lanes, regrouped_streams
from hlsgen.dataflow.units import Stream, stream_of
from hlsgen.dataflow.workload import Workload, divisors, shares, works_of
from hlsgen.driver.backends import BACKENDS
from hlsgen.driver.summary import estimate
from hlsgen.numerics.fixed import IntType

NIBBLE = IntType(0, 15)


def chain(*sizes: int, seed: int = 1) -> onnx.ModelProto:
    """Layers of 3-bit weights with quantizers of 3 bits between them."""
    rng, net = np.random.default_rng(seed), Net((1, sizes[0])).quant(bits=3.0, signed=0)
    for n, (columns, rows) in enumerate(pairwise(sizes)):
        weight = rng.integers(-3, 4, (columns, rows)).astype(np.float32)
        net.linear(rows, columns, weight, f"fc{n}", scale=1.0, bits=3.0)
        if n < len(sizes) - 2:
            net.quant(scale=4.0, bits=3.0, signed=0)
    return net.model()


@pytest.mark.parametrize("n", [1, 2, 7, 12, 97, 490])
def test_shares_are_the_smallest_for_every_number_of_rounds(n: int) -> None:
    rounds = {-(-n // size): size for size in range(n, 0, -1)}
    assert shares(n) == sorted(rounds.values())
    assert set(divisors(n)) <= set(shares(n))


@pytest.mark.parametrize("target", [1, 5, 12, 50, 1000])
def test_uneven_foldings_have_the_smallest_simd(tmp_path: Path, target: int) -> None:
    work = works_of(hlsgen.check(save(chain(30, 22), tmp_path / "m.onnx")).graph)["fc0"]
    for pe, simd in work.uneven(target):
        assert work.legal(pe, simd)
        assert 22 % pe or 30 % simd
        assert simd == min(s for s in range(1, 31) if work.cycles(pe, s) <= target)
    enough = [pe for pe in range(1, 23) if work.cycles(pe, 30) <= target]
    fitting_pes = {pe for pe, _ in fitting(work, target)}
    assert all(any(-(-22 // pe) == -(-22 // other_pe) for other_pe in fitting_pes) for pe in enough)


def test_a_layer_knows_if_a_quantizer_maps_its_sums_to_bits(tmp_path: Path) -> None:
    """Also after a view; not if codes have more bits, and not at the end."""
    net = Net((1, 2, 4, 4)).quant(bits=3.0, signed=0)
    net.node(
        "IntQuant", np.ones((3, 2, 2, 2), np.float32), 1.0, 0.0, 3.0, name="kernel", domain="qonnx.custom_op.general"
    )
    net.node("Conv", net.nodes[0].output[0], net.last, name="conv").quant(4.0, bits=1.0, signed=0)
    net.node("Flatten", net.last).linear(4, 27, name="fc0").quant(4.0, bits=3.0, signed=0).linear(2, 4, name="fc1")
    works = works_of(hlsgen.check(save(net.model(), tmp_path / "m.onnx")).graph)
    assert {name: work.bits for name, work in works.items()} == {"conv": True, "fc0": False, "fc1": False}


@pytest.mark.sweep
@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(6))
def test_a_chain_has_the_cheapest_of_all_combinations(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prices of every layer and every width converter are random."""
    monkeypatch.setattr(folding_search, "KEPT", 99)
    graph = hlsgen.check(save(chain(6, 5, 7, 4), tmp_path / "m.onnx")).graph
    works, rng = works_of(graph), np.random.default_rng(seed)
    layer_price = {name: rng.integers(0, 100, (9, 9)) for name in works}
    converter_price = rng.integers(0, 60, (9, 9))
    price = FoldingPrice(
        lambda work, pe, simd: float(layer_price[work.layer.name][pe, simd]),
        lambda source, result: float(converter_price[source.lanes, result.lanes]),
        lambda work, pe, simd: float(converter_price[work.rows, pe]),
    )
    target = 1  # every change of width is one converter

    def options(work: Workload) -> list[tuple[int, int]]:
        return [(pe, simd) for pe in range(1, work.rows + 1) for simd in range(1, work.columns + 1)]

    def cost(pairs: tuple[tuple[int, int], ...]) -> float:
        total, lanes, group = 0.0, 0, 6
        for n, (work, (pe, simd)) in enumerate(zip(works.values(), pairs, strict=True)):
            input_lanes = lanes if n else dense_lanes(group, simd, target)
            is_late = not n and group // input_lanes > target and simd > input_lanes
            needs_no_converter = input_lanes == simd and (group == work.columns or simd == work.columns)
            total += price.of(work, pe, simd) + folding_search.TOO_LATE * is_late
            total += 0 if needs_no_converter else float(converter_price[input_lanes, simd])
            lanes, group = pe, work.rows
        return total

    total, folding = cheapest(graph, works, options, target, price)
    ends = [[p for p in options(work) if work.outputs % p[0] == 0 or not work.ends] for work in works.values()]
    first = [p for p in ends[0] if 6 // dense_lanes(6, p[1], target) <= target or p[1] <= dense_lanes(6, p[1], target)]
    best = min(cost(pairs) for pairs in product(first, *ends[1:]))
    assert total == cost(tuple(folding.values())) == best


@pytest.mark.parametrize(
    "source_lanes, lanes, group, common_lanes",
    [
        (32, 86, 256, 2),
        (3, 64, 192, 1),
        (4, 6, 24, 2),
        (6, 4, 24, 2),
        (32, 64, 256, 0),
        (64, 16, 256, 0),
        (5, 7, 12, 1),
    ],
)
def test_widths_change_through_a_common_divisor(source_lanes: int, lanes: int, group: int, common_lanes: int) -> None:
    source = stream_of(NIBBLE, source_lanes, group, group)
    streams = regrouped_streams(source, group, lanes, group, target=group)
    assert [s.lanes for s in streams] == ([common_lanes] if common_lanes else []) + [lanes]
    assert streams[-1] == stream_of(NIBBLE, lanes, group, group)
    # A beat of the common divisor takes a cycle: if that is too slow, there is one converter.
    slow = regrouped_streams(source, group, lanes, group, target=group // (common_lanes or 1) - 1)
    assert [s.lanes for s in slow] == [lanes]


def test_a_last_beat_of_one_part_needs_one_converter() -> None:
    assert len(regrouped_streams(Stream(NIBBLE, 6, 3, 14), 14, 4, 14, 14)) == 1


def test_input_beats_are_dense() -> None:
    assert dense_lanes(490, 82, 400) == 2  # 245 beats of 2
    assert dense_lanes(490, 82, 100) == 70
    assert dense_lanes(256, 64, 4) == 64


@pytest.mark.parametrize(
    "options, folding",
    [
        ({}, (4, 16)),
        ({"loadable": True}, (4, 16)),
        ({"target": "hls"}, (4, 16)),
    ],
)
def test_constant_weights_win_at_few_words(
    options: dict[str, object], folding: tuple[int, int], tmp_path: Path
) -> None:
    """DA tables of half of the sums cost less than an adder graph of all sums; half in multipliers costs more."""
    path = save(chain(16, 8), tmp_path / "m.onnx")
    build = hlsgen.check(path, hlsgen.Options(target_cycles=2, **options))  # type: ignore[arg-type]
    (chosen,) = build.network.folding["layers"].values()
    assert (chosen["pe"], chosen["simd"]) == folding
    wider = {name: {"pe": 12 - folding[0], "simd": 16} for name in build.network.folding["layers"]}
    alternative = hlsgen.check(path, hlsgen.Options(target_cycles=2, folding=wider, **options))  # type: ignore[arg-type]
    assert estimate(build)["lut"] < estimate(alternative)["lut"]


def test_uneven_foldings_are_chosen_if_they_are_cheaper(tmp_path: Path) -> None:
    """By the estimate of the whole network, with quantizers and converters. No layer is slower than the target."""
    path = save(chain(64, 64, 64, 8), tmp_path / "m.onnx")
    build = hlsgen.check(path, hlsgen.Options(target_cycles=60))
    assert build.timing.interval <= 60
    layers, works, price = build.network.folding["layers"], works_of(build.graph), BACKENDS["verilog"].folding_price
    even = {
        n: min((p for p in w.foldings() if w.cycles(*p) <= 60), key=lambda p: price.of(w, *p)) for n, w in works.items()
    }
    assert any(works[n].rows % f["pe"] or works[n].columns % f["simd"] for n, f in layers.items()), layers
    even_folding = {n: {"pe": pe, "simd": simd} for n, (pe, simd) in even.items()}
    alternative = hlsgen.check(path, hlsgen.Options(target_cycles=60, folding=even_folding))
    assert estimate(build)["lut"] < estimate(alternative)["lut"]


@pytest.mark.sim
@needs_icarus
def test_an_uneven_network_is_exact(tmp_path: Path) -> None:
    """Values, latency and interval in simulation; the proof from the files; every layer is uneven."""
    path = save(chain(14, 22, 26, 6), tmp_path / "m.onnx")
    folding = {"fc0": {"pe": 4, "simd": 9}, "fc1": {"pe": 3, "simd": 6}, "fc2": {"pe": 4, "simd": 4}}
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(folding=folding))
    assert {node.name for node in build.network.nodes if node.name.endswith("_narrow")} == {
        "fc1_width_narrow",
        "fc2_width_narrow",
    }
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 12)
    assert verdict.ok, verdict
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified.problems
