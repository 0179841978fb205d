"""Data types of the hardware units in a pipeline of float32 operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale.realize.thresholds import Thresholds


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """Module hg_f32_unit: `op` "ADD", "MUL", "DIV", "MAX" or "MIN" with a constant, `value` float32 (sets,)."""

    op: str
    value: Array


@dataclass(frozen=True)
class RoundToFloat:
    """Module hg_f32_round_unit: rounds a float32 to an integer that stays a float32."""

    mode: Rounding


@dataclass(frozen=True, eq=False)
class ToFloat:
    """Module hg_f32_decode: (x * 2^shift + offset) * mantissa * 2^exponent, rounded once; arrays int64 (sets,)."""

    input: IntType
    shift: int
    offset: Array
    mantissa: Array
    exponent: Array


@dataclass(frozen=True, eq=False)
class ToCode:
    """Module hg_f32_encode: clamps a float32 to low..high, float32 (sets,), rounds it, and saturates it to `output`.

    `mode`: a `Rounding`, or 7 to take the sign bit.
    """

    mode: int
    output: IntType
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class FloatCompare:
    """Modules hg_float_key and hg_threshold: the code is the number of thresholds, as order keys, that x reaches."""

    thresholds: Thresholds


FloatOp = Arithmetic | RoundToFloat | ToFloat | ToCode | FloatCompare


@dataclass(frozen=True, eq=False)
class FloatUnits:
    """A pipeline of float32 units. It consumes codes, or the bits of float32 numbers, and produces codes."""

    units: tuple[FloatOp, ...]


def to_float(type_: IntType, offset: Array) -> ToFloat:
    """The unit that converts code + offset to float32, rounded once; `offset` int64 (sets,)."""
    ones = np.ones_like(offset)
    return ToFloat(type_, 0, offset, ones, ones - 1)
