"""hg/reduce.hpp and pool_tree.hpp: pools of adjacent windows and of whole windows; argmax.hpp."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.dataflow.units import ArgMaxUnit, Node, ReduceTree, Stream, TiledPool, Unit
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType, int_type

MAX, SUM = Reduction.MAX, Reduction.SUM


def unit_case(unit: Unit, frames: int, x: Array, y: Array, types: tuple[IntType, IntType]) -> tuple[Case, Array]:
    """Case for input beats x and output beats y, (n, lanes), of all frames."""
    source, result = (Stream(t, v.shape[1], len(v) // frames, v.shape[1]) for t, v in zip(types, (x, y), strict=True))
    node = Node("u", unit, ("a",), (source,), ("b",), result)
    return case_of(node, [x], frames), y


def check(folder: Path, cases: list[tuple[Case, Array]], dialect: str) -> None:
    outputs = run_cases(folder, [case for case, _ in cases], dialect)
    for (y,), (case, expected) in zip(outputs, cases, strict=True):
        assert np.array_equal(y, expected), case.call


@dataclass(frozen=True)
class Tiled:
    """A pool: image size, kernel, and the folds, lanes and type of a pixel."""

    size: tuple[int, int]
    kernel: tuple[int, int]
    folds: int
    lanes: int
    bits: int
    signed: bool
    kind: Reduction

    def case(self, codes: Array | None = None) -> tuple[Case, Array]:
        rng = np.random.default_rng(self.bits)
        type_ = int_type(self.bits, self.signed)
        if codes is None:
            codes = rng.integers(type_.lo, type_.hi + 1, (3, *self.size, self.folds * self.lanes))
        unit = TiledPool(self.kind, self.kernel, *self.size, self.folds)
        (rows, columns), (kh, kw) = unit.size, self.kernel
        windows = codes[:, : rows * kh, : columns * kw].reshape(-1, rows, kh, columns, kw, self.folds * self.lanes)
        y = windows.max(axis=(2, 4)) if self.kind is MAX else windows.sum(axis=(2, 4))
        result = type_ if self.kind is MAX else IntType(min(0, type_.lo * kh * kw), type_.hi * kh * kw)
        return unit_case(unit, len(codes), codes.reshape(-1, self.lanes), y.reshape(-1, self.lanes), (type_, result))


def pairs(kernel: tuple[int, int], signed: bool, kind: Reduction) -> tuple[Case, Array]:
    """All pairs of 3-bit codes, in adjacent pixels of a row or of a column."""
    codes = np.arange(64)[:, None] >> np.array([0, 3]) & 7
    codes -= (codes >> 2 & signed) << 3
    return Tiled(kernel, kernel, 1, 1, 3, signed, kind).case(codes.reshape(-1, *kernel, 1))


def random_pool(rng: np.random.Generator) -> Tiled:
    kernel = [int(rng.choice([1, 2, 2, 3, 4])) for _ in range(2)]
    height, width = (k * int(rng.choice([1, 1, 2, 3, 4])) + int(rng.integers(0, k)) for k in kernel)
    folds, lanes, bits = int(rng.choice([1, 1, 2, 3])), int(rng.integers(1, 4)), int(rng.integers(1, 7))
    return Tiled(
        (height, width), (kernel[0], kernel[1]), folds, lanes, bits, bool(rng.integers(0, 2)), rng.choice([MAX, SUM])
    )


def tree(taps: int, lanes: int, type_: IntType, kind: Reduction) -> tuple[Case, Array]:
    rng = np.random.default_rng(taps)
    x = rng.integers(type_.lo, type_.hi + 1, (40, taps, lanes))
    y = x.max(axis=1) if kind is MAX else x.sum(axis=1)
    result = type_ if kind is MAX else IntType(min(0, type_.lo * taps), type_.hi * taps)
    return unit_case(ReduceTree(kind, taps), 2, x.reshape(40, -1), y, (type_, result))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_pools(dialect: str, tmp_path: Path) -> None:
    cases = [
        Tiled((1, 1), (1, 1), 1, 1, 1, False, MAX),
        Tiled((4, 6), (2, 2), 2, 2, 4, False, MAX),
        Tiled((5, 7), (2, 2), 1, 2, 4, True, SUM),  # the last row and column are dropped
        Tiled((4, 4), (4, 4), 3, 2, 3, True, SUM),  # over the whole image
        Tiled((9, 5), (3, 5), 1, 2, 4, True, MAX),
        Tiled((1, 13), (1, 3), 1, 2, 4, True, MAX),
        Tiled((1, 11), (1, 2), 4, 1, 2, False, SUM),
        Tiled((6, 1), (2, 1), 2, 1, 5, True, SUM),
        Tiled((3, 5), (1, 1), 2, 2, 3, True, MAX),  # changes nothing
    ]
    rng = np.random.default_rng(3)
    cases += [random_pool(rng) for _ in range(8)]
    all_cases = [case.case() for case in cases]
    all_cases += [
        pairs(kernel, signed, kind) for kernel in ((1, 2), (2, 1)) for signed in (False, True) for kind in (MAX, SUM)
    ]
    all_cases += [
        tree(1, 3, int_type(4, False), MAX),
        tree(9, 2, int_type(3, True), MAX),
        tree(6, 1, int_type(3, True), SUM),
        tree(7, 2, int_type(2, False), SUM),
        tree(4, 3, int_type(1, False), MAX),
    ]
    check(tmp_path, all_cases, dialect)


def argmax(lanes: int, beats: int, type_: IntType, index_bits: int, x: Array | None = None) -> tuple[Case, Array]:
    rng = np.random.default_rng(lanes)
    if x is None:
        # Half of the vectors have few distinct values, so that the largest occurs more than once.
        x = rng.integers(type_.lo, type_.hi + 1, (60, lanes * beats))
        x[::2] = rng.choice(x[0], x[::2].shape)
    y = x.argmax(axis=1).reshape(-1, 1)
    return unit_case(ArgMaxUnit(beats), len(x) // 4, x.reshape(-1, lanes), y, (type_, int_type(index_bits, False)))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_argmax(dialect: str, tmp_path: Path) -> None:
    cases = [
        argmax(3, 5, int_type(8, True), 4),
        argmax(2, 4, int_type(3, False), 3),
        argmax(1, 1, int_type(1, True), 1),
        argmax(1, 10, int_type(32, True), 4),
        argmax(8, 1, int_type(2, False), 3),
        argmax(4, 4, int_type(32, False), 7),
    ]
    for signed in (False, True):  # all vectors of four 3-bit elements
        x = np.arange(1 << 12)[:, None] >> np.array([0, 3, 6, 9]) & 7
        cases.append(argmax(2, 2, int_type(3, signed), 2, x - ((x >> 2 & signed) << 3)))
    check(tmp_path, cases, dialect)
