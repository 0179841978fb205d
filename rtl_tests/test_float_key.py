"""hg_float_key: integer keys in the order of float32 numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Stream, pack, sweep

from hlsgen.ir.evaluate import float_to_key


def patterns(rng: np.random.Generator, count: int) -> np.ndarray:
    """Bit patterns: all 2^16 upper halves, then uniform ones and the neighbours of the special ones."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    special = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001], np.uint32)
    special = np.concatenate([special, special | np.uint32(1 << 31), np.array([0x7FFFFFFF, 0xFFFFFFFF], np.uint32)])
    uniform = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    return rng.permutation(np.concatenate([upper, special, uniform]))


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, lanes", sweep([32, 1, 3]))
def test_float_key(simulate: Callable[..., None], simulator: str, lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    bits = patterns(rng, 6000)
    bits = bits[: min(len(bits), 2200 * lanes) // lanes * lanes]
    value = bits.view(np.float32)
    ordered = np.where(bits >> 31 != 0, ~bits, bits | np.uint32(1 << 31))
    key = np.where(np.isnan(value), np.uint32(0), ordered)
    assert (key == float_to_key(value)).all()
    # The purpose: keys of numbers are in the order of the numbers.
    number = ~np.isnan(value)
    order = np.argsort(key[number], kind="stable")
    ascending = value[number][order]
    assert (ascending[1:] >= ascending[:-1]).all()
    words = [pack(array.reshape(-1, lanes), 32) for array in (bits, key)]
    job = Stream({"s_data": words[0]}, {"m_data": words[1]}, latency=1, capacity=1)
    simulate(simulator, "hg_float_key", {"LANES": lanes}, job)
