"""Turns the integer operations before a conversion to float32 into float32 units, if that is exact."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import IntegerEncoding
from hlsgen.ir.ops import Add, Cast, Dequantize, Elementwise, Max, Min, Mul
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatOp, to_float

#: float32 represents all integers up to this one.
_EXACT = 1 << 24
_UNITS = {Add: "ADD", Max: "MAX", Min: "MIN", Mul: "MUL"}


def convert(
    source: IntegerEncoding, type_: IntType, lo: Array, hi: Array, ops: tuple[Elementwise, ...]
) -> tuple[list[FloatOp], int] | None:
    """The units that turn codes lo..hi, int64 (sets,), into float32, and the number of `ops` that they cover.

    Returns None if an integer wraps, if the chain has no conversion, or if an operation in float32 exceeds 2^24.
    Constants that are added first join the conversion, which rounds once.
    """
    sets, dtype = len(lo), source.dtype
    offset: Array = np.zeros(sets, np.int64) + source.offset
    ends = np.stack([lo, hi]) + offset
    units: list[FloatOp] = []
    for n, op in enumerate(ops):
        if not _fits(ends, dtype):
            return None
        match op:
            case Cast("float32"):
                return units or [to_float(type_, offset)], n + 1
            case Dequantize(scale, zero) if scale.dtype == np.float32:
                if not units:
                    units = [to_float(type_, offset - zero)]
                elif (np.abs(ends - zero) > _EXACT).any():
                    return None
                elif zero.any():
                    units.append(Arithmetic("ADD", (-zero).astype(np.float32)))
                return [*units, *([] if (scale == 1).all() else [Arithmetic("MUL", scale)])], n + 1
            case Cast(kind) if np.dtype(kind).kind in "iu":
                dtype = kind
            case Add(value) if not units:
                offset, ends = offset + value.astype(np.int64), ends + value.astype(np.int64)
            case Add(value) | Max(value) | Min(value) | Mul(value):
                constant = value.astype(np.int64)
                new_ends = _ends(op, ends, constant)
                if max(int(np.abs(x).max()) for x in (ends, constant, new_ends)) > _EXACT:
                    return None
                units = units or [to_float(type_, offset)]
                units.append(Arithmetic(_UNITS[type(op)], value.astype(np.float32)))
                ends = new_ends
            case _:
                return None
    return None


def _fits(ends: Array, dtype: str) -> bool:
    """True if the type holds all integers between the ends of all sets."""
    if np.dtype(dtype).kind == "f":
        return int(np.abs(ends).max()) <= 1 << (np.finfo(dtype).nmant + 1)
    info = np.iinfo(dtype)
    return bool(ends.min() >= info.min and ends.max() <= info.max)


def _ends(op: Elementwise, ends: Array, value: Array) -> Array:
    """The least and the greatest number after an operation, int64 (2, sets)."""
    match op:
        case Add():
            return ends + value
        case Max():
            return np.maximum(ends, value)
        case Min():
            return np.minimum(ends, value)
        case _:
            return np.sort(ends * value, axis=0)
