"""The unit that computes Softmax of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.numerics.exponential_factors import PowerFactors
from hlsgen.numerics.fixed import Array

#: Most words of a table.
TABLE = 4096


@dataclass(frozen=True, eq=False)
class SoftmaxUnit:
    """Softmax of rows of `beats` beats of `lanes` codes, sent as float32; the tables are those of the layer.

    `last`: the index of their last word, which all larger differences have; it is 0 if `closed`, else no difference
    is larger. `factors`: what the powers are products of, if they are too many for a table. `mask`: of the elements of
    some rows, one after the other, which repeats behind them.
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
        return len(self.powers) - 1 + self.closed if self.factors is None else self.factors.last

    @property
    def fraction(self) -> int:
        """Bits behind the binary point with which all powers are exact, of 1 or less."""
        if self.factors is not None:
            return min(149, 24 - math.frexp(float(self.powers[-1]))[1])
        return max(Fraction(power).denominator.bit_length() - 1 for power in self.powers.tolist())

    @property
    def delay(self) -> int:
        """Enabled cycles that a difference, or its power, waits for the sum of its row."""
        if self.in_order:
            return self.beats
        return 16 + self.beats + (self.lanes - 1).bit_length() + (self.factors is not None)

    @property
    def tiny(self) -> bool:
        """Whether a share can be below the smallest normal float32, and not 0."""
        least = np.float32(1) / np.float32(self.lanes * self.beats)
        return not self.in_order and Fraction(float(self.powers[-1])) * Fraction(float(least)) < Fraction(1, 1 << 126)

    @property
    def scaling(self) -> int:
        """Cycles of the division or product behind the sum."""
        return 18 if self.in_order else 5 if self.tiny else 3
