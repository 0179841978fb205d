"""hg_load and hg_axil_weights, against models of them; weights of every unit that has some, over the load bus."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streams import SIMULATORS, integers, pack, sweep

#: UNIT, WORDS, WIDTH
CASES = [(3, 5, 100), (65535, 1, 1), (0, 4, 32), (2, 9, 33), (7, 16, 96), (-1, 3, 40)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 2))
def test_load(cocotb_job: Callable[..., None], simulator: str, case: tuple[int, int, int]) -> None:
    job = dict(zip(("unit", "words", "width"), case, strict=True))
    cocotb_job(simulator, "hg_load", {name.upper(): value for name, value in job.items()}, job, tests=1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("units", [3, 1, 65536])
def test_registers(cocotb_job: Callable[..., None], simulator: str, units: int) -> None:
    if simulator == "verilator" and units == 65536:
        pytest.skip("one of the two simulators is enough here")
    cocotb_job(simulator, "hg_axil_weights", {"UNITS": units}, {"units": units}, tests=3)


#: Windows of one pixel. All units have six words of two pieces.
_PIXELS = {"HEIGHT": 1, "WIDTH": 5, "KH": 1, "KW": 1, "PT": 0, "PL": 0, "OUT_H": 1, "OUT_W": 5, "DEPTH": 32}
_WEIGHTED = {
    "hg_mvu": {"SIMD": 4, "PE": 3, "COL_FOLDS": 2, "ROW_FOLDS": 3},
    "hg_conv": {"SIMD": 4, "PE": 3, "FOLDS": 2, "REPEAT": 3, "GROUPS": 1, **_PIXELS},
    "hg_dwconv": {"PE": 12, "GROUPS": 6, "REPEAT": 1, **_PIXELS},
    "hg_dwmvu": {"PE": 3, "TAPS": 4, "FOLDS": 6},
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("module", _WEIGHTED)
def test_weights_of_a_unit(cocotb_job: Callable[..., None], simulator: str, module: str) -> None:
    unit, rng, sets = 77, np.random.default_rng(1), []
    for _ in range(3):
        w = integers(rng, 3, True, (6, 3, 4))  # word, row, column
        match module:
            case "hg_dwconv":
                x = integers(rng, 4, False, (30, 12))
                sums = x * np.tile(w.reshape(6, 12), (5, 1))
            case "hg_dwmvu":
                x = integers(rng, 4, False, (30, 4, 3))  # tap, element
                sums = (x.swapaxes(1, 2) * np.tile(w, (5, 1, 1))).sum(axis=2)
            case _:
                x = integers(rng, 4, False, (5, 2, 4))
                sums = np.einsum("nfs,rfps->nrp", x, w.reshape(3, 2, 3, 4))
        load = [1 << 48 | unit << 32]
        for word in pack(w.reshape(6, 12), 3):
            load += [
                1 << 49 | to << 32 | (word >> 32 * piece) & 0xFFFFFFFF for piece in range(2) for to in (unit, unit ^ 1)
            ]
        codes = pack(x.reshape(-1, 12 if module.startswith("hg_dw") else 4), 4)
        sums = pack(sums.reshape(-1, 12 if module == "hg_dwconv" else 3), 12)
        sets.append({"load": load, "codes": codes, "sums": sums})
    parameters = {**_WEIGHTED[module], "X_W": 4, "W_W": 3, "ACC_W": 12, "LOAD_UNIT": unit}
    cocotb_job(simulator, module, parameters, {"sets": sets}, tests=1, bench="loaded_cocotb")
