"""Random elementwise operations of float32 tensors, for tests of passes."""

from __future__ import annotations

import numpy as np
from small_models import const, quant

from hlsgen.ir.ops import Activation, Add, Elementwise, IntQuant, Max, Min, Mul, Slope


def random_op(rng: np.random.Generator, rank: int, channels: int, rising: bool = False) -> Elementwise:
    """Arithmetic with one constant or one for each channel, a bound or a function; `rising`: none that falls."""

    def values(low: float, high: float) -> np.ndarray:
        return const(rng.uniform(low, high, channels if rng.random() < 0.5 else 1), rank)

    kinds: list[Elementwise] = [
        Mul(values(0.25, 2)),
        Add(values(-2, 2)),
        Max(values(-2, 0)),
        Min(values(0, 3)),
        Slope(values(0.1, 0.9)),
        Activation("Tanh"),
    ]
    if not rising:
        kinds += [Mul(values(-2, -0.25)), Activation("Abs"), Activation("HardSigmoid", -0.3, 0.5)]
    return kinds[int(rng.integers(len(kinds)))]


def random_quant(rng: np.random.Generator, rank: int, channels: int) -> IntQuant:
    """Four or five bits; a scale for the tensor or for each channel."""
    scale = 2.0 ** rng.integers(-3, 0, channels if rng.random() < 0.3 else 1)
    return quant(rank, scale, int(rng.integers(-2, 3)), int(rng.integers(4, 6)))
