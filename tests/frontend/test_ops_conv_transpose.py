"""ConvTranspose as a convolution of phases equals onnxruntime, in exact numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from image_steps import by_ort, code_of, evaluated, imported, node_of, random_window, small

from hlsgen import ir
from hlsgen.frontend.constant_folding import Const

Array = Any
f32 = np.float32


@pytest.mark.parametrize("seed", range(80))
def test_conv_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spatial_axes = int(rng.integers(1, 3))
    groups, group_inputs, group_outputs = (int(v) for v in rng.integers(1, 4, 3))
    kernel = rng.integers(1, 5, spatial_axes).tolist()
    attrs = random_window(rng, spatial_axes, transposed=True)
    strides = attrs.get("strides", [1] * spatial_axes)
    if "auto_pad" not in attrs:
        attrs["pads"] = [int(rng.integers(0, 2 + k // 2)) for k in kernel * 2]
    if rng.random() < 0.5:
        attrs["output_padding"] = [int(rng.integers(0, s)) for s in strides]  # onnxruntime takes no more
    if attrs.get("auto_pad", "").startswith("SAME"):
        kernel = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    if groups > 1:
        attrs["group"] = groups
    x = small(rng, (1, groups * group_inputs, *rng.integers(3, 6, spatial_axes)))
    weight = small(rng, (groups * group_inputs, group_outputs, *kernel))
    constants = [weight] + ([small(rng, groups * group_outputs)] if seed % 2 else [])
    node = node_of("ConvTranspose", 1 + len(constants), **attrs)
    steps = imported(node, x, constants)
    np.testing.assert_array_equal(evaluated(steps, x), by_ort(node, x, constants)[0])


@pytest.mark.parametrize("mode", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("out", [4, 5, 6, 7, 8])
def test_conv_transpose_with_output_shape(mode: str, out: int) -> None:
    rng = np.random.default_rng(out)
    x, weight = small(rng, (1, 2, 3, 3)), small(rng, (2, 2, 4, 4))
    node = node_of("ConvTranspose", 2, strides=[2, 2], output_shape=[out, 8], auto_pad=mode)
    np.testing.assert_array_equal(evaluated(imported(node, x, [weight]), x), by_ort(node, x, [weight])[0])


def test_scales_of_transposed_weights() -> None:
    """All phases of an output have its scale."""
    rng = np.random.default_rng(1)
    codes = rng.integers(-8, 8, (4, 3, 2, 2))  # two groups of two channels, three outputs each
    scale = 2.0 ** rng.integers(-6, 0, (1, 3, 1, 1)).astype(f32)
    zero = np.zeros(codes.shape, f32)
    const = Const((codes * scale).astype(f32), codes, np.broadcast_to(scale, codes.shape), zero)
    x = small(rng, (1, 4, 3, 3))
    node = node_of("ConvTranspose", 2, strides=[2, 2], group=2)
    np.testing.assert_array_equal(evaluated(imported(node, x, [const]), x), by_ort(node, x, [const])[0])


def test_no_more_taps_than_needed() -> None:
    """Kernel 4, stride 2, pads 1: every phase has two taps per axis, and no superfluous row is computed."""
    x, weight = np.ones((1, 3, 5, 5), f32), np.ones((3, 2, 4, 4), f32)
    steps = imported(node_of("ConvTranspose", 2, strides=[2, 2], pads=[1, 1, 1, 1]), x, [weight])
    (step,) = [op for op, _ in steps if isinstance(op, ir.Conv)]
    assert step.weight.shape == (8, 2, 2, 3)
    assert step.window.pads == (1, 1, 1, 1)
    assert steps[-1][1] == (1, 2, 10, 10)
    steps = imported(node_of("ConvTranspose", 2, strides=[2, 2]), x, [weight[..., :2, :2]])
    assert not any(isinstance(op, ir.Slice) for op, _ in steps)


X, W = np.zeros((1, 2, 5, 5), f32), np.ones((2, 2, 2, 2), f32)


@pytest.mark.parametrize(
    "weights, attrs, code",
    [
        (np.ones((3, 2, 2, 2), f32), {}, "HG023"),
        (W[0], {}, "HG023"),
        (None, {}, "HG020"),
        (W, {"kernel_shape": [3, 3]}, "HG013"),
        (W, {"group": 3}, "HG013"),
        (W, {"pads": [5, 5, 5, 5]}, "HG013"),
        (W, {"output_shape": [9, 9]}, "HG013"),
        (W, {"output_shape": [0, 5]}, "HG013"),
        (W, {"strides": [1 << 16, 1 << 16]}, "HG004"),
        (W, {"strides": [1 << 16, 1 << 10]}, "HG004"),
    ],
)
def test_refused(weights: Array, attrs: dict[str, Any], code: str) -> None:
    assert code_of(node_of("ConvTranspose", 2, **attrs), X, [weights]) == code
