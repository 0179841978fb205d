"""The parts of a unit, with their expected resources before factors are fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.dataflow.resources import Cost


@dataclass
class Parts:
    """Expected LUTs and registers of a unit by the name of the part, from its structure.

    unit: the name under which unit_factors.json has the factors of these numbers. dsp, bram: counted.
    """

    unit: str
    lut: dict[str, float] = field(default_factory=dict)
    ff: dict[str, float] = field(default_factory=dict)
    dsp: int = 0
    bram: int = 0

    def hold(self, name: str, cost: Cost) -> None:
        """Adds a memory with that name. Logic around block RAM is a part of its own."""
        part = f"{name} block" if cost.bram and cost.lut else name
        self.lut[part] = self.lut.get(part, 0.0) + cost.lut
        if cost.ff:
            self.ff[part] = self.ff.get(part, 0.0) + cost.ff
        self.bram += cost.bram
