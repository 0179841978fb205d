"""Values after a normalization in hardware: the bits of float32 as its codes."""

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
@pytest.mark.parametrize("kind", ["LayerNormalization", "rms one over"])
def test_every_layer_in_simulation(kind: str, tmp_path: Path) -> None:
    net = norm_net(kind, length=6, bits=3, rows=2)
    onnx.save(net, tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=12))
    layers = hlsgen.layers(tmp_path / "out", samples(net, 4), "icarus")
    assert [layer.differing for layer in layers] == [0] * 3
    assert np.isfinite(layers[1].values).all()
