"""Hardware computes average pools of 8-bit inputs like onnxruntime, on the codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx.parser import parse_model

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir import HostOp

Array = Any
WHOLE = {
    "alone": "r = GlobalAveragePool(f)",
    "after an order of axes": "a = Transpose<perm = [0, 2, 3, 1]>(f) r = GlobalAveragePool(a)",
    "before another shape": "a = GlobalAveragePool(f) r = Reshape(a, shape)",
    "after maxima": "a = MaxPool<kernel_shape = [2, 2]>(f) r = GlobalAveragePool(a)",
}
#: Scales that are powers of two: every partial sum is exact.
WINDOWS = {
    "alone": "r = AveragePool<kernel_shape = [2, 2]>(f)",
    "padded": "r = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1>(f)",
    "after maxima": "a = MaxPool<kernel_shape = [2, 2]>(f) r = AveragePool<kernel_shape = [2, 2]>(a)",
    "before an order of axes": "a = AveragePool<kernel_shape = [2, 2]>(f) r = Transpose<perm = [0, 2, 3, 1]>(a)",
}


def compared(kind: str, scales: tuple[float, float], body: str, folder: Path) -> tuple[Array, Array]:
    """The codes of the interpreter and of onnxruntime; the host runs no operator."""
    first, last = scales
    model = parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> net ({kind}[1, 2, 4, 4] x) => ({kind}[?] y) '
        f"<float sx = {{{first}}}, "
        f"{kind} zx = {{7}}, float sy = {{{last}}}, {kind} zy = {{5}}, int64[2] shape = {{1, -1}}> "
        f"{{ f = DequantizeLinear(x, sx, zx) {body} y = QuantizeLinear(r, sy, zy) }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, folder / "m.onnx")
    graph = hlsgen.check(folder / "m.onnx").graph
    assert not any(isinstance(step.op, HostOp) for step in (*graph.head, *graph.tail))
    info = np.iinfo(kind)
    x = np.random.default_rng(4).integers(info.min, info.max, (200, 2, 4, 4), endpoint=True).astype(kind)
    ours = reference.evaluate(graph, x)
    return ours, np.concatenate([ort.run(model, {"x": frame[None]})[0] for frame in x])


@pytest.mark.parametrize("scales", [(0.05, 0.1), (0.1, 0.1), (0.25, 0.25)])
@pytest.mark.parametrize("body", WHOLE)
def test_of_whole_images(body: str, scales: tuple[float, float], tmp_path: Path) -> None:
    ours, theirs = compared("uint8", scales, WHOLE[body], tmp_path)
    np.testing.assert_array_equal(ours.ravel(), theirs.ravel())


def test_of_signed_codes(tmp_path: Path) -> None:
    ours, theirs = compared("int8", (0.05, 0.1), WHOLE["alone"], tmp_path)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("scales", [(0.0625, 0.25), (0.25, 0.25)])
@pytest.mark.parametrize("body", WINDOWS)
def test_of_windows(body: str, scales: tuple[float, float], tmp_path: Path) -> None:
    ours, theirs = compared("uint8", scales, WINDOWS[body], tmp_path)
    np.testing.assert_array_equal(ours, theirs)


def test_the_host_averages_before_a_flatten(tmp_path: Path) -> None:
    """onnxruntime moves no quantizer past Flatten: it averages floats, in the host's order."""
    model = parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> net (uint8[1, 2, 4, 4] x) => (uint8[1, 2] y) '
        "<float s = {0.1}, uint8 z = {5}> "
        "{ f = DequantizeLinear(x, s, z) a = GlobalAveragePool(f) r = Flatten(a) y = QuantizeLinear(r, s, z) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    graph = hlsgen.check(tmp_path / "m.onnx").graph
    x = np.random.default_rng(4).integers(0, 256, (200, 2, 4, 4)).astype(np.uint8)
    theirs = np.concatenate([ort.run(model, {"x": frame[None]})[0] for frame in x])
    np.testing.assert_array_equal(reference.evaluate(graph, x), theirs)
