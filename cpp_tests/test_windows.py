"""hg/sliding.hpp, conv.hpp, pool.hpp, grouped.hpp, mvu.hpp with several vectors per beat, compared with numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.cycle_model.line_buffers import min_depth
from hlsgen.dataflow import units
from hlsgen.interpreter.windows import taps
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, IntType, int_type

FRAMES = 2
#: A case, its output, and a mask of the output elements that are defined.
CaseAndOutput = tuple[Case, Array, Array]


def unit_case(unit: units.Unit, x: Array, type_: IntType, y: Array, defined: Array | None = None) -> CaseAndOutput:
    """Case for input beats x and output beats y, (n, lanes), of all frames. `defined`: elements of y to compare."""
    result = IntType(min(-1, int(y.min())), int(y.max())) if not isinstance(unit, units.SlidingWindow) else type_
    source = units.Stream(type_, x.shape[1], len(x) // FRAMES, x.shape[1])
    node = units.Node(
        "u", unit, ("a",), (source,), ("b",), units.Stream(result, y.shape[1], len(y) // FRAMES, y.shape[1])
    )
    return case_of(node, [x], FRAMES), y, np.ones_like(y, bool) if defined is None else defined


def sliding(
    size: tuple[int, int],
    window: Window,
    folds: int,
    lanes: int,
    extra_words: int = 0,
    pixels: int = 1,
    windows: int = 1,
) -> CaseAndOutput:
    """Case with the least buffer plus `extra_words`. Rows begin a new word; lanes after their last pixel are random."""
    rng = np.random.default_rng(size[1])
    type_ = int_type(1 + lanes, lanes == 2)
    pad = type_.hi - 1
    codes = rng.integers(type_.lo, type_.hi + 1, (FRAMES, *size, folds, lanes))
    unit = units.SlidingWindow(window, *size, folds, pad, 0, 0, pixels, windows)
    unit = unit.with_depth(min_depth(unit) + extra_words)
    words = rng.integers(type_.lo, type_.hi + 1, (FRAMES, size[0], unit.across * pixels, folds, lanes))
    words[:, :, : size[1]] = codes
    if pixels > 1:
        words = words.reshape(FRAMES, size[0], unit.across, 1, pixels * lanes)
    patches = np.stack(taps(codes.reshape(FRAMES, *size, -1), window, pad), axis=3)
    rows, columns = patches.shape[1:3]
    patches = patches.reshape(FRAMES, rows, columns, window.taps, folds, lanes).swapaxes(3, 4)
    shape = (FRAMES, rows, -(-columns // windows) * windows, folds, window.taps, lanes)
    y, defined = np.zeros(shape, np.int64), np.zeros(shape, bool)
    y[:, :, :columns], defined[:, :, :columns] = patches, True
    # A beat holds, tap by tap, the elements of all its windows.
    beats = [part.reshape(FRAMES, rows, -1, windows, folds, window.taps, lanes) for part in (y, defined)]
    beats = [part.transpose(0, 1, 2, 4, 5, 3, 6).reshape(-1, window.taps * windows * lanes) for part in beats]
    return unit_case(unit, words.reshape(-1, pixels * lanes), type_, *beats)


def random_weights(product: units.Product, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random weights that the product allows."""
    if product is units.Product.INTEGER:
        return rng.integers(-4, 4, shape)
    return 2 * rng.integers(0, 2, shape) - 1


def sums(product: units.Product, x: Array, weight: Array) -> Array:
    """Sums (..., outputs) of x (..., taps * columns) and weights (outputs, taps * columns)."""
    if product is units.Product.AGREEMENTS:
        return np.asarray((x[..., None, :] == (weight > 0)).sum(axis=-1))
    return np.asarray(x @ weight.T)


def conv(
    size: tuple[int, int],
    window: Window,
    groups: int,
    folds: int,
    repeat: int,
    pe: int,
    simd: int,
    product: units.Product,
    extra_words: int = 0,
) -> CaseAndOutput:
    """Case where the last word of a group, and its last sums, are incomplete if weights can be 0."""
    rng = np.random.default_rng(pe + simd)
    type_ = IntType(0, 1) if product is units.Product.AGREEMENTS else int_type(3, repeat == 1)
    no_zeros = product is not units.Product.INTEGER
    columns, rows = (x - (x > 1 and not no_zeros) for x in (folds * simd, repeat * pe))
    pad = type_.lo if repeat % 2 else type_.hi
    weight = random_weights(product, rng, (groups * rows, window.taps, columns))
    order = rng.permutation(columns)
    words = rng.integers(type_.lo, type_.hi + 1, (FRAMES, *size, groups, folds * simd))
    unit = units.ConvUnit(
        weight, order, product, window, *size, groups, folds, repeat, pe, simd, depthwise=False, pad=pad, depth=0
    )
    unit = replace(unit, depth=min_depth(unit) + extra_words)
    codes = np.empty_like(words[..., :columns])
    codes[..., order] = words[..., :columns]
    patches = np.stack(taps(codes.reshape(FRAMES, *size, -1), window, pad), axis=3)
    patches = (
        patches.reshape(*patches.shape[:4], groups, columns).swapaxes(3, 4).reshape(*patches.shape[:3], groups, -1)
    )
    kernels = weight.reshape(groups, rows, -1)
    y = np.zeros((*patches.shape[:4], repeat * pe), np.int64)
    for g in range(groups):
        y[..., g, :rows] = sums(product, patches[..., g, :], kernels[g])
    return unit_case(unit, words.reshape(-1, simd), type_, y.reshape(-1, pe))


def depthwise(
    size: tuple[int, int], window: Window, groups: int, pe: int, product: units.Product, extra_words: int = 0
) -> CaseAndOutput:
    rng = np.random.default_rng(pe)
    type_ = int_type(4, groups == 1)
    weight = random_weights(product, rng, (groups * pe, window.taps, 1))
    codes = rng.integers(type_.lo, type_.hi + 1, (FRAMES, *size, groups * pe))
    unit = units.ConvUnit(
        weight, np.arange(1), product, window, *size, groups, 1, 1, pe, pe, depthwise=True, pad=3, depth=0
    )
    unit = replace(unit, depth=min_depth(unit) + extra_words)
    y = np.einsum("...tc,ct->...c", np.stack(taps(codes, window, 3), axis=3), weight[:, :, 0])
    return unit_case(unit, codes.reshape(-1, pe), type_, y.reshape(-1, pe))


def pool(
    size: tuple[int, int], window: Window, folds: int, lanes: int, kind: Reduction, extra_words: int = 0
) -> CaseAndOutput:
    rng = np.random.default_rng(folds)
    type_ = int_type(5, lanes != 2)
    codes = rng.integers(type_.lo, type_.hi + 1, (FRAMES, *size, folds * lanes))
    codes[-1] = np.minimum(codes[-1], type_.lo + 2)  # padding with any code but the lowest would then be the maximum
    unit = units.PoolUnit(kind, window, *size, folds, type_.lo, 0)
    unit = replace(unit, depth=min_depth(unit) + extra_words)
    parts = np.stack(taps(codes, window, type_.lo))
    y = parts.max(axis=0) if kind is Reduction.MAX else parts.sum(axis=0)
    return unit_case(unit, codes.reshape(-1, lanes), type_, y.reshape(-1, lanes))


def some_window(rng: np.random.Generator) -> tuple[tuple[int, int], Window]:
    """Random window on a small image, with any padding."""

    def axis() -> tuple[int, int, int, int, int, int]:
        size, kernel = int(rng.choice([1, 2, 3, 4, 5, 7, 11])), int(rng.choice([1, 1, 2, 3, 3, 4]))
        stride, dilation = int(rng.choice([1, 1, 2, 3, 5])), int(rng.choice([1, 1, 1, 2, 3]))
        reach = (kernel - 1) * dilation + 1
        pad_before = int(rng.integers(0, reach + 3))
        pad_after = max(int(rng.integers(0, reach + 3)), reach - size - pad_before)
        return size, kernel, stride, dilation, pad_before, pad_after

    (height, kh, sh, dh, top, bottom), (width, kw, sw, dw, left, right) = axis(), axis()
    return (height, width), Window((kh, kw), (sh, sw), (dh, dw), (top, left, bottom, right))


def random_unit(rng: np.random.Generator) -> CaseAndOutput:
    size, window = some_window(rng)
    extra_words = int(rng.choice([0, 0, 1, 7]))
    a, b, c, d, e = (int(n) for n in rng.integers(1, 4, 5))
    match int(rng.integers(0, 5)):
        case 0 | 1:
            return sliding(size, window, a, b, extra_words)
        case 2:
            return conv(size, window, a, b, c, d, e, rng.choice(list(units.Product)), extra_words)
        case 3:
            return depthwise(
                size, window, a, b, rng.choice([units.Product.INTEGER, units.Product.BIPOLAR]), extra_words
            )
        case _:
            return pool(size, window, a, b, rng.choice(list(Reduction)), extra_words)


SAME = Window((3, 3), pads=(1, 1, 1, 1))
SIGNAL = Window((1, 4), pads=(0, 3, 0, 0))
HALF = Window((3, 3), (2, 2), pads=(1, 1, 1, 1))


def check(folder: Path, cases: list[CaseAndOutput], dialect: str, *, exact: bool = False) -> None:
    outputs = run_cases(folder, [case for case, *_ in cases], dialect, exact=exact)
    for n, ((y,), (case, expected, defined)) in enumerate(zip(outputs, cases, strict=True)):
        assert y.shape == expected.shape, (n, case.call)
        assert (y == expected)[defined].all(), (n, case.call)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_sliding(dialect: str, tmp_path: Path) -> None:
    cases = [
        sliding((6, 5), SAME, 2, 2),
        sliding((6, 5), SAME, 2, 2, 10),
        sliding((1, 1), Window((1, 1)), 1, 1),
        sliding((1, 19), SIGNAL, 1, 2),
        sliding((1, 19), SIGNAL, 3, 1, 7),
        sliding((4, 5), Window((1, 3), pads=(0, 1, 0, 1)), 1, 1),  # rows of an image without slots
        sliding((4, 5), Window((3, 1), pads=(1, 0, 1, 0)), 1, 1),
        sliding((5, 5), Window((2, 2), (2, 2)), 1, 1),  # the last row and column are dropped
        sliding((7, 7), Window((2, 2), (4, 5)), 1, 1),  # gaps
        sliding((2, 2), Window((5, 7), pads=(2, 3, 2, 3)), 1, 1),  # larger than the image
        sliding((3, 3), Window((2, 2), pads=(5, 6, 5, 4)), 2, 1),  # windows without a pixel
        sliding((7, 9), Window((3, 2), (1, 2), (2, 3), (2, 1, 2, 2)), 1, 2),
        sliding((6, 8), SAME, 1, 2, pixels=2, windows=2),
        sliding((6, 8), SAME, 1, 1, 5, pixels=4, windows=4),
        sliding((6, 8), HALF, 1, 2, pixels=2, windows=1),
        sliding((6, 8), HALF, 1, 3, pixels=4, windows=2),
        sliding((4, 7), Window((3, 3)), 1, 1, pixels=2, windows=2),  # incomplete last word and beat
        sliding((1, 20), SIGNAL, 1, 1, pixels=2, windows=2),
    ]
    rng = np.random.default_rng(1)
    cases += [sliding(*some_window(rng), *(int(n) for n in rng.integers(1, 4, 2)), int(n)) for n in (0, 0, 1, 5)]
    check(tmp_path, cases, dialect)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS[::-1])
def test_tap_by_tap(dialect: str, tmp_path: Path) -> None:
    cases = [
        conv((6, 5), SAME, 1, 2, 2, 2, 3, units.Product.INTEGER),
        conv((1, 19), Window((1, 4), (1, 2), (1, 2), (0, 3, 0, 3)), 1, 2, 2, 1, 5, units.Product.BIPOLAR, 3),
        conv((1, 1), Window((1, 1)), 1, 1, 1, 1, 1, units.Product.AGREEMENTS),
        conv((7, 4), Window((1, 1), (2, 3)), 2, 1, 2, 2, 1, units.Product.INTEGER, 1),
        conv((4, 5), SAME, 3, 2, 1, 3, 2, units.Product.AGREEMENTS, 300),
        conv((3, 3), Window((2, 2), pads=(4, 4, 4, 4)), 1, 1, 3, 2, 4, units.Product.INTEGER),
        depthwise((6, 5), SAME, 3, 2, units.Product.INTEGER),
        depthwise((9, 8), Window((3, 2), (2, 2), (2, 3), (2, 3, 2, 3)), 1, 3, units.Product.BIPOLAR, 4),
        pool((6, 5), Window((2, 2), (2, 2)), 1, 3, Reduction.MAX),
        pool((6, 5), SAME, 2, 2, Reduction.SUM, 9),
        pool((5, 4), SAME, 2, 3, Reduction.MAX, 1),
    ]
    rng = np.random.default_rng(2)
    cases += [random_unit(rng) for _ in range(10)]
    check(tmp_path, cases, dialect)


def grouped(
    taps_: int, rows: int, columns: int, groups: int, folds: int, windows: int, product: units.Product
) -> CaseAndOutput:
    """Case with `windows` beats per frame. A beat holds all groups of two windows, or some groups of one."""
    rng = np.random.default_rng(taps_)
    type_ = IntType(0, 1) if product is units.Product.AGREEMENTS else int_type(4, True)
    total = groups * folds
    weight = random_weights(product, rng, (total * rows, taps_, columns))
    windows_per_beat = 2 if folds == 1 else 1
    unit = units.GroupedMatVec(weight, product, pe=groups * rows * windows_per_beat, rows=rows)
    x = rng.integers(type_.lo, type_.hi + 1, (FRAMES * windows, windows_per_beat, folds, groups, taps_ * columns))
    parts = [
        sums(product, x.reshape(-1, total, taps_ * columns)[:, g], k.reshape(rows, -1))
        for g, k in enumerate(weight.reshape(total, rows, taps_ * columns))
    ]
    y = np.stack(parts, axis=1).reshape(-1, windows_per_beat, folds, groups * rows).swapaxes(1, 2)
    beats = x.reshape(-1, windows_per_beat, folds, groups, taps_, columns).transpose(0, 2, 4, 1, 3, 5)
    return unit_case(
        unit, beats.reshape(-1, windows_per_beat * groups * taps_ * columns), type_, y.reshape(-1, unit.pe)
    )


def several_vectors(rows: int, taps_: int, columns: int, windows: int, product: units.Product) -> CaseAndOutput:
    """Case with several vectors per beat, with adjacent pieces."""
    rng = np.random.default_rng(rows)
    type_ = IntType(0, 1) if product is units.Product.AGREEMENTS else int_type(4, False)
    weight = random_weights(product, rng, (rows, taps_, columns))
    unit = units.MatVec(weight, np.arange(columns), product, rows, taps_ * columns, 5 * windows, windows)
    x = rng.integers(type_.lo, type_.hi + 1, (FRAMES * 5, windows, taps_, columns))
    y = sums(product, x.reshape(-1, taps_ * columns), weight.reshape(rows, -1))
    return unit_case(unit, x.swapaxes(1, 2).reshape(FRAMES * 5, -1), type_, y.reshape(FRAMES * 5, -1))


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_taps(dialect: str, tmp_path: Path) -> None:
    cases = [
        grouped(9, 1, 1, 3, 2, 4, units.Product.INTEGER),
        grouped(4, 1, 1, 3, 1, 3, units.Product.BIPOLAR),
        grouped(6, 2, 3, 2, 2, 3, units.Product.INTEGER),
        grouped(5, 3, 2, 2, 1, 3, units.Product.AGREEMENTS),
        several_vectors(3, 3, 2, 2, units.Product.INTEGER),
        several_vectors(2, 1, 5, 3, units.Product.BIPOLAR),
        several_vectors(1, 9, 2, 4, units.Product.AGREEMENTS),
    ]
    check(tmp_path, cases, dialect)


def test_sums_of_the_types_of_hardware(tmp_path: Path) -> None:
    """By default C simulation adds native numbers."""
    cases = [
        conv((4, 3), SAME, 1, 2, 2, 2, 2, units.Product.INTEGER),
        depthwise((4, 3), SAME, 2, 2, units.Product.BIPOLAR),
        grouped(4, 1, 1, 3, 1, 3, units.Product.BIPOLAR),
        several_vectors(2, 2, 2, 2, units.Product.INTEGER),
    ]
    check(tmp_path, cases, "ap", exact=True)
