"""hg/dynamic_mvu.hpp: products of two streams, against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.dataflow.units import DynamicMatVec, Node, Stream
from hlsgen.numerics.fixed import Array, IntType, int_type

SUMS = 7


def product(
    a: IntType,
    b: IntType,
    shape: tuple[int, int, int],
    factors: tuple[int, int],
    offsets: tuple[int, int],
    *,
    rows_first: bool,
) -> tuple[Case, Array]:
    """Case with two frames, and the sums that numpy computes. `shape`: PE, SIMD, folds."""
    pe, simd, folds = shape
    rng = np.random.default_rng(pe + simd)
    x = rng.integers(a.lo, a.hi + 1, (2 * SUMS, folds, simd))
    w = rng.integers(b.lo, b.hi + 1, (2 * SUMS, folds, pe, simd))
    x[0], w[0], x[1], w[1] = a.lo, b.lo, a.hi, b.lo
    a_values, b_values = x * factors[0] + offsets[0], w * factors[1] + offsets[1]
    sums = (a_values[:, :, None] * b_values).sum(axis=(1, 3))
    ends = [IntType(t.lo * f + o, t.hi * f + o) for t, f, o in zip((a, b), factors, offsets, strict=True)]
    unit = DynamicMatVec(pe, simd, folds, factors, offsets, (ends[0], ends[1]), rows_first)
    lanes = w if rows_first else w.swapaxes(2, 3)
    beats = SUMS * folds
    sources = Stream(a, simd, beats, beats * simd), Stream(b, pe * simd, beats, beats * pe * simd)
    result = Stream(IntType(min(-1, int(sums.min())), max(0, int(sums.max()))), pe, SUMS, SUMS * pe)
    node = Node("mm", unit, ("a", "b"), sources, ("m",), result)
    return case_of(node, [x.reshape(-1, simd), lanes.reshape(-1, pe * simd)], 2), sums


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_products(dialect: str, tmp_path: Path) -> None:
    cases = [
        product(int_type(4, True), int_type(4, True), (2, 3, 4), (1, 1), (0, 0), rows_first=True),
        product(int_type(8, False), int_type(8, False), (3, 2, 1), (1, 1), (-128, -3), rows_first=False),
        product(IntType(0, 1), IntType(0, 1), (1, 9, 2), (2, 2), (-1, -1), rows_first=True),
        product(int_type(12, True), int_type(3, False), (4, 1, 5), (8, 1), (-5, 9), rows_first=False),
    ]
    outputs = run_cases(tmp_path, [case for case, _ in cases], dialect)
    for streams, (_, sums) in zip(outputs, cases, strict=True):
        assert (streams[0] == sums).all()
