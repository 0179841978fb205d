"""A point of an exploration: a network by its options, with its cycles and what it takes, estimated and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlsgen.dataflow.resources import Cost
from hlsgen.devices import CLOCK_MHZ, Device
from hlsgen.driver.declaration import declared
from hlsgen.driver.fit import SHARE, in_kinds
from hlsgen.driver.options import Options

#: Options that an exploration varies, by the names of their fields, in the order in which they are written.
VARIED = ("target_cycles", "lanes", "prefer", "weights")
#: Options that say how large a network may be: an exploration has no place for them, and a device of its own.
ANSWERED = ("device", "max_lut", "max_dsp", "max_bram")
#: Kinds of resources, and what they are where no device is named.
KINDS = {"lut": "LUT6", "ff": "FF", "bram": "BRAM18", "dsp": "DSP48"}
#: Those that points are compared by where no device is named: registers come with the rest.
COMPARED = ("lut", "bram", "dsp")


@dataclass(frozen=True)
class Place:
    """Where networks are to fit, and the clock of their rates. device None: anywhere, in the kinds of Xilinx 7 series."""

    device: Device | None = None
    clock_mhz: float = CLOCK_MHZ

    @property
    def kinds(self) -> dict[str, str]:
        """Names of the kinds of resources."""
        if self.device is None:
            return KINDS
        family = self.device.family
        return {**KINDS, "lut": family.lut, "bram": family.bram, "dsp": family.dsp}

    @property
    def family(self) -> str:
        """The family in whose kinds costs are to be estimated."""
        return "xc7" if self.device is None else self.device.family.counted_as

    def counts(self, cost: Cost) -> dict[str, int]:
        """An estimate of that family in these kinds."""
        if self.device is None:
            return {"lut": round(cost.lut), "ff": round(cost.ff), "bram": cost.bram, "dsp": cost.dsp}
        return {**in_kinds(cost, self.device), "ff": round(cost.ff)}

    def shares(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Of each kind, the part of the device: 1 is all of it. Without a device there is none."""
        if self.device is None:
            return {}
        there = {kind: getattr(self.device, kind) for kind in KINDS}
        return {kind: counts[kind] / there[kind] if there[kind] else float(counts[kind] > 0) * 1e9 for kind in KINDS}


@dataclass(frozen=True)
class Point:
    """A network. All numbers are estimates, but for the cycles, which are exact if `exact`, and what is in `measured`.

    options: makes it, by `hlsgen.build(model, output, point.options)`. interval: cycles between frames; latency: from the
    first beat to the last one of a frame; not `exact`: the interval is that of the slowest unit, the latency an estimate. lut, ff, bram, dsp: counts in the kinds of `place`.
    front: no other point is as fast and takes no more. measured: what `hlsgen synth` has found, as it prints it with
    --json; None if it was not asked.
    """

    options: Options
    place: Place
    interval: int
    latency: int
    lut: int
    ff: int
    bram: int
    dsp: int
    exact: bool = True
    front: bool = False
    measured: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: getattr(self, kind) for kind in KINDS}

    @property
    def frames_per_second(self) -> float:
        """At the clock of its place, which nobody has measured."""
        return self.place.clock_mhz * 1e6 / self.interval

    @property
    def share(self) -> float | None:
        """The largest part of the device that it takes of a kind; None if there is no device."""
        return max(self.place.shares(self.counts).values(), default=None)

    @property
    def scarcest(self) -> str:
        """The kind of which it takes the largest part, "" if there is no device."""
        shares = self.place.shares(self.counts)
        return max(shares, key=lambda kind: shares[kind], default="")

    @property
    def fits(self) -> bool:
        """Whether it takes at most 80 % of the device; True where there is none."""
        return self.share is None or self.share <= SHARE

    @property
    def flags(self) -> str:
        """What of `hlsgen build` makes it different from the other points."""
        return " ".join(
            f"{one.declaration.flag} {getattr(self.options, one.name)}"
            for one in declared(Options)
            if one.name in VARIED and getattr(self.options, one.name) != one.default
        )

    def as_dict(self) -> dict[str, Any]:
        """What --json prints."""
        device, estimated = self.place.device, {} if self.exact else {"estimated": True}
        return {
            "options": said(self.options), "flags": self.flags, "interval": self.interval, "latency": self.latency, **estimated,
            "frames_per_second": self.frames_per_second, "estimate": self.counts, "share": self.share,
            "device": None if device is None else device.name, "clock_mhz": self.place.clock_mhz,
            "front": self.front, "measured": None if self.measured is None else dict(self.measured),
        }  # fmt: skip


def order(point: Point) -> tuple[Any, ...]:
    """Points are told by their interval, then by what they take, then by what is the default."""
    varied = [getattr(point.options, name) for name in VARIED]
    return (point.interval, point.lut, point.bram, point.dsp, point.ff, *(str(value) for value in reversed(varied)))


def said(options: Options) -> dict[str, Any]:
    """The options that are not as by default."""
    return {
        one.name: getattr(options, one.name) for one in declared(Options) if getattr(options, one.name) != one.default
    }
