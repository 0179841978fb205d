"""Widths of the numbers in units on rows of integers, from the range of the codes that they take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, RowFunction, Share, integer_root
from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True)
class ShareSizes:
    """Bits of weights, numbers, sums."""

    weight: int
    number: int
    sum: int

    @staticmethod
    def of(share: Share, source: IntType, count: int) -> ShareSizes:
        used = slice(0, source.hi + 1)
        most = int(share.weights[used].max())
        weight, number = max(1, most.bit_length()), max(1, int(share.numbers[used].max()).bit_length())
        return ShareSizes(weight, number, max(weight + 1, (most * count).bit_length()))


@dataclass(frozen=True)
class NormSizes:
    """Bits of the sum, the sum of squares, mean, root, weight, bias, number that is divided, quotient."""

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
        far = max(abs(source.lo), abs(source.hi))
        # How far an element may be from the mean, and the least root that a row with it can have.
        reach = np.arange(1, (source.hi - source.lo if norm.centred else far) + 1)
        least = integer_root(reach * reach // count + 1)
        weight, bias = (int(np.abs(part).max()) for part in (norm.weight, norm.bias))
        most = (int((reach * weight // least).max(initial=0)) + bias + 1 >> norm.shift) + 1
        mean = max(1, far.bit_length()) if norm.centred else 1
        variance = count * (source.hi - source.lo if norm.centred else far) ** 2
        root = math.isqrt(variance // count + 1).bit_length()
        squares = max(count * far * far, variance) + count
        w_bits, b_bits = (IntType(-max(1, part), max(1, part)).bits for part in (weight, bias))
        own = max(source.bits, mean) + 2 + w_bits
        return NormSizes(
            sum=max(source.bits + 2, IntType(-count * far - 1, count * far).bits + 1),
            squares=max(2 * source.bits + 1, squares.bit_length() + 2), mean=mean, root=root, weight=w_bits, bias=b_bits,
            number=max(own, b_bits + root + 1) + 2,
            quotient=max(norm.type.bits, IntType(-most - 1, most).bits),
        )  # fmt: skip


def filled(table: Array, source: IntType) -> Array:
    """An entry for each code of so many bits; those that do not occur are 0."""
    found = np.zeros(1 << source.bits, np.int64)
    found[: source.hi + 1] = table[: source.hi + 1]
    return found


def lag(function: RowFunction, source: IntType, count: int) -> int:
    """Cycles from the last beat of a row to the number that all its elements need."""
    match function:
        case BelowLargest():
            return 1
        case Share():
            return 2
        case IntegerNorm():
            sizes = NormSizes.of(function, source, count)
            return 3 + sizes.root + (sizes.mean + 2 if function.centred else 0)
