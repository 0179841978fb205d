"""Script for Vivado, if it is on PATH, and a reader of its reports. Tested with a substitute: we have no Vivado."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from hlsgen.devices import Device
from hlsgen.synthesis.nextpnr import Routed, instance_of
from hlsgen.synthesis.slowest_path import slowest
from hlsgen.synthesis.vendor_tool import route_by

#: The vendor of its devices, and its program.
VENDOR, PROGRAM = "AMD", "vivado"
#: Files that the script writes.
UTILIZATION, TIMING = "utilization.rpt", "timing.txt"
FILES = (UTILIZATION, TIMING, "timing.rpt", "vivado.log")
_SCRIPT = """\
read_verilog [list {files}]
read_xdc clock.xdc
synth_design -top {top} -part {part} -mode out_of_context{dsp}
opt_design
place_design
route_design
report_utilization -file {utilization}
report_timing -max_paths 1 -file timing.rpt
set path [lindex [get_timing_paths -max_paths 1] 0]
set out [open {timing} w]
puts $out "slack [get_property SLACK $path]"
puts $out "delay [get_property DATAPATH_DELAY $path]"
puts $out "from [get_property STARTPOINT_PIN $path]"
puts $out "to [get_property ENDPOINT_PIN $path]"
close $out
"""
_ROWS = (
    (r"(?:Slice|CLB) LUTs\*?", 1),
    (r"(?:Slice|CLB) Registers", 1),
    (r"Block RAM Tile", 2),  # of 36 Kbit
    (r"DSPs", 1),
)


def on_path() -> bool:
    """True if Vivado is on PATH."""
    return shutil.which(PROGRAM) is not None


def route(
    device: Device,
    files: Sequence[str],
    top: str,
    clock: str,
    clock_mhz: float,
    dsp: bool,
    folder: Path,
    seconds: float,
) -> Routed:
    """Places and routes a core out of context. A block RAM count is in units of 18 Kbit. Raises HG052, HG053."""
    period = 1000 / clock_mhz
    (folder / "clock.xdc").write_text(f"create_clock -period {period:.3f} [get_ports {clock}]\n", encoding="utf-8")
    script = _SCRIPT.format(
        files=" ".join(files),
        top=top,
        part=device.part,
        dsp="" if dsp else " -max_dsp 0",
        utilization=UTILIZATION,
        timing=TIMING,
    )
    (folder / "synth.tcl").write_text(script, encoding="utf-8")
    arguments = ["-mode", "batch", "-nojournal", "-source", "synth.tcl"]
    return route_by(
        "vivado", PROGRAM, arguments, folder, seconds, (UTILIZATION, TIMING), lambda u, t: read_reports(u, t, period)
    )


def read_reports(utilization: str, timing: str, period: float) -> Routed:
    """Reads the counts, the clock from slack and period, and both ends of the slowest path. Raises ValueError.

    period: of the target clock, in ns.
    """
    counts = []
    for pattern, units in _ROWS:
        row = re.search(rf"^\|\s*{pattern}\s*\|\s*([\d.]+)\s*\|", utilization, re.MULTILINE)
        if row is None:
            raise ValueError(f"the utilization report has no row {pattern}")
        counts.append(round(float(row[1]) * units))
    fmax, path = slowest(timing, period, lambda pin: instance_of(pin.replace("/", ".")))
    return Routed((counts[0], counts[1], counts[2], counts[3]), fmax, path)
