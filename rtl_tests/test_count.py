"""hg_count, for all inputs, and generated modules of counters with it, against numpy; and lint of the text."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes import compile_function
from streams import RTL, Stream, pack, sweep
from verilated import tool_environment

from hlsgen.adder_graph import agreements
from hlsgen.verilog.count_text import count_module_text

#: Bits that are counted, places of the number, bits of the sum.
SHAPES = [(5, 3, 4), (5, 3, 3), (3, 2, 3), (1, 1, 2), (1, 1, 1), (4, 3, 2)]
#: Rows, columns, counters between registers, bits of a sum. Cases have triples, no triples, columns in no triple, or
#: few columns.
CASES = [
    (3, 20, 2, 5),
    (20, 30, 1, 6),
    (16, 31, 2, 5),
    (40, 9, 3, 9),
    (2, 2, 3, 2),
    (1, 1, 1, 1),
    (2, 150, 2, 8),
    (24, 8, 2, 4),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_count(shape: tuple[int, int, int]) -> None:
    counted, places, width = shape
    parameters = {"COUNTED": counted, "PLACES": places, "SUM_W": width}
    ports = {"x": counted, "a": places, "carry": 1}
    count = compile_function([RTL / "hg_count.v"], "hg_count", parameters, ports, ("sum", width))
    x, a, carry = (grid.ravel() for grid in np.meshgrid(np.arange(1 << counted), np.arange(1 << places), np.arange(2)))
    total = a + carry + sum(x >> n & 1 for n in range(counted))
    assert (count(x=x, a=a, carry=carry) == np.asarray(total % (1 << width), np.uint64)).all()


def module(case: tuple[int, ...]) -> tuple[str, np.ndarray[Any, Any], int]:
    """(text, weights, latency), with a row of zeros, one of ones, and two that are complements."""
    rows, columns, levels, y_bits = case
    weight = np.random.default_rng(sum(case)).integers(0, 2, (rows, columns))
    if rows > 4:
        weight[:2] = [[0], [1]]
        weight[2] = 1 - weight[3]
    graph = agreements(weight)
    return count_module_text("counts", graph, levels, y_bits), weight, graph.latency(levels)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_agreements_with_a_constant_matrix(
    simulate: Callable[..., None], simulator: str, case: tuple[int, ...]
) -> None:
    text, weight, latency = module(case)
    x = np.random.default_rng(1).integers(0, 2, (300, weight.shape[1]))
    x[:4] = [weight[0], 1 - weight[0], weight[-1], 1 - weight[-1]]
    y = (x[:, None] == weight).sum(axis=2)
    job = Stream({"s_data": pack(x, 1)}, {"m_data": pack(y, case[3])}, latency, capacity=latency)
    simulate(simulator, "counts", {}, job, {"counts.v": text})


@pytest.mark.parametrize("case", CASES)
def test_no_warnings(case: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "counts.v").write_text(module(case)[0])
    files = [str(tmp_path / "counts.v"), str(RTL / "hg_stages.v"), str(RTL / "hg_count.v")]
    for command in (
        ["verilator", "--lint-only", "-Wall", "--top-module", "counts"],
        ["verilator", "--lint-only", "-Wall", "--public-flat-rw", "--top-module", "counts"],
        ["iverilog", "-Wall", "-g2005", "-tnull"],
    ):
        completed = subprocess.run(
            [*command, *files], capture_output=True, text=True, check=False, env=tool_environment()
        )
        said = [line for line in completed.stderr.splitlines() if "timescale" not in line]
        assert (completed.returncode, said) == (0, [])
