"""hlsgen.rescale.realize.correct: what it finds is the step function, and its proof sees what is not."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import correct
from hlsgen.rescale.realize.correct import Correct, cost, equal, find
from hlsgen.rescale.threshold_table import ThresholdTable


def rising(table: Array, lo: Array, hi: Array, base: int = 0) -> ThresholdTable:
    """Thresholds (steps, sets), limited to lo (always reached) and hi + 1 (never)."""
    table = np.clip(np.sort(table, axis=0), lo, hi + 1)
    values = np.broadcast_to(base + np.arange(len(table) + 1)[:, None], (len(table) + 1, len(lo)))
    return ThresholdTable("f", lo, hi, table, values)


def even(rng: np.random.Generator, lo: int, hi: int, steps: int, sets: int, noise: int = 0) -> ThresholdTable:
    """Thresholds at about the same distance in each set, some beyond the interval."""
    span = (hi - lo) * rng.uniform(0.2, 1.3, sets)
    origin = lo + (hi - lo - span) * rng.uniform(0, 1, sets)
    exact = origin + span * (np.arange(steps)[:, None] + 0.5) / steps
    table = np.ceil(exact).astype(np.int64) + rng.integers(-noise, noise + 1, exact.shape)
    return rising(table, np.full(sets, lo), np.full(sets, hi), -(steps // 2))


def found(steps: ThresholdTable, folded: bool) -> Correct:
    result = find(steps, folded)
    assert isinstance(result, Correct), result
    return result


def check(steps: ThresholdTable, folded: bool, rng: np.random.Generator) -> Correct:
    """Every input of short intervals, else those near thresholds, near powers of two, and random ones."""
    result = found(steps, folded)
    if int((steps.hi - steps.lo).max()) < 1 << 14:
        x = steps.lo + np.arange(int((steps.hi - steps.lo).max()) + 1)[:, None]
    else:
        near = np.concatenate([steps.table + k for k in (-2, -1, 0, 1)])
        powers = (1 << np.arange(41))[:, None] + np.arange(-1, 2).repeat(steps.sets).reshape(1, -1)[:, : steps.sets]
        x = np.concatenate([near, powers, -powers, rng.integers(steps.lo, steps.hi + 1, (5000, steps.sets))])
    x = np.clip(x, steps.lo, steps.hi)
    assert np.array_equal(result.apply(x), steps.apply(x))
    return result


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize(
    "lo, hi, steps, noise",
    [
        (0, 4095, 15, 3),
        (-3000, 5000, 63, 0),
        (-8192, 8191, 100, 5),
        (-8192, 8191, 255, 1),
        (1000, 9000, 31, 0),
        (0, 7, 3, 0),
        (-1, 0, 1, 0),
        (-(2**20), 2**20 - 1, 255, 0),
        (0, 2**24 - 1, 127, 9),
        (-(2**31), 2**31 - 1, 255, 0),
        (-(2**31), 2**31 - 1, 255, 64),
        (0, 2**32 - 1, 15, 1000),
        (-(2**39), 2**39 - 1, 255, 0),
        (2**39, 2**40 - 1, 63, 3),
    ],
)
@pytest.mark.parametrize("sets", [1, 5])
def test_even_thresholds(lo: int, hi: int, steps: int, noise: int, sets: int, folded: bool) -> None:
    rng = np.random.default_rng([steps, sets])
    check(even(rng, lo, hi, steps, sets, noise), folded, rng)


@pytest.mark.sweep
@pytest.mark.parametrize("folded", [False, True])
def test_random_small_functions(folded: bool) -> None:
    """Any distances: most sets alone, and most sets in one shape, have a solution."""
    refused = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sets, steps = int(rng.integers(1, 5)), int(rng.integers(1, 20))
        lo = rng.integers(-300, 100, sets)
        hi = lo + rng.integers(0, 400, sets)
        distance = rng.integers(1, 2 + int(rng.integers(1, 60)), (steps, sets))
        function = rising(lo - rng.integers(0, 30) + np.cumsum(distance, axis=0), lo, hi, int(rng.integers(-9, 9)))
        if isinstance(find(function, folded), str):
            refused += 1
        else:
            check(function, folded, rng)
    assert refused <= (4 if folded else 0)


@pytest.mark.parametrize("folded", [False, True])
def test_edges(folded: bool) -> None:
    """Thresholds at lo, at lo + 1, at hi and at hi + 1; sets without any; one input only."""
    rng = np.random.default_rng(0)
    lo, hi = np.array([-100, -100, -100, -100, -100, 7]), np.array([99, 99, 99, 99, 99, 7])
    columns = [[-100, -100, 100], [-99, 0, 99], [-100, 50, 100], [100, 100, 100], [-100] * 3, [7, 8, 8]]
    result = check(rising(np.array(columns).T, lo, hi), folded, rng)
    assert result.latency == (5 if folded else 3)


@pytest.mark.parametrize("folded", [False, True])
def test_one_threshold_anywhere(folded: bool) -> None:
    lo, hi = np.full(33, -16), np.full(33, 15)
    check(rising(np.arange(-16, 17)[None], lo, hi), folded, np.random.default_rng(0))


def half_even(x: Array, m: Array, shift: Array) -> Array:
    product = x * m
    floor = product >> shift
    fraction, half = product - (floor << shift), np.int64(1) << (shift - 1)
    up = (fraction > half) | ((fraction == half) & (floor % 2 != 0))
    return np.asarray(np.clip(floor + up, -128, 127))


def requantizers(sets: int) -> ThresholdTable:
    rng = np.random.default_rng(5)
    m, shift = rng.integers(2**14, 2**15, sets), rng.integers(37, 41, sets)
    lo, hi = np.full(sets, -(2**31)), np.full(sets, 2**31 - 1)
    codes = np.arange(-127, 128)[:, None]
    low, high = np.broadcast_to(lo, (255, sets)).copy(), np.broadcast_to(hi + 1, (255, sets)).copy()
    for _ in range(33):
        middle = (low + high) >> 1
        reached = (middle > hi) | (half_even(np.minimum(middle, hi), m, shift) >= codes)
        low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
    return rising(low, lo, hi, -128)


def test_requantizer_needs_no_finer_part() -> None:
    steps = requantizers(16)
    result = check(steps, False, np.random.default_rng(0))
    assert (result.rest_bits, result.latency) == (0, 3)
    assert max(result.bucket.max(), result.cell.max()) <= 5
    luts, dsp, memory = cost(result, np.arange(16)[None], IntType(-(2**31), 2**31 - 1), IntType(-128, 127))
    assert luts < 1500
    assert (dsp, memory) == (0, 0)
    check(steps, True, np.random.default_rng(0))


def test_uneven_low_bits_are_a_finer_part() -> None:
    """As float32 sums beyond 2^24 have them: still one LUT for each bit of start and cell."""
    result = check(even(np.random.default_rng(3), -(2**31), 2**31 - 1, 255, 4, 64), False, np.random.default_rng(0))
    assert 7 <= result.rest_bits <= 12
    assert result.latency == 4
    assert max(result.bucket.max(), result.cell.max()) <= 5


def test_refusals() -> None:
    lo, hi = np.array([0, 0]), np.array([999, 999])
    twice = rising(np.array([[10, 500, 500], [10, 500, 900]]).T, lo, hi)
    assert find(twice) == "set 0 rises by more than one code at input 500"
    falling = ThresholdTable("f", lo, hi, twice.table, twice.values[::-1].copy())
    assert find(falling) == "the codes do not rise by one from threshold to threshold"
    many = rising(np.arange(1, 1501)[:, None], np.array([0]), np.array([2000]))
    assert find(many) == "set 0 has more than 1023 thresholds"
    rng = np.random.default_rng(0)
    uneven = rising(np.sort(rng.choice(2**30, (200, 2), replace=False), axis=0), lo, hi + 2**30)
    for folded in (False, True):
        assert "evenly" in str(find(uneven, folded))


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("noise", [0, 40])
def test_proof_sees_every_change(noise: int, folded: bool) -> None:
    """Each entry of each table that changes the function at some input is a failure of the proof."""
    steps = even(np.random.default_rng(1), -(2**13), 2**13 - 1, 31, 2, noise)
    result = found(steps, folded)
    x = np.arange(-(2**13), 2**13)[:, None]
    assert equal(result, steps)
    wrong = 0
    for name in ("start", "code", "count", "level", "sure", "low_bits", "first", "last", "above"):
        values = getattr(result, name)
        for index in np.ndindex(values.shape):
            changed = values.copy()
            changed[index] = not changed[index] if name == "sure" else changed[index] + 1
            other = replace(result, **{name: changed})
            same = np.array_equal(other.apply(x), steps.apply(x))
            # The proof may refuse what is equal, never the other way.
            assert same or not equal(other, steps), (name, index)
            wrong += not same
    assert wrong > 60


def test_a_proof_looks_at_corners_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds that lie on a curve: nearly all fits are wrong, and a few inputs show it, not half a million of each."""
    compared = []

    def counted(self: Correct, codes: Array) -> Array:
        compared.append(codes.size)
        return apply(self, codes)

    apply = Correct.apply
    monkeypatch.setattr(Correct, "apply", counted)
    curve = np.ceil(-60_000 + 120_000 * (np.arange(1, 256) / 256) ** 1.3).astype(np.int64)
    assert "evenly" in str(find(rising(curve[:, None], np.array([-60_000]), np.array([60_000])), True))
    assert 0 < sum(compared) < 20_000


@pytest.mark.sweep
def test_skipped_fits_change_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fits that are skipped as they surely take more memory, and with all of them, the tables are the same."""
    rng = np.random.default_rng(9)
    cases = [
        even(rng, -(1 << bits), 1 << bits, steps, sets, noise)
        for bits, steps, sets, noise in ((3, 7, 2, 0), (6, 15, 3, 0), (9, 63, 12, 1), (13, 255, 20, 0), (16, 100, 9, 3))
        for _ in range(4)
    ]
    quick = [find(steps, True) for steps in cases]
    bound = correct._least_memory
    skipped = 0
    bounds: dict[Any, list[int]] = {}

    def uninformed(fits: list[Any], *arguments: Any) -> int:
        """Skips nothing, and keeps the bounds of the first sets."""
        bounds.setdefault(arguments, []).append(bound(fits, *arguments))
        return 0

    def built(steps: ThresholdTable, fits: list[Any], folded: bool) -> Correct:
        result = build(steps, fits, folded)
        size = sum(words * bits for words, bits in correct.memories(result, steps.steps.bit_length()))
        largest_bounds = bounds[fits[0].first, fits[0].last, fits[0].coarse, steps.steps.bit_length()]
        assert max(largest_bounds) <= size
        nonlocal skipped
        skipped += max(largest_bounds) > size // 2
        return result

    build = correct._build
    monkeypatch.setattr(correct, "_least_memory", uninformed)
    monkeypatch.setattr(correct, "_build", built)
    for steps, same in zip(cases, quick, strict=True):
        bounds.clear()
        result = find(steps, True)
        assert isinstance(result, Correct) == isinstance(same, Correct)
        if isinstance(result, Correct) and isinstance(same, Correct):
            assert all(np.array_equal(getattr(result, f.name), getattr(same, f.name)) for f in fields(Correct))
    assert skipped > 10


def test_further_sets_begin_with_the_fraction_of_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """No grid with fewer fraction bits than an earlier set has is tried again, and the tables are equal to the steps."""
    steps = even(np.random.default_rng(3), -(1 << 16), 1 << 16, 100, 40)
    fractions: list[tuple[int, int]] = []

    def fitted(buckets: Any, folded: bool, fraction: int) -> Any:
        fits = fit_buckets(buckets, folded, fraction)
        fractions.append((fraction, min(fit.fraction for fit in fits if fit is not None)))
        return fits

    fit_buckets = correct.fit_buckets
    monkeypatch.setattr(correct, "fit_buckets", fitted)
    assert equal(found(steps, True), steps)
    assert all(lowest >= fraction for fraction, lowest in fractions)
    assert any(fraction > 0 for fraction, _ in fractions)


def test_only_the_smallest_tables_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """One proof suffices if it succeeds; if it fails, the others are proven too."""
    steps = even(np.random.default_rng(0), -(1 << 18), 1 << 18, 255, 6)
    compared: list[Correct] = []
    refused: list[bool] = []

    def compare(realization: Correct, steps: ThresholdTable) -> bool:
        compared.append(realization)
        return not refused and equal(realization, steps)

    monkeypatch.setattr(correct, "equal", compare)
    smallest = found(steps, True)
    assert [*map(id, compared)] == [id(smallest)]
    refused.append(True)
    compared.clear()
    assert isinstance(find(steps, True), str)
    assert len(compared) > 2
