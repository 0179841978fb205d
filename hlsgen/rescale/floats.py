"""The universal realization: the float32 operations themselves, one hardware unit each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_never

from hlsgen.errors import fail
from hlsgen.fixed import Array, IntType, Rounding
from hlsgen.ir import (
    Accumulator,
    Affine,
    CountScale,
    Decode,
    Fixed,
    FloatBits,
    Whole,
)
from hlsgen.operations import (
    Activation,
    Add,
    Bipolar,
    Cast,
    Dequantize,
    Div,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    QuantizeLinear,
    Quantizer,
    Requantize,
    SignedBit,
    Trunc,
)
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.thresholds import Thresholds
from hlsgen.semantics import UNCLAMPED, code_type, decoding, float_to_key

BIPOLAR_MODE = 7
MAX_COMPARE = 4095


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
class Compare:
    """hg_float_key and hg_threshold: the code counts the thresholds (keys) that x reaches."""

    thresholds: Thresholds


Unit = Arithmetic | RoundToFloat | ToFloat | ToCode | Compare


@dataclass(frozen=True, eq=False)
class FloatUnits:
    """A pipeline of float32 units; input are codes, or float32 bits, output codes."""

    units: tuple[Unit, ...]


def build(f: StepFunction) -> FloatUnits:
    """The literal chain of f. Raises HG037 for what float32 units cannot do."""
    units = _decode(f, f.source, f.input_type, first=True)
    for op in f.ops:
        units += _operation(f, op)
    units += _quantize(f, f.quantizer)
    return FloatUnits(tuple(_for_all_sets(unit, f.sets) for unit in units))


#: LUT of a lane of each arithmetic unit, and of the others, from Yosys.
_LUT = {"ADD": 450.0, "MUL": 900.0, "DIV": 1100.0, "MAX": 60.0, "MIN": 60.0}
_OTHER_LUT = 350.0


def cost(found: FloatUnits, table: Array) -> tuple[float, int, int]:
    """(LUT without DSP blocks, DSP blocks, bits of block memory)."""
    each = [_LUT[unit.op] if isinstance(unit, Arithmetic) else _OTHER_LUT for unit in found.units]
    return sum(each) * table.shape[1], 0, 0


def _for_all_sets(unit: Unit, sets: int) -> Unit:
    if isinstance(unit, Arithmetic):
        return Arithmetic(unit.op, np.broadcast_to(unit.value, (sets,)))
    return unit


def _operation(f: StepFunction, op: Elementwise) -> list[Unit]:
    match op:
        case Mul(value):
            return [Arithmetic("MUL", value)]
        case Add(value):
            return [Arithmetic("ADD", value)]
        case Div(value):
            return _divide(f, value)
        case Max(value):
            return [Arithmetic("MAX", value)]
        case Min(value):
            return [Arithmetic("MIN", value)]
        case Cast() | Dequantize() | Activation() | Fma():
            raise fail("HG037", f.name, f"there is no float32 unit for {getattr(op, 'kind', type(op).__name__)}.")
        case _:
            return [*_quantize(f, op), *_decode(f, decoding(op), code_type(op))]


def _divide(f: StepFunction, value: Array) -> list[Unit]:
    """x / value; by a power of two it is the same as a product with its reciprocal."""
    _only_float32(f, value)
    if (value == 1).all():
        return []
    inverse = np.float32(1) / value
    mantissa, _ = np.frexp(value)
    exact = (np.abs(mantissa) == 0.5).all() and np.isfinite(inverse).all() and (np.abs(inverse) >= 2.0**-126).all()
    return [Arithmetic("MUL", inverse.astype(np.float32))] if exact else [Arithmetic("DIV", value)]


def _quantize(f: StepFunction, op: Quantizer) -> list[Unit]:
    match op:
        case IntQuant():
            _only_float32(f, op.zero_point)
            return [*_divide(f, op.scale), *_add(op.zero_point), _to_code(f, op.mode, op.type)]
        case Bipolar():
            sign = ToCode(BIPOLAR_MODE, IntType(0, 1), np.zeros(f.sets, np.float32), np.ones(f.sets, np.float32))
            return [*_divide(f, op.divisor), sign]
        case Trunc():
            _only_float32(f, op.zero_point)
            if op.mode in (Rounding.HALF_UP, Rounding.HALF_DOWN):
                _only_float32(f, op.divisor)
            rounded: list[Unit] = [*_divide(f, op.scale), *_add(op.zero_point), RoundToFloat(Rounding.ROUND)]
            divide = _divide(f, op.divisor.astype(np.float32))
            if op.type is None:
                limit = np.full(f.sets, np.inf, np.float32)
                return [*rounded, *divide, ToCode(int(op.mode), UNCLAMPED, -limit, limit)]
            return [*rounded, *divide, _to_code(f, op.mode, op.type)]
        case SignedBit():
            _only_float32(f, op.zero_point)
            zeros = np.zeros((2, f.sets), np.float32)
            return [*_divide(f, op.scale), *_add(op.zero_point), _compare(f, zeros, -1)]
        case QuantizeLinear() | Requantize() | FloatQuant() | Pair() | FixedAdd():
            raise fail("HG037", f.name, f"there is no float32 unit for {type(op).__name__}.")
        case MultiThreshold():
            if len(op.thresholds) > MAX_COMPARE:
                raise fail("HG037", f.name, f"{len(op.thresholds)} thresholds; at most {MAX_COMPARE}.")
            return [_compare(f, op.thresholds, 0)]
        case _:
            assert_never(op)


def _compare(f: StepFunction, thresholds: Array, base: int) -> Compare:
    """x >= T on order keys. T may be wider than float32: the next float32 above decides alike."""
    with np.errstate(over="ignore"):
        single = thresholds.astype(np.float32)
    single = np.where(single < thresholds, np.nextafter(single, np.float32(np.inf)), single)
    # -0.0 equals 0.0 but has the smaller key.
    keys = float_to_key(np.where(single == 0, np.float32(-0.0), single).astype(np.float32))
    table = np.broadcast_to(np.sort(keys, axis=0), (len(keys), f.sets))
    return Compare(Thresholds(table, np.zeros(f.sets, np.bool_), base))


def _to_code(f: StepFunction, mode: Rounding, type_: IntType) -> ToCode:
    low, high = (np.full(f.sets, bound, np.float32) for bound in (type_.lo, type_.hi))
    return ToCode(int(mode), type_, low, high)


def _add(value: Array) -> list[Unit]:
    return [Arithmetic("ADD", value)] if value.any() else []


def _decode(f: StepFunction, meaning: Decode, type_: IntType, first: bool = False) -> list[Unit]:
    def plain(exponent: int = 0) -> ToFloat:
        whole = np.zeros(f.sets, np.int64)
        return ToFloat(type_, 0, whole, whole + 1, whole + exponent)

    match meaning:
        case FloatBits():
            assert first
            return []
        case Fixed(fraction):
            return [plain(-fraction)]
        case Affine(scale, zero):
            _only_float32(f, scale)
            _only_float32(f, zero)
            scaled: list[Unit] = [] if (scale == 1).all() else [Arithmetic("MUL", scale)]
            return [plain(), *_add(-zero), *scaled]
        case CountScale(scale_, bias):
            factor, start = (np.full(f.sets, v, np.float32) for v in (scale_, bias))
            return [plain(), Arithmetic("MUL", factor), *_add(start)]
        case Accumulator():
            mantissa, exponent = np.frexp(np.broadcast_to(meaning.scale, f.sets))
            whole = (mantissa * 2.0**48).astype(np.int64)
            shift = meaning.factor.bit_length() - 1
            offset = np.broadcast_to(meaning.offset, f.sets)
            return [ToFloat(type_, shift, offset, whole, exponent.astype(np.int64) - 48)]
        case Whole():
            raise fail("HG037", f.name, "there is no float32 unit for integer arithmetic.")
        case _:
            assert_never(meaning)


def _only_float32(f: StepFunction, value: Array) -> None:
    if value.dtype == np.float32:
        return
    raise fail(
        "HG037", f.name, f"a parameter of type {value.dtype} makes numpy compute in float64, with too many codes.",
        "Store scale and zero point as float32.",
    )  # fmt: skip
