"""Scripts for Quartus, if it is on PATH, and readers of its reports. Tested with a substitute: we have no Quartus."""

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
#: Files that the scripts and the fitter write.
UTILIZATION, TIMING = "core.fit.rpt", "timing.txt"
FILES = (UTILIZATION, TIMING, "core.sta.rpt")
#: All ports except the clock are virtual pins: cores have more ports than devices have pins.
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
#: Settings that keep Quartus from using DSP blocks.
_NO_DSP = ("AUTO_DSP_RECOGNITION OFF", 'DSP_BLOCK_BALANCING "LOGIC ELEMENTS"')
#: Rows of the fitter's report for each kind of resource, with the number of units of devices.yaml that one unit is.
#: A DSP block of Cyclone V is two multipliers of 18 x 18 bits; elsewhere two 9-bit elements are one multiplier.
_ROWS = (
    (("Logic utilization (in ALMs)", 1.0), ("Total logic elements", 1.0)),
    (("Total registers", 1.0),),
    (("M10K blocks", 1.0), ("M9Ks", 1.0)),
    (("Total DSP Blocks", 2.0), ("Embedded Multiplier 9-bit elements", 0.5)),
)


def on_path() -> bool:
    """True if Quartus is on PATH."""
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
    """Places and routes a core with virtual pins. Raises HG052, HG053."""
    period = 1000 / clock_mhz
    (folder / "clock.sdc").write_text(
        f"create_clock -name {clock} -period {period:.3f} [get_ports {clock}]\n", encoding="utf-8"
    )
    ports = [name for _, _, name in ports_of(top, (folder / f"{top}.v").read_text(encoding="utf-8")) if name != clock]
    options = [f"set_global_assignment -name {option}" for option in (() if dsp else _NO_DSP)]
    options += [f"set_instance_assignment -name VIRTUAL_PIN ON -to {name}" for name in ports]
    sources = "\n".join(f"set_global_assignment -name VERILOG_FILE {name}" for name in files)
    script = _SCRIPT.format(part=device.part, top=top, options="\n".join(options), sources=sources)
    (folder / "synth.tcl").write_text(script, encoding="utf-8")
    (folder / "path.tcl").write_text(_PATH, encoding="utf-8")
    arguments = ["-t", "synth.tcl"]
    return route_by(
        "quartus", PROGRAM, arguments, folder, seconds, (UTILIZATION, TIMING), lambda u, t: read_reports(u, t, period)
    )


def read_reports(utilization: str, timing: str, period: float) -> Routed:
    """Reads the counts, the clock from slack and period, and both ends of the slowest path. Raises ValueError.

    period: of the target clock, in ns.
    """
    counts = [_count(utilization, rows) for rows in _ROWS]
    fmax, path = slowest(timing, period, _instance)
    return Routed((counts[0], counts[1], counts[2], counts[3]), fmax, path)


def _count(report: str, rows: Sequence[tuple[str, float]]) -> int:
    """The count in the first of these rows that the report has. Raises ValueError if it has none."""
    for name, units in rows:
        row = re.search(rf"^;\s*{re.escape(name)}\s*;\s*([\d,]+)", report, re.MULTILINE)
        if row:
            return -int(-int(row[1].replace(",", "")) * units // 1)
    raise ValueError(f"the fitter's report has no row {' or '.join(name for name, _ in rows)}")


def _instance(node: str) -> str:
    """The top-level instance that contains a node, "" for none. A node is module:instance|module:instance|register."""
    first, _, inner_path = node.partition("|")
    return first.rpartition(":")[2] if inner_path else ""
