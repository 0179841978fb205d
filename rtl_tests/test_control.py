"""hg_control: registers, and the counters of frames and of errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams import SIMULATORS


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(("words", "outputs"), [([1], 1), ([2], 1), ([5], 1), ([3, 1], 2), ([4], 3)])
def test_control(cocotb_job: Callable[..., None], simulator: str, words: list[int], outputs: int) -> None:
    version, model = 0x00010203, 0x89ABCDEF
    packed = sum(count << 32 * place for place, count in enumerate(words))
    parameters = {
        "VERSION": f"32'h{version:x}",
        "MODEL": f"32'h{model:x}",
        "INPUTS": len(words),
        "OUTPUTS": outputs,
        "WORDS": f"{32 * len(words)}'h{packed:x}",
    }
    job = {"version": version, "model": model, "words": words, "outputs": outputs}
    cocotb_job(simulator, "hg_control", parameters, job, tests=3)
