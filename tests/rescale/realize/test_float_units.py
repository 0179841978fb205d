"""Pipelines of float32 units, evaluated in numpy, against the model's own operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Accumulator, Affine, Encoding, IntegerEncoding
from hlsgen.ir.evaluate import code_type
from hlsgen.ir.ops import Add, Cast, Dequantize, Elementwise, IntQuant, Max, Min, Mul, QuantizeLinear, Quantizer
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType, Rounding, int_type, product_to_float32, round_float
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatUnits, RoundToFloat, ToCode, ToFloat
from hlsgen.rescale.realize.float_units import build

Array = NDArray[Any]
f32 = np.float32
SETS = 3
TYPES = {
    name: IntType(int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in ("int8", "uint8", "int16", "uint16")
}
OPS = {"ADD": np.add, "MUL": np.multiply, "DIV": np.divide, "MAX": np.maximum, "MIN": np.minimum}


@np.errstate(all="ignore")
def run(found: FloatUnits, x: Array) -> Array:
    """Codes (n, sets) through the units, as their contracts say."""
    for unit in found.units:
        match unit:
            case ToFloat(type_, shift, offset, mantissa, exponent):
                assert x.min() >= type_.lo
                assert x.max() <= type_.hi
                x = product_to_float32((x << shift) + offset, np.ldexp(mantissa.astype(np.float64), exponent))
            case Arithmetic(op, value):
                assert x.dtype == value.dtype == np.float32
                x = OPS[op](x, value)
            case RoundToFloat(mode):
                x = round_float(x, mode)
            case ToCode(mode, type_, low, high):
                y = np.clip(np.where(np.isnan(x), low, x), low, high)
                assert mode < 7
                x = np.clip(round_float(y, Rounding(mode)).astype(np.int64), type_.lo, type_.hi)
            case _:
                raise AssertionError(unit)
    return x


def linear(dtype: str, scale: Any, zero: Any, mode: Rounding = Rounding.ROUND) -> QuantizeLinear:
    scales, zeros = np.broadcast_to(f32(scale), SETS), np.broadcast_to(np.int64(zero), SETS)
    return QuantizeLinear(scales, zeros, TYPES[dtype], dtype, mode)


def function(source: Encoding, ops: tuple[Elementwise, ...], end: Quantizer, bits: int) -> StepFunction:
    type_, zero = int_type(bits, True), np.zeros(SETS, np.int64)
    return StepFunction("f", source, ops, end, np.arange(SETS), zero + type_.lo, zero + type_.hi, type_, code_type(end))


def whole(dtype: str, offset: Any = 0) -> IntegerEncoding:
    return IntegerEncoding(dtype, np.broadcast_to(np.int64(offset), SETS))


def each(*values: float, dtype: Any = f32) -> Array:
    return np.array(values, dtype)


SUM = Accumulator(1, np.array([5, -70, 900]), np.float64(f32([0.0011, 0.003, 0.0007])) * np.float64(f32(0.013)))
BIAS = Add(each(0.3, -1.7, 20))
REAL = Dequantize(each(0.0011, 0.003, 0.0007), np.array([0, 30, -500]))
CASES: list[tuple[Encoding, tuple[Elementwise, ...], Quantizer, int]] = [
    (SUM, (BIAS,), linear("int16", 0.0123, 0), 27),
    (SUM, (BIAS,), linear("uint16", [0.01, 0.02, 0.005], [32768, 7, 65535]), 27),
    (SUM, (BIAS, Max(each(0, 0, 0))), linear("uint8", 0.25, 3), 27),
    (SUM, (BIAS,), linear("int8", 1, 0, Rounding.DOWN), 27),
    (SUM, (BIAS,), linear("int8", 1, -5, Rounding.DOWN), 27),
    (SUM, (BIAS, linear("int16", 0.0123, [0, 5, 100]), REAL, Max(each(0, 0, 0))), linear("uint8", 0.01, 3), 27),
    (whole("int32"), (Cast("float32"), Mul(each(1e-5, 3e-5, 7e-6))), linear("int16", 1, 5), 31),
    (whole("int32", 77), (Add(each(10**6, -99, 5, dtype=np.int32)), Cast("float32")), linear("int16", 999, 5), 30),
    (whole("int16", [0, 9, -9]), (REAL, BIAS), linear("uint8", 0.02, 9), 15),
    (whole("int16"), (Max(each(0, -5, 5, dtype=np.int16)), REAL), linear("uint8", 0.02, 9), 15),
    (whole("int16"), (Min(each(0, -5, 5, dtype=np.int16)), REAL), linear("uint8", 0.02, 100), 15),
    (
        whole("int8"),
        (Cast("int32"), Mul(each(3, -5, 99, dtype=np.int32)), Add(each(3, -5, 99, dtype=np.int32)), Cast("float32")),
        linear("int16", 0.7, 1),
        8,
    ),
    (
        whole("int16"),
        (Min(each(9, 99, 999, dtype=np.int16)), Cast("float32"), Cast("float32")),
        linear("int16", 3, 0),
        15,
    ),
]


def points(f: StepFunction) -> Array:
    """All inputs, or many of them, ties and ends."""
    if f.input_type.bits <= 16:
        return np.arange(f.input_type.lo, f.input_type.hi + 1)[:, None] + np.zeros(SETS, np.int64)
    r = np.random.default_rng(0)
    near = r.integers(-(1 << 12), 1 << 12, (20000, SETS))
    wide = r.integers(f.lo, f.hi + 1, (100000, SETS))
    return np.concatenate([f.lo[None], f.hi[None], near, wide, wide >> 6])


@pytest.mark.parametrize("case", range(len(CASES)))
def test_units_compute_the_operations(case: int) -> None:
    f = function(*CASES[case])
    x = points(f)
    wanted = f.evaluate(x)
    assert len(np.unique(wanted)) > 8
    assert (run(build(f), x) == wanted).all()


def test_zero_points_come_behind_the_rounding() -> None:
    """Ties: adding an odd zero point first would round them the other way."""
    f = function(Accumulator(1, np.zeros(SETS, np.int64), np.full(SETS, 0.5)), (), linear("int8", 1, [1, 2, 3]), 9)
    x = points(f)
    assert (run(build(f), x) == f.evaluate(x)).all()
    before = IntQuant(np.ones(SETS, f32), f32([1, 2, 3]), TYPES["int8"], Rounding.ROUND)
    other = function(f.source, (), before, 9)
    assert (other.evaluate(x) != f.evaluate(x)).any(axis=0).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("source", "ops", "bits"),
    [
        (whole("int8", 100), (Cast("float32"),), 8),
        (whole("int16"), (Add(each(9, 32767, 9, dtype=np.int16)), Cast("float32")), 15),
        (whole("int32"), (Max(each(0, 0, 0, dtype=np.int32)), Cast("float32")), 30),
        (whole("int32"), (Cast("int8"), Cast("float32")), 20),
        (whole("int32"), (Cast("float16"), Cast("float32")), 8),
        (whole("int32"), (Mul(each(1, 1 << 10, 1, dtype=np.int32)), Cast("float32")), 16),
    ],
)
def test_integers_that_float32_does_not_hold(source: Encoding, ops: tuple[Elementwise, ...], bits: int) -> None:
    with pytest.raises(HlsgenError, match="no float32 unit for integer arithmetic"):
        build(function(source, ops, linear("int16", 3, 0), bits))


def test_codes_that_float32_does_not_hold() -> None:
    end = QuantizeLinear(each(1, 1, 1), np.zeros(SETS, np.int64), IntType(-(1 << 31), (1 << 31) - 1), "int32")
    with pytest.raises(HlsgenError, match="more than 22 bits"):
        build(function(SUM, (), end, 27))
    single = function(Affine(each(1, 1, 1), each(0, 0, 0)), (), linear("int16", 3, 0), 16)
    assert isinstance(build(single), FloatUnits)
