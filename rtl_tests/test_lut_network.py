"""hg_lut_network: bits that are functions of bits, against hlsgen.lut_network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from streams import Stream, sweep

from hlsgen.lut_network import LutFunction, LutNetwork
from hlsgen.verilog.binding import lut_network as binding
from hlsgen.verilog.render import constant


@dataclass(frozen=True)
class Case:
    """Random functions in levels of these numbers of functions; the last one is the output."""

    inputs: int
    levels: tuple[int, ...]


CASES = [Case(9, (5, 3, 4)), Case(40, (30, 20, 30, 17)), Case(1, (1,)), Case(7, (12,)), Case(3, (2, 1, 1))]


def network_of(case: Case) -> LutNetwork:
    rng = np.random.default_rng(case.inputs)
    functions: list[LutFunction] = []
    ends = np.cumsum(case.levels).tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        below = case.inputs + start
        for _ in range(start, end):
            # Every third function prefers the functions of the level below.
            first = max(0, below - 6) if rng.integers(3) == 0 else 0
            count = int(rng.integers(0, min(6, below - first) + 1))
            inputs = first + rng.permutation(below - first)[:count]
            table = int("".join(map(str, rng.integers(0, 2, 1 << count).tolist())), 2)
            functions.append(LutFunction(tuple(inputs.tolist()), table))
    return LutNetwork(case.inputs, tuple(functions), tuple(ends))


def words(bits: np.ndarray) -> list[int]:
    return [int("".join(map(str, row[::-1])), 2) for row in bits.tolist()]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES, 2))
def test_lut_network(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    network = network_of(case)
    x = np.random.default_rng(1).integers(0, 2, (600, case.inputs)).astype(np.uint8)
    bound = binding.bind(network, "")
    job = Stream({"s_data": words(x)}, {"m_data": words(network.apply(x))}, latency=1, capacity=1)
    simulate(simulator, bound.module, {name: constant(v) for name, v in bound.parameters.items()}, job, {})
