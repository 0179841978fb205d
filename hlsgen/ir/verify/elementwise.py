"""Rules of elementwise operations and quantizers.

1. Every constant broadcasts to the tensor without making it larger, and is not NaN.
2. Arithmetic has constants of the tensor's own dtype: numpy's promotion never decides.
3. Scales and divisors are finite and greater than 0; zero points are finite.
4. Codes that are numbers of a dtype are exact in it (some files carry integers in float32 tensors). Integer parameters are int64.
5. Both chains of a BinaryOf give one dtype; a Where has a boolean condition and two chains of one dtype.
6. A Pair takes 16-bit pairs; a FixedAdd takes int8 data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir.evaluate import apply, constants, lead_axes, with_constants
from hlsgen.ir.model import Shape
from hlsgen.ir.ops import (
    Activation,
    BinaryOf,
    Bipolar,
    Cast,
    Constant,
    Dequantize,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntegerActivation,
    IntegerKind,
    IntegerRatio,
    IntQuant,
    Lookup,
    MultiThreshold,
    Pair,
    PairOp,
    QuantizeLinear,
    Requantize,
    SignedBit,
    Trunc,
    Where,
)
from hlsgen.ir.verify.violations import Place
from hlsgen.ir.verify.window import fits
from hlsgen.numerics import activations
from hlsgen.numerics.fixed import Array, IntType

#: dtypes of tensors.
DTYPES = frozenset(
    ["bool", "float16", "float32", "float64"] + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


def verify_chain(place: Place, ops: Sequence[Elementwise], shape: Shape, dtype: str | None) -> str | None:
    """Checks operations one after the other on a tensor; gives the dtype of the last result, as `verify_op` does."""
    for op in ops:
        dtype = verify_op(place, op, shape, dtype)
    return dtype


def verify_op(place: Place, op: Elementwise, shape: Shape, dtype: str | None) -> str | None:
    """Checks one operation on a tensor of that shape and dtype; gives the dtype of the result.

    None is an unknown dtype: behind host operations and behind violations. Rules about it are then left out.
    """
    before = len(place.violations)
    if isinstance(op, BinaryOf | Where):
        return _verify_ways(place, op, shape, dtype)
    for name, value in constants(op).items():
        _verify_constant(place, f"{type(op).__name__}.{name}", value, lead_axes(op, name), shape)
    if len(place.violations) == before:
        _verify_fields(place, op, dtype)
    return None if len(place.violations) > before else _result_dtype(op, dtype)


def _verify_ways(place: Place, op: BinaryOf | Where, shape: Shape, dtype: str | None) -> str | None:
    name, count = type(op).__name__, 2 if isinstance(op, BinaryOf) else 3
    if not place.require(len(op.ways) == count, f"{name}.ways", f"{len(op.ways)} chains", f"{count} chains"):
        return None
    found = [verify_chain(place, way, shape, dtype) for way in op.ways]
    if isinstance(op, Where):
        place.require(found[0] in (None, "bool"), f"{name} condition", found[0], "bool")
    left, right = found[-2:]
    alike = place.require(None in (left, right) or left == right, f"dtypes of {name}", f"{left}, {right}", "one dtype")
    return left if alike else None


def _verify_constant(place: Place, field: str, value: Array, lead: int, shape: Shape) -> None:
    own = value.shape[lead:]
    legal = value.ndim >= lead and value.size > 0 and fits(own, shape)
    place.require(legal, field, f"of shape {value.shape}", f"to fit {shape}")
    place.require(value.dtype.kind != "f" or not np.isnan(value).any(), field, "NaN", "a number")


def _verify_fields(place: Place, op: Elementwise, dtype: str | None) -> None:
    """The rules of one operation whose constants fit."""
    match op:
        case Fma(factor, value):
            _is_float(place, op, dtype, ("float32",))
            for constant in (factor, value):
                legal = constant.dtype.name in ("float32", "float64")
                place.require(legal, "dtype of Fma", constant.dtype, "float32, or float64 where one product is exact")
        case Cast(target):
            place.require(target in DTYPES, "Cast.dtype", target, "a dtype of tensors")
        case Constant(value):
            place.require(value.dtype.name in DTYPES, "Constant.value", value.dtype, "a dtype of tensors")
        case Lookup(values):
            place.require(dtype is None or dtype in DTYPES - {"bool"}, "Lookup input", dtype, "numbers")
            place.require(values.dtype.name in DTYPES, "Lookup.values", values.dtype, "a dtype of tensors")
        case Activation(kind, alpha, beta):
            place.require(kind in activations.KINDS, "Activation.kind", kind, "a known function")
            place.require(bool(np.isfinite([alpha, beta]).all()), "Activation", (alpha, beta), "finite parameters")
            if kind not in activations.OF_INTEGERS:
                _is_float(place, op, dtype)
        case Dequantize(scale, zero_point):
            place.require(dtype is None or np.dtype(dtype).kind in "iu", "Dequantize input", dtype, "an integer dtype")
            _positive(place, op, scale=scale)
            _int64(place, op, zero_point=zero_point)
        case IntQuant(scale, zero_point, _, _) | SignedBit(scale, zero_point):
            _is_float(place, op, dtype)
            _positive(place, op, scale=scale)
            place.require(np.isfinite(zero_point).all(), f"{type(op).__name__}.zero_point", zero_point, "finite")
        case Bipolar(scale, divisor):
            _is_float(place, op, dtype)
            _positive(place, op, scale=scale, divisor=divisor)
        case Trunc():
            _is_float(place, op, dtype)
            _positive(place, op, scale=op.scale, divisor=op.divisor, out_scale=op.out_scale)
            for zero in (op.zero_point, op.out_zero_point):
                place.require(np.isfinite(zero).all(), "Trunc zero point", zero, "finite")
        case MultiThreshold(thresholds, out_scale, out_bias):
            place.require(len(thresholds) > 0, "MultiThreshold.thresholds", "empty", "one threshold or more")
            fine = bool(np.isfinite([out_scale, out_bias]).all()) and out_scale != 0
            place.require(fine, "MultiThreshold output", (out_scale, out_bias), "a finite scale that is not 0")
        case QuantizeLinear():
            _positive(place, op, scale=op.scale)
            _int64(place, op, zero_point=op.zero_point)
            _codes_fit(place, op.type, op.dtype)
        case Requantize():
            arrays = {"multiplier": op.multiplier, "add": op.add, "shift": op.shift, "zero_point": op.zero_point}
            _int64(place, op, **arrays)
            place.require(((op.shift >= 0) & (op.shift < 63)).all(), "Requantize.shift", op.shift, "0 to 62")
            _codes_fit(place, op.type, op.dtype)
        case IntegerRatio():
            _int64(place, op, multiplier=op.multiplier, add=op.add, divisor=op.divisor)
            place.require((op.divisor > 0).all(), "IntegerRatio.divisor", op.divisor, "greater than 0")
        case IntegerActivation():
            count = {IntegerKind.GELU: 2, IntegerKind.HARDSWISH: 3}[op.kind]
            place.require(
                len(op.parameters) == count, "IntegerActivation.parameters", op.parameters, f"{count} of them"
            )
        case FloatQuant():
            _is_float(place, op, dtype)
            _positive(place, op, scale=op.scale)
            steps = op.largest * 2.0**-op.step
            place.require(op.mantissa >= 0, "FloatQuant.mantissa", op.mantissa, "0 or more")
            whole = bool(np.isfinite(steps)) and steps > 0 and steps == int(steps)
            place.require(whole, "FloatQuant.largest", op.largest, f"a multiple of 2^{op.step}")
        case Pair():
            _verify_pair(place, op, dtype)
        case FixedAdd(other):
            place.require(dtype in (None, "int8"), "FixedAdd input", dtype, "int8")
            place.require(((other >= -128) & (other <= 127)).all(), "FixedAdd.other", other, "int8 numbers")
        case BinaryOf() | Where():
            raise AssertionError("checked chain by chain")
        case _:
            for value in constants(op).values():
                place.require(dtype in (None, value.dtype.name), f"dtype of {type(op).__name__}", value.dtype, dtype)


def _verify_pair(place: Place, op: Pair, dtype: str | None) -> None:
    place.require(dtype in (None, "uint16"), "Pair input", dtype, "uint16")
    place.require(op.dtype in ("int8", "uint8"), "Pair.dtype", op.dtype, "int8 or uint8")
    _codes_fit(place, op.type, op.dtype)
    fixed = op.kind is PairOp.FIXED
    place.require((op.fixed is not None) == fixed, "Pair.fixed", op.fixed, "parameters of FIXED alone")
    count = 0 if fixed else 3
    place.require(len(op.scales) == len(op.zeros) == count, "Pair.scales", op.scales, f"{count} scales and zero points")
    place.require(all(np.isfinite(s) and s > 0 for s in op.scales), "Pair.scales", op.scales, "greater than 0")


def _result_dtype(op: Elementwise, dtype: str | None) -> str | None:
    """The dtype that evaluation gives: one element is evaluated."""
    match op:
        case Cast(target):
            return target
        case _ if dtype is None:
            return None
        case _:
            first = {
                name: value.reshape(*value.shape[: lead_axes(op, name)], -1)[..., :1]
                for name, value in constants(op).items()
            }
            return str(apply(with_constants(op, first), np.zeros(1, dtype)).dtype)


def _is_float(
    place: Place, op: Elementwise, dtype: str | None, allowed: tuple[str, ...] = ("float16", "float32", "float64")
) -> None:
    place.require(dtype is None or dtype in allowed, f"{type(op).__name__} input", dtype, " or ".join(allowed))


def _positive(place: Place, op: Elementwise, **scales: Array) -> None:
    for name, value in scales.items():
        legal = bool(np.isfinite(value).all() and (value > 0).all())
        place.require(legal, f"{type(op).__name__}.{name}", value, "finite and greater than 0")


def _int64(place: Place, op: Elementwise, **values: Array) -> None:
    for name, value in values.items():
        place.require(value.dtype == np.int64, f"{type(op).__name__}.{name}", value.dtype, "int64")


def _codes_fit(place: Place, type_: IntType, dtype: str) -> None:
    if not place.require(dtype in DTYPES - {"bool"}, "dtype of codes", dtype, "a dtype of numbers"):
        return
    if np.dtype(dtype).kind == "f":
        least, most = -(2 << np.finfo(dtype).nmant), 2 << np.finfo(dtype).nmant
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    place.require(
        least <= type_.lo and type_.hi <= most, "type of codes", type_, f"integers that {dtype} holds exactly"
    )
