"""hg_multiply: signed products in all three styles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import Pipeline, integers, pack, sweep

#: x bits, m bits, style, stages.
CASES = [
    (5, 5, 1, 2),
    (6, 7, 1, 2),
    (18, 25, 1, 4),
    (5, 8, 0, 1),
    (1, 1, 1, 1),
    (3, 2, 1, 3),
    (31, 6, 0, 3),
    (40, 12, 1, 7),
]

#: x bits, m bits, constant, stages: no digit, one at either end, more stages than digits, many digits.
CONSTANTS = [
    (9, 9, 181, 2),
    (9, 9, -181, 3),
    (6, 4, 0, 2),
    (6, 4, -8, 1),
    (6, 4, 7, 5),
    (4, 1, -1, 1),
    (9, 25, 11184811, 4),
    (5, 8, 0b01010101, 1),
]


def run(simulate: Callable[..., None], simulator: str, parameters: dict[str, object], x: object, m: object) -> None:
    x, m = np.asarray(x), np.asarray(m)
    x_w, m_w, stages = (int(str(parameters[name])) for name in ("X_W", "M_W", "STAGES"))
    product = pack(x.astype(object)[:, None] * m.astype(object)[:, None], x_w + m_w)
    job = Pipeline({"x": pack(x[:, None], x_w), "m": pack(m[:, None], m_w)}, {"y": product}, stages)
    simulate(simulator, "hg_multiply", parameters, job)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_multiply(simulate: Callable[..., None], simulator: str, case: tuple[int, int, int, int]) -> None:
    x_w, m_w, style, stages = case
    rng = np.random.default_rng(x_w + m_w)
    if x_w + m_w <= 13:
        x, m = (a.ravel() for a in np.meshgrid(np.arange(1 << x_w), np.arange(1 << m_w)))
        x, m = x - (x >> (x_w - 1) << x_w), m - (m >> (m_w - 1) << m_w)
    else:
        x, m = (integers(rng, bits, True, (500,)) for bits in (x_w, m_w))
    run(simulate, simulator, {"X_W": x_w, "M_W": m_w, "STYLE": style, "STAGES": stages}, x, m)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CONSTANTS, 1))
def test_constant(simulate: Callable[..., None], simulator: str, case: tuple[int, int, int, int]) -> None:
    x_w, m_w, constant, stages = case
    x = np.arange(1 << x_w) - (1 << (x_w - 1))
    parameters = {"X_W": x_w, "M_W": m_w, "STYLE": 2, "STAGES": stages}
    value = f"{m_w}'d{constant & ((1 << m_w) - 1)}"
    run(simulate, simulator, {**parameters, "M": value}, x, np.full_like(x, constant))
