"""Rounding and the single-rounding product."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qonnx.custom_op.general.intquant import resolve_rounding_mode

from hlsgen.numerics.fixed import (
    IntType,
    Rounding,
    int_type,
    parse_rounding,
    product_to_float32,
    round_float,
    round_shift,
)

NUMBERS = [5.5, 2.5, 1.6, 1.1, 1.0, -1.0, -1.1, -1.6, -2.5, -5.5]
TABLE = {
    Rounding.ROUND: [6, 2, 2, 1, 1, -1, -1, -2, -2, -6],
    Rounding.CEIL: [6, 3, 2, 2, 1, -1, -1, -1, -2, -5],
    Rounding.FLOOR: [5, 2, 1, 1, 1, -1, -2, -2, -3, -6],
    Rounding.UP: [6, 3, 2, 2, 1, -1, -2, -2, -3, -6],
    Rounding.DOWN: [5, 2, 1, 1, 1, -1, -1, -1, -2, -5],
    Rounding.HALF_UP: [6, 3, 2, 1, 1, -1, -1, -2, -3, -6],
    Rounding.HALF_DOWN: [5, 2, 2, 1, 1, -1, -1, -2, -2, -5],
}


@pytest.mark.parametrize("mode", Rounding)
def test_rounding_table(mode: Rounding) -> None:
    assert round_float(np.array(NUMBERS, np.float32), mode).tolist() == TABLE[mode]


@pytest.mark.parametrize("mode", Rounding)
def test_float_rounding_equals_qonnx(mode: Rounding) -> None:
    rng = np.random.default_rng(int(mode))
    x = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(np.float32)
    sixteenths = (np.arange(-4096, 4096) / 16).astype(np.float32)
    edge = np.array([0.49999997, -0.49999997, 8388609, -8388609, 8388607.5], np.float32)
    x = np.concatenate([x[np.isfinite(x)], sixteenths, np.nextafter(sixteenths, np.float32(9)), edge])
    assert np.array_equal(round_float(x, mode), resolve_rounding_mode(mode.name)(x))


@pytest.mark.parametrize("mode", Rounding)
def test_integer_rounding_is_that_of_fractions(mode: Rounding) -> None:
    values = np.arange(-300, 301)
    for shift in range(6):
        exact = round_float(values / 2.0**shift, mode)
        assert round_shift(values, shift, mode).tolist() == exact.tolist()


def test_names_in_any_case() -> None:
    assert parse_rounding("half_even") == parse_rounding("ROUND") == Rounding.ROUND
    assert parse_rounding("Floor") == Rounding.FLOOR
    assert parse_rounding("nearest") is None


@settings(deadline=None)
@given(st.integers(-(2**50), 2**50), st.floats(2.0**-60, 2.0**30, width=32), st.floats(2.0**-20, 2.0**20, width=32))
def test_product_is_rounded_once(integer: int, a: float, b: float) -> None:
    scale = np.float64(a) * np.float64(b)
    rounded = float(product_to_float32(np.array([integer]), scale)[0])
    exact = Fraction(integer) * Fraction(float(scale))
    below, above = (float(np.nextafter(np.float32(rounded), np.float32(d))) for d in (-np.inf, np.inf))
    error = abs(Fraction(rounded) - exact)
    for neighbour in (below, above):
        assert error <= abs(Fraction(neighbour) - exact)
        if error == abs(Fraction(neighbour) - exact) and neighbour != rounded:
            assert np.float32(rounded).view(np.uint32) % 2 == 0


def test_product_avoids_double_rounding() -> None:
    # float64 rounds this product to a float32 tie; the exact value lies below it.
    integer, scale = np.array([2050015090]), np.float64(float.fromhex("0x1.8b57702b65380p-7"))
    assert product_to_float32(integer, scale)[0] == np.float32(24733158)
    assert (integer * scale).astype(np.float32)[0] == np.float32(24733160)


@pytest.mark.parametrize(
    "bits,signed,narrow,lo,hi",
    [
        (8, True, True, -127, 127),
        (8, False, True, 0, 254),
        (2, True, False, -2, 1),
        (32, True, True, -(2**31), 2**31 - 1),
        (25, False, False, 0, 2**25 - 1),
        (32, False, True, 0, 2**32 - 1),
        (1, False, False, 0, 1),
    ],
)
def test_quantizer_bounds(bits: int, signed: bool, narrow: bool, lo: int, hi: int) -> None:
    assert int_type(bits, signed, narrow) == IntType(lo, hi)


def test_int_type_bits() -> None:
    assert [IntType(*r).bits for r in [(0, 0), (0, 1), (-1, 1), (-8, 7), (-9, 7), (0, 255), (3, 256)]] == [
        1,
        1,
        2,
        4,
        5,
        8,
        9,
    ]
