"""The commands on builds with C++: what they print, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import DATA
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.simulation import verify_cpp

MODEL = DATA / "hardtanh_po2_outq.onnx"


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build") / "out"
    hlsgen.build(MODEL, out, hlsgen.Options(target="hls"))
    return out


@pytest.mark.parametrize(
    "target,tops",
    [
        ("hls", "top function core"),
        ("verilog", "top module core"),
        ("hls,verilog", "top module core, top function core"),
    ],
)
def test_build_names_its_tops(target: str, tops: str, tmp_path: Path) -> None:
    text = call("build", MODEL, "--target", target, "--top", "core", "-o", tmp_path / "out")
    assert text.endswith(f"files, {tops}")
    assert ("not synthesized by Vitis" in text) is ("hls" in target)
    top = json.loads((tmp_path / "out" / "manifest.json").read_text())["top"]
    assert top.get("function" if target == "hls" else "module") == "core"
    report = (tmp_path / "out" / "report.md").read_text()
    assert ("resources above are planned for Verilog" in report) is ("hls" in target)


def test_check_says_whose_cycles_these_are() -> None:
    data = json.loads(
        CliRunner().invoke(app, ["check", str(MODEL), "--target", "hls", "--target-cycles", "64", "--json"]).stdout
    )
    assert data["notes"] == [
        "C++: a frame every 58 cycles, as node_linear needs, and at most 3 DSP blocks: estimates, not synthesized by "
        "Vitis. Latency, cycles and resources above are planned for Verilog."
    ]
    assert (
        json.loads(CliRunner().invoke(app, ["check", str(MODEL), "--target-cycles", "64", "--json"]).stdout)["notes"]
        == []
    )


@pytest.mark.parametrize("name", ["main", "namespace", "hls", "int8", "weights", "take_frame"])
def test_tops_that_cpp_has_taken(name: str, tmp_path: Path) -> None:
    """Refused: the function, its files and the manifest have the name that was asked for, or there is no build."""
    text = call("build", MODEL, "--target", "verilog,hls", "--top", name, "-o", tmp_path / "out", code=2)
    assert f"HG040 --top: '{name}' is reserved in the files of target hls." in text
    assert not (tmp_path / "out").exists()
    call("build", MODEL, "--top", name, "-o", tmp_path / "out")


@pytest.mark.sim
def test_run(made: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((12, 13)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    for backend in ("cpp", "cpp-ap"):
        more = ["--dump-layers", tmp_path / "z.npz", "--backend", backend]
        text = call("run", made, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", *more)
        assert "4 layers, 0 differ from the reference" in text
        assert (np.load(tmp_path / "y.npy") == hlsgen.run(made, x)).all()
    text = call("run", made, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--backend", "c", code=2)
    assert "Supported: reference, verilator, icarus, cpp, cpp-ap." in text


@pytest.mark.sim
def test_verify(made: Path) -> None:
    text = call("verify", made, "--frames", 20)
    for name in ("ap_types", "ac_types"):
        assert f" {name}: equal, 20 frames, 0 differing beats" in text
    assert "C++: C simulation with g++; not synthesized by Vitis. verified" in text
    assert "cycles" not in text.split("ac_types")[1]


@pytest.mark.sim
def test_verify_as_json(made: Path) -> None:
    data: dict[str, Any] = json.loads(call("verify", made, "--frames", 9, "--sim", "ac_types", "--json"))
    assert data["ok"]
    assert list(data["simulators"]) == ["ac_types"]
    found = data["simulators"]["ac_types"]
    assert (found["ok"], found["samples"], found["mismatches"], found["cycles"]) == (True, 9, 0, None)
    assert data["notes"] == ["C++: C simulation with g++; not synthesized by Vitis."]


@pytest.mark.sim
def test_verify_finds_a_difference(tmp_path: Path) -> None:
    hlsgen.build(MODEL, tmp_path / "out", hlsgen.Options(target="hls"))
    header = tmp_path / "out" / "hls" / "hg" / "mvu.hpp"
    header.write_text(header.read_text().replace("column == 0 ? sum :", "column == 0 ? SUM(sum + 1) :"))
    assert "HG051 hls/hg/mvu.hpp" in call("verify", tmp_path / "out", code=1)
    text = call("verify", tmp_path / "out", "--sim", "ac_types", "--allow-changed", code=1)
    first = hlsgen.check(MODEL).graph.layers[0].name
    assert f"first divergence: layer {first}, channel 0 (element 0), frame 0: expected" in text
    assert "--cut" not in text
    assert "NOT verified" in text


def test_simulators_of_another_language(made: Path) -> None:
    assert "the build of 'hls' has no Verilog" in call("verify", made, "--sim", "verilator", code=2)
    text = call("verify", made, "--sim", "vitis", code=2)
    assert "Supported: verilator, icarus, ap_types, ac_types, all." in text


def test_vitis_is_named_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_cpp.shutil, "which", lambda name: name if name == "vitis-run" else None)
    assert "vitis-run is on PATH" in verify_cpp.note_on_synthesis()
    monkeypatch.setattr(verify_cpp.shutil, "which", lambda name: None)
    assert "on PATH" not in verify_cpp.note_on_synthesis()


@pytest.mark.parametrize(
    "flags,message",
    [
        (["--loadable-weights"], "--loadable-weights: target hls does not support it: its weights are constants"),
        (["--reset", "low"], "--reset: target hls does not support it: the HLS tool makes the reset port"),
        (["--weights", "bram"], "--weights: 'bram' with --target {target}. Supported: auto."),
    ],
)
@pytest.mark.parametrize("target", ["hls", "verilog,hls"])
def test_options_that_it_does_not_have(target: str, flags: list[str], message: str) -> None:
    assert f"HG040 {message.format(target=target)}" in call("check", MODEL, "--target", target, *flags, code=2)
    call("check", MODEL, *flags)
