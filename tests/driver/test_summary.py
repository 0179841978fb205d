"""The summary of a build: what it says besides the figures of layers."""

from __future__ import annotations

from pathlib import Path

import onnx
from models import newer
from sparse_models import dead_neurons

import hlsgen
from hlsgen.driver.summary import summary


def notes(path: Path, **options: object) -> str:
    return "\n".join(summary(hlsgen.check(path, hlsgen.Options(**options)), 200.0)["notes"])


def test_channels_that_are_left_out(tmp_path: Path) -> None:
    """With a frame a cycle all that can be left out; with weights that can be written, none."""
    onnx.save(newer(dead_neurons()), path := tmp_path / "model.onnx")
    counts = "5 of the 12 channels of fc0, 4 of the 10 channels of fc1"
    assert f"left out, since they are constant or nothing uses them: {counts}" in notes(path, target_cycles=1)
    assert "left out" not in notes(path, target_cycles=40, loadable=True)
