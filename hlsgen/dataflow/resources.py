"""What a network costs, and what it may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def front(parts: Sequence[Sequence[tuple[int, float]]]) -> dict[int, tuple[float, tuple[int, ...]]]:
    """By blocks in all, fewest first: the least price of all parts and the number of what each is; no price is as high as one of
    fewer blocks. parts: (blocks, price) of all that each can be. Exact, part by part."""
    ways: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for kinds in parts:
        found: dict[int, tuple[float, tuple[int, ...]]] = {}
        for taken, (sum_, picks) in ways.items():
            for n, (blocks, price) in enumerate(kinds):
                way = sum_ + price, (*picks, n)
                found[taken + blocks] = min(found.get(taken + blocks, way), way)
        ways, least = {}, math.inf
        for taken in sorted(found):
            if found[taken][0] < least:
                ways[taken], least = found[taken], found[taken][0]
    return ways


@dataclass(frozen=True)
class Budget:
    """What a network may cost at most; None: anything.

    `lut_per_ff`: LUT that a register takes the place of, on average, where each cell has one of both behind the other.
    """

    lut: int | None = None
    dsp: int | None = None
    bram: int | None = None
    ff: int | None = None
    lut_per_ff: float = 0.0

    @property
    def limits(self) -> tuple[int | None, int | None, int | None, int | None]:
        """LUT, DSP blocks, block memories, registers."""
        return self.lut, self.dsp, self.bram, self.ff

    @property
    def given(self) -> bool:
        return any(limit is not None for limit in self.limits)

    def excess(self, cost: Cost) -> float:
        """Greatest ratio of cost to budget; 1 or less if it fits. None of a kind that may not be used is 0."""
        taken = cost.lut + self.lut_per_ff * cost.ff, cost.dsp, cost.bram, cost.ff
        pairs = zip(taken, self.limits, strict=True)
        ratios = (have / most if most else have and 1 + have for have, most in pairs if most is not None)
        return max(ratios, default=0.0)
