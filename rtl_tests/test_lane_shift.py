"""hg_lane_shift: a shift, a rounding, an offset and bounds for each lane, against hlsgen.rescale.LaneShift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

from hlsgen.numerics.fixed import int_type
from hlsgen.rescale.realize.lane_shift import LaneShift
from hlsgen.verilog.binding import lane_shift as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """Lanes with all roundings in turn, offsets of `b_w` bits with `zeros` zeros below, and `every` as in LaneShift."""

    lanes: int
    in_w: int
    in_signed: bool
    out_w: int
    out_signed: bool
    most_left: int
    most_shift: int
    b_w: int
    zeros: int = 0
    every: int = 2
    floors: bool = False


CASES = [
    Case(14, 9, True, 5, True, 0, 7, 8),
    Case(7, 8, False, 4, False, 0, 6, 9, 3, floors=True),
    Case(3, 1, False, 2, True, 3, 0, 2),
    Case(7, 20, True, 9, True, 2, 13, 18, 4, every=1, floors=True),
    Case(9, 12, True, 6, False, 0, 9, 0),
]


def lanes_of(rng: np.random.Generator, case: Case) -> LaneShift:
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, case.out_signed)
    count = case.lanes
    left_shift, shift = rng.integers(0, case.most_left + 1, count), rng.integers(0, case.most_shift + 1, count)
    mode = np.full(count, 2) if case.floors else np.arange(count) % 7
    reach = (1 << case.b_w) >> 1
    offset = rng.integers(-reach, reach + 1, count) >> case.zeros << case.zeros
    low, high = np.sort(rng.integers(result.lo, result.hi + 1, (2, count)), axis=0)
    # A lane without bounds that are reached, and one that is constant.
    low[0], high[0] = result.lo, result.hi
    high[-1] = low[-1]
    return LaneShift(
        left_shift, shift, mode, offset, low, high, np.full(count, source.lo), np.full(count, source.hi), case.every
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 2))
def test_lane_shift(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.in_w + case.lanes)
    lanes = lanes_of(rng, case)
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, case.out_signed)
    x = integers(rng, case.in_w, case.in_signed, (600, case.lanes))
    small = integers(rng, min(case.in_w, 6), case.in_signed, x.shape)
    x = np.where(rng.random(x.shape) < 0.4, small, x)
    bound = binding.bind(lanes, np.arange(case.lanes)[None], source, result)
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(lanes.apply(x), case.out_w)},
        latency=lanes.latency,
        capacity=lanes.latency,
    )
    simulate(simulator, bound.module, {name: constant(v) for name, v in bound.parameters.items()}, job, {})
