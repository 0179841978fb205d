"""The mutation test itself, and a sample: simulation finds a mistake in a module of the library."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from equivalence import RTL, equivalent, sets
from killers import Bench
from mutants import mutants
from mutate import judge, key, reasons, sample
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


#: The section of docs/library.md with five numbers per module: mutants, run, killed, equivalent, surviving.
PAGE = (RTL.parents[1] / "docs" / "library.md").read_text().split("## Mutants")[1]
SCORES = {
    module: tuple(int(number) for number in numbers.split("|")[:5])
    for module, numbers in re.findall(r"^\| (hg_\w+) \|((?: \d+ \|){5})$", PAGE, re.MULTILINE)
}

#: Sample sizes of modules whose mutants do not all run.
SAMPLES = (4, 8, 20)
#: Mutants of a module that `make test-all` runs.
SOME = 2


def test_mutants() -> None:
    all_mutants = mutants("m", SOURCE)
    assert Counter(m.kind for m in all_mutants) == {
        "operator": 2,
        "negation": 1,
        "constant": 3,
        "condition": 2,
        "assignment": 1,
        "width": 1,
    }
    assert all(m.source != SOURCE and m.text != m.changed for m in all_mutants)
    assert len({m.source for m in all_mutants}) == len(all_mutants)
    assert {m.line for m in all_mutants} == {7, 9}


def test_every_module_has_mutants() -> None:
    assert {module for module in UNITS if not sample(module)} == set()


def test_reasons_are_of_mutants() -> None:
    """Every explanation belongs to an existing mutant."""
    assert set(reasons()) <= {key(m) for module in UNITS for m in sample(module)}


def test_scores_of_the_page() -> None:
    """docs/library.md lists the verdicts of each module's mutants, without survivors, or the module as not run."""
    for module, (all_of_it, run, killed, equivalent_, surviving) in SCORES.items():
        assert killed + equivalent_ + surviving == run, module
        assert run in {min(all_of_it, count) for count in (*SAMPLES, all_of_it)}, module
        assert killed >= equivalent_, module
        assert surviving == 0, module
    waiting = re.findall(r"`(hg_\w+)`", PAGE.partition("Not run yet:")[2])
    assert list(SCORES) == sorted(SCORES)
    assert sorted([*SCORES, *waiting]) == sorted(UNITS)


@pytest.mark.sim
def test_equivalence() -> None:
    """An equivalent text is proven equivalent; a wrong one is not."""
    pytest.importorskip("pyosys")
    text = (RTL / "hg_slice.v").read_text()
    reordered = text.replace("full_reg || s_valid", "s_valid || full_reg")
    shortened = text.replace("full_reg || s_valid", "s_valid")
    assert reordered != text
    assert shortened != text
    assert equivalent("hg_slice", reordered) is None
    assert equivalent("hg_slice", shortened) == "differs at the defaults"


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "module, old, new",
    [
        ("hg_rank", "m_ready || !valid_reg[LEVELS-1]", "!valid_reg[LEVELS-1] || m_ready"),  # reads beyond its last word
        ("hg_pair_scale", "m_ready || !valid_reg[4]", "!valid_reg[4] || m_ready"),  # multiplies
    ],
)
def test_equivalence_of_much_in_common(module: str, old: str, new: str) -> None:
    pytest.importorskip("pyosys")
    text = (RTL / f"{module}.v").read_text()
    assert old in text
    assert equivalent(module, text.replace(old, new)) is None
    assert equivalent(module, text.replace(old, old.replace("!", ""))) == "differs at the defaults"


@pytest.mark.sim
def test_equivalence_at_a_negative_parameter() -> None:
    pytest.importorskip("pyosys")
    text = (RTL / "hg_threshold.v").read_text()
    assert any(value == -3 for parameters in sets("hg_threshold") for value in parameters.values())
    assert equivalent("hg_threshold", text.replace("(WORDS <= 1) ? 1", "(WORDS <= 1) ? 2")) is None


@pytest.mark.sim
@pytest.mark.parametrize(
    "module, old, new",
    [
        ("hg_words_row", "(T_W + 2 < S_W) ?", "(T_W + 2 < S_W) == 0 ?"),  # reads a memory
        ("hg_weights_table", "(WORDS <= 1) ? 1", "(WORDS <= 1) ? 2"),  # its hierarchy is kept
    ],
)
def test_equivalence_at_every_set(module: str, old: str, new: str) -> None:
    pytest.importorskip("pyosys")
    text = (RTL / f"{module}.v").read_text()
    assert old in text
    assert equivalent(module, text.replace(old, new)) is None


@pytest.mark.sim
@pytest.mark.sweep
def test_sample(tmp_path: Path) -> None:
    """Every eighth mutant of a module (make mutate runs all). The original module is not killed."""
    bench, all_mutants = Bench(tmp_path / "bench"), sample("hg_gather")
    itself = replace(all_mutants[0], source=(RTL / "hg_gather.v").read_text())
    assert bench.killer(itself) is None
    counts = judge(bench, all_mutants[::8], show=False)["hg_gather"]
    assert counts["surviving"] == 0
    assert counts["killed"] > counts["equivalent"]


@pytest.mark.sim
def test_memories_of_a_kept_simulation(tmp_path: Path) -> None:
    """A recorded bench finds its memory files by absolute paths. Otherwise its output would be undefined."""
    bench = Bench(tmp_path / "bench")
    bench.names["test_softmax.py"] = ["rtl_tests/test_softmax.py::test_full_rate[case0]"]
    bench.runs["test_softmax.py"], bench.driven["test_softmax.py"] = [], []
    bench.record("test_softmax.py")
    (piece,) = bench._pieces("test_softmax.py", "hg_softmax")
    bench._play(piece)
    assert len(piece.printed) == 500
    assert not [line for line in piece.printed if re.search("x.*[0-9]|[0-9].*x", line, re.IGNORECASE)]


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("module", SCORES)
def test_some_of_each_module(module: str, tmp_path: Path) -> None:
    """A few of the mutants that have run according to the page, as with CASES=1. `make mutate` runs all."""
    have_run = sample(module, SCORES[module][1])
    counts = judge(Bench(tmp_path / "bench"), have_run[:: -(-len(have_run) // SOME)], cases=1)
    assert counts[module]["surviving"] == 0
