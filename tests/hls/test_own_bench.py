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
