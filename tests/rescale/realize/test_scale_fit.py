"""hlsgen.rescale.realize.scale_fit: slopes and offsets of lines through staircases, against all pairs of points."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from step_tables import dense, every, random_steps, tabulated

from hlsgen.rescale.realize.multiplier_cost import digits
from hlsgen.rescale.realize.scale import Scale, find_floor
from hlsgen.rescale.realize.scale_fit import Slopes, StaircasePoints, slopes


def brute(stairs: StaircasePoints, c: int) -> tuple[Fraction, Fraction | None]:
    """The bounds of the slope, from all pairs of points."""
    above, below = Fraction(-1), None
    upper, lower = stairs.at[:, c], stairs.under[:, c]
    for x, k in np.stack([stairs.x[upper, c], stairs.k[upper, c]], axis=1).tolist():
        for y, k_y in np.stack([stairs.y[lower, c], stairs.l[lower, c]], axis=1).tolist():
            if x > y:
                above = max(above, Fraction(k - k_y, x - y))
            elif x < y:
                bound = Fraction(k_y - k, y - x)
                below = bound if below is None else min(below, bound)
    return above, below


@pytest.mark.parametrize("kind", ["straight", "jitter", "jump", "short"])
def test_floor_exists_exactly_where_a_line_does(kind: str) -> None:
    """All pairs of points give the bounds; all inputs show equality."""
    rng = np.random.default_rng(len(kind))
    kinds_seen = set()
    for _ in range(250):
        steps = random_steps(rng, kind)
        falling = steps.values[0] > steps.values[-1]
        table = np.where(falling, 1 - steps.table[::-1], steps.table)
        lo, hi = np.where(falling, -steps.hi, steps.lo), np.where(falling, -steps.lo, steps.hi)
        all_codes = np.stack([steps.first, steps.last])
        stairs = StaircasePoints.of(table, int(steps.values.min()), lo, hi, int(all_codes.min()), int(all_codes.max()))
        bounds = slopes(stairs)
        straight = True
        for c, bound in enumerate(bounds):
            above, below = brute(stairs, c)
            if below is None or above < below:
                assert (bound.above, bound.below) == (above, below)
            else:
                straight = False
                assert not bound.exist
                assert bound.above <= above
                assert bound.below is not None
                assert bound.below >= below
        realization = find_floor(steps)
        assert isinstance(realization, Scale) == straight, realization
        kinds_seen.add(straight)
        if isinstance(realization, Scale):
            every(realization, steps)
    assert True in kinds_seen
    assert False in kinds_seen or kind == "short"


def test_the_least_shift() -> None:
    """No smaller shift has a multiplier in all sets."""
    rng = np.random.default_rng(3)
    tried = 0
    for _ in range(120):
        steps = random_steps(rng, "straight")
        realization = find_floor(steps)
        if isinstance(realization, str) or (steps.values[0] > steps.values[-1]).any() or not 0 < realization.shift < 9:
            continue
        tried += 1
        stairs = StaircasePoints.of(steps.table, steps.base, steps.lo, steps.hi, realization.low, realization.high)
        fitting = np.zeros(steps.sets, np.bool_)
        for multiplier in range(16 << realization.shift):
            lowest, highest = stairs.offsets(np.full(steps.sets, multiplier), realization.shift - 1)
            fitting |= lowest <= highest
        assert not fitting.all()
    assert tried > 20


@pytest.mark.parametrize("parity", [None, 0, 1])
def test_the_addends_are_all_there_are(parity: int | None) -> None:
    """Those of the interval give the function, those beside it do not."""
    rng = np.random.default_rng(4)
    lo, hi = np.full(1, -25), np.full(1, 25)
    x = np.arange(-25, 26)[:, None]
    counts = set()
    for _ in range(300):
        shift, low = int(rng.integers(1, 6)), int(rng.integers(-3, 3))
        multiplier, addend = rng.integers(0, 2 << shift, 1), rng.integers(-99, 99, 1)
        odd = None if parity is None else np.array([parity])
        realization = Scale(multiplier, addend, shift, low, low + int(rng.integers(1, 4)), odd)
        expected = realization.apply(x)
        if expected.min() != realization.low or expected.max() != realization.high:
            continue
        steps = tabulated(expected, -25)
        stairs = StaircasePoints.of(steps.table, steps.base, lo, hi, realization.low, realization.high)
        lowest, highest = stairs.offsets(multiplier, shift, odd)
        assert lowest <= addend <= highest
        counts.add(int(highest[0] - lowest[0]))
        for r in range(int(lowest[0]) - 2, int(highest[0]) + 3):
            is_equal = (replace(realization, addend=np.array([r])).apply(x) == expected).all()
            assert is_equal == (lowest <= r <= highest)
    assert {0, 1, 2} <= counts


def test_digits() -> None:
    assert [digits(value) for value in (0, 1, 7, 8, 21, 0b110111, 255)] == [0, 1, 2, 1, 3, 3, 2]
    # The first set leaves only 81 / 4096; the others have a choice then: 64 or 65, 67 or 68.
    ends = np.zeros(3, np.int64), np.array([200, 100, 100])
    realization = find_floor(dense(*ends, np.array([[50, 1, 1], [101, 65, 62], [151, 201, 201]])))
    assert isinstance(realization, Scale)
    assert realization.shift == 12
    assert realization.multiplier.tolist() == [81, 64, 68]


def test_bounds_know_their_multipliers() -> None:
    bound = Slopes(Fraction(1, 4), Fraction(1, 2))
    assert [bound.multipliers(n) for n in (1, 2, 3)] == [(1, 0), (2, 1), (3, 3)]
    assert [bound.multipliers(n, closed=True) for n in (1, 2, 3)] == [(1, 1), (1, 2), (2, 4)]
    assert Slopes(Fraction(-1), Fraction(1, 3)).multipliers(0) == (0, 0)


def test_thresholds_at_which_the_code_changes() -> None:
    """Against the codes on both sides of each threshold, with equal thresholds and codes that repeat."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        steps = random_steps(rng, "jump")
        values = steps.values if rng.random() < 0.3 else rng.integers(0, 3, steps.values.shape)
        steps = replace(steps, values=values)
        for s in range(steps.sets):
            x = np.arange(steps.lo[s], steps.hi[s] + 1)
            codes = steps.apply(np.repeat(x[:, None], steps.sets, 1).clip(steps.lo, steps.hi))[:, s]
            assert set(steps.table[steps.changed[:, s], s]) == set(x[1:][codes[1:] != codes[:-1]])
