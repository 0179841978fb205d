"""hg_threshold: step functions by search, against hlsgen.rescale.Thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, all_inputs, integers, memory, pack, sweep

from hlsgen.numerics.fixed import Array, int_type
from hlsgen.rescale.realize.thresholds import Thresholds


@dataclass(frozen=True)
class Steps:
    """Parameters of hg_threshold, in lower case, without the file."""

    lanes: int
    folds: int
    in_w: int
    in_signed: int
    bits: int
    out_w: int
    offset: int
    falling: int
    every: int = 2


CASES = [
    Steps(3, 5, 8, 1, 3, 4, -4, 1),
    Steps(32, 1, 16, 1, 4, 4, 0, 1),
    Steps(1, 1, 1, 0, 1, 1, 0, 0),
    Steps(2, 3, 32, 0, 2, 3, -3, 1),
    Steps(1, 4, 32, 1, 5, 6, -16, 0),
    Steps(12, 1, 16, 0, 3, 3, -2, 1),
    Steps(1, 2, 1, 1, 1, 2, -1, 1),
    Steps(1, 16, 7, 0, 4, 5, 3, 0),  # a register in front of the last level of four
    Steps(2, 33, 9, 1, 3, 3, 0, 1),  # in front of levels of 66 and 132 words
    Steps(2, 33, 9, 1, 3, 3, 0, 1, every=1),  # behind them as well
    Steps(1, 65, 6, 0, 1, 2, 0, 1, every=1),  # behind the only one
]


def search_tree(lane: int, table: Array, falling: Array, shape: Steps) -> dict[str, str]:
    """Memory files of one lane; table (folds, 2^bits - 1) in ascending order of the codes."""
    width = shape.in_w + (1 if shape.in_signed else 2)
    words = (table & ((1 << width) - 1)) | (falling[:, None].astype(np.int64) << width)
    files = {}
    for level in range(shape.bits):
        # Node n of a level: the threshold between the codes that share the first bits n.
        middle = [((2 * n + 1) << (shape.bits - 1 - level)) - 1 for n in range(1 << level)]
        files[f"t_{lane:04d}_{level:02d}.mem"] = memory(words[:, middle].ravel())
    return files


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep(CASES))
def test_threshold(simulate: Callable[..., None], simulator: str, shape: Steps) -> None:
    rng = np.random.default_rng(shape.in_w + shape.lanes)
    bounds = int_type(shape.in_w, bool(shape.in_signed))
    low, high = (-(1 << (shape.in_w - 1)), 1 << (shape.in_w - 1)) if bounds.signed else (0, 1 << shape.in_w)
    steps, channels = (1 << shape.bits) - 1, shape.folds * shape.lanes
    # Thresholds from "always" (the lowest input) to "never" (one above the highest), with ties.
    table = rng.integers(low, high, (steps, channels), endpoint=True)
    table[0, ::3], table[-1, ::4] = low, high
    table[steps // 2, ::5] = table[0, ::5]
    falling = (rng.random(channels) < 0.5) & bool(shape.falling)
    table = np.sort(table, axis=0)
    table[:, falling] = table[::-1, falling]
    reference = Thresholds(table, falling, shape.offset)
    if shape.in_w == 16 and shape.folds == 1:
        # Every lane sees every input: lane k the ones that lane 0 sees k blocks later.
        column = all_inputs(16, bounds.signed, 1)[:, 0]
        x = column[: 65536 // shape.lanes * shape.lanes].reshape(-1, shape.lanes)
    else:
        x = integers(rng, shape.in_w, bounds.signed, (400 * shape.folds // shape.folds, shape.lanes))
        near_thresholds = rng.choice(table.ravel(), x.shape) + rng.integers(-1, 2, x.shape)
        x = np.where(rng.random(x.shape) < 0.5, np.clip(near_thresholds, low, high - 1), x)
    fold = np.arange(len(x)) % shape.folds
    channel = fold[:, None] * shape.lanes + np.arange(shape.lanes)
    code = np.take_along_axis(
        np.stack([reference.apply(np.broadcast_to(x[:, [k]], (len(x), channels))) for k in range(shape.lanes)]),
        channel.T[:, :, None],
        axis=2,
    )[:, :, 0].T
    files: dict[str, str] = {}
    for lane in range(shape.lanes):
        files |= search_tree(lane, table[:, lane :: shape.lanes].T, falling[lane :: shape.lanes], shape)
    large = [shape.folds * 2**level > 64 for level in range(shape.bits)]
    cycles = shape.bits + 1 + sum(large[1:]) + (2 * sum(large) if shape.every == 1 else 0)
    job = Stream({"s_data": pack(x, shape.in_w)}, {"m_data": pack(code, shape.out_w)}, latency=cycles, capacity=cycles)
    parameters = {name.upper(): value for name, value in vars(shape).items()}
    simulate(simulator, "hg_threshold", {**parameters, "FILE": '"t"'}, job, files)
