"""Scales from a rescaling's own parameters, against the operations on every input or at all corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlsgen.ir import IntegerEncoding
from hlsgen.ir.ops import Add, Cast, Convention, Float, Mul, Requantize
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale.extract import trace
from hlsgen.rescale.realize import scale_formula
from hlsgen.rescale.realize.scale import Scale, find
from hlsgen.rescale.select import Preference, choose_realization
from hlsgen.rescale.threshold_table import ThresholdTable

INT8, INT16 = IntType(-128, 127), IntType(-32768, 32767)


def function(
    convention: Convention,
    multiplier: Any,
    shift: Any,
    reach: int,
    *ops: Float,
    add: Any = 0,
    zero: Any = 0,
    offset: Any = 0,
    dtype: str = "int64",
) -> StepFunction:
    sets = len(multiplier)
    parts = [np.broadcast_to(np.asarray(v, np.int64), (sets,)) for v in (multiplier, add, shift, zero, offset)]
    quantizer = Requantize(convention, *parts[:4], INT16, "int16")
    source = IntegerEncoding(dtype, parts[4])
    ends = np.full(sets, reach)
    type_ = IntType(-reach, reach)
    return StepFunction("f", source, ops, quantizer, np.arange(sets), -ends, ends, type_, INT16)


def equal(f: StepFunction) -> bool:
    """The scale and f on every input of a short interval, on 2^20 of a long one."""
    scale = scale_formula.find(f)
    assert isinstance(scale, Scale), scale
    count = min(int(f.hi[0] - f.lo[0]) + 1, 1 << 20)
    x = np.linspace(f.lo[0], f.hi[0], count).astype(np.int64)[:, None]
    return bool((scale.apply(x) == f.evaluate(x)).all())


@pytest.mark.parametrize("convention", [Convention.FLOOR, Convention.SINGLE, Convention.DOUBLE])
@pytest.mark.parametrize("reach", [70_000, 1 << 24])
def test_it_is_the_rescaling(convention: Convention, reach: int) -> None:
    r = np.random.default_rng(reach)
    for _ in range(8):
        double = convention is Convention.DOUBLE
        multiplier = r.integers(1 << 30, (1 << 31) - 1, 4) if double else r.integers(1, 1 << 15, 4)
        lowest = (29 if reach < 1 << 20 else 31) if double else 0
        shift = r.integers(lowest, lowest + 10) + r.integers(0, 6, 4)
        bias = Add(r.integers(-5000, 5000, 4))
        zero, add = r.integers(-100, 100, 4), r.integers(-3000, 3000, 4)
        assert equal(
            function(convention, multiplier, shift, reach, bias, add=add, zero=zero, offset=r.integers(-9, 9, 4))
        )


def test_ties_go_up_and_then_away_from_zero() -> None:
    """A multiplier of 1/2 at each shift: every second input is a tie in the first or the second rounding."""
    assert equal(function(Convention.DOUBLE, [1 << 30] * 4, [31, 32, 33, 38], 5000))


def test_a_sum_of_tflite_shifts_its_codes_first() -> None:
    """ADD of int16: a cast, 15 bits to the left, and a multiplier of 31 bits with a shift to the right."""
    ops = Cast("int32"), Add(np.array([3, -4], np.int32)), Mul(np.full(2, 1 << 15, np.int32))
    assert equal(function(Convention.DOUBLE, [1518500251, (1 << 31) - 1], [33, 32], 30000, *ops, dtype="int16"))
    assert equal(function(Convention.SINGLE, [21251, 30001], [33, 32], 30000, *ops, dtype="int16"))


@pytest.mark.parametrize("convention", [Convention.SINGLE, Convention.DOUBLE])
def test_constant_factors_of_any_sign(convention: Convention) -> None:
    """A product with a constant tensor: rising, falling and constant sets in one function, with ties in both roundings."""
    r = np.random.default_rng(0)
    for multiplier in (1 << 30, 3 << 29, int(r.integers(1 << 30, (1 << 31) - 1))):
        for shift in (31, 33, 40):
            factor = np.array([0, 0, 1, -1, -2, 3, *r.integers(-5, 5, 4)], np.int32)
            ops = Cast("int32"), Add(r.integers(-400, 400, 10).astype(np.int32)), Mul(factor)
            parts = [multiplier >> (0 if convention is Convention.DOUBLE else 16)] * 10
            assert equal(function(convention, parts, shift, 3000, *ops, zero=5, dtype="int16"))


def test_floats_that_hold_all_integers_are_integers() -> None:
    assert equal(function(Convention.FLOOR, [1], [0], 70_000, Cast("int32"), dtype="float32"))
    assert "float32" in str(scale_formula.find(function(Convention.FLOOR, [1], [0], 1 << 25, dtype="float32")))


def test_a_negative_multiplier_falls() -> None:
    assert equal(function(Convention.SINGLE, [-300, 300], [7, 9], 5000))


def test_equal_low_bits_are_left_out() -> None:
    scale = scale_formula.find(function(Convention.SINGLE, [1 << 14, 3 << 13], [20, 20], 5000))
    assert isinstance(scale, Scale)
    assert scale.multiplier.tolist() == [2, 3]
    assert scale.shift == 7


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (function(Convention.FLOAT64, [1], [1], 9), "float64"),
        (function(Convention.DOUBLE, [-5], [33], 9), "multiplier"),
        (function(Convention.DOUBLE, [1 << 30], [11], 1 << 20), "left"),
        (function(Convention.SINGLE, [5], [3], 9, Add(np.array([(1 << 31) - 5], np.int32)), dtype="int32"), "int32"),
        (function(Convention.SINGLE, [5], [61], 9), "shift"),
        (function(Convention.SINGLE, [1 << 20], [30], 1 << 44), "product"),
    ],
)
def test_other_functions_are_left_to_others(f: StepFunction, reason: str) -> None:
    assert reason in str(scale_formula.find(f))


def test_two_roundings_that_are_no_line_of_the_steps_have_the_formula() -> None:
    zeros, reach = np.zeros(1, np.int64), np.full(1, 60_000)
    quantizer = Requantize(Convention.DOUBLE, zeros + 1_500_000_001, zeros, zeros + 39, zeros + 90, INT8, "int8")
    f = StepFunction(
        "f", IntegerEncoding("int32", zeros), (), quantizer, zeros, -reach, reach, IntType(-60_000, 60_000), INT8
    )
    steps = trace(f, 255, 255)
    assert isinstance(steps, ThresholdTable)
    assert isinstance(find(steps), str)
    choice = choose_realization(f, np.zeros((1, 1), np.int64), Preference("dsp", "scale"))
    assert isinstance(choice.realization, Scale)
    assert choice.realization.dsp
    x = np.arange(-60_000, 60_001)[:, None]
    assert (choice.realization.apply(x) == f.evaluate(x)).all()
