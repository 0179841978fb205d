"""Sums and products of integers, which wrap in the file's type, before several DequantizeLinear."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from onnx.parser import parse_model

import hlsgen

SHAPES = ("[1, 3, 1, 1]", "[1, 3, 2, 2]")
JOINS = {
    "QLinearConcat": "y = com.microsoft.QLinearConcat<axis = 1>(s, z, t, s1, z1, t, s1, z2)",
    "Concat": "d = DequantizeLinear(t, s1, z1) e = DequantizeLinear(t, s1, z2) "
    "f = Concat<axis = 1>(d, e) y = QuantizeLinear(f, s, z)",
    "one user": "d = DequantizeLinear(t, s1, z1) y = QuantizeLinear(d, s, z)",
}


@pytest.mark.sweep
@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("operation", ["Mul", "Add", "Sub"])
def test_results_that_wrap_are_dequantized(operation: str, shape: str, join: str, tmp_path: Path) -> None:
    """Equal to onnxruntime for operands of all sizes."""
    channels = 3 if join == "one user" else 6
    model = parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> '
        f"net (uint8{shape} a, uint8[1, 3, 2, 2] b) => (uint8[1, {channels}, 2, 2] y) "
        "<float s = {0.125}, float s1 = {0.03125}, uint8 z = {65}, uint8 z1 = {0}, uint8 z2 = {17}> "
        f"{{ t = {operation}(a, b) {JOINS[join]} }}"
    )
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(0, 256, (200, *(d.dim_value for d in i.type.tensor_type.shape.dim[1:]))).astype(np.uint8)
        for i in model.graph.input
    )
    session = ort.session(model, ort.DEFAULT)
    expected = np.concatenate([session.run(None, {"a": a[n : n + 1], "b": b[n : n + 1]})[0] for n in range(len(a))])
    np.testing.assert_array_equal(hlsgen.run(tmp_path / "out", {"a": a, "b": b}), expected)
