"""What a network costs, and what it may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """LUT sites, DSP blocks, block memories of 18 Kbit, registers."""

    lut: float = 0.0
    dsp: int = 0
    bram: int = 0
    ff: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.lut + other.lut, self.dsp + other.dsp, self.bram + other.bram, self.ff + other.ff)

    def as_dict(self) -> dict[str, int]:
        """In whole numbers, as manifests and summaries have it."""
        return {"lut": round(self.lut), "ff": round(self.ff), "bram18": self.bram, "dsp": self.dsp}


@dataclass(frozen=True)
class Budget:
    """What a network may cost at most; None: anything."""

    lut: int | None = None
    dsp: int | None = None
    bram: int | None = None
    ff: int | None = None

    @property
    def given(self) -> bool:
        return self != Budget()

    def excess(self, cost: Cost) -> float:
        """Greatest ratio of cost to budget; 1 or less if it fits."""
        pairs = (cost.lut, self.lut), (cost.dsp, self.dsp), (cost.bram, self.bram), (cost.ff, self.ff)
        ratios = (have / most if most else 1 + have for have, most in pairs if most is not None)
        return max(ratios, default=0.0)
