"""Realization `float-units`: the float32 operations of the chain themselves, a hardware unit each.

It is large, but needs neither steps nor a search: each unit computes the operation of the model. It is the last resort
for functions with too many steps.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.diagnostics import fail
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount, ops
from hlsgen.ir.evaluate import UNCLAMPED, code_type, decoding, float_to_key
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding
from hlsgen.rescale.realize import float_from_integer
from hlsgen.rescale.realize.float_ops import (
    Arithmetic,
    FloatCompare,
    FloatOp,
    FloatUnits,
    RoundToFloat,
    ToCode,
    ToFloat,
    to_float,
)
from hlsgen.rescale.realize.thresholds import Thresholds

__all__ = ["Arithmetic", "FloatCompare", "FloatOp", "FloatUnits", "RoundToFloat", "ToCode", "ToFloat", "build", "cost"]

#: Mode of `ToCode` that returns the sign bit.
BIPOLAR_MODE = 7
#: Most thresholds of a MultiThreshold.
MAX_COMPARE = 4095
#: Bound of codes and zero points together, for zero points that are added to a rounded number.
_MAX_CODE = 1 << 22


def build(f: StepFunction) -> FloatUnits:
    """The units of f, one for each operation in order. Raises HG037 for an operation that float32 units cannot do."""
    return _of_all_sets(f, [*_values(f), *_quantize(f, f.quantizer)])


def values(f: StepFunction) -> FloatUnits:
    """The units that compute the float32 number before the quantizer of f. Raises HG037 as `build`."""
    return _of_all_sets(f, _values(f))


def _values(f: StepFunction) -> list[FloatOp]:
    units, at = _enter(f, f.source, f.input_type, f.lo, f.hi, f.ops)
    while at < len(f.ops):
        op, at = f.ops[at], at + 1
        if isinstance(op, ops.Float):
            units += _operation(f, op)
            continue
        type_, zero = code_type(op), np.zeros(f.sets, np.int64)
        units += _quantize(f, op)
        entry_units, covered = _enter(f, decoding(op), type_, zero + type_.lo, zero + type_.hi, f.ops[at:])
        units, at = units + entry_units, at + covered
    return units


def _enter(
    f: StepFunction, meaning: Encoding, type_: IntType, lo: Array, hi: Array, operations: tuple[ops.Elementwise, ...]
) -> tuple[list[FloatOp], int]:
    """The units that turn codes lo..hi, int64 (sets,), into float32, and the number of `ops` that they cover."""
    if not isinstance(meaning, IntegerEncoding):
        return _decode(f, meaning, type_), 0
    conversion = float_from_integer.convert(meaning, type_, lo, hi, operations)
    if conversion is None:
        raise fail("HG037", f.name, "there is no float32 unit for integer arithmetic.")
    return conversion


#: LUT of a lane of each arithmetic unit, and of any other unit, from synthesis by Yosys.
_LUT = {"ADD": 450.0, "MUL": 900.0, "DIV": 1100.0, "MAX": 60.0, "MIN": 60.0}
_OTHER_LUT = 350.0


def cost(realization: FloatUnits, table: Array) -> tuple[float, int, int]:
    """(LUT, DSP blocks, bits of block RAM), of hardware without DSP blocks."""
    lane_luts = [_LUT[unit.op] if isinstance(unit, Arithmetic) else _OTHER_LUT for unit in realization.units]
    return sum(lane_luts) * table.shape[1], 0, 0


def _of_all_sets(f: StepFunction, units: list[FloatOp]) -> FloatUnits:
    return FloatUnits(tuple(_for_all_sets(unit, f.sets) for unit in units))


def _for_all_sets(unit: FloatOp, sets: int) -> FloatOp:
    """The unit with a constant for each set."""
    if isinstance(unit, Arithmetic):
        return Arithmetic(unit.op, np.broadcast_to(unit.value, (sets,)))
    return unit


def _operation(f: StepFunction, op: ops.Float) -> list[FloatOp]:
    """The units of one operation on float32. Raises HG037 if there are none."""
    match op:
        case ops.Mul(value):
            return [Arithmetic("MUL", value)]
        case ops.Add(value):
            return [Arithmetic("ADD", value)]
        case ops.Div(value):
            return _divide(f, value)
        case ops.Max(value):
            return [Arithmetic("MAX", value)]
        case ops.Min(value):
            return [Arithmetic("MIN", value)]
        case ops.Cast("float32"):
            return []
        case _:
            raise fail("HG037", f.name, f"there is no float32 unit for {getattr(op, 'kind', type(op).__name__)}.")


def _divide(f: StepFunction, value: Array) -> list[FloatOp]:
    """The units of x / value. A power of two becomes a product with the reciprocal, which is equal and smaller."""
    _only_float32(f, value)
    if (value == 1).all():
        return []
    inverse = np.float32(1) / value
    mantissa, _ = np.frexp(value)
    exact = (np.abs(mantissa) == 0.5).all() and np.isfinite(inverse).all() and (np.abs(inverse) >= 2.0**-126).all()
    return [Arithmetic("MUL", inverse.astype(np.float32))] if exact else [Arithmetic("DIV", value)]


def _quantize(f: StepFunction, op: ops.Quantizer) -> list[FloatOp]:
    """The units that turn float32 into codes. Raises HG037 if there are none."""
    match op:
        case ops.IntQuant():
            _only_float32(f, op.zero_point)
            return [*_divide(f, op.scale), *_add(op.zero_point), _to_code(f, op.mode, op.type)]
        case ops.Bipolar():
            sign = ToCode(BIPOLAR_MODE, IntType(0, 1), np.zeros(f.sets, np.float32), np.ones(f.sets, np.float32))
            return [*_divide(f, op.divisor), sign]
        case ops.Trunc():
            _only_float32(f, op.zero_point)
            if op.mode in (Rounding.HALF_UP, Rounding.HALF_DOWN):
                _only_float32(f, op.divisor)
            rounded: list[FloatOp] = [*_divide(f, op.scale), *_add(op.zero_point), RoundToFloat(Rounding.ROUND)]
            divide = _divide(f, op.divisor.astype(np.float32))
            if op.type is None:
                limit = np.full(f.sets, np.inf, np.float32)
                return [*rounded, *divide, ToCode(int(op.mode), UNCLAMPED, -limit, limit)]
            return [*rounded, *divide, _to_code(f, op.mode, op.type)]
        case ops.SignedBit():
            _only_float32(f, op.zero_point)
            zeros = np.zeros((2, f.sets), np.float32)
            return [*_divide(f, op.scale), *_add(op.zero_point), _compare(f, zeros, -1)]
        case ops.QuantizeLinear():
            return _quantize_linear(f, op)
        case (
            ops.Requantize()
            | ops.FloatQuant()
            | ops.Pair()
            | ops.FixedAdd()
            | ops.IntegerActivation()
            | ops.IntegerRatio()
        ):
            raise fail("HG037", f.name, f"there is no float32 unit for {type(op).__name__}.")
        case ops.MultiThreshold():
            if len(op.thresholds) > MAX_COMPARE:
                raise fail("HG037", f.name, f"{len(op.thresholds)} thresholds; at most {MAX_COMPARE}.")
            return [_compare(f, op.thresholds, 0)]
        case _:
            assert_never(op)


def _quantize_linear(f: StepFunction, op: ops.QuantizeLinear) -> list[FloatOp]:
    """The units of QuantizeLinear, which adds its zero point after the rounding. Below 2^22 that sum is exact."""
    _only_float32(f, op.scale)
    zero = np.broadcast_to(op.zero_point, f.sets)
    if max(abs(op.type.lo), abs(op.type.hi)) + int(np.abs(zero).max()) >= _MAX_CODE:
        raise fail("HG037", f.name, "codes of QuantizeLinear of more than 22 bits are no float32 numbers.")
    if not zero.any():
        return [*_divide(f, op.scale), _to_code(f, op.mode, op.type)]
    rounded: list[FloatOp] = [RoundToFloat(op.mode), Arithmetic("ADD", zero.astype(np.float32))]
    return [*_divide(f, op.scale), *rounded, _to_code(f, Rounding.ROUND, op.type)]


def _compare(f: StepFunction, thresholds: Array, base: int) -> FloatCompare:
    """The unit that counts the thresholds that x reaches, by order keys.

    A threshold may be wider than float32. The next float32 at or above it gives the same result for every float32 x.
    """
    with np.errstate(over="ignore"):
        single = thresholds.astype(np.float32)
    single = np.where(single < thresholds, np.nextafter(single, np.float32(np.inf)), single)
    # -0.0 equals 0.0 but has the smaller key.
    keys = float_to_key(np.where(single == 0, np.float32(-0.0), single).astype(np.float32))
    table = np.broadcast_to(np.sort(keys, axis=0), (len(keys), f.sets))
    return FloatCompare(Thresholds(table, np.zeros(f.sets, np.bool_), base))


def _to_code(f: StepFunction, mode: Rounding, type_: IntType) -> ToCode:
    """The unit that rounds float32 to codes of that type, and saturates."""
    low, high = (np.full(f.sets, bound, np.float32) for bound in (type_.lo, type_.hi))
    return ToCode(int(mode), type_, low, high)


def _add(value: Array) -> list[FloatOp]:
    """The unit that adds `value`, or none if that is 0."""
    return [Arithmetic("ADD", value)] if value.any() else []


def _decode(f: StepFunction, meaning: Encoding, type_: IntType) -> list[FloatOp]:
    """The units that turn codes into the float32 numbers that they represent."""
    zeros = np.zeros(f.sets, np.int64)
    plain = to_float(type_, zeros)
    match meaning:
        case FloatKey():
            return []
        case Fixed(fraction):
            return [ToFloat(type_, 0, zeros, zeros + 1, zeros - fraction)]
        case Affine(scale, zero):
            _only_float32(f, scale)
            _only_float32(f, zero)
            scaled: list[FloatOp] = [] if (scale == 1).all() else [Arithmetic("MUL", scale)]
            return [plain, *_add(-zero), *scaled]
        case ThresholdCount(scale_, bias):
            factor, start = (np.full(f.sets, v, np.float32) for v in (scale_, bias))
            return [plain, Arithmetic("MUL", factor), *_add(start)]
        case Accumulator():
            mantissa, exponent = np.frexp(np.broadcast_to(meaning.scale, f.sets))
            integer_mantissa = (mantissa * 2.0**48).astype(np.int64)
            shift = meaning.factor.bit_length() - 1
            offset = np.broadcast_to(meaning.offset, f.sets)
            return [ToFloat(type_, shift, offset, integer_mantissa, exponent.astype(np.int64) - 48)]
        case IntegerEncoding():
            raise AssertionError("integers are converted with the operations that follow")
        case _:
            assert_never(meaning)


def _only_float32(f: StepFunction, value: Array) -> None:
    """Raises HG037 if a parameter is not float32."""
    if value.dtype == np.float32:
        return
    raise fail(
        "HG037",
        f.name,
        f"a parameter of type {value.dtype} makes numpy compute in float64, with too many codes.",
        "Store scale and zero point as float32.",
    )
