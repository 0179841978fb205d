"""A Pad before a convolution becomes its padding if both have the same value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from image_models import Builder
from onnx import TensorProto, helper, numpy_helper
from small_models import chain_of, evaluate, frames, model_of, quant

import hlsgen
from hlsgen import ir
from hlsgen.ir.ops import BinaryKind
from hlsgen.passes.fuse_pad_into_conv import merge_pads


def layers(model: onnx.ModelProto, tmp_path: Path) -> tuple[ir.Convolution, list[ir.Rearrange]]:
    """The convolution, and the layers that only move elements."""
    onnx.save(model, tmp_path / "net.onnx")
    graph = hlsgen.check(tmp_path / "net.onnx", hlsgen.Options(target_cycles=100)).graph
    (convolution,) = (layer for layer in graph.layers if isinstance(layer, ir.Convolution))
    return convolution, [layer for layer in graph.layers if isinstance(layer, ir.Rearrange)]


@pytest.mark.parametrize("between", [False, True])
def test_zeros(between: bool, tmp_path: Path) -> None:
    """Not if a quantizer is between, which may change the border, too."""
    b = Builder(7, True, 4)
    x = b.quant(b.input(1, 2, 5, 6))
    x = replace(x, name=b.node("Pad", x.name, b.const([0, 0, 1, 0, 0, 0, 2, 3], np.int64)), shape=(1, 2, 8, 9))
    x = b.quant(x) if between else x
    x = b.quant(b.conv(x, 3, kernel_shape=[3, 3], pads=[0, 1, 0, 1]))
    convolution, rearranges = layers(b.model(x), tmp_path)
    assert convolution.window.pads == ((0, 1, 0, 1) if between else (1, 1, 2, 4))
    assert bool(rearranges) == between


@pytest.mark.sim
@pytest.mark.parametrize("value", [3, 0])
def test_zero_points(value: int, tmp_path: Path) -> None:
    """ConvInteger pads with its zero point."""
    rng = np.random.default_rng(1)
    constants = {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "value": np.int8(value),
        "zero": np.int8(3),
        "w": rng.integers(-8, 8, (3, 2, 3, 3)).astype(np.int8),
        "s": np.float32(0.01),
        "z": np.int8(0),
    }
    nodes = [
        helper.make_node("Pad", ["x", "pads", "value"], ["p"]),
        helper.make_node("ConvInteger", ["p", "w", "zero"], ["c"]),
        helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "one", "z"], ["y"]),
    ]
    constants["one"] = np.float32(1)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [1, 3, 4, 4])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    convolution, rearranges = layers(model, tmp_path)
    assert convolution.window.pads == ((1, 1, 1, 1) if value == 3 else (0, 0, 0, 0))
    assert bool(rearranges) == (value != 3)
    assert convolution.pad == (3 if value == 3 else 0)
    x = rng.integers(-128, 128, (20, 1, 2, 4, 4)).astype(np.int8)
    ones = onnx.reference.ReferenceEvaluator(model)
    expected = np.concatenate([ones.run(None, {"x": frame})[0] for frame in x])
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=100))
    np.testing.assert_array_equal(hlsgen.run(tmp_path / "out", x[:, 0]), expected)


# --------------------------------------------------------------------------- random Models


def random_model(seed: int, value: float, integer: bool) -> ir.Model:
    """A Pad, views that leave every element where it is or none, a convolution of any window."""
    rng = np.random.default_rng(seed)
    height, width, c, outputs = (int(n) for n in rng.integers(2, 6, 4))
    dtype = "int8" if integer else "float32"
    pads = tuple(int(n) for n in rng.integers(0, 3, 4))
    conv_pads = tuple(int(n) for n in rng.integers(0, 2, 4))
    kernel = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
    padded = (1, height + pads[0] + pads[2], width + pads[1] + pads[3], c)
    window = ir.Window(kernel, (int(rng.integers(1, 3)), 1), (1, 1), conv_pads)  # type: ignore[arg-type]
    weight = rng.integers(-8, 8, (outputs, *kernel, c))
    scale = 2.0 ** rng.integers(-3, 3, outputs)
    conv: ir.Op = ir.Conv(weight, scale.astype(np.float32), window, 1)
    if integer:
        conv = ir.ConvInteger(weight, np.zeros(c, np.int64), window, 1)
    views: list[tuple[ir.Op, ir.Shape]] = (
        [(ir.Reshape(), (1, 1, *padded[1:])), (ir.Reshape(), padded)] if seed % 2 else []
    )
    if seed % 3 == 0:
        turned = (1, c, *padded[1:3])
        views += [(ir.Transpose((0, 3, 1, 2)), turned), (ir.Transpose((0, 2, 3, 1)), padded)]
    steps = [(ir.Pad(pads, value), padded), *views, (conv, (1, *window.size(*padded[1:3]), outputs))]  # type: ignore[arg-type]
    return chain_of((1, height, width, c), *steps, dtype=dtype, out="int32" if integer else "float32")


@pytest.mark.parametrize("integer", [False, True])
def test_random_models_keep_their_values(integer: bool) -> None:
    for seed in range(30):
        model = random_model(seed, 0.0, integer)
        rewritten = merge_pads(model)
        assert [type(step.op) for step in rewritten.steps] == [ir.ConvInteger if integer else ir.Conv]
        x = np.round(frames(model, seed)).astype(model.input_dtype)
        assert (evaluate(rewritten, x) == evaluate(model, x)).all(), seed


IMAGE = (1, 4, 4, 2)
PADDED = (1, 6, 6, 2)
PAD = ir.Pad((1, 1, 1, 1), 0.0)
ONES = np.ones((2, 3, 3, 2), np.int64)
CONV = (ir.Conv(ONES, np.ones(2, np.float32), ir.Window((3, 3)), 1), IMAGE)


@pytest.mark.parametrize(
    "model",
    [
        random_model(0, 1.0, False),
        chain_of(IMAGE, (PAD, PADDED), quant(4, zero=1), CONV),
        chain_of(IMAGE, (PAD, PADDED), (ir.Transpose((0, 2, 1, 3)), PADDED), CONV),
        chain_of(IMAGE, (PAD, PADDED), (ir.Reshape(), (1, 4, 9, 2)), (CONV[0], (1, 2, 7, 2))),
        chain_of(IMAGE, (PAD, PADDED), (ir.Slice(((0, 1, 1), (0, 6, 1), (0, 6, 1), (0, 2, 1))), PADDED), CONV),
        chain_of(
            IMAGE, (PAD, PADDED), (ir.ConvInteger(ONES, np.array([0, 3]), ir.Window((3, 3)), 1), IMAGE), dtype="int8"
        ),
    ],
    ids=[
        "a border that is not 0",
        "a quantizer between",
        "rows and columns exchanged",
        "rows of another length",
        "a slice between",
        "a zero point",
    ],
)
def test_it_does_not_fire(model: ir.Model) -> None:
    rewritten = merge_pads(model)
    assert [type(step.op) for step in rewritten.steps] == [type(step.op) for step in model.steps]
    assert [step.op for step in rewritten.steps] == [step.op for step in model.steps]


def test_another_user_keeps_the_pad() -> None:
    model = model_of(
        IMAGE,
        (PAD, PADDED, (0,)),
        (*CONV, (1,)),
        (ir.Pad((0, 0, 0, 0), 0.0), PADDED, (1,)),
        (ir.Pool(ir.Reduction.MAX, ir.Window((3, 3))), IMAGE, (3,)),
        (ir.Binary(BinaryKind.ADD), IMAGE, (2, 4)),
    )
    rewritten = merge_pads(model)
    assert [type(s.op).__name__ for s in rewritten.steps] == ["Pad", "Conv", "Pad", "Pool", "Binary"]
    x = np.round(frames(model, 0))
    assert (evaluate(rewritten, x) == evaluate(model, x)).all()
