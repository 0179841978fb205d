"""Every text file of a build and of a package says that it may be used."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from paths import ROOT

import hlsgen
from hlsgen.library import LICENCE
from hlsgen.packaging.package import package_files

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
#: Data, and formats without comments or with another first line.
WITHOUT = {".mem", ".hex", ".json", ".onnx", ".bin", ".md", ".html", ".yaml", ".f", ".core", ".ys", ".lpf", ".dot"}


@pytest.mark.sweep
def test_every_file_begins_with_its_licence(tmp_path: Path) -> None:
    flows = ["fusesoc", "vivado", "quartus", "yosys", "verilator", "pynq", "ci"]
    core = hlsgen.check(DIGITS, hlsgen.Options(bus_width="32"))
    files = hlsgen.check(DIGITS, hlsgen.Options(target="verilog,hls")).files | package_files(core, flows, None, None)
    texts = {path: data.decode() for path, data in files.items() if PurePosixPath(path).suffix not in WITHOUT}
    assert len(texts) > 60
    assert [path for path, text in texts.items() if LICENCE not in text.split("\n")[0]] == []
