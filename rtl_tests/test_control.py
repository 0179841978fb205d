"""hg_control, hg_control_starts: registers, counters of frames and of errors, and the start of a sequence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams import SIMULATORS


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(("words", "outputs"), [([1], 1), ([2], 1), ([5], 1), ([3, 1], 2), ([4], 3)])
def test_control(cocotb_job: Callable[..., None], simulator: str, words: list[int], outputs: int) -> None:
    run(cocotb_job, simulator, "hg_control", words, outputs)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(("words", "outputs", "starts"), [([2], 1, True), ([3, 1], 2, True), ([4], 3, False)])
def test_starts(cocotb_job: Callable[..., None], simulator: str, words: list[int], outputs: int, starts: bool) -> None:
    run(cocotb_job, simulator, "hg_control_starts", words, outputs, starts)


def run(
    cocotb_job: Callable[..., None],
    simulator: str,
    module: str,
    words: list[int],
    outputs: int,
    starts: bool | None = None,
) -> None:
    """`starts`: STARTS of hg_control_starts; None for hg_control."""
    version, model = 0x00010203, 0x89ABCDEF
    packed = sum(count << 32 * place for place, count in enumerate(words))
    parameters: dict[str, object] = {
        "VERSION": f"32'h{version:x}",
        "MODEL": f"32'h{model:x}",
        "INPUTS": len(words),
        "OUTPUTS": outputs,
        "WORDS": f"{32 * len(words)}'h{packed:x}",
    }
    job = {"version": version, "model": model, "words": words, "outputs": outputs, "starts": starts}
    parameters |= {} if starts is None else {"STARTS": int(starts)}
    cocotb_job(simulator, module, parameters, job, tests=4, bench="control_cocotb")
