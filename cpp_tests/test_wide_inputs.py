"""Realizations on inputs of more than 16 bits, chosen by hypothesis near ends, ties and thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, compile_cases, send
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rescale_cases import rescaled

from hlsgen.ir.ops import Rounding
from hlsgen.numerics.fixed import Array, IntType, int_type
from hlsgen.rescale import Comparators, FloatScale, Scale, Shift, Thresholds
from hlsgen.rescale.realize import correct
from hlsgen.rescale.threshold_table import ThresholdTable

#: Beats of two frames.
BEATS = 16


@dataclass(frozen=True, eq=False)
class Wide:
    """A realization of one function. `interesting`: inputs that are tried often, with their neighbours."""

    realization: Any
    source: IntType
    result: IntType
    interesting: tuple[int, ...]

    def case(self, x: Array) -> tuple[Case, Array]:
        return rescaled(self.realization, np.zeros((1, 1), np.int64), self.source, self.result, x.reshape(-1, 1))

    @property
    def inputs(self) -> st.SearchStrategy[list[int]]:
        lo, hi = self.source.lo, self.source.hi
        near_interesting = st.tuples(st.sampled_from((lo, 0, hi, *self.interesting)), st.integers(-2, 2)).map(sum)
        any_input = st.one_of(near_interesting.map(lambda x: min(max(x, lo), hi)), st.integers(lo, hi))
        return st.lists(any_input, min_size=BEATS, max_size=BEATS)


def column(*values: int) -> Array:
    return np.array(values, np.int64)


def wide_realizations(seed: int) -> list[Wide]:
    """Every multiplying, shifting or comparing realization, with random constants."""
    rng = np.random.default_rng(seed)
    bits, shift = int(rng.integers(17, 31)), int(rng.integers(8, 20))
    source, result = int_type(bits, bool(seed % 2)), int_type(8, True)
    one_code = 1 << shift
    m, a, odd = (
        int(x) for x in (rng.integers(-(1 << 12), 1 << 12), rng.integers(-one_code, one_code), rng.integers(2))
    )
    ties = tuple(int(((2 * k + 1) * one_code // 2 - a) / (m or 1)) for k in range(-9, 9))
    steps = np.sort(rng.integers(source.lo, source.hi + 1, 31))
    span = source.hi - source.lo
    evenly_spaced = np.clip((source.lo + span * (np.arange(63) + 0.5) / 63).astype(np.int64), source.lo, source.hi)
    thresholds = np.clip(evenly_spaced + rng.integers(-9, 10, 63), source.lo, source.hi)
    codes = np.arange(64)[:, None]
    table = ThresholdTable("f", column(source.lo), column(source.hi), thresholds[:, None], codes)
    guess = correct.find(table, False)
    assert isinstance(guess, correct.Correct), guess
    centre, mantissa = int(rng.integers(source.lo, source.hi)), int(rng.integers(1 << 23, 1 << 24))
    product = bits + int(rng.integers(14, 18))
    float_ties = tuple(int((k + 0.5) * 2.0**product / mantissa) for k in range(-9, 9))
    falls = np.array([bool(seed % 2)])
    ordered = np.ascontiguousarray(steps[::-1] if falls[0] else steps)[:, None]
    realizations = [
        Wide(Scale(column(m), column(a), shift, -128, 127), source, result, ties),
        Wide(Scale(column(m), column(a), shift, -128, 127, column(odd)), source, result, ties),
        Wide(
            Scale(column(m), column(a), shift, -128, 127, None, column(centre), column(-a)), source, result, (centre,)
        ),
        Wide(
            FloatScale(column(mantissa), column(0), product, column(3), column(-2), bits + 1, -128, 127),
            source,
            result,
            float_ties,
        ),
        Wide(guess, source, IntType(0, 63), tuple(thresholds.tolist())),
    ]
    kinds = (Comparators(ordered, falls, -3), Thresholds(ordered, falls, -3))
    realizations += [Wide(comparison, source, IntType(-3, 28), tuple(steps.tolist())) for comparison in kinds]
    for mode in Rounding:
        halves = tuple(((2 * k + 1) * one_code >> 1) - a for k in range(-9, 9))
        realizations.append(Wide(Shift(0, shift, mode, column(a), -128, 127), source, result, halves))
    return realizations


def check(seed: int, dialect: str, folder: Path, examples: int) -> None:
    """Compile one program for all realizations, and run it on the inputs of every example."""
    cases_by_kind = wide_realizations(seed)
    compile_cases(folder, [each.case(np.zeros(BEATS, np.int64))[0] for each in cases_by_kind], dialect)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.tuples(*(each.inputs for each in cases_by_kind)))
    def equal(inputs: tuple[list[int], ...]) -> None:
        cases = [each.case(np.array(x, np.int64)) for each, x in zip(cases_by_kind, inputs, strict=True)]
        for (case, codes), (output,) in zip(cases, send(folder, [case for case, _ in cases]), strict=True):
            assert output.tolist() == codes.tolist(), (case.call.function, case.call.arguments)

    equal()


@pytest.mark.parametrize("dialect", ["ac", pytest.param("ap", marks=pytest.mark.slow)])
def test_wide_inputs(dialect: str, tmp_path: Path) -> None:
    check(1, dialect, tmp_path, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_many(seed: int, dialect: str, tmp_path: Path) -> None:
    check(seed, dialect, tmp_path, 300)
