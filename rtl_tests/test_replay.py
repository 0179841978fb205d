"""hg_replay: every vector REPEAT times, without a gap, while the next one is stored."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import Stream, sweep

CASES = [(8, 4, 2), (5, 3, 1), (1, 1, 1), (9, 1, 4), (3, 2, 1), (6, 2, 3), (16, 5, 7), (40, 13, 3), (7, 1, 3)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep(CASES))
def test_replay(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int]) -> None:
    width, length, repeat = shape
    rng = random.Random(length)
    vectors = [[rng.getrandbits(width) for _ in range(length)] for _ in range(-(-300 // length))]
    beats = [(v, r, k) for v in range(len(vectors)) for r in range(repeat) for k in range(length)]
    # Beats that are sent for the last time make room while they wait in the output register.
    stored = 4 if repeat == 1 and length > 2 else 2 * length
    job = Stream(
        {"s_data": [word for vector in vectors for word in vector]},
        {"m_data": [vectors[v][k] for v, _, k in beats], "m_last": [k == length - 1 for *_, k in beats]},
        latency=2,
        completes=[v * length + (length - 1 if r else k) for v, r, k in beats],
        continuous="output",
        capacity=stored + (repeat == 1),
        registered=True,
        short=60,
    )
    simulate(simulator, "hg_replay", {"WIDTH": width, "LENGTH": length, "REPEAT": repeat}, job)
