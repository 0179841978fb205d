"""hg_popcount: positions in which two words agree."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from lanes import compile_function
from streams import RTL, Pipeline, sweep


def delay(bits: int, each: int) -> int:
    return 1 + (-(-((bits - 1) // 4).bit_length() // each) if each else 0)


def in_terms(bits: int) -> int:
    """Positions in terms of three, each of which leaves one for the carry of an adder."""
    return min(bits, -(-bits // 4) * 3)


def last_position_agrees(x: int, w: int, bits: int) -> int:
    """1 if the position left over by the adders agrees: the last one, if all terms and carries are in use."""
    return (~(x ^ w) >> (bits - 1)) & 1 if bits % 4 == 0 else 0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "simulator, shape",
    sweep([(8, 2), (117, 1), (64, 2), (1, 1), (3, 1), (4, 3), (31, 1), (32, 1), (64, 0), (150, 2), (511, 3), (512, 2)]),
)
def test_popcount(simulate: Callable[..., None], simulator: str, shape: tuple[int, int]) -> None:
    """Counts of random words with any number of agreements, including none and all."""
    bits, each = shape
    rng = random.Random(bits)
    full = (1 << bits) - 1
    counts = [0, bits, *(rng.randint(0, bits) for _ in range(400))]
    agreements = [sum(1 << k for k in rng.sample(range(bits), count)) for count in counts]
    x = [rng.getrandbits(bits) for _ in agreements]
    w = [a ^ full ^ b for a, b in zip(x, agreements, strict=True)]
    terms = [a & ((1 << in_terms(bits)) - 1) for a in x]
    ones = [last_position_agrees(a, b, bits) for a, b in zip(x, w, strict=True)]
    outputs = {"count": [count - single for count, single in zip(counts, ones, strict=True)], "one": ones}
    job = Pipeline({"x": x, "x_again": terms, "w": w}, outputs, delay(bits, each))
    simulate(simulator, "hg_popcount", {"SIMD": bits, "EVERY": each}, job)


@pytest.mark.parametrize("bits, each", [(1, 1), (4, 2), (5, 1), (7, 3), (8, 0), (8, 2), (9, 1)])
def test_every_popcount(bits: int, each: int) -> None:
    files = [RTL / "hg_popcount.v", RTL / "hg_delay.v"]
    ports = {"x": bits, "x_again": in_terms(bits), "w": bits}
    parameters, cycles = {"SIMD": bits, "EVERY": each}, delay(bits, each)
    x, w = (grid.ravel() for grid in np.meshgrid(np.arange(1 << bits), np.arange(1 << bits)))
    agree = sum((~(x ^ w) >> k) & 1 for k in range(bits))
    outputs = [("count", 2 + ((bits - 1) // 4).bit_length()), ("one", 1)]
    run = [compile_function(files, "hg_popcount", parameters, ports, output, cycles) for output in outputs]
    for stalls in (False, True):
        count, single = (f(x=x, x_again=x & ((1 << in_terms(bits)) - 1), w=w, stalls=stalls) for f in run)
        assert (count + single == np.asarray(agree, np.uint64)).all()
