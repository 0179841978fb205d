"""Options of `verify`: parts as they come, a time budget, interruption, JUnit, waves. Printed results stay true."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from paths import DATA, needs_icarus
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.cli.junit import junit
from hlsgen.diagnostics import Diagnostic
from hlsgen.simulation import verify as module
from hlsgen.simulation.cocotb_runner import Limits
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict

MODEL = DATA / "hardtanh_po2_outq.onnx"
TESTS = ["full_rate", "random_stalls", "long_stalls", "reset_mid_frame", "offers_in_reset", "frame_errors"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build") / "out"
    hlsgen.build(MODEL, folder, hlsgen.Options(target_cycles=30))
    return folder


@pytest.fixture(scope="module")
def verdict(out: Path) -> Verdict:
    """A verdict without a simulator."""
    return hlsgen.verify(out, [], oracle="none")


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["verify", *map(str, words)])


def simulated(**changes: Any) -> SimulatorVerdict:
    return replace(SimulatorVerdict(9, 0, None, [], None, None, 9, dict.fromkeys(TESTS, True)), **changes)


@pytest.fixture
def substitutes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replacements of simulations, by name of the simulator: a verdict, or an exception."""
    replacements: dict[str, Any] = {}

    def give(
        design: Any, network: Any, timing: Any, files: Any, codes: Any, simulator: str, *_: Any
    ) -> SimulatorVerdict:
        if isinstance(replacements[simulator], BaseException):
            raise replacements[simulator]
        assert isinstance(replacements[simulator], SimulatorVerdict)
        return replacements[simulator]

    monkeypatch.setattr(module, "verify_verilog", give)
    return replacements


@pytest.mark.sweep
def test_parts_come_one_by_one(out: Path, substitutes: dict[str, Any]) -> None:
    substitutes |= {"verilator": simulated(), "icarus": RuntimeError("later")}
    parts: list[str] = []
    with pytest.raises(RuntimeError):
        hlsgen.verify(out, oracle="none", on_part=lambda name, part: parts.append(name))
    assert parts == ["model", "oracle", "host", "changed", "verilator"]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), hlsgen.HlsgenError([hlsgen.Diagnostic("HG053", "icarus", "ended.")])]
)
def test_finished_parts_are_printed_before_an_error(
    error: BaseException, out: Path, substitutes: dict[str, Any]
) -> None:
    substitutes |= {"verilator": simulated(), "icarus": error}
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    ran = call(out, "--oracle", "none")
    assert ran.exit_code == code
    assert "verilator: equal, 9 frames" in ran.stdout
    assert "icarus: equal" not in ran.stdout
    assert "\nverified" not in ran.stdout
    ran = call(out, "--oracle", "none", "--json")
    data = json.loads(ran.stdout)
    assert (ran.exit_code, data["ok"], data["simulators"]["verilator"]["ok"]) == (code, False, True)
    assert list(data["simulators"]) == ["verilator"]


@pytest.mark.sweep
def test_a_result_is_kept(out: Path, substitutes: dict[str, Any]) -> None:
    substitutes |= {"verilator": simulated(), "icarus": simulated(mismatches=3)}
    assert call(out, "--oracle", "none").exit_code == 1
    saved = json.loads((out / "results" / "verify.json").read_text())
    assert (saved["ok"], saved["simulators"]["icarus"]["mismatches"]) == (False, 3)
    report = hlsgen.report(out)
    assert (report.used, "Not verified." in report.html) == (["verify.json"], True)


@pytest.mark.sweep
def test_a_simulation_out_of_time_fails_the_verification(
    out: Path, substitutes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second simulator is not started; the exit code is 1."""
    clock = iter([0.0, 1.0])
    substitutes |= {"verilator": simulated(samples=5, asked=9)}
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock, 99.0)))
    verdict = hlsgen.verify(out, oracle="none", budget=10)
    assert not verdict.ok
    assert verdict.simulators["icarus"].late
    assert verdict.simulators["verilator"].ok
    assert verdict.notes == ["verilator: the time sufficed for 5 of 9 frames."]


@pytest.mark.sim
@needs_icarus
def test_a_budget_reduces_the_frames_at_full_rate(out: Path) -> None:
    """Four of forty frames remain, in the predicted cycles; all tests pass."""
    build = hlsgen.check(MODEL, hlsgen.Options(target_cycles=30))
    codes = module.frames_of(build.network, module.directed(build.graph, 10, 1), 40, 1)
    simulated_ = module.verify_verilog(
        build.design, build.network, build.timing, build.files, codes, "icarus", 1, print, Limits(pace=time.monotonic())
    )
    assert (simulated_.ok, simulated_.samples, simulated_.asked) == (True, 4, 40)
    assert simulated_.tests == dict.fromkeys(TESTS, True)


@pytest.mark.sim
@needs_icarus
def test_a_simulation_that_is_cut_off_is_not_verified(out: Path) -> None:
    ran = call(out, "--sim", "icarus", "--oracle", "none", "--budget", "1", "--frames", "9000")
    assert ran.exit_code == 1
    assert "NOT verified" in ran.stdout
    assert "icarus: not verified" in ran.stdout


@pytest.mark.sim
@pytest.mark.parametrize(
    "kind, sim",
    [
        ("vcd", "icarus"),
        pytest.param("fst", "icarus", marks=pytest.mark.slow),
        pytest.param("vcd", "verilator", marks=pytest.mark.slow),
    ],
)
@needs_icarus
def test_waves_are_written(kind: str, sim: str, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is relative to the folder of the command, not of the simulation."""
    monkeypatch.chdir(tmp_path)
    file = Path(f"w.{kind}")
    assert call(out, "--sim", sim, "--oracle", "none", "--frames", 4, "--waves", file).exit_code == 0
    data = file.read_bytes()
    assert len(data) > 5000
    if kind == "vcd":
        assert all(name in data for name in (b" s_axis_tdata", b" m_axis_tvalid", b"$enddefinitions"))


@pytest.mark.parametrize(
    "words",
    [
        ["--waves", "w.vcd"],
        ["--waves", "w.txt", "--sim", "icarus"],
        ["--waves", "no/w.vcd", "--sim", "icarus"],
        ["--budget", "0"],
    ],
)
def test_wrong_options_are_rejected(words: list[str], out: Path) -> None:
    ran = call(out, *words)
    assert (ran.exit_code, "HG040" in ran.stderr) == (2, True)


def cases(text: bytes) -> dict[tuple[str, str], str | None]:
    root = ElementTree.fromstring(text)
    for suite in root:
        suite_cases = list(suite)
        assert int(suite.attrib["tests"]) == len(suite_cases)
        assert int(suite.attrib["failures"]) == sum(case.find("failure") is not None for case in suite_cases)
    failures = {(c.attrib["classname"], c.attrib["name"]): c.find("failure") for c in root.iter("testcase")}
    return {name: None if failure is None else failure.attrib["message"] for name, failure in failures.items()}


@pytest.mark.sweep
def test_junit_has_a_failure_if_and_only_if_it_is_not_ok(verdict: Verdict) -> None:
    failed = dict.fromkeys(TESTS, True) | {"long_stalls": False}
    changed = [Diagnostic("HG051", "rtl/a.v", "it differs.")]
    for simulators, changes, ok in (
        ({"icarus": simulated()}, [], True),
        ({"icarus": simulated(tests=failed, failures=["no \x1b beat <moved>"])}, [], False),
        (
            {"icarus": simulated(failures=["the time was up in long_stalls"], tests={"full_rate": True}, late=True)},
            [],
            False,
        ),
        ({"icarus": simulated(), "ap_types": simulated(tests={}, mismatches=4)}, [], False),
        ({}, changed, False),
        ({"icarus": simulated()}, [], False),
    ):
        failures_by_case = cases(junit(replace(verdict, ok=ok, simulators=simulators, changes=changes)))
        assert (not any(failures_by_case.values())) == ok, failures_by_case
        if "icarus" in simulators and simulators["icarus"].late:
            assert failures_by_case[("hlsgen.icarus", "simulation")] == "the time was up in long_stalls"
    assert ("hlsgen.model", "layers of the model") in failures_by_case
    text = cases(junit(replace(verdict, ok=False, simulators={"icarus": simulated(tests=failed, failures=["\x1b<"])})))
    assert text[("hlsgen.icarus", "long_stalls")] == "\\x1b<"
    assert text[("hlsgen.icarus", "full_rate")] is None


@pytest.mark.sweep
def test_junit_file(out: Path, substitutes: dict[str, Any], tmp_path: Path) -> None:
    substitutes |= {"verilator": simulated(), "icarus": simulated(mismatches=1, tests={})}
    assert call(out, "--oracle", "none", "--junit", tmp_path / "j.xml").exit_code == 1
    assert cases((tmp_path / "j.xml").read_bytes())[("hlsgen.icarus", "simulation")] == "1 beats differ"
