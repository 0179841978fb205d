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
        """Adds a memory of that name; what is built around block memories has a name of its own."""
        about = f"{name} block" if cost.bram and cost.lut else name
        self.lut[about] = self.lut.get(about, 0.0) + cost.lut
        if cost.ff:
            self.ff[about] = self.ff.get(about, 0.0) + cost.ff
        self.bram += cost.bram
