"""Rules of elementwise operations and quantizers.

1. Every constant broadcasts to the tensor without making it larger, and is not NaN.
2. The constants of arithmetic have the tensor's dtype: numpy's promotion never decides.
3. Scales and divisors are finite and greater than 0; zero points are finite.
4. Codes that are numbers of a dtype are exact in it (some files carry integers in float32 tensors).
   Integer parameters are int64.
5. Both chains of a BinaryOf give one dtype; a Where has a boolean condition and two chains of one dtype.
6. The input of a Pair is 16-bit pairs; the input of a FixedAdd is int8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import ops
from hlsgen.ir.evaluate import apply, constants, lead_axes, with_constants
from hlsgen.ir.model import Shape
from hlsgen.ir.verify.violations import Place
from hlsgen.ir.verify.window import fits
from hlsgen.numerics import activations
from hlsgen.numerics.fixed import Array, IntType

#: The dtypes that a tensor can have.
DTYPES = frozenset(
    ["bool", "float16", "float32", "float64"] + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


def verify_chain(place: Place, operations: Sequence[ops.Elementwise], shape: Shape, dtype: str | None) -> str | None:
    """Check a chain of operations; return the dtype of the last result, as `verify_op` does."""
    for op in operations:
        dtype = verify_op(place, op, shape, dtype)
    return dtype


def verify_op(place: Place, op: ops.Elementwise, shape: Shape, dtype: str | None) -> str | None:
    """Check one operation on a tensor of that shape and dtype; return the dtype of the result.

    A dtype is None if it is unknown: after host operations and after violations. Rules about it are then skipped.
    """
    violations_before = len(place.violations)
    if isinstance(op, ops.BinaryOf | ops.Where):
        return _verify_chains(place, op, shape, dtype)
    for name, value in constants(op).items():
        _verify_constant(place, f"{type(op).__name__}.{name}", value, lead_axes(op, name), shape)
    if len(place.violations) == violations_before:
        _verify_fields(place, op, dtype)
    return None if len(place.violations) > violations_before else _result_dtype(op, dtype)


def _verify_chains(place: Place, op: ops.BinaryOf | ops.Where, shape: Shape, dtype: str | None) -> str | None:
    name, count = type(op).__name__, 2 if isinstance(op, ops.BinaryOf) else 3
    if not place.require(len(op.ways) == count, f"{name}.ways", f"{len(op.ways)} chains", f"{count} chains"):
        return None
    dtypes = [verify_chain(place, chain, shape, dtype) for chain in op.ways]
    if isinstance(op, ops.Where):
        place.require(dtypes[0] in (None, "bool"), f"{name} condition", dtypes[0], "bool")
    left_dtype, right_dtype = dtypes[-2:]
    equal = place.require(
        None in (left_dtype, right_dtype) or left_dtype == right_dtype,
        f"dtypes of {name}",
        f"{left_dtype}, {right_dtype}",
        "one dtype",
    )
    return left_dtype if equal else None


def _verify_constant(place: Place, field: str, value: Array, lead: int, shape: Shape) -> None:
    constant_shape = value.shape[lead:]
    legal = value.ndim >= lead and value.size > 0 and fits(constant_shape, shape)
    place.require(legal, field, f"of shape {value.shape}", f"to fit {shape}")
    place.require(value.dtype.kind != "f" or not np.isnan(value).any(), field, "NaN", "a number")


def _verify_fields(place: Place, op: ops.Elementwise, dtype: str | None) -> None:
    """Check the rules of one operation whose constants broadcast."""
    match op:
        case ops.Dequantize(scale, zero_point):
            place.require(dtype is None or np.dtype(dtype).kind in "iu", "Dequantize input", dtype, "an integer dtype")
            _positive(place, op, scale=scale)
            _int64(place, op, zero_point=zero_point)
        case ops.IntQuant() | ops.SignedBit() | ops.Bipolar() | ops.Trunc() | ops.FloatQuant():
            _is_float(place, op, dtype)
            _verify_float_quantizer(place, op)
        case ops.MultiThreshold() | ops.QuantizeLinear():
            _verify_code_quantizer(place, op)
        case ops.Requantize() | ops.IntegerRatio() | ops.IntegerActivation():
            _verify_integer_function(place, op)
        case ops.FixedAdd(other):
            place.require(dtype in (None, "int8"), "FixedAdd input", dtype, "int8")
            place.require(((other >= -128) & (other <= 127)).all(), "FixedAdd.other", other, "int8 numbers")
        case ops.Pair():
            _verify_pair(place, op, dtype)
        case ops.BinaryOf() | ops.Where():
            raise AssertionError("each chain is checked by itself")
        case _:
            _verify_arithmetic(place, op, dtype)


def _verify_float_quantizer(
    place: Place, op: ops.IntQuant | ops.SignedBit | ops.Bipolar | ops.Trunc | ops.FloatQuant
) -> None:
    """Check a quantizer from floats to floats: its scales, and which codes it has."""
    match op:
        case ops.IntQuant(scale, zero_point, _, _) | ops.SignedBit(scale, zero_point):
            _positive(place, op, scale=scale)
            place.require(np.isfinite(zero_point).all(), f"{type(op).__name__}.zero_point", zero_point, "finite")
        case ops.Bipolar(scale, divisor):
            _positive(place, op, scale=scale, divisor=divisor)
        case ops.Trunc():
            _positive(place, op, scale=op.scale, divisor=op.divisor, out_scale=op.out_scale)
            for zero_point in (op.zero_point, op.out_zero_point):
                place.require(np.isfinite(zero_point).all(), "Trunc zero point", zero_point, "finite")
        case ops.FloatQuant():
            _positive(place, op, scale=op.scale)
            largest_code = op.largest * 2.0**-op.step
            place.require(op.mantissa >= 0, "FloatQuant.mantissa", op.mantissa, "0 or more")
            is_multiple = bool(np.isfinite(largest_code)) and largest_code > 0 and largest_code == int(largest_code)
            place.require(is_multiple, "FloatQuant.largest", op.largest, f"a multiple of 2^{op.step}")
        case _:
            assert_never(op)


def _verify_code_quantizer(place: Place, op: ops.MultiThreshold | ops.QuantizeLinear) -> None:
    """Check a quantizer from numbers to codes."""
    if isinstance(op, ops.MultiThreshold):
        place.require(len(op.thresholds) > 0, "MultiThreshold.thresholds", "empty", "one threshold or more")
        legal = bool(np.isfinite([op.out_scale, op.out_bias]).all()) and op.out_scale != 0
        output = (op.out_scale, op.out_bias)
        place.require(legal, "MultiThreshold output", output, "a finite scale that is not 0")
        return
    _positive(place, op, scale=op.scale)
    _int64(place, op, zero_point=op.zero_point)
    _codes_fit(place, op.type, op.dtype)


def _verify_integer_function(place: Place, op: ops.Requantize | ops.IntegerRatio | ops.IntegerActivation) -> None:
    """Check the integer constants of a function of integers."""
    match op:
        case ops.Requantize():
            arrays = {"multiplier": op.multiplier, "add": op.add, "shift": op.shift, "zero_point": op.zero_point}
            _int64(place, op, **arrays)
            largest_shift = 1 << 10 if op.convention is ops.Convention.FLOAT64 else 62
            in_range = (op.shift >= 0) & (op.shift <= largest_shift)
            place.require(in_range.all(), "Requantize.shift", op.shift, f"0 to {largest_shift}")
            _codes_fit(place, op.type, op.dtype)
        case ops.IntegerRatio():
            _int64(place, op, multiplier=op.multiplier, add=op.add, divisor=op.divisor)
            place.require((op.divisor > 0).all(), "IntegerRatio.divisor", op.divisor, "greater than 0")
        case ops.IntegerActivation():
            count = {ops.IntegerKind.GELU: 2, ops.IntegerKind.HARDSWISH: 3}[op.kind]
            place.require(
                len(op.parameters) == count, "IntegerActivation.parameters", op.parameters, f"{count} of them"
            )
        case _:
            assert_never(op)


def _verify_arithmetic(place: Place, op: ops.Elementwise, dtype: str | None) -> None:
    """Check arithmetic, functions and casts of a tensor's numbers."""
    match op:
        case ops.Fma(factor, value):
            _is_float(place, op, dtype, ("float32",))
            for constant in (factor, value):
                legal = constant.dtype.name in ("float32", "float64")
                place.require(legal, "dtype of Fma", constant.dtype, "float32, or float64 where one product is exact")
        case ops.Cast(target):
            place.require(target in DTYPES, "Cast.dtype", target, "a dtype of tensors")
        case ops.Constant(value):
            place.require(value.dtype.name in DTYPES, "Constant.value", value.dtype, "a dtype of tensors")
        case ops.Lookup(values):
            place.require(dtype is None or dtype in DTYPES - {"bool"}, "Lookup input", dtype, "numbers")
            place.require(values.dtype.name in DTYPES, "Lookup.values", values.dtype, "a dtype of tensors")
        case ops.Activation(kind, alpha, beta):
            place.require(kind in activations.KINDS, "Activation.kind", kind, "a known function")
            place.require(bool(np.isfinite([alpha, beta]).all()), "Activation", (alpha, beta), "finite parameters")
            if kind not in activations.OF_INTEGERS:
                _is_float(place, op, dtype)
        case _:
            for value in constants(op).values():
                place.require(dtype in (None, value.dtype.name), f"dtype of {type(op).__name__}", value.dtype, dtype)


def _verify_pair(place: Place, op: ops.Pair, dtype: str | None) -> None:
    place.require(dtype in (None, "uint16"), "Pair input", dtype, "uint16")
    place.require(op.dtype in ("int8", "uint8"), "Pair.dtype", op.dtype, "int8 or uint8")
    _codes_fit(place, op.type, op.dtype)
    fixed = op.kind is ops.PairOp.FIXED
    place.require((op.fixed is not None) == fixed, "Pair.fixed", op.fixed, "parameters of FIXED alone")
    count = 0 if fixed else 3
    place.require(len(op.scales) == len(op.zeros) == count, "Pair.scales", op.scales, f"{count} scales and zero points")
    place.require(all(np.isfinite(s) and s > 0 for s in op.scales), "Pair.scales", op.scales, "greater than 0")


def _result_dtype(op: ops.Elementwise, dtype: str | None) -> str | None:
    """The dtype of the result, found by evaluating one element."""
    match op:
        case ops.Cast(target):
            return target
        case _ if dtype is None:
            return None
        case _:
            one_element = {
                name: value.reshape(*value.shape[: lead_axes(op, name)], -1)[..., :1]
                for name, value in constants(op).items()
            }
            return str(apply(with_constants(op, one_element), np.zeros(1, dtype)).dtype)


def _is_float(
    place: Place, op: ops.Elementwise, dtype: str | None, allowed: tuple[str, ...] = ("float16", "float32", "float64")
) -> None:
    place.require(dtype is None or dtype in allowed, f"{type(op).__name__} input", dtype, " or ".join(allowed))


def _positive(place: Place, op: ops.Elementwise, **scales: Array) -> None:
    for name, value in scales.items():
        legal = bool(np.isfinite(value).all() and (value > 0).all())
        place.require(legal, f"{type(op).__name__}.{name}", value, "finite and greater than 0")


def _int64(place: Place, op: ops.Elementwise, **values: Array) -> None:
    for name, value in values.items():
        place.require(value.dtype == np.int64, f"{type(op).__name__}.{name}", value.dtype, "int64")


def _codes_fit(place: Place, type_: IntType, dtype: str) -> None:
    if not place.require(dtype in DTYPES - {"bool"}, "dtype of codes", dtype, "a dtype of numbers"):
        return
    if np.dtype(dtype).kind == "f":
        lowest, highest = -(2 << np.finfo(dtype).nmant), 2 << np.finfo(dtype).nmant
    else:
        lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    place.require(
        lowest <= type_.lo and type_.hi <= highest, "type of codes", type_, f"integers that {dtype} holds exactly"
    )
