"""Bit widths in units on vectors of integers, from the range of their input codes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share, VectorFunction, integer_root
from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True)
class ShareSizes:
    """Bits of weights, numerators and sums."""

    weight: int
    number: int
    sum: int

    @staticmethod
    def of(share: Share, source: IntType, count: int) -> ShareSizes:
        used = slice(0, source.hi + 1)
        max_weight = int(share.weights[used].max())
        weight, number = max(1, max_weight.bit_length()), max(1, int(share.numbers[used].max()).bit_length())
        return ShareSizes(weight, number, max(weight + 1, (max_weight * count).bit_length()))


#: Fraction bits of the exponentials in the sum of a row of a FixedPointShare; each is at most 1.
_WEIGHT = 19
#: Steps of its reciprocal by Newton's method, and cycles of each.
NEWTON_STEPS, NEWTON_CYCLES = 7, 4


def fixed_point_sum(count: int) -> int:
    """Bits of the sum of a row of a FixedPointShare."""
    return max(_WEIGHT + 2, (count << _WEIGHT).bit_length())


def newton_units(beats: int) -> int:
    """Multipliers for a reciprocal every `beats` cycles: each does as many steps as it has time for."""
    turns = min(max(beats // NEWTON_CYCLES, 1), NEWTON_STEPS)
    return -(-NEWTON_STEPS // turns)


@dataclass(frozen=True)
class NormSizes:
    """Bits of the sum, the sum of squares, mean, root, weight, bias, dividend, quotient."""

    sum: int
    squares: int
    mean: int
    root: int
    weight: int
    bias: int
    number: int
    quotient: int

    @staticmethod
    def of(norm: IntegerNorm, source: IntType, count: int) -> NormSizes:
        magnitude = max(abs(source.lo), abs(source.hi))
        deviation = source.hi - source.lo if norm.centred else magnitude
        # All distances of an element from the mean, and the smallest root of a vector that has such an element.
        distance = np.arange(1, deviation + 1)
        smallest_root = integer_root(distance * distance // count + 1)
        weight, bias = (int(np.abs(part).max()) for part in (norm.weight, norm.bias))
        quotient = (int((distance * weight // smallest_root).max(initial=0)) + bias + 1 >> norm.shift) + 1
        mean = max(1, magnitude.bit_length()) if norm.centred else 1
        variance = count * deviation**2
        root = math.isqrt(variance // count + 1).bit_length()
        squares = max(count * magnitude * magnitude, variance) + count
        w_bits, b_bits = (IntType(-max(1, part), max(1, part)).bits for part in (weight, bias))
        scaled_bits = max(source.bits, mean) + 2 + w_bits
        return NormSizes(
            sum=max(source.bits + 2, IntType(-count * magnitude - 1, count * magnitude).bits + 1),
            squares=max(2 * source.bits + 1, squares.bit_length() + 2),
            mean=mean,
            root=root,
            weight=w_bits,
            bias=b_bits,
            number=max(scaled_bits, b_bits + root + 1) + 2,
            quotient=max(norm.type.bits, IntType(-quotient - 1, quotient).bits),
        )


def filled(table: Array, source: IntType) -> Array:
    """The table with an entry for each code of the source's width; codes that do not occur have 0."""
    padded = np.zeros(1 << source.bits, np.int64)
    padded[: source.hi + 1] = table[: source.hi + 1]
    return padded


def lag(function: VectorFunction, source: IntType, count: int) -> int:
    """Cycles from the last beat of a vector to the number that all its elements need."""
    match function:
        case BelowLargest():
            return 1
        case Share():
            return 2
        case FixedPointShare():
            return 4 + NEWTON_STEPS * NEWTON_CYCLES
        case IntegerNorm():
            sizes = NormSizes.of(function, source, count)
            return 3 + sizes.root + (sizes.mean + 2 if function.centred else 0)
