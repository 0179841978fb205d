"""hg_rank: step functions by a cascade of tables, against the step functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

from hlsgen.numerics.fixed import int_type
from hlsgen.rescale.realize import rank
from hlsgen.rescale.threshold_table import ThresholdTable
from hlsgen.verilog.binding import rank as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """`steps` thresholds at multiples of 2^low; lanes with the same function if `same`."""

    lanes: int
    in_w: int
    in_signed: bool
    out_w: int
    out_signed: bool
    steps: int
    low: int = 0
    same: bool = False


CASES = [
    Case(3, 11, True, 4, True, 15),
    Case(2, 7, False, 3, False, 5, low=2),
    Case(32, 16, True, 4, True, 15, same=True),
    Case(1, 1, False, 1, False, 1),
    Case(2, 1, True, 2, True, 1),
    Case(2, 32, True, 3, False, 7),
    Case(2, 40, False, 5, True, 12, low=20),
    Case(1, 12, False, 8, False, 200),
    Case(4, 16, True, 1, True, 1),
]


def functions(rng: np.random.Generator, case: Case) -> ThresholdTable:
    """A set for each lane, each with less thresholds than the one before."""
    bounds = int_type(case.in_w, case.in_signed)
    lo, hi = np.full(case.lanes, bounds.lo), np.full(case.lanes, bounds.hi)
    shape = (case.steps, case.lanes)
    table = np.sort(rng.integers((lo >> case.low) + 1, hi >> case.low, shape, endpoint=True) << case.low, axis=0)
    for lane in range(1, case.lanes):
        table[case.steps - min(lane, case.steps - 1) :, lane] = bounds.hi + 1
    values = integers(rng, case.out_w, case.out_signed, (case.steps + 1, case.lanes))
    # One function at least changes at every threshold.
    values[1:, 0] = np.where(values[1:, 0] == values[:-1, 0], values[:-1, 0] ^ 1, values[1:, 0])
    if case.same:
        table, values = np.repeat(table[:, :1], case.lanes, 1), np.repeat(values[:, :1], case.lanes, 1)
    return ThresholdTable("f", lo, hi, table, values)


def stimulus(rng: np.random.Generator, case: Case, f: ThresholdTable) -> np.ndarray:
    """Every input in every lane, or once where all lanes are the same, or inputs near thresholds."""
    if case.in_w <= 16:
        codes = np.arange(f.lo[0], f.hi[0] + 1)
        if case.same:
            return rng.permutation(codes).reshape(-1, case.lanes)
        if case.in_w <= 12:
            codes = np.tile(codes, max(1, 200 // len(codes)))
            return np.stack([rng.permutation(codes) for _ in range(case.lanes)], axis=1)
    x = integers(rng, case.in_w, case.in_signed, (1200, case.lanes))
    near_thresholds = np.take_along_axis(f.table, rng.integers(0, f.steps, x.shape), 0) + rng.integers(-1, 1, x.shape)
    return np.clip(np.where(rng.random(x.shape) < 0.6, near_thresholds, x), f.lo, f.hi)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_rank(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.in_w + case.lanes)
    f = functions(rng, case)
    cascade = rank.find(f)
    assert not isinstance(cascade, str)
    assert cascade.low >= min(case.low, case.in_w - 1)
    x = stimulus(rng, case, f)
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, case.out_signed)
    bound = binding.bind(cascade, np.arange(case.lanes)[None], source, result, "f")
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(f.apply(x), case.out_w)},
        latency=cascade.latency,
        capacity=cascade.latency,
    )
    parameters = {name: constant(value) for name, value in bound.parameters.items()}
    simulate(simulator, bound.module, parameters, job, bound.memories)
