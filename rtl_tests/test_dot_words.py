"""hg_words_row in hg_mvu_words: dot products with one of a few words, whose sums are tables, against numpy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from streams import RTL, Stream, integers, pack, sum_tables, sweep, words_latency

# terms, bits and sign of x, bits of weights, words, codes of the first DA table, levels per register, CUT
DOTS = [
    (16, 4, 0, 4, 4, 4, 2, 1),
    (5, 2, 1, 3, 2, 5, 1, 0),
    (33, 3, 1, 8, 8, 3, 2, 1),
    (1, 1, 0, 2, 2, 2, 2, 0),
    (7, 8, 1, 2, 5, 3, 0, 1),
    (9, 4, 1, 4, 2, 5, 3, 0),
    (18, 5, 0, 1, 3, 4, 1, 1),
    (2, 2, 1, 5, 6, 2, 2, 0),
    (8, 4, 1, 6, 4, 4, 2, 1),
    (70, 2, 0, 4, 2, 5, 1, 0),
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, shape", sweep(DOTS, 3))
def test_words(simulate: Callable[..., None], simulator: str, shape: tuple[int, ...]) -> None:
    """Every word with random codes, with all bits of all codes, and with codes of one bit."""
    terms, x_bits, x_signed, w_bits, words = shape[:5]
    rng = np.random.default_rng(terms)
    weights = integers(rng, w_bits, True, (words, 1, terms))
    weights[0], weights[-1] = -(1 << (w_bits - 1)), max(0, (1 << (w_bits - 1)) - 1)
    unit_inputs = np.zeros((terms * x_bits, terms), np.int64)
    unit_inputs[np.arange(len(unit_inputs)), np.arange(len(unit_inputs)) // x_bits] = 1 << (
        np.arange(len(unit_inputs)) % x_bits
    )
    unit_inputs[:] -= ((unit_inputs >> (x_bits - 1)) & x_signed) << x_bits
    x = np.concatenate(
        [
            unit_inputs,
            integers(rng, x_bits, bool(x_signed), (200, terms)),
            np.full((1, terms), -1 if x_signed else (1 << x_bits) - 1),
        ]
    )
    _run(simulate, simulator, shape, weights, x)


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, signed", [("icarus", 0), ("verilator", 1)])
def test_all_codes(simulate: Callable[..., None], simulator: str, signed: int) -> None:
    """All codes and words of a small one."""
    terms, x_bits, words = 4, 2, 3
    weights = integers(np.random.default_rng(7), 4, True, (words, 1, terms))
    x = np.arange(1 << (terms * x_bits))[:, None] >> (np.arange(terms) * x_bits) & ((1 << x_bits) - 1)
    x -= ((x >> (x_bits - 1)) & signed) << x_bits
    _run(simulate, simulator, (terms, x_bits, signed, 4, words, 2, 1, signed), weights, x)


# Runs in a separate process, because an error of Yosys ends the process.
NETLIST = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
for command in (f"read_verilog -defer {sys.argv[1]}/*.v", f"hierarchy -top hg_words_row {sys.argv[3]}",
                "proc", "flatten", "opt_clean", f"write_json {sys.argv[2]}"):
    ys.run_pass(command, design)
"""


@pytest.mark.parametrize("terms", [13, 10, 30])
@pytest.mark.parametrize("each", [1, 2])
def test_additions_of_a_stage(tmp_path: Path, terms: int, each: int) -> None:
    """At most EVERY additions in series, within three or four DA tables, and across several groups."""
    pytest.importorskip("pyosys")
    values = " ".join(f"-chparam {name} {value}" for name, value in {"SIMD": terms, "EVERY": each}.items())
    cases_file = tmp_path / "made.json"
    subprocess.run([sys.executable, "-c", NETLIST, str(RTL), str(cases_file), values], check=True, capture_output=True)
    (module,) = (m for name, m in json.loads(cases_file.read_text())["modules"].items() if "hg_words_row" in name)
    drivers = {
        bit: cell
        for cell in module["cells"].values()
        for port, bits in cell["connections"].items()
        if cell["port_directions"][port] == "output"
        for bit in bits
    }

    @cache
    def additions(bit: int | str) -> int:
        cell = drivers.get(bit)
        if cell is None or "dff" in cell["type"]:
            return 0
        ins = (
            b for port, bits in cell["connections"].items() if cell["port_directions"][port] == "input" for b in bits
        )
        return max(map(additions, ins), default=0) + (cell["type"] in ("$add", "$sub"))

    ends = (bit for cell in module["cells"].values() if "dff" in cell["type"] for bit in cell["connections"]["D"])
    assert max(map(additions, ends)) == each


def _run(
    simulate: Callable[..., None], simulator: str, shape: tuple[int, ...], weights: np.ndarray, x: np.ndarray
) -> None:
    """A vector x is a beat, and each of its output beats is for another word."""
    terms, x_bits, x_signed, _, words, first, each, cut = shape
    files, sizes = sum_tables(weights, first, "w")
    out = x_bits + sizes["S_W"]
    parameters = {"SIMD": terms, "PE": 1, "COL_FOLDS": 1, "ROW_FOLDS": words, "X_W": x_bits, "X_SIGNED": x_signed}
    parameters |= {**sizes, "ACC_W": out, "EVERY": each, "CUT": cut, "FILE": '"w"'}
    job = Stream(
        {"s_data": pack(x, x_bits)},
        {"m_data": pack((x @ weights[:, 0].T).reshape(-1, 1), out)},
        latency=4 + words_latency(terms, x_bits, first, each, cut),
        completes=np.repeat(np.arange(len(x)), words).tolist(),
        continuous="output",
        short=60,
    )
    simulate(simulator, "hg_mvu_words", parameters, job, files)
