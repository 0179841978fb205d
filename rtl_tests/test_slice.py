"""hg_slice: every beat, unchanged and in order, through two registers or one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import Stream, sweep


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, width", sweep([8, 1, 33, 257]))
def test_slice(simulate: Callable[..., None], simulator: str, width: int) -> None:
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(400)]
    job = Stream({"s_data": words}, {"m_data": words}, latency=1, capacity=2, registered=True)
    simulate(simulator, "hg_slice", {"WIDTH": width}, job)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, width", sweep([8, 1, 33]))
def test_every_other_cycle(simulate: Callable[..., None], simulator: str, width: int) -> None:
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(400)]
    job = Stream(
        {"s_data": words}, {"m_data": words}, latency=1, capacity=1, registered=True, continuous="output", gap=2
    )
    simulate(simulator, "hg_slice", {"WIDTH": width, "FULL": 0}, job)
