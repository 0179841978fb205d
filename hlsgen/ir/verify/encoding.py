"""Rules of values: codes and their encodings.

1. Constants of an encoding broadcast to the tensor; scales are finite and not 0.
2. Decoding is exact where it must be. For an Accumulator, code * factor + offset is below 2^53 and the scale has
   at most 48 significant bits. A fixed-point code is below 2^53; float keys are keys.
3. A reader uses a value with its shape, its type and its encoding. Two other readings are legal.
   Any codes may be read as plain integers (int64, no offset). Integers without an offset may get a scale
   (a DequantizeLinear that is part of the reading; the encoding of an exact sum). Integers of dtype int64
   without an offset are codes shared by several tensors (the inputs of one port): each reader applies its encoding.
4. A layer that moves codes keeps their values: the lowest and the highest code decode to the same numbers before
   and after it.
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
    """Check rules 1 and 2."""
    verify_shape(place, value.shape, None)
    violations_before, type_, encoding = len(place.violations), value.type, value.encoding
    for field in fields(encoding):
        constant = np.asarray(getattr(encoding, field.name))
        if constant.dtype.kind in "iuf":
            constant_shape = constant.shape
            place.require(
                fits(constant_shape, value.shape),
                f"{type(encoding).__name__}.{field.name}",
                f"of shape {constant_shape}",
                f"to fit {value.shape}",
            )
            place.require(np.isfinite(constant).all(), f"{type(encoding).__name__}.{field.name}", constant, "finite")
    if len(place.violations) > violations_before:
        return
    largest_code = max(abs(type_.lo), abs(type_.hi))
    match encoding:
        case Affine(scale, _) | ThresholdCount(scale, _):
            place.require(np.all(np.asarray(scale) != 0), f"{type(encoding).__name__}.scale", scale, "not 0")
        case Accumulator(factor, offset, scale):
            place.require(factor >= 1, "Accumulator.factor", factor, "1 or more")
            place.require(offset.dtype == np.int64, "Accumulator.offset", offset.dtype, "int64")
            largest_sum = largest_code * factor + int(np.abs(offset).max())
            place.require(largest_sum < _EXACT, "code * factor + offset", largest_sum, f"below {_EXACT}")
            legal = scale.dtype == np.float64 and bool((scale != 0).all()) and _significant_bits(scale) <= _SCALE_BITS
            place.require(legal, "Accumulator.scale", scale, f"float64 of {_SCALE_BITS} significant bits, not 0")
        case Fixed():
            place.require(largest_code < _EXACT, "type", type_, f"below {_EXACT}")
        case FloatKey():
            place.require(type_.lo >= 0 and type_.hi <= KEY_POS_INF, "type", type_, f"keys of 0 to {KEY_POS_INF}")
        case IntegerEncoding(dtype, offset):
            place.require(np.dtype(dtype).kind in "iuf", "IntegerEncoding.dtype", dtype, "a dtype of numbers")
            place.require(offset.dtype == np.int64, "IntegerEncoding.offset", offset.dtype, "int64")
        case _:
            assert_never(encoding)


def _significant_bits(scale: Array) -> int:
    """Largest number of bits from the highest to the lowest set bit."""
    mantissa = np.abs(np.frexp(scale)[0] * 2.0**53).astype(np.int64)
    return 53 - int(np.log2((mantissa & -mantissa).astype(np.float64)).min())


def verify_reading(place: Place, field: str, read: Value, produced: Value) -> None:
    """Check rule 3: a layer reads the value `produced` as `read`."""
    place.require(read.shape == produced.shape, f"{field}.shape", read.shape, produced.shape)
    place.require(read.type == produced.type, f"{field}.type", read.type, produced.type)
    legal = same_encoding(read.encoding, produced.encoding) or _may_reinterpret(read.encoding, produced.encoding)
    place.require(legal, f"{field}.encoding", read.encoding, produced.encoding)


def _may_reinterpret(read: Encoding, produced: Encoding) -> bool:
    if isinstance(read, IntegerEncoding) and read.dtype == "int64" and not read.offset.any():
        return True
    if not isinstance(produced, IntegerEncoding) or produced.offset.any():
        return False
    # Plain integers are codes that the reading layer may interpret with its own encoding.
    return isinstance(read, Affine | Accumulator | Fixed | ThresholdCount) or produced.dtype == "int64"


def same_encoding(a: Encoding, b: Encoding) -> bool:
    """True if both have the same class and the same numbers for every element."""
    if a is b:
        return True
    return type(a) is type(b) and all(_equal_fields(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def _equal_fields(a: object, b: object) -> bool:
    if isinstance(a, str):
        return a == b
    array_a, array_b = np.asarray(a), np.asarray(b)
    aligned = all(m == n or 1 in (m, n) for m, n in zip(array_a.shape[::-1], array_b.shape[::-1], strict=False))
    return array_a.dtype == array_b.dtype and aligned and bool(np.all(array_a == array_b))


def verify_moved(place: Place, source: Value, result: Value, move: Callable[[Array], Array]) -> None:
    """Check rule 4; `move` rearranges an array of the source's shape as the layer rearranges codes."""
    if _is_uniform(source.encoding) and same_encoding(source.encoding, result.encoding):
        return
    for code in (source.type.lo, source.type.hi):
        moved = move(meaning(source, code))
        after = meaning(result, code)
        matches = moved.dtype == after.dtype and np.array_equal(moved, after, equal_nan=moved.dtype.kind == "f")
        if not place.require(matches, "result.encoding", result.encoding, f"the meaning of code {code} in the source"):
            return


def meaning(value: Value, code: int) -> Array:
    """The decoded value of one code in every element, of the value's shape."""
    return decode(value.encoding, np.full(value.shape, code, np.int64))


def _is_uniform(item: Encoding) -> bool:
    return all(np.size(getattr(item, f.name)) == 1 for f in fields(item))
