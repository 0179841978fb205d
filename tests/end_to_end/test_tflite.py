"""TFLite files through the commands: build, verify in the file's runtime and in simulation, certify."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import needs_icarus
from tflite_random import random_file

import hlsgen
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.simulation import tflite_oracle


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "runtime"),
    [*(("NET", runtime) for runtime in TFLITE), ("LOGISTIC:int16", "litert"), ("RELU:int16", "tflm")],
)
def test_a_file_is_verified_and_certified(kind: str, runtime: str, tmp_path: Path) -> None:
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file(kind, 1).data)
    hlsgen.build(path, core, hlsgen.Options(runtime=runtime))
    verdict = hlsgen.verify(core, ["icarus"], frames=4)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    assert runtime in verdict.oracle.ran
    assert hlsgen.certify(core, path).ok


def test_a_build_needs_no_runtime(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    program = (
        "import sys, hlsgen\n"
        f"hlsgen.build({str(path)!r}, {str(tmp_path / 'core')!r})\n"
        "assert not {'tflite_micro', 'ai_edge_litert', 'flatbuffers'} & {m.split('.')[0] for m in sys.modules}"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr


def test_commands_for_onnx_refuse_a_file_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    with pytest.raises(hlsgen.HlsgenError, match="is a TFLite file") as raised:
        hlsgen.quantize(path, np.zeros((1, 4), np.float32), tmp_path / "q.onnx")
    assert "converter" in raised.value.diagnostics[0].hint
