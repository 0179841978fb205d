"""Builds with loadable weights: other weights over AXI4-Lite give what a model with them gives."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import image_nets
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from paths import needs_icarus
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.compile import Build
from hlsgen.driver.weight_update import current_weights, load_sequence, reweighted
from hlsgen.interpreter import graph as reference
from hlsgen.simulation.cocotb_runner import simulate
from hlsgen.simulation.verify_verilog import prepare, prepare_weights
from hlsgen.simulation.verilator_library import NativeCore, tool_environment
from hlsgen.testbench.sample_vectors import output_codes
from hlsgen.testbench.stimuli import stimuli
from hlsgen.testbench.stream_codec import from_text

Weights = dict[str, NDArray[np.int64]]
FRAMES = 6


def built(
    folder: Path, kind: str, seed: int, *, loadable: bool = True, powers: bool = True, cycles: int | None = None
) -> Build:
    path = folder / f"{kind}.onnx"
    onnx.save(image_nets.network(kind, seed, powers), path)
    return hlsgen.build(path, folder / "out", hlsgen.Options(loadable=loadable, target_cycles=cycles))


def shuffled(build: Build, seed: int) -> Weights:
    """Weights of every row in another order: its sums stay in the interval that the build holds for."""
    rng = np.random.default_rng(seed)
    rows = {name: weight.reshape(len(weight), -1) for name, weight in current_weights(build).items()}
    return {
        name: rng.permuted(table, axis=1).reshape(current_weights(build)[name].shape) for name, table in rows.items()
    }


def differing(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    return bool((a != b).any())


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "kind, seed, cycles, modules",
    [
        ("grouped", 3, 2000, {"hg_conv", "hg_dwconv", "hg_mvu"}),
        ("grouped", 6, 8, {"hg_dwmvu", "hg_mvu"}),
        ("plain", 1, 8, {"hg_unfold", "hg_mvu"}),
        ("bipolar", 12, 2000, {"hg_conv"}),
    ],
)
def test_other_weights_in_hardware(tmp_path: Path, kind: str, seed: int, cycles: int | None, modules: set[str]) -> None:
    build = built(tmp_path, kind, seed, cycles=cycles)
    assert modules <= {i.module for i in build.design.instances}
    codes = stimuli(build.network, FRAMES, 1)
    first = reference.run_layers(build.graph, codes)[-1]
    changed = 0
    with NativeCore(build, tmp_path / "out", tmp_path / "sim") as core:
        assert not differing(core.run(codes), first)
        for other in range(3):
            weights = shuffled(build, other)
            wanted = reference.run_layers(reweighted(build, weights), codes)[-1]
            changed += differing(wanted, first)
            for load in load_sequence(build, weights):
                core.write(load.writes)
            assert not differing(core.run(codes), wanted)
        for load in load_sequence(build, current_weights(build)):
            core.write(load.writes)
        assert not differing(core.run(codes), first)
    assert changed


@pytest.mark.sim
@needs_icarus
def test_one_layer_from_a_file_of_writes(tmp_path: Path) -> None:
    """The testbench of a build writes load.hex before the frames; only the layer that is named is loaded."""
    build = built(tmp_path, "plain", 1)
    codes = stimuli(build.network, FRAMES, 1)
    weights = {"Conv_2": shuffled(build, 3)["Conv_2"]}
    wanted = reference.run_layers(reweighted(build, weights), codes)[-1]
    assert differing(wanted, reference.run_layers(build.graph, codes)[-1])
    loads = load_sequence(build, weights)
    assert [load.layer for load in loads] == ["Conv_2"]
    bench = prepare(build.design, build.network, build.timing, codes, tmp_path)
    (bench / "load.hex").write_text("".join(f"{a:x} {d:x}\n" for load in loads for a, d in load.writes))
    assert simulate(tmp_path / "out", bench, bench, tmp_path / "sim", "icarus", ["capture"]).passed
    data = from_text((bench / "output.hex").read_text(), build.network.outputs[0].layout.width)
    got = output_codes(build.network, [data])
    assert not differing(got[:FRAMES], wanted[:FRAMES])


@pytest.mark.sim
@needs_icarus
def test_verify_loads_other_weights(tmp_path: Path) -> None:
    """The bench of `hlsgen verify` writes all layers; a unit that does not listen, or to another number, is found."""
    build = built(tmp_path, "plain", 1)
    codes = stimuli(build.network, FRAMES, 1)
    bench = prepare(build.design, build.network, build.timing, codes, tmp_path)
    tests = prepare_weights(build, codes, bench)
    assert tests == ["other_weights"]
    assert (bench / "other_expected.hex").read_text() != (bench / "expected.hex").read_text()
    top = tmp_path / "out" / "rtl" / "plain.v"
    text = top.read_text()
    for change in (("", ""), (".LOAD_UNIT(0)", ".LOAD_UNIT(1)"), (".UNITS(", ".UNITS(1")):
        top.write_text(text.replace(*change, 1))
        outcome = simulate(tmp_path / "out", bench, bench, tmp_path / "sim", "icarus", tests)
        assert outcome.passed == (change == ("", "")), (change, outcome.log[-3000:])


@pytest.mark.parametrize("cycles", [None, 2000])
def test_the_manifest_describes_the_units(cycles: int | None, tmp_path: Path) -> None:
    """With all taps at once and tap by tap."""
    build = built(tmp_path, "grouped", 1, cycles=cycles)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["options"]["loadable"] is True
    loads = load_sequence(build, current_weights(build))
    assert [load.unit for load in loads] == [unit["unit"] for unit in manifest["weights"]] == list(range(len(loads)))
    for load, unit in zip(loads, manifest["weights"], strict=True):
        assert load.layer == unit["layer"]
        assert len(load.pieces) == unit["words"] * unit["pieces"]
        lines = (tmp_path / "out" / unit["file"]).read_text().split()
        pieces = [int(line, 16) >> 32 * n & 0xFFFFFFFF for line in lines for n in range(unit["pieces"])]
        assert list(load.pieces) == pieces
        weight = current_weights(build)[load.layer]
        assert unit["words"] * unit["rows"] * unit["columns"] >= weight.size
    assert reopen(tmp_path / "out").files == build.files


def test_a_model_file_gives_all_layers(tmp_path: Path) -> None:
    build = built(tmp_path, "plain", 2)
    assert load_sequence(build, tmp_path / "plain.onnx") == load_sequence(build, current_weights(build))
    onnx.save(image_nets.network("plain", 1), tmp_path / "other.onnx")
    with pytest.raises(hlsgen.HlsgenError, match="HG056"):
        load_sequence(build, tmp_path / "other.onnx")


def refused(build: Build, weights: Weights, text: str) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=f"HG056.*{text}"):
        load_sequence(build, weights)


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    build = built(tmp_path, "plain", 2)
    own = current_weights(build)
    names = list(own)
    bipolar = next(name for name, w in own.items() if (np.abs(w) == 1).all())
    wide = next(name for name in names if name != bipolar)
    refused(build, {"nothing": own[wide]}, "no layer with weights has this name")
    refused(build, {wide: own[wide][1:]}, "the layer has integers of shape")
    refused(build, {wide: own[wide].astype(float)}, "float64")  # type: ignore[dict-item]
    refused(build, {bipolar: np.where(own[bipolar] > 0, 0, own[bipolar])}, "only weights -1 and 1")
    grown = own[wide].copy()
    grown.flat[np.abs(grown).argmax()] *= 16
    refused(build, {wide: grown}, "reach")
    narrow = np.zeros_like(own[wide])
    row = np.abs(own[wide]).reshape(len(narrow), -1).sum(axis=1).argmax()
    narrow.reshape(len(narrow), -1)[row, 0] = 1 << int(np.abs(own[wide]).max()).bit_length()
    refused(build, {wide: narrow}, "the unit holds|reach")
    constant = built(tmp_path, "plain", 2, loadable=False)
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*constant"):
        load_sequence(constant, own)
    assert "weights" not in json.loads(constant.files["manifest.json"])
    assert b"s_axil" not in constant.files["rtl/plain.v"]
    assert b"LOAD_UNIT" not in constant.files["rtl/plain.v"]


@pytest.mark.sim
@pytest.mark.parametrize("loadable", [False, True])
def test_no_pin_is_left_open(loadable: bool, tmp_path: Path) -> None:
    built(tmp_path, "grouped", 3, loadable=loadable)
    command = ["verilator", "--lint-only", "-Wall", "--quiet", "-f", "files.f", "--top-module", "grouped"]
    done = subprocess.run(command, cwd=tmp_path / "out", env=tool_environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_command_line(tmp_path: Path) -> None:
    onnx.save(image_nets.network("plain", 1), tmp_path / "m.onnx")
    words = ["build", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--loadable-weights", "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert reopen(tmp_path / "out").options.loadable
    onnx.save(image_nets.network("pooled", 0), tmp_path / "none.onnx")
    done = CliRunner().invoke(app, [*words[:1], str(tmp_path / "none.onnx"), *words[2:]])
    assert (done.exit_code, json.loads(done.stdout)["diagnostics"][0]["code"]) == (2, "HG040")


@pytest.mark.sweep
def test_zero_points_that_shift_the_sums_are_refused(tmp_path: Path) -> None:
    """Sums of a row change by its weights times the input's zero point: a constant of the quantizer."""
    for seed in range(40):
        build = built(tmp_path, "plain", seed)
        for i, layer in enumerate(build.graph.layers):
            offset = getattr(layer.result.encoding, "offset", None)
            if layer.name not in current_weights(build) or offset is None or not np.any(offset):
                continue
            weight = current_weights(build)[layer.name]
            if getattr(layer, "binary", False) or (np.abs(weight) == 1).all():
                continue
            small = np.where(weight > 0, weight - 1, weight)  # nearer to 0: fits, but for the offset
            refused(build, {layer.name: small}, "the meaning of its codes")
            assert load_sequence(build, {layer.name: shuffled(build, i)[layer.name]})
            return
    raise AssertionError("no such layer was found")


def test_intervals_of_types_may_only_shrink() -> None:
    from hlsgen.driver.weight_update import _equal
    from hlsgen.ir import Fixed, Value
    from hlsgen.numerics.fixed import IntType

    old = Value((1, 2), IntType(-4, 5), Fixed(0))
    assert _equal(old, replace(old, type=IntType(-3, 5)))
    assert not _equal(old, replace(old, type=IntType(-5, 5)))
    assert not _equal(old, replace(old, encoding=Fixed(1)))
