"""FPGAs by name: resources, default clock, and arguments of their tools, from devices.yaml."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from hlsgen.diagnostics import fail

#: Clock for printed rates without a device, in MHz.
CLOCK_MHZ = 200.0


@dataclass(frozen=True)
class Family:
    """Properties of all devices of a family.

    plain_mhz: clock of designs that are not pipelined for a target clock; 0: the clock of the device. bram_mhz: above
    this clock, one output register after a block RAM is too slow. lut, bram, dsp: names of LUT, block RAM and DSP
    blocks. lut_inputs, bram_bits: their sizes. dsp_bits: bits of the wider operand of a DSP block that can hold two
    products, else 1. counted_as: family in whose resources costs are estimated. lut_per_counted: LUT of this family for
    one LUT of that one. lut_per_ff: average number of cells that a register adds to those of the LUT. counted_bits:
    bits of a block RAM there. synthesis: pass of Yosys. place, pack: programs, "" for none.
    """

    name: str
    vendor: str
    lut: str
    lut_inputs: int
    bram: str
    bram_bits: int
    bram_mhz: float
    dsp: str
    dsp_bits: int
    counted_as: str
    lut_per_counted: float
    lut_per_ff: float
    counted_bits: int
    synthesis: str
    place: str
    pack: str
    plain_mhz: float


@dataclass(frozen=True)
class Device:
    """An FPGA with the numbers of its LUT, registers, block RAM and DSP blocks.

    clock_mhz: clock that designs reach; measured: true if the project has measured it. sheet: source of the numbers.
    synthesis, place, pack: arguments of the family's programs. pins: clk, si and so of the harness, if
    nextpnr cannot choose them.
    """

    name: str
    family: Family
    part: str
    lut: int
    ff: int
    bram: int
    dsp: int
    clock_mhz: float
    measured: bool
    sheet: str
    synthesis: str
    place: tuple[str, ...]
    pack: tuple[str, ...]
    pins: tuple[str, ...]

    @property
    def plain_mhz(self) -> float:
        """Clock of designs that are not pipelined for a target clock."""
        return self.family.plain_mhz or self.clock_mhz

    def as_dict(self) -> dict[str, Any]:
        """The device in the form of `hlsgen devices --json`."""
        family = self.family
        return {
            "device": self.name,
            "family": family.name,
            "vendor": family.vendor,
            "part": self.part,
            "lut": {"kind": family.lut, "inputs": family.lut_inputs, "count": self.lut},
            "ff": self.ff,
            "bram": {"kind": family.bram, "bits": family.bram_bits, "count": self.bram},
            "dsp": {"kind": family.dsp, "count": self.dsp},
            "clock_mhz": self.clock_mhz,
            "clock": "measured" if self.measured else "assumed",
            "placed_by": family.place or None,
            "sheet": self.sheet,
        }


@lru_cache(maxsize=1)
def devices() -> dict[str, Device]:
    """All devices by name, in the order of devices.yaml."""
    data: Any = yaml.safe_load(resources.files("hlsgen").joinpath("devices.yaml").read_text(encoding="utf-8"))
    families = {
        name: Family(
            name,
            entry["vendor"],
            entry["lut"]["kind"],
            entry["lut"]["inputs"],
            entry["bram"]["kind"],
            entry["bram"]["bits"],
            float(entry["bram"].get("mhz", math.inf)),
            entry["dsp"]["kind"],
            entry["dsp"].get("bits", 1),
            entry["estimate"]["as"],
            entry["estimate"].get("lut", 1.0),
            entry["estimate"].get("ff", 0.0),
            data["families"][entry["estimate"]["as"]]["bram"]["bits"],
            entry["synthesis"],
            entry.get("place", ""),
            entry.get("pack", ""),
            float(entry.get("plain_mhz", 0)),
        )
        for name, entry in data["families"].items()
    }
    return {
        name: Device(
            name,
            families[entry["family"]],
            entry["part"],
            entry["lut"],
            entry["ff"],
            entry["bram"],
            entry["dsp"],
            float(entry["clock_mhz"]),
            entry["clock"] == "measured",
            entry["sheet"],
            entry.get("synthesis", ""),
            tuple(entry.get("place", ())),
            tuple(entry.get("pack", ())),
            tuple(entry.get("pins", ())),
        )
        for name, entry in data["devices"].items()
    }


def resource_names(chosen: Device | None) -> dict[str, str]:
    """Names of the resources of a device, or of Xilinx 7 series without one."""
    if chosen is None:
        return {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram": "BRAM18"}
    family = chosen.family
    return {"lut": family.lut, "ff": "FF", "dsp": family.dsp, "bram": family.bram}


def device(name: str) -> Device:
    """The device with this name. Raises HG040."""
    if name not in devices():
        raise fail("HG040", "--device", f"{name!r} is not known.", f"Supported: {', '.join(devices())}.")
    return devices()[name]
