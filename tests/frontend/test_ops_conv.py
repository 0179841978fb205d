"""Convolutions as steps on images equal onnxruntime or the QONNX executor, in exact numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from image_steps import by_ort, by_qonnx, code_of, evaluated, imported, imported_node, node_of, random_window, small
from qonnx.core.datatype import DataType

from hlsgen import ir
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.domains import CHANNELS_LAST
from hlsgen.frontend.im2col import absorbed, is_patches

Array = Any
f32 = np.float32


def random_conv(rng: np.random.Generator) -> tuple[Array, tuple[int, ...], dict[str, Any]]:
    """(data, shape of the weights, attributes) of a valid Conv."""
    spatial_axes = int(rng.integers(1, 3))
    groups = int(rng.integers(1, 4))
    group_inputs, group_outputs = (int(v) for v in rng.integers(1, 4, 2))
    if rng.random() < 0.3:
        group_inputs = 1  # depthwise, with a multiplier
    kernel = rng.integers(1, 4, spatial_axes).tolist()
    attrs = random_window(rng, spatial_axes)
    if groups > 1:
        attrs["group"] = groups
    if rng.random() < 0.5:
        attrs["kernel_shape"] = kernel
    x = small(rng, (int(rng.integers(1, 3)), groups * group_inputs, *rng.integers(7, 12, spatial_axes)))
    return x, (groups * group_outputs, group_inputs, *kernel), attrs


@pytest.mark.parametrize("seed", range(60))
def test_conv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, form, attrs = random_conv(rng)
    constants = [small(rng, form)] + ([small(rng, form[0])] if seed % 2 else [])
    node = node_of("Conv", 1 + len(constants), **attrs)
    steps = imported(node, x, constants)
    np.testing.assert_array_equal(evaluated(steps, x), by_ort(node, x, constants)[0])


def test_codes_and_scales_of_weights() -> None:
    """The codes are reordered to channels last; the scale of every output is unchanged."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (6, 2, 3, 2))
    scale = rng.uniform(0.01, 1, (6, 1, 1, 1)).astype(f32)
    zero = rng.integers(0, 16, (6, 1, 1, 1)).astype(f32)
    real = (codes - zero).astype(f32) * scale
    const = Const(real, codes, np.broadcast_to(scale, codes.shape), np.broadcast_to(zero, codes.shape))
    x = small(rng, (1, 6, 5, 5))
    for last in (False, True):
        arranged = const.map(lambda part: part.transpose(0, 2, 3, 1)) if last else const
        data = x.transpose(0, 2, 3, 1) if last else x
        node = node_of("Conv", 2, domain=CHANNELS_LAST if last else "", group=3)
        (step,) = [op for op, _ in imported(node, data, [arranged]) if isinstance(op, ir.Conv)]
        assert step.weight.dtype == np.int64
        np.testing.assert_array_equal(step.weight, (codes - zero).transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(step.scale, scale.ravel())
        assert step.scale.dtype == np.float32
        assert step.groups == 3


@pytest.mark.parametrize("seed", range(12))
def test_channels_last(seed: int) -> None:
    """The QONNX operator: (n, h, w, c), weights (o, h, w, i)."""
    rng = np.random.default_rng(seed)
    _, form, _ = random_conv(rng)
    points = len(form) - 2
    groups = int(rng.integers(1, 3))
    x = small(rng, (1, *rng.integers(7, 10, points), groups * form[1]))
    outputs = form[0] * groups
    attrs = {
        "kernel_shape": list(form[2:]),
        "strides": rng.integers(1, 3, points).tolist(),
        "group": groups,
        "dilations": rng.integers(1, 3, points).tolist(),
        "pads": rng.integers(0, 3, 2 * points).tolist(),
    }
    weight = small(rng, (outputs, *form[2:], form[1]))
    constants = [weight] + ([small(rng, outputs)] if seed % 2 else [])
    node = node_of("Conv", 1 + len(constants), domain=CHANNELS_LAST, **attrs)
    result = evaluated(imported(node, x, constants), x)
    np.testing.assert_array_equal(result, by_qonnx(node, x, constants, result.shape))


# --------------------------------------------------------------------------- integers


def any_code(rng: np.random.Generator, dtype: str, shape: Any = ()) -> Array:
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max + 1, shape)).astype(dtype)


@pytest.mark.parametrize("seed", range(24))
def test_conv_integer(seed: int) -> None:
    """The padding is the data's zero point. Zero points per output of the weights are compared with a float Conv."""
    rng = np.random.default_rng(seed)
    data, weight_type = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")][seed % 3]
    x, form, attrs = random_conv(rng)
    x = any_code(rng, data, x.shape)
    weight = any_code(rng, weight_type, form)
    zeros = any_code(rng, weight_type, form[0] if seed % 4 == 3 else ())
    constants = [weight, any_code(rng, data), zeros]
    count = [1, 2, 3, 3][seed % 4]
    node = node_of("ConvInteger", 1 + count, **attrs)
    result = evaluated(imported(node, x, constants[:count]), x)
    if zeros.ndim and count == 3:
        float_weights = (weight.astype(np.int64) - zeros.reshape(-1, *[1] * (weight.ndim - 1))).astype(f32)
        shifted = x.astype(f32) - f32(constants[1])
        expected = by_ort(node_of("Conv", 2, **attrs), shifted, [float_weights])[0].astype(np.int32)
    else:
        expected = by_ort(node, x, constants[:count])[0]
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.int32


@pytest.mark.parametrize("seed", range(24))
def test_qlinear_conv(seed: int) -> None:
    """The sum and its bias are multiplied once, by fl(fl(sx * sw) / sy)."""
    rng = np.random.default_rng(seed)
    dtype, weight_type = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")][seed % 3]
    x, form, attrs = random_conv(rng)
    x = any_code(rng, dtype, x.shape)
    per_channel = seed % 2 == 0
    zero = np.zeros(form[0], weight_type) if per_channel else any_code(rng, weight_type)
    scale = np.exp(rng.uniform(-5, 0, form[0] if per_channel else ())).astype(f32)
    sx = np.exp(rng.uniform(-5, 0)).astype(f32)
    sy = f32(sx * scale.max() * rng.uniform(50, 1000))
    # Pairs of uint8 * int8 products saturate in onnxruntime's kernels on processors without VNNI: weights of 7 bits.
    weights = any_code(rng, weight_type, form) // (2 if dtype != weight_type else 1)
    constants = [sx, any_code(rng, dtype), weights, scale, zero, sy, np.asarray(100).astype(dtype)]
    if seed % 4 < 2:
        constants.append(rng.integers(-5000, 5000, form[0]).astype(np.int32))
    node = node_of("QLinearConv", 1 + len(constants), **attrs)
    result = evaluated(imported(node, x, constants), x)
    np.testing.assert_array_equal(result, by_ort(node, x, constants)[0])
    assert result.dtype == dtype
    assert len(np.unique(result)) > 1


@pytest.mark.parametrize("bias", [False, True])
def test_qlinear_conv_with_channels_last(bias: bool) -> None:
    """onnxruntime's own operator has data (n, h, w, c) and weights (o, i, h, w)."""
    rng = np.random.default_rng(5)
    x = any_code(rng, "uint8", (1, 6, 7, 4))
    weights = [any_code(rng, "int8", (3, 4, 3, 2)) // 2, f32(0.03), np.int8(0)]  # of 7 bits, as above
    constants = [f32(0.02), np.uint8(7), *weights, f32(2), np.uint8(9)]
    constants += [rng.integers(-5000, 5000, 3).astype(np.int32)] if bias else []
    node = node_of("QLinearConv", 1 + len(constants), domain="com.microsoft", channels_last=1, pads=[1, 0, 1, 1])
    result = evaluated(imported(node, x, constants), x)
    np.testing.assert_array_equal(result, by_ort(node, x, constants)[0])
    assert len(np.unique(result)) > 1


# --------------------------------------------------------------------------- patches


def random_patches(rng: np.random.Generator) -> tuple[Array, dict[str, Any], tuple[int, int]]:
    x = small(rng, (1, *rng.integers(4, 8, 2), int(rng.integers(1, 4))))
    kernel, stride, dilations = (rng.integers(1, 3, 2).tolist() for _ in range(3))
    pads = rng.integers(0, 3, 4).tolist() if rng.random() < 0.7 else [0] * 4
    attrs = {
        "kernel_size": kernel,
        "stride": stride,
        "pad_amount": pads,
        "dilations": dilations,
        "input_shape": str(x.shape),
        "pad_value": int(rng.choice([0, 3])),
    }
    size = [
        (x.shape[1 + i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)
    ]
    return x, attrs, (size[0], size[1])


@pytest.mark.parametrize("seed", range(16))
def test_im2col(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, attrs, size = random_patches(rng)
    node = node_of("Im2Col", 1, domain="qonnx.custom_op.general", **attrs)
    steps = imported(node, x, [])
    columns = int(np.prod(attrs["kernel_size"])) * x.shape[3]
    expected = by_qonnx(node, x, [], (1, *size, columns), DataType["INT8"])
    np.testing.assert_array_equal(evaluated(steps, x), expected)
    assert is_patches(steps[-1][0])


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_im2col_and_matmul_are_one_convolution(seed: int, depthwise: bool) -> None:
    rng = np.random.default_rng(seed)
    x, attrs, _ = random_patches(rng)
    steps = imported(node_of("Im2Col", 1, domain="finn.custom_op.general", **attrs), x, [])
    channels, shape = x.shape[3], steps[-1][1]
    weight = small(rng, (shape[3], 2 * channels))
    if depthwise:
        weight *= np.arange(shape[3])[:, None] % channels == np.arange(2 * channels) // 2
    product = imported_node(node_of("MatMul", 2), shape, "float32", [weight]).outputs[0]
    patches, matmul = steps[-1][0], product[0][0]
    assert isinstance(matmul, ir.MatMul)
    convolution = absorbed(patches, matmul)
    assert convolution.groups == (channels if depthwise and channels > 1 else 1)
    merged = [*steps[:-1], (convolution, product[0][1])]
    np.testing.assert_array_equal(evaluated(merged, x), evaluated(steps, x) @ weight)


def test_other_convolutions_are_no_patches() -> None:
    patches = imported(
        node_of("Im2Col", 1, domain="finn", kernel_size=[2, 2], stride=[1, 1]), np.zeros((1, 3, 3, 2), f32), []
    )[0][0]
    assert is_patches(patches)
    weight = patches.weight.copy()
    assert is_patches(ir.Conv(weight, patches.scale, patches.window, 1))
    weight[0, 0, 1, 0] = 1
    assert not is_patches(ir.Conv(weight, patches.scale, patches.window, 1))
    assert not is_patches(ir.Conv(patches.weight, 2 * patches.scale, patches.window, 1))
    assert not is_patches(ir.Conv(patches.weight[::-1], patches.scale, patches.window, 1))
    assert not is_patches(ir.Conv(patches.weight[:4], patches.scale[:4], patches.window, 1))
    assert not is_patches(ir.Reshape())


# --------------------------------------------------------------------------- refused


X, W = np.zeros((1, 2, 5, 5), f32), np.ones((4, 2, 3, 3), f32)


@pytest.mark.parametrize(
    "op, x, constants, attrs, code",
    [
        ("Conv", np.zeros((1, 2, 5, 5, 5), f32), [np.ones((4, 2, 3, 3, 3), f32)], {}, "HG010"),
        ("Conv", np.zeros((1, 2), f32), [np.ones((4, 2), f32)], {}, "HG023"),
        ("Conv", X, [None], {}, "HG020"),
        ("Conv", X, [W[:, :1]], {}, "HG023"),
        ("Conv", X, [W[..., 0]], {}, "HG023"),
        ("Conv", X, [W], {"group": 3}, "HG013"),
        ("Conv", X, [W], {"group": 0}, "HG013"),
        ("Conv", X, [W], {"group": 2}, "HG023"),
        ("Conv", X, [W], {"kernel_shape": [3, 2]}, "HG013"),
        ("Conv", X, [W], {"strides": [0, 1]}, "HG013"),
        ("Conv", X, [W], {"strides": [1]}, "HG013"),
        ("Conv", X, [W], {"pads": [0, -1, 0, 0]}, "HG013"),
        ("Conv", X, [W], {"dilations": [3, 3]}, "HG023"),
        ("Conv", X, [W], {"pads": [1 << 16] * 4}, "HG004"),
        ("Conv", X, [W], {"pads": [(1 << 16) + 1] * 4}, "HG013"),
        ("Conv", X, [W], {"auto_pad": "SAME"}, "HG013"),
        ("Conv", X, [W, np.zeros(3, f32)], {}, "HG023"),
        ("Conv", X, [W, np.full(4, np.nan, f32)], {}, "HG027"),
        ("Conv", X, [W * f32(0.1)], {}, "HG031"),
        ("ConvInteger", X, [W], {}, "HG026"),
        ("ConvInteger", X.astype(np.uint8), [W], {}, "HG026"),
        ("ConvInteger", X.astype(np.uint8), [W.astype(np.int8), np.zeros(2, np.uint8)], {}, "HG024"),
        ("ConvInteger", X.astype(np.uint8), [W.astype(np.int8), np.uint8(0), np.zeros(3, np.int8)], {}, "HG023"),
        ("Im2Col", X, [], {"stride": [1, 1]}, "HG013"),
        ("Im2Col", X[..., 0], [], {"stride": [1, 1], "kernel_size": [1, 1]}, "HG023"),
        ("Im2Col", X, [], {"stride": [1, 1], "kernel_size": [9, 1]}, "HG023"),
    ],
)
def test_refused(op: str, x: Array, constants: list[Any], attrs: dict[str, Any], code: str) -> None:
    assert code_of(node_of(op, 1 + len(constants), **attrs), x, constants) == code


def test_computed_weights_are_refused_by_name() -> None:
    assert code_of(node_of("Conv", 2), X, [None], position=1) == "HG010"
    assert code_of(node_of("Conv", 3), X, [W, None], position=2) == "HG020"
    assert code_of(node_of("QLinearConv", 8), X.astype(np.uint8), [None] * 7, position=3) == "HG010"
