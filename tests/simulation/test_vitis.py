"""`verify --cosim` with programs of the names of Vitis': which commands run, where, and what becomes of their verdict."""

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
#: Notes its arguments, and whether what hls_config.cfg names is there; then ends as it is told.
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
    """Stand-ins on PATH; gives the file in which they note what they do."""
    (folder / "bin").mkdir()
    for name in ("v++", "vitis-run"):
        (folder / "bin" / name).write_text(PROGRAM.format(log=folder / "log", bad=bad))
        (folder / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder / "log"


def test_both_steps(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = installed(tmp_path, monkeypatch)
    found = hlsgen.verify(built, [], cosim=True, oracle="none")
    assert found.ok
    assert found.simulators[VITIS].samples == 8
    config = "--config hls_config.cfg --work_dir work"
    assert log.read_text() == f"v++ -c --mode hls {config}\nvitis-run --mode hls --cosim {config}\n"
    assert not any("Vitis" in note for note in found.notes)


@pytest.mark.parametrize("bad, what", [("v++", "synthesis"), ("vitis-run", "co-simulation")])
def test_a_step_that_fails(bad: str, what: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = installed(tmp_path, monkeypatch, bad)
    found = hlsgen.verify(built, [], cosim=True, oracle="none")
    assert not found.ok
    assert found.simulators[VITIS].failures == [f"{what} failed with exit code 3: ERROR: [HLS 200-1] no such thing"]
    assert len(log.read_text().splitlines()) == (1 if bad == "v++" else 2)


def test_without_vitis(built: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(built), "--cosim", "--json"])
    (problem,) = json.loads(done.stdout)["diagnostics"]
    assert (done.exit_code, problem["code"], problem["node"]) == (1, "HG052", "--cosim")
    assert "v++ and vitis-run of Vitis not on PATH" in problem["message"]


def test_without_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    hlsgen.build(DIGITS, tmp_path / "out")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040.*has no C"):
        hlsgen.verify(tmp_path / "out", [], cosim=True)
