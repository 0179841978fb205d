"""What is estimated: of the core and of its layers, held against what Yosys made of the same units."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest
from paths import ROOT
from random_graphs import perceptron
from sparse_models import binary_points, dead_neurons

import hlsgen
from hlsgen.devices import devices
from hlsgen.driver.compile import Build, device_estimate, network_cost
from hlsgen.driver.schedule import plan
from hlsgen.driver.smaller_networks import plan_smallest
from hlsgen.driver.summary import summary

MEASURED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "data" / "unit_sizes.json").read_text())
KINDS = ("lut", "ff", "bram", "dsp")
#: Those of benchmarks/estimate_cases.py.
SEEDS = [n for n in range(11, 17) if f"perceptron {n}" in MEASURED["xc7"]]


@pytest.fixture(autouse=True)
def _with_all_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured networks have all channels of their models, dead ones as well."""
    monkeypatch.setattr("hlsgen.driver.compile.plan_smallest", plan)


def built(seed: int, folder: Path, **options: Any) -> Build:
    onnx.save(perceptron(seed, seed % 2 == 0), folder / "model.onnx")
    return hlsgen.check(folder / "model.onnx", hlsgen.Options(**options))


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_are_near_what_was_measured(seed: int, tmp_path: Path) -> None:
    build = built(seed, tmp_path, **MEASURED["builds"][f"perceptron {seed}"])
    lut, ff, bram, dsp = map(sum, zip(*MEASURED["xc7"][f"perceptron {seed}"].values(), strict=True))
    cost = network_cost(build)
    assert (cost.bram, cost.dsp) == (bram, dsp)
    assert lut * 0.7 < cost.lut < lut * 1.3
    assert ff * 0.7 < cost.ff < ff * 1.3


#: Family, a large device of it, a network that all of them were measured with.
DEVICES = {"ecp5": "ecp5-85k", "ice40": "ice40-hx8k", "gowin": "gowin-gw5a-25"}
#: How far an estimate of the LUTs may be off. Of Gowin one of six networks is off by 23 %.
LUT_ERROR = {"ecp5": 0.2, "ice40": 0.2, "gowin": 0.25}
#: Cells that a register takes beside those of the tables: placed networks of an iCE40 had 0.38 to 0.72.
CELLS_PER_REGISTER = {"ecp5": 0.0, "ice40": 0.7, "gowin": 0.0}
OTHERS = [(family, seed) for family in DEVICES for seed in range(11, 17) if f"perceptron {seed}" in MEASURED[family]]


@pytest.mark.parametrize(("family", "seed"), OTHERS)
def test_estimates_of_other_families_are_in_their_kinds(family: str, seed: int, tmp_path: Path) -> None:
    build = built(seed, tmp_path, device=DEVICES[family], **MEASURED["builds"][f"perceptron {seed}"])
    lut, ff, bram, dsp = map(sum, zip(*MEASURED[family][f"perceptron {seed}"].values(), strict=True))
    cost, told = network_cost(build, family), summary(build, 100.0)["estimate"]
    kinds = devices()[DEVICES[family]].family
    assert (cost.bram, cost.dsp) == (bram, dsp) == (told["bram"], told["dsp"])
    assert abs(cost.lut - lut) < lut * LUT_ERROR[family]
    assert ff * 0.8 < cost.ff < ff * 1.2
    assert told["lut"] == round((cost.lut + CELLS_PER_REGISTER[family] * cost.ff) * kinds.lut_per_counted)
    assert told["ff"] == round(cost.ff)


@pytest.mark.sweep
@pytest.mark.parametrize("family", ["xc7", *DEVICES])
def test_ports_of_axi_lite_cost(family: str, tmp_path: Path) -> None:
    """In the core, not in its layers; as many as Yosys makes of them: of hg_control of an iCE40 158 LUT and 117
    registers.
    """
    plain, control, both = (
        network_cost(built(12, tmp_path, target_cycles=96, **options), family)
        for options in ({}, {"control": True}, {"control": True, "loadable": True})
    )
    assert 150 < control.lut - plain.lut < 200
    assert round(control.ff - plain.ff) == 117
    assert both.ff > control.ff + 100
    layers = [
        row["estimate"]
        for options in ({}, {"control": True})
        for row in summary(built(12, tmp_path, target_cycles=96, **options), 100.0)["layers"]
    ]
    assert layers[: len(layers) // 2] == layers[len(layers) // 2 :]


def test_layers_and_core(tmp_path: Path) -> None:
    build = built(12, tmp_path, target_cycles=96)
    manifest = json.loads(build.files["manifest.json"])
    told = summary(build, 100.0)
    assert manifest["estimate"] == {kind: told["estimate"][kind] for kind in KINDS} == device_estimate(build, None)
    assert [row["estimate"] for row in manifest["layers"]] == [row["estimate"] for row in told["layers"]]
    # The ports and what is in front of them belong to no layer.
    layers = {kind: sum(row["estimate"][kind] for row in manifest["layers"]) for kind in KINDS}
    assert manifest["estimate"]["lut"] * 0.6 < layers["lut"] < manifest["estimate"]["lut"]
    assert manifest["estimate"]["ff"] * 0.4 < layers["ff"] < manifest["estimate"]["ff"]
    assert all(row["estimate"]["lut"] > 0 for row in manifest["layers"] if row["kind"] in ("linear", "quantizer"))


@pytest.mark.parametrize(("model", "lut", "ff"), [(dead_neurons, 572, 401), (binary_points, 767, 608)])
def test_estimates_of_sparse_networks(
    model: Any, lut: int, ff: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame a cycle without handshake; measured with Yosys, as one netlist."""
    monkeypatch.setattr("hlsgen.driver.compile.plan_smallest", plan_smallest)
    onnx.save(model(), tmp_path / "model.onnx")
    cost = network_cost(hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(target_cycles=1, ports="plain")))
    assert abs(cost.lut - lut) < lut * 0.1
    assert abs(cost.ff - ff) < ff * 0.03


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The networks of the benchmarks."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("estimate_cases")


@pytest.mark.parametrize("family", ["xc7", *DEVICES])
@pytest.mark.parametrize("name", ["mlp w3a7 @28 250.0", "cnn w3a3 @500 250.0"])
def test_registers_after_each_adder(name: str, family: str, networks: ModuleType, tmp_path: Path) -> None:
    """At a clock. The factors were not fitted to these networks."""
    case = networks.CASES[name]
    assert not case.fitted
    onnx.save(case.model(), tmp_path / "model.onnx")
    options = hlsgen.Options(**{**case.options, **MEASURED["builds"][name]})
    registers = sum(unit[1] for unit in MEASURED[family][name].values())
    assert abs(network_cost(hlsgen.check(tmp_path / "model.onnx", options), family).ff - registers) < registers * 0.2


@pytest.mark.parametrize(("bits", "sizes", "lut"), [(2, (6, 4, 3), 40), (3, (5, 4, 2), 77)])
def test_small_adders_have_no_carry_chains(
    bits: int, sizes: tuple[int, ...], lut: int, networks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks of under 100 LUT; measured with Yosys for ECP5, as one netlist."""
    monkeypatch.setattr("hlsgen.driver.compile.plan_smallest", plan_smallest)
    onnx.save(networks.mlp(bits, bits, sizes, bits - 1), tmp_path / "model.onnx")
    cost = network_cost(hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(target_cycles=8)), "ecp5")
    assert abs(cost.lut - lut) < 0.1 * lut
