"""Vivado on PATH, as a substitute: the script that runs, and results from its reports. No Vivado has run here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from models import mlp, save

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.synthesis.vivado import read_reports

#: A report in the format of report_utilization.
UTILIZATION = """
+-------------------------+------+-------+------------+-----------+-------+
|        Site Type        | Used | Fixed | Prohibited | Available | Util% |
+-------------------------+------+-------+------------+-----------+-------+
| {0} LUTs*              |  812 |     0 |          0 |     20800 |  3.90 |
|   LUT as Logic          |  700 |     0 |          0 |     20800 |  3.37 |
| {0} Registers         |  640 |     0 |          0 |     41600 |  1.54 |
| Block RAM Tile          |  2.5 |     0 |          0 |        50 |  5.00 |
|   RAMB18                |    5 |     0 |          0 |       100 |  5.00 |
| DSPs                    |    3 |     0 |          0 |        90 |  3.33 |
"""
TIMING = "slack -2.500\ndelay 12.250\nfrom fc0/mac/x_reg_reg[1]/C\nto q1/lane[0]/y_reg/D\n"
PROGRAM = """#!/bin/sh
echo "$@" > {log}
cat synth.tcl clock.xdc >> {log}
ls >> {log}
cp {folder}/utilization.rpt {folder}/timing.txt .
echo 'ERROR: [Common 17-345] no licence'
exit {code}
"""


@pytest.mark.parametrize("word", ["Slice", "CLB"])
def test_reports(word: str) -> None:
    routed = read_reports(UTILIZATION.format(word), TIMING, 10.0)
    assert routed.used == (812, 640, 5, 3)
    assert routed.fmax_mhz == pytest.approx(80.0)
    assert [(part.instance, part.delay_ns) for part in routed.path] == [("fc0", 12.25), ("q1", 0.0)]


def test_reports_that_are_cut_off() -> None:
    with pytest.raises(ValueError, match="Registers"):
        read_reports(UTILIZATION.format("Slice").split("Registers")[0], TIMING, 10.0)
    assert read_reports(UTILIZATION.format("Slice"), "", 10.0).fmax_mhz is None


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "utilization.rpt").write_text(UTILIZATION.format("Slice"))
    (tmp_path / "timing.txt").write_text(TIMING)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), tmp_path / "out", Options(target_cycles=16, top="core"))
    return tmp_path


def installed(folder: Path, code: int) -> None:
    (folder / "vivado").write_text(PROGRAM.format(log=folder / "log", folder=folder, code=code))
    (folder / "vivado").chmod(0o755)


def test_results_come_from_its_reports(built: Path) -> None:
    installed(built, 0)
    synthesis = hlsgen.synth(built / "out", "xc7a35t", output=built / "files")
    assert (synthesis.lut, synthesis.ff, synthesis.bram, synthesis.dsp, synthesis.placed) == (812, 640, 5, 3, True)
    assert synthesis.fmax_mhz == pytest.approx(80.0)
    assert synthesis.frames_per_second == pytest.approx(80e6 / synthesis.interval)
    layers = {node.name: node.layer for node in hlsgen.check(built / "m.onnx").network.nodes}
    assert [(part.instance, part.layer) for part in synthesis.critical_path] == [
        ("fc0", layers["fc0"]),
        ("q1", layers["q1"]),
    ]
    log = (built / "log").read_text()
    assert log.startswith("-mode batch -nojournal -source synth.tcl\n")
    assert "synth_design -top core -part xc7a35tcpg236-1 -mode out_of_context -max_dsp 0\n" in log
    assert "create_clock -period 10.000 [get_ports clk]" in log
    for file in (built / "out" / "rtl").iterdir():
        assert f"{file.name}\n" in log
    assert (built / "files" / "utilization-xc7a35t.rpt").exists()
    assert json.loads((built / "out" / "results" / "synth-xc7a35t.json").read_text())["placed"]


def test_its_error_is_shown(built: Path) -> None:
    installed(built, 1)
    with pytest.raises(
        HlsgenError, match=r"HG053 vivado: vivado ended with exit code 1: ERROR: \[Common 17-345\] no licence"
    ):
        hlsgen.synth(built / "out", "xc7a35t")
    assert not (built / "out" / "results").exists()


def test_builds_with_cpp_only_need_vitis(built: Path) -> None:
    hlsgen.build(built / "m.onnx", built / "cpp", Options(target="hls"))
    with pytest.raises(HlsgenError, match=r"HG052 v\+\+: the build has C\+\+ only.*Vitis is not on PATH"):
        hlsgen.synth(built / "cpp", "xc7a35t")
