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
    found = powers(step, count)
    places = np.unique(np.append(np.random.default_rng(0).integers(0, len(found), 300), len(found) - 1))
    assert all(found[d] == exp_float32(-step * int(d)) for d in places)
    assert len(found) == count or exp_float32(-step * len(found)) == 0


@pytest.mark.parametrize("step, count", [*STEPS[:2], (Fraction(0.02), 1 << 17), (Fraction(1, 1 << 13), 1 << 16)])
def test_products(step: Fraction, count: int) -> None:
    """Every distance there can be has its power, with the fewest bits that do it."""
    wanted = powers(step, count)
    made = factors(step, wanted, count - 1, 4096)
    assert made is not None
    assert max(len(made.mantissas), len(made.lows)) <= 4096
    assert (made.mantissas[made.mantissas > 0] >> (made.bits - 1) == 1).all()
    assert (made.lows > 1 << (made.bits - 1)).all()
    distances = np.arange(len(wanted))
    assert np.array_equal(made.values(distances), wanted)
    if len(wanted) < count:
        assert made.values(np.array([len(wanted)])) == 0
    high, low = (int(made.mantissas[3]), int(made.lows[5]))
    product = Fraction(high * low, 1 << (2 * made.bits - 1 + int(made.shifts[3])))
    near = made.values(np.array([(3 << made.low_bits) + 5]))[0]
    assert abs(Fraction(float(near)) - product) <= Fraction(float(np.spacing(near))) / 2
