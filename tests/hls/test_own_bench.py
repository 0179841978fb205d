"""The test bench that comes with a core: lanes without an element are not compared."""

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
def test_half_a_beat(tmp_path: Path) -> None:
    """Three windows in beats of two."""
    model = save(image_nets.network("im2col", 4), tmp_path / "m.onnx")
    hlsgen.build(model, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=4))
    (include,) = include_folders("ac")
    command = ["make", "-s", "csim_ac", f"AC_INCLUDE={include}", "CXXFLAGS=-O1"]
    done = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert done.stdout == "8 frames, 0 wrong beats\n", done.stderr[-2000:]


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("goal", ["csim", "csim_ac", "csim_catapult"])
def test_the_makefile(goal: str, tmp_path: Path) -> None:
    """With g++ and the headers alone: no warning, all beats equal; and a wrong beat is found."""
    hlsgen.build(DIGITS, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=64))
    (include,) = include_folders("ap" if goal == "csim" else "ac")
    command = ["make", "-s", goal, f"HLS_INCLUDE={include}", f"AC_INCLUDE={include}", "CXXFLAGS=-O1 -Werror"]
    done = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "8 frames, 0 wrong beats\n", "")
    vectors = tmp_path / "out/tb/expected.hex"
    text = vectors.read_text()
    vectors.write_text(("1" if text[0] == "0" else "0") + text[1:])
    done = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "8 frames, 1 wrong beats\n")


#: Frames of both cores, one after the other, in one program that includes both headers.
_BOTH = """
#include <cstdio>
#include "../first/hls/first.hpp"
#include "../second/hls/second.hpp"

template <typename INPUT, typename OUTPUT>
static int beats(void (*core)(hls::stream<INPUT> &, hls::stream<OUTPUT> &), int count, int wanted) {
    hls::stream<INPUT> s("s");
    hls::stream<OUTPUT> m("m");
    for (int beat = 0; beat < count; beat++) {
        INPUT word;
        word.data = 0;
        word.last = beat == count - 1;
        s.write(word);
    }
    core(s, m);
    for (int beat = 0; beat < wanted; beat++) m.read();
    return m.empty() ? wanted : -1;
}

int main() {
    std::printf("%d %d\\n", beats(first, FIRST), beats(second, SECOND));
}
"""


@pytest.mark.slow
@pytest.mark.sim
def test_two_cores_in_one_program(tmp_path: Path) -> None:
    """Cores with ports of different widths beside each other: their names and constants are their own."""
    models = {"first": DIGITS, "second": save(image_nets.network("im2col", 4), tmp_path / "m.onnx")}
    text, sources = _BOTH, ["both.cpp"]
    wanted = []
    for name, model in models.items():
        hlsgen.build(model, tmp_path / name, hlsgen.Options(target="hls", top=name, target_cycles=64))
        counts = [
            len((tmp_path / name / "tb" / f"{file}.hex").read_text().split()) // 8 for file in ("input", "expected")
        ]
        text = text.replace(name.upper(), f"{counts[0]}, {counts[1]}")
        sources.append(f"../{name}/hls/{name}.cpp")
        wanted.append(str(counts[1]))
    (tmp_path / "both").mkdir()
    (tmp_path / "both/both.cpp").write_text(text)
    (include,) = include_folders("ac")
    flags = ["-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    folders = ["-I../first/hls/csim", "-I../first/hls/csim_ac", "-isystem", str(include)]
    subprocess.run(["g++", *flags, *folders, *sources, "-o", "both"], cwd=tmp_path / "both", check=True)
    done = subprocess.run(["./both"], cwd=tmp_path / "both", capture_output=True, text=True, check=True)
    assert done.stdout.split() == wanted
