"""Integer networks of other tools: sums, Mul, Add, Div by a power of two, Floor, Clip, in floats or in int64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import integer_models
import numpy as np
import onnx
import ort
import pytest
from integer_models import Graph
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime import GraphOptimizationLevel

import hlsgen
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
#: onnxruntime's optimizer multiplies weights with following factors; the unoptimized file is exact.
EXACT = GraphOptimizationLevel.ORT_DISABLE_ALL
CHANNELS = 3
SHAPE = (1, CHANNELS, 4, 4)
ZERO, FULL = np.float32(0), np.float32(255)


def weights(outputs: int, inputs: int, kernel: int = 3) -> Array:
    rng = np.random.default_rng(outputs * 16 + inputs)
    return rng.integers(-7, 8, (outputs, inputs, kernel, kernel)).astype(np.float32)


def each(outputs: int, low: int, high: int, dtype: Any = np.float32) -> Array:
    """A number per channel."""
    return np.random.default_rng(high + outputs).integers(low, high, (1, outputs, 1, 1)).astype(dtype)


def conv(graph: Graph, data: str, outputs: int, inputs: int = CHANNELS) -> str:
    return graph.add("Conv", [data, weights(outputs, inputs)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def int64_scalar(value: int) -> Array:
    return np.asarray(value, np.int64)


def floor(graph: Graph, data: str, outputs: int) -> str:
    """A factor and an offset per channel, then / 1024, rounded down."""
    scaled = graph.add("Add", [graph.add("Mul", [data, each(outputs, 1, 60)]), each(outputs, -3000, 3000)])
    return graph.add("Floor", [graph.add("Div", [scaled, np.float32(1024)])])


def in_int64(graph: Graph, data: str, outputs: int) -> str:
    """The same in int64, rounded towards 0, and back to float32."""
    integers = graph.add("Cast", [data], to=TensorProto.INT64)
    scaled = graph.add("Mul", [integers, each(outputs, 1, 60, np.int64)])
    moved = graph.add("Add", [scaled, each(outputs, -3000, 3000, np.int64)])
    return graph.add("Cast", [graph.add("Div", [moved, int64_scalar(1024)])], to=TensorProto.FLOAT)


def floor_divided(graph: Graph, data: str, divisor: int) -> str:
    """torch's export of floor_divide of int64: the quotient, minus 1 for a negative remainder."""
    quotient = graph.add("Div", [data, int64_scalar(divisor)])
    remainder = graph.add("Sub", [data, graph.add("Mul", [quotient, int64_scalar(divisor)])])
    differs = graph.add("Not", [graph.add("Equal", [remainder, int64_scalar(0)])])
    negative = graph.add("Less", [data, int64_scalar(0)])
    step = graph.add("Cast", [graph.add("And", [negative, differs])], to=TensorProto.INT64)
    return graph.add("Sub", [quotient, step])


def clip(graph: Graph, data: str, low: Any = ZERO, high: Any = FULL) -> str:
    return graph.add("Clip", [data, low, high])


def floats(graph: Graph) -> str:
    return conv(graph, clip(graph, floor(graph, conv(graph, "x", 4), 4)), 2, 4)


def int64(graph: Graph) -> str:
    return conv(graph, clip(graph, in_int64(graph, conv(graph, "x", 4), 4)), 2, 4)


def int64_clip(graph: Graph) -> str:
    integers = graph.add("Cast", [conv(graph, "x", 4)], to=TensorProto.INT64)
    return clip(graph, graph.add("Div", [integers, int64_scalar(64)]), int64_scalar(0), int64_scalar(255))


def int64_floor(graph: Graph) -> str:
    integers = graph.add("Cast", [conv(graph, "x", 4)], to=TensorProto.INT64)
    down = graph.add("Cast", [floor_divided(graph, integers, 64)], to=TensorProto.FLOAT)
    return conv(graph, clip(graph, down, np.float32(-128), np.float32(127)), 2, 4)


def int64_residual(graph: Graph) -> str:
    body, source = (graph.add("Cast", [t], to=TensorProto.INT64) for t in (conv(graph, "x", CHANNELS), "x"))
    total = graph.add("Add", [graph.add("Mul", [body, int64_scalar(7)]), graph.add("Mul", [source, int64_scalar(900)])])
    scaled = graph.add("Cast", [graph.add("Div", [total, int64_scalar(1024)])], to=TensorProto.FLOAT)
    return conv(graph, clip(graph, scaled), 2)


def residual(graph: Graph) -> str:
    body = clip(graph, floor(graph, conv(graph, "x", CHANNELS), CHANNELS))
    total = graph.add("Add", [graph.add("Mul", [body, np.float32(301)]), graph.add("Mul", ["x", np.float32(180)])])
    return conv(graph, clip(graph, graph.add("Floor", [graph.add("Div", [total, np.float32(512)])])), 2)


def pooled(graph: Graph) -> str:
    """A requantized average without Clip, whose range follows from the nodes before it."""
    mean = graph.add("AveragePool", [clip(graph, floor(graph, conv(graph, "x", 4), 4))], kernel_shape=[4, 4])
    scaled = graph.add("Floor", [graph.add("Div", [graph.add("Mul", [mean, each(4, 20, 60)]), np.float32(32)])])
    flat = graph.add("Flatten", [scaled])
    return graph.add("Gemm", [flat, weights(5, 4, 1).reshape(5, 4), np.arange(5, dtype=np.float32)], transB=1)


def bounds_apart(graph: Graph) -> str:
    rounded = graph.add("Round", [graph.add("Mul", [conv(graph, "x", 4), np.float32(0.013)])])
    return conv(graph, graph.add("Min", [graph.add("Relu", [rounded]), FULL]), 2, 4)


def one_bound(graph: Graph) -> str:
    return conv(graph, graph.add("Relu", [floor(graph, conv(graph, "x", 4), 4)]), 2, 4)


CASES: list[Callable[[Graph], str]] = [
    floats,
    int64,
    int64_clip,
    int64_floor,
    int64_residual,
    residual,
    pooled,
    bounds_apart,
    one_bound,
]


def model(make: Callable[[Graph], str], source: Any = np.float32, opset: int = 13) -> onnx.ModelProto:
    graph = Graph()
    graph.last = make(graph)
    return integer_models.finished(graph, source, SHAPE, opset)


def pixels(count: int, dtype: Any = np.float32) -> Array:
    """Images, the first of zeros and of the largest values."""
    x = np.random.default_rng(3).integers(0, 256, (count, *SHAPE[1:])).astype(dtype)
    x[:2] = np.array([0, 255], dtype).reshape(2, 1, 1, 1)
    return x


def by_runtime(proto: onnx.ModelProto, x: Array) -> Array:
    session = ort.session(proto, EXACT)
    return np.concatenate([session.run(None, {"x": sample[None]})[0] for sample in x])


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_equals_onnxruntime(make: Callable[[Graph], str], tmp_path: Path) -> None:
    proto, x = model(make), pixels(24)
    outputs, expected = integer_models.evaluated(proto, x, tmp_path, input="UINT8"), by_runtime(proto, x)
    assert outputs.dtype == expected.dtype
    assert (outputs.reshape(expected.shape) == expected).all()
    assert len(np.unique(expected)) > 20


def test_input_of_int64_with_a_type_by_option(tmp_path: Path) -> None:
    def cast_first(graph: Graph) -> str:
        return conv(graph, graph.add("Cast", ["x"], to=TensorProto.FLOAT), 2)

    proto, x = model(cast_first, np.int64), pixels(8, np.int64)
    outputs = integer_models.evaluated(proto, x, tmp_path, input="UINT8")
    assert (outputs.reshape(-1, 2, 4, 4) == by_runtime(proto, x)).all()
    with pytest.raises(hlsgen.HlsgenError, match="HG061"):
        integer_models.compiled(proto, tmp_path)


def test_hardware_quantizes_at_the_end(tmp_path: Path) -> None:
    """Hardware computes the last Clip."""
    build = integer_models.compiled(model(int64_clip), tmp_path, input="UINT8")
    assert not build.graph.tail
    assert build.graph.output.type.bits == 8


@pytest.mark.sim
def test_verified_and_certified(tmp_path: Path) -> None:
    """An input of int64, whose sums are tested for wrapping, and attributes of another tool, refused by onnxruntime."""

    def small(graph: Graph) -> str:
        return clip(graph, in_int64(graph, conv(graph, graph.add("Cast", ["x"], to=TensorProto.FLOAT), 2), 2))

    proto = model(small, np.int64)
    for node in proto.graph.node:
        node.attribute.append(helper.make_attribute("out_bits", 8))
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    build = hlsgen.build(path, tmp_path / "build", hlsgen.Options(input="UINT8"))
    (warning,) = (str(d) for d in build.warnings if "out_bits" in str(d))
    assert "HG090" in warning
    assert "(of Add, Cast, Clip, Conv, Div, Mul)" in warning
    assert hlsgen.verify(tmp_path / "build", ["verilator"], 3).ok
    assert hlsgen.certify(tmp_path / "build").ok


def test_attribute_of_another_opset_is_an_error(tmp_path: Path) -> None:
    """The attribute has a meaning, which only some executors apply."""
    proto = model(lambda graph: graph.add("Clip", [conv(graph, "x", 2)], min=0.0))
    integer_models.refused(proto, tmp_path, "HG013")


def test_fake_quantization_at_the_input_is_a_quantizer(tmp_path: Path) -> None:
    """Div, Round, Add, Clip, Sub, Mul, as exporters write FakeQuantize."""

    def fake(graph: Graph) -> str:
        rounded = graph.add("Round", [graph.add("Div", ["x", np.float32(0.0625)])])
        codes = clip(graph, graph.add("Add", [rounded, np.float32(3)]), np.float32(-128), np.float32(127))
        return graph.add("Mul", [graph.add("Sub", [codes, np.float32(3)]), np.float32(0.0625)])

    def layer(graph: Graph) -> str:
        total = conv(graph, fake(graph), 2)
        return clip(
            graph, graph.add("Floor", [graph.add("Div", [total, np.float32(1.7)])]), np.float32(-8), np.float32(7)
        )

    x = np.random.default_rng(5).normal(0, 3, (24, *SHAPE[1:])).astype(np.float32)
    outputs = reference.evaluate(integer_models.compiled(model(layer), tmp_path).graph, x)
    assert (outputs.reshape(-1, 2, 4, 4) == by_runtime(model(layer), x)).all()
