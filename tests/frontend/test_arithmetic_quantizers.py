"""Quantizers as arithmetic on data and weights: the file equals onnxruntime, in 8-bit hardware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import compiled
from models import Net
from numpy.typing import NDArray
from onnx import TensorProto

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir import View

Array = NDArray[Any]
f32, i32 = np.float32, np.int32
RNG = np.random.default_rng(11)
WEIGHTS, BIAS = RNG.standard_normal((6, 4)).astype(f32), RNG.integers(-9, 10, 4).astype(f32) / 4
IMAGES = RNG.standard_normal((4, 2, 3, 3)).astype(f32)
#: Adds the nodes of a quantizer with one scale after the last tensor.
Quantizer = Callable[[Net, Array], Net]


def num(value: float, dtype: Any = f32) -> Array:
    return np.asarray(value, dtype)


def divided(net: Net, s: Array) -> Net:
    """torch.fake_quantize_per_tensor_affine: Div, Round, Add, Clip, Sub, Mul."""
    net.then("Div", s).then("Round").then("Add", num(3)).then("Clip", num(-128), num(127))
    return net.then("Sub", num(3)).then("Mul", s)


def by_reciprocal(net: Net, s: Array) -> Net:
    net.then("Mul", (1 / s).astype(f32)).then("Round").then("Add", num(3)).then("Max", num(0)).then("Min", num(255))
    return net.then("Sub", num(3)).then("Mul", s)


def symmetric(net: Net, s: Array) -> Net:
    return net.then("Div", s).then("Round").then("Clip", num(-127), num(127)).then("Mul", s)


def clipped_first(net: Net, s: Array) -> Net:
    return net.then("Div", s).then("Clip", num(-128), num(127)).then("Round").then("Mul", s)


def clipped_as_reals(net: Net, s: Array) -> Net:
    return net.then("Clip", num(-1), num(1)).then("Div", s).then("Round").then("Mul", s)


def added_first(net: Net, s: Array) -> Net:
    net.then("Div", s).then("Add", num(3)).then("Round").then("Clip", num(0), num(255))
    return net.then("Sub", num(3)).then("Mul", s)


def floored(net: Net, s: Array) -> Net:
    return net.then("Div", s).then("Add", num(0.5)).then("Floor").then("Clip", num(-128), num(127)).then("Mul", s)


def through_codes(net: Net, s: Array) -> Net:
    """Cast to int8 and back."""
    net.then("Div", s).then("Round").then("Add", num(3)).then("Clip", num(-128), num(127))
    net.then("Cast", to=TensorProto.INT8).then("Cast", to=TensorProto.FLOAT)
    return net.then("Sub", num(3)).then("Mul", s)


def in_integers(net: Net, s: Array) -> Net:
    """Add, Clip and Sub of int32."""
    net.then("Div", s).then("Round").then("Cast", to=TensorProto.INT32).then("Add", num(3, i32))
    net.then("Clip", num(-128, i32), num(127, i32)).then("Sub", num(3, i32))
    return net.then("Cast", to=TensorProto.FLOAT).then("Mul", s)


ALL: list[Quantizer] = [
    divided,
    by_reciprocal,
    symmetric,
    clipped_first,
    clipped_as_reals,
    added_first,
    floored,
    through_codes,
    in_integers,
]


def network(quantizer: Quantizer, form: str) -> tuple[onnx.ModelProto, Array]:
    """(model, samples) of a layer with quantizers of data, weights and result. All scales are powers of two."""
    image = form == "Conv"
    net = Net((1, 2, 5, 5) if image else (1, 6))
    data = quantizer(net, num(2.0**-6)).last
    by_channel = f32(2) ** np.array([-6, -5, -7, -8], f32)
    net.last = net.const(IMAGES if image else WEIGHTS)
    weights = quantizer(net, by_channel.reshape(4, 1, 1, 1) if image else by_channel).last
    net.node("Conv", data, weights, BIAS) if image else net.node("MatMul", data, weights).then("Add", BIAS)
    if form == "Relu":
        net.then("Relu")
    quantizer(net, num(2.0**-7))
    net.opsets = {"": 18}
    return net.model(), RNG.standard_normal((60, 2, 5, 5) if image else (200, 6)).astype(f32)


@pytest.mark.parametrize("form", ["MatMul", "Relu", "Conv"])
@pytest.mark.parametrize("quantizer", ALL)
def test_whole_file_equals_onnxruntime(quantizer: Quantizer, form: str, tmp_path: Path) -> None:
    model, x = network(quantizer, form)
    build = compiled(model, tmp_path)
    session = ort.session(model)
    expected = np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in x])
    assert len(np.unique(expected)) > 20
    np.testing.assert_array_equal(reference.evaluate(build.graph, x), expected)
    assert build.graph.input.type.bits <= 8
    layers = [layer for layer in build.graph.layers if not isinstance(layer, View)]
    assert len(layers) == 2, "one layer of products, one of codes"


@pytest.mark.sim
def test_hardware_of_a_fake_quantized_model(tmp_path: Path) -> None:
    model, _ = network(divided, "MatMul")
    onnx.save(model, tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "build")
    assert hlsgen.verify(tmp_path / "build", ["icarus"], 20, oracle="none").ok


def test_rounding_without_bounds_is_no_quantizer(tmp_path: Path) -> None:
    net = Net((1, 6)).then("Div", num(0.5)).then("Round").then("Mul", num(0.5)).node("MatMul", "t2", WEIGHTS)
    onnx.save(net.model(), tmp_path / "model.onnx")
    with pytest.raises(hlsgen.HlsgenError):
        hlsgen.check(tmp_path / "model.onnx")
