"""`hlsgen explore`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from sweeps import network
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.cycle_model import fifo_sizing
from hlsgen.devices import device
from hlsgen.explore import running, work
from hlsgen.explore.points import VARIED
from hlsgen.synthesis.result import Synthesis

CNN = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"


def explore(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["explore", *map(str, arguments), "--jobs", "1"])


def rows(output: str) -> list[str]:
    return [line.rstrip() for line in output.splitlines() if "--target-cycles" in line]


@pytest.mark.sweep
def test_the_table_is_the_front(tmp_path: Path) -> None:
    net = network(tmp_path)
    result = explore(net, "--points", 4, "-o", tmp_path / "out")
    assert result.exit_code == 0
    points = hlsgen.explore(net, points=4, jobs=1)
    front = [point for point in points if point.front]
    assert [re.split(" {2,}", row.strip()) for row in rows(result.stdout)] == [
        [f"{p.frames_per_second:.4g}", *map(str, (p.interval, p.latency, p.lut, p.ff, p.bram, p.dsp)), p.flags]
        for p in front
    ]
    assert f"4 networks, 12 points, {len(front)} on the front." in result.stdout
    assert "Resources are estimates. The clock of 200 MHz is not" in result.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["front.svg", "points.jsonl"]


def test_json(tmp_path: Path) -> None:
    data = json.loads(
        explore(network(tmp_path), "--points", 3, "--device", "ecp5-25k", "--clock-mhz", 33, "--json").stdout
    )
    assert (data["ok"], data["networks"], data["known"], data["output"]) == (True, 3, 0, None)
    assert len(data["points"]) == 9
    for point in data["points"]:
        assert point["frames_per_second"] == 33e6 / point["interval"]
        assert point["share"] == max(
            point["estimate"][kind] / there
            for kind, there in (("lut", 24288), ("ff", 24288), ("bram", 56), ("dsp", 28))
        )
        words = point["flags"].split()
        assert words == [w for k, v in point["options"].items() for w in (f"--{k.replace('_', '-')}", str(v))]
    assert any(point["front"] for point in data["points"])


def test_estimated_cycles_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the table, in lines and in JSON, when the points are found again as well."""
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    monkeypatch.setattr(fifo_sizing, "BUDGET", 0)
    words = [network(tmp_path), "--points", 1, "-o", tmp_path / "out"]
    first, again = explore(*words), explore(*words)
    assert first.stdout == again.stdout
    assert all(re.match(r" *~\S+ +~\d+ +~\d+ +\d", row) for row in rows(first.stdout))
    assert "exact cycles; figures with ~ are estimates" in first.stdout
    lines = (tmp_path / "out" / "points.jsonl").read_text().splitlines()
    points = json.loads(explore(*words, "--json").stdout)["points"]
    assert {point["estimated"] for point in [*map(json.loads, lines), *points]} == {True}
    assert "dotted" in (tmp_path / "out" / "front.svg").read_text()


def test_options_that_all_networks_have(tmp_path: Path) -> None:
    net = network(tmp_path)
    data = json.loads(explore(net, "--points", 1, "--input", "fixed:9,9", "--realize", "compare", "--json").stdout)
    for point in data["points"]:
        assert point["options"]["realize"] == {"": "compare"}
        build = hlsgen.check(net, hlsgen.Options(**point["options"]))
        assert (build.timing.interval, build.options.input) == (point["interval"], "fixed:9,9")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_nothing_fits(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are kept, and the exit code says it."""
    small = replace(device("ice40-up5k"), lut=100)
    monkeypatch.setattr(running, "device", lambda name: small)
    result = explore(network(tmp_path), "--points", 2, "--device", "ice40-up5k", "-o", tmp_path / "out", *words)
    assert result.exit_code == 1
    assert "HG070" in result.output
    assert re.search(r"none of 6 networks takes at most 80 % of it.* of 100 LUT4", " ".join(result.output.split()))
    assert (tmp_path / "out" / "points.jsonl").exists()


def test_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, clock and rate of a synthesis stand beside the estimate."""

    def synthesize(build: hlsgen.Build, files: Any, target: Any, *_: Any) -> Any:
        return Synthesis(target, 11, 12, 13, 14, {}, build.timing.interval, True, 48.0, (), 1.0, {}, {}, {}), {}

    monkeypatch.setattr(work, "synthesize", synthesize)
    result = explore(network(tmp_path), "--points", 2, "--device", "ecp5-25k", "--synth", "-o", tmp_path / "out")
    assert re.search(r"largest share +measured +MHz +frames/s +options", result.stdout)
    for row in rows(result.stdout):
        interval = int(row.split()[1])
        assert f"11, 12, 13, 14  48.0  {48e6 / interval:>8.4g}" in row
    assert "red: measured" in (tmp_path / "out" / "front.svg").read_text()


@pytest.mark.parametrize("name", [*VARIED, "max_lut", "max_dsp", "max_bram", "fps"])
def test_flags_that_it_answers_itself_are_not_there(name: str, tmp_path: Path) -> None:
    result = explore(network(tmp_path), f"--{name.replace('_', '-')}", "1")
    assert result.exit_code == 2
    assert "No such option" in result.output


def test_usage_is_exit_code_2(tmp_path: Path) -> None:
    assert explore(network(tmp_path), "--points", 0).exit_code == 2
    assert explore(network(tmp_path), "--device", "xc7").exit_code == 2
    assert explore(tmp_path / "absent.onnx").exit_code == 1
    assert json.loads(explore(tmp_path / "absent.onnx", "--json").stdout)["ok"] is False
