"""The four commands: output for people, JSON for machines, files byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from paths import DATA, ROOT, needs_icarus
from random_graphs import Graph
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app

MODEL = DATA / "hardtanh_po2_outq.onnx"
DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def call_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(call(*arguments, "--json", code=code))
    return data


def files(directory: Path) -> dict[str, bytes]:
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize("command", ["check", "build", "run", "verify"])
def test_help(command: str) -> None:
    text = " ".join(call(command, "--help").split())
    assert "--json" in text
    assert "Usage" in text


def test_check_describes_layers() -> None:
    data = call_json("check", DIGITS)
    assert data["ok"]
    kinds = [row["kind"] for row in data["layers"]]
    assert kinds == ["linear", "quantizer", "linear", "quantizer", "linear"]
    first = data["layers"][0]
    assert first["rows"] * first["columns"] == first["macs"] == 64 * 64
    assert first["cycles"] == -(-first["rows"] // first["pe"]) * -(-first["columns"] // first["simd"])
    assert data["cycles"]["interval"] >= 1
    assert data["host"]["head"][-1]["op"] == "IntQuant"
    assert data["estimate"]["lut"] > 0
    assert "frames/s" in call("check", DIGITS)


@pytest.mark.sweep
def test_builds_are_reproducible(tmp_path: Path) -> None:
    call("build", DIGITS, "-o", tmp_path / "a")
    call("build", DIGITS, "-o", tmp_path / "b")
    call("build", DIGITS, "-o", tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert {
        "rtl/digits_mlp.v",
        "files.f",
        "manifest.json",
        "folding.yaml",
        "tb/test_top.py",
        "tb/run.py",
        "tb/Makefile",
        "tb/input.hex",
        "tb/expected.hex",
        "model.onnx",
    } <= set(files(tmp_path / "a"))
    assert (tmp_path / "a" / "model.onnx").read_bytes() == DIGITS.read_bytes()


@pytest.mark.sweep
def test_reproducible_in_another_process_and_hash_seed(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "hlsgen.cli", "build", str(DIGITS), "-o", str(tmp_path / seed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True)
    assert files(tmp_path / "1") == files(tmp_path / "2")


@pytest.mark.sweep
def test_folding_file_can_be_edited_and_fed_back(tmp_path: Path) -> None:
    call("build", DIGITS, "-o", tmp_path / "a", "--target-cycles", 512)
    folding = yaml.safe_load((tmp_path / "a" / "folding.yaml").read_text())
    name = next(iter(folding["layers"]))
    folding["layers"][name] = {"pe": 64, "simd": 8}
    (tmp_path / "edited.yaml").write_text(yaml.safe_dump(folding))
    data = call_json("build", DIGITS, "-o", tmp_path / "b", "--folding", tmp_path / "edited.yaml")
    assert (data["layers"][0]["pe"], data["layers"][0]["simd"], data["layers"][0]["cycles"]) == (64, 8, 8)
    assert yaml.safe_load((tmp_path / "b" / "folding.yaml").read_text())["layers"] == folding["layers"]


@pytest.mark.slow
@pytest.mark.sweep
def test_rate_options() -> None:
    assert call_json("check", DIGITS, "--target-cycles", 100)["cycles"]["interval"] <= 100
    assert call_json("check", DIGITS, "--fps", 1e6, "--clock-mhz", 100)["cycles"]["interval"] <= 100
    assert call_json("check", DIGITS, "--target-cycles", 1)["cycles"]["interval"] == 1
    slow = call_json("check", DIGITS, "--target-cycles", 4096)
    assert slow["estimate"]["lut"] < call_json("check", DIGITS, "--target-cycles", 16)["estimate"]["lut"]


@pytest.mark.sim
@needs_icarus
def test_reset_polarity_top_and_verify(tmp_path: Path) -> None:
    call("build", MODEL, "-o", tmp_path / "out", "--reset", "low", "--top", "my_core", "--target-cycles", 30)
    text = (tmp_path / "out" / "rtl" / "my_core.v").read_text()
    assert "input  wire rst_n," in text
    assert "module my_core (" in text
    data = call_json("verify", tmp_path / "out", "--sim", "icarus", "--frames", 8)
    assert data["ok"]
    assert data["first_divergence"] is None
    found = data["simulators"]["icarus"]
    assert found["mismatches"] == 0
    assert found["samples"] >= 8
    assert found["cycles"] == data["predicted"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["cycles"] == data["predicted"]
    assert manifest["top"]["reset"] == {"name": "rst_n", "active": "low", "kind": "synchronous"}


@pytest.mark.sim
@needs_icarus
def test_verify_fails_with_exit_code_1(tmp_path: Path) -> None:
    call("build", MODEL, "-o", tmp_path / "out", "--target-cycles", 60)
    memory = tmp_path / "out" / "rtl" / f"{MODEL.stem}_node_linear.mem"
    memory.write_text(memory.read_text()[::-1].strip() + "\n")
    command = ["verify", tmp_path / "out", "--sim", "icarus", "--frames", 8, "--allow-changed"]
    data = call_json(*command, code=1)
    assert not data["ok"]
    assert data["changed_files"] == [f"rtl/{MODEL.stem}_node_linear.mem"]
    where = data["first_divergence"]
    assert {"layer", "channel", "frame", "cycle", "expected", "actual"} <= set(where)
    text = CliRunner().invoke(app, list(map(str, command))).output
    assert "NOT verified" in text
    assert "first divergence: layer" in text


@pytest.mark.sim
def test_run_reads_and_writes_arrays(tmp_path: Path) -> None:
    call("build", MODEL, "-o", tmp_path / "out")
    x = np.random.default_rng(0).random((12, 13)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", input=x)
    call("run", tmp_path / "out", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    data = call_json(
        "run", tmp_path / "out", "--backend", "icarus", "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz"
    )
    assert data["output_shape"] == [12, 5]
    y = np.load(tmp_path / "y.npy")
    tensor = json.loads((tmp_path / "out" / "manifest.json").read_text())["output"]["tensor"]
    assert y.dtype == np.float32
    assert np.array_equal(np.load(tmp_path / "y.npz")[tensor], y)
    assert np.array_equal(hlsgen.run(tmp_path / "out", x[:1]), y[:1])


@pytest.mark.sim
def test_lanes_and_stream_layout_of_a_datapath(tmp_path: Path) -> None:
    g = Graph((2, 3, 5))
    g.quant(np.array([0.1, 0.2, 0.3]).reshape(1, 3, 1), 0.0, 5.0, signed=1, narrow=0)
    onnx.save(g.model(), tmp_path / "model.onnx")
    call("build", tmp_path / "model.onnx", "-o", tmp_path / "out", "--input", "fixed:10,4", "--lanes", 4)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    port = manifest["input"]
    assert (port["element_bits"], port["lanes"], port["beats"], port["tdata_bits"]) == (10, 4, 8, 40)
    assert port["axes"] == [0, 2, 1]
    x = np.random.default_rng(0).integers(-512, 512, (2, 3, 5)).astype(np.float32) / 64
    np.save(tmp_path / "x.npy", x)
    files = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    call("run", tmp_path / "out", "--backend", "verilator", *files)
    assert np.array_equal(np.load(tmp_path / "y.npy"), hlsgen.run(tmp_path / "out", x))


@pytest.mark.sim
@needs_icarus
def test_shipped_testbench_runs_with_make(tmp_path: Path) -> None:
    call("build", MODEL, "-o", tmp_path / "out", "--target-cycles", 30)
    command = ["make", "-C", str(tmp_path / "out" / "tb"), "SIM=icarus", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    expected = tmp_path / "out" / "tb" / "expected.hex"
    lines = expected.read_text().splitlines()
    lines[3] = f"{int(lines[3], 16) ^ 1:0{len(lines[3])}x}"
    expected.write_text("\n".join(lines) + "\n")
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_commands_page_names_every_option() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    for command in ("check", "build", "run", "verify"):
        for word in call(command, "--help").split():
            if word.startswith("--") and word != "--help":
                assert word.rstrip(",.;") in page, (command, word)
