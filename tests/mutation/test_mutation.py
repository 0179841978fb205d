"""The mutation gate itself, and a sample of it: a mistake in a module of the library is found by simulation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from equivalence import RTL, equivalent
from killers import Bench
from mutants import Mutant, mutants
from mutate import judge, key, reasons
from units import UNITS

SOURCE = """// a && b
module m (
    input  wire       clk,
    output wire [3:0] y
);
    reg [3:0] y_reg;
    wire [W-1:0] z = y_reg == 4'd3 ? 7 : 1'b0; // y + 1
    wire unused_z = &{1'b0, z};
    always @(posedge clk) if (!z) y_reg <= y_reg + 1'b1;
endmodule
"""


def of(module: str) -> list[Mutant]:
    return mutants(module, (RTL / f"{module}.v").read_text())


def test_mutants() -> None:
    made = mutants("m", SOURCE)
    assert Counter(m.kind for m in made) == {
        "operator": 2, "negation": 1, "constant": 3, "condition": 2, "assignment": 1, "width": 1,
    }  # fmt: skip
    assert all(m.source != SOURCE and m.text != m.changed for m in made)
    assert len({m.source for m in made}) == len(made)
    assert {m.line for m in made} == {7, 9}


def test_every_module_has_mutants() -> None:
    assert {module for module in UNITS if not of(module)} == set()


def test_reasons_are_of_mutants() -> None:
    """An explanation of what is no mutant any more is dropped."""
    assert set(reasons()) <= {key(m) for module in UNITS for m in of(module)}


def test_equivalence() -> None:
    """A changed text that computes the same is proven the same; one that does not, is not."""
    pytest.importorskip("pyosys")
    text = (RTL / "hg_slice.v").read_text()
    same = text.replace("full_reg || s_valid", "s_valid || full_reg")
    other = text.replace("full_reg || s_valid", "s_valid")
    assert same != text
    assert other != text
    assert equivalent("hg_slice", same) is None
    assert equivalent("hg_slice", other) == "differs at the defaults"


@pytest.mark.sim
@pytest.mark.sweep
def test_sample(tmp_path: Path) -> None:
    """Every eighth mutant of a module, all of them with make mutate; the module itself is not killed."""
    bench, made = Bench(tmp_path / "bench"), of("hg_gather")
    itself = replace(made[0], source=(RTL / "hg_gather.v").read_text())
    assert bench.killer(itself) is None
    counts = judge(bench, made[::8], show=False)["hg_gather"]
    assert counts["surviving"] == 0
    assert counts["killed"] > counts["equivalent"]


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("module", UNITS)
def test_all(module: str, tmp_path: Path) -> None:
    assert judge(Bench(tmp_path / "bench"), of(module))[module]["surviving"] == 0
