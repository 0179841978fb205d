"""hg_popcount: positions in which two words agree."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from lanes import compile_function
from streams import RTL, Pipeline, sweep


def delay(bits: int, each: int) -> int:
    groups = -(-bits // 6)
    return 1 + ((groups - 1).bit_length() // each if each else 0)


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, shape", sweep([(8, 2), (31, 1), (1, 1), (6, 2), (7, 1), (64, 0), (150, 2)]))
def test_popcount(simulate: Callable[..., None], simulator: str, shape: tuple[int, int]) -> None:
    bits, each = shape
    rng = random.Random(bits)
    x = [rng.getrandbits(bits) for _ in range(500)]
    full = (1 << bits) - 1
    w = [rng.choice([rng.getrandbits(bits), word, word ^ full, word ^ 1, 0, full]) for word in x]
    agree = [(~(a ^ b) & full).bit_count() for a, b in zip(x, w, strict=True)]
    job = Pipeline({"x": x, "w": w}, {"count": agree}, delay(bits, each))
    simulate(simulator, "hg_popcount", {"SIMD": bits, "EVERY": each}, job)


@pytest.mark.parametrize("bits", [1, 5, 8])
def test_every_popcount(bits: int) -> None:
    files = [RTL / "hg_popcount.v", RTL / "hg_adder_tree.v"]
    parameters, width = {"SIMD": bits, "EVERY": 1}, 3 + (-(-bits // 6) - 1).bit_length()
    ports = {"x": bits, "w": bits}
    popcount = compile_function(files, "hg_popcount", parameters, ports, ("count", width), delay(bits, 1))
    x, w = (grid.ravel() for grid in np.meshgrid(np.arange(1 << bits), np.arange(1 << bits)))
    agree = sum((~(x ^ w) >> k) & 1 for k in range(bits))
    for stalls in (False, True):
        assert (popcount(x=x, w=w, stalls=stalls) == np.asarray(agree, np.uint64)).all()
