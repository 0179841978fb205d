"""The command lines of nextpnr and of what makes bitstreams, and what nextpnr's report says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlsgen.devices import Device
from hlsgen.synthesis.yosys import NETLIST

#: What nextpnr writes: its report, and the placed and routed design, from which the bitstream is packed.
REPORT, ROUTED = "report.json", "routed"
#: What nextpnr reads: the pins of the harness.
CONSTRAINTS = "pins.cst"
#: Suffix of a bitstream, by the program that packs it.
SUFFIX = {"ecppack": "bit", "icepack": "bin", "gowin_pack": "fs"}
#: Names of tables, registers, block memories and multiplier blocks in the report: sums of the first that are there.
_USED = {
    "ecp5": (("TRELLIS_COMB",), ("TRELLIS_FF",), ("DP16KD",), ("MULT18X18D",)),
    "ice40": (("ICESTORM_LC",), (), ("ICESTORM_RAM",), ("ICESTORM_DSP",)),
    "gowin": (("LUT4", "ALU"), ("DFF",), ("BSRAM",), ()),
}


@dataclass(frozen=True)
class Segment:
    """A piece of a path in one instance of the top level: its delay with that of the wires that leave its cells, and
    that of these wires alone, in nanoseconds."""

    instance: str
    delay_ns: float
    routing_ns: float


@dataclass(frozen=True)
class Routed:
    """What a report says: counts (None: not said), frequency in MHz (None: no path between registers), slowest path."""

    used: tuple[int | None, int | None, int | None, int | None]
    fmax_mhz: float | None
    path: tuple[Segment, ...]


def arguments(device: Device, clock_mhz: float, seed: int, *, bitstream: bool, pins: bool) -> list[str]:
    """Of the nextpnr of the device's family, in the folder of NETLIST. `pins`: the top level has few, they are placed."""
    found = [*device.place, "--json", NETLIST, "--report", REPORT, "--freq", f"{clock_mhz:g}", "--seed", str(seed)]
    found.append("--timing-allow-fail")
    match device.family.name:
        case "ecp5":
            # Without pins only router2 knows a clock net: router1 takes it through the fabric.
            found += ["--lpf-allow-unconstrained"] if pins else ["--out-of-context", "--router", "router2"]
            found += ["--textcfg", ROUTED] if bitstream else []
        case "ice40":
            found += ["--pcf-allow-unconstrained"]
            found += ["--asc", ROUTED] if bitstream else []
        case "gowin":
            found += ["--write", ROUTED, "--vopt", f"cst={CONSTRAINTS}"]
    return found


def constraints(device: Device, ports: Sequence[str]) -> str:
    """Places of the ports of the harness, as Gowin's tools write them; empty where nextpnr chooses."""
    return "".join(f'IO_LOC "{port}" {pin};\n' for port, pin in zip(ports, device.pins, strict=False))


def places_without_pins(device: Device) -> bool:
    """Whether nextpnr places a module with any number of ports as it is."""
    return device.family.name == "ecp5"


def pack_arguments(device: Device, bitstream: str) -> list[str]:
    """Of the program that makes a bitstream of what nextpnr has routed."""
    match device.family.name:
        case "ecp5":
            return ["--compress", "--input", ROUTED, "--bit", bitstream]
        case "ice40":
            return [ROUTED, bitstream]
        case _:
            return [*device.pack, "-o", bitstream, ROUTED]


def read_report(text: str, family: str) -> Routed:
    """Reads what --report wrote. Raises ValueError if it is something else."""
    try:
        data = json.loads(text)
        used: Mapping[str, Any] = data["utilization"]
        counts = tuple(
            sum(int(used[name]["used"]) for name in names if name in used) if names else None for names in _USED[family]
        )
        clocks = [float(clock["achieved"]) for clock in data["fmax"].values()]
        paths = [_segments(path["path"]) for path in data["critical_paths"] if _in_one_clock(path)]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no report of nextpnr: {error!r}") from None
    lut, ff, bram, dsp = counts
    slowest = max(paths, key=lambda path: sum(segment.delay_ns for segment in path), default=())
    return Routed((lut, ff, bram, dsp), min(clocks) if clocks else None, slowest)


def _in_one_clock(path: Mapping[str, Any]) -> bool:
    return str(path["from"]) == str(path["to"]) and "async" not in str(path["from"])


def _segments(path: list[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """Steps of a path by instance: a wire counts to the cell that drives it."""
    found: list[Segment] = []
    for step in path:
        routing = step["type"] == "routing"
        cell, delay = str(step["from"]["cell"]), float(step["delay"])
        # Cells that the placer made stand between those of an instance.
        instance = found[-1].instance if found and cell.startswith("$") else instance_of(cell)
        if not math.isfinite(delay):
            raise ValueError("a delay that is no number")
        if not found or found[-1].instance != instance:
            found.append(Segment(instance, 0.0, 0.0))
        last = found[-1]
        found[-1] = Segment(instance, last.delay_ns + delay, last.routing_ns + (delay if routing else 0.0))
    return tuple(Segment(s.instance, round(s.delay_ns, 3), round(s.routing_ns, 3)) for s in found)


def instance_of(cell: str) -> str:
    """The instance of the core's top level that a cell is in, "" for none: the first part of its path in the core."""
    path = cell.removeprefix("core.")
    return path.split(".")[0] if "." in path else ""
