"""Quantizers of TFLite's integer sums, with constants of the tensor's rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir.ops import Convention, QuantizeLinear, Requantize
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.multipliers import Multiplier, float64_multiplier, single_multiplier


def along_last(values: Array, rank: int) -> Array:
    """One value, or one for each element of the last axis, with that many axes."""
    return np.asarray(values).reshape((1,) * (rank - 1) + (-1,)) if rank else np.asarray(values).reshape(())


def doubly_rounded(
    multipliers: Sequence[Multiplier], rank: int, zero: int, bounds: IntType, dtype: str, add: int = 0
) -> Requantize:
    """DOUBLE(x + add), one multiplier or one for each element of the last axis."""
    return _requantize(
        Convention.DOUBLE,
        rank,
        np.array([m.value for m in multipliers], np.int64),
        np.array([m.shift for m in multipliers], np.int64),
        add,
        (zero, bounds, dtype),
    )


def singly_rounded(multipliers: Sequence[Multiplier], rank: int, zero: int, bounds: IntType, dtype: str) -> Requantize:
    """One multiplier or one for each element of the last axis, and one rounding, ties up."""
    parts = np.array([(m.value, m.shift) for m in multipliers], np.int64)
    return _requantize(Convention.SINGLE, rank, parts[:, 0], parts[:, 1], 0, (zero, bounds, dtype))


def rounded_to_15_bits(
    multipliers: Sequence[Multiplier], rank: int, zero: int, bounds: IntType, dtype: str
) -> Requantize:
    """The rescaling of int64 sums: multipliers of 15 bits, one rounding, ties up."""
    parts = np.array([single_multiplier(m) for m in multipliers], np.int64)
    return _requantize(Convention.SINGLE, rank, parts[:, 0], parts[:, 1], 0, (zero, bounds, dtype))


def rounded_in_double(ratios: Array, rank: int, zero: int, bounds: IntType, dtype: str) -> Requantize:
    """One float64 product, rounded half away from zero."""
    parts = np.array([float64_multiplier(ratio) for ratio in ratios.reshape(-1)], np.int64)
    return _requantize(Convention.FLOAT64, rank, parts[:, 0], parts[:, 1], 0, (zero, bounds, dtype))


def shifted(rank: int, add: int, shift: int, zero: int, bounds: IntType, dtype: str) -> Requantize:
    """(x + add) >> shift."""
    multiplier = np.ones(1, np.int64)
    return _requantize(Convention.FLOOR, rank, multiplier, multiplier * shift, add, (zero, bounds, dtype))


def half_to_even(rank: int, zero: int, bounds: IntType, dtype: str) -> QuantizeLinear:
    """A float32 number to the nearest, ties to even; the zero point is added afterwards."""
    ones = np.ones((1,) * rank, np.float32)
    return QuantizeLinear(ones, np.full((1,) * rank, zero, np.int64), bounds, dtype)


def _requantize(
    convention: Convention, rank: int, multiplier: Array, shift: Array, add: int, code: tuple[int, IntType, str]
) -> Requantize:
    zero, bounds, dtype = code
    scalar = np.zeros((1,) * rank, np.int64)
    multiplier, shift = (along_last(part, rank) for part in (multiplier, shift))
    return Requantize(convention, multiplier, scalar + add, shift, scalar + zero, bounds, dtype)
