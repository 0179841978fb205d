"""hg_gather: transposed, repeated and sliced blocks, and the cycle of every read and write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
from bench import Port, Trace, Unit, simulate
from streams import memory, pack

BEATS = 600
rng = np.random.default_rng(12)


def unit(width: int, block: int, loops: Sequence[tuple[int, int]]) -> Unit:
    """Loops are (extent, stride), the outermost first."""
    words = [int(word) for word in rng.integers(0, 1 << width, -(-BEATS // block) * block)]
    parameters: dict[str, object] = {"WIDTH": width, "BLOCK": block, "DIMS": len(loops)}
    for name, column in (("EXTENTS", 0), ("STRIDES", 1)):
        (word,) = pack(np.array([[loop[column] for loop in loops]]), 32)
        parameters[name] = f"{32 * len(loops)}'h{memory([word]).strip()}"
    return Unit("hg_gather", parameters, {"s": words}, {"s": width, "m": width})


def transposed(shape: Sequence[int], order: Sequence[int]) -> tuple[Unit, list[int]]:
    """numpy.transpose of blocks of that shape."""
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    unit_ = unit(5, prod(shape), [(shape[axis], strides[axis]) for axis in order])
    blocks = np.array(unit_.inputs["s"]).reshape(-1, *shape)
    return unit_, blocks.transpose(0, *(axis + 1 for axis in order)).reshape(-1).tolist()


def repeated(height: int, width: int, folds: int, rows: int, columns: int) -> tuple[Unit, list[int]]:
    """Nearest-neighbour upsampling of images."""
    loops = [(height, width * folds), (rows, 0), (width, folds), (columns, 0), (folds, 1)]
    unit_ = unit(4, height * width * folds, loops)
    blocks = np.array(unit_.inputs["s"]).reshape(-1, height, width, folds)
    return unit_, blocks.repeat(rows, axis=1).repeat(columns, axis=2).reshape(-1).tolist()


def sliced(shape: tuple[int, int], rows: int, columns: int, down: int, across: int) -> tuple[Unit, list[int]]:
    """Part of every block, from its first beat on."""
    unit_ = unit(3, prod(shape), [(rows, down * shape[1]), (columns, across)])
    blocks = np.array(unit_.inputs["s"]).reshape(-1, *shape)
    return unit_, blocks[:, : rows * down : down, : columns * across : across].reshape(-1).tolist()


def check_cycles(s: Port, m: Port, block: int, period: int) -> None:
    """Every read and with it every offer, every write."""
    enabled = np.flatnonzero(m.enabled)
    cycles, first, issued = len(m.valid), -period, []
    for last_word in s.accepted[block - 1 :: block]:
        first = max(int(np.searchsorted(enabled, last_word + 1)), first + period)
        issued += range(first, first + period)
    reads = enabled[[place for place in issued if place < len(enabled)]]
    offers = reads + 1
    assert np.array_equal(m.offered, offers[offers < cycles])
    # Words of a block wait until the last read of the block before the one before.
    freed = reads[period - 1 :: period]
    accepted = np.cumsum(s.valid & s.ready) - (s.valid & s.ready)
    expected = [
        count // block < 2 or (count // block - 2 < len(freed) and cycle > freed[count // block - 2])
        for cycle, count in enumerate(accepted)
    ]
    assert np.array_equal(s.ready, expected)


def test_gather(tmp_path: Path) -> None:
    cases = [
        transposed((2, 3), (1, 0)),
        transposed((1,), (0,)),
        transposed((4, 2), (0, 1)),
        transposed((2, 3, 2), (2, 0, 1)),
        transposed((2, 1, 3, 2), (3, 2, 1, 0)),
        transposed((2, 2, 2, 1, 2, 2), (5, 0, 3, 4, 2, 1)),
        repeated(1, 3, 2, 2, 2),
        repeated(1, 1, 1, 3, 1),
        repeated(2, 2, 1, 1, 3),
        sliced((3, 3), 2, 2, 1, 2),
        sliced((4, 5), 1, 1, 1, 1),
    ]
    for _ in range(6):
        shape = [int(size) for size in rng.integers(1, 5, int(rng.integers(2, 5)))]
        cases.append(transposed(shape, [int(axis) for axis in rng.permutation(len(shape))]))
    results = simulate([unit_ for unit_, _ in cases], tmp_path, cycles=600)
    for (unit_, words), phases in zip(cases, results, strict=True):
        block = int(str(unit_.parameters["BLOCK"]))
        period = len(words) * block // len(unit_.inputs["s"])
        for trace in phases:
            check(trace, words, block, period)


def check(trace: Trace, words: list[int], block: int, period: int) -> None:
    s, m = trace["s"], trace["m"]
    assert m.holds_still()
    assert m.words == words[: len(m.words)]
    assert len(m.words) >= min(10, period)
    check_cycles(s, m, block, period)


def test_full_rate(tmp_path: Path) -> None:
    """Blocks that give as many beats as they have pass without a gap on either side."""
    unit_, _ = transposed((3, 4), (1, 0))
    ((full,),) = simulate([unit_], tmp_path, simulators=("icarus",), phases=1)
    assert np.array_equal(full["s"].accepted, np.arange(len(full["s"].valid)))
    assert all(later == earlier + 1 for earlier, later in pairwise(full["m"].accepted))
    assert full["m"].offered[0] == 13
