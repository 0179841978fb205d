"""Step functions of integers for the tests of realizations: given, at random, and compared at every input."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hlsgen.numerics.fixed import Array
from hlsgen.rescale.threshold_table import ThresholdTable


class Realization(Protocol):
    def apply(self, codes: Array) -> Array: ...


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


def every(found: Realization, steps: ThresholdTable) -> None:
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


def bundle(rng: np.random.Generator, lo: Array, hi: Array, steps: int, values: Array | None = None) -> ThresholdTable:
    """Random thresholds, some at lo and hi + 1, some equal; random values, some of them equal."""
    shape = (steps, len(lo))
    thresholds = rng.integers(np.broadcast_to(lo, shape), hi + 1, endpoint=True)
    thresholds = np.where(rng.random(shape) < 0.1, lo, np.where(rng.random(shape) < 0.1, hi + 1, thresholds))
    thresholds[rng.integers(steps, size=steps // 4), :] = thresholds[:1]
    if values is None:
        values = rng.integers(-4, 5, (steps + 1, len(lo)))
    return ThresholdTable("f", lo, hi, np.sort(thresholds, axis=0), values)


def rising(rng: np.random.Generator, lo: Array, hi: Array, steps: int, falling: bool = False) -> ThresholdTable:
    values = np.repeat(rng.integers(-9, 9) + np.arange(steps + 1)[:, None], len(lo), axis=1)
    if falling:
        values[:, ::2] = values[::-1, ::2]
    return bundle(rng, lo, hi, steps, values)


def intervals(rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Small intervals, of one set and of many, of either sign, the same or different ones."""
    found = [
        (np.array([0]), np.array([1])),
        (np.array([-1]), np.array([0])),
        (np.array([0]), np.array([255])),
        (np.array([-128]), np.array([127])),
        (np.array([-7]), np.array([90])),
        (np.array([200]), np.array([203])),
        (np.array([-40]), np.array([-40])),
        (np.full(5, -512), np.full(5, 511)),
    ]
    for sets in (2, 3, 7):
        lo = rng.integers(-300, 300, sets)
        found.append((lo, lo + rng.integers(0, 400, sets)))
        found.append((np.abs(lo), np.abs(lo) + rng.integers(0, 400, sets)))
    return found
