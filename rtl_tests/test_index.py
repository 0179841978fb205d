"""hg_index: rounds of every length up to the one in the case, with pauses and resets at random, against a count."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import Pipeline, sweep


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, length", sweep([1, 2, 3, 8, 13], 1))
def test_index(simulate: Callable[..., None], simulator: str, length: int) -> None:
    rng = random.Random(length)
    resets = [int(k == 0 or rng.random() < 0.02) for k in range(400)]
    steps = [int(rng.random() < 0.7) for _ in resets]
    index, indices = 0, []
    for reset, step in zip(resets, steps, strict=True):
        index = 0 if reset else (index + step) % length
        indices.append(index)
    job = Pipeline({"rst": resets, "step": steps}, {"index": indices}, 1, enable=None)
    simulate(simulator, "hg_index", {"N": length}, job)
