"""hg_norm_moments, hg_norm_root, hg_norm_scale: against integers, and together against the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import Unit
from bench import simulate as bench
from streams import Stream, pack, sweep

from hlsgen.dataflow.norm_units import NormMoments, NormRoot, NormScale, RowCodes, units_of
from hlsgen.dataflow.units import stream_of
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import moments, normalized, reciprocal_roots
from hlsgen.verilog.binding.memory_files import Binding, Bits
from hlsgen.verilog.binding.norm import bind_moments, bind_root, bind_scale
from hlsgen.verilog.render import constant
from hlsgen.verilog.unit_table import latency

Array = Any
F = Fraction

# elements of a row, lanes, type of the codes, shift, offset, centered, addend, ways
CASES: list[tuple[int, int, IntType, int, int, bool, Fraction, int]] = [
    (6, 2, IntType(-8, 7), 0, 0, True, F(36, 1) * F(float(np.float32(1e-5))) / F(float(np.float32(0.3))) ** 2, 2),
    (4, 4, IntType(0, 255), 0, -128, False, F(3, 7), 1),
    (24, 3, IntType(-128, 127), 0, 0, True, F(5, 4), 3),
    (5, 1, IntType(0, 3), 1, -3, False, F(1, 1 << 20), 2),
    (3, 3, IntType(-1, 0), 0, 0, True, F(12345678901, 1000), 5),
    (16, 8, IntType(0, 15), 0, 0, True, F(1, 3), 4),
    (1, 1, IntType(-2, 1), 0, 0, False, F(7, 11), 1),
    (9, 9, IntType(-8, 7), 0, 3, False, F(2, 5), 2),
    (8, 2, IntType(0, 255), 0, -10, True, F(1, 7), 2),  # squares of 9 bits, the widest in tables
    (4, 1, IntType(-1024, 1023), 0, 0, False, F(5, 9), 2),  # squares by products
]
Case = tuple[int, int, IntType, int, int, bool, Fraction, int]


def parameters(binding: Binding) -> dict[str, object]:
    return {k: constant(v) if isinstance(v, Bits) else v for k, v in binding.parameters.items()}


def parts(case: Case) -> tuple[RowCodes, tuple[NormMoments, NormRoot, NormScale]]:
    length, lanes, type_, shift, offset, centered, addend, rows_in_flight = case
    rows = RowCodes(length, type_, shift, offset, centered)
    return rows, units_of(rows, addend, lanes, rows_in_flight)


def codes(case: Case, count: int) -> Array:
    """Random rows, and some of extremes."""
    length, type_ = case[0], case[2]
    rng = np.random.default_rng(length)
    x = rng.integers(type_.lo, type_.hi + 1, (count, length))
    x[0], x[1] = type_.lo, type_.hi
    x[2, ::2], x[2, 1::2] = type_.lo, type_.hi
    x[3] = type_.lo
    x[3, 0] = type_.hi
    return x


def words_of_rows(case: Case, x: Array) -> tuple[list[int], list[int]]:
    """Output words of hg_norm_moments and hg_norm_root for these rows."""
    _, _, _, shift, offset, centered, addend, _ = case
    rows, (moments_unit, root, _) = parts(case)
    q = (x << shift) + offset
    _, moment = moments(q, centered)
    sums = q.sum(axis=1) if centered else np.zeros(len(q), np.int64)
    low = [int(s) & ((1 << rows.sum_bits) - 1) for s in sums]
    moment_words = [int(m) << rows.sum_bits | s for m, s in zip(moment, low, strict=True)]
    significands, e = reciprocal_roots(moment, addend)
    steps = 1 - root.constants.exponent - e
    root_words = [
        (int(k) << 24 | int(m)) << rows.sum_bits | s for k, m, s in zip(steps, significands, low, strict=True)
    ]
    assert max(moment_words).bit_length() <= moments_unit.moment_bits + rows.sum_bits
    return moment_words, root_words


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_moments(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    length, lanes, type_ = case[:3]
    unit = parts(case)[1][0]
    x = codes(case, max(40, 300 // unit.beats))
    source = stream_of(type_, lanes, x.size, length)
    job = Stream(
        {"s_data": pack(x.reshape(-1, lanes), type_.bits)},
        {"m_data": words_of_rows(case, x)[0]},
        latency=latency(unit),
        completes=[(v + 1) * unit.beats - 1 for v in range(len(x))],
        short=100,
    )
    simulate(simulator, "hg_norm_moments", parameters(bind_moments(unit, source)), job)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_root(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    """One row at a time."""
    unit = parts(case)[1][1]
    unit = replace(unit, rows_in_flight=1)
    moment_words, root_words = words_of_rows(case, codes(case, 40))
    job = Stream(
        {"s_data": moment_words},
        {"m_data": root_words},
        latency=latency(unit),
        capacity=1,
        continuous="output",
        gap=unit.cycles + 1,
        short=20,
    )
    simulate(simulator, "hg_norm_root", parameters(bind_root(unit)), job)


@pytest.mark.cases(1)
@pytest.mark.parametrize("case, gap", [(3, 1), (0, 2), (2, 5), (4, 3)])
def test_rows_follow_each_other(simulate: Callable[..., None], case: int, gap: int) -> None:
    """As near as the unit allows, with as many rows under way as that makes."""
    unit = replace(parts(CASES[case])[1][1], gap=gap)
    unit = replace(unit, rows_in_flight=-(-(unit.cycles + 1) // gap))
    moment_words, root_words = words_of_rows(CASES[case], codes(CASES[case], 2 * unit.rows_in_flight + 20))
    job = Stream(
        {"s_data": moment_words},
        {"m_data": root_words},
        latency=latency(unit),
        capacity=unit.rows_in_flight,
        continuous="output",
        gap=gap,
        short=70,
    )
    simulate("icarus", "hg_norm_root", parameters(bind_root(unit)), job)


def test_elements_and_rows(tmp_path: Path) -> None:
    """hg_norm_scale gives every result of the contract 8 enabled cycles after its beats.

    It consumes a row's beat with the last beat of the row's elements.
    """
    units, expected_words = [], []
    for case in CASES:
        length, lanes, type_, shift, offset, centered, addend, _ = case
        unit = parts(case)[1][2]
        x = codes(case, max(12, 480 // unit.beats))
        rows = words_of_rows(case, x)[1]
        bits = unit.rows.sum_bits + 24 + unit.constants.step_bits
        source = stream_of(type_, lanes, x.size, length)
        units.append(
            Unit(
                "hg_norm_scale",
                parameters(bind_scale(unit, source)),
                {"a": pack(x.reshape(-1, lanes), type_.bits), "b": rows},
                {"a": lanes * type_.bits, "b": bits, "m": 32 * lanes},
            )
        )
        real = normalized((x << shift) + offset, centered, addend).astype(np.float32)
        expected_words.append(pack(real.view(np.uint32).astype(np.int64).reshape(-1, lanes), 32))
    for case, words, phases in zip(CASES, expected_words, bench(units, tmp_path), strict=True):
        beats = parts(case)[1][2].beats
        for ports in phases:
            a, b, m = (ports[name] for name in "abm")
            assert m.words == words[: len(m.words)]
            assert m.holds_still()
            np.testing.assert_array_equal(b.accepted, a.accepted[beats - 1 :: beats])
            lag = np.cumsum(m.enabled)
            input_cycles = a.accepted[: len(m.offered)]
            shown = m.offered[: len(input_cycles)]
            np.testing.assert_array_equal(lag[shown - 1] - lag[input_cycles] + 1, np.full(len(shown), 8))
        assert max(len(ports["m"].words) for ports in phases) > 100
