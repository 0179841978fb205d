"""hg/moves.hpp, concat.hpp, join.hpp, fork.hpp: moves and joins of one or two streams, compared with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import pytest
from cpp_bench import DIALECTS, Case, case_of, run_cases

from hlsgen.dataflow import units
from hlsgen.numerics.fixed import Array, IntType, int_type

FRAMES = 2
rng = np.random.default_rng(11)
CaseAndOutput = tuple[Case, Array]


def unit_case(unit: units.Unit, inputs: Sequence[tuple[Array, IntType]], y: Array, result: IntType) -> CaseAndOutput:
    """Case for input beats (n, lanes) of all frames, and the beats of its outputs, which are all equal."""
    count = unit.count if isinstance(unit, units.Fork) else 1
    sources = [units.Stream(type_, x.shape[1], len(x) // FRAMES, x.shape[1]) for x, type_ in inputs]
    output_stream = units.Stream(result, y.shape[1], len(y) // FRAMES, y.shape[1])
    wires = tuple(f"m{k}" for k in range(count))
    node = units.Node("u", unit, tuple("ab"[: len(inputs)]), tuple(sources), wires, output_stream)
    return case_of(node, [x for x, _ in inputs], FRAMES), y


def codes(type_: IntType, *shape: int) -> Array:
    return rng.integers(type_.lo, type_.hi + 1, shape)


def check(folder: Path, cases: list[CaseAndOutput], dialect: str) -> None:
    outputs_by_case = run_cases(folder, [case for case, _ in cases], dialect)
    for outputs, (case, expected) in zip(outputs_by_case, cases, strict=True):
        assert all(np.array_equal(y, expected) for y in outputs), case.call


def fork(count: int) -> CaseAndOutput:
    x, type_ = codes(int_type(4, True), 40, 2), int_type(4, True)
    return unit_case(units.Fork(count), [(x, type_)], x, type_)


def join(a: IntType, b: IntType, k: tuple[int, int], *, product: bool = False, bits: int = 0) -> CaseAndOutput:
    """Every pair of codes. `k`: the factors or the zero points. `bits`: width to which the result wraps, 0: none."""
    pairs = np.stack(np.meshgrid(np.arange(a.lo, a.hi + 1), np.arange(b.lo, b.hi + 1)), axis=-1).reshape(-1, 2, 2)
    x, y = pairs[..., 0], pairs[..., 1]
    z = (x - k[0]) * (y - k[1]) if product else k[0] * x + k[1] * y
    result = int_type(bits, True) if bits else IntType(min(-1, int(z.min())), int(z.max()))
    if bits:
        z = ((z - result.lo) & ((1 << bits) - 1)) + result.lo
    unit = units.JoinStreams(None, k) if product else units.JoinStreams(k)
    return unit_case(unit, [(x, a), (y, b)], z, result)


def packed(a: IntType, b: IntType, *, signed: bool) -> CaseAndOutput:
    x, y = codes(a, 40, 3), codes(b, 40, 3)
    z = (x & ((1 << a.bits) - 1)) | (y << a.bits)
    result = int_type(a.bits + b.bits, signed)
    return unit_case(units.JoinStreams(None, packed=True), [(x, a), (y, b)], z, result)


def concat(lanes: int, a: IntType, b: IntType, bits: int, beats: tuple[int, int]) -> CaseAndOutput:
    x, y = codes(a, 6, beats[0], lanes), codes(b, 6, beats[1], lanes)
    z = np.concatenate([x, y], axis=1).reshape(-1, lanes)
    inputs = [(x.reshape(-1, lanes), a), (y.reshape(-1, lanes), b)]
    return unit_case(units.ConcatBeats(beats), inputs, z, int_type(bits, bool(z.min() < 0)))


def concat_channels(pixels: int, lanes: tuple[int, int], a: IntType, b: IntType, bits: int) -> CaseAndOutput:
    x, y = codes(a, 20, pixels, lanes[0]), codes(b, 20, pixels, lanes[1])
    z = np.concatenate([x, y], axis=2).reshape(20, -1)
    inputs = [(x.reshape(20, -1), a), (y.reshape(20, -1), b)]
    return unit_case(units.ConcatChannels(lanes, pixels), inputs, z, int_type(bits, bool(z.min() < 0)))


def pick(lanes: int, places: tuple[int, ...]) -> CaseAndOutput:
    x, type_ = codes(int_type(5, False), 20, lanes), int_type(5, False)
    return unit_case(units.SelectLanes(places), [(x, type_)], x[:, list(places)], type_)


def take(sizes: tuple[int, int, int], *cuts: tuple[int, int, int]) -> CaseAndOutput:
    x, type_ = codes(int_type(4, False), FRAMES, *sizes, 2), int_type(4, False)
    kept_elements = x[(slice(None), *(slice(*cut) for cut in cuts))]
    return unit_case(units.Crop(sizes, *cuts), [(x.reshape(-1, 2), type_)], kept_elements.reshape(-1, 2), type_)


def random_take() -> CaseAndOutput:
    sizes = tuple(int(size) for size in rng.integers(1, 6, 3))
    starts = [int(rng.integers(0, size)) for size in sizes]
    cuts = [(a, int(rng.integers(a, size)) + 1, int(rng.integers(1, 5))) for a, size in zip(starts, sizes, strict=True)]
    return take((sizes[0], sizes[1], sizes[2]), *cuts)


def pad(
    lanes: int, shape: tuple[int, int, int], pads: tuple[int, int, int, int], type_: IntType, value: int
) -> CaseAndOutput:
    x = codes(type_, FRAMES, *shape, lanes)
    top, left, bottom, right = pads
    y = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0), (0, 0)), constant_values=value)
    unit = units.PadBorder(*shape, pads, value)
    return unit_case(unit, [(x.reshape(-1, lanes), type_)], y.reshape(-1, lanes), type_)


def gather(block: int, loops: Sequence[tuple[int, int]], addresses: Array, blocks: int = 3) -> CaseAndOutput:
    """Reorders `blocks` blocks per frame. `addresses`: the beats emitted for each."""
    x, type_ = codes(int_type(6, True), blocks * FRAMES, block, 2), int_type(6, True)
    y = x[:, addresses.reshape(-1)].reshape(-1, 2)
    return unit_case(units.Reorder(block, tuple(loops)), [(x.reshape(-1, 2), type_)], y, type_)


def transposed(shape: Sequence[int], order: Sequence[int], blocks: int = 3) -> CaseAndOutput:
    loops = [(shape[axis], prod(shape[axis + 1 :])) for axis in order]
    return gather(prod(shape), loops, np.arange(prod(shape)).reshape(shape).transpose(order), blocks)


def repeated(height: int, width: int, folds: int, rows: int, columns: int) -> CaseAndOutput:
    """Nearest-neighbour upsampling of images."""
    loops = [(height, width * folds), (rows, 0), (width, folds), (columns, 0), (folds, 1)]
    image = np.arange(height * width * folds).reshape(height, width, folds)
    return gather(image.size, loops, image.repeat(rows, axis=0).repeat(columns, axis=1))


def sliced(shape: tuple[int, int], rows: int, columns: int, down: int, across: int) -> CaseAndOutput:
    """Part of every block, starting at its first beat."""
    part = np.arange(prod(shape)).reshape(shape)[: rows * down : down, : columns * across : across]
    return gather(prod(shape), [(rows, down * shape[1]), (columns, across)], part)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_streams(dialect: str, tmp_path: Path) -> None:
    signed, unsigned = (lambda bits: int_type(bits, True)), (lambda bits: int_type(bits, False))
    cases = [
        join(signed(4), unsigned(5), (3, -5)),
        join(unsigned(1), unsigned(1), (1, 1)),
        join(signed(6), signed(6), (-1, 1)),
        join(unsigned(6), signed(3), (-7, -64)),
        join(unsigned(5), unsigned(5), (0x7FFFFFFF, -0x80000000)),
        join(signed(6), signed(6), (27, 11), bits=5),
        join(signed(4), unsigned(5), (1, 7), product=True),
        join(unsigned(6), unsigned(6), (63, 3), product=True),
        join(signed(4), signed(4), (-300, 1000), product=True),
        join(signed(6), signed(6), (0, 0), product=True, bits=9),
        join(signed(3), unsigned(3), (1, 2), product=True, bits=24),
        packed(signed(4), signed(3), signed=True),
        packed(unsigned(1), unsigned(8), signed=False),
        concat(2, signed(3), unsigned(4), 5, (2, 3)),
        concat(1, unsigned(1), unsigned(1), 1, (1, 1)),
        concat(1, signed(2), signed(5), 5, (7, 1)),
        concat(3, unsigned(3), signed(2), 4, (1, 4)),
        concat_channels(2, (2, 3), signed(3), unsigned(4), 5),
        concat_channels(1, (1, 1), unsigned(1), unsigned(1), 1),
        concat_channels(3, (1, 4), unsigned(2), signed(5), 6),
    ]
    check(tmp_path, cases, dialect)


@pytest.mark.cases(1)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_stream(dialect: str, tmp_path: Path) -> None:
    cases = [
        *(fork(count) for count in (1, 2, 5)),
        pick(4, (2, 0, 3, 3, 1)),
        pick(1, (0,)),
        pick(3, (1,)),
        take((3, 5, 3), (0, 3, 2), (0, 5, 4), (0, 3, 1)),
        take((3, 4, 2), (0, 3, 1), (0, 4, 1), (0, 2, 1)),
        take((5, 1, 1), (4, 5, 1), (0, 1, 1), (0, 1, 1)),
        take((4, 4, 4), (0, 4, 2), (1, 4, 2), (3, 4, 9)),
        *(random_take() for _ in range(4)),
        pad(1, (3, 3, 1), (1, 1, 1, 1), int_type(2, False), 2),
        pad(1, (1, 1, 1), (0, 0, 0, 0), int_type(2, True), 1),
        pad(3, (2, 2, 2), (0, 0, 2, 3), int_type(1, False), 1),
        pad(2, (3, 2, 2), (2, 1, 0, 0), int_type(4, True), -8),
        transposed((2, 3), (1, 0)),
        transposed((1,), (0,)),
        transposed((2, 3, 2), (2, 0, 1)),
        transposed((3, 4), (1, 0), blocks=1),
        transposed((3, 4), (1, 0), blocks=2),
        transposed((2, 2, 2, 1, 2, 2), (5, 0, 3, 4, 2, 1)),
        repeated(1, 3, 2, 2, 2),
        repeated(1, 1, 1, 3, 1),
        repeated(2, 2, 1, 1, 3),
        sliced((3, 3), 2, 2, 1, 2),
        sliced((4, 5), 1, 1, 1, 1),
    ]
    check(tmp_path, cases, dialect)
