"""ConvTranspose as a convolution: every phase of the stride is a set of outputs, then put side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import (
    ImageAxes,
    elements,
    groups_of,
    kernel_of,
    kernel_reach,
    pad_split,
    padding_mode,
    result_of,
    whole,
)
from hlsgen.frontend.constant_folding import MAX_ELEMENTS, Const, check_size
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir import Conv, Reshape, Shape, Slice, Transpose
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class Axis:
    """A transposed convolution along one axis: output q - begin gets tap k of input i where i * stride + k * dilation = q.

    With q = m * stride + phase, tap k belongs to phase k * dilation mod stride and input m - shift.
    """

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    begin: int

    @property
    def last(self) -> int:
        """Largest shift of an input."""
        return (kernel_reach(self.kernel, self.dilation) - 1) // self.stride

    @property
    def taps(self) -> int:
        """Taps of the kernel of a phase."""
        return self.kernel if self.stride == 1 else self.last + 1

    @property
    def spacing(self) -> int:
        """Its dilation."""
        return self.dilation if self.stride == 1 else 1

    def place(self, k: int) -> tuple[int, int]:
        """(phase, tap of that phase) of a tap."""
        if self.stride == 1:
            return 0, self.kernel - 1 - k
        return k * self.dilation % self.stride, self.last - k * self.dilation // self.stride

    @property
    def pads(self) -> tuple[int, int]:
        """Padding in front and behind, so that every m that an output needs is there."""
        first, last = self.begin // self.stride, (self.begin + self.out - 1) // self.stride
        return max(self.last - first, 0), max(last - self.size + 1, 0)

    @property
    def start(self) -> int:
        """First output among all phases of all m."""
        return self.begin - (self.last - self.pads[0]) * self.stride


def transposed_ops(name: str, data: ImageAxes, weights: Const, attrs: dict[str, Any]) -> ShapedOps:
    """Operations on images, in channels-last order, from weights (channels, outputs / groups, points...).

    Raises HG004, HG013 or HG023.
    """
    form = weights.array.shape
    if len(form) != len(data.shape) or not elements(form):
        raise fail("HG023", name, f"weights of shape {list(form)} for data of shape {list(data.shape)}.")
    groups = groups_of(name, attrs, data.channels, 0, data.channels)
    if form[0] != data.channels:
        raise fail("HG023", name, f"weights for {form[0]} channels, data of {data.channels}.")
    kernel = kernel_of(name, attrs, data.points, form[2:])
    axes = _axes(name, data, kernel, attrs)
    height, width = axes
    own, inner = form[1], form[0] // groups
    outputs = groups * own * height.stride * width.stride
    if outputs * height.taps * width.taps * inner > MAX_ELEMENTS:
        raise fail("HG004", name, f"a convolution of {outputs} outputs for all phases of the stride.")

    def change(part: Array) -> Array:
        apart = part.reshape(groups, inner, own, height.kernel, width.kernel)
        return np.ascontiguousarray(apart.transpose(0, 2, 3, 4, 1)).reshape(groups * own, -1)

    codes, scale = integer_weights(name, weights.map(change))
    weight = _phases(codes.reshape(groups, own, height.kernel, width.kernel, inner), axes)
    spread = np.repeat(scale.reshape(groups, 1, own), height.stride * width.stride, axis=1).reshape(-1)
    (top, bottom), (left, right) = height.pads, width.pads
    window = Window(weight.shape[1:3], (1, 1), (height.spacing, width.spacing), (top, left, bottom, right))
    result = result_of(data, window, outputs)
    check_size(name, result)
    return [(Conv(weight, spread, window, groups), result), *_side_by_side(result, axes, groups, own)]


def _axes(name: str, data: ImageAxes, kernel: list[int], attrs: dict[str, Any]) -> tuple[Axis, Axis]:
    count = len(data.points)
    strides, dilations = (whole(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    extra = whole(name, attrs, "output_padding", count, 0, 0)
    pads = whole(name, attrs, "pads", 2 * count, 0, 0)
    mode = padding_mode(name, attrs)
    asked = list(attrs.get("output_shape", []))[-count:]
    if not asked and mode.startswith("SAME"):
        asked = [size * stride for size, stride in zip(data.points, strides, strict=True)]
    found = []
    for i, size in enumerate(data.points):
        full = (size - 1) * strides[i] + extra[i] + kernel_reach(kernel[i], dilations[i])
        begin, end = (pads[i], pads[i + count]) if mode == "NOTSET" else (0, 0)
        if asked:
            begin, end = pad_split(full - asked[i], "SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER")
        out = full - begin - end
        if out < 1 or min(begin, end) < 0:
            raise fail(
                "HG013", name, f"an output of {asked[i] if asked else out} points along an axis, of {full} without pads.",
                "It must be at least 1 and not more than without pads.",
            )  # fmt: skip
        found.append(Axis(size, out, kernel[i], strides[i], dilations[i], begin))
    return (Axis(1, 1, 1, 1, 1, 0), found[0]) if count == 1 else (found[0], found[1])


def _phases(codes: Array, axes: tuple[Axis, Axis]) -> Array:
    """(groups * phases * outputs of a group, taps, taps, channels of a group) of the codes of all taps."""
    groups, own, *_, inner = codes.shape
    height, width = axes
    weight = np.zeros((groups, height.stride, width.stride, own, height.taps, width.taps, inner), np.int64)
    for y in range(height.kernel):
        for x in range(width.kernel):
            (down, row), (right, column) = height.place(y), width.place(x)
            weight[:, down, right, :, row, column] = codes[:, :, y, x]
    return weight.reshape(-1, height.taps, width.taps, inner)


def _side_by_side(shape: Shape, axes: tuple[Axis, Axis], groups: int, own: int) -> ShapedOps:
    """The phases of every position as pixels beside each other, and of these the wanted ones."""
    n, rows, columns, _ = shape
    height, width = axes
    steps: ShapedOps = []
    full = (n, rows * height.stride, columns * width.stride, groups * own)
    if height.stride * width.stride > 1:
        apart = (n, rows, columns, groups, height.stride, width.stride, own)
        order = (0, 1, 4, 2, 5, 3, 6)
        steps = [(Reshape(), apart), (Transpose(order), tuple(apart[a] for a in order)), (Reshape(), full)]
    result = (n, height.out, width.out, full[3])
    if result != full:
        starts, ends = (0, height.start, width.start, 0), (n, height.start + height.out, width.start + width.out)
        ranges = tuple((a, b, 1) for a, b in zip(starts, (*ends, full[3]), strict=True))
        steps.append((Slice(ranges), result))
    return steps
