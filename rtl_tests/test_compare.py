"""hg_compare: step functions by comparison with all thresholds, against the step functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

from hlsgen.numerics.fixed import IntType, int_type
from hlsgen.rescale.realize import compare
from hlsgen.rescale.threshold_table import ThresholdTable
from hlsgen.verilog.binding import compare as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """`base`: the least code; `falling`: some sets fall; `ends`: thresholds at lo and above hi."""

    lanes: int
    folds: int
    in_w: int
    in_signed: bool
    steps: int
    base: int
    falling: bool = False
    ends: bool = False


CASES = [
    Case(3, 5, 8, True, 3, -4, falling=True, ends=True),
    Case(4, 1, 10, True, 15, -8, falling=True),
    Case(2, 1, 8, False, 7, 0, falling=True, ends=True),
    Case(1, 1, 1, False, 1, 0),
    Case(1, 2, 1, True, 1, -1, falling=True),
    Case(2, 3, 32, False, 2, -3, ends=True),
    Case(2, 1, 32, True, 5, 3),
    Case(1, 4, 16, True, 31, -16, falling=True),
    Case(5, 1, 16, True, 6, 0),
]


def functions(rng: np.random.Generator, case: Case) -> ThresholdTable:
    bounds, sets = int_type(case.in_w, case.in_signed), case.folds * case.lanes
    lo, hi = np.full(sets, bounds.lo), np.full(sets, bounds.hi)
    table = rng.integers(lo + (not case.ends), hi + case.ends, (case.steps, sets), endpoint=True)
    if case.ends:
        table[0, ::3], table[-1, ::4] = bounds.lo, bounds.hi + 1
    table[case.steps // 2, ::5] = table[0, ::5]
    values = np.repeat(case.base + np.arange(case.steps + 1)[:, None], sets, axis=1)
    if case.falling:
        values[:, ::2] = values[::-1, ::2]
    return ThresholdTable("f", lo, hi, np.sort(table, axis=0), values)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_compare(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.in_w + case.lanes)
    f = functions(rng, case)
    realization = compare.find(f)
    assert not isinstance(realization, str)
    sets = np.arange(f.sets).reshape(case.folds, case.lanes)
    if case.in_w <= 12:
        # Every input of every set.
        codes = np.tile(np.arange(f.lo[0], f.hi[0] + 1), max(1, 100 // (f.hi[0] - f.lo[0] + 1)))
        order = np.stack([rng.permutation(codes) for _ in range(f.sets)], axis=1)
        x = order.reshape(-1, case.lanes)
    else:
        x = integers(rng, case.in_w, case.in_signed, (600 * case.folds, case.lanes))
        near_thresholds = np.concatenate([rng.choice(f.table[:, s], 600) for s in sets.ravel()]).reshape(
            *sets.shape, 600
        )
        near_thresholds = near_thresholds.transpose(2, 0, 1).reshape(x.shape) + rng.integers(-1, 1, x.shape)
        x = np.clip(np.where(rng.random(x.shape) < 0.7, near_thresholds, x), f.lo[0], f.hi[0])
    code = f.apply(x.reshape(-1, f.sets)).reshape(x.shape)
    source, result = int_type(case.in_w, case.in_signed), IntType(case.base, case.base + case.steps)
    bound = binding.bind(realization, sets, source, result, "f")
    assert bound.parameters["STEPS"] == case.steps
    assert bound.parameters["FALLING"] == case.falling
    job = Stream(
        {"s_data": pack(x, source.bits)},
        {"m_data": pack(code, result.bits)},
        latency=realization.latency,
        capacity=realization.latency,
    )
    parameters = {name: constant(value) for name, value in bound.parameters.items()}
    simulate(simulator, bound.module, parameters, job, bound.memories)
