"""Networks of neurons with few inputs: lookup tables with the integers of the model, certified, in both simulators."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from builds import assert_verified
from certified import neurons
from paths import needs_icarus

import hlsgen


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("fan_in, bits", [(4, 2), (3, 3), (5, 1), (6, 2)])
@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
def test_neurons(fan_in: int, bits: int, simulator: str, tmp_path: Path) -> None:
    onnx.save(neurons(fan_in, bits), tmp_path / "model.onnx")
    build = hlsgen.build(tmp_path / "model.onnx", tmp_path / "out", hlsgen.Options(target_cycles=1))
    wide_first_layer = {(3, 3), (6, 2)}  # where the tables of each lane are cheaper
    expected = {"neuron-table"} | ({"lane-table"} if (fan_in, bits) in wide_first_layer else set())
    assert {choice.name for choice in build.network.choices.values()} == expected
    assert hlsgen.certify(tmp_path / "out").problems == []
    assert_verified(tmp_path / "out", simulator, 32)
