"""The cost of a network, and its budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """LUTs, DSP blocks, block RAMs of 18 Kbit, registers."""

    lut: float = 0.0
    dsp: int = 0
    bram: int = 0
    ff: float = 0.0

    def __add__(self, cost: Cost) -> Cost:
        return Cost(self.lut + cost.lut, self.dsp + cost.dsp, self.bram + cost.bram, self.ff + cost.ff)


def front(parts: Sequence[Sequence[tuple[int, float]]]) -> dict[int, tuple[float, tuple[int, ...]]]:
    """The Pareto front of total blocks and total price, by total blocks, fewest first.

    An entry is the lowest total price and the index of the chosen option of each part. An entry with more blocks has a
    lower price. `parts`: the (blocks, price) options of each part. Exact: extends the front part by part.
    """
    pareto: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for options in parts:
        cheapest: dict[int, tuple[float, tuple[int, ...]]] = {}
        for used_blocks, (total, picks) in pareto.items():
            for n, (blocks, price) in enumerate(options):
                entry = total + price, (*picks, n)
                cheapest[used_blocks + blocks] = min(cheapest.get(used_blocks + blocks, entry), entry)
        pareto, lowest_price = {}, math.inf
        for used_blocks in sorted(cheapest):
            if cheapest[used_blocks][0] < lowest_price:
                pareto[used_blocks], lowest_price = cheapest[used_blocks], cheapest[used_blocks][0]
    return pareto


@dataclass(frozen=True)
class Budget:
    """The maximum cost of a network; None: no limit.

    `lut_per_ff`: LUTs that a register displaces, on average, on devices whose cells have a LUT followed by a register.
    """

    lut: int | None = None
    dsp: int | None = None
    bram: int | None = None
    ff: int | None = None
    lut_per_ff: float = 0.0

    @property
    def limits(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Limits of LUTs, DSP blocks, block RAMs, registers."""
        return self.lut, self.dsp, self.bram, self.ff

    @property
    def is_limited(self) -> bool:
        return any(limit is not None for limit in self.limits)

    def excess(self, cost: Cost) -> float:
        """Greatest ratio of cost to budget; 1 or less if it fits. No use of a resource with limit 0 counts as 0."""
        used = cost.lut + self.lut_per_ff * cost.ff, cost.dsp, cost.bram, cost.ff
        pairs = zip(used, self.limits, strict=True)
        ratios = (
            used_amount / limit if limit else used_amount and 1 + used_amount
            for used_amount, limit in pairs
            if limit is not None
        )
        return max(ratios, default=0.0)
