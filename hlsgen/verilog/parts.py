"""The parts of a unit, with what they are expected to take before factors are fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.dataflow.resources import Cost


@dataclass
class Parts:
    """What a unit is made of: by name, tables and registers that its structure lets expect.

    unit: the name under which unit_factors.json has what these are multiplied by. dsp, bram: counted.
    """

    unit: str
    lut: dict[str, float] = field(default_factory=dict)
    ff: dict[str, float] = field(default_factory=dict)
    dsp: int = 0
    bram: int = 0

    def hold(self, name: str, cost: Cost) -> None:
        """Adds a memory of that name."""
        self.lut[name] = self.lut.get(name, 0.0) + cost.lut
        self.bram += cost.bram
