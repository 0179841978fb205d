"""`hlsgen certify` on loops in C++: every change of a step, of its loop or of its states is detected."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from certified_cpp import problems
from paths import ROOT
from quant_lstm_models import random_cell

import hlsgen


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two states of three beats, two steps."""
    folder = tmp_path_factory.mktemp("loop")
    onnx.save(random_cell(68)[0], folder / "m.onnx")
    options = hlsgen.Options(target="hls", recurrence="once", target_cycles=60, top="top")
    hlsgen.build(folder / "m.onnx", folder / "core", options)
    return folder / "core"


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def first(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def sub(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1)


def exchanged(a: str, b: str, start: str = "") -> Callable[[str], str]:
    """Swap two names, from `start` on."""

    def change(text: str) -> str:
        at = text.index(start)
        return text[:at] + text[at:].replace(a, "?").replace(b, a).replace("?", b)

    return change


CHANGES = {
    "steps": sub(r"step < 2;", "step < 3;"),
    "no step": sub(r"step < 2;", "step < 0;"),
    "starts late": first("int step = 0;", "int step = 1;"),
    "a state is not renewed": sub(r"        hg::renew\(\w+, \w+\);\n", ""),
    "renewed by the other": exchanged("renew(cell_state_0_left", "renew(cell_state_1_left"),
    "renewed backwards": sub(r"renew\((\w+), (\w+)\)", r"renew(\2, \1)"),
    "initial states": exchanged("remember(cell_state_0_initial_3_out", "remember(cell_state_1_initial_3_out"),
    "no initial state": sub(r"    hg::remember\(.*\n", ""),
    "the step finds the other": exchanged("cell_state_0_found", "cell_state_1_found", "    for (int step"),
    "the step leaves the other": exchanged("cell_state_0_left", "cell_state_1_left", "        cell_step("),
    "processes find the other": exchanged("(cell_state_0_found, ", "(cell_state_1_found, "),
    "a longer array": sub(r"_left\[3\];", "_left[4];"),
    "a shorter state": sub(r"3 /\* BEATS \*/>\(found", "2 /* BEATS */>(found"),
    "another function": sub(r"hg::recall<", "hg::remember<"),
    "what is left can be read": sub(r"const (cell_state_0_beat \(&found\))", r"\1"),
    "no region": first("#pragma HLS DATAFLOW\n", ""),
    "pipelined": first("#pragma HLS PIPELINE off\n", ""),
    "called twice": sub(r"(        cell_step\([^;]*;\n)", r"\1\1"),
    "more in the loop": first("        hg::renew(", "        step++;\n        hg::renew("),
    "another beat": sub(r"1 /\* VECTORS \*/", "2 /* VECTORS */"),
    "another order": lambda t: (
        re.sub(r"(    cell_state_0\(.*\n)(    .*\n)", r"\2\1", t[: t.index("static void cell(")])
        + t[t.index("static void cell(") :]
    ),
    "called outside": sub(r"(    take_frame\(s_axis, )", r"    cell_state_0(cell_state_0_found, port_out);\n\1"),
    "the loop is not called": sub(r"\n    cell\([^;]*;", ""),
    "with other streams": sub(r"\n    cell\((\w+), (\w+)", r"\n    cell(\2, \1"),
    "from another step": sub(r"static void cell\(", "static void cell_2("),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_found(name: str, core: Path) -> None:
    path = core / "hls" / "top.cpp"
    text = path.read_text()
    changed = CHANGES[name](text)
    assert changed != text
    path.write_text(changed)
    assert problems(core) != []


def test_untouched(core: Path) -> None:
    assert problems(core) == []


@pytest.mark.sweep
def test_channels_of_different_scales(tmp_path: Path) -> None:
    """A function of two numbers whose codes have different fraction bits in each channel."""
    model = ROOT / "examples" / "digits_sequences" / "digits_gru.onnx"
    options = hlsgen.Options(target="hls", recurrence="once", target_cycles=1000)
    hlsgen.build(model, tmp_path / "core", options)
    assert "hg::correct<" in (tmp_path / "core" / "hls" / "digits_gru.cpp").read_text()
    assert hlsgen.certify(tmp_path / "core").problems == []
