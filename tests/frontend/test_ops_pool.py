"""Pooling and reductions as steps on images equal onnxruntime or the QONNX executor."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from image_steps import agrees, by_ort, by_qonnx, code_of, evaluated, imported, node_of, small
from qonnx.core.datatype import DataType

from hlsgen import ir
from hlsgen.frontend.domains import CHANNELS_LAST
from hlsgen.frontend.ops_pool import is_spatial
from hlsgen.ir.ops import Div

Array = Any
f32, i64 = np.float32, np.int64


def only(steps: Any, kind: Any) -> Any:
    """The single operation of this kind."""
    (operation,) = [op for op, _ in steps if isinstance(op, kind)]
    return operation


def divided(steps: Any, x: Array, expected: Array) -> None:
    """The result is the exact sum, divided once; the sum is onnxruntime's result times the count, rounded."""
    result = evaluated(steps, x)
    ((division, shape),) = [(op, shape) for op, shape in steps if isinstance(op, Div)]
    counts = np.moveaxis(np.broadcast_to(division.value, shape), -1, 1).reshape(result.shape)
    sums = np.round(expected.astype(np.float64) * counts)
    np.testing.assert_array_equal(result, (sums / counts).astype(f32))


def random_pool(rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
    """Data, and attributes for which every window has a pixel of the data."""
    points = int(rng.integers(1, 3))
    attrs: dict[str, Any] = {"kernel_shape": rng.integers(1, 5, points).tolist()}
    if rng.random() < 0.8:
        attrs["strides"] = rng.integers(1, 4, points).tolist()
    mode = str(rng.choice(["", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"], p=[0.4, 0.3, 0.1, 0.1, 0.1]))
    if mode:
        attrs["auto_pad"] = mode
    if mode.startswith("SAME"):  # onnxruntime wants no gaps
        attrs["kernel_shape"] = [
            max(k, s) for k, s in zip(attrs["kernel_shape"], attrs.get("strides", [1, 1]), strict=False)
        ]
    elif rng.random() < 0.4:
        attrs["dilations"] = rng.integers(1, 3, points).tolist()
    if mode in ("", "NOTSET") and rng.random() < 0.8:
        attrs["pads"] = [int(rng.integers(0, (k + 1) // 2)) for k in attrs["kernel_shape"] * 2]
    if rng.random() < 0.6:
        attrs["ceil_mode"] = 1
    return small(rng, (1, int(rng.integers(1, 4)), *rng.integers(7, 13, points))), attrs


@pytest.mark.parametrize("seed", range(80))
def test_max_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, attrs = random_pool(rng)
    if seed % 4 == 0:
        x = (x + 128).astype([np.uint8, np.int8][seed % 8 // 4])
    agrees(node_of("MaxPool", 1, **attrs), x, [], 12)


@pytest.mark.parametrize("seed", range(80))
def test_average_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, attrs = random_pool(rng)
    if rng.random() < 0.5:
        attrs["count_include_pad"] = 1
    node = node_of("AveragePool", 1, **attrs)
    divided(imported(node, x, [], 19), x, by_ort(node, x, [], 19)[0])


def test_kernels_larger_than_the_data() -> None:
    """If ceil_mode is set, a window may extend beyond the data without pads."""
    x = np.asarray([[[3, -4]]], f32)
    for op, include in product(["MaxPool", "AveragePool"], [0, 1]):
        extra = {"count_include_pad": 1} if include and op == "AveragePool" else {}
        agrees(node_of(op, 1, kernel_shape=[3], strides=[2], ceil_mode=1, **extra), x, [])


def test_counts_differ_only_where_they_do() -> None:
    """The divisor is one number if all windows are full, and has an axis for each axis with excluded padding."""
    x = np.ones((1, 2, 6, 5), f32)
    for pads, shape in [([0] * 4, (1, 1, 1, 1)), ([1, 0, 0, 0], (1, 5, 1, 1)), ([0, 1, 0, 0], (1, 1, 4, 1))]:
        steps = imported(node_of("AveragePool", 1, kernel_shape=[3, 3], pads=pads), x, [])
        assert only(steps, Div).value.shape == shape
    included = imported(node_of("AveragePool", 1, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), x, [])
    np.testing.assert_array_equal(only(included, Div).value, np.full((1, 1, 1, 1), 9))


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 3, 6), (1, 2, 1, 1)])
def test_global_pools(shape: tuple[int, ...]) -> None:
    x = small(np.random.default_rng(0), shape)
    agrees(node_of("GlobalMaxPool", 1), x, [])
    node = node_of("GlobalAveragePool", 1)
    divided(imported(node, x, []), x, by_ort(node, x, [])[0])


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 4, 6)])
def test_reductions(op: str, shape: tuple[int, ...]) -> None:
    """Any axes except the first and another one, as attribute and as input, also negative."""
    rng = np.random.default_rng(len(shape))
    rank, checked = len(shape), 0
    for chosen in product([False, True], repeat=rank - 1):
        axes = [a for a, take in enumerate(chosen, 1) if take]
        if not is_spatial(shape, axes):
            continue
        for keep, late in product([0, 1], [False, True]):
            x = small(rng, shape)
            numbers = [a - rank for a in reversed(axes)] if keep else axes
            opset = 18 if late else 12
            node = node_of(op, 2 if late else 1, keepdims=keep, **({} if late else {"axes": numbers}))
            constants = [np.asarray(numbers, i64)] if late else []
            steps, expected = imported(node, x, constants, opset), by_ort(node, x, constants, opset)[0]
            result = evaluated(steps, x)
            assert result.shape == expected.shape
            assert only(steps, ir.Pool).window.strides == (1, 1)
            if op == "ReduceMean":
                count = only(steps, Div).value
                assert count.size == 1
                sums = np.round(expected.astype(np.float64) * count.ravel())
                np.testing.assert_array_equal(result, (sums / count.ravel()).astype(f32))
            else:
                np.testing.assert_array_equal(result, expected)
            checked += 1
    assert checked == {4: 6 * 4, 3: 2 * 4}[rank]


def test_axes_are_kept_by_default() -> None:
    agrees(node_of("ReduceMax", 1, axes=[2]), small(np.random.default_rng(0), (1, 3, 4)), [])


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 3, 4), [0]), ((3, 4), [1]), ((3, 4), [0]), ((1, 2, 3, 4), [1, 2, 3]), ((2, 3, 2, 2, 2), [2, 4])],
)
def test_reductions_over_any_axes(op: str, shape: tuple[int, ...], axes: list[int]) -> None:
    x = small(np.random.default_rng(1), shape)
    for keep in (0, 1):
        node = node_of(op, 2, keepdims=keep)
        constants = [np.asarray(axes, i64)]
        steps, expected = imported(node, x, constants, 18), by_ort(node, x, constants, 18)[0]
        only(steps, ir.Pool)
        if op == "ReduceMean":
            count = float(only(steps, Div).value.ravel()[0])
            expected = (np.round(expected.astype(np.float64) * count) / count).astype(f32)
        np.testing.assert_array_equal(evaluated(steps, x), expected)


def test_all_axes_are_reduced_if_none_are_named() -> None:
    x = small(np.random.default_rng(1), (1, 3, 4))
    for node, expected_shape in ((node_of("ReduceSum", 1, keepdims=0), ()), (node_of("ReduceSum", 2), (1, 1, 1))):
        steps = imported(node, x, [None] * (len(node.input) - 1), 18)
        assert steps[-1][1] == expected_shape
        assert evaluated(steps, x).ravel() == x.sum()


def test_at_the_end_of_a_network_other_reductions_stay_with_the_host() -> None:
    x = np.ones((1, 3, 4), f32)
    for axes in ([0], [1, 2], [0, 1, 2]):
        ((op, _),) = imported(node_of("ReduceMean", 1, axes=axes), x, [], last=True)
        assert isinstance(op, ir.HostOp)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("signed", [0, 1])
def test_quant_avg_pool(layout: str, signed: int) -> None:
    """Sums are shifted and not clipped. Inputs are whole numbers of `ibits`."""
    rng = np.random.default_rng(signed)
    for kernel, stride, ibits, obits in product([1, 2, 3], [1, 2], [2, 4, 8], [2, 4, 8]):
        lo, hi = (-(1 << (ibits - 1)), 1 << (ibits - 1)) if signed else (0, 1 << ibits)
        x = rng.integers(lo, hi, (1, 2, 5, 7)).astype(f32)
        out = [(s - kernel) // stride + 1 for s in (5, 7)]
        shape = (1, 2, *out)
        if layout == "NHWC":
            x, shape = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), (1, *out, 2)
        node = node_of(
            "QuantAvgPool2d",
            1,
            domain="qonnx.custom_op.general",
            stride=stride,
            kernel=kernel,
            ibits=ibits,
            obits=obits,
            signed=signed,
            data_layout=layout,
        )
        np.testing.assert_array_equal(evaluated(imported(node, x, []), x), by_qonnx(node, x, [], shape))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("last", [0, 1])
def test_qlinear_global_average_pool(dtype: str, last: int) -> None:
    """Scales with many sums next to the midpoint of two codes, where each float32 rounding matters."""
    rng, info = np.random.default_rng(last), np.iinfo(dtype)
    for _ in range(60):
        h, w = (int(v) for v in rng.integers(1, 9, 2))
        x = rng.integers(info.min, info.max + 1, (1, h, w, 4) if last else (1, 4, h, w)).astype(dtype)
        sx = f32(np.exp(rng.uniform(-5, 0)))
        zeros = rng.integers(info.min, info.max + 1, 2).astype(dtype)
        constants = [sx, zeros[0], f32(sx * int(rng.integers(1, 9)) * 2 / (h * w)), zeros[1]]
        agrees(node_of("QLinearGlobalAveragePool", 5, domain="com.microsoft", channels_last=last), x, constants)


@pytest.mark.parametrize("seed", range(30))
def test_qlinear_average_pool(seed: int) -> None:
    """The data's scale is a power of two, so that onnxruntime rounds no partial sum either."""
    rng, dtype = np.random.default_rng(seed), ["int8", "uint8"][seed % 2]
    info, last = np.iinfo(dtype), seed // 2 % 2
    x, attrs = random_pool(rng)
    attrs = {k: v for k, v in attrs.items() if k != "dilations"} | {"channels_last": last}
    if x.ndim == 3:
        x = x[:, :, :, None]
        attrs |= {k: [*v, 1] for k, v in attrs.items() if k in ("kernel_shape", "strides")}
        attrs |= {"pads": [attrs["pads"][0], 0, attrs["pads"][1], 0]} if "pads" in attrs else {}
    x = rng.integers(info.min, info.max + 1, x.shape).astype(dtype)
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
    sx = f32(2.0 ** rng.integers(-6, 2))
    zeros = rng.integers(info.min // 2, info.max // 2, 2).astype(dtype)
    sy = f32(
        sx * int(rng.integers(1, 4)) * 2 / np.prod(attrs["kernel_shape"]) if seed % 3 else sx * rng.uniform(0.5, 2)
    )
    extra = {"count_include_pad": 1} if rng.random() < 0.5 else {}
    node = node_of("QLinearAveragePool", 5, domain="com.microsoft", **attrs, **extra)
    agrees(node, x, [sx, zeros[0], sy, zeros[1]])


@pytest.mark.parametrize("seed", range(12))
def test_channels_last_pools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, attrs = random_pool(rng)
    spatial_axes = x.ndim - 2
    window_attrs = {k: attrs.get(k, [1] * spatial_axes) for k in ("kernel_shape", "strides", "dilations")}
    window_attrs |= {"pads": attrs.get("pads", [0] * 2 * spatial_axes), "ceil_mode": attrs.get("ceil_mode", 0)}
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    node = node_of("MaxPool", 1, domain=CHANNELS_LAST, **window_attrs)
    result = evaluated(imported(node, x, []), x)
    np.testing.assert_array_equal(result, by_qonnx(node, x, [], result.shape))


def test_max_pool_nhwc() -> None:
    x = small(np.random.default_rng(0), (1, 6, 5, 3))
    node = node_of(
        "MaxPoolNHWC", 1, domain="qonnx.custom_op.general", kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 1, 1]
    )
    result = evaluated(imported(node, x, []), x)
    assert result.shape == (1, 4, 5, 3)
    np.testing.assert_array_equal(result, by_qonnx(node, x, [], result.shape))


@pytest.mark.parametrize("shape", [(1, 4, 5, 3), (1, 4, 3), (2, 3)])
def test_channels_last_batch_norm(shape: tuple[int, ...]) -> None:
    """Numbers for which every operation is exact; the channels are the last axis."""
    rng = np.random.default_rng(0)
    x = small(rng, shape)
    var = 4.0 ** rng.integers(-2, 3, 3)
    constants = [small(rng, 3), small(rng, 3), small(rng, 3), var.astype(f32)]
    node = node_of("BatchNormalization", 5, domain=CHANNELS_LAST, epsilon=0.0, momentum=0.9)
    result = evaluated(imported(node, x, constants), x)
    scale, bias, mean = constants[:3]
    np.testing.assert_array_equal(result, ((x - mean) / np.sqrt(var) * scale + bias).astype(f32))
    if len(shape) > 2:
        np.testing.assert_array_equal(result, by_qonnx(node, x, constants, shape))


def test_quant_avg_pool_takes_whole_annotations() -> None:
    """A datatype annotation of the data has no effect."""
    x = np.asarray([[[[1, 3], [2, 1]]]], f32)
    node = node_of(
        "QuantAvgPool2d", 1, domain="qonnx.custom_op.general", stride=1, kernel=2, ibits=2, obits=2, signed=0
    )
    result = evaluated(imported(node, x, []), x)
    np.testing.assert_array_equal(result, by_qonnx(node, x, [], (1, 1, 1, 1), DataType["UINT2"]))
    assert result.item() == 7 >> 2


X = np.ones((1, 4, 6, 6), f32)
INDEX = np.asarray([1], i64)


@pytest.mark.parametrize(
    "op, x, constants, attrs, code",
    [
        ("MaxPool", X, [], {}, "HG013"),
        ("MaxPool", X, [], {"kernel_shape": [2]}, "HG013"),
        ("MaxPool", X, [], {"kernel_shape": [2, 2], "outputs": 2}, "HG010"),
        ("MaxPool", X, [], {"kernel_shape": [7, 2]}, "HG023"),
        ("MaxPool", X, [], {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, "HG013"),
        ("MaxPool", X, [], {"kernel_shape": [2, 2], "pads": [0, 0, 0, 2]}, "HG013"),
        ("MaxPool", X[..., None], [], {"kernel_shape": [2, 2, 2]}, "HG010"),
        ("AveragePool", X, [], {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, "HG013"),
        ("AveragePool", X.astype(np.int8), [], {"kernel_shape": [2, 2]}, "HG026"),
        ("GlobalAveragePool", X.astype(np.float16), [], {}, "HG026"),
        ("QLinearGlobalAveragePool", X.astype(np.int16), [f32(1), np.int8(0), f32(1), np.int8(0)], {}, "HG026"),
        ("QLinearAveragePool", X.astype(np.int8), [f32([1, 1]), np.int8(0), f32(1), np.int8(0)], {}, "HG023"),
        ("QLinearAveragePool", X.astype(np.int8), [f32(1), np.int8(0), f32(0), np.int8(0)], {}, "HG022"),
        ("GlobalMaxPool", X[0, 0], [], {}, "HG023"),
        ("ReduceMean", X, [INDEX * 4], {}, "HG013"),
        ("ReduceMean", X, [None], {"axes": [2, 2]}, "HG013"),
        ("ReduceMean", X.astype(np.int8), [INDEX], {}, "HG026"),
        ("QuantAvgPool2d", X, [], {"kernel": 2, "stride": 1, "ibits": 4}, "HG013"),
        ("QuantAvgPool2d", X.astype(np.int8), [], {"kernel": 2, "stride": 1, "ibits": 4, "obits": 3}, "HG026"),
        ("QuantAvgPool2d", X, [], {"kernel": 2, "stride": 1, "ibits": 4, "obits": 33}, "HG021"),
        ("QuantAvgPool2d", X[0], [], {"kernel": 2, "stride": 1, "ibits": 4, "obits": 3}, "HG023"),
    ],
)
def test_refused(op: str, x: Array, constants: list[Any], attrs: dict[str, Any], code: str) -> None:
    node = node_of(op, 1 + len(constants), **attrs)
    assert code_of(node, x, constants, 18) == code
