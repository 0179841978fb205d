"""The contract of normalization: integers, one rounded root a row, one rounded product; against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hlsgen.interpreter import exact_numbers
from hlsgen.numerics.normalization import bounds, moments, normalized, reciprocal_root, reciprocal_roots


def slow_root(total: Fraction) -> tuple[int, int]:
    """By comparing squares with the middles of neighbours."""
    m, e = math.frexp(1 / math.sqrt(float(total)))
    mantissa, exponent = int(m * 2**24), e - 24
    unit = total * Fraction(2) ** (2 * exponent)
    while Fraction(2 * mantissa + 1) ** 2 * unit <= 4:
        mantissa += 1
    while Fraction(2 * mantissa - 1) ** 2 * unit > 4:
        mantissa -= 1
    return (mantissa >> 1, exponent + 1) if mantissa == 1 << 24 else (mantissa, exponent)


def addend_of(rng: np.random.Generator) -> Fraction:
    scale = Fraction(float(np.float32(2.0 ** rng.uniform(-10, 3))))
    return int(rng.integers(1, 300)) ** 2 * Fraction(float(np.float32(10.0 ** rng.uniform(-8, -1)))) / scale**2


def test_the_root_is_the_nearest_float32() -> None:
    rng = np.random.default_rng(1)
    for _ in range(3000):
        addend, moment = addend_of(rng), int(2 ** rng.uniform(0, 40)) - 1
        m, e = reciprocal_root(moment, addend)
        assert (m, e) == slow_root(moment + addend)
        assert m * Fraction(2) ** e == exact_numbers.reciprocal_root(moment + addend)


def test_many_roots_at_once_are_the_same() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        addend = addend_of(rng)
        some = np.append((2 ** rng.uniform(0, 40, 3000)).astype(np.int64), 0)
        m, e = reciprocal_roots(some, addend)
        roots = list(zip(m.tolist(), e.tolist(), strict=True))
        assert roots == [reciprocal_root(int(v), addend) for v in some]


def test_powers_of_two_and_ties() -> None:
    assert reciprocal_root(0, Fraction(1)) == (1 << 23, -23)
    assert reciprocal_root(1, Fraction(3)) == (1 << 23, -24)
    middle = Fraction((1 << 24) + 1, 1 << 24)  # in the middle of 1 and the number above it: the even one
    assert reciprocal_root(0, 1 / middle**2) == (1 << 23, -23)
    assert exact_numbers.reciprocal_root(1 / middle**2) == 1


@pytest.mark.parametrize("centered", [True, False])
def test_rows_are_the_rounded_product_of_exact_numbers(centered: bool) -> None:
    rng = np.random.default_rng(3)
    for lo, hi, length in ((-8, 7, 16), (-128, 127, 24), (0, 255, 5), (-1, 0, 4)):
        q = rng.integers(lo, hi + 1, (40, length))
        q[0] = q[0, 0]
        addend = addend_of(rng)
        element, moment = moments(q, centered)
        row_bounds = bounds(centered, length, lo, hi, addend)
        assert np.abs(element).max() <= row_bounds.element
        assert moment.max() <= row_bounds.moment
        result = normalized(q, centered, addend)
        assert np.abs(result).max() <= row_bounds.result
        for row, a, v in zip(result, element, moment, strict=True):
            m, e = reciprocal_root(int(v), addend)
            exact = [exact_numbers.nearest_float32(int(x) * m * Fraction(2) ** e) for x in a]
            np.testing.assert_array_equal(row, exact)
            assert not np.signbit(row[a == 0]).any()


@pytest.mark.parametrize("centered", [True, False])
def test_bounds_are_reached(centered: bool) -> None:
    """By every row of few small codes."""
    for length, lo, hi in ((2, -2, 1), (3, -1, 2), (4, 0, 1), (1, -2, 1)):
        grid = np.meshgrid(*[np.arange(lo, hi + 1)] * length)
        q = np.stack([g.ravel() for g in grid], axis=-1)
        element, moment = moments(q, centered)
        row_bounds = bounds(centered, length, lo, hi, Fraction(1, 1000))
        assert np.abs(element).max() == row_bounds.element
        assert moment.max() == row_bounds.moment
        largest = np.abs(normalized(q, centered, Fraction(1, 1000))).max()
        assert largest <= row_bounds.result <= largest * 1.0001


def test_moments_of_more_than_64_bits() -> None:
    """Rows of 1024 numbers of 24 bits."""
    q = np.random.default_rng(4).integers(-(1 << 23), 1 << 23, (3, 1024))
    q[1], q[2, ::2] = (1 << 23) - 1, -(1 << 23)
    for centered in (False, True):
        results = normalized(q, centered, Fraction(1, 1000))
        rows = exact_numbers.Exact(q, Fraction(1), None)
        exact = exact_numbers.normalized(rows, centered, Fraction(1, 1000 << 20))
        assert np.array_equal(results, exact)
