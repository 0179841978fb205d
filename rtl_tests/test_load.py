"""hg_load and hg_axil_weights, against models of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streams import SIMULATORS, sweep

#: UNIT, WORDS, WIDTH, LOADABLE
CASES = [(3, 5, 100, 1), (65535, 1, 1, 1), (0, 4, 32, 1), (2, 9, 33, 1), (7, 16, 96, 1), (1, 3, 40, 0)]


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 2))
def test_load(cocotb_job: Callable[..., None], simulator: str, case: tuple[int, int, int, int]) -> None:
    job = dict(zip(("unit", "words", "width", "loadable"), case, strict=True))
    cocotb_job(simulator, "hg_load", {name.upper(): value for name, value in job.items()}, job, tests=1)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("units", [3, 1, 65536])
def test_registers(cocotb_job: Callable[..., None], simulator: str, units: int) -> None:
    if simulator == "verilator" and units == 65536:
        pytest.skip("one of the two simulators is enough here")
    cocotb_job(simulator, "hg_axil_weights", {"UNITS": units}, {"units": units}, tests=3)
