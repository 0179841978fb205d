"""What is behind a normalization in hardware: the bits of float32, read as its codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from norm_nets import norm_net, samples
from paths import needs_icarus

import hlsgen


@pytest.mark.cases(1)
@needs_icarus
@pytest.mark.sim
@pytest.mark.parametrize("form", ["LayerNormalization", "rms one over"])
def test_every_layer_in_simulation(form: str, tmp_path: Path) -> None:
    net = norm_net(form, length=6, bits=3, rows=2)
    onnx.save(net, tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=12))
    found = hlsgen.layers(tmp_path / "out", samples(net, 4), "icarus")
    assert [layer.differing for layer in found] == [0] * 3
    assert np.isfinite(found[1].values).all()
