"""Images and windows: tensors of ONNX as (n, height, width, channels), attributes as a `Window`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import check_size
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir import Reshape, Shape, Transpose
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array

#: Largest kernel, stride, dilation or pad along an axis.
MAX_EXTENT = 1 << 16


@dataclass(frozen=True)
class ImageAxes:
    """A tensor of ONNX that holds images or signals: (n, c, h, w) or (n, c, l); `last`: with c as last axis."""

    shape: Shape
    last: bool = False

    @property
    def channels(self) -> int:
        return self.shape[-1 if self.last else 1]

    @property
    def points(self) -> Shape:
        """Sizes along the axes that a kernel moves over, as ONNX has them: one or two."""
        return self.shape[1:-1] if self.last else self.shape[2:]

    @property
    def image(self) -> Shape:
        """(n, height, width, channels); a signal is an image of height 1."""
        height, width = pair(self.points, 1)
        return self.shape[0], height, width, self.channels

    def forth(self) -> ShapedOps:
        """Steps from ONNX's order to `image`."""
        steps: ShapedOps = []
        if not self.last:
            axes = (0, *range(2, len(self.shape)), 1)
            steps.append((Transpose(axes), tuple(self.shape[a] for a in axes)))
        return [*steps, (Reshape(), self.image)] if len(self.shape) == 3 else steps

    def back(self, image: Shape) -> ShapedOps:
        """Steps from an image of that shape to ONNX's order."""
        steps: ShapedOps = []
        if len(self.shape) == 3:
            image = (image[0], *image[2:])
            steps.append((Reshape(), image))
        if not self.last:
            axes = (0, len(image) - 1, *range(1, len(image) - 1))
            steps.append((Transpose(axes), tuple(image[a] for a in axes)))
        return steps

    def around(self, steps: ShapedOps) -> ShapedOps:
        """The steps on images with those before and after them; no steps at all if there are none."""
        return [*self.forth(), *steps, *self.back(steps[-1][1])] if steps else []


def image_axes(name: str, shape: Shape, last: bool = False) -> ImageAxes:
    """Raises HG010 for volumes, HG023 for what is no image."""
    if len(shape) > 4:
        raise fail("HG010", name, f"data of shape {list(shape)}: three-dimensional kernels are not supported.")
    if len(shape) < 3:
        raise fail("HG023", name, f"data of shape {list(shape)}.", "An image (4 axes) or a signal (3 axes) is needed.")
    return ImageAxes(shape, last)


def pair(values: Sequence[int], filler: int) -> tuple[int, int]:
    """(height, width) of one or two numbers."""
    return (filler, values[0]) if len(values) == 1 else (values[0], values[1])


def whole(
    name: str, attrs: dict[str, Any], key: str, count: int, default: int, least: int = 1
) -> list[int]:  # fmt: skip
    """`count` whole numbers of an attribute. Raises HG013."""
    given = attrs.get(key)
    values = [default] * count if given is None else [given] * count if isinstance(given, int) else list(given)
    if len(values) != count or not all(isinstance(v, int) and least <= v <= MAX_EXTENT for v in values):
        raise fail(
            "HG013", name, f"attribute {key} is {given}.",
            f"It must be {count} whole numbers from {least} to {MAX_EXTENT}.",
        )  # fmt: skip
    return values


def kernel_of(name: str, attrs: dict[str, Any], points: Shape, weights: Shape | None = None) -> list[int]:
    """kernel_shape, which must be that of the weights and may be missing where there are some. Raises HG013."""
    if "kernel_shape" not in attrs and weights is None:
        raise fail("HG013", name, "attribute kernel_shape is missing.")
    if weights is None:
        return whole(name, attrs, "kernel_shape", len(points), 1)
    if list(attrs.get("kernel_shape", weights)) != list(weights):
        raise fail("HG013", name, f"kernel_shape is {attrs['kernel_shape']} for weights of {list(weights)} points.")
    return whole(name, {"kernel_shape": list(weights)}, "kernel_shape", len(points), 1)


def padding_mode(name: str, attrs: dict[str, Any]) -> str:
    """auto_pad. Raises HG013."""
    mode = attrs.get("auto_pad", "NOTSET") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise fail("HG013", name, f"auto_pad is {mode!r}.", "Supported: NOTSET, VALID, SAME_UPPER, SAME_LOWER.")
    return str(mode)


def explicit_pads(
    name: str, attrs: dict[str, Any], data: ImageAxes, kernel: Sequence[int]
) -> tuple[list[int], list[int]]:  # fmt: skip
    """(begins, ends) of the padding that pads or auto_pad ask for. Raises HG013."""
    count = len(data.points)
    strides, dilations = (whole(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    pads = whole(name, attrs, "pads", 2 * count, 0, 0)
    mode = padding_mode(name, attrs)
    if mode == "NOTSET":
        return pads[:count], pads[count:]
    if mode == "VALID":
        return [0] * count, [0] * count
    split = []
    for size, points, stride, dilation in zip(data.points, kernel, strides, dilations, strict=True):
        positions, reach = -(-size // stride), kernel_reach(points, dilation)
        split.append(pad_split(max((positions - 1) * stride + reach - size, 0), mode))
    return [begin for begin, _ in split], [end for _, end in split]


def window(name: str, attrs: dict[str, Any], data: ImageAxes, kernel: Sequence[int], channels: int) -> Window:
    """The window that strides, dilations, pads, auto_pad and ceil_mode say, for a result of that many channels.

    With ceil_mode, the pads at the bottom and right are what the last windows reach. Raises HG004,
    HG013 or HG023.
    """
    points, count = data.points, len(data.points)
    begins, ends = explicit_pads(name, attrs, data, kernel)
    strides, dilations = (whole(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    if attrs.get("ceil_mode", 0):
        reach = [kernel_reach(k, d) for k, d in zip(kernel, dilations, strict=True)]
        ends = [_rounded_up(points[i], reach[i], strides[i], begins[i], ends[i]) for i in range(count)]
    top_left, bottom_right = pair(begins, 0), pair(ends, 0)
    made = Window(pair(kernel, 1), pair(strides, 1), pair(dilations, 1), (*top_left, *bottom_right))
    n, height, width, _ = data.image
    size = made.size(height, width)
    if min(size) < 1:
        raise fail("HG023", name, f"a kernel of {list(kernel)} points does not fit into {list(points)}.")
    check_size(name, (n, *size, channels))
    return made


def kernel_reach(kernel: int, dilation: int) -> int:
    """Points from the first to the last tap."""
    return (kernel - 1) * dilation + 1


def pad_split(total: int, mode: str) -> tuple[int, int]:
    """(begin, end) of padding; the odd one is at the end for SAME_UPPER."""
    half = total // 2
    return (half, total - half) if mode == "SAME_UPPER" else (total - half, half)


def result_of(data: ImageAxes, place: Window, channels: int) -> Shape:
    """The image behind a window."""
    n, height, width, _ = data.image
    return (n, *place.size(height, width), channels)


def groups_of(name: str, attrs: dict[str, Any], channels: int, own: int, outputs: int) -> int:
    """attribute group, for weights of `own` channels a group (0: not said). Raises HG013 or HG023."""
    groups = attrs.get("group", 1)
    if not isinstance(groups, int) or groups < 1 or outputs % groups:
        raise fail("HG013", name, f"attribute group is {groups} for {outputs} outputs.")
    if own and own * groups != channels:
        raise fail("HG023", name, f"weights for {own} channels in each of {groups} groups, data of {channels}.")
    return groups


def _rounded_up(size: int, reach: int, stride: int, begin: int, end: int) -> int:
    """Padding at the end for a number of positions that is rounded up; none starts behind the data."""
    out = -(-(size + begin + end - reach) // stride) + 1
    if (out - 1) * stride >= size + begin:
        out -= 1
    return max((out - 1) * stride + reach - size - begin, 0)


def covered(size: int, out: int, window: Window, axis: int, margin: tuple[int, int] = (0, 0)) -> Array:
    """Taps of the kernel that lie on the data (and `margin` around it) at each position, int64 (out,)."""
    kernel, step, begin = window.kernel[axis], window.dilations[axis], window.pads[axis]
    start = np.arange(out, dtype=np.int64) * window.strides[axis] - begin + margin[0]
    first = np.maximum(-(start // step), 0)
    last = np.minimum((size + sum(margin) - 1 - start) // step, kernel - 1)
    return np.asarray(np.maximum(last - first + 1, 0))


def elements(shape: Shape) -> int:
    return math.prod(shape)
