"""FPGAs by name: what each one has, the clock that designs reach there, and what its tools call it (devices.yaml)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from hlsgen.diagnostics import fail

#: Clock of rates that are printed where no device is named, in MHz.
CLOCK_MHZ = 200.0


@dataclass(frozen=True)
class Family:
    """What devices of a family have in common.

    plain_mhz: a clock that designs reach which are not pipelined for one, 0: that of the device. bram_mhz: one from which a
    register right behind a block memory is too far away.
    lut, bram, dsp: names of tables, block memories and multiplier blocks. lut_inputs, bram_bits: their sizes; dsp_bits: of
    the wider factor of a block that gains from a product with room for two, else 1.
    counted_as: the family whose kinds are estimated; lut_per_counted: tables for one of these;
    lut_per_ff: cells that a register takes beside those of the tables, on average; counted_bits: bits of its
    block memories. synthesis: pass of Yosys. place, pack: programs, "" for none.
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
    """An FPGA: counts of tables, registers, block memories and multiplier blocks of its family's kinds.

    clock_mhz: what designs reach there; measured: by us, else assumed. sheet: the document that has the counts.
    synthesis, place, pack: arguments of the programs of its family. pins: of clk, si and so of the harness, if it must have
    them.
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
        """A clock that designs reach here which are not pipelined for one."""
        return self.family.plain_mhz or self.clock_mhz

    def as_dict(self) -> dict[str, Any]:
        """What `hlsgen devices --json` prints."""
        family = self.family
        return {
            "device": self.name, "family": family.name, "vendor": family.vendor, "part": self.part,
            "lut": {"kind": family.lut, "inputs": family.lut_inputs, "count": self.lut}, "ff": self.ff,
            "bram": {"kind": family.bram, "bits": family.bram_bits, "count": self.bram},
            "dsp": {"kind": family.dsp, "count": self.dsp},
            "clock_mhz": self.clock_mhz, "clock": "measured" if self.measured else "assumed",
            "placed_by": family.place or None, "sheet": self.sheet,
        }  # fmt: skip


@lru_cache(maxsize=1)
def devices() -> dict[str, Device]:
    """All devices by name, in the order of devices.yaml."""
    data: Any = yaml.safe_load(resources.files("hlsgen").joinpath("devices.yaml").read_text(encoding="utf-8"))
    families = {
        name: Family(
            name, of["vendor"], of["lut"]["kind"], of["lut"]["inputs"], of["bram"]["kind"], of["bram"]["bits"],
            float(of["bram"].get("mhz", math.inf)), of["dsp"]["kind"], of["dsp"].get("bits", 1), of["estimate"]["as"], of["estimate"].get("lut", 1.0), of["estimate"].get("ff", 0.0),
            data["families"][of["estimate"]["as"]]["bram"]["bits"],
            of["synthesis"], of.get("place", ""), of.get("pack", ""), float(of.get("plain_mhz", 0)),
        )
        for name, of in data["families"].items()
    }  # fmt: skip
    return {
        name: Device(
            name, families[of["family"]], of["part"], of["lut"], of["ff"], of["bram"], of["dsp"],
            float(of["clock_mhz"]), of["clock"] == "measured", of["sheet"], of.get("synthesis", ""),
            tuple(of.get("place", ())), tuple(of.get("pack", ())), tuple(of.get("pins", ())),
        )
        for name, of in data["devices"].items()
    }  # fmt: skip


def device(name: str) -> Device:
    """The device of that name. Raises HG040."""
    if name not in devices():
        raise fail("HG040", "--device", f"{name!r} is not known.", f"Supported: {', '.join(devices())}.")
    return devices()[name]
