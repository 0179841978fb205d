"""`hlsgen certify` on state between frames in C++: every change of a state, of its loop or of its start is detected."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from certified_cpp import problems
from state_models import coupled, recurrent

import hlsgen

#: Two states of one type, in one loop.
STATES = ["g=g_out:-0.25", "h=h_out"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("states")
    onnx.save(coupled(), folder / "m.onnx")
    options = hlsgen.Options(target="hls", state=STATES, target_cycles=12, top="top")
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


def exchanged(a: str, b: str, start: str = "", end: str = "") -> Callable[[str], str]:
    """Swap two names, from `start` to `end`."""

    def change(text: str) -> str:
        at = text.index(start)
        to = text.index(end, at) if end else len(text)
        return text[:at] + text[at:to].replace(a, "?").replace(b, a).replace("?", b) + text[to:]

    return change


CORE_CHANGES = {
    "initial states": exchanged("input_g_2_initial", "input_h_initial"),
    "a frame leaves the other state": exchanged("input_g_2_left);", "input_h_left);", "    input_g_next(", "\n}"),
    "a frame finds the other state": exchanged("input_g_2_found, in", "input_h_found, in", "    input_g_2(", "\n}"),
    "the other state is kept": exchanged("renew(input_g_2_left", "renew(input_h_left"),
    "no state is kept": first("    static input_g", "    input_g"),
    "the next state is kept": first("    input_g_2_beat input_g_2_left", "    static input_g_2_beat input_g_2_left"),
    "a state is not renewed": sub(r"    hg::renew\(\w+, \w+\);\n", ""),
    "renewed backwards": sub(r"renew\((\w+), (\w+)\)", r"renew(\2, \1)"),
    "a longer array": sub(r"_left\[(\d+)\];", r"_left[1\1];"),
    "a shorter state": sub(r"\d+ /\* BEATS \*/>\(found", "1 /* BEATS */>(found"),
    "without the initial state": sub(r"hg::find<(.*)>\(found, s, m, \w+\)", r"hg::recall<\1>(found, m)"),
    "called twice": sub(r"(    input_g_frame_step\([^;]*;\n)", r"\1\1"),
    "not called": sub(r"\n    input_g_frame\([^;]*;", ""),
    "start ignored": sub(r"hg::frame_start<(.*)>\(a, b, m", r"hg::first_frame<\1>(a, m"),
    "every frame is the first": sub(r"static (bool later)", r"\1"),
    "no frame is the first": first("later = false", "later = true"),
    "reset is ignored": first("#pragma HLS RESET variable=later\n", ""),
    "no start at the port": sub(r"port_in_starts<(.*)>\(s, m0, m1\)", r"port_in<\1>(s, m0)"),
    "fewer beats of a frame": sub(r"\d+ /\* BEATS \*/>\(a, b, m, later", "1 /* BEATS */>(a, b, m, later"),
}
OTHER_CHANGES = {
    "a constant": ("hls/weights.hpp", sub(r"(_initial\[\d+\]\[\d+\] =\n    \{\{)-4", r"\1-5")),
    "the last constant": ("hls/weights.hpp", sub(r"(input_h_initial[^;]*)0\}\};", r"\g<1>-1}};")),
    "a constant of another type": ("hls/weights.hpp", sub(r"(_initial\[\d+\]\[\d+\] =\n    \{\{)-4", r"\1-132")),
    "a port without TUSER": (
        "hls/top.hpp",
        sub(r"hg::word_with_start<(.*)> (top_input_t)", r"hls::axis_data<\1, AXIS_ENABLE_DATA | AXIS_ENABLE_LAST> \2"),
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", [*CORE_CHANGES, *OTHER_CHANGES])
def test_every_change_is_found(name: str, core: Path) -> None:
    file, change = OTHER_CHANGES.get(name) or ("hls/top.cpp", CORE_CHANGES[name])
    path = core / file
    text = path.read_text()
    changed = change(text)
    assert changed != text
    path.write_text(changed)
    assert problems(core) != []


def test_untouched(core: Path) -> None:
    assert problems(core) == []


@pytest.mark.parametrize(
    ("option", "value"), [("state", ["g=g_out", "h=h_out"]), ("state_start", "reset"), ("state", [])]
)
def test_another_manifest_is_refused(option: str, value: object, core: Path) -> None:
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"][option] = value
    path.write_text(json.dumps(manifest))
    assert problems(core) != []


@pytest.mark.sweep
def test_sequences_that_only_reset_starts(tmp_path: Path) -> None:
    onnx.save(recurrent(), tmp_path / "m.onnx")
    options = hlsgen.Options(target="verilog,hls", state=["h=h_out:0.5"], state_start="reset", top="top")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "core", options)
    assert "word_with_start<" not in (tmp_path / "core/hls/top.hpp").read_text()
    assert hlsgen.certify(tmp_path / "core", tmp_path / "m.onnx").problems == []
    text = (tmp_path / "core/hls/top.cpp").read_text()
    (tmp_path / "core/hls/top.cpp").write_text(text.replace("#pragma HLS RESET variable=later\n", "", 1))
    assert problems(tmp_path / "core") != []
