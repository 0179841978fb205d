"""Integer functions of vectors along the last axis, and the intervals of their results.

These are the integer softmaxes and normalizations of Deeploy, TFLite's SOFTMAX, and programs of ALIR files. All
results are exact, in int64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.programs import Program, output_type, program_values
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.softmax import shares_in_integers, weights_in_integers


@dataclass(frozen=True)
class BelowLargest:
    """The row's largest number minus each number."""


@dataclass(frozen=True, eq=False)
class Share:
    """numbers[x] / the sum of weights[x] over the row, rounded down.

    Every x is at least 0, and at least one x of every row is 0.
    weights, numbers: int64, not negative, weights[0] > 0.
    """

    weights: Array
    numbers: Array


@dataclass(frozen=True, eq=False)
class FixedPointShare:
    """exponentials[x] / the sum of exponentials[x] over the row, in steps of 2^-bits, as TFLite's kernels round it.

    Every x is at least 0, and at least one x of every row is 0. Rows are shorter than 512: the kernels abort for sums
    of 512 or more. Results are at most 2^bits - 1.
    exponentials: int64, Q0 (31 fraction bits), exponentials[0] = 2^31 - 1.
    """

    exponentials: Array
    bits: int


@dataclass(frozen=True, eq=False)
class IntegerNorm:
    """(t / root, truncated, + bias) >> shift with t = (x - mean) * weight, in codes of `type`.

    mean = sum of x / count, truncated, or 0 unless `centred`.
    root = floor(sqrt(v)); v = (the sum of (x - mean)^2) / count, rounded down, + 1.
    Results outside `type` wrap if `wraps`, else they saturate.
    weight, bias: int64 (count,).
    """

    centred: bool
    weight: Array
    bias: Array
    shift: int
    type: IntType
    wraps: bool


#: Functions whose results are as many as the elements.
VectorFunction = BelowLargest | Share | FixedPointShare | IntegerNorm
RowFunction = VectorFunction | Program

#: Elements of the longest row of a FixedPointShare.
MAX_FIXED_POINT_ROW = 511


def row_values(function: RowFunction, x: Array) -> Array:
    """Apply the function: int64 (..., count) -> int64 of the same shape, or (..., outputs) of a Program."""
    match function:
        case BelowLargest():
            return np.asarray(x.max(axis=-1, keepdims=True) - x)
        case Share(weights, numbers):
            index = np.clip(x, 0, len(weights) - 1)
            return np.asarray(numbers[index] // weights[index].sum(axis=-1, keepdims=True))
        case FixedPointShare(exponentials, bits):
            exponential = exponentials[np.clip(x, 0, len(exponentials) - 1)]
            total = weights_in_integers(exponential).sum(axis=-1, keepdims=True)
            return shares_in_integers(exponential, total, bits)
        case IntegerNorm():
            return _normalized(function, x)
        case Program():
            return program_values(function, x)
        case _:
            assert_never(function)


def result_dtype(function: RowFunction) -> str:
    """The dtype of the results in a Model."""
    return "float64" if isinstance(function, Program) else "float32"


def _normalized(function: IntegerNorm, x: Array) -> Array:
    count = x.shape[-1]
    total = x.sum(axis=-1, keepdims=True)
    mean = np.sign(total) * (np.abs(total) // count) if function.centred else np.zeros_like(total)
    centred = x - mean
    root = integer_root((centred * centred).sum(axis=-1, keepdims=True) // count + 1)
    t = centred * function.weight
    y = (np.sign(t) * (np.abs(t) // root) + function.bias) >> function.shift
    low, high = function.type.lo, function.type.hi
    return np.asarray((y - low) % (high - low + 1) + low if function.wraps else np.clip(y, low, high))


def integer_root(v: Array) -> Array:
    """floor(sqrt(v)) for numbers from 0 to 2^52."""
    root = np.sqrt(v.astype(np.float64)).astype(np.int64)
    root = np.where(root * root > v, root - 1, root)
    return np.where((root + 1) * (root + 1) <= v, root + 1, root)


def result_type(function: RowFunction, source: IntType) -> IntType:
    """The interval of the results for elements of type `source`."""
    match function:
        case BelowLargest():
            return IntType(0, source.hi - source.lo)
        case Share(weights, numbers):
            # The sum is least in a row of one 0 and the element itself.
            zero_weight, least_sums = int(weights[0]), weights[1:] + weights[0]
            return IntType(0, max(int(numbers[0]) // zero_weight, int((numbers[1:] // least_sums).max(initial=0)), 1))
        case FixedPointShare(_, bits):
            return IntType(0, (1 << bits) - 1)
        case IntegerNorm():
            return function.type
        case Program():
            return output_type(function)
        case _:
            assert_never(function)
