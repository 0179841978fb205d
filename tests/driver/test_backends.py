"""The seam for targets: a second one, which draws the network, built through the driver as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import image_nets
import onnx
import pytest
from paths import ROOT

import hlsgen
from hlsgen.cycle_model.fifo_sizing import size
from hlsgen.dataflow.backend import Backend, Emitted, Request
from hlsgen.dataflow.folding_search import FoldingPrice
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import ConvUnit, Node, Unit, WeightedUnit
from hlsgen.driver.backends import BACKENDS
from hlsgen.driver.build_directory import changed_files, reopen
from hlsgen.driver.weight_update import load_sequence
from hlsgen.rescale import LIBRARY, Realization, Thresholds


def draw(network: Network, timing: Timing, request: Request) -> Emitted:
    """The network in the language of Graphviz."""
    made = {wire: node.name for node in network.nodes for wire in node.outputs}
    lines = [f'digraph "{request.title}" {{']
    for node in network.nodes:
        lines.append(f'  {node.name} [label="{type(node.unit).__name__}"];')
        streams = zip(node.inputs, node.sources, strict=True)
        lines += [f'  {made[w]} -> {node.name} [label="{s.lanes} x {s.type}"];' for w, s in streams if w in made]
    lines.append(f'  label="a frame every {timing.interval} cycles";')
    return Emitted({"network.dot": "\n".join([*lines, "}"]) + "\n"}, {"module": request.top}, design=len(lines))


def sized(nodes: Sequence[Node], effort: int | None, cycles: int = 3) -> tuple[tuple[Node, ...], Timing]:
    """With units that all have the same latency."""

    def latency(unit: Unit) -> int:
        return cycles

    found = size(nodes, latency, effort)
    return tuple(found.nodes), Timing(found.latency, found.interval, found.critical)


#: A multiplication costs nothing here; a DSP block for every unit.
DOT = Backend(
    memories=("auto",),
    prices=LIBRARY,
    folding_price=FoldingPrice(lambda work, pe, simd: -pe * simd),
    folded_cost=lambda works, folding, targets: Cost(dsp=len(folding)),
    network_cost=lambda nodes, choices, targets: Cost(dsp=len(list(nodes))),
    size_buffers=sized,
    emit=draw,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "dot", DOT)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(image_nets.network("plain", 1), path)
    return path


def checked(model: Path, **options: object) -> hlsgen.Build:
    return hlsgen.check(model, hlsgen.Options(**options))  # type: ignore[arg-type]


def test_a_build_of_another_target(model: Path, tmp_path: Path) -> None:
    """All nodes and streams; nothing of Verilog; the directory is opened again as any other."""
    build = hlsgen.build(model, tmp_path / "out", hlsgen.Options(target="dot"))
    assert set(build.files) == {
        "network.dot",
        "manifest.json",
        "report.html",
        "report.md",
        "folding.yaml",
        "model.onnx",
        "tb/input.hex",
        "tb/expected.hex",
        "host/net.py",
        "host/net.h",
        "host/net.c",
        "host/net_selftest.c",
        "host/net_vectors.bin",
    }
    text = (tmp_path / "out" / "network.dot").read_text()
    assert re.findall(r"(\w+) \[label=\"(?!\d)", text) == [node.name for node in build.network.nodes]
    edges = sum(len(node.outputs) for node in build.network.nodes[:-1])
    assert text.count(" -> ") == edges > 4
    assert f"a frame every {build.timing.interval} cycles" in text
    again = reopen(tmp_path / "out")
    assert changed_files(again.files, tmp_path / "out") == []
    assert again.designs == {"dot": build.designs["dot"]}


def test_what_needs_verilog_says_so(model: Path, tmp_path: Path) -> None:
    hlsgen.build(model, tmp_path / "out", hlsgen.Options(target="dot", loadable=True))
    build = reopen(tmp_path / "out")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*has no Verilog"):
        hlsgen.verify(tmp_path / "out", ["icarus"])
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*constant"):
        load_sequence(build, {})


def test_prices_are_those_of_the_target(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the foldings that are fast enough, the one that the target likes; its budget, not that of another."""
    cheap, wide = checked(model, target_cycles=2000), checked(model, target="dot", target_cycles=2000)
    layers = cheap.network.folding["layers"].keys()
    own, other = ([math.prod(b.network.folding["layers"][n].values()) for n in layers] for b in (cheap, wide))
    assert own != other
    assert all(few <= many for few, many in zip(own, other, strict=True))
    count = len(wide.network.nodes)
    assert not checked(model, target="dot", max_dsp=2 * count).warnings
    monkeypatch.setitem(BACKENDS, "dot", replace(DOT, network_cost=lambda nodes, choices, targets: Cost(lut=1e9)))
    with pytest.raises(hlsgen.HlsgenError, match=r"HG070.*1000000000 LUT"):
        checked(model, target="dot", max_lut=10**6)


def test_realizations_are_chosen_by_the_prices_of_the_target(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target on which only searches cost nothing takes searches."""

    def price(found: Realization, *_: object) -> tuple[float, int, int]:
        return (0.0 if isinstance(found, Thresholds) else 1e6), 0, 0

    monkeypatch.setitem(BACKENDS, "dot", replace(DOT, prices=replace(LIBRARY, realization=price)))
    names = {choice.name for choice in checked(model, target="dot").network.choices.values()}
    assert names == {"thresholds"}
    assert "thresholds" not in {choice.name for choice in checked(model).network.choices.values()}


def test_latencies_are_those_of_the_target(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = checked(model, target="dot").timing
    monkeypatch.setitem(BACKENDS, "dot", replace(DOT, size_buffers=lambda nodes, effort: sized(nodes, effort, 30)))
    assert checked(model, target="dot").timing.latency > quick.latency + 27


def test_smaller_buffers_are_searched_for_the_chosen_network_only(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    efforts: list[int | None] = []

    def recorded(nodes: Sequence[Node], effort: int | None) -> tuple[tuple[Node, ...], Timing]:
        efforts.append(effort)
        return sized(nodes, effort)

    monkeypatch.setitem(BACKENDS, "dot", replace(DOT, size_buffers=recorded))
    checked(model, target="dot", max_dsp=100)
    assert len(efforts) > 1
    assert efforts == [0] * (len(efforts) - 1) + [None]


def test_two_targets_in_one_build(model: Path) -> None:
    """The first one plans, both print the same network."""
    verilog, both = checked(model), checked(model, target="verilog,dot")
    assert both.network.folding == verilog.network.folding
    assert both.timing == verilog.timing
    assert set(both.files) == {*verilog.files, "network.dot"}
    # The manifest states the options.
    assert {name for name in verilog.files if both.files[name] != verilog.files[name]} == {"manifest.json"}
    assert set(both.designs) == {"verilog", "dot"}


@pytest.mark.parametrize("target", ["vhdl", "", "dot,vhdl", "dot,dot", "verilog, dot"])
def test_other_names_are_refused(target: str, model: Path) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*Supported: verilog, hls, dot"):
        checked(model, target=target)


def test_units_carry_the_weights_of_the_layer(model: Path) -> None:
    """In its own order and without those that fill a fold, whatever the target holds them in."""
    build = checked(model, target_cycles=2000)
    units = [(node.unit, node.position) for node in build.network.nodes if isinstance(node.unit, WeightedUnit)]
    assert any(isinstance(unit, ConvUnit) for unit, _ in units)
    for unit, position in units:
        weight = build.graph.layers[position].weight  # type: ignore[union-attr]
        assert unit.weight.shape == (len(weight), weight[0, ..., 0].size, weight.shape[-1])
        assert (unit.weight.ravel() == weight.ravel()).all()


def test_the_network_knows_no_target() -> None:
    """Except for the names that any target reserves."""
    dataflow = ROOT / "hlsgen" / "dataflow"
    for path in set(dataflow.glob("*.py")) - {dataflow / "keywords.py", dataflow / "layer_names.py"}:
        found = re.search(r"\bhg_\w+|verilog|\bMODE\b|\bSTYLE\b", path.read_text(), re.IGNORECASE)
        assert found is None, (path, found)


def test_only_the_driver_and_simulations_know_verilog() -> None:
    packages = set()
    for path in (ROOT / "hlsgen").rglob("*.py"):
        if re.search(r"^(from|import) hlsgen\.verilog", path.read_text(), re.MULTILINE):
            packages.add(path.relative_to(ROOT / "hlsgen").parts[0])
    assert packages == {"verilog", "driver", "simulation"}
