"""hg_lane_table: a lookup table for each lane, against hlsgen.rescale.LaneTable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

from hlsgen.numerics.fixed import int_type
from hlsgen.rescale.realize.lane_table import LaneTable
from hlsgen.verilog.binding import lane_table as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """Lanes with random tables. `most`: most bits of an index; `offsets`: 0: none, else all are multiples of it."""

    lanes: int
    in_w: int
    in_signed: bool
    out_w: int
    out_signed: bool
    most: int
    offsets: int
    every: int = 2


CASES = [
    Case(9, 9, True, 5, True, 7, 1),
    Case(6, 8, False, 4, False, 5, 4, every=1),
    Case(4, 1, False, 2, True, 2, 1),
    Case(3, 12, True, 1, False, 10, 0),
    Case(5, 4, True, 7, True, 5, 1),
]


def lanes_of(rng: np.random.Generator, case: Case) -> LaneTable:
    result = int_type(case.out_w, case.out_signed)
    bits = rng.integers(1, case.most + 1, case.lanes)
    # The last lane is constant.
    bits[-1] = 0
    shift = np.array([int(rng.integers(0, case.in_w + 2 - n)) if n else 0 for n in bits.tolist()])
    step = case.offsets
    offset = rng.integers(0, 1 << case.in_w, case.lanes) // step * step if step else np.zeros(case.lanes, np.int64)
    values = tuple(rng.integers(result.lo, result.hi + 1, 1 << n) for n in bits.tolist())
    return LaneTable(offset, shift, bits, values, case.every)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 2))
def test_lane_table(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    """Random inputs, and for narrow ones every input in every lane."""
    rng = np.random.default_rng(case.in_w + case.lanes)
    lanes = lanes_of(rng, case)
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, case.out_signed)
    x = integers(rng, case.in_w, case.in_signed, (600, case.lanes))
    every = np.arange(source.lo, source.hi + 1)[:600]
    x[: len(every)] = every[:, None]
    bound = binding.bind(lanes, np.arange(case.lanes)[None], source, result)
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(lanes.apply(x), case.out_w)},
        latency=lanes.latency,
        capacity=lanes.latency,
    )
    simulate(simulator, bound.module, {name: constant(v) for name, v in bound.parameters.items()}, job, {})
