"""A Pad in front of a convolution becomes its padding, where both mean the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from image_models import Builder
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.ir import Convolution, Rearrange


def layers(model: onnx.ModelProto, tmp_path: Path) -> tuple[Convolution, list[Rearrange]]:
    """The convolution, and what only moves elements."""
    onnx.save(model, tmp_path / "net.onnx")
    graph = hlsgen.check(tmp_path / "net.onnx", hlsgen.Options(target_cycles=100)).graph
    (found,) = (layer for layer in graph.layers if isinstance(layer, Convolution))
    return found, [layer for layer in graph.layers if isinstance(layer, Rearrange)]


@pytest.mark.parametrize("between", [False, True])
def test_zeros(between: bool, tmp_path: Path) -> None:
    """Not where a quantizer stands between, which may change the border, too."""
    b = Builder(7, True, 4)
    x = b.quant(b.input(1, 2, 5, 6))
    x = replace(x, name=b.node("Pad", x.name, b.const([0, 0, 1, 0, 0, 0, 2, 3], np.int64)), shape=(1, 2, 8, 9))
    x = b.quant(x) if between else x
    x = b.quant(b.conv(x, 3, kernel_shape=[3, 3], pads=[0, 1, 0, 1]))
    convolution, rest = layers(b.model(x), tmp_path)
    assert convolution.window.pads == ((0, 1, 0, 1) if between else (1, 1, 2, 4))
    assert bool(rest) == between


@pytest.mark.sim
@pytest.mark.parametrize("value", [3, 0])
def test_zero_points(value: int, tmp_path: Path) -> None:
    """ConvInteger pads with its zero point."""
    rng = np.random.default_rng(1)
    constants = {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "value": np.int8(value), "zero": np.int8(3),
        "w": rng.integers(-8, 8, (3, 2, 3, 3)).astype(np.int8), "s": np.float32(0.01), "z": np.int8(0),
    }  # fmt: skip
    nodes = [
        helper.make_node("Pad", ["x", "pads", "value"], ["p"]),
        helper.make_node("ConvInteger", ["p", "w", "zero"], ["c"]),
        helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "one", "z"], ["y"]),
    ]
    constants["one"] = np.float32(1)
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 3, 4, 4])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    convolution, rest = layers(model, tmp_path)
    assert convolution.window.pads == ((1, 1, 1, 1) if value == 3 else (0, 0, 0, 0))
    assert bool(rest) == (value != 3)
    assert convolution.pad == (3 if value == 3 else 0)
    x = rng.integers(-128, 128, (20, 1, 2, 4, 4)).astype(np.int8)
    ones = onnx.reference.ReferenceEvaluator(model)
    wanted = np.concatenate([ones.run(None, {"x": frame})[0] for frame in x])
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=100))
    np.testing.assert_array_equal(hlsgen.run(tmp_path / "out", x[:, 0]), wanted)
