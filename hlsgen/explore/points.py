"""A point of an exploration: a network, given by its options, with its cycles and resources, estimated and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlsgen.dataflow.resources import Cost
from hlsgen.devices import CLOCK_MHZ, Device, resource_names
from hlsgen.driver.declaration import declared
from hlsgen.driver.fit import SHARE, counting_family, in_kinds
from hlsgen.driver.options import Options

#: Options that an exploration varies, by the names of their fields, in the order in which they are written.
VARIED = ("target_cycles", "lanes", "prefer", "weights")
#: Options that limit the size of a network: an exploration does not accept them, and has its own device argument.
ANSWERED = ("device", "max_lut", "max_dsp", "max_bram")
#: Kinds of resources, and their names if no device is given.
KINDS = {"lut": "LUT6", "ff": "FF", "bram": "BRAM18", "dsp": "DSP48"}
#: Kinds by which points are compared if no device is given: registers follow from the others.
COMPARED = ("lut", "bram", "dsp")


@dataclass(frozen=True)
class Place:
    """The device for the networks, and the clock of their rates.

    device None: no device; resources are counted as on Xilinx 7 series.
    """

    device: Device | None = None
    clock_mhz: float = CLOCK_MHZ

    @property
    def kinds(self) -> dict[str, str]:
        """Names of the kinds of resources."""
        return KINDS if self.device is None else {**KINDS, **resource_names(self.device)}

    @property
    def family(self) -> str:
        """The device family for cost estimates."""
        return counting_family(self.device)

    def counts(self, cost: Cost) -> dict[str, int]:
        """A cost estimate of that family in these kinds."""
        return in_kinds(cost, self.device)

    def shares(self, counts: Mapping[str, int]) -> dict[str, float]:
        """For each kind, the share of the device: 1 is all of it. Empty if there is no device."""
        if self.device is None:
            return {}
        available = {kind: getattr(self.device, kind) for kind in KINDS}
        return {
            kind: counts[kind] / available[kind] if available[kind] else float(counts[kind] > 0) * 1e9 for kind in KINDS
        }


@dataclass(frozen=True)
class Point:
    """A network. All numbers are estimates, except the cycles, which are exact if `exact`, and `measured`.

    - options: make the network, by `hlsgen.build(model, output, point.options)`.
    - interval: cycles between frames. latency: from the first to the last beat of a frame. If not `exact`, the interval
      is a lower bound, given by the slowest unit, and the latency an estimate.
    - lut, ff, bram, dsp: counts in the kinds of `place`.
    - front: no other point is as fast with no more resources.
    - measured: the result of `hlsgen synth`, as it prints it with --json, or None if it did not run.
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
        """At the clock of its place, which is not measured."""
        return self.place.clock_mhz * 1e6 / self.interval

    @property
    def share(self) -> float | None:
        """The largest share of the device over all kinds, or None if there is no device."""
        return max(self.place.shares(self.counts).values(), default=None)

    @property
    def scarcest(self) -> str:
        """The kind with the largest share, "" if there is no device."""
        shares = self.place.shares(self.counts)
        return max(shares, key=lambda kind: shares[kind], default="")

    @property
    def fits(self) -> bool:
        """True if it uses at most 80 % of the device, or if there is no device."""
        return self.share is None or self.share <= SHARE

    @property
    def flags(self) -> str:
        """The flags of `hlsgen build` that distinguish it from the other points."""
        return " ".join(
            f"{field.declaration.flag} {getattr(self.options, field.name)}"
            for field in declared(Options)
            if field.name in VARIED and getattr(self.options, field.name) != field.default
        )

    def as_dict(self) -> dict[str, Any]:
        """The output of --json."""
        device, estimated = self.place.device, {} if self.exact else {"estimated": True}
        return {
            "options": changed_options(self.options),
            "flags": self.flags,
            "interval": self.interval,
            "latency": self.latency,
            **estimated,
            "frames_per_second": self.frames_per_second,
            "estimate": self.counts,
            "share": self.share,
            "device": None if device is None else device.name,
            "clock_mhz": self.place.clock_mhz,
            "front": self.front,
            "measured": None if self.measured is None else dict(self.measured),
        }


def order(point: Point) -> tuple[Any, ...]:
    """Sort key of points: interval, resources, then defaults first."""
    varied = [getattr(point.options, name) for name in VARIED]
    return (point.interval, point.lut, point.bram, point.dsp, point.ff, *(str(value) for value in reversed(varied)))


def changed_options(options: Options) -> dict[str, Any]:
    """The options that differ from their defaults."""
    return {
        field.name: getattr(options, field.name)
        for field in declared(Options)
        if getattr(options, field.name) != field.default
    }
