"""The LSTM of TFLite files as one cell: hardware against the file, with states as ports and inside the core."""

from __future__ import annotations

from pathlib import Path

import pytest
from builds import assert_verified
from tflite_random import random_file

import hlsgen
from hlsgen.ir import Delay

pytestmark = [pytest.mark.sim, pytest.mark.slow]


@pytest.mark.parametrize("options", [{"state": ["none"]}, {"target_cycles": 400}])
def test_one_cell(options: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(random_file("LSTM", 3).data)
    build = hlsgen.build(tmp_path / "m.tflite", tmp_path / "out", hlsgen.Options(**options))  # type: ignore[arg-type]
    assert sum(isinstance(layer, Delay) for layer in build.graph.layers) == 2
    assert hlsgen.certify(tmp_path / "out").ok
    assert_verified(tmp_path / "out", "verilator", 4)
