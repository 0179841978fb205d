"""The measurements of a synthesis, beside the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hlsgen.devices import Device
from hlsgen.diagnostics import Diagnostic


@dataclass(frozen=True)
class PathPart:
    """A piece of the slowest path.

    layer, module: the layer and library module that contain it, "" for ports and connecting logic. delay_ns: its whole
    delay. routing_ns: the part of that delay in wires.
    """

    layer: str
    module: str
    instance: str
    delay_ns: float
    routing_ns: float


@dataclass(frozen=True)
class Synthesis:
    """Resource counts in the kinds of the device (as `hlsgen devices` names them), measured and estimated.

    - placed: it was placed and routed. If not, the counts come from the netlist and fmax_mhz is None.
    - interval: cycles between frames.
    - files_sha256: hashes of the synthesized files.
    - why: reason for not placing, if it was not placed.
    - bitstream: path of the bitstream, if one was made.
    """

    device: Device
    lut: int
    ff: int
    bram: int
    dsp: int
    estimate: Mapping[str, int]
    interval: int
    placed: bool
    fmax_mhz: float | None
    critical_path: tuple[PathPart, ...]
    seconds: float
    tool_versions: Mapping[str, str]
    files_sha256: Mapping[str, str]
    options: Mapping[str, Any]
    why: str = ""
    bitstream: str | None = None

    @property
    def problems(self) -> list[Diagnostic]:
        """HG070 for each kind of resource that the device has too few of."""
        return over(self.device, {"lut": self.lut, "ff": self.ff, "bram": self.bram, "dsp": self.dsp})

    @property
    def fits(self) -> bool:
        """True if the device has enough of every kind of resource."""
        return not self.problems

    @property
    def frames_per_second(self) -> float | None:
        """The frame rate at the measured frequency; None without one."""
        return None if self.fmax_mhz is None else self.fmax_mhz * 1e6 / self.interval

    def as_dict(self) -> dict[str, Any]:
        """The record that is saved, and printed with --json."""
        device = self.device
        return {
            "device": device.name,
            "family": device.family.name,
            "part": device.part,
            "kinds": {"lut": device.family.lut, "bram": device.family.bram, "dsp": device.family.dsp},
            "available": {"lut": device.lut, "ff": device.ff, "bram": device.bram, "dsp": device.dsp},
            "lut": self.lut,
            "ff": self.ff,
            "bram": self.bram,
            "dsp": self.dsp,
            "fits": self.fits,
            "placed": self.placed,
            "why_not_placed": self.why or None,
            "fmax_mhz": self.fmax_mhz,
            "interval": self.interval,
            "frames_per_second": self.frames_per_second,
            "critical_path": [asdict(part) for part in self.critical_path],
            "estimate": dict(self.estimate),
            "bitstream": self.bitstream,
            "seconds": self.seconds,
            "options": dict(self.options),
            "tool_versions": dict(self.tool_versions),
            "files_sha256": dict(self.files_sha256),
        }


def over(device: Device, counts: Mapping[str, int]) -> list[Diagnostic]:
    """HG070 for each count that exceeds the device."""
    names = {"lut": device.family.lut, "ff": "registers", "bram": device.family.bram, "dsp": device.family.dsp}
    hint = "Choose a larger device, build with --device for this one, or lower the rate."
    return [
        Diagnostic("HG070", device.name, f"{count} {names[kind]} are needed, it has {getattr(device, kind)}.", hint)
        for kind, count in counts.items()
        if count > getattr(device, kind)
    ]
