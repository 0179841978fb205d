"""Mutants of build files: coverage of all items, and a sample that both simulation and the proof find."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from bindings import DESIGNS, ROOT, Judge, judge, unseen

from hlsgen.driver.build_directory import reopen

#: Modules bound by emitters, from the text of the emitters.
BOUND = {
    name
    for path in (ROOT / "hlsgen" / "verilog" / "binding").glob("*.py")
    for name in re.findall(r"Binding\(\s*\"(hg_\w+)\"", path.read_text())
}

#: Modules that no build of DESIGNS has. These tests change their parameters, words and knots.
ELSEWHERE = {
    "hg_lines": "certify/test_lines.py",
    "hg_norm_moments": "certify/test_normalization.py",
    "hg_norm_root": "certify/test_normalization.py",
    "hg_norm_scale": "certify/test_normalization.py",
    "hg_rows_fixed_share": "certify/test_rows.py",
    "hg_rows_max": "certify/test_rows.py",
    "hg_rows_norm": "certify/test_rows.py",
    "hg_rows_share": "certify/test_rows.py",
    "hg_softmax": "certify/test_softmax_products.py",
}
#: Mutants of a build that `make test-all` judges.
SOME = 8


@pytest.mark.sim
def test_mutants(tmp_path: Path) -> None:
    """Every parameter and every port of every instance, the nets between them, every memory file."""
    judged = Judge("indexed", tmp_path / "d")
    all_mutants = judged.mutants()
    assert len({(m.file, m.data) for m in all_mutants}) == len(all_mutants)
    assert all((judged.own / m.file).read_bytes() != m.data for m in all_mutants)
    items = Counter(m.item for m in all_mutants)
    text = (judged.own / "rtl" / "top.v").read_text()
    cells = re.findall(r"^    top_(hg_\w+) #\((.*?)\n    \);", text, re.MULTILINE | re.DOTALL)
    assert len(cells) > len(judged.build.design.instances)
    for module, body in cells:
        for name in re.findall(r"\.(\w+)\(", body):
            assert items[f"{module}.{name}"], (module, name)
    assert {m.file for m in all_mutants if "memory" in m.item} == {
        f"rtl/{p.name}" for p in judged.own.glob("rtl/*.mem")
    }


@pytest.mark.sim
@pytest.mark.sweep
def test_sample(tmp_path: Path) -> None:
    """Some mutants of a small build, all of them with make mutate-builds; the build itself is not killed."""
    judged = Judge("indexed", tmp_path / "d")
    judged.put(None)
    assert judged.glance() == judged.certify() == ""
    chosen = judged.mutants()[35::50]
    counts = judge(judged, chosen, show=False)
    assert counts["surviving"] == counts["unseen by certify"] == 0
    assert counts["killed"] > len(chosen) / 2
    assert counts["certify sees"] >= counts["killed"]


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.parametrize("name", DESIGNS)
def test_some_of_each_build(name: str, tmp_path: Path) -> None:
    """certify sees what a few frames see, in mutants from all over a build. `make mutate-builds` judges all of them."""
    judged = Judge(name, tmp_path / "d")
    all_mutants = judged.mutants()
    assert unseen(judged, all_mutants[len(all_mutants) % 7 :: -(-len(all_mutants) // SOME)]) == []


@pytest.mark.slow
def test_modules_without_a_build_are_listed(tmp_path: Path) -> None:
    modules = set()
    for name, design in DESIGNS.items():
        folder = tmp_path / name.replace(" ", "_")
        design(folder)
        modules |= {instance.module for instance in reopen(folder).design.instances}
    assert BOUND - modules == {*ELSEWHERE}
