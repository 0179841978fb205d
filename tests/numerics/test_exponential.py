"""Powers of e rounded once, one by one and as products of two words."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hlsgen.numerics.exponential import exp_float32, powers
from hlsgen.numerics.exponential_factors import factors

#: A step and how many differences there are; with the last ones exp is subnormal, then 0.
STEPS = [(Fraction(7.4e-5), 261121), (Fraction(7.4e-4), 261121), (Fraction(0.0142), 256), (Fraction(1, 3), 1000)]


@pytest.mark.parametrize("step, count", STEPS)
def test_powers(step: Fraction, count: int) -> None:
    computed = powers(step, count)
    places = np.unique(np.append(np.random.default_rng(0).integers(0, len(computed), 300), len(computed) - 1))
    assert all(computed[d] == exp_float32(-step * int(d)) for d in places)
    assert len(computed) == count or exp_float32(-step * len(computed)) == 0


@pytest.mark.parametrize("step, count", [*STEPS[:2], (Fraction(0.02), 1 << 17), (Fraction(1, 1 << 13), 1 << 16)])
def test_products(step: Fraction, count: int) -> None:
    """Every distance there can be has its power, with the fewest bits that do it."""
    expected = powers(step, count)
    tables = factors(step, expected, count - 1, 4096)
    assert tables is not None
    assert max(len(tables.mantissas), len(tables.lows)) <= 4096
    assert (tables.mantissas[tables.mantissas > 0] >> (tables.bits - 1) == 1).all()
    assert (tables.lows > 1 << (tables.bits - 1)).all()
    distances = np.arange(len(expected))
    assert np.array_equal(tables.values(distances), expected)
    if len(expected) < count:
        assert tables.values(np.array([len(expected)])) == 0
    high, low = (int(tables.mantissas[3]), int(tables.lows[5]))
    product = Fraction(high * low, 1 << (2 * tables.bits - 1 + int(tables.shifts[3])))
    nearest = tables.values(np.array([(3 << tables.low_bits) + 5]))[0]
    assert abs(Fraction(float(nearest)) - product) <= Fraction(float(np.spacing(nearest))) / 2
