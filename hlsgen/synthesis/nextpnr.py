"""Command lines of nextpnr and of the bitstream packers, and a reader of nextpnr's report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlsgen.devices import Device
from hlsgen.synthesis.yosys import NETLIST

#: Files that nextpnr writes: its report, and the placed and routed design, from which the bitstream is packed.
REPORT, ROUTED = "report.json", "routed"
#: File that nextpnr reads: the pins of the harness.
CONSTRAINTS = "pins.cst"
#: Suffix of a bitstream, by the program that packs it.
SUFFIX = {"ecppack": "bit", "icepack": "bin", "gowin_pack": "fs", "gmpack": "bit"}
#: Names of LUTs, registers, block RAMs and DSP blocks in the report. The counts of all names of a kind are added.
_USED = {
    "ecp5": (("TRELLIS_COMB",), ("TRELLIS_FF",), ("DP16KD",), ("MULT18X18D",)),
    "ice40": (("ICESTORM_LC",), (), ("ICESTORM_RAM",), ("ICESTORM_DSP",)),
    "machxo": (("TRELLIS_COMB",), ("TRELLIS_FF",), ("DP8KC",), ()),
    "gatemate": (("CPE_LT",), ("CPE_FF",), ("RAM_HALF",), ()),
    "gowin": (("LUT4", "ALU"), ("DFF",), ("BSRAM",), ()),
}


@dataclass(frozen=True)
class Segment:
    """A piece of a path within one instance of the top level; delays in nanoseconds.

    delay_ns: of its cells and of the wires that leave them. routing_ns: of these wires alone.
    """

    instance: str
    delay_ns: float
    routing_ns: float


@dataclass(frozen=True)
class Routed:
    """Contents of a report: counts, clock frequency in MHz, slowest path.

    used: counts of LUTs, registers, block RAMs and DSP blocks, or None. fmax_mhz is None if no path between registers
    was reported.
    """

    used: tuple[int | None, int | None, int | None, int | None]
    fmax_mhz: float | None
    path: tuple[Segment, ...]


def arguments(device: Device, clock_mhz: float, seed: int, *, bitstream: bool) -> list[str]:
    """Arguments of nextpnr for the device's family, run in the folder of NETLIST. The top level is the harness."""
    options = [*device.place, "--json", NETLIST, "--report", REPORT, "--freq", f"{clock_mhz:g}", "--seed", str(seed)]
    options.append("--timing-allow-fail")
    match device.family.name:
        case "ecp5":
            options += ["--lpf-allow-unconstrained"]
            options += ["--textcfg", ROUTED] if bitstream else []
        case "ice40":
            options += ["--pcf-allow-unconstrained"]
            options += ["--asc", ROUTED] if bitstream else []
        case "machxo":
            options += ["--lpf-allow-unconstrained", "--textcfg", ROUTED]
        case "gatemate":
            options += ["--vopt", "allow-unconstrained", "--vopt", f"out={ROUTED}"]
        case "gowin":
            options += ["--write", ROUTED, "--vopt", f"cst={CONSTRAINTS}"]
    return options


def constraints(device: Device, ports: Sequence[str]) -> str:
    """Pin locations of the harness ports as Gowin's tools write them; empty if nextpnr chooses the pins."""
    return "".join(f'IO_LOC "{port}" {pin};\n' for port, pin in zip(ports, device.pins, strict=False))


def pack_arguments(device: Device, bitstream: str) -> list[str]:
    """Arguments of the program that packs nextpnr's routed design into a bitstream."""
    match device.family.name:
        case "ecp5":
            return ["--compress", "--input", ROUTED, "--bit", bitstream]
        case "ice40" | "gatemate":
            return [ROUTED, bitstream]
        case _:
            return [*device.pack, "-o", bitstream, ROUTED]


def read_report(text: str, family: str) -> Routed:
    """Reads the file that nextpnr's --report writes. Raises ValueError if the text is no such report."""
    try:
        report = json.loads(text)
        used: Mapping[str, Any] = report["utilization"]
        counts = tuple(
            sum(int(used[name]["used"]) for name in names if name in used) if names else None for names in _USED[family]
        )
        clocks_mhz = [float(clock["achieved"]) for clock in report["fmax"].values()]
        paths = [_segments(path["path"]) for path in report["critical_paths"] if _within_one_clock(path)]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a report of nextpnr: {error!r}") from None
    lut, ff, bram, dsp = counts
    slowest = max(paths, key=lambda path: sum(segment.delay_ns for segment in path), default=())
    return Routed((lut, ff, bram, dsp), min(clocks_mhz) if clocks_mhz else None, slowest)


def _within_one_clock(path: Mapping[str, Any]) -> bool:
    return str(path["from"]) == str(path["to"]) and "async" not in str(path["from"])


def _segments(path: list[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """The steps of a path, merged by instance. A wire counts for the instance of the cell that drives it."""
    segments: list[Segment] = []
    for step in path:
        routing = step["type"] == "routing"
        cell, delay = str(step["from"]["cell"]), float(step["delay"])
        # Cells that the placer inserted count for the instance before them.
        instance = segments[-1].instance if segments and cell.startswith("$") else instance_of(cell)
        if not math.isfinite(delay):
            raise ValueError("a delay is not a finite number")
        if not segments or segments[-1].instance != instance:
            segments.append(Segment(instance, 0.0, 0.0))
        previous = segments[-1]
        segments[-1] = Segment(instance, previous.delay_ns + delay, previous.routing_ns + (delay if routing else 0.0))
    return tuple(Segment(s.instance, round(s.delay_ns, 3), round(s.routing_ns, 3)) for s in segments)


def instance_of(cell: str) -> str:
    """The top-level instance of the core that contains a cell: the first part of its path. "" if it is in none."""
    path = cell.removeprefix("core.")
    return path.split(".")[0] if "." in path else ""
