"""hg_add3 for all inputs, and hg_stages with generated adder modules, compared with numpy; and lint of their text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lanes import compile_function
from streams import RTL, Stream, pack, sweep
from verilated import tool_environment

from hlsgen.adder_graph import find, schedule, width
from hlsgen.verilog.adder_text import module_text

#: Rows, columns, least and greatest code, bits of a weight, levels between registers, and output delay. The delay is in
#: picoseconds after the sums, which then have no registers; 0: the sums are registered.
CASES = [
    (5, 7, -8, 7, 4, 2, 0),
    (1, 1, 0, 255, 8, 1, 0),
    (6, 4, 0, 15, 6, 1, 0),
    (9, 9, -128, 127, 8, 3, 0),
    (4, 12, 0, 1, 3, 2, 0),
    (7, 5, -1, 0, 4, 2, 0),
    (3, 20, -7, 7, 1, 2, 0),
    (8, 3, -5, 90, 5, 4, 0),
    (6, 16, -128, 127, 6, 2, 1600),
    (5, 8, 0, 255, 6, 2, 1200),
    (2, 2, 0, 3, 2, 2, 1200),
]


def module(case: tuple[int, ...], *, joined: bool = False) -> tuple[str, np.ndarray[Any, Any], int, tuple[int, int]]:
    """(text, weights, latency, bits of codes and sums), with a row of zeros and one of negative weights."""
    rows, columns, low, high, bits, levels, output_delay = case
    rng = np.random.default_rng(sum(case))
    weight = rng.integers(-(1 << (bits - 1)), (1 << (bits - 1)) + 1, (rows, columns))
    weight[0] *= rows == 1
    weight[-1] = -np.abs(weight[-1]) - 1
    graph = find(weight, [(low, high)] * columns)
    ends = np.where(weight > 0, weight * low, weight * high), np.where(weight > 0, weight * high, weight * low)
    y_bits = width(min(-1, int(ends[0].sum(axis=1).min())), int(ends[1].sum(axis=1).max()))
    pipeline = schedule(graph, levels, output_delay or None)
    x_bits = width(low, high)
    return module_text("adders", pipeline, x_bits, y_bits, joined=joined), weight, pipeline.latency, (x_bits, y_bits)


@pytest.mark.parametrize("width, carry", [(1, 0), (1, 1), (1, 2), (2, 1), (5, 0), (5, 1), (5, 2)])
def test_every_sum_of_three(width: int, carry: int) -> None:
    ports = dict.fromkeys("abc", width)
    add = compile_function([RTL / "hg_add3.v"], "hg_add3", {"WIDTH": width, "CARRY": carry}, ports, ("sum", width))
    a, b, c = (grid.ravel() for grid in np.meshgrid(*[np.arange(1 << width)] * 3))
    assert (add(a=a, b=b, c=c) == np.asarray((a + b + c + carry) % (1 << width), np.uint64)).all()


@pytest.mark.cases(2)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_products_of_a_constant_matrix(simulate: Callable[..., None], simulator: str, case: tuple[int, ...]) -> None:
    run(simulate, simulator, case, joined=False)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES[5:8]))
def test_joined_to_its_taker(simulate: Callable[..., None], simulator: str, case: tuple[int, ...]) -> None:
    """The unit accepts no beat while the consumer is not ready, even if it is empty."""
    run(simulate, simulator, case, joined=True)


def run(simulate: Callable[..., None], simulator: str, case: tuple[int, ...], *, joined: bool) -> None:
    text, weight, latency, (x_bits, y_bits) = module(case, joined=joined)
    low, high = case[2:4]
    x = np.random.default_rng(1).integers(low, high + 1, (300, weight.shape[1]))
    x[:2] = np.where(weight[-1] < 0, [[low], [high]], 0)
    job = Stream(
        {"s_data": pack(x, x_bits)}, {"m_data": pack(x @ weight.T, y_bits)}, latency, capacity=0 if joined else latency
    )
    simulate(simulator, "adders", {}, job, {"adders.v": text})


def test_sums_of_three_are_kept() -> None:
    """Wires are kept where a sum of two uses them in the same cycle, and nowhere else: Yosys would add four numbers."""
    kept_count = 0
    for case in CASES:
        text = module(case)[0]
        kept_wires = re.findall(r"\(\* keep \*\) wire \S+ (n\d+_\d+);", text)
        threes = set(re.findall(r"\.sum\((n\d+_\d+)", text))
        sums = re.findall(r"^    wire \S+ n\d+_\d+ = (.* [+-] .*);", text, re.MULTILINE)
        assert {*kept_wires} == threes & {name for total in sums for name in re.findall(r"n\d+_\d+", total)}
        kept_count += len(kept_wires)
    assert kept_count


def test_no_bit_waits_in_a_shift_register() -> None:
    """The third register in a row is reset: tools leave it a register."""
    matches = [re.search(r"if \(rst\) begin\n        (n\w+) <= ", module(case)[0]) for case in CASES]
    assert [(n, match[1]) for n, match in enumerate(matches) if match] == [(2, "n13_3")]


@pytest.mark.parametrize("case", CASES)
def test_no_warnings(case: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "adders.v").write_text(module(case)[0])
    files = [str(tmp_path / "adders.v"), str(RTL / "hg_stages.v"), str(RTL / "hg_add3.v")]
    for command in (
        ["verilator", "--lint-only", "-Wall", "--top-module", "adders"],
        ["iverilog", "-Wall", "-g2005", "-tnull"],
    ):
        completed = subprocess.run(
            [*command, *files], capture_output=True, text=True, check=False, env=tool_environment()
        )
        said = [line for line in completed.stderr.splitlines() if "timescale" not in line]
        assert (completed.returncode, said) == (0, [])
