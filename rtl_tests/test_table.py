"""hg_table: look-up of all values, of a window, of half a window, against hlsgen.rescale.table.Table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

from hlsgen.numerics.fixed import int_type
from hlsgen.rescale.realize.table import Table, TableMode
from hlsgen.verilog.binding import table as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """`center`: the greatest distance of a center from zero."""

    lanes: int
    folds: int
    in_w: int
    in_signed: bool
    out_w: int
    out_signed: bool
    mode: TableMode
    bits: int
    center: int = 0
    even: bool = False
    total: int = 0


CASES = [
    Case(2, 3, 9, True, 6, True, TableMode.HALF, 5, 100, even=True, total=-7),
    Case(3, 1, 8, False, 8, False, TableMode.DIRECT, 8),
    Case(2, 5, 8, True, 3, True, TableMode.WINDOW, 4, 60),
    Case(1, 1, 10, True, 8, False, TableMode.HALF, 7, 0, total=255),
    Case(2, 1, 10, True, 8, True, TableMode.HALF, 7, 0, even=True),
    Case(1, 2, 8, False, 4, False, TableMode.HALF, 8, 200, total=15),
    Case(1, 1, 1, True, 2, True, TableMode.DIRECT, 1),
    Case(1, 2, 1, False, 1, False, TableMode.HALF, 1, 1, even=True, total=1),
    Case(2, 3, 8, True, 5, False, TableMode.DIRECT, 5),
    Case(2, 2, 32, False, 16, True, TableMode.WINDOW, 6, 2**32 - 70),
    Case(2, 3, 32, True, 4, False, TableMode.HALF, 3, 2**30, even=True, total=15),
    Case(1, 3, 9, True, 4, True, TableMode.WINDOW, 9, 200),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_table(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.in_w + case.bits)
    source, result = int_type(case.in_w, case.in_signed), int_type(case.out_w, case.out_signed)
    sets = case.folds * case.lanes
    entries = integers(rng, case.out_w, case.out_signed, (1 << case.bits, sets))
    center = rng.integers(-case.center if case.in_signed else 0, case.center, sets, endpoint=True)
    center[:1] = case.center
    # Half tables hold entries whose mirror image is a code.
    if case.mode == TableMode.HALF:
        entries = np.clip(entries, max(result.lo, case.total - result.hi), min(result.hi, case.total - result.lo))
    reference = Table(case.mode, entries, center, case.even, case.total)
    if case.in_w <= 10:
        # Every input of every set.
        codes = np.tile(np.arange(source.lo, source.hi + 1), max(1, 100 >> case.in_w))
        x = np.stack([rng.permutation(codes) for _ in range(sets)], axis=1)
    else:
        x = integers(rng, case.in_w, case.in_signed, (400, sets))
        near_centers = center + rng.integers(-3 << case.bits, 3 << case.bits, x.shape)
        x = np.clip(np.where(rng.random(x.shape) < 0.8, near_centers, x), source.lo, source.hi)
    bound = binding.bind(reference, np.arange(sets).reshape(case.folds, case.lanes), source, result, "f")
    job = Stream(
        {"s_data": pack(x.reshape(-1, case.lanes), source.bits)},
        {"m_data": pack(reference.apply(x).reshape(-1, case.lanes), result.bits)},
        latency=reference.latency,
        capacity=reference.latency,
    )
    parameters = {name: constant(value) for name, value in bound.parameters.items()}
    simulate(simulator, bound.module, parameters, job, bound.memories)
