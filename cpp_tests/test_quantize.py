"""hg/quantize.hpp and hg/shift.hpp: rescaling by powers of two with all seven roundings, compared with Shift.apply."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case
from rescale_cases import all_inputs, check, every_input, integers, is_small, rescaled  # noqa: F401

from hlsgen.numerics.fixed import Array, IntType, Rounding, int_type
from hlsgen.rescale import Shift


def quantizer(
    mode: Rounding, signed: bool, narrow: bool, shift: int, source: IntType, point: int
) -> tuple[Case, Array]:
    """Quantizer to 4 bits on all inputs: two folds of two lanes with offsets, or two lanes without."""
    bounds = int_type(4, signed, narrow)
    offset = np.array([0, 3, -5, 2]) if point else np.zeros(2, np.int64)
    realization = Shift(0, shift, mode, offset, bounds.lo, bounds.hi)
    table = np.arange(len(offset)).reshape(-1, 2)
    return rescaled(realization, table, source, bounds, every_input(source, 2, 2), point)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_quantizer(dialect: str, tmp_path: Path) -> None:
    """All roundings, signed or not, narrow or not, on all inputs, with two and three fraction bits."""
    cases = []
    for n, (mode, signed, narrow) in enumerate(product(Rounding, (True, False), (True, False))):
        for source in [int_type(8, True)] + [int_type(8, False)] * (signed == narrow):
            case = quantizer(mode, signed, narrow, 2 + n % 2, source, (0, 3, -2)[n % 3])
            fixed = mode != Rounding.UP and (signed or not narrow)
            assert case[0].call.function == ("hg::quantize" if fixed else "hg::shift")
            cases.append(case)
    check(tmp_path, cases, dialect)


def parameters(
    lanes: int,
    folds: int,
    source: IntType,
    left_shift: int,
    b_bits: int,
    shift: int,
    mode: Rounding,
    result: IntType,
    low: int,
    high: int,
) -> tuple[Case, Array]:
    """Shift with random offsets. Inputs are all of a small type, or random ones with some ties."""
    rng = np.random.default_rng(source.bits + shift)
    offset = integers(rng, b_bits, True, (lanes * folds,))
    if is_small(source):
        x = every_input(source, lanes, 2 * folds)
    else:
        x = integers(rng, source.bits, source.signed, (800, lanes))
        ties = (x >> shift << shift) + ((1 << shift) >> 1)
        x = np.where((rng.random(x.shape) < 0.3) & (ties >= source.lo) & (ties <= source.hi), ties, x)
    realization = Shift(left_shift, shift, mode, offset, low, high)
    return rescaled(realization, rng.permutation(lanes * folds).reshape(folds, lanes), source, result, x)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_widths(dialect: str, tmp_path: Path) -> None:
    cases = [
        parameters(3, 5, int_type(12, True), 2, 9, 5, Rounding.HALF_UP, int_type(6, True), -31, 31),
        parameters(1, 1, IntType(0, 1), 0, 1, 1, Rounding.ROUND, IntType(0, 1), 0, 1),
        parameters(2, 3, int_type(32, True), 0, 40, 17, Rounding.HALF_DOWN, int_type(9, True), -256, 255),
        parameters(2, 2, int_type(32, False), 3, 12, 1, Rounding.CEIL, IntType(0, 2**32 - 1), 0, 2**32 - 1),
        parameters(1, 4, int_type(8, True), 5, 3, 0, Rounding.UP, int_type(16, True), -(2**15), 2**15 - 1),
        parameters(2, 1, int_type(4, False), 0, 2, 12, Rounding.CEIL, int_type(5, True), -16, 15),
        parameters(1, 3, int_type(6, True), 0, 20, 2, Rounding.DOWN, IntType(-4, -1), -4, -1),
        parameters(2, 2, int_type(16, True), 0, 14, 4, Rounding.HALF_UP, int_type(8, True), -100, 90),
        parameters(1, 2, int_type(5, True), 0, 4, 0, Rounding.ROUND, int_type(4, True), -8, 7),
        parameters(1, 1, int_type(40, True), 0, 38, 30, Rounding.ROUND, int_type(8, True), -128, 127),
        parameters(1, 2, int_type(7, True), 3, 5, 9, Rounding.UP, int_type(3, True), -4, 3),
    ]
    check(tmp_path, cases, dialect)
