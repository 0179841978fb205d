"""Images and windows: ONNX tensors as (n, height, width, channels), kernel attributes as a `Window`."""

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
    """An ONNX tensor of images (n, c, h, w) or signals (n, c, l); `last`: the channels c are the last axis."""

    shape: Shape
    last: bool = False

    @property
    def channels(self) -> int:
        return self.shape[-1 if self.last else 1]

    @property
    def spatial(self) -> Shape:
        """The one or two spatial sizes, in ONNX's order."""
        return self.shape[1:-1] if self.last else self.shape[2:]

    @property
    def image(self) -> Shape:
        """(n, height, width, channels); a signal is an image of height 1."""
        height, width = pair(self.spatial, 1)
        return self.shape[0], height, width, self.channels

    def to_image(self) -> ShapedOps:
        """Steps from ONNX's axis order to `image`."""
        steps: ShapedOps = []
        if not self.last:
            axes = (0, *range(2, len(self.shape)), 1)
            steps.append((Transpose(axes), tuple(self.shape[a] for a in axes)))
        return [*steps, (Reshape(), self.image)] if len(self.shape) == 3 else steps

    def from_image(self, image: Shape) -> ShapedOps:
        """Steps from an image of shape `image` to ONNX's axis order."""
        steps: ShapedOps = []
        if len(self.shape) == 3:
            image = (image[0], *image[2:])
            steps.append((Reshape(), image))
        if not self.last:
            axes = (0, len(image) - 1, *range(1, len(image) - 1))
            steps.append((Transpose(axes), tuple(image[a] for a in axes)))
        return steps

    def on_images(self, steps: ShapedOps) -> ShapedOps:
        """Steps on images, with the conversions from and to ONNX's axis order; empty if `steps` is empty."""
        return [*self.to_image(), *steps, *self.from_image(steps[-1][1])] if steps else []


def image_axes(name: str, shape: Shape, last: bool = False) -> ImageAxes:
    """The axes of an image or signal. Raises HG010 for volumes (5 axes or more), HG023 for fewer than 3 axes."""
    if len(shape) > 4:
        text = f"data of shape {list(shape)} has {len(shape)} axes: three-dimensional kernels are not supported."
        raise fail("HG010", name, text, "Supported: images (4 axes) and signals (3 axes).")
    if len(shape) < 3:
        text = f"data of shape {list(shape)} is no image."
        raise fail("HG023", name, text, "An image (4 axes) or a signal (3 axes) is needed.")
    return ImageAxes(shape, last)


def pair(values: Sequence[int], filler: int) -> tuple[int, int]:
    """(height, width) from one or two numbers; `filler` is the height if there is one."""
    return (filler, values[0]) if len(values) == 1 else (values[0], values[1])


def whole_numbers(name: str, attrs: dict[str, Any], key: str, count: int, default: int, minimum: int = 1) -> list[int]:
    """The `count` integers of an attribute, from `minimum` to MAX_EXTENT. Raises HG013."""
    attribute = attrs.get(key)
    if attribute is None:
        return [default] * count
    values = [attribute] * count if isinstance(attribute, int) else list(attribute)
    if len(values) != count or not all(isinstance(v, int) and minimum <= v <= MAX_EXTENT for v in values):
        hint = f"It must be {count} whole numbers from {minimum} to {MAX_EXTENT}."
        raise fail("HG013", name, f"attribute {key} is {attribute}.", hint)
    return values


def kernel_of(name: str, attrs: dict[str, Any], spatial: Shape, weights: Shape | None = None) -> list[int]:
    """The kernel_shape of a node with data of spatial shape `spatial`.

    `weights`: spatial shape of the weights; kernel_shape must equal it or be missing. Raises HG013.
    """
    if "kernel_shape" not in attrs and weights is None:
        raise fail("HG013", name, "attribute kernel_shape is missing.", "Give the size of the kernel along each axis.")
    if weights is None:
        return whole_numbers(name, attrs, "kernel_shape", len(spatial), 1)
    if list(attrs.get("kernel_shape", weights)) != list(weights):
        text = f"kernel_shape is {attrs['kernel_shape']}, the weights have the kernel {list(weights)}."
        raise fail("HG013", name, text, "Make them equal, or leave kernel_shape out.")
    return whole_numbers(name, {"kernel_shape": list(weights)}, "kernel_shape", len(spatial), 1)


def padding_mode(name: str, attrs: dict[str, Any]) -> str:
    """The value of auto_pad. Raises HG013."""
    mode = attrs.get("auto_pad", "NOTSET") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise fail("HG013", name, f"auto_pad is {mode!r}.", "Supported: NOTSET, VALID, SAME_UPPER, SAME_LOWER.")
    return str(mode)


def explicit_pads(
    name: str, attrs: dict[str, Any], data: ImageAxes, kernel: Sequence[int]
) -> tuple[list[int], list[int]]:
    """(begins, ends) of the padding given by pads or auto_pad. Raises HG013."""
    count = len(data.spatial)
    strides, dilations = (whole_numbers(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    pads = whole_numbers(name, attrs, "pads", 2 * count, 0, 0)
    mode = padding_mode(name, attrs)
    if mode == "NOTSET":
        return pads[:count], pads[count:]
    if mode == "VALID":
        return [0] * count, [0] * count
    split = []
    for size, taps, stride, dilation in zip(data.spatial, kernel, strides, dilations, strict=True):
        positions, reach = -(-size // stride), kernel_reach(taps, dilation)
        split.append(pad_split(max((positions - 1) * stride + reach - size, 0), mode))
    return [begin for begin, _ in split], [end for _, end in split]


def window(name: str, attrs: dict[str, Any], data: ImageAxes, kernel: Sequence[int], channels: int) -> Window:
    """The window given by strides, dilations, pads, auto_pad and ceil_mode, for a result of `channels` channels.

    If ceil_mode is set, the pads at the bottom and right extend to the end of the last window.
    Raises HG004, HG013 or HG023.
    """
    spatial, count = data.spatial, len(data.spatial)
    begins, ends = explicit_pads(name, attrs, data, kernel)
    strides, dilations = (whole_numbers(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    if attrs.get("ceil_mode", 0):
        reach = [kernel_reach(k, d) for k, d in zip(kernel, dilations, strict=True)]
        ends = [_end_of_ceil_mode(spatial[i], reach[i], strides[i], begins[i], ends[i]) for i in range(count)]
    top_left, bottom_right = pair(begins, 0), pair(ends, 0)
    place = Window(pair(kernel, 1), pair(strides, 1), pair(dilations, 1), (*top_left, *bottom_right))
    n, height, width, _ = data.image
    size = place.size(height, width)
    if min(size) < 1:
        text = f"a kernel of {list(kernel)} does not fit into data of {list(spatial)}."
        raise fail("HG023", name, text, "Check kernel_shape, dilations and pads against the data's spatial axes.")
    check_size(name, (n, *size, channels))
    return place


def kernel_reach(kernel: int, dilation: int) -> int:
    """Positions from the first to the last tap, both included."""
    return (kernel - 1) * dilation + 1


def pad_split(total: int, mode: str) -> tuple[int, int]:
    """(begin, end) of `total` padding; an odd element is at the end for SAME_UPPER."""
    half = total // 2
    return (half, total - half) if mode == "SAME_UPPER" else (total - half, half)


def result_of(data: ImageAxes, place: Window, channels: int) -> Shape:
    """The shape of the image after a window."""
    n, height, width, _ = data.image
    return (n, *place.size(height, width), channels)


def groups_of(name: str, attrs: dict[str, Any], channels: int, channels_per_group: int, outputs: int) -> int:
    """The attribute group; `channels_per_group` as the weights have it (0: unknown). Raises HG013 or HG023."""
    groups = attrs.get("group", 1)
    if not isinstance(groups, int) or groups < 1 or outputs % groups:
        text = f"attribute group is {groups} for {outputs} outputs."
        raise fail("HG013", name, text, "It must be 1 or more and divide the number of outputs.")
    if channels_per_group and channels_per_group * groups != channels:
        text = f"weights for {channels_per_group} channels in each of {groups} groups, data of {channels} channels."
        raise fail("HG023", name, text, "The data needs the channels of one group times the number of groups.")
    return groups


def _end_of_ceil_mode(size: int, reach: int, stride: int, begin: int, end: int) -> int:
    """Padding at the end if the number of positions is rounded up; no window starts after the data."""
    positions = -(-(size + begin + end - reach) // stride) + 1
    if (positions - 1) * stride >= size + begin:
        positions -= 1
    return max((positions - 1) * stride + reach - size - begin, 0)


def covered(size: int, out: int, window: Window, axis: int, margin: tuple[int, int] = (0, 0)) -> Array:
    """Number of kernel taps on the data (and `margin` around it) at each position, int64 (out,)."""
    kernel, step, begin = window.kernel[axis], window.dilations[axis], window.pads[axis]
    start = np.arange(out, dtype=np.int64) * window.strides[axis] - begin + margin[0]
    first = np.maximum(-(start // step), 0)
    last = np.minimum((size + sum(margin) - 1 - start) // step, kernel - 1)
    return np.asarray(np.maximum(last - first + 1, 0))


def elements(shape: Shape) -> int:
    return math.prod(shape)
