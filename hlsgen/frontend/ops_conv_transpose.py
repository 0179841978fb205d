"""ConvTranspose as a convolution whose outputs are the phases of the stride, interleaved afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend import channels_last
from hlsgen.frontend.constant_folding import MAX_ELEMENTS, Const, check_size
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir import Conv, Reshape, Shape, Slice, Transpose
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class Axis:
    """A transposed convolution along one axis: output q - begin adds tap k of input i if i * stride + k * dilation = q.

    For q = m * stride + phase, tap k belongs to phase k * dilation mod stride and to input m - shift.
    `size`, `out`: elements of the data and of the result; `begin`: elements cut off at the beginning.
    """

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    begin: int

    @property
    def max_shift(self) -> int:
        """Largest shift of an input."""
        return (channels_last.kernel_reach(self.kernel, self.dilation) - 1) // self.stride

    @property
    def taps(self) -> int:
        """Number of taps of a phase."""
        return self.kernel if self.stride == 1 else self.max_shift + 1

    @property
    def spacing(self) -> int:
        """Dilation of the kernel of a phase."""
        return self.dilation if self.stride == 1 else 1

    def place(self, k: int) -> tuple[int, int]:
        """(phase, number of the tap within the phase) of tap k."""
        if self.stride == 1:
            return 0, self.kernel - 1 - k
        return k * self.dilation % self.stride, self.max_shift - k * self.dilation // self.stride

    @property
    def pads(self) -> tuple[int, int]:
        """Padding (begin, end) that adds every m that an output needs."""
        first, last = self.begin // self.stride, (self.begin + self.out - 1) // self.stride
        return max(self.max_shift - first, 0), max(last - self.size + 1, 0)

    @property
    def start(self) -> int:
        """Index of the first output among all phases of all m."""
        return self.begin - (self.max_shift - self.pads[0]) * self.stride


def transposed_ops(name: str, data: channels_last.ImageAxes, weights: Const, attrs: dict[str, Any]) -> ShapedOps:
    """Operations on images, in channels-last order, from weights (channels, outputs / groups, kernel...).

    Raises HG004, HG013 or HG023.
    """
    weight_shape = weights.array.shape
    if len(weight_shape) != len(data.shape) or not channels_last.elements(weight_shape):
        text = f"weights of shape {list(weight_shape)} do not fit data of shape {list(data.shape)}."
        raise fail("HG023", name, text, "Both need equally many axes, and the weights must not be empty.")
    groups = channels_last.groups_of(name, attrs, data.channels, 0, data.channels)
    if weight_shape[0] != data.channels:
        text = f"weights for {weight_shape[0]} channels, data of {data.channels} channels."
        raise fail("HG023", name, text, "Axis 0 of the weights must equal the channels of the data.")
    kernel = channels_last.kernel_of(name, attrs, data.spatial, weight_shape[2:])
    axes = _axes(name, data, kernel, attrs)
    height, width = axes
    group_outputs, group_inputs = weight_shape[1], weight_shape[0] // groups
    outputs = groups * group_outputs * height.stride * width.stride
    if outputs * height.taps * width.taps * group_inputs > MAX_ELEMENTS:
        text = f"the equivalent convolution with {outputs} outputs, for all phases of the stride, has too many weights."
        raise fail("HG004", name, text, f"At most {MAX_ELEMENTS} are supported: use smaller strides.")

    def to_matrix(part: Array) -> Array:
        by_group = part.reshape(groups, group_inputs, group_outputs, height.kernel, width.kernel)
        return np.ascontiguousarray(by_group.transpose(0, 2, 3, 4, 1)).reshape(groups * group_outputs, -1)

    codes, scale = integer_weights(name, weights.map(to_matrix))
    weight = phases(codes.reshape(groups, group_outputs, height.kernel, width.kernel, group_inputs), axes)
    scales = np.repeat(scale.reshape(groups, 1, group_outputs), height.stride * width.stride, axis=1).reshape(-1)
    pads = (height.pads[0], width.pads[0], height.pads[1], width.pads[1])
    window = Window(weight.shape[1:3], (1, 1), (height.spacing, width.spacing), pads)
    result = channels_last.result_of(data, window, outputs)
    check_size(name, result)
    return [(Conv(weight, scales, window, groups), result), *interleaved(result, axes, groups, group_outputs)]


def _axes(name: str, data: channels_last.ImageAxes, kernel: list[int], attrs: dict[str, Any]) -> tuple[Axis, Axis]:
    """The axes (height, width) by strides, dilations, pads, auto_pad, output_padding, output_shape. Raises HG013."""
    count = len(data.spatial)
    strides, dilations = (channels_last.whole_numbers(name, attrs, key, count, 1) for key in ("strides", "dilations"))
    extra = channels_last.whole_numbers(name, attrs, "output_padding", count, 0, 0)
    pads = channels_last.whole_numbers(name, attrs, "pads", 2 * count, 0, 0)
    mode = channels_last.padding_mode(name, attrs)
    output_shape = list(attrs.get("output_shape", []))[-count:]
    if not output_shape and mode.startswith("SAME"):
        output_shape = [size * stride for size, stride in zip(data.spatial, strides, strict=True)]
    axes = []
    for i, size in enumerate(data.spatial):
        full = (size - 1) * strides[i] + extra[i] + channels_last.kernel_reach(kernel[i], dilations[i])
        begin, end = (pads[i], pads[i + count]) if mode == "NOTSET" else (0, 0)
        if output_shape:
            begin, end = channels_last.pad_split(
                full - output_shape[i], "SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER"
            )
        out = full - begin - end
        if out < 1 or min(begin, end) < 0:
            length = output_shape[i] if output_shape else out
            text = f"the result has {length} elements along spatial axis {i}, and {full} without pads."
            raise fail("HG013", name, text, "It must have at least 1 and not more than without pads.")
        axes.append(Axis(size, out, kernel[i], strides[i], dilations[i], begin))
    return (Axis(1, 1, 1, 1, 1, 0), axes[0]) if count == 1 else (axes[0], axes[1])


def phases(codes: Array, axes: tuple[Axis, Axis]) -> Array:
    """The weights of all phases, (groups * phases * outputs of a group, taps, taps, channels of a group).

    `codes`: (groups, outputs of a group, kernel height, kernel width, channels of a group).
    """
    groups, group_outputs, *_, group_inputs = codes.shape
    height, width = axes
    phases_shape = (groups, height.stride, width.stride, group_outputs, height.taps, width.taps, group_inputs)
    weight = np.zeros(phases_shape, np.int64)
    for y in range(height.kernel):
        for x in range(width.kernel):
            (row_phase, row), (column_phase, column) = height.place(y), width.place(x)
            weight[:, row_phase, column_phase, :, row, column] = codes[:, :, y, x]
    return weight.reshape(-1, height.taps, width.taps, group_inputs)


def interleaved(shape: Shape, axes: tuple[Axis, Axis], groups: int, group_outputs: int) -> ShapedOps:
    """Operations from the phases of every position to pixels, cut to the result."""
    n, rows, columns, _ = shape
    height, width = axes
    steps: ShapedOps = []
    full = (n, rows * height.stride, columns * width.stride, groups * group_outputs)
    if height.stride * width.stride > 1:
        phases = (n, rows, columns, groups, height.stride, width.stride, group_outputs)
        order = (0, 1, 4, 2, 5, 3, 6)
        steps = [(Reshape(), phases), (Transpose(order), tuple(phases[a] for a in order)), (Reshape(), full)]
    result = (n, height.out, width.out, full[3])
    if result != full:
        starts, ends = (0, height.start, width.start, 0), (n, height.start + height.out, width.start + width.out)
        ranges = tuple((a, b, 1) for a, b in zip(starts, (*ends, full[3]), strict=True))
        steps.append((Slice(ranges), result))
    return steps
