"""The statements of `hlsgen certify`: each assumption is listed, and most are shown to be needed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certified import CASES, Case, messages, quantizer, sign
from paths import DATA, ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen.certify import Certified, Statement, rtl_files, statements
from hlsgen.certify import certify as prove
from hlsgen.cli import app
from hlsgen.driver import compile as driver
from hlsgen.ir import MatMul
from hlsgen.numerics import fixed
from hlsgen.verilog import emit

BOTH = ("verilog", "hls")
NAMES = [x.name for x in statements.assumed(model=False, loadable=True, once=("node",), targets=["verilog"])]
#: All assumptions, including those for files that are not compared.
ALL_ASSUMPTIONS = {
    x.name: x
    for compared in (True, False)
    for x in statements.assumed(model=False, loadable=True, once=("node",), targets=BOTH, compared=compared)
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CASES["network"].build(tmp_path_factory.mktemp("builds") / "network")


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def assumptions_by_name(certified: Certified) -> dict[str, Statement]:
    return {x.name: x for x in certified.assumed}


def test_every_build_lists_them(core: Path) -> None:
    output = json.loads(CliRunner().invoke(app, ["certify", str(core), "--json"]).stdout)
    assert [x["name"] for x in output["proven"]] == [
        x.name for x in statements.proven(model=False, targets=["verilog"])
    ]
    assert [x["name"] for x in output["assumed"]] == [x for x in NAMES if x not in ("written-weights", "read-once")]
    for entry in output["proven"] + output["assumed"]:
        assert set(entry) == {"name", "text", "where"}
        assert entry["text"].endswith(".")
    path = core / "rtl" / "top.v"
    path.write_text(path.read_text() + "// more\n")
    output = json.loads(CliRunner().invoke(app, ["certify", str(core), "--json"]).stdout)
    assert (output["ok"], output["proven"], bool(output["assumed"])) == (False, [], True)


def test_the_page_lists_them() -> None:
    """The page has the same sentences, and no others."""
    assumptions = ALL_ASSUMPTIONS.values()
    page = " ".join((ROOT / "docs" / "certificate.md").read_text().split())
    for part in (statements.proven(model=True, targets=BOTH, plain=True), assumptions):
        for x in part:
            assert f"| `{x.name}` | {x.text} |" in page, x.name
    rows = re.findall(r"\| `([a-z-]+)` \| [^|]+\. \|", page)
    assert sorted(rows) == sorted(
        [*(x.name for x in assumptions), *(x.name for x in statements.proven(model=True, targets=BOTH, plain=True))]
    )


# --------------------------------------------------------------------------- broken assumptions


def test_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong library module is not detected."""
    original = rtl_files.library_text

    def wrong(folder: str, name: str) -> str:
        return original(folder, name).replace("= s_axis_tdata", "= ~s_axis_tdata")

    monkeypatch.setattr(rtl_files, "library_text", wrong)
    monkeypatch.setattr(emit, "library_text", wrong)
    directory = CASES["network"].build(tmp_path / "core")
    assert "~s_axis_tdata" in (directory / "rtl" / "top_hg_axis_in.v").read_text()
    assert "library" in assumptions_by_name(hlsgen.certify(directory))
    assert messages(directory) == []


def test_arithmetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong rounding in the evaluation of the model is not detected, except where the file's numbers are rounded."""
    right = CASES["rank"].build(tmp_path / "right")
    monkeypatch.setitem(fixed._ROUND, fixed.Rounding.ROUND, np.floor)
    assert messages(right) != []
    wrong = CASES["rank"].build(tmp_path / "wrong")
    assert all("read a second time: weight" in text for text in messages(wrong))


def test_lowering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that changes a weight is not detected."""
    right = CASES["network"].build(tmp_path / "right")
    lower = driver.lower

    def wrong(model: Any, *args: Any) -> Any:
        steps = [
            replace(s, op=replace(s.op, weight=-s.op.weight)) if isinstance(s.op, MatMul) else s for s in model.steps
        ]
        return lower(replace(model, steps=tuple(steps)), *args)

    monkeypatch.setattr(driver, "lower", wrong)
    monkeypatch.setattr(sys.modules["hlsgen.certify"], "lower", wrong)
    assert messages(right) != []
    assert messages(CASES["network"].build(tmp_path / "wrong")) == []


def test_input_range(tmp_path: Path) -> None:
    """A code outside the range of the input port may give any result."""
    case = Case(lambda: quantizer("Abs"), hlsgen.Options(realize={"": "table"}, input="TERNARY"))
    core = case.build(tmp_path / "core")
    manifest = json.loads((core / "manifest.json").read_text())
    assert (manifest["input"]["range"], manifest["input"]["element_bits"]) == ([-1, 1], 2)
    changed = 0
    for path in sorted((core / "rtl").glob("*.mem")):
        lines = path.read_text().split()
        for n, line in enumerate(lines):
            path.write_text("\n".join([*lines[:n], f"{int(line, 16) ^ 1:0{len(line)}x}", *lines[n + 1 :], ""]))
            sign(core, f"rtl/{path.name}")
            changed += messages(core) == []
            path.write_text("\n".join([*lines, ""]))
            sign(core, f"rtl/{path.name}")
    assert changed > 0


@pytest.mark.sweep
def test_options(tmp_path: Path) -> None:
    """A build with another option is also certified."""
    for number, text in enumerate((None, "fixed:6,6")):
        hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / str(number), hlsgen.Options(input=text))
        certified = hlsgen.certify(tmp_path / str(number))
        assert certified.ok
        assert "options.input" in assumptions_by_name(certified)["options"].where


def entry(*path: str | int, value: object) -> Callable[[Path], None]:
    def change(core: Path) -> None:
        manifest = json.loads((core / "manifest.json").read_text())
        part = manifest
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        (core / "manifest.json").write_text(json.dumps(manifest))

    return change


def slower(core: Path) -> None:
    """Change the latency, also in the comment at the head of the top level."""
    path = core / "rtl" / "top.v"
    cycles = json.loads((core / "manifest.json").read_text())["cycles"]["latency"]
    text = path.read_text()
    assert text.count(f"// Timing  {cycles} ") == 1
    path.write_text(text.replace(f"// Timing  {cycles} ", f"// Timing  {cycles + 1} "))
    sign(core, "rtl/top.v")
    entry("cycles", "latency", value=cycles + 1)(core)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cycles", slower),
        ("cycles", entry("layers", 0, "cycles", value=11)),
        ("wishes", entry("options", "target_cycles", value=9)),
        ("wishes", entry("options", "realize", value={"": "shift"})),
        ("estimates", entry("layers", 1, "tried", value=[])),
        ("other-files", lambda core: (core / "tb" / "run.py").write_text("print('all tests passed')\n")),
        ("other-files", lambda core: (core / "report.md").unlink()),
        ("other-files", lambda core: next((core / "host").glob("*.c")).write_text("")),
    ],
)
def test_changes_that_are_not_proven(core: Path, name: str, change: Callable[[Path], None]) -> None:
    """The proof alone accepts them; the comparison with a new build detects each change."""
    change(core)
    certified = prove(core)
    assert certified.ok, certified.problems
    assert assumptions_by_name(certified)[name].where
    assert not hlsgen.certify(core).ok or name == "wishes"


@pytest.mark.sweep
def test_model_and_written_weights(core: Path, tmp_path: Path) -> None:
    """The model is proven with the option; written weights are assumed only for builds with the port."""
    certified = hlsgen.certify(core, DATA / "floor_ceil.onnx")
    assert "model" in {x.name for x in certified.proven} - set(assumptions_by_name(certified))
    assert "model" in assumptions_by_name(hlsgen.certify(core))
    assert "written-weights" not in assumptions_by_name(certified)
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "out", hlsgen.Options(loadable=True))
    assert "written-weights" in assumptions_by_name(hlsgen.certify(tmp_path / "out"))


def test_tools() -> None:
    """No test here runs a tool, so this can only be assumed."""
    assert "tools" in NAMES
