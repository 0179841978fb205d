"""Quartus, where it is on PATH: its scripts, and what its reports say. Tested with a stand-in only: we have no Quartus."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from hlsgen.devices import Device
from hlsgen.synthesis.harness import ports_of
from hlsgen.synthesis.nextpnr import Routed
from hlsgen.synthesis.slowest_path import DELAY, END, FROM, SLACK, slowest
from hlsgen.synthesis.vendor_tool import route_by

#: The vendor of its devices, and its program.
VENDOR, PROGRAM = "Intel", "quartus_sh"
#: What the scripts and the fitter write.
UTILIZATION, TIMING = "core.fit.rpt", "timing.txt"
FILES = (UTILIZATION, TIMING, "core.sta.rpt")
#: Every port but the clock is a virtual pin: cores have more ports than devices have pins.
_SCRIPT = """\
package require ::quartus::project
package require ::quartus::flow
project_new core -overwrite
set_global_assignment -name DEVICE {part}
set_global_assignment -name TOP_LEVEL_ENTITY {top}
set_global_assignment -name SEARCH_PATH .
{sources}
set_global_assignment -name SDC_FILE clock.sdc
{options}
export_assignments
execute_flow -compile
qexec "quartus_sta -t path.tcl"
project_close
"""
_PATH = f"""\
project_open core
create_timing_netlist
read_sdc
update_timing_netlist
set out [open {TIMING} w]
foreach_in_collection path [get_timing_paths -setup -npaths 1] {{
    puts $out "{SLACK} [get_path_info $path -slack]"
    puts $out "{DELAY} [get_path_info $path -data_delay]"
    puts $out "{FROM} [get_node_info -name [get_path_info $path -from]]"
    puts $out "{END} [get_node_info -name [get_path_info $path -to]]"
}}
close $out
project_close
"""
#: Without multiplier blocks.
_NO_DSP = ("AUTO_DSP_RECOGNITION OFF", 'DSP_BLOCK_BALANCING "LOGIC ELEMENTS"')
#: Rows of the report of the fitter, by kind, and what a unit of them is worth in those of devices.yaml. A block of Cyclone V
#: is two multipliers of 18 x 18 bits; two elements of 9 bits of the others are one.
_ROWS = (
    (("Logic utilization (in ALMs)", 1.0), ("Total logic elements", 1.0)),
    (("Total registers", 1.0),),
    (("M10K blocks", 1.0), ("M9Ks", 1.0)),
    (("Total DSP Blocks", 2.0), ("Embedded Multiplier 9-bit elements", 0.5)),
)


def on_path() -> bool:
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
    """Places and routes a core whose ports are no pins. Raises HG052, HG053."""
    period = 1000 / clock_mhz
    (folder / "clock.sdc").write_text(
        f"create_clock -name {clock} -period {period:.3f} [get_ports {clock}]\n", encoding="utf-8"
    )
    ports = [name for _, _, name in ports_of(top, (folder / f"{top}.v").read_text(encoding="utf-8")) if name != clock]
    options = [f"set_global_assignment -name {option}" for option in (() if dsp else _NO_DSP)]
    options += [f"set_instance_assignment -name VIRTUAL_PIN ON -to {name}" for name in ports]
    script = _SCRIPT.format(
        part=device.part, top=top, options="\n".join(options),
        sources="\n".join(f"set_global_assignment -name VERILOG_FILE {name}" for name in files),
    )  # fmt: skip
    (folder / "synth.tcl").write_text(script, encoding="utf-8")
    (folder / "path.tcl").write_text(_PATH, encoding="utf-8")
    arguments = ["-t", "synth.tcl"]
    return route_by(
        "quartus", PROGRAM, arguments, folder, seconds, (UTILIZATION, TIMING), lambda u, t: read_reports(u, t, period)
    )


def read_reports(utilization: str, timing: str, period: float) -> Routed:
    """The counts, the clock that slack and period leave, and where the slowest path begins and ends. Raises ValueError."""
    counts = [_count(utilization, rows) for rows in _ROWS]
    fmax, path = slowest(timing, period, _instance)
    return Routed((counts[0], counts[1], counts[2], counts[3]), fmax, path)


def _count(report: str, rows: Sequence[tuple[str, float]]) -> int:
    """The number of the first of these rows that is there. Raises ValueError."""
    for name, worth in rows:
        found = re.search(rf"^;\s*{re.escape(name)}\s*;\s*([\d,]+)", report, re.MULTILINE)
        if found:
            return -int(-int(found[1].replace(",", "")) * worth // 1)
    raise ValueError(f"no row {' or '.join(name for name, _ in rows)} in the report of the fitter")


def _instance(node: str) -> str:
    """The instance of the core's top level that a node is in, "" for none: module:instance|module:instance|register."""
    first, _, rest = node.partition("|")
    return first.rpartition(":")[2] if rest else ""
