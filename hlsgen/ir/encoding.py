"""Encodings: the real or integer value that each integer code represents."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.ir.ops import BinaryKind as BinaryKind
from hlsgen.ir.window import Reduction as Reduction
from hlsgen.ir.window import Window as Window
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class Affine:
    """real = fl(fl(code - zero_point) * scale)."""

    scale: Array
    zero_point: Array


@dataclass(frozen=True, eq=False)
class ThresholdCount:
    """real = fl(fl(scale * code) + bias): MultiThreshold."""

    scale: float
    bias: float


@dataclass(frozen=True, eq=False)
class Accumulator:
    """real = round_to_float32((code * factor + offset) * scale), one rounding.

    scale float64 (an exact product of two float32), offset int64, both broadcast to the tensor.
    """

    factor: int
    offset: Array
    scale: Array


@dataclass(frozen=True)
class Fixed:
    """real = round_to_float32(code * 2^-fraction): fixed-point input."""

    fraction: int


@dataclass(frozen=True)
class FloatKey:
    """The code is the order key of a float32, see `evaluate.float_to_key`."""


@dataclass(frozen=True, eq=False)
class IntegerEncoding:
    """The value is the integer code + offset, as that numpy dtype (wrapping); offset int64."""

    dtype: str
    offset: Array


Encoding = Affine | ThresholdCount | Accumulator | Fixed | FloatKey | IntegerEncoding
