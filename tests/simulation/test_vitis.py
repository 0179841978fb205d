"""`verify --cosim` with substitutes for Vitis' programs: the commands that run, and their verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.simulation.vitis import VITIS

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
#: Records its arguments, and missing files of hls_config.cfg; the program named `bad` fails.
PROGRAM = """#!/bin/sh
echo "$(basename $0) $*" >> {log}
for file in $(sed -n 's/^\\(syn\\|tb\\).file=//p' hls_config.cfg); do test -f $file || echo "no $file" >> {log}; done
test "$(basename $0)" != "{bad}" || {{ echo "ERROR: [HLS 200-1] no such thing"; exit 3; }}
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    hlsgen.build(DIGITS, tmp_path / "out", hlsgen.Options(target="hls"))
    return tmp_path / "out"


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, bad: str = "") -> Path:
    """Puts substitutes on PATH; returns the file that records their calls."""
    (folder / "bin").mkdir()
    for name in ("v++", "vitis-run"):
        (folder / "bin" / name).write_text(PROGRAM.format(log=folder / "log", bad=bad))
        (folder / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder / "log"


@pytest.mark.sweep
def test_synthesis_and_cosimulation_run(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = installed(tmp_path, monkeypatch)
    verdict = hlsgen.verify(built, [], cosim=True, oracle="none")
    assert verdict.ok
    assert verdict.simulators[VITIS].samples == 8
    config = "--config hls_config.cfg --work_dir work"
    assert log.read_text() == f"v++ -c --mode hls {config}\nvitis-run --mode hls --cosim {config}\n"
    assert not any("Vitis" in note for note in verdict.notes)


@pytest.mark.sweep
@pytest.mark.parametrize("bad, activity", [("v++", "synthesis"), ("vitis-run", "co-simulation")])
def test_a_step_that_fails_is_reported(
    bad: str, activity: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = installed(tmp_path, monkeypatch, bad)
    verdict = hlsgen.verify(built, [], cosim=True, oracle="none")
    assert not verdict.ok
    assert verdict.simulators[VITIS].failures == [
        f"{activity} failed with exit code 3: ERROR: [HLS 200-1] no such thing"
    ]
    assert len(log.read_text().splitlines()) == (1 if bad == "v++" else 2)


def test_a_missing_vitis_is_reported(built: Path) -> None:
    ran = CliRunner().invoke(app, ["verify", str(built), "--cosim", "--json"])
    (problem,) = json.loads(ran.stdout)["diagnostics"]
    assert (ran.exit_code, problem["code"], problem["node"]) == (1, "HG052", "--cosim")
    assert "v++ and vitis-run of Vitis not on PATH" in problem["message"]


def test_a_build_without_cpp_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    hlsgen.build(DIGITS, tmp_path / "out")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*has no C"):
        hlsgen.verify(tmp_path / "out", [], cosim=True)
