"""Operators of the host against onnxruntime: averages in its order of sums, shares of numbers far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import HostOp, Step

Array = Any
SHAPES = [(1, 3, 1, 3), (1, 2, 4, 4), (1, 3, 9, 13), (1, 2, 7, 7), (2, 1, 6, 5)]
WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    {"kernel_shape": [3, 4], "strides": [2, 1]},
]


def host_and_runtime(
    op: str, x: Array, constants: dict[str, Array] | None = None, **attributes: Any
) -> tuple[Array, Array]:
    """The results of the host and of onnxruntime for a node of one computed input; "" is the name of a missing one."""
    inputs = ["x", *(name if array.size else "" for name, array in (constants or {}).items())]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items() if array.size],
    )
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return run_step(Step("host", HostOp(op, data), x.shape, (0,)), x[None])[0], session.run(None, {"x": x})[0]


def numbers(shape: tuple[int, ...], spread: float = 3) -> Array:
    return np.random.default_rng(3).normal(0, spread, shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_averages_of_whole_images(shape: tuple[int, ...]) -> None:
    ours, theirs = host_and_runtime("GlobalAveragePool", numbers(shape))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("window", WINDOWS)
def test_averages_of_windows(shape: tuple[int, ...], window: dict[str, Any]) -> None:
    ours, theirs = host_and_runtime("AveragePool", numbers(shape), **window)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("spread", [3, 200, 1e30])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_shares_of_numbers_far_apart(op: str, spread: float, axis: int) -> None:
    """The logarithm of a share that rounds to 0 is finite."""
    ours, theirs = host_and_runtime(op, numbers((1, 6, 4, 4), spread), axis=axis)
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=3e-7)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("factors", [(2, 2), (1.5, 2.5), (0.5, 0.7)])
def test_linear_resize(mode: str, factors: tuple[float, float]) -> None:
    constants = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, *factors], np.float32)}
    for shape in SHAPES[1:]:
        ours, theirs = host_and_runtime(
            "Resize", numbers(shape), constants, mode="linear", coordinate_transformation_mode=mode
        )
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("sizes", [(9, 6), (1, 3)])
def test_linear_resize_to_sizes(sizes: tuple[int, int]) -> None:
    none = np.zeros(0, np.float32)
    constants = {"roi": none, "scales": none, "sizes": np.array([1, 3, *sizes], np.int64)}
    ours, theirs = host_and_runtime("Resize", numbers((1, 3, 9, 13)), constants, mode="linear")
    np.testing.assert_array_equal(ours, theirs)
