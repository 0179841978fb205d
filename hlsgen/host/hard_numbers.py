"""Floats on which implementations of a head differ most: both sides of code boundaries, and the ends of the format."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlsgen.interpreter.graph import encoded
from hlsgen.interpreter.host_steps import rearranged
from hlsgen.ir import ArgMax, HostOp, Reshape, Shape, Step, Transpose, Value
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key, key_to_float
from hlsgen.ir.ops import Quantizer
from hlsgen.numerics.fixed import Array

#: Floats that the search for boundaries does not meet.
_SPECIAL = (
    0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1.17549435e-38, -1.17549435e-38, 3.4028235e38, -3.4028235e38,
    0.5, -0.5, 0.49999997, 1.5, -2.5,
)  # fmt: skip


def hard_numbers(
    steps: Sequence[Step], encode: Quantizer | None, port: Value, shape: Shape, dtype: str, frames: int, seed: int
) -> Array:
    """Inputs (frames, *shape) of a float dtype for a head of `steps` and `encode` in front of `port`.

    Half of them are the last float before another code, or the first one behind; a tenth are special values; the others
    are random numbers of all magnitudes.
    """
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    x = rng.normal(0, 1, (frames, size)) * 2.0 ** rng.integers(-12, 12, (frames, size))
    x = x.astype(np.float32)
    if encode is not None and not any(isinstance(step.op, HostOp | ArgMax) for step in steps):
        beside, known = _beside_boundaries(steps, encode, port, shape, dtype, x, rng)
        x = np.where(known & (rng.random(x.shape) < 0.5), beside, x)
    special = np.array(_SPECIAL, np.float32)
    x = np.where(rng.random(x.shape) < 0.1, rng.choice(special, x.shape), x)
    x.reshape(-1)[: len(special)] = special[: x.size]
    return x.reshape(frames, *shape).astype(dtype)


def _beside_boundaries(
    steps: Sequence[Step], encode: Quantizer, port: Value, shape: Shape, dtype: str, x: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """For each element a float32 next to which the code changes, found by bisection; and where there is one."""
    places = _places(steps, shape)
    if places.size != port.size:
        return x, np.zeros(x.shape, np.bool_)

    def codes(keys: Array) -> Array:
        """The code of every input element, of the floats with these keys."""
        values = key_to_float(keys).reshape(len(x), *shape).astype(dtype)
        result: Array = np.empty(x.shape, np.int64)
        result[:, places] = encoded("", steps, encode, port, values, False).reshape(len(x), -1)
        return result

    low = np.broadcast_to(float_to_key(np.full(1, -3e38, np.float32)), x.shape).copy()
    high = np.broadcast_to(float_to_key(np.full(1, 3e38, np.float32)), x.shape).copy()
    first, last = codes(low), codes(high)
    least, most = np.minimum(first, last), np.maximum(first, last)
    limit = least + np.floor(rng.random(x.shape) * (most - least)).astype(np.int64)
    rising = last > first
    while (high - low > 1).any():
        middle = (low + high) // 2
        behind = (codes(middle) > limit) == rising
        low, high = np.where(behind, low, middle), np.where(behind, middle, high)
    assert high.max() < KEY_POS_INF
    return key_to_float(np.where(rng.random(x.shape) < 0.5, low, high)), first != last


def _places(steps: Sequence[Step], shape: Shape) -> Array:
    """Which element of the input each element of the codes is made of."""
    places = np.arange(math.prod(shape)).reshape(1, *shape)
    for step in steps:
        if isinstance(step.op, Reshape | Transpose):
            places = rearranged(step.op, places, step.shape)
    return places.reshape(-1)
