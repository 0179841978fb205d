"""Floats on which implementations of a head differ most: both sides of code boundaries, and the ends of the format."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlsgen.interpreter.graph import encode_array
from hlsgen.interpreter.host_steps import rearranged
from hlsgen.ir import ArgMax, HostOp, Reshape, Shape, Step, Transpose, Value
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key, key_to_float
from hlsgen.ir.ops import Quantizer
from hlsgen.numerics.fixed import Array

#: Floats that the search for boundaries does not find.
_SPECIAL = (
    *(0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf),
    *(1e-45, -1e-45, 1.17549435e-38, -1.17549435e-38, 3.4028235e38, -3.4028235e38),
    *(0.5, -0.5, 0.49999997, 1.5, -2.5),
)


def hard_numbers(
    steps: Sequence[Step], encode: Quantizer | None, port: Value, shape: Shape, dtype: str, frames: int, seed: int
) -> Array:
    """Inputs (frames, *shape) of a float dtype for a head of `steps` and `encode`, which produces the codes of `port`.

    Half of them are the last float before a code changes, or the first float after it. A tenth are special values. The
    others are random numbers of all magnitudes.
    """
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    x = rng.normal(0, 1, (frames, size)) * 2.0 ** rng.integers(-12, 12, (frames, size))
    x = x.astype(np.float32)
    if encode is not None and not any(isinstance(step.op, HostOp | ArgMax) for step in steps):
        boundaries, has_boundary = _near_boundaries(steps, encode, port, shape, dtype, x, rng)
        x = np.where(has_boundary & (rng.random(x.shape) < 0.5), boundaries, x)
    special = np.array(_SPECIAL, np.float32)
    x = np.where(rng.random(x.shape) < 0.1, rng.choice(special, x.shape), x)
    x.reshape(-1)[: len(special)] = special[: x.size]
    return x.reshape(frames, *shape).astype(dtype)


def _near_boundaries(
    steps: Sequence[Step], encode: Quantizer, port: Value, shape: Shape, dtype: str, x: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """For each element a float32 next to a code change, found by bisection, and a mask of the elements that have
    one."""
    places = _places(steps, shape)
    if places.size != port.size:
        return x, np.zeros(x.shape, np.bool_)

    def codes(keys: Array) -> Array:
        """The code of each input element, if the elements are the floats with these keys."""
        values = key_to_float(keys).reshape(len(x), *shape).astype(dtype)
        element_codes: Array = np.empty(x.shape, np.int64)
        element_codes[:, places] = encode_array("", steps, encode, port, values, False).reshape(len(x), -1)
        return element_codes

    low = np.broadcast_to(float_to_key(np.full(1, -3e38, np.float32)), x.shape).copy()
    high = np.broadcast_to(float_to_key(np.full(1, 3e38, np.float32)), x.shape).copy()
    low_codes, high_codes = codes(low), codes(high)
    smallest_code, largest_code = np.minimum(low_codes, high_codes), np.maximum(low_codes, high_codes)
    boundary_code = smallest_code + np.floor(rng.random(x.shape) * (largest_code - smallest_code)).astype(np.int64)
    rising = high_codes > low_codes
    while (high - low > 1).any():
        middle = (low + high) // 2
        past_change = (codes(middle) > boundary_code) == rising
        low, high = np.where(past_change, low, middle), np.where(past_change, middle, high)
    assert high.max() < KEY_POS_INF
    return key_to_float(np.where(rng.random(x.shape) < 0.5, low, high)), low_codes != high_codes


def _places(steps: Sequence[Step], shape: Shape) -> Array:
    """The input element that each code is made from."""
    places = np.arange(math.prod(shape)).reshape(1, *shape)
    for step in steps:
        if isinstance(step.op, Reshape | Transpose):
            places = rearranged(step.op, places, step.shape)
    return places.reshape(-1)
