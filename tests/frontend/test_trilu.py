"""Trilu of data and of constants, for both triangles and any diagonal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import Net, newer
from oracles import Qonnx

import hlsgen


def triangles(upper: int, diagonal: int) -> onnx.ModelProto:
    """The triangle of the data plus the triangle of a constant of different numbers."""
    net, k = Net((1, 3, 4)).quant(0.25, bits=5.0), np.array(diagonal)
    data = net.then("Trilu", k, upper=upper).last
    net.node("Trilu", np.arange(1, 13, dtype=np.float32).reshape(3, 4) / 4, k, upper=upper)
    return newer(net.node("Add", data, net.last).quant(0.25, bits=6.0).model())


@pytest.mark.parametrize("diagonal", [-1, 0, 2])
@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(upper: int, diagonal: int, tmp_path: Path) -> None:
    model = triangles(upper, diagonal)
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))
    x = np.random.default_rng(1).normal(0, 2, (20, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(hlsgen.run(tmp_path / "out", x).reshape(20, 12), Qonnx(model)(x).reshape(20, 12))
    assert hlsgen.certify(tmp_path / "out").ok
