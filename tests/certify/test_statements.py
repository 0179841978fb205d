"""What `hlsgen certify` says of itself: each assumption is named, and most are shown to be needed."""

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
#: With the statements of what is left where other files are not compared.
EVERY = {
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


def named(found: Certified) -> dict[str, Statement]:
    return {x.name: x for x in found.assumed}


def test_every_build_lists_them(core: Path) -> None:
    found = json.loads(CliRunner().invoke(app, ["certify", str(core), "--json"]).stdout)
    assert [x["name"] for x in found["proven"]] == [x.name for x in statements.proven(model=False, targets=["verilog"])]
    assert [x["name"] for x in found["assumed"]] == [x for x in NAMES if x not in ("written-weights", "read-once")]
    for entry in found["proven"] + found["assumed"]:
        assert set(entry) == {"name", "text", "where"}
        assert entry["text"].endswith(".")
    path = core / "rtl" / "top.v"
    path.write_text(path.read_text() + "// more\n")
    found = json.loads(CliRunner().invoke(app, ["certify", str(core), "--json"]).stdout)
    assert (found["ok"], found["proven"], bool(found["assumed"])) == (False, [], True)


def test_the_page_lists_them() -> None:
    """With the same sentences, and no others."""
    every = EVERY.values()
    page = " ".join((ROOT / "docs" / "certificate.md").read_text().split())
    for part in (statements.proven(model=True, targets=BOTH), every):
        for x in part:
            assert f"| `{x.name}` | {x.text} |" in page, x.name
    rows = re.findall(r"\| `([a-z-]+)` \| [^|]+\. \|", page)
    assert sorted(rows) == sorted(
        [*(x.name for x in every), *(x.name for x in statements.proven(model=True, targets=BOTH))]
    )


# --------------------------------------------------------------------------- with one of them broken


def test_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong module of the library is not seen."""
    original = rtl_files.library_text

    def wrong(folder: str, name: str) -> str:
        return original(folder, name).replace("= s_axis_tdata", "= ~s_axis_tdata")

    monkeypatch.setattr(rtl_files, "library_text", wrong)
    monkeypatch.setattr(emit, "library_text", wrong)
    directory = CASES["network"].build(tmp_path / "core")
    assert "~s_axis_tdata" in (directory / "rtl" / "top_hg_axis_in.v").read_text()
    assert "library" in named(hlsgen.certify(directory))
    assert messages(directory) == []


def test_arithmetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong rounding in the evaluation of the model is not seen, but where the numbers of the file are rounded."""
    right = CASES["rank"].build(tmp_path / "right")
    monkeypatch.setitem(fixed._ROUND, fixed.Rounding.ROUND, np.floor)
    assert messages(right) != []
    wrong = CASES["rank"].build(tmp_path / "wrong")
    assert all("read a second time: weight" in text for text in messages(wrong))


def test_lowering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that changes a weight is not seen."""
    right = CASES["network"].build(tmp_path / "right")
    lower = driver.lower

    def wrong(model: Any, *rest: Any) -> Any:
        steps = [
            replace(s, op=replace(s.op, weight=-s.op.weight)) if isinstance(s.op, MatMul) else s for s in model.steps
        ]
        return lower(replace(model, steps=tuple(steps)), *rest)

    monkeypatch.setattr(driver, "lower", wrong)
    monkeypatch.setattr(sys.modules["hlsgen.certify"], "lower", wrong)
    assert messages(right) != []
    assert messages(CASES["network"].build(tmp_path / "wrong")) == []


def test_input_range(tmp_path: Path) -> None:
    """A code that the input port must not get may give anything."""
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


def test_options(tmp_path: Path) -> None:
    """A build with another option is right as well."""
    for number, text in enumerate((None, "fixed:6,6")):
        hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / str(number), hlsgen.Options(input=text))
        found = hlsgen.certify(tmp_path / str(number))
        assert found.ok
        assert "options.input" in named(found)["options"].where


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
    """In the comment at the head of the top level, too."""
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
def test_what_is_not_proven(core: Path, name: str, change: Callable[[Path], None]) -> None:
    """By the proof alone. What is compared shows a change of any of these."""
    change(core)
    found = prove(core)
    assert found.ok, found.problems
    assert named(found)[name].where
    assert not hlsgen.certify(core).ok or name == "wishes"


def test_model_and_written_weights(core: Path, tmp_path: Path) -> None:
    """The one is proven with the option, the other there only of builds with the port."""
    found = hlsgen.certify(core, DATA / "floor_ceil.onnx")
    assert "model" in {x.name for x in found.proven} - set(named(found))
    assert "model" in named(hlsgen.certify(core))
    assert "written-weights" not in named(found)
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "out", hlsgen.Options(loadable=True))
    assert "written-weights" in named(hlsgen.certify(tmp_path / "out"))


def test_tools() -> None:
    """Nothing here runs one, so this can only be said."""
    assert "tools" in NAMES
