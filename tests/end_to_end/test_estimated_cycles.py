"""Builds of networks that count as too large to simulate: the texts on their cycles, and that they work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import list_files
from certified_images import Images
from paths import needs_icarus
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.cycle_model import counted_sizing, fifo_sizing
from hlsgen.cycle_model.deadlock import find_deadlock
from hlsgen.cycle_model.simulate import measure
from hlsgen.simulation.cocotb_runner import NO_LIMITS, Outcome, simulate
from hlsgen.simulation.verify_verilog import _judge, failures, prepare
from hlsgen.testbench.stimuli import stimuli
from hlsgen.verilog.unit_table import latency

pytestmark = pytest.mark.sim


def residual() -> onnx.ModelProto:
    """Two convolutions, and nothing around them."""
    g = Images(2, 4, 4).codes().conv(4, 2).codes(4.0, 3.0)
    ends = g.branches(
        lambda h: h.conv(4, 4, pads=[1, 1, 1, 1]).codes(4.0, 6.0).conv(4, 4, pads=[1, 1, 1, 1]).codes(4.0, 6.0),
        lambda h: h,
    )
    return g.join("Add", *ends).codes(4.0, 7.0).model()


def says(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """model.onnx; networks of a beat or more count as huge, and nothing may be simulated."""
    onnx.save(residual(), tmp_path / "model.onnx")
    monkeypatch.setattr(fifo_sizing, "HUGE", 1)
    monkeypatch.setattr(fifo_sizing, "BUDGET", 0)
    return tmp_path


@pytest.mark.slow
@needs_icarus
def test_a_build_that_was_not_simulated(folder: Path) -> None:
    """It says so everywhere, verifies, certifies and runs."""
    core = folder / "core"
    build = hlsgen.build(folder / "model.onnx", core)
    said = says("check", folder / "model.onnx")
    guess, interval = build.timing.latency, build.timing.interval
    assert f"latency about {guess} cycles, interval {interval} cycles or more" in said
    assert "too large to be simulated" in said
    assert not find_deadlock(build.network.nodes)
    assert measure(build.network.nodes, latency)[1] == interval
    manifest = json.loads((core / "manifest.json").read_text())
    assert manifest["cycles"] == {"latency": guess, "interval": interval, "estimated": True}
    assert not any(fifo["critical"] for fifo in manifest["fifos"])
    assert f"about {guess} cycles, a frame every {interval} cycles or more" in (core / "report.md").read_text()
    assert "first beat in to last beat out, estimated" in (core / "report.html").read_text()
    top = (core / "rtl" / f"{build.design.top}.v").read_text()
    assert re.search(rf"Timing  about {guess} cycles .*\n.*every {interval} cycles or more", top)
    verified = says("verify", core, "--sim", "icarus", "--frames", 4, "--oracle", "none")
    assert f"verified (cycles are not predicted: estimated latency {guess}, interval {interval} or more)" in verified
    assert f"interval {interval} cycles" in verified
    assert hlsgen.certify(core, model=folder / "model.onnx").problems == []
    x = np.zeros((2, *build.model.input_shape[1:]), np.float32)
    assert hlsgen.run(core, x).shape[0] == 2
    says("report", core)


@needs_icarus
def test_a_deadlock_still_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the counts were wrong, `verify` would find it."""
    monkeypatch.setattr(counted_sizing, "safe_depths", lambda nodes: {})
    steady = counted_sizing.steady
    monkeypatch.setattr(
        counted_sizing, "steady", lambda *arguments: type(sizing := steady(*arguments))({}, sizing.missing)
    )
    build = hlsgen.build(folder / "model.onnx", folder / "core", hlsgen.Options(target_cycles=32))
    bench = prepare(build.design, build.network, build.timing, stimuli(build.network, 4, 1), folder / "work")
    outcome = simulate(folder / "core", bench, bench, folder / "sim", "icarus", ["full_rate"])
    assert failures(outcome)
    assert not _judge(outcome, None, 4, build.timing.interval, ["full_rate"], NO_LIMITS).ok


def test_cycles_without_a_prediction_are_only_measured() -> None:
    """Others have to be as predicted; frames have to end in either case."""
    result = {"ends": [10, 25, 40, 56], "latency": 10, "interval": 16}
    for predicted, ends, fine in (
        (None, 4, True),
        (None, 3, False),
        ([10, 25, 40, 56], 4, True),
        ([10, 25, 40, 55], 4, False),
    ):
        outcome = Outcome(True, {**result, "ends": result["ends"][:ends]}, "")
        verdict = _judge(outcome, predicted, 4, 16, ["full_rate"], NO_LIMITS)
        assert (verdict.ok, verdict.cycles) == (fine, {"latency": 10, "interval": 16})
    slow = _judge(Outcome(True, result, ""), [10, 25, 40, 56], 4, 15, [], NO_LIMITS)
    assert slow.failures == ["interval is 16 cycles, predicted 15"]
    assert _judge(Outcome(True, result, ""), None, 4, 15, [], NO_LIMITS).ok


def test_what_is_estimated_cannot_be_passed_off_as_exact(folder: Path) -> None:
    """The manifest and the top level say the same, or `certify` refuses."""
    core = folder / "core"
    hlsgen.build(folder / "model.onnx", core)
    manifest = json.loads((core / "manifest.json").read_text())
    del manifest["cycles"]["estimated"]
    (core / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    list_files(core)
    assert any("Timing" in str(problem) for problem in hlsgen.certify(core).problems)
