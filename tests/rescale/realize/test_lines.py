"""hlsgen.rescale.realize.lines: LOGISTIC and TANH of int16 codes as the runtimes compute them, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hlsgen.frontend.tflite.requantizers import shifted
from hlsgen.ir import IntegerEncoding
from hlsgen.ir.ops import Add, Lookup
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.tflite.fixed_point import INT16
from hlsgen.numerics.tflite.piecewise import logistic_lines, tanh_lines
from hlsgen.rescale import Preference, choose_realization
from hlsgen.rescale.realize.lines import Lines, find

CODES = IntType(-32768, 32767)
X = np.arange(-32768, 32768)
FUNCTIONS: dict[str, Callable[[Array, int, int], Array]] = {"logistic": logistic_lines, "tanh": tanh_lines}


def function(codes: Array, lo: int = -32768, hi: int = 32767) -> StepFunction:
    """The function that gives these 2^16 codes, as the front end writes it."""
    zero = np.zeros(1, np.int64)
    ops = Add(np.full(1, 1 << 15, np.int32)), Lookup(codes.astype(np.int32)[:, None])
    unchanged = shifted(1, 0, 0, 0, CODES, "int16")
    return StepFunction("f", IntegerEncoding("int32", zero), ops, unchanged, zero, zero + lo, zero + hi, CODES, CODES)


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("scale", [(0, 0), (0, 3), (3, 2), (16383, 20), (32767, 13), (20011, 31)])
def test_every_code_of_a_runtime(name: str, scale: tuple[int, int]) -> None:
    codes = FUNCTIONS[name](X, *scale)
    lines = find(function(codes))
    assert isinstance(lines, Lines), lines
    np.testing.assert_array_equal(lines.apply(X), codes)
    assert lines.shift == 0 or lines.multiplier % 2 == 1


def test_power_of_two_is_a_product_of_three() -> None:
    lines = find(function(tanh_lines(X, 0, 0)))
    assert isinstance(lines, Lines)
    assert (lines.multiplier, lines.shift) == (3, 0)


@pytest.mark.parametrize("lo, hi", [(-40, 32767), (5, 900), (-32768, -1), (0, 0)])
def test_part_of_the_codes(lo: int, hi: int) -> None:
    codes = logistic_lines(X, 0, 0)
    lines = find(function(codes, lo, hi))
    assert isinstance(lines, Lines), lines
    np.testing.assert_array_equal(lines.apply(np.arange(lo, hi + 1)), codes[lo + 32768 : hi + 32769])


@pytest.mark.parametrize("place", [0, 20000, 32768, 32769, 65535])
def test_one_other_code(place: int) -> None:
    codes = logistic_lines(X, 0, 0)
    codes[place] += 1
    assert isinstance(find(function(codes)), str)


def test_other_functions() -> None:
    for codes in (INT16.logistic(X, 3), INT16.tanh(X, 3), X // 2, tanh_lines(X, 0, 0) // 2):
        assert "neither LOGISTIC nor TANH" in str(find(function(codes)))


def test_cheaper_than_the_table() -> None:
    for prefer, dsp in (("lut", False), ("dsp", True)):
        choice = choose_realization(function(tanh_lines(X, 0, 0)), np.zeros((1, 2), np.int64), Preference(prefer))
        assert choice.name == "lines"
        assert isinstance(choice.realization, Lines)
        assert choice.realization.dsp == dsp
        table = next(trial for trial in choice.trials if trial.name == "table")
        lines = next(trial for trial in choice.trials if trial.name == "lines")
        assert (lines.memory_bits, table.memory_bits) == (2 * 256 * 26, 2 * (1 << 15) * 16)
