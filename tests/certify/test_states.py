"""State between frames in the certificate: proven for right builds, refused after any change of a memory or its wires."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import messages, sign
from state_models import delays, recurrent

import hlsgen

TWO = {"state": ["line=line_out:-0.25", "last=last_out"]}


def built(proto: onnx.ModelProto, folder: Path, **options: object) -> Path:
    onnx.save(proto, folder / "top.onnx")
    hlsgen.build(folder / "top.onnx", folder / "build", hlsgen.Options(**options))  # type: ignore[arg-type]
    return folder / "build"


@pytest.mark.parametrize("start", ["tuser", "register", "reset"])
def test_right_builds_are_certified(tmp_path: Path, start: str) -> None:
    options = {"state": ["h=h_out:0.5"], "state_start": start, "control": start == "register"}
    build = built(recurrent(inputs_first=False), tmp_path, **options)
    assert hlsgen.certify(build, tmp_path / "top.onnx").ok


def test_two_states_on_a_bus_with_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "line.npy", np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1) / 16)
    state = [f"line=line_out:{tmp_path}/line.npy", "last=last_out"]
    build = built(delays(), tmp_path, state=state, bus_width="32", tkeep=True)
    assert list((build / "rtl").glob("*line*.mem"))
    assert messages(build) == []
    memory = next((build / "rtl").glob("*line*.mem"))
    words = memory.read_text().split()
    memory.write_text("\n".join([words[-1], *words[1:]]) + "\n")
    sign(build, f"rtl/{memory.name}")
    assert any("initial state is not the code of the model" in text for text in messages(build))


def edited(build: Path, change: Callable[[str], str]) -> None:
    """The top level after a change, signed in certificate and manifest."""
    top = build / "rtl" / "top.v"
    text = change(top.read_text())
    assert text != top.read_text()
    top.write_text(text)
    sign(build, "rtl/top.v")


def swapped(text: str, first: str, second: str) -> str:
    """The text with two words exchanged."""
    return text.replace(first, "#").replace(second, first).replace("#", second)


def test_another_initial_value_is_refused(tmp_path: Path) -> None:
    """In the top level and in the certificate alike."""
    build = built(delays(), tmp_path, **TWO)
    path = build / "certificate.json"
    certificate = json.loads(path.read_text())
    memory = next(x for x in certificate["states"] if x["module"] == "hg_state" and "line" in x["instance"])
    right = memory["parameters"]["INITIAL"]
    wrong = re.sub("h.", "h1" if right[right.index("h") + 1] != "1" else "h2", right)
    memory["parameters"]["INITIAL"] = wrong
    path.write_text(json.dumps(certificate))
    edited(build, lambda text: text.replace(f".INITIAL({right})", f".INITIAL({wrong})"))
    assert any("initial state is not the code of the model" in text for text in messages(build))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.replace(".fresh(s_axis_tuser)", ".fresh(s_axis_tlast)"), "wrong connections"),
        (lambda t: t.replace(".word_valid(s_axis_tvalid)", ".word_valid(s_axis_tready)"), "wrong connections"),
        (lambda t: re.sub(r"\.WORDS\(\d+\)", ".WORDS(7)", t), "WORDS"),
        (lambda t: re.sub(r"(?<=wire )s_axis_tuser", "s_axis_tdest", t), "ports do not fit"),
    ],
)
def test_other_starts_are_refused(tmp_path: Path, change: Callable[[str], str], problem: str) -> None:
    build = built(delays(), tmp_path, **TWO)
    edited(build, change)
    assert any(problem in text for text in messages(build))


def test_other_pairs_are_refused(tmp_path: Path) -> None:
    """The manifest of the build names another initial value, or no state."""
    build = built(recurrent(), tmp_path, state=["h=h_out:0.5"])
    path = build / "manifest.json"
    manifest = json.loads(path.read_text())
    for state in (["h=h_out"], []):
        path.write_text(json.dumps({**manifest, "options": {**manifest["options"], "state": state}}))
        assert messages(build)
