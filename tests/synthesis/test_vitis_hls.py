"""`hlsgen synth` of C++ with a substitute for Vitis: its command line, and results from its report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from paths import ROOT

import hlsgen
from hlsgen.synthesis.vitis_hls import read_report

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
#: A report of Vitis with the entries that are read, and others.
XML = """<profile>
<ReportVersion><Version>2024.1</Version></ReportVersion>
<PerformanceEstimates><SummaryOfTimingAnalysis><unit>ns</unit>
<EstimatedClockPeriod>7.300</EstimatedClockPeriod></SummaryOfTimingAnalysis></PerformanceEstimates>
<AreaEstimates><Resources><BRAM_18K>4</BRAM_18K><FF>2001</FF><LUT>1702</LUT><DSP>{dsp}</DSP><URAM>0</URAM></Resources>
<AvailableResources><LUT>53200</LUT></AvailableResources></AreaEstimates></profile>
"""
PROGRAM = """#!/bin/sh
echo "$(basename $0) $*" > {log}
grep -E '^(part|clock)=' hls_config.cfg >> {log}
for file in $(sed -n 's/^\\(syn\\|tb\\).file=//p' hls_config.cfg); do test -f $file || echo "no $file" >> {log}; done
mkdir -p work/hls/syn/report
cp {xml} work/hls/syn/report/csynth.xml
{end}
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    hlsgen.build(DIGITS, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=64))
    return tmp_path / "out"


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, dsp: int = 3, end: str = "") -> Path:
    """Puts a substitute for Vitis on PATH; returns the file that records its command line."""
    (folder / "bin").mkdir()
    (folder / "csynth.xml").write_text(XML.format(dsp=dsp))
    text = PROGRAM.format(log=folder / "log", xml=folder / "csynth.xml", end=end)
    (folder / "bin" / "v++").write_text(text)
    (folder / "bin" / "v++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder / "log"


def test_counts_and_clock(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = installed(tmp_path, monkeypatch)
    synthesis = hlsgen.synth(built, "xc7z020", output=tmp_path / "files")
    assert (synthesis.lut, synthesis.ff, synthesis.bram, synthesis.dsp, synthesis.fits) == (1702, 2001, 4, 3, True)
    assert not synthesis.placed
    assert synthesis.why == "Vitis HLS estimates these counts, and a clock period of 7.3 ns"
    assert log.read_text().splitlines() == [
        "v++ -c --mode hls --config hls_config.cfg --work_dir work",
        "part=xc7z020clg400-1",
        "clock=10.000ns",
    ]
    saved = json.loads((built / "results" / "synth-xc7z020.json").read_text())
    assert (saved["lut"], saved["fmax_mhz"]) == (1702, None)
    assert "hls/digits_mlp.cpp" in saved["files_sha256"]
    assert (tmp_path / "files" / "csynth-xc7z020.xml").read_text() == XML.format(dsp=3)


def test_a_core_that_does_not_fit_is_reported(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, dsp=221)
    synthesis = hlsgen.synth(built, "xc7z020")
    assert [str(problem.code) for problem in synthesis.problems] == ["HG070"]


def test_the_error_of_vitis_is_shown(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, end='echo "ERROR: [HLS 200-1] no such thing"; exit 3')
    with pytest.raises(
        hlsgen.HlsgenError, match=r"HG053 vitis: v\+\+ ended with exit code 3: ERROR: \[HLS 200-1\] no such thing"
    ):
        hlsgen.synth(built, "xc7z020")
    assert not (built / "results").exists()


def test_a_missing_vitis_is_reported(built: Path) -> None:
    with pytest.raises(hlsgen.HlsgenError, match=r"HG052 v\+\+: .*Vitis is not on PATH"):
        hlsgen.synth(built, "xc7z020")


def test_devices_of_other_vendors_are_rejected(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    with pytest.raises(hlsgen.HlsgenError, match=r"HG040 --device: .*ecp5-25k is not an AMD device"):
        hlsgen.synth(built, "ecp5-25k")


@pytest.mark.parametrize(
    "text",
    ["", "<profile/>", XML.format(dsp="many"), XML.replace("LUT>", "TUL>"), f"<!DOCTYPE a [<!ENTITY b 'c'>]>{XML}"],
)
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"report|invalid literal"):
        read_report(text.encode())
