"""The test bench that comes with a core: lanes without an element are not compared."""

from __future__ import annotations

import subprocess
from pathlib import Path

import image_nets
import pytest
from models import save

import hlsgen
from hlsgen.simulation.cpp_headers import include_folders


@pytest.mark.sim
def test_half_a_beat(tmp_path: Path) -> None:
    """Three windows in beats of two."""
    model = save(image_nets.network("im2col", 4), tmp_path / "m.onnx")
    hlsgen.build(model, tmp_path / "out", hlsgen.Options(target="hls", target_cycles=4))
    (include,) = include_folders("ac")
    command = ["make", "-s", "csim_ac", f"AC_INCLUDE={include}", "CXXFLAGS=-O1"]
    done = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert done.stdout == "8 frames, 0 wrong beats\n", done.stderr[-2000:]
