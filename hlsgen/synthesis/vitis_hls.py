"""Synthesizes a build's C++ with Vitis HLS, if it is on PATH, and reads its report. Tested with a substitute only."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from hlsgen.devices import Device
from hlsgen.simulation.child_process import failed, run_tool, work_folder
from hlsgen.simulation.core_copy import write_core

#: Its program, and the path of the report in its working folder.
PROGRAM, REPORT = "v++", "hls/syn/report/csynth.xml"
_CONFIG = "hls_config.cfg"
_MAX_REPORT_BYTES = 1 << 26
_COUNTS = ("LUT", "FF", "BRAM_18K", "DSP")


def on_path() -> bool:
    """True if Vitis is on PATH."""
    return shutil.which(PROGRAM) is not None


def synthesize_cpp(
    files: Mapping[str, bytes], device: Device, clock_mhz: float, seconds: float
) -> tuple[tuple[int, int, int, int], float, bytes]:
    """(LUT, FF, block RAMs of 18 Kbit, DSP), the clock period in ns that Vitis expects, and its report.

    files: hls/ and the files that its configuration names, by relative path. All numbers are Vitis' estimates: nothing
    is placed. Raises HG052, HG053.
    """
    with work_folder("vitis") as work:
        folder = write_core(files, work) / "hls"
        text = (folder / _CONFIG).read_text(encoding="utf-8")
        text = re.sub(r"^part=.*$", f"part={device.part}", text, count=1, flags=re.MULTILINE)
        text = re.sub(r"^clock=.*$", f"clock={1000 / clock_mhz:.3f}ns", text, count=1, flags=re.MULTILINE)
        (folder / _CONFIG).write_text(text, encoding="utf-8")
        command = [shutil.which(PROGRAM) or PROGRAM, "-c", "--mode", "hls", "--config", _CONFIG, "--work_dir", "work"]
        ended = run_tool(
            command, folder, os.environ, "vitis", seconds, "the synthesis", "If it is only slow: a larger --timeout."
        )
        try:
            if ended.code:
                raise ValueError(f"v++ ended with exit code {ended.code}")
            report = _read(folder / "work" / REPORT)
            return *read_report(report), report
        except (OSError, ValueError) as error:
            raise failed("vitis", str(error), ended.log) from None


def _read(path: Path) -> bytes:
    if path.stat().st_size > _MAX_REPORT_BYTES:
        raise ValueError(f"the report has more than {_MAX_REPORT_BYTES} bytes")
    return path.read_bytes()


def read_report(report: bytes) -> tuple[tuple[int, int, int, int], float]:
    """(LUT, FF, block RAMs, DSP) and the expected clock period in ns, from csynth.xml. Raises ValueError."""
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report:
        raise ValueError("the report has XML entity or document type definitions")
    try:
        root = ElementTree.fromstring(report)
    except ElementTree.ParseError as error:
        raise ValueError(f"the report cannot be read: {error}") from None
    counts = [root.findtext(f"AreaEstimates/Resources/{name}") for name in _COUNTS]
    period = root.findtext("PerformanceEstimates/SummaryOfTimingAnalysis/EstimatedClockPeriod")
    if period is None or None in counts:
        raise ValueError("the report has no estimates of area and clock")
    lut, ff, bram, dsp = (int(count or "") for count in counts)
    return (lut, ff, bram, dsp), float(period)
