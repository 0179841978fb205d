"""docs/hls.md shows code that builds have, and the modes that bindings use."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
import random_graphs
from paths import ROOT
from state_models import recurrent

import hlsgen
from hlsgen.hls.binding.shifts import AP_MODES
from hlsgen.numerics.fixed import Rounding

PAGE = (ROOT / "docs" / "hls.md").read_text()


@pytest.mark.sweep
def test_the_code_is_that_of_builds(tmp_path: Path) -> None:
    g = random_graphs.Graph((1, 2))
    g.quant(0.25, 0.0, 5.0, signed=1, narrow=0)
    onnx.save(g.model(), tmp_path / "po2.onnx")
    onnx.save(recurrent(), tmp_path / "state.onnx")
    cnn = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
    builds = [
        hlsgen.check(cnn, hlsgen.Options(target="hls", target_cycles=576)),
        hlsgen.check(tmp_path / "po2.onnx", hlsgen.Options(target="hls", input="fixed:8,3")),
        hlsgen.check(
            ROOT / "examples/digits_sequences/digits_gru.onnx", hlsgen.Options(target="hls", recurrence="once")
        ),
        hlsgen.check(tmp_path / "state.onnx", hlsgen.Options(target="hls", target_cycles=12, state=["h=h_out"])),
    ]
    texts = [data.decode() for build in builds for name, data in build.files.items() if name.startswith("hls/")]
    blocks = re.findall(r"^```cpp\n(.*?)^```", PAGE, re.M | re.S)
    assert len(blocks) == 5
    for block in blocks:
        assert any(block in text for text in texts), block


def test_the_files_are_those_of_builds() -> None:
    build = hlsgen.check(ROOT / "examples" / "digits" / "digits_mlp.onnx", hlsgen.Options(target="hls"))
    listed = re.findall(r"`([\w*./]+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M)))
    names = {
        Path(name.replace("digits_mlp", "NAME")).relative_to("hls") for name in build.files if name.startswith("hls/")
    }
    for name in names:
        assert any(name.match(pattern) or str(name).startswith(pattern) for pattern in listed), name


def test_modes() -> None:
    rows = dict(re.findall(r"^\| ([A-Z_]+) \| (\w+)", PAGE, re.M))
    assert {mode.name: AP_MODES.get(mode, "none") for mode in Rounding} == {
        name: mode for name, mode in rows.items() if name in Rounding.__members__
    }
