"""Step functions of integers for the tests of realizations: given, at random, and compared at every input."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize.scale import Scale
from hlsgen.rescale.threshold_table import ThresholdTable


def dense(lo: Array, hi: Array, table: Array, base: int = 0, falling: Array | None = None) -> ThresholdTable:
    """Steps of thresholds in any order, of which those out of reach are moved to its ends."""
    table = np.sort(np.clip(table, lo, hi + 1), axis=0)
    count = np.arange(len(table) + 1)[:, None]
    falls = np.zeros(len(lo), np.bool_) if falling is None else falling
    return ThresholdTable("test", lo, hi, table, np.where(falls, base + len(table) - count, base + count))


def tabulated(values: Array, lo: int) -> ThresholdTable:
    """Steps of monotone functions given at lo, lo + 1, ... in (inputs, sets)."""
    low, high = int(values.min()), int(values.max())
    falling = values[0] > values[-1]
    ends = np.full(values.shape[1], lo), np.full(values.shape[1], lo + len(values) - 1)
    codes = np.arange(low + 1, max(high, low + 1) + 1)[:, None, None]
    below = np.where(falling, values >= codes, values < codes).sum(axis=1)
    return dense(*ends, np.asarray(lo + below), low, falling)


def every(found: Scale, steps: ThresholdTable) -> None:
    """Equality at every input of every set."""
    x = np.arange(steps.lo.min(), steps.hi.max() + 1)[:, None]
    inside = np.clip(x, steps.lo, steps.hi)
    assert (found.apply(inside) == steps.apply(inside)).all()


def random_steps(rng: np.random.Generator, kind: str) -> ThresholdTable:
    """Small functions, most of which are nearly straight."""
    sets, count = int(rng.integers(1, 5)), int(rng.integers(1, 9))
    lo = rng.integers(-90, 60, sets) if rng.random() < 0.7 else np.zeros(sets, np.int64)
    hi = lo + rng.integers(1 if kind == "short" else 20, 90, sets)
    pitch = rng.uniform(0.5, 14, sets)
    table = np.ceil(
        (np.arange(count)[:, None] + rng.uniform(-0.1, 0.1, (count, sets))) * pitch + rng.uniform(-60, 60, sets)
    )
    table = table.astype(np.int64)
    if kind == "jitter":
        table += rng.integers(-1, 2, table.shape)
    if kind == "jump":
        table[count // 2 :] = table[[count // 2]]
    if rng.random() < 0.3:
        table[0], table[-1] = lo, hi + 1
    return dense(lo, hi, table, int(rng.integers(-9, 5)), rng.random(sets) < rng.choice([0, 0, 0.5, 1]))
