"""A target clock: the registers that units get for it; values, cycles and proofs stay exact."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from certified import changed, messages
from image_nets import network
from models import Net, save
from onnx_graph import QONNX
from paths import needs_icarus

import hlsgen
from hlsgen.cycle_model.simulate import measure
from hlsgen.dataflow.pipelining import PLAIN, Pipelining, pipelined
from hlsgen.dataflow.units import AdderMatVec, ConvUnit, DynamicMatVec, GroupedMatVec, MatVec, Product, RescaleUnit
from hlsgen.driver.compile import targets_of
from hlsgen.rescale import Scale
from hlsgen.verilog.ready_chains import hops
from hlsgen.verilog.unit_table import latency

FAST: dict[str, Any] = {"device": "ecp5-85k", "clock_mhz": 150.0}
#: The pipelining on ECP5, and on a device with fast block RAM.
TABLES, DEEP = Pipelining(1, tables=True), Pipelining(1)
Units = AdderMatVec | ConvUnit | DynamicMatVec | GroupedMatVec | MatVec


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PLAIN),
        ({"clock_mhz": 200.0}, PLAIN),
        ({"clock_mhz": 201}, DEEP),
        ({"device": "ecp5-25k"}, PLAIN),
        ({"device": "ecp5-25k", "clock_mhz": 110.0}, PLAIN),
        ({"device": "ecp5-25k", "clock_mhz": 120.0}, DEEP),
        ({"device": "ecp5-25k", "clock_mhz": 150.0}, TABLES),
        ({"device": "ecp5-25k", "clock_mhz": 150.0, "loadable": True}, DEEP),
        ({"device": "xc7z020", "clock_mhz": 100.0}, PLAIN),
        ({"device": "xc7z020", "clock_mhz": 150.0}, DEEP),
        ({"device": "ecp5-25k", "clock_mhz": 150.0, "target": "verilog,hls"}, TABLES),
        ({"device": "ecp5-25k", "clock_mhz": 150.0, "target": "hls"}, PLAIN),
    ],
)
def test_pipelining_for_a_clock(options: dict[str, Any], expected: Pipelining) -> None:
    assert targets_of(hlsgen.Options(**options)).pipelining == expected


def layers(*, cycles: int, tmp_path: Path, **options: Any) -> hlsgen.Build:
    """Two layers with a multiplier between them."""
    rng, net = np.random.default_rng(4), Net((1, 20)).quant(bits=4.0, signed=1)
    for n, (columns, rows) in enumerate(((20, 17), (17, 6))):
        net.linear(
            rows, columns, rng.integers(-7, 8, (columns, rows)).astype(np.float32), f"fc{n}", scale=1.0, bits=4.0
        )
        if n == 0:
            net.quant(scale=float(np.float32(1.37)), bits=8.0, signed=1)
    folder = tmp_path / f"{cycles}-{len(options)}"
    folder.mkdir()
    build_options = hlsgen.Options(target_cycles=cycles, realize={"": "scale"}, top="top", **options)
    return hlsgen.build(save(net.model(), folder / "m.onnx"), folder / "out", build_options)


def depths(build: hlsgen.Build) -> set[int]:
    return {node.unit.adders_per_stage for node in build.network.nodes if isinstance(node.unit, Units)}


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("cycles", [34, 1])
def test_layers_are_exact_to_the_cycle(cycles: int, tmp_path: Path) -> None:
    """Constant weights as adders, and weights in memory; more latency, and no longer interval."""
    plain, build = (layers(cycles=cycles, tmp_path=tmp_path, **options) for options in ({}, FAST))
    assert (depths(plain), depths(build)) == ({2}, {1})
    realizations = [node.unit.realization for node in build.network.nodes if isinstance(node.unit, RescaleUnit)]
    assert [realization.every for realization in realizations if isinstance(realization, Scale)] == [1]
    assert build.timing.interval == plain.timing.interval
    assert build.timing.latency > plain.timing.latency
    out = tmp_path / f"{cycles}-2" / "out"
    verdict = hlsgen.verify(out, ["icarus" if cycles > 1 else "verilator"], 5)
    assert verdict.ok, verdict
    certified = hlsgen.certify(out)
    assert certified.ok, certified.problems


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize(
    "kind, seed, cycles", [("grouped", 2, 400), ("plain", 1, 60), ("bipolar", 0, 2000), ("residual", 2, 200)]
)
def test_images_are_exact_and_certified(kind: str, seed: int, cycles: int, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(kind, seed), path)
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target_cycles=cycles, **FAST))
    assert depths(build) == {1}
    consumers = {wire: node.unit for node in build.network.nodes for wire in node.inputs}
    windows = [node for node in build.network.nodes if isinstance(node.unit, ConvUnit)]
    assert all(hops(consumers[wire]) is None for node in windows for wire in node.outputs)
    assert measure(build.network.nodes, latency) == (build.timing.latency, build.timing.interval)
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 5)
    assert verdict.ok, verdict
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified.problems


@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize(("options", "simd"), [({}, 4), (FAST, 1)])
def test_weights_of_one_bit(options: dict[str, Any], simd: int, tmp_path: Path) -> None:
    """Weights of 0 and -1: hg_mac extends them to two bits, which can take a cycle more."""
    weight = -np.random.default_rng(1).integers(0, 2, (8, 4)).astype(np.float32)
    net = Net((1, 8)).quant(bits=4.0, signed=1).linear(4, 8, weight, scale=1.0).quant(bits=8.0, signed=1)
    path, folding = save(net.model(), tmp_path / "m.onnx"), {"fc": {"pe": 1, "simd": simd}}
    hlsgen.build(path, tmp_path / "out", hlsgen.Options(folding=folding, **options))
    assert re.search(r"\.W_W\(1\),\s+\.MODE\(0\)", next((tmp_path / "out" / "rtl").glob("m.v")).read_text())
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 4, oracle="none")
    assert verdict.ok, verdict.simulators


def test_a_manifest_with_another_clock_is_refused(tmp_path: Path) -> None:
    layers(cycles=34, tmp_path=tmp_path, **FAST)
    out = tmp_path / "34-2" / "out"
    assert messages(out) == []
    with changed(out, "fc0", "EVERY", 2):
        assert any("options.clock_mhz" in text for text in messages(out, listed=False))
    manifest = json.loads((out / "manifest.json").read_text())
    for value, kind in ((None, "lutram"), (None, "auto"), (0, "auto"), ("150", "auto")):
        manifest["options"] |= {"clock_mhz": value, "weights": kind}
        (out / "manifest.json").write_text(json.dumps(manifest))
        assert any("options.clock_mhz" in text for text in messages(out, listed=False))


@pytest.mark.parametrize(
    ("words", "rows", "kind"),
    [(1, 40, "tables"), (36, 28, "tables"), (36, 29, "blocks"), (256, 1, "tables"), (256, 2, "blocks"), (1, 1100, "")],
)
def test_weights_are_tables_or_blocks(words: int, rows: int, kind: str) -> None:
    """For 32 columns of a bit: up to 32768 bits in few words or 8192 in many are LUTs. One word is no memory."""
    weight = np.random.default_rng(1).integers(0, 2, (rows * words, 1, 32)) * 2 - 1
    unit = MatVec(weight, np.arange(32), Product.BIPOLAR, rows, 32, 1)
    changed_unit = pipelined(unit, TABLES)
    assert isinstance(changed_unit, MatVec)
    assert changed_unit.memory == kind


def test_requested_weight_memories_stay(tmp_path: Path) -> None:
    """Only weights without a requested memory become separate LUTs."""
    for weights, style in (("auto", 3), ("lutram", 1), ("bram", 2)):
        folder = tmp_path / weights
        folder.mkdir()
        build = layers(cycles=34, tmp_path=folder, weights=weights, **FAST)
        styles = {x.parameters["STYLE"] for x in build.design.instances if x.module == "hg_mvu"}
        assert styles == {style}


@pytest.mark.sim
@needs_icarus
def test_tables_of_cells_have_registers(tmp_path: Path) -> None:
    """A quantizer whose tables of cells have more than four address bits takes a cycle more."""
    net = Net((1, 4))
    scale = np.array([1.37, 2.9, 0.71, 5.3], np.float32)
    net.then("IntQuant", scale, np.zeros(4, np.float32), 4.0, domain=QONNX, signed=1, narrow=0)
    path, cycles = save(net.model(), tmp_path / "m.onnx"), []
    for n, options in enumerate(({}, FAST)):
        out = tmp_path / str(n)
        build_options = hlsgen.Options(
            target_cycles=1, input="fixed:16,8", realize={"": "correct"}, top="top", **options
        )
        build = hlsgen.build(path, out, build_options)
        assert [x.parameters["DEEP"] for x in build.design.instances if x.module == "hg_correct"] == [n]
        verdict = hlsgen.verify(out, ["icarus"])
        assert verdict.ok, verdict
        assert messages(out) == []
        name = next(x.name for x in build.design.instances if x.module == "hg_correct")
        with changed(out, name, "DEEP", 1 - n):
            problems = messages(out, listed=False)
        assert any("options.clock_mhz" in text for text in problems) == (n == 0), problems
        cycles.append(build.timing.latency)
    assert cycles[1] == cycles[0] + 1


@pytest.mark.sim
@needs_icarus
def test_large_memories_of_thresholds_have_three_registers(tmp_path: Path) -> None:
    """Two cycles more for each level of more than 64 words: here the first, of 72, and the next ones."""
    net = Net((1, 72))
    rng = np.random.default_rng(5)
    scale, zeros = rng.uniform(0.5, 3, 72).astype(np.float32), np.zeros(72, np.float32)
    net.then("IntQuant", scale, zeros, 2.0, domain=QONNX, signed=1, narrow=0)
    path, cycles = save(net.model(), tmp_path / "m.onnx"), []
    for n, options in enumerate(({}, FAST)):
        out = tmp_path / str(n)
        build_options = hlsgen.Options(
            target_cycles=72, input="fixed:12,6", realize={"": "thresholds"}, top="top", **options
        )
        build = hlsgen.build(path, out, build_options)
        assert [x.parameters["EVERY"] for x in build.design.instances if x.module == "hg_threshold"] == [2 - n]
        verdict = hlsgen.verify(out, ["icarus"])
        assert verdict.ok, verdict
        assert messages(out) == []
        name = next(x.name for x in build.design.instances if x.module == "hg_threshold")
        with changed(out, name, "EVERY", 1 + n):
            problems = messages(out, listed=False)
        assert any("options.clock_mhz" in text for text in problems) == (n == 0), problems
        cycles.append(build.timing.latency)
    assert cycles[1] == cycles[0] + 4
