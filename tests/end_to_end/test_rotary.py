"""Rotary positions of a layer's output without a quantizer before them: x * cos + Concat(-x2, x1) * sin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import DOMAIN, Net, newer
from oracles import Qonnx

import hlsgen

T, SIZE = 3, 4


def rotary(seed: int) -> onnx.ModelProto:
    r = np.random.default_rng(seed)
    net = Net((1, T, SIZE)).quant(0.031, bits=6.0)
    data = net.last
    net.node("IntQuant", r.normal(0, 0.5, (SIZE, SIZE)).astype(np.float32), 0.0123, 0.0, 6.0, domain=DOMAIN)
    net.node("MatMul", data, net.last).then("Add", r.normal(0, 0.3, SIZE).astype(np.float32))
    rows, angle = net.last, (np.arange(T)[:, None] * np.array([1, 0.1, 1, 0.1])).astype(np.float32)
    halves = []
    for start, end in ((SIZE // 2, SIZE), (0, SIZE // 2)):
        net.node("Slice", rows, np.array([start]), np.array([end]), np.array([2]))
        halves.append(net.last)
    net.node("Neg", halves[0])
    net.node("Concat", net.last, halves[1], axis=-1).then("Mul", np.sin(angle))
    rotated = net.last
    net.node("Mul", rows, np.cos(angle)).node("Add", net.last, rotated)
    return newer(net.quant(0.0371, bits=6.0, name="last").model())


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2))
def test_equal_to_the_executor(seed: int, tmp_path: Path) -> None:
    model = rotary(seed)
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))
    x = (np.random.default_rng(5).integers(-300, 300, (40, T, SIZE)) / 256).astype(np.float32)
    outputs = hlsgen.run(tmp_path / "out", x)
    assert (outputs.reshape(40, -1) == Qonnx(model)(x).reshape(40, -1)).all()
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.verify(tmp_path / "out", [], 24).ok
