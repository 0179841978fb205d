"""`hlsgen package --for dma`: core and hg_dma in one module, between memory and a processor of cocotbext-axi."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import mlp, save
from package_bench import complaints, run_bench
from paths import ROOT, needs_icarus
from small_models import two_ports

import hlsgen
from hlsgen.diagnostics import HlsgenError

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
#: By case: the model, or a small one, and options of the build.
CASES: dict[str, tuple[Path | None, dict[str, Any]]] = {
    "digits": (DIGITS, {"bus_width": "32", "tkeep": True, "control": True, "target_cycles": 600}),
    "wide": (
        None,
        {"bus_width": "64", "clock_name": "aclk", "reset_name": "aresetn", "reset_active_low": True, "loadable": True},
    ),
}
FRAMES = 3


def model_file(folder: Path, model: Path | None) -> Path:
    if model is None:
        model = folder / "small.onnx"
        save(mlp().model(), model)
    return model


@needs_icarus
@pytest.mark.sim
@pytest.mark.parametrize("case", CASES)
def test_against_cocotbext_axi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    """Jobs with random pauses of memory, and resets in the middle of jobs: the outputs are those of the model."""
    model, options = CASES[case]
    build, package = tmp_path / "build", tmp_path / "package"
    hlsgen.build(model_file(tmp_path, model), build, hlsgen.Options(**options))
    hlsgen.package(build, package, ["dma"])
    manifest = json.loads((build / "manifest.json").read_text())
    shape = manifest["input"]["frame_shape"][1:]
    inputs = np.random.default_rng(1).random((FRAMES, *shape), np.float32)
    job = {
        "frames": hlsgen.pack(build, inputs).hex(),
        "count": FRAMES,
        "output_bytes": manifest["output"]["bus"]["words"] * manifest["output"]["bus"]["width"] // 8,
        "answers": str(tmp_path / "answers.bin"),
        "control": bool(options.get("control")),
        "clock": manifest["top"]["clock"],
        "reset": manifest["top"]["reset"]["name"],
        "reset_low": manifest["top"]["reset"]["active"] == "low",
        "cycles": 2 * manifest["cycles"]["latency"] + 50,
        "resets": 2,
    }
    run_bench(f"{manifest['top']['module']}_dma", "dma_bench", package, job, monkeypatch)
    outputs = hlsgen.unpack(build, (tmp_path / "answers.bin").read_bytes())
    np.testing.assert_array_equal(outputs, hlsgen.run(build, inputs, backend="reference"))


def test_ports_that_memory_cannot_serve(tmp_path: Path) -> None:
    hlsgen.build(model_file(tmp_path, None), tmp_path / "build", hlsgen.Options(target_cycles=4))
    with pytest.raises(HlsgenError, match=r"HG040.*--bus-width 32"):
        hlsgen.package(tmp_path / "build", tmp_path / "package", ["dma"])


@needs_icarus
@pytest.mark.sim
@pytest.mark.parametrize("low", [False, True])
def test_channels(tmp_path: Path, low: bool) -> None:
    """A channel for each pair of ports, or for a port alone; everything is connected."""
    save(two_ports(), tmp_path / "two.onnx")
    options = hlsgen.Options(ports="separate", bus_width="32", tkeep=low, reset_active_low=low)
    hlsgen.build(tmp_path / "two.onnx", tmp_path / "build", options)
    hlsgen.package(tmp_path / "build", tmp_path / "package", ["dma"])
    assert not complaints("two_dma", tmp_path / "package")
    text = (tmp_path / "package" / "rtl" / "two_dma.v").read_text()
    widths = re.findall(r"\.IN_WORDS\((\d+)\), \.OUT_WORDS\((\d+)\)", text)
    assert widths == [("2", "1"), ("0", "2")]
