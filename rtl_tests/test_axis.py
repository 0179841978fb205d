"""hg_axis_in and hg_axis_out: padding, and tlast checked or made."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from streams import Stream, sweep

# bits of a beat, bits of tdata, beats of a frame
CASES = [(12, 16, 4), (8, 8, 1), (1, 8, 3), (33, 40, 10), (7, 64, 2)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("cut", [1, 0])
@pytest.mark.parametrize("simulator, shape", sweep(CASES))
def test_axis_out(simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int], cut: int) -> None:
    width, tdata_width, frame = shape
    rng = random.Random(width)
    words = [rng.getrandbits(width) for _ in range(400)]
    last = [int(k % frame == frame - 1) for k in range(400)]
    outputs = {"m_axis_tdata": words, "m_axis_tlast": last}
    job = Stream({"s_data": words}, outputs, latency=1, capacity=1 + cut, registered=bool(cut))
    parameters = {"WIDTH": width, "TDATA_W": tdata_width, "BEATS": frame, "CUT": cut}
    simulate(simulator, "hg_axis_out", parameters, job)


@pytest.mark.cases(2)
@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("simulator, shape", sweep(CASES))
def test_axis_in(
    simulate: Callable[..., None], simulator: str, shape: tuple[int, int, int], wrong: bool, cut: int
) -> None:
    """Also frame_error: it rises with the first wrong tlast, early or missing, and stays."""
    width, tdata_width, frame = shape
    rng = random.Random(width)
    words = [rng.getrandbits(tdata_width) for _ in range(400)]
    last = [int(k % frame == frame - 1) for k in range(400)]
    flip = rng.randrange(30, 60) if wrong else 400
    last = [flag ^ (k == flip) for k, flag in enumerate(last)]
    job = Stream(
        {"s_axis_tdata": words, "s_axis_tlast": last},
        {"m_data": [word & ((1 << width) - 1) for word in words]},
        latency=1,
        capacity=1 + cut,
        registered=bool(cut),
        levels={"frame_error": [int(count > flip) for count in range(401)]},
        waits_for_reset=True,
    )
    parameters = {"WIDTH": width, "TDATA_W": tdata_width, "BEATS": frame, "CUT": cut}
    simulate(simulator, "hg_axis_in", parameters, job)
