"""hg_reset: the port, one cycle later and active high."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import SIMULATORS, Pipeline


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("active_low", [0, 1])
def test_reset(simulate: Callable[..., None], simulator: str, active_low: int) -> None:
    rng = random.Random(1)
    port = [rng.getrandbits(1) for _ in range(100)]
    job = Pipeline({"reset_in": port}, {"rst": [bit ^ active_low for bit in port]}, 1, enable=None)
    simulate(simulator, "hg_reset", {"ACTIVE_LOW": active_low}, job)
