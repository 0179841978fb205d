"""The unit that computes Softmax of vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array

#: Most words of a lookup table.
TABLE = 4096


@dataclass(frozen=True, eq=False)
class SoftmaxUnit:
    """Softmax of vectors of `beats` beats of `lanes` codes, emitted as float32.

    `powers`, `numerators`: the lookup tables of the layer. `closed`: all differences from the index `last` on have the
    entry 0; else no difference is larger. `factors`: the factors of the powers, if these are too many for one lookup
    table. `mask`: the elements of the masks of some vectors in order, which then repeats.
    """

    powers: Array
    numerators: Array
    in_order: bool
    closed: bool
    lanes: int
    beats: int
    factors: PowerFactors | None = None
    mask: Array | None = None

    @property
    def last(self) -> int:
        """Index of the last entry, which all larger differences use."""
        return len(self.powers) - 1 + self.closed if self.factors is None else self.factors.last

    @property
    def fraction(self) -> int:
        """Bits after the binary point with which all powers, at most 1, are exact."""
        if self.factors is not None:
            return min(149, 24 - math.frexp(float(self.powers[-1]))[1])
        return max(Fraction(power).denominator.bit_length() - 1 for power in self.powers.tolist())

    @property
    def delay(self) -> int:
        """Enabled cycles for which a difference, or its power, is delayed until the sum of its vector is known."""
        if self.in_order:
            return self.beats
        return 16 + self.beats + (self.lanes - 1).bit_length() + (self.factors is not None)

    @property
    def tiny(self) -> bool:
        """True if a result can be below the smallest normal float32, and not 0."""
        smallest_share = np.float32(1) / np.float32(self.lanes * self.beats)
        return not self.in_order and Fraction(float(self.powers[-1])) * Fraction(float(smallest_share)) < Fraction(
            1, 1 << 126
        )

    @property
    def scaling(self) -> int:
        """Cycles of the division or product after the sum."""
        return 18 if self.in_order else 5 if self.tiny else 3
