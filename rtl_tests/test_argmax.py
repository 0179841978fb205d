"""hg_argmax: position of the first largest element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Stream, integers, pack, sweep

# lanes, beats of a vector, bits, signed, bits of the position
CASES = [
    (3, 5, 8, 1, 4),
    (2, 4, 3, 0, 3),
    (1, 1, 1, 1, 1),
    (1, 10, 32, 1, 4),
    (8, 1, 2, 0, 3),
    (1, 16, 1, 0, 4),
    (4, 4, 32, 0, 7),
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep(CASES))
def test_argmax(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int, int, int]) -> None:
    lanes, beats, bits, signed, index_bits = shape
    rng = np.random.default_rng(lanes)
    vectors = max(60, 600 // beats)
    # Half of the vectors have few distinct values, so that the largest comes more than once.
    x = integers(rng, bits, bool(signed), (vectors, beats * lanes))
    x[::2] = rng.choice(x[0], x[::2].shape)
    job = Stream(
        {"s_data": pack(x.reshape(-1, lanes), bits)},
        {"m_data": [int(k) for k in x.argmax(axis=1)]},
        latency=2,
        completes=[(v + 1) * beats - 1 for v in range(vectors)],
        capacity=beats + 1,
        short=120,
    )
    parameters = {"LANES": lanes, "BEATS": beats, "IN_W": bits, "IN_SIGNED": signed, "INDEX_W": index_bits}
    simulate(simulator, "hg_argmax", parameters, job)


@pytest.mark.cases(1)
@pytest.mark.parametrize("signed", [0, 1])
def test_every_vector(simulate: Callable[..., None], signed: int) -> None:
    """All 2^12 vectors of four 3-bit elements, two a beat."""
    code = np.random.default_rng(0).permutation(1 << 12)
    x = code[:, None] >> np.array([0, 3, 6, 9]) & 7
    x -= (x >> 2 & signed) << 3
    job = Stream(
        {"s_data": pack(x.reshape(-1, 2), 3)},
        {"m_data": [int(k) for k in x.argmax(axis=1)]},
        latency=2,
        completes=list(range(1, 2 << 12, 2)),
        capacity=3,
    )
    parameters = {"LANES": 2, "BEATS": 2, "IN_W": 3, "IN_SIGNED": signed, "INDEX_W": 2}
    simulate("icarus", "hg_argmax", parameters, job)
