"""Emitted Verilog in slang, which reads the standard more strictly than simulators do."""

from __future__ import annotations

from pathlib import Path

import pytest
from certified import CASES, Case
from pyslang.parsing import TokenKind
from slang_lint import slang_complaints

import hlsgen
from hlsgen.dataflow.keywords import KEYWORDS

BUSES = {"bus_width": "32", "tkeep": True, "control": True, "reset_active_low": True}
BUILDS = {
    **{name: CASES[name] for name in ("network", "adders", "tables of sums", "float", "correct", "sum", "argmax")},
    "bus": Case("floor_ceil", hlsgen.Options(**BUSES)),
    "loadable": Case("floor_ceil", hlsgen.Options(loadable=True, target_cycles=20)),
}


@pytest.mark.parametrize("name", list(BUILDS))
@pytest.mark.parametrize("standard", ["1364-2005", "1800-2017"])
@pytest.mark.cases(4)
def test_emitted_cores(name: str, standard: str, tmp_path: Path) -> None:
    core = BUILDS[name].build(tmp_path / "core")
    files = [core / line for line in (core / "files.f").read_text().split()]
    assert slang_complaints(files, [BUILDS[name].options.top or "top"], standard) == []


def test_all_keywords_are_known() -> None:
    """slang's tokens are named after them, with capital letters in place of underscores, and within words too."""
    tokens = {name.removesuffix("Keyword").lower() for name in dir(TokenKind) if name.endswith("Keyword")}
    assert tokens - {word.replace("_", "") for word in KEYWORDS} == set()
