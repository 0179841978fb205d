"""Sums of several tensors, products with vectors and stacks, TopK with both outputs, Swish, Resize by policy."""

from __future__ import annotations

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
from onnx.reference import ReferenceEvaluator

from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
#: Powers of two, so that float32 sums are exact in any order; and scales of a group of integers.
STEP, MIDDLE, ODD = np.float32(2**-5), np.uint8(128), np.float32(0.053)


def pair(graph: Graph, data: str, scale: Any = STEP) -> str:
    """The tensor, quantized."""
    codes = graph.add("QuantizeLinear", [data, scale, MIDDLE])
    return graph.add("DequantizeLinear", [codes, scale, MIDDLE])


def weights(shape: tuple[int, ...], graph: Graph, scale: Any = STEP / 4, kind: Any = np.int8) -> str:
    codes = np.random.default_rng(sum(shape)).integers(-127, 128, shape).astype(kind)
    return graph.add("DequantizeLinear", [codes, scale, kind(3 if kind is np.uint8 else 0)])


def finished(graph: Graph, results: list[str], shape: tuple[int, ...], opset: int = 17) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    ir = 8 if opset < 19 else 10
    return graph.proto("net", [x], [helper.make_empty_tensor_value_info(r) for r in results], [("", opset)], ir)


def samples(shape: tuple[int, ...], count: int = 48) -> Array:
    """Frames, some with equal elements."""
    x = np.random.default_rng(1).normal(0, 2, (count, *shape)).astype(np.float32)
    return np.where(np.arange(count).reshape(-1, *(1,) * len(shape)) % 2, np.round(x), x).astype(np.float32)


def assert_equal(
    model: onnx.ModelProto, shape: tuple[int, ...], directory: Path, *, by_onnx: bool = False
) -> list[Array]:
    """Check all outputs of the file against an executor on complete frames; returns the executor's outputs."""
    graph = integer_models.compiled(model, directory).graph
    x = samples(shape)
    frames = x.reshape(-1, *shape[1:]) if shape[0] == 1 else x
    outputs: Any = reference.run_output(graph, reference.encode_input(graph, reference.frames_of(graph, frames)))
    outputs = (
        reference.named_outputs(graph, outputs) if graph.outputs else {"": reference.decode_output(graph, outputs)}
    )
    run = ReferenceEvaluator(model) if by_onnx else ort.session(model)
    expected = [np.stack(part) for part in zip(*(run.run(None, {"x": frame}) for frame in x), strict=True)]
    for output, reference_output in zip(outputs.values(), expected, strict=True):
        assert output.dtype == reference_output.dtype
        assert (output.reshape(reference_output.shape) == reference_output).all()
    return expected


@pytest.mark.parametrize("op", ["Sum", "Max", "Min"])
@pytest.mark.parametrize("constant", [False, True])
def test_operators_of_several_tensors(op: str, constant: bool, tmp_path: Path) -> None:
    graph = Graph()
    data = pair(graph, "x")
    parts = [data, graph.add("Relu", [data]), graph.add("Neg", [data])]
    if constant:
        parts.insert(1, np.arange(6, dtype=np.float32) * STEP)  # type: ignore[arg-type]
    model = finished(graph, [pair(graph, graph.add(op, parts), np.float32(2**-4))], (1, 6))
    assert_equal(model, (1, 6), tmp_path)


@pytest.mark.sweep
def test_sum_of_three_layers(tmp_path: Path) -> None:
    """A sum of three layers is a sum of sums in hardware."""
    graph = Graph()
    data = pair(graph, "x")
    parts = [pair(graph, graph.add("MatMul", [data, weights((6, n), graph)]), STEP) for n in (5, 5, 5)]
    model = finished(graph, [pair(graph, graph.add("Sum", parts), np.float32(2**-3))], (1, 6))
    assert_equal(model, (1, 6), tmp_path)


def layer(graph: Graph, operands: list[str], codes: bool) -> str:
    """A product of a group of integers, with or without a quantizer after it."""
    product = graph.add("MatMul", operands)
    return pair(graph, product, np.float32(0.17)) if codes else product


@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize("shape", [(1, 6), (1, 3, 6), (1, 2, 3, 6)])
def test_matrix_by_vector(shape: tuple[int, ...], codes: bool, tmp_path: Path) -> None:
    graph = Graph()
    result = layer(graph, [pair(graph, "x", ODD), weights((6,), graph, np.float32(0.013))], codes)
    assert_equal(finished(graph, [result], shape), shape, tmp_path)


def test_vector_by_matrix(tmp_path: Path) -> None:
    graph = Graph()
    product = graph.add("MatMul", [weights((3,), graph), pair(graph, "x")])
    assert_equal(finished(graph, [pair(graph, product, np.float32(2**-3))], (1, 3, 6)), (1, 3, 6), tmp_path)


@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize("constant", [(3,), (2, 3), (2, 5, 3)])
def test_constant_of_codes_by_matrix(constant: tuple[int, ...], codes: bool, tmp_path: Path) -> None:
    shape = (*constant[:-2], 3, 4)
    shape = shape if len(shape) > 2 else (1, *shape)
    graph = Graph()
    operands = [weights(constant, graph, np.float32(0.013), np.uint8), pair(graph, "x", ODD)]
    assert_equal(finished(graph, [layer(graph, operands, codes)], shape), shape, tmp_path)


@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize(
    "data, stack",
    [
        ((1, 2, 4, 6), (2, 6, 5)),
        ((2, 4, 6), (2, 6, 5)),
        ((1, 4, 6), (3, 6, 5)),
        ((1, 6), (2, 6, 3)),
        ((1, 2, 4, 6), (1, 2, 6, 5)),
    ],
)
def test_stack_of_matrices(data: tuple[int, ...], stack: tuple[int, ...], codes: bool, tmp_path: Path) -> None:
    graph = Graph()
    result = layer(graph, [pair(graph, "x", ODD), weights(stack, graph, np.float32(0.013))], codes)
    assert_equal(finished(graph, [result], data), data, tmp_path)


@pytest.mark.parametrize("tail", ["", "Relu", "Softmax"])
def test_product_of_two_tensors_of_codes(tail: str, tmp_path: Path) -> None:
    """Integers times one float32 number, also without a quantizer."""
    graph = Graph()
    left, right = pair(graph, "x", ODD), pair(graph, "x", np.float32(0.071))
    result = graph.add("MatMul", [left, graph.add("Transpose", [right], perm=[0, 2, 1])])
    if tail:
        result = pair(graph, graph.add(tail, [result]), np.float32(0.011 if tail == "Softmax" else 0.3))
    assert_equal(finished(graph, [result], (1, 4, 6)), (1, 4, 6), tmp_path)


def test_stack_of_another_shape_is_refused(tmp_path: Path) -> None:
    graph = Graph()
    product = graph.add("MatMul", [pair(graph, "x"), weights((3, 1, 6, 5), graph)])
    integer_models.refused(finished(graph, [product], (1, 2, 4, 6)), tmp_path, "HG023")


@pytest.mark.parametrize("count", [1, 2])
def test_both_outputs_of_topk(count: int, tmp_path: Path) -> None:
    graph = Graph()
    logits = graph.add("MatMul", [pair(graph, "x"), weights((6, 5), graph)])
    graph.add("TopK", [logits, np.array([count], np.int64)], ["values", "indices"])
    expected = assert_equal(finished(graph, ["indices", "values"], (1, 6)), (1, 6), tmp_path)
    assert [part.dtype for part in expected] == [np.int64, np.float32]


@pytest.mark.parametrize("alpha", [None, 1.5, -0.5])
def test_swish(alpha: float | None, tmp_path: Path) -> None:
    graph = Graph()
    attributes = {} if alpha is None else {"alpha": alpha}
    model = finished(graph, [pair(graph, graph.add("Swish", [pair(graph, "x")], **attributes))], (1, 6), 24)
    assert_equal(model, (1, 6), tmp_path, by_onnx=True)


@pytest.mark.parametrize("policy, sizes", [("not_larger", [8, 9]), ("not_smaller", [6, 8]), ("stretch", [8, 4])])
def test_resize_that_keeps_the_aspect_ratio(policy: str, sizes: list[int], tmp_path: Path) -> None:
    graph = Graph()
    inputs = [pair(graph, "x"), "", "", np.array(sizes, np.int64)]
    image = graph.add(
        "Resize",
        inputs,
        mode="nearest",
        axes=[2, 3],
        keep_aspect_ratio_policy=policy,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    model = finished(graph, [pair(graph, image)], (1, 2, 4, 4), 18)
    (expected,) = assert_equal(model, (1, 2, 4, 4), tmp_path)
    assert expected.shape[-2:] == ((8, 4) if policy == "stretch" else (8, 8))
