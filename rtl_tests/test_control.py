"""hg_control: registers, and the counters of frames and of errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams import SIMULATORS


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("words", [1, 2, 5])
def test_control(cocotb_job: Callable[..., None], simulator: str, words: int) -> None:
    version, model = 0x00010203, 0x89ABCDEF
    parameters = {"VERSION": f"32'h{version:x}", "MODEL": f"32'h{model:x}", "WORDS": words}
    job = {"version": version, "model": model, "words": words}
    cocotb_job(simulator, "hg_control", parameters, job, tests=3)
