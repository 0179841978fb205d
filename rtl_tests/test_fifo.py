"""hg_fifo: every beat, unchanged and in order, and exactly DEPTH of them stored."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import Stream, sweep


@pytest.mark.parametrize("simulator, shape", sweep([(8, 5), (1, 2), (16, 16), (33, 3), (7, 17), (4, 64)]))
def test_fifo(simulate: Callable[..., None], simulator: str, shape: tuple[int, int]) -> None:
    width, depth = shape
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(400)]
    job = Stream({"s_data": words}, {"m_data": words}, latency=1, capacity=depth, registered=True)
    simulate(simulator, "hg_fifo", {"WIDTH": width, "DEPTH": depth}, job)
