"""hg/mvu.hpp: a matrix times vectors, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.dataflow.units import MatVec, Node, Product, Stream
from hlsgen.numerics.fixed import Array, IntType, int_type


def matrix(x: IntType, product: Product, rows: int, columns: int, pe: int, simd: int, bits: int) -> tuple[Case, Array]:
    """Case with two frames of three vectors, and the products that numpy computes."""
    rng = np.random.default_rng(rows + columns)
    low, high = (-1, 2) if product is not Product.INTEGER else (-(1 << (bits - 1)), 1 << (bits - 1))
    weight = rng.integers(low, high, (rows, 1, columns))
    if product is not Product.INTEGER:
        weight[weight == 0] = 1
    codes = rng.integers(x.lo, x.hi + 1, (6, columns))
    codes[0], codes[1] = x.lo, x.hi
    signs = 2 * codes - 1 if product is Product.AGREEMENTS else codes
    sums = signs @ weight[:, 0].T
    if product is Product.AGREEMENTS:
        sums = (sums + columns) // 2
    unit = MatVec(weight, np.arange(columns), product, pe, simd, 3)
    beats = codes.reshape(-1, simd)
    result = IntType(min(-1, int(sums.min())), int(sums.max()))
    source = Stream(x, simd, 3 * unit.col_folds, columns)
    node = Node("mv", unit, ("a",), (source,), ("b",), Stream(result, pe, 3 * unit.row_folds, rows))
    return case_of(node, [beats], 2), sums.reshape(-1, pe)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_products(dialect: str, tmp_path: Path) -> None:
    cases = [
        matrix(int_type(4, True), Product.INTEGER, 8, 12, 4, 6, 4),
        matrix(int_type(8, False), Product.INTEGER, 6, 5, 1, 1, 8),
        matrix(int_type(3, True), Product.BIPOLAR, 4, 16, 4, 16, 1),
        matrix(IntType(0, 1), Product.AGREEMENTS, 9, 32, 3, 8, 1),
        # Sums of 31, 32 and more bits, which are added in other types.
        matrix(int_type(15, True), Product.INTEGER, 2, 12, 1, 6, 15),
        matrix(int_type(15, False), Product.INTEGER, 2, 16, 1, 8, 15),
        matrix(int_type(16, False), Product.INTEGER, 2, 16, 1, 8, 16),
    ]
    assert {case.gives[0][0].bits for case, _ in cases[-3:]} == {31, 32, 34}
    outputs = run_cases(tmp_path, [case for case, _ in cases], dialect)
    for streams, (_, sums) in zip(outputs, cases, strict=True):
        assert (streams[0] == sums).all()


def test_sums_of_the_types_of_hardware(tmp_path: Path) -> None:
    """By default C simulation adds native numbers."""
    cases = [
        matrix(int_type(4, True), Product.INTEGER, 8, 12, 4, 6, 4),
        matrix(int_type(3, True), Product.BIPOLAR, 4, 16, 4, 16, 1),
        matrix(IntType(0, 1), Product.AGREEMENTS, 6, 8, 3, 8, 1),
    ]
    outputs = run_cases(tmp_path, [case for case, _ in cases], "ap", exact=True)
    for streams, (_, sums) in zip(outputs, cases, strict=True):
        assert (streams[0] == sums).all()
