"""Rules of values: codes, and what they mean.

1. Constants of an encoding broadcast to the tensor; scales are finite and not 0.
2. The arithmetic that decodes is exact where it is said to be: of an Accumulator, code * factor + offset is below 2^53
   and the scale has at most 48 significant bits; a fixed-point code is below 2^53; float keys are keys.
3. A reader takes a value with its shape, its type and its encoding. Two ways to read codes anew are legal: a reader may
   take any codes as the integers that they are (int64, no offset), and codes that are integers without an offset may
   get a scale (a DequantizeLinear that is part of the reading; the meaning of an exact sum). Integers without an offset of
   dtype int64 are codes that several tensors share (the inputs of one port): each reader knows what its own mean.
4. What moves codes keeps their meaning: the lowest and the highest code mean the same before and behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir.encoding import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.evaluate import KEY_POS_INF, decode
from hlsgen.ir.graph import Value
from hlsgen.ir.verify.violations import Place
from hlsgen.ir.verify.window import fits, verify_shape
from hlsgen.numerics.fixed import Array

#: Integers below this are exact in float64.
_EXACT = 1 << 53
_SCALE_BITS = 48


def verify_value(place: Place, value: Value) -> None:
    """Rules 1 and 2."""
    verify_shape(place, value.shape, None)
    before, type_, item = len(place.violations), value.type, value.encoding
    for field in fields(item):
        constant = np.asarray(getattr(item, field.name))
        if constant.dtype.kind in "iuf":
            own = constant.shape
            place.require(
                fits(own, value.shape),
                f"{type(item).__name__}.{field.name}",
                f"of shape {own}",
                f"to fit {value.shape}",
            )
            place.require(np.isfinite(constant).all(), f"{type(item).__name__}.{field.name}", constant, "finite")
    if len(place.violations) > before:
        return
    widest = max(abs(type_.lo), abs(type_.hi))
    match item:
        case Affine(scale, _) | ThresholdCount(scale, _):
            place.require(np.all(np.asarray(scale) != 0), f"{type(item).__name__}.scale", scale, "not 0")
        case Accumulator(factor, offset, scale):
            place.require(factor >= 1, "Accumulator.factor", factor, "1 or more")
            place.require(offset.dtype == np.int64, "Accumulator.offset", offset.dtype, "int64")
            reach = widest * factor + int(np.abs(offset).max())
            place.require(reach < _EXACT, "code * factor + offset", reach, f"below {_EXACT}")
            short = scale.dtype == np.float64 and bool((scale != 0).all()) and _significant_bits(scale) <= _SCALE_BITS
            place.require(short, "Accumulator.scale", scale, f"float64 of {_SCALE_BITS} significant bits, not 0")
        case Fixed():
            place.require(widest < _EXACT, "type", type_, f"below {_EXACT}")
        case FloatKey():
            place.require(type_.lo >= 0 and type_.hi <= KEY_POS_INF, "type", type_, f"keys of 0 to {KEY_POS_INF}")
        case IntegerEncoding(dtype, offset):
            place.require(np.dtype(dtype).kind in "iuf", "IntegerEncoding.dtype", dtype, "a dtype of numbers")
            place.require(offset.dtype == np.int64, "IntegerEncoding.offset", offset.dtype, "int64")
        case _:
            assert_never(item)


def _significant_bits(scale: Array) -> int:
    """Most bits from the highest to the lowest that is set."""
    mantissa = np.abs(np.frexp(scale)[0] * 2.0**53).astype(np.int64)
    return 53 - int(np.log2((mantissa & -mantissa).astype(np.float64)).min())


def verify_reading(place: Place, field: str, read: Value, made: Value) -> None:
    """Rule 3: a layer reads as `read` what another gives as `made`."""
    place.require(read.shape == made.shape, f"{field}.shape", read.shape, made.shape)
    place.require(read.type == made.type, f"{field}.type", read.type, made.type)
    legal = same_encoding(read.encoding, made.encoding) or _reads_anew(read.encoding, made.encoding)
    place.require(legal, f"{field}.encoding", read.encoding, made.encoding)


def _reads_anew(read: Encoding, made: Encoding) -> bool:
    if isinstance(read, IntegerEncoding) and read.dtype == "int64" and not read.offset.any():
        return True
    if not isinstance(made, IntegerEncoding) or made.offset.any():
        return False
    # Integers of no other meaning are codes of whatever the layer takes them for.
    return isinstance(read, Affine | Accumulator | Fixed | ThresholdCount) or made.dtype == "int64"


def same_encoding(a: Encoding, b: Encoding) -> bool:
    """Whether both are of one kind and hold the same numbers for every element."""
    if a is b:
        return True
    return type(a) is type(b) and all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def _same(a: object, b: object) -> bool:
    if isinstance(a, str):
        return a == b
    left, right = np.asarray(a), np.asarray(b)
    aligned = all(m == n or 1 in (m, n) for m, n in zip(left.shape[::-1], right.shape[::-1], strict=False))
    return left.dtype == right.dtype and aligned and bool(np.all(left == right))


def verify_moved(place: Place, source: Value, result: Value, move: Callable[[Array], Array]) -> None:
    """Rule 4; `move` does to numbers, of the source's shape, what the layer does to codes."""
    if _is_uniform(source.encoding) and same_encoding(source.encoding, result.encoding):
        return
    for code in (source.type.lo, source.type.hi):
        before = move(meaning(source, code))
        behind = meaning(result, code)
        same = before.dtype == behind.dtype and np.array_equal(before, behind, equal_nan=before.dtype.kind == "f")
        if not place.require(same, "result.encoding", result.encoding, f"the meaning of code {code} in the source"):
            return


def meaning(value: Value, code: int) -> Array:
    """The numbers that one code means in every element, of the value's shape."""
    return decode(value.encoding, np.full(value.shape, code, np.int64))


def _is_uniform(item: Encoding) -> bool:
    return all(np.size(getattr(item, f.name)) == 1 for f in fields(item))
