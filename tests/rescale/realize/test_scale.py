"""hlsgen.rescale.realize.scale: multipliers proven equal to step functions, and proofs that there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from step_tables import dense, every, random_steps, tabulated

from hlsgen.numerics.fixed import Rounding, int_type, round_shift
from hlsgen.rescale.realize import scale as module
from hlsgen.rescale.realize.scale import Scale, cost, find, find_even, find_floor, find_symmetric
from hlsgen.rescale.threshold_table import ThresholdTable


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["straight", "jitter", "jump", "short"])
def test_what_is_found_is_equal_everywhere(kind: str) -> None:
    rng = np.random.default_rng(7 + len(kind))
    kinds = set()
    for _ in range(200):
        steps = random_steps(rng, kind)
        for attempt in (find, find_symmetric, find_even):
            realization = attempt(steps)
            assert "differs" not in str(realization)
            if isinstance(realization, Scale):
                kinds.add((attempt, realization.centre is not None, realization.odd is not None))
                every(realization, steps)
    assert {(find_symmetric, True, False), (find_even, False, True), (find, False, False)} <= kinds


def quantized(
    multiplier: int, shift: int, mode: Rounding, lo: int, hi: int, offset: int, low: int, high: int
) -> ThresholdTable:
    x = np.arange(lo, hi + 1)[:, None]
    return tabulated(np.clip(round_shift(x * multiplier + offset, shift, mode), low, high), lo)


@pytest.mark.parametrize("zero", [0, 1, -5])
def test_half_to_even(zero: int) -> None:
    """Ties to even in every second code: no floor has that, whatever its constants."""
    shift, multiplier = 6, 24
    x = np.arange(-400, 401)[:, None]
    steps = tabulated(np.clip(round_shift(x * multiplier, shift, Rounding.ROUND) + zero, -120, 120), -400)
    assert "needs a slope above 3/8 (" in str(find_floor(steps))
    assert "below 3/8" in str(find_floor(steps))
    realization = find(steps)
    assert isinstance(realization, Scale)
    assert realization.odd is not None
    assert realization.odd[0] == abs(zero) % 2
    every(realization, steps)


def test_ties_to_codes_of_both_parities() -> None:
    x = np.arange(-400, 401)[:, None]
    steps = tabulated(np.clip(np.array([0, 3, 1]) + round_shift(x * 24, 6, Rounding.ROUND), -120, 120), -400)
    realization = find(steps)
    assert isinstance(realization, Scale)
    assert realization.odd is not None
    assert realization.odd.tolist() == [0, 1, 1]
    every(realization, steps)


@pytest.mark.parametrize("mode", [Rounding.HALF_UP, Rounding.HALF_DOWN])
@pytest.mark.parametrize("centre", [0, 37])
def test_half_away_and_toward_zero(mode: Rounding, centre: int) -> None:
    x = np.arange(-3000, 3001)[:, None]
    values = np.clip(round_shift((x - centre) * 43, 9, mode), -240, 240)
    steps = tabulated(np.concatenate([values, values], axis=1), -3000)
    realization = find_symmetric(steps)
    assert isinstance(realization, Scale)
    assert realization.mirrored == (centre == 0)
    every(realization, steps)


def test_sign_put_back_where_no_line_goes() -> None:
    """Toward zero, zero is twice as wide as the other codes: no line goes there, two do."""
    x = np.arange(-900, 901)[:, None]
    steps = tabulated(np.clip(round_shift(x * 2, 3, Rounding.DOWN), -200, 200), -900)
    assert "(code 0 at x = -3 and less than 1 at 3)" in str(find_floor(steps))
    realization = find(steps)
    assert isinstance(realization, Scale)
    assert realization.mirrored
    every(realization, steps)
    # Around a middle code, in a set that rises, one that falls, and two that have one side only.
    table = np.clip(round_shift((x + 100) * 2, 3, Rounding.DOWN), -200, 200) + 500
    steps = tabulated(np.concatenate([table, 1000 - table, table, table], axis=1), -900)
    lo, hi = np.array([-900, -900, -101, -900]), np.array([900, 900, 900, -99])
    steps = dense(lo, hi, steps.table, 300, np.array([False, True, False, False]))
    assert isinstance(find_floor(steps), str)
    realization = find_symmetric(steps, 500)
    assert isinstance(realization, Scale)
    assert not realization.mirrored
    every(realization, steps)
    assert find_symmetric(steps, 701) == "the code 701 at the centre of symmetry does not occur"
    # Intervals that end near 0: the lines change there all the same.
    table = np.clip(round_shift(x * 2, 3, Rounding.DOWN), -200, 200)
    steps = tabulated(np.concatenate([table, table, table], axis=1), -900)
    steps = dense(np.array([-2, -900, -3]), np.array([900, 1, 3]), steps.table, -200)
    realization = find_symmetric(steps)
    assert isinstance(realization, Scale)
    assert realization.mirrored
    assert not replace(realization, centre=realization.centre + 1).mirrored
    every(realization, steps)


def float_steps(
    rng: np.random.Generator, sets: int, bits: int, codes: int, signed: bool = True, gain: float = 1.0
) -> ThresholdTable:
    """RNE(fl32(x * s)) clamped, as its thresholds; scales so that the codes fill the interval."""
    bound = int_type(bits, signed)
    lo, hi = np.full(sets, bound.lo), np.full(sets, bound.hi)
    scale = (codes / (bound.hi - bound.lo) * rng.uniform(0.8, 3, sets) * gain).astype(np.float32)
    code_levels = np.arange(-(codes // 2) + 1, codes // 2)[:, None] if signed else np.arange(1, codes)[:, None]
    low, high = np.broadcast_to(lo, (len(code_levels), sets)), np.broadcast_to(hi + 1, (len(code_levels), sets))
    while (low < high).any():
        middle = (low + high) >> 1
        reached = np.round(middle.astype(np.float32) * scale) >= code_levels
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return dense(lo, hi, low, int(code_levels[0, 0]) - 1)


@pytest.mark.parametrize(
    "bits, codes, signed, share", [(16, 256, True, 0.9), (16, 16, False, 1.0), (20, 16, True, 0.9)]
)
def test_random_float_scales(bits: int, codes: int, signed: bool, share: float) -> None:
    """One set each: nearly all have one, and it is equal at every input."""
    rng = np.random.default_rng(bits + codes)
    hits = 0
    for _ in range(30):
        steps = float_steps(rng, 1, bits, codes, signed)
        realization = find_floor(steps)
        hits += isinstance(realization, Scale)
        if isinstance(realization, Scale):
            every(realization, steps)
    assert hits >= share * 30


def test_many_sets_of_wide_inputs() -> None:
    """512 channels of 255 thresholds; 40-bit inputs have no floor, and that is proven."""
    rng = np.random.default_rng(5)
    steps = float_steps(rng, 512, 12, 256)
    realization = find_floor(steps)
    assert isinstance(realization, Scale)
    every(realization, steps)
    steps = float_steps(rng, 512, 40, 256)
    assert "needs a slope above" in str(find(steps))
    narrow = float_steps(rng, 64, 40, 16, gain=2.0**29)
    realization = find_floor(narrow)
    assert isinstance(realization, Scale)
    x = np.concatenate([narrow.corners(), rng.integers(narrow.lo, narrow.hi, (500, 64))])
    assert (realization.apply(x) == narrow.apply(x)).all()


def test_constant_sets_and_refusals() -> None:
    """Sets that never change beside one that does; what is not a staircase."""
    lo, hi = np.array([0, 0, -8]), np.array([9, 9, 7])
    steps = dense(lo, hi, np.array([[10, 0, -3], [10, 0, 2]]), -1)
    realization = find(steps)
    assert isinstance(realization, Scale)
    every(realization, steps)
    runs = ThresholdTable("test", lo, hi, np.array([[3, 3, 3]]), np.array([[0, 0, 0], [4, 4, 4]]))
    assert "set 0 is not a staircase" in str(find(runs))
    huge = dense(np.array([-(1 << 62)]), np.array([1 << 61]), np.array([[0], [5]]))
    assert "too many" in str(find(huge))
    # The first set needs a long shift, the second a great multiplier or a great product then.
    thresholds = np.array([[1 << 18, 5], [(1 << 19) + 3, 6], [(3 << 18) + 6, 7]])
    reasons = []
    for width, factor in ((20, 1), (44, 64)):
        thresholds[:, 1] *= factor
        reasons.append(str(find_floor(dense(np.zeros(2, np.int64), np.array([1 << 20, 1 << width]), thresholds))))
    assert reasons == ["a multiplier of more than 32 bits", "a product of more than 60 bits"]


@pytest.mark.parametrize("attempt", [find_floor, find_symmetric, find_even])
def test_the_proof_catches_a_wrong_constant(attempt: Callable[[ThresholdTable], Scale | str]) -> None:
    """An addend beside the interval is refused."""
    mode = {find_floor: Rounding.FLOOR, find_symmetric: Rounding.HALF_UP, find_even: Rounding.ROUND}[attempt]
    x = np.arange(-300, 301)[:, None]
    steps = tabulated(np.clip(round_shift((x - 32) * 5, 4, mode), -90, 90), -300)
    assert isinstance(attempt(steps), Scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "simplest", lambda lowest, highest: highest + 1)
        assert attempt(steps) == "set 0 differs from the scale"


def test_cost() -> None:
    """More of everything costs more; blocks replace rows; great tables are block memory."""
    source, result = int_type(16, True), int_type(8, True)

    def sites(bits: int, folds: int = 4, dsp: bool = False) -> tuple[float, int, int]:
        multiplier = np.full(folds, (1 << bits) // 3)
        realization = Scale(multiplier, multiplier, bits, -128, 127)
        return cost(realization, np.arange(folds)[:, None], source, result, dsp)

    assert sites(8)[0] < sites(12)[0] < sites(24)[0]
    assert sites(8, folds=1)[0] < sites(8)[0] < sites(8, folds=64)[0]
    assert sites(12, dsp=True)[0] < sites(12)[0] / 2
    assert [sites(bits, dsp=True)[1] for bits in (12, 24, 31)] == [1, 1, 2]
    assert sites(12)[1:] == (0, 0)
    assert sites(12, folds=1024)[2] > 1 << 14
