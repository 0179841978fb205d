"""Units of float32 pipelines, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale.realize.thresholds import Thresholds


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """hg_f32_unit: op "ADD", "MUL", "DIV", "MAX" or "MIN" with a float32 constant (sets,)."""

    op: str
    value: Array


@dataclass(frozen=True)
class RoundToFloat:
    """hg_f32_round_unit."""

    mode: Rounding


@dataclass(frozen=True, eq=False)
class ToFloat:
    """hg_f32_decode: round((x * 2^shift + offset) * mantissa * 2^exponent), (sets,) each."""

    input: IntType
    shift: int
    offset: Array
    mantissa: Array
    exponent: Array


@dataclass(frozen=True, eq=False)
class ToCode:
    """hg_f32_encode: clamped to low..high (float32, (sets,)), rounded (7: sign bit), saturated."""

    mode: int
    output: IntType
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class FloatCompare:
    """hg_float_key and hg_threshold: the code counts the thresholds (keys) that x reaches."""

    thresholds: Thresholds


FloatOp = Arithmetic | RoundToFloat | ToFloat | ToCode | FloatCompare


@dataclass(frozen=True, eq=False)
class FloatUnits:
    """A pipeline of float32 units; input are codes, or float32 bits, output codes."""

    units: tuple[FloatOp, ...]


def to_float(type_: IntType, offset: Array) -> ToFloat:
    """code + offset, rounded once; offset int64 (sets,)."""
    one = np.ones_like(offset)
    return ToFloat(type_, 0, offset, one, one - 1)
