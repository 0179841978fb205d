"""hg_width: elements keep their order at any ratio, and the fast side never waits."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

CASES = [
    (1, 6, 4),
    (3, 4, 6),
    (5, 3, 3),
    (2, 1, 7),
    (4, 7, 1),
    (1, 8, 2),
    (1, 5, 3),
    (9, 3, 5),
    (1, 1, 1),
    (1, 32, 12),
]


@pytest.mark.parametrize("simulator, ratio", sweep(CASES))
def test_width(simulate: Callable[..., None], simulator: str, ratio: tuple[int, int, int]) -> None:
    unit, wide_in, wide_out = ratio
    count = lcm(wide_in, wide_out) * (-(-600 // lcm(wide_in, wide_out)) + 8)
    elements = integers(np.random.default_rng(unit), unit, False, (count,))
    outputs = count // wide_out
    # An input beat is taken while fewer than two output beats are complete (one, if one of the
    # widths divides the other), so that many elements and one beat more find room.
    step = gcd(wide_in, wide_out)
    room = wide_out if step in (wide_in, wide_out) else 2 * wide_out - step
    job = Stream(
        {"s_data": pack(elements.reshape(-1, wide_in), unit)},
        {"m_data": pack(elements.reshape(-1, wide_out), unit)},
        latency=1,
        completes=[-(-(k + 1) * wide_out // wide_in) - 1 for k in range(outputs)],
        continuous="input" if wide_in <= wide_out else "output",
        capacity=room // wide_in + 1,
        registered=True,
    )
    simulate(simulator, "hg_width", {"UNIT": unit, "IN": wide_in, "OUT": wide_out}, job)
