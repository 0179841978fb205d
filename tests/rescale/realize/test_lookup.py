"""Realizations of step functions without arithmetic: cascades of tables, comparisons, look-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from step_tables import Realization, bundle, every, intervals, rising

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import compare, rank, table
from hlsgen.rescale.realize.compare import Comparators
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.table import Table, TableMode
from hlsgen.rescale.threshold_table import ThresholdTable


def sampled(lo: int, columns: list[Array]) -> ThresholdTable:
    """Functions given by all of their values from lo on."""
    hi, sets = lo + len(columns[0]) - 1, len(columns)
    jumps = [np.flatnonzero(np.diff(column)) for column in columns]
    steps = max(1, *map(len, jumps))
    thresholds = np.full((steps, sets), hi + 1)
    values = np.empty((steps + 1, sets), np.int64)
    for s, (column, jump) in enumerate(zip(columns, jumps, strict=True)):
        thresholds[: len(jump), s] = lo + jump + 1
        values[:, s] = column[-1]
        values[: len(jump), s] = column[jump]
    return ThresholdTable("f", np.full(sets, lo), np.full(sets, hi), thresholds, values)


def assert_equal_wide(rng: np.random.Generator, realization: Realization, steps: ThresholdTable) -> None:
    """At the corners, on random inputs and near thresholds."""
    near_thresholds = rng.choice(steps.table.ravel(), (500, steps.sets)) + rng.integers(-3, 4, (500, steps.sets))
    uniform = rng.integers(steps.lo, steps.hi, (500, steps.sets), endpoint=True)
    for x in (steps.corners(), uniform, np.clip(near_thresholds, steps.lo, steps.hi)):
        np.testing.assert_array_equal(realization.apply(x), steps.apply(x))


WIDE = [(-(2**31), 2**31 - 1), (0, 2**40 - 1), (-(2**39), 2**38), (-(2**33), -5), (2**32, 2**34)]


def a_rank(steps: ThresholdTable) -> Rank:
    realization = rank.find(steps)
    assert isinstance(realization, Rank), realization
    assert realization.latency == len(realization.chunks) == len(realization.tables)
    return realization


@pytest.mark.parametrize("seed", range(6))
def test_rank_equals_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for lo, hi in intervals(rng):
        for count in (1, 2, 7, 30):
            steps = bundle(rng, lo, hi, count)
            every(a_rank(steps), steps)


@pytest.mark.parametrize("lo, hi", WIDE)
def test_rank_of_wide_inputs(lo: int, hi: int) -> None:
    rng = np.random.default_rng(3)
    for sets, count in ((1, 15), (4, 20), (3, 1)):
        steps = bundle(rng, np.full(sets, lo), np.full(sets, hi), count)
        assert_equal_wide(rng, a_rank(steps), steps)


def test_rank_leaves_out_low_bits_that_do_not_matter() -> None:
    multiples = np.arange(-7, 8)[:, None] << 10
    steps = ThresholdTable("f", np.array([-(2**15)]), np.array([2**15 - 1]), multiples, np.arange(16)[:, None])
    realization = a_rank(steps)
    # Ten low bits are the same in all thresholds, the six others are one table.
    assert (realization.low, realization.chunks, realization.states) == (10, (6,), ())
    every(realization, steps)
    moved = ThresholdTable("f", steps.lo, steps.hi, multiples + 1, steps.values)
    assert a_rank(moved).low == 0


def test_rank_ignores_thresholds_at_which_nothing_changes() -> None:
    lo, hi = np.array([-(2**15)]), np.array([2**15 - 1])
    steps = ThresholdTable("f", lo, hi, np.array([[-500], [3], [8], [900]]), np.array([[1], [1], [4], [4], [4]]))
    realization = a_rank(steps)
    assert realization.states == (1,) * len(realization.states)
    every(realization, steps)


def test_rank_costs_two_thousand_bits_of_tables() -> None:
    """The 6-input tables of 15 thresholds of 16 bits: 6 levels of 4 LUTs, and 6 bits that wait."""
    rng = np.random.default_rng(2)
    steps = ThresholdTable(
        "f",
        np.array([-(2**15)]),
        np.array([2**15 - 1]),
        np.sort(rng.choice(np.arange(-(2**15) + 1, 2**15), 15, replace=False))[:, None],
        np.arange(-8, 8)[:, None],
    )
    realization = a_rank(steps)
    assert all(len(entries) == 64 for entries in realization.tables)
    sites = rank.cost(realization, np.zeros((1, 3), np.int64), IntType(-(2**15), 2**15 - 1), IntType(-8, 7))
    assert sites == (3 * 30 + 1, 0, 0)


def test_rank_refuses_tables_that_are_too_large() -> None:
    lo, hi = np.array([0]), np.array([2**31 - 1])
    many = np.arange(1, 2001)[:, None] * 1_000_003
    reason = rank.find(ThresholdTable("f", lo, hi, many, np.arange(2001)[:, None]))
    assert reason == "2000 thresholds need a state of more than 10 bits"
    fewer = many[:500]
    reason = rank.find(ThresholdTable("f", lo, hi, fewer, np.arange(501)[:, None]))
    assert isinstance(reason, str)
    assert "bits a channel" in reason


@pytest.mark.parametrize("seed", range(6))
def test_compare_equals_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    accepted = 0
    for lo, hi in intervals(rng):
        for count in (1, 2, 7, 20):
            for falling in (False, True):
                steps = rising(rng, lo, hi, count, falling)
                realization = compare.find(steps)
                if isinstance(realization, str):
                    # Only where all sets are constant.
                    assert (steps.first == steps.last).all()
                    continue
                accepted += 1
                assert len(realization.table) <= count
                every(realization, steps)
    assert accepted > 50


@pytest.mark.parametrize("lo, hi", WIDE)
def test_compare_of_wide_inputs(lo: int, hi: int) -> None:
    rng = np.random.default_rng(3)
    steps = rising(rng, np.full(4, lo), np.full(4, hi), 12, falling=True)
    realization = compare.find(steps)
    assert isinstance(realization, Comparators)
    assert_equal_wide(rng, realization, steps)


def test_compare_leaves_out_what_is_always_or_never_reached() -> None:
    # Set 0 rises from 6 to 8, set 1 falls from 8 to 6; codes 5 and 9 do not occur.
    lo, hi = np.array([-9, -9]), np.array([9, 9])
    thresholds = np.array([[-9, -9], [2, -3], [4, 0], [10, 10]])
    steps = ThresholdTable("f", lo, hi, thresholds, np.array([[5, 9], [6, 8], [7, 7], [8, 6], [9, 5]]))
    realization = compare.find(steps)
    assert isinstance(realization, Comparators)
    assert realization.base == 6
    assert realization.table.tolist() == [[2, 0], [4, -3]]
    every(realization, steps)


@pytest.mark.parametrize(
    "values, reason",
    [
        ([[0, 0], [1, 2], [2, 3]], "set 1 does not rise or fall"),
        ([[0, 1], [1, 2], [2, 3]], "set 1 does not rise or fall"),
        ([[0, 0], [1, 1], [0, 2]], "set 0 does not rise or fall"),
    ],
)
def test_compare_refuses_other_values(values: list[list[int]], reason: str) -> None:
    steps = ThresholdTable("f", np.zeros(2, int), np.full(2, 99), np.array([[3, 4], [7, 90]]), np.array(values))
    realization = compare.find(steps)
    assert isinstance(realization, str)
    assert realization.startswith(reason)


def test_compare_refuses_many_thresholds_and_none() -> None:
    largest = ThresholdTable("f", np.array([0]), np.array([99]), np.arange(1, 32)[:, None], np.arange(32)[:, None])
    many = ThresholdTable("f", np.array([0]), np.array([99]), np.arange(1, 33)[:, None], np.arange(33)[:, None])
    none = ThresholdTable("f", np.array([0]), np.array([99]), np.array([[0]]), np.array([[4], [5]]))
    assert isinstance(compare.find(largest), Comparators)
    assert compare.find(many) == "it has 32 thresholds at which the code changes, not 1 to 31"
    assert compare.find(none) == "it has 0 thresholds at which the code changes, not 1 to 31"


def a_table(steps: ThresholdTable, folds: int = 1) -> Table:
    realization = table.find(steps, folds)
    assert isinstance(realization, Table), realization
    return realization


@pytest.mark.parametrize("seed", range(4))
def test_table_equals_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for lo, hi in intervals(rng):
        for count in (1, 2, 30):
            for steps in (bundle(rng, lo, hi, count), rising(rng, lo, hi, count, falling=True)):
                for realization in (a_table(steps), a_table(steps, 64), *each_table(steps)):
                    every(realization, steps)


def each_table(steps: ThresholdTable) -> list[Table]:
    realization = (table._full_table(steps), table._window(steps), *table._halves(steps))
    return [each for each in realization if each is not None]


@pytest.mark.parametrize("lo, hi", WIDE)
def test_table_of_a_window_of_wide_inputs(lo: int, hi: int) -> None:
    rng = np.random.default_rng(5)
    at = np.array([lo, hi - 4094, (lo + hi) // 2])
    thresholds = np.sort(at + rng.integers(1, 4095, (40, 3)), axis=0)
    steps = ThresholdTable("f", np.full(3, lo), np.full(3, hi), thresholds, rng.integers(-9, 9, (41, 3)))
    realization = a_table(steps)
    assert realization.mode == TableMode.WINDOW
    assert_equal_wide(rng, realization, steps)
    steps.table[0, 1] -= 5000
    assert table.find(steps) == "neither the inputs nor the steps of some set lie within 2^12 inputs"


def odd_function(x: Array, slope: float) -> Array:
    return np.round(127 * np.tanh(slope * x)).astype(np.int64)


def test_wide_table_of_a_function_with_many_steps() -> None:
    x = np.arange(-(1 << 15), 1 << 15)
    turning = sampled(-(1 << 15), [(x * 5 // 7) ^ (x >> 9)])
    realization = table.find(turning)
    assert isinstance(realization, Table)
    assert realization.bits == 16
    every(realization, turning)
    few = ThresholdTable(
        "f", np.array([-(1 << 15)]), np.array([(1 << 15) - 1]), np.array([[-20000], [20000]]), np.array([[0], [1], [0]])
    )
    assert isinstance(table.find(few), str)


def test_half_table() -> None:
    """Symmetry with an asymmetric domain, saturated or not, around zero or a center of each set."""
    x = np.arange(-2048, 2048)
    slopes = (0.0004, 0.0007, 0.003)
    for steps, bits, even, total, constants in (
        # -2048 is alone: its index does not exist, the last one has to hold its code.
        (sampled(-2048, [np.clip(odd_function(x, s), -85, 85) for s in slopes]), 11, True, 0, (0, 0, 0)),
        (sampled(-2048, [3 - odd_function(x + 0.5, s) for s in slopes]), 11, False, 6, (0, 0, 0)),
        (sampled(-2048, [odd_function(x - c, 0.02) for c in (5, -40, 77)]), 8, True, 0, (5, -40, 77)),
    ):
        halves = [realization for realization in each_table(steps) if realization.mode == TableMode.HALF]
        for realization in halves:
            every(realization, steps)
        assert [(h.bits, h.even, h.total, tuple(h.center.tolist())) for h in halves] == [(bits, even, total, constants)]
        assert a_table(steps).mode == TableMode.HALF


def test_half_table_is_not_taken_for_almost_symmetric_functions() -> None:
    x = np.arange(-2048, 2048)
    column = odd_function(x, 0.0012)
    assert a_table(sampled(-2048, [column])).mode == TableMode.HALF
    for at in (100, 2000, 2047, 2048, 2049, 4000):
        broken = column.copy()
        broken[at] += 1
        steps = sampled(-2048, [broken])
        assert not [realization for realization in each_table(steps) if realization.mode == TableMode.HALF]
        every(a_table(steps), steps)
    # Two sets with different sums, or one with its center between two inputs.
    for asymmetric in (column + 1, odd_function(x + 0.5, 0.0012)):
        steps = sampled(-2048, [column, asymmetric])
        assert not [realization for realization in each_table(steps) if realization.mode == TableMode.HALF]


def test_tables_are_compared_at_every_entry() -> None:
    """Also at those between the steps, and at those that only inputs below the center read."""
    x = np.arange(-1500, 101)
    steps = sampled(-1500, [np.sign(x) * (abs(x) // width) for width in (64, 70)])
    tables = each_table(steps)
    assert [realization.mode for realization in tables] == [TableMode.DIRECT, TableMode.WINDOW, TableMode.HALF]
    for realization in tables:
        assert table._equal(realization, steps)
        for x in range(-1450, 0, 50):
            entry = int(
                abs(x) if realization.mode == TableMode.HALF else (x - realization.center[1]) % len(realization.entries)
            )
            realization.entries[entry, 1] += 1
            assert not table._equal(realization, steps)
            realization.entries[entry, 1] -= 1


def test_half_table_with_a_constant_set() -> None:
    x = np.arange(-2048, 2048)
    steps = sampled(-2048, [odd_function(x, 0.002), np.full(len(x), 7)])
    realization = a_table(steps)
    assert realization.mode == TableMode.HALF
    every(realization, steps)


def test_table_costs() -> None:
    source, result = IntType(-128, 127), IntType(-128, 127)
    steps = sampled(-128, [np.random.default_rng(0).integers(-128, 128, 256)])
    realization = a_table(steps)
    assert realization.mode == TableMode.DIRECT
    assert table.cost(realization, np.zeros((1, 2), np.int64), source, result) == (2 * 32, 0, 0)
    assert table.cost(realization, np.zeros((9, 2), np.int64), source, result) == (0, 0, 2 * 9 * 2048)
    half = Table(TableMode.HALF, np.zeros((256, 1), np.int64), np.zeros(1, np.int64))
    plain, _, memory = table.cost(half, np.zeros((9, 1), np.int64), source, result)
    assert memory == 9 * 2048
    # The negation, and the subtraction of the center.
    assert table.cost(replace(half, even=True), np.zeros((9, 1), np.int64), source, result)[0] > plain + 8
    assert table.cost(replace(half, center=half.center + 3), np.zeros((9, 1), np.int64), source, result)[0] > plain + 8
