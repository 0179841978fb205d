"""The test bench of a core: it ignores lanes without an element."""

from __future__ import annotations

import subprocess
from pathlib import Path

import image_nets
import pytest
from models import save
from paths import ROOT

import hlsgen
from hlsgen.simulation.cpp_headers import include_folders

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


@pytest.mark.sim
def test_half_a_beat_is_ignored(tmp_path: Path) -> None:
    """Three windows in beats of two windows."""
    model = save(image_nets.network("im2col", 4), tmp_path / "m.onnx")
    hlsgen.build(model, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=4))
    (include,) = include_folders("ac")
    command = ["make", "-s", "csim_ac", f"AC_INCLUDE={include}", "CXXFLAGS=-O1"]
    completed = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert completed.stdout == "8 frames, 0 wrong beats\n", completed.stderr[-2000:]


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("goal", ["csim", "csim_ac", "csim_catapult"])
def test_makefile_builds_and_finds_a_wrong_beat(goal: str, tmp_path: Path) -> None:
    """With g++ and the headers alone: no warning, and all beats are equal. A wrong beat is found."""
    hlsgen.build(DIGITS, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=64))
    (include,) = include_folders("ap" if goal == "csim" else "ac")
    command = ["make", "-s", goal, f"HLS_INCLUDE={include}", f"AC_INCLUDE={include}", "CXXFLAGS=-O1 -Werror"]
    completed = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "8 frames, 0 wrong beats\n", "")
    vectors = tmp_path / "out/tb/expected.hex"
    text = vectors.read_text()
    vectors.write_text(("1" if text[0] == "0" else "0") + text[1:])
    completed = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert (completed.returncode, completed.stdout) == (2, "8 frames, 1 wrong beats\n")


#: Program that includes both headers and runs frames of both cores.
_BOTH = """
#include <cstdio>
#include "../first/hls/first.hpp"
#include "../second/hls/second.hpp"

template <typename INPUT, typename OUTPUT>
static int beats(void (*core)(hls::stream<INPUT> &, hls::stream<OUTPUT> &), int count, int expected) {
    hls::stream<INPUT> s("s");
    hls::stream<OUTPUT> m("m");
    for (int beat = 0; beat < count; beat++) {
        INPUT word;
        word.data = 0;
        word.last = beat == count - 1;
        s.write(word);
    }
    core(s, m);
    for (int beat = 0; beat < expected; beat++) m.read();
    return m.size() == 0 ? expected : -1;
}

int main() {
    std::printf("%d %d\\n", beats(first, FIRST), beats(second, SECOND));
}
"""


@pytest.mark.slow
@pytest.mark.sim
def test_two_cores_in_one_program(tmp_path: Path) -> None:
    """Two cores with ports of different widths share no names or constants."""
    models = {"first": DIGITS, "second": save(image_nets.network("im2col", 4), tmp_path / "m.onnx")}
    text, sources = _BOTH, ["both.cpp"]
    expected_beats = []
    for name, model in models.items():
        hlsgen.build(model, tmp_path / name, hlsgen.Options(target="hls", top=name, target_cycles=64))
        counts = [
            len((tmp_path / name / "tb" / f"{file}.hex").read_text().split()) // 8 for file in ("input", "expected")
        ]
        text = text.replace(name.upper(), f"{counts[0]}, {counts[1]}")
        sources.append(f"../{name}/hls/{name}.cpp")
        expected_beats.append(str(counts[1]))
    (tmp_path / "both").mkdir()
    (tmp_path / "both/both.cpp").write_text(text)
    (include,) = include_folders("ac")
    flags = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    folders = ["-I../first/hls/csim", "-I../first/hls/csim_ac", "-isystem", str(include)]
    subprocess.run(["g++", *flags, *folders, *sources, "-o", "both"], cwd=tmp_path / "both", check=True)
    completed = subprocess.run(["./both"], cwd=tmp_path / "both", capture_output=True, text=True, check=True)
    assert completed.stdout.split() == expected_beats
