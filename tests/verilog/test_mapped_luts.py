"""LUTs of adder graphs and of counters of agreements: counted by hand, and as Yosys maps them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from hlsgen.adder_graph import agreements, find, schedule
from hlsgen.library import library_text
from hlsgen.synthesis.netlist import size
from hlsgen.synthesis.programs import run_yosys
from hlsgen.verilog.adder_luts import adder_luts
from hlsgen.verilog.adder_text import module_text
from hlsgen.verilog.count_luts import count_luts
from hlsgen.verilog.count_text import count_module_text
from hlsgen.verilog.mapped_luts import MINUS, PLUS, PLUS_NOT, Bit, MappedLuts, Value, inverse

PASSES = {
    "xc7": "synth_xilinx -flatten -noiopad -noclkbuf -nodsp",
    "ecp5": "synth_ecp5 -nodsp",
    "gowin": "synth_gowin -nodsp",
}


def number(name: str, bits: int) -> list[Value]:
    return [Bit((name, k)) for k in range(bits)]


def test_short_sums_cost_nothing_where_a_larger_table_takes_them() -> None:
    """A sum of two bits is the second term of a carry chain of four bits, and then its first one."""
    for is_first, functions in ((False, 0), (True, 2)):
        luts = MappedLuts("xc7")
        short = luts.sum("short", [*number("a", 1), 0], [*number("b", 1), 0], PLUS)
        terms = [number("c", 4), [*short, 0, 0]]
        luts.sum("long", *(reversed(terms) if is_first else terms), PLUS)
        # The LUTs of the two highest bits of the chain have one term only.
        assert luts.parts == {"chains": 4, "functions": functions, "inverters": 0}


def test_cells_of_chains_take_bits_as_they_are() -> None:
    """The chain of an ECP5 has two bits a cell and two ends. It can subtract, but inverts no other bits."""
    for operator, inverters in ((MINUS, 0), (PLUS_NOT, 5)):
        luts = MappedLuts("ecp5")
        luts.sum("long", number("a", 5), number("b", 5), operator)
        assert luts.parts == {"chains": 6 + 4, "functions": 0, "inverters": inverters}


def test_an_inverter_is_built_once() -> None:
    luts = MappedLuts("gowin")
    first = [inverse(bit) for bit in number("a", 3)]
    for other in "bc":
        luts.sum(other, first, number(other, 3), PLUS)
    assert luts.parts == {"chains": 6, "functions": 0, "inverters": 3}


def test_sums_of_other_places_are_wires() -> None:
    """a + 4 * b with a of two bits."""
    luts = MappedLuts("ecp5")
    total = luts.sum("sum", [*number("a", 2), 0, 0], [0, 0, *number("b", 2)], PLUS)
    assert total == number("a", 2) + number("b", 2)
    assert not any(luts.parts.values())


def test_a_function_of_many_bits_needs_further_tables() -> None:
    """Four bits of two numbers, in tables of four inputs: three are functions of at most four bits with two carries."""
    luts = MappedLuts("ecp5")
    for bit in luts.sum("sum", number("a", 4), number("b", 4), PLUS):
        luts.build(bit)
    assert luts.parts == {"chains": 0, "functions": 6, "inverters": 0}


def adders(seed: int, family: str) -> tuple[str, Mapping[str, float]]:
    """The module of a sparse matrix for codes of one to five bits, and its expected LUTs."""
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random((10, 12)) < 0.3, rng.integers(-15, 16, (10, 12)), 0)
    bits = 1 + seed % 5
    inputs = ((-(1 << bits - 1), (1 << bits - 1) - 1) if seed % 2 else (0, (1 << bits) - 1),) * 12
    pipeline = schedule(find(weight, inputs), 2)
    return module_text("unit", pipeline, bits, 12), adder_luts(pipeline, bits, family, bare=False)


def counters(seed: int, family: str) -> tuple[str, Mapping[str, float]]:
    graph = agreements(np.random.default_rng(seed).integers(0, 2, (6, 18 + 3 * seed)))
    return count_module_text("unit", graph, 2, 6), count_luts(graph, 2, 6, family)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("family", PASSES)
@pytest.mark.parametrize("make", [adders, counters])
def test_luts_are_about_those_of_yosys(
    make: Callable[[int, str], tuple[str, Mapping[str, float]]], family: str, tmp_path: Path
) -> None:
    """Sums of three units: within 10 %. One more LUT in each is the enable of its registers."""
    expected, found = 0.0, 0
    for seed in range(3):
        text, luts = make(seed, family)
        expected += 1 + sum(luts.values())
        files = [library_text("rtl", f"hg_{name}.v") for name in ("stages", "add3", "count")]
        (tmp_path / "all.v").write_text("".join([*files, text]))
        top = re.findall(r"^module (\w+)", text, re.MULTILINE)[0]
        passes = ["read_verilog -defer all.v", "scratchpad -set abc9.verify 0"]
        run_yosys([*passes, f"{PASSES[family]} -top {top}", "write_json out.json"], tmp_path, 300)
        found += size(json.loads((tmp_path / "out.json").read_text())["modules"], top, family).lut
    assert abs(expected - found) <= 0.1 * found, (expected, found)
