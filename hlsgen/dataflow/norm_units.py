"""The units that normalize rows: moments of a row, its reciprocal root, and the elements times that.

    row ──► fork ──► moments ──► root ──────┐   one beat a row: sum, significand, steps
                └──► FIFO ──────────────► scale ──► float32

The root is found bit by bit. With T = start * 4^k and W = moment * factor + addend, k steps give m = floor(sqrt(T / W));
a step is one comparison of integers. It ends when m has 25 bits: 24 of the significand, and half a bit to round by.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import SIGNIFICAND, bounds


@dataclass(frozen=True)
class RowCodes:
    """Rows of `length` codes, each the integer code * 2^shift + offset; `centered`: their mean is taken off."""

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
        """Of the sum of a row, two's complement; 1 if it is not needed."""
        lo, hi = self.ends
        return IntType(min(-1, lo * self.length), max(0, hi * self.length)).bits if self.centered else 1


@dataclass(frozen=True)
class RootConstants:
    """W = moment * factor + addend; T = start, and 1 / sqrt(moment + epsilon) = sqrt(T / W) / 2^exponent.

    `steps`: after so many every m has 25 bits.
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
    """Moment and sum of every row of `beats` beats, one beat a row: the moment in the high bits.

    `every`: see Pipelining."""

    rows: RowCodes
    beats: int
    moment_bits: int
    every: int = 2


@dataclass(frozen=True)
class NormRoot:
    """Steps, significand and sum of every row, of which `ways` are under way; rows come `gap` cycles apart or more."""

    constants: RootConstants
    moment_bits: int
    sum_bits: int
    ways: int
    gap: int

    @property
    def serial(self) -> bool:
        """Whether the product with the factor is made of digits of the moment, as many as there are cycles for them."""
        return self.constants.factor & (self.constants.factor - 1) != 0

    @property
    def digit(self) -> int:
        """Bits of a digit."""
        return -(-self.moment_bits // self.gap)

    @property
    def roots(self) -> int:
        """Rows whose root is found at a time."""
        return min(self.ways, -(-(self.constants.steps + 2) // self.gap))

    @property
    def cycles(self) -> int:
        """From the beat of a row to its result: the product with the factor, the steps, both ends."""
        multiplying = -(-self.moment_bits // self.digit) + 2 if self.serial else 0
        return multiplying + self.constants.steps + 5


@dataclass(frozen=True)
class NormScale:
    """Every element less the sum, times the root of its row of `beats` beats, rounded to float32."""

    rows: RowCodes
    beats: int
    element_bits: int
    constants: RootConstants


NormUnit = NormMoments | NormRoot | NormScale


def root_constants(addend: Fraction, moment: int) -> RootConstants:
    """For moments of 0..moment."""
    exponent = (addend.numerator.bit_length() - addend.denominator.bit_length()) // 2 + 1
    while Fraction(4) ** exponent >= addend:
        exponent -= 1
    more = max(0, -exponent)
    factor, least = (part << 2 * more for part in (addend.denominator, addend.numerator))
    start = factor << 2 * exponent if exponent >= 0 else factor >> -2 * exponent
    steps = 0
    while start << 2 * steps < (moment * factor + least) << 2 * SIGNIFICAND:
        steps += 1
    return RootConstants(factor, least, start, exponent, steps)


def root_bits(unit: NormRoot) -> int:
    """Of W."""
    largest = ((1 << unit.moment_bits) - 1) * unit.constants.factor + unit.constants.addend
    return largest.bit_length()


def units_of(rows: RowCodes, addend: Fraction, lanes: int, ways: int) -> tuple[NormMoments, NormRoot, NormScale]:
    """The three units for rows that come `lanes` elements a beat."""
    most = bounds(rows.centered, rows.length, *rows.ends, addend)
    constants = root_constants(addend, most.moment)
    beats, moment_bits = rows.length // lanes, max(1, most.moment.bit_length())
    return (
        NormMoments(rows, beats, moment_bits),
        NormRoot(constants, moment_bits, rows.sum_bits, ways, beats),
        NormScale(rows, beats, max(1, most.element.bit_length()), constants),
    )
