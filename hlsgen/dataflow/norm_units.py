"""The units that normalize vectors (rows): moments of a row, its reciprocal root, and the scaling of its elements.

    row ──► fork ──► moments ──► root ──────┐   one beat a row: sum, significand, steps
                └──► FIFO ──────────────► scale ──► float32

The root is computed bit by bit. Let T = start * 4^k and W = moment * factor + addend. Then k steps give
m = floor(sqrt(T / W)). A step is one comparison of integers. The steps end when m has 25 bits: 24 of the significand,
and half a bit to round by.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import SIGNIFICAND, bounds


@dataclass(frozen=True)
class RowCodes:
    """Rows of `length` codes, each the integer code * 2^shift + offset; `centered`: the mean is subtracted."""

    length: int
    type: IntType
    shift: int
    offset: int
    centered: bool

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest integer."""
        return (self.type.lo << self.shift) + self.offset, (self.type.hi << self.shift) + self.offset

    @property
    def sum_bits(self) -> int:
        """Bits of the sum of a row in two's complement; 1 if it is not needed."""
        lo, hi = self.ends
        return IntType(min(-1, lo * self.length), max(0, hi * self.length)).bits if self.centered else 1


@dataclass(frozen=True)
class RootConstants:
    """W = moment * factor + addend; T = start; 1 / sqrt(moment + epsilon) = sqrt(T / W) / 2^exponent.

    `steps`: the number of steps after which m has 25 bits for every moment.
    """

    factor: int
    addend: int
    start: int
    exponent: int
    steps: int

    @property
    def step_bits(self) -> int:
        return self.steps.bit_length()


@dataclass(frozen=True)
class NormMoments:
    """Moment and sum of every row of `beats` beats, one beat a row; the moment is in the high bits.

    `adders_per_stage`: see Pipelining.
    """

    rows: RowCodes
    beats: int
    moment_bits: int
    adders_per_stage: int = 2


@dataclass(frozen=True)
class NormRoot:
    """Steps, significand and sum of every row.

    `rows_in_flight`: rows that it processes at a time. Rows arrive at least `gap` cycles apart.
    """

    constants: RootConstants
    moment_bits: int
    sum_bits: int
    rows_in_flight: int
    gap: int

    @property
    def serial(self) -> bool:
        """True if the product with the factor is computed digit by digit, with a cycle for each digit of the moment."""
        return self.constants.factor & (self.constants.factor - 1) != 0

    @property
    def digit(self) -> int:
        """Bits of a digit."""
        return -(-self.moment_bits // self.gap)

    @property
    def roots(self) -> int:
        """Roots that are computed at the same time."""
        return min(self.rows_in_flight, -(-(self.constants.steps + 2) // self.gap))

    @property
    def cycles(self) -> int:
        """Cycles from the beat of a row to its result: the product with the factor, the steps, both ends."""
        multiplying = -(-self.moment_bits // self.digit) + 2 if self.serial else 0
        return multiplying + self.constants.steps + 5


@dataclass(frozen=True)
class NormScale:
    """Subtracts the mean from every element, multiplies by the root of its row of `beats` beats, rounds to float32."""

    rows: RowCodes
    beats: int
    element_bits: int
    constants: RootConstants


NormUnit = NormMoments | NormRoot | NormScale


def root_constants(addend: Fraction, moment: int) -> RootConstants:
    """Constants for moments of 0..moment."""
    exponent = (addend.numerator.bit_length() - addend.denominator.bit_length()) // 2 + 1
    while Fraction(4) ** exponent >= addend:
        exponent -= 1
    extra_bits = max(0, -exponent)
    factor, scaled_addend = (part << 2 * extra_bits for part in (addend.denominator, addend.numerator))
    start = factor << 2 * exponent if exponent >= 0 else factor >> -2 * exponent
    steps = 0
    while start << 2 * steps < (moment * factor + scaled_addend) << 2 * SIGNIFICAND:
        steps += 1
    return RootConstants(factor, scaled_addend, start, exponent, steps)


def root_bits(unit: NormRoot) -> int:
    """Bits of W."""
    largest = ((1 << unit.moment_bits) - 1) * unit.constants.factor + unit.constants.addend
    return largest.bit_length()


def units_of(
    rows: RowCodes, addend: Fraction, lanes: int, rows_in_flight: int
) -> tuple[NormMoments, NormRoot, NormScale]:
    """The three units for rows that arrive in beats of `lanes` elements."""
    largest = bounds(rows.centered, rows.length, *rows.ends, addend)
    constants = root_constants(addend, largest.moment)
    beats, moment_bits = rows.length // lanes, max(1, largest.moment.bit_length())
    return (
        NormMoments(rows, beats, moment_bits),
        NormRoot(constants, moment_bits, rows.sum_bits, rows_in_flight, beats),
        NormScale(rows, beats, max(1, largest.element.bit_length()), constants),
    )
