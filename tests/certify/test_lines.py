"""`certify` of LOGISTIC of int16 codes on lines between knots: Verilog and C++, and changes of either."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from certified import changed, messages, sign
from tflite_random import random_file

import hlsgen


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "m.tflite").write_bytes(random_file("LOGISTIC:int16", 1).data)
    hlsgen.build(folder / "m.tflite", folder / "core", hlsgen.Options(target="verilog,hls", top="top"))
    return folder / "core"


def test_proven(core: Path) -> None:
    assert "hg_lines #(" in (core / "rtl" / "top.v").read_text()
    assert hlsgen.certify(core, core.parent / "m.tflite").ok


def _instance(core: Path) -> str:
    match = re.search(r"hg_lines #\([^;]*?\) (\w+) \(", (core / "rtl" / "top.v").read_text())
    assert match
    return match[1]


@pytest.mark.parametrize("name, value", [("SHIFT", 8), ("LEFT", 8), ("RIGHT", 11)])
def test_another_parameter(core: Path, name: str, value: int) -> None:
    with changed(core, _instance(core), name, value):
        assert any("at x =" in message for message in messages(core))


def test_another_knot(core: Path) -> None:
    (path,) = (core / "rtl").glob("*.mem")
    name = f"rtl/{path.name}"
    text = (core / name).read_text()
    words = text.split()
    words[100] = f"{int(words[100], 16) ^ 1:0{len(words[100])}x}"
    (core / name).write_text("\n".join(words) + "\n")
    sign(core, name)
    assert any("at x =" in message for message in messages(core))
    (core / name).write_text(text)
    sign(core, name)
