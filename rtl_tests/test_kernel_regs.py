"""hg_kernel_regs: the registers of a kernel for Vitis, against a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams import SIMULATORS


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(("pointers", "word_bits", "pause"), [(2, 2, 0.3), (1, 7, 0.0), (5, 3, 0.6)])
def test_registers(
    cocotb_job: Callable[..., None], simulator: str, pointers: int, word_bits: int, pause: float
) -> None:
    parameters = {"POINTERS": pointers, "WORD_BITS": word_bits}
    cocotb_job(simulator, "hg_kernel_regs", parameters, {**parameters, "pause": pause, "jobs": 20, "seed": 3}, tests=1)
