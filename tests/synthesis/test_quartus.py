"""Quartus on PATH, as a substitute: the scripts that run, and results from its reports. No Quartus has run here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from models import mlp, save

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.synthesis.quartus import read_reports

#: Rows of the fitter's report, for a family with ALMs and one with logic elements.
CYCLONE_V = """
; Fitter Summary                                                                ;
; Logic utilization (in ALMs)     ; 1,709 / 32,070 ( 5 % )                      ;
; Total registers                 ; 915                                         ;
; Total RAM Blocks                ; 24 / 397 ( 6 % )                            ;
; Total DSP Blocks                ; 7 / 87 ( 8 % )                              ;
; Fitter Resource Usage Summary                                                 ;
; M10K blocks                                  ; 24 / 397            ; 6 %      ;
; Total registers                              ; 999                 ;          ;
"""
MAX_10 = """
; Total logic elements               ; 2,754 / 49,760 ( 6 % )                      ;
;     Total combinational functions  ; 2,646 / 49,760 ( 5 % )                      ;
; Total registers                    ; 653                                         ;
; Embedded Multiplier 9-bit elements ; 5 / 288 ( 2 % )                             ;
; M9Ks                               ; 44 / 182 ( 24 % )                           ;
"""
TIMING = "slack -2.500\ndelay 12.250\nfrom hg_mvu:fc0|hg_mac:mac|x_reg[1]\nto hg_threshold:q1|y_reg[0]\n"
PROGRAM = """#!/bin/sh
echo "$@" > {log}
cat synth.tcl path.tcl clock.sdc >> {log}
ls >> {log}
cp {folder}/core.fit.rpt {folder}/timing.txt .
echo 'Error (119013): Current license file does not support the device'
exit {code}
"""


@pytest.mark.parametrize(("report", "counts"), [(CYCLONE_V, (1709, 915, 24, 14)), (MAX_10, (2754, 653, 44, 3))])
def test_reports(report: str, counts: tuple[int, int, int, int]) -> None:
    """A DSP block of Cyclone V has two multipliers; a multiplier of MAX 10 has two elements of 9 bits."""
    routed = read_reports(report, TIMING, 10.0)
    assert routed.used == counts
    assert routed.fmax_mhz == pytest.approx(80.0)
    assert [(part.instance, part.delay_ns) for part in routed.path] == [("fc0", 12.25), ("q1", 0.0)]


def test_a_path_between_registers_of_the_top_level() -> None:
    routed = read_reports(MAX_10, TIMING.replace("hg_mvu:fc0|hg_mac:mac|", "").replace("hg_threshold:q1|", ""), 10.0)
    assert [part.instance for part in routed.path] == [""]


def test_reports_that_are_cut_off() -> None:
    with pytest.raises(ValueError, match="has no row M10K blocks or M9Ks"):
        read_reports(MAX_10.split("; M9Ks")[0], TIMING, 10.0)
    assert read_reports(MAX_10, "", 10.0).fmax_mhz is None


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "core.fit.rpt").write_text(CYCLONE_V)
    (tmp_path / "timing.txt").write_text(TIMING)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    hlsgen.build(save(mlp().model(), tmp_path / "m.onnx"), tmp_path / "out", Options(target_cycles=16, top="core"))
    return tmp_path


def installed(folder: Path, code: int) -> None:
    (folder / "quartus_sh").write_text(PROGRAM.format(log=folder / "log", folder=folder, code=code))
    (folder / "quartus_sh").chmod(0o755)


def test_results_come_from_its_reports(built: Path) -> None:
    installed(built, 0)
    synthesis = hlsgen.synth(built / "out", "cyclonev-5csema5", output=built / "files")
    assert (synthesis.lut, synthesis.ff, synthesis.bram, synthesis.dsp, synthesis.placed) == (1709, 915, 24, 14, True)
    assert synthesis.fmax_mhz == pytest.approx(80.0)
    layers = {node.name: node.layer for node in hlsgen.check(built / "m.onnx").network.nodes}
    assert [(part.instance, part.layer) for part in synthesis.critical_path] == [
        ("fc0", layers["fc0"]),
        ("q1", layers["q1"]),
    ]
    log = (built / "log").read_text()
    assert log.startswith("-t synth.tcl\n")
    assert "-name DEVICE 5CSEMA5F31C6\nset_global_assignment -name TOP_LEVEL_ENTITY core\n" in log
    assert 'AUTO_DSP_RECOGNITION OFF\nset_global_assignment -name DSP_BLOCK_BALANCING "LOGIC ELEMENTS"\n' in log
    assert "create_clock -name clk -period 10.000 [get_ports clk]" in log
    virtual = [line.split()[-1] for line in log.splitlines() if "VIRTUAL_PIN ON" in line]
    assert {"rst", "s_axis_tdata", "m_axis_tvalid"} <= set(virtual)
    assert "clk" not in virtual
    for file in (built / "out" / "rtl").iterdir():
        assert f"{file.name}\n" in log
        assert file.suffix != ".v" or f"VERILOG_FILE {file.name}\n" in log
    written = sorted(file.name for file in (built / "files").iterdir())
    assert written == ["core.fit-cyclonev-5csema5.rpt", "timing-cyclonev-5csema5.txt"]
    assert json.loads((built / "out" / "results" / "synth-cyclonev-5csema5.json").read_text())["placed"]


def test_dsp_blocks_are_used_with_prefer_dsp(built: Path) -> None:
    installed(built, 0)
    hlsgen.build(built / "m.onnx", built / "dsp", Options(target_cycles=16, top="core", prefer="dsp"))
    hlsgen.synth(built / "dsp", "max10-10m50")
    log = (built / "log").read_text()
    assert "-name DEVICE 10M50DAF484C7G\n" in log
    assert "AUTO_DSP_RECOGNITION" not in log


def test_its_error_is_shown(built: Path) -> None:
    installed(built, 1)
    text = r"HG053 quartus: quartus_sh ended with exit code 1: Error \(119013\): Current license file"
    with pytest.raises(HlsgenError, match=text):
        hlsgen.synth(built / "out", "max10-10m50")
    assert not (built / "out" / "results").exists()


@pytest.mark.slow
def test_other_devices_go_through_yosys(built: Path) -> None:
    """Quartus is on PATH, but not used for a device of AMD."""
    installed(built, 1)
    assert not hlsgen.synth(built / "out", "xc7a35t").placed
    assert not (built / "log").exists()
