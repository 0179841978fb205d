"""Random small TFLite files by kind and seed: one operator each, or a network, with codes for some frames."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tflite_writer import Writer

Array = np.ndarray
Shape = tuple[int, ...]
#: First and last code of each type.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
#: Frames of a file.
FRAMES = 4
_ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


@dataclass(frozen=True)
class RandomFile:
    """data: the bytes, and `writer` their parts. frames: for each frame the elements of each input."""

    data: bytes
    writer: Writer
    frames: list[list[Array]]


class Choices:
    """Random choices of one seed, and the file that they fill."""

    def __init__(self, kind: str, seed: int) -> None:
        self.rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
        self.writer = Writer()
        self.graph = self.writer.graph()
        _, _, form = kind.partition(":")
        self.type = form if form in CODES else "int8"

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def scale(self, low: float = -8, high: float = 0) -> np.float32:
        """A power of two with an exponent between the two."""
        return np.float32(2.0 ** self.rng.uniform(low, high))

    def scaled(self, scale: float, low: float, high: float) -> np.float32:
        return np.float32(float(scale) * 2.0 ** self.rng.uniform(low, high))

    def input_scale(self) -> np.float32:
        return self.scale(-14, -9) if self.type == "int16" else self.scale()

    def zero(self, type: str = "") -> int:
        type = type or self.type
        if type == "int16":
            return 0
        low, high = CODES[type]
        middle = (low + high) // 2
        options = (self.int(low, high), self.int(middle - 20, middle + 20), low, 0 if low < 0 else 128)
        return options[self.int(0, 3)]

    def codes(self, shape: Sequence[int], type: str = "") -> Array:
        low, high = CODES[type or self.type]
        return self.rng.integers(low, high + 1, tuple(shape)).astype(type or self.type)

    def image(self) -> Shape:
        return (2 if self.int(0, 3) == 0 else 1, self.int(1, 9), self.int(1, 9), self.int(1, 8))

    def tensor(self, shape: Sequence[int], scale: object = None, zero: object = None, data: Array | None = None) -> int:
        """A tensor of the file's type, with a random scale and zero point unless they are given."""
        return self.graph.tensor(
            shape,
            self.type,
            self.input_scale() if scale is None else scale,
            self.zero() if zero is None else zero,
            data=data,
        )

    def like(self, number: int, shape: Sequence[int]) -> int:
        """A tensor with another one's scale and zero point."""
        model = self.graph.tensors[number]
        return self.graph.tensor(shape, model.type, model.scale, model.zero_point)

    def shape(self, number: int) -> Shape:
        return self.graph.tensors[number].shape

    def scale_of(self, number: int) -> float:
        scale = self.graph.tensors[number].scale
        assert scale is not None
        return float(np.max(scale))

    def finish(
        self, inputs: Sequence[int], outputs: Sequence[int], frames: list[list[Array]] | None = None
    ) -> RandomFile:
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)
        tensors = [self.graph.tensors[n] for n in inputs]
        rows = frames or [[self.codes(t.shape, t.type) for t in tensors] for _ in range(FRAMES)]
        return RandomFile(self.writer.bytes(), self.writer, rows)


def _output_scale(c: Choices, x: int, weights: int, depth: int) -> np.float32:
    """A scale with which the sums of random codes fill about the range."""
    span = 15000.0 if c.type == "int16" else 60.0
    amplitude = 74.0 * (19000.0 if c.type == "int16" else 74.0)
    return c.scaled(c.scale_of(x) * c.scale_of(weights) * amplitude * np.sqrt(depth) / span, -2, 1.5)


def _weights(c: Choices, shape: Shape, axis: int, channels: bool) -> int:
    """Constant weights; channels: one scale for each."""
    if c.type == "uint8":
        return c.graph.tensor(shape, "uint8", c.scale(-10, -5), c.int(100, 156), data=c.rng.integers(0, 256, shape))
    scale = 2.0 ** c.rng.uniform(-10, -5, shape[axis]) if channels else c.scale(-10, -5)
    return c.graph.tensor(shape, "int8", scale, data=c.rng.integers(-127, 128, shape), axis=axis)


def _bias(c: Choices, x: int, weights: int, channels: int) -> int:
    scale = c.graph.tensors[weights].scale
    high = 1 << (22 if c.type == "int16" else 14)
    kind = "int64" if c.type == "int16" else "int32"
    data = c.rng.integers(-high, high, channels)
    return c.graph.tensor((channels,), kind, np.float64(c.scale_of(x)) * np.atleast_1d(scale), data=data)


def _window(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    return -(-size // stride) if padding == "SAME" else (size - (kernel - 1) * dilation - 1) // stride + 1


def _dense(c: Choices, x: int, activation: str) -> int:
    shape, units = c.shape(x), c.int(1, 20)
    weights = _weights(c, (units, shape[-1]), 0, c.type != "uint8" and c.int(0, 2) > 0)
    bias = _bias(c, x, weights, units) if c.int(0, 4) or c.type == "int16" else -1
    y = c.tensor((int(np.prod(shape[:-1])), units), _output_scale(c, x, weights, shape[-1]))
    return c.graph.operator("FULLY_CONNECTED", [x, weights, bias], [y], fused_activation_function=activation)


def _conv(c: Choices, kind: str, x: int, activation: str) -> int:
    """CONV_2D, DEPTHWISE_CONV_2D or TRANSPOSE_CONV of any kernel, stride, dilation and padding that fit."""
    frames, height, width, depth = c.shape(x)
    kh, kw = c.int(1, min(4, height)), c.int(1, min(4, width))
    sh = (1, 1, 2, 3)[c.int(0, 3)]
    sw = sh if kind == "DEPTHWISE_CONV_2D" or c.int(0, 1) else c.int(1, 2)
    dilated = sh == sw == 1 and kind != "TRANSPOSE_CONV"
    dh, dw = (c.int(1, 2), c.int(1, 2)) if dilated else (1, 1)
    padding = ("SAME", "VALID")[c.int(0, 1)]
    if (kh - 1) * dh + 1 > height or (kw - 1) * dw + 1 > width:
        padding = "SAME"
    multiplier = (1, 1, 2, 3)[c.int(0, 3)]
    by_channel = c.type != "uint8" and c.int(0, 2) > 0
    options: dict[str, object] = {"padding": padding, "stride_h": sh, "stride_w": sw}
    if kind == "DEPTHWISE_CONV_2D":
        channels, summed = depth * multiplier, kh * kw
        weights = _weights(c, (1, kh, kw, channels), 3, by_channel)
        options["depth_multiplier"] = multiplier
    else:
        channels, summed = c.int(1, 12), kh * kw * depth
        weights = _weights(c, (channels, kh, kw, depth), 0, by_channel)
    scale = _output_scale(c, x, weights, summed)
    bias = _bias(c, x, weights, channels)
    if kind == "TRANSPOSE_CONV":
        shape = (
            frames,
            height * sh if padding == "SAME" else (height - 1) * sh + kh,
            width * sw if padding == "SAME" else (width - 1) * sw + kw,
        )
        y = c.tensor((*shape, channels), scale)
        return c.graph.operator(kind, [c.graph.integers((*shape, channels)), weights, x, bias], [y], **options)
    options.update(dilation_h_factor=dh, dilation_w_factor=dw, fused_activation_function=activation)
    out = (_window(height, kh, sh, dh, padding), _window(width, kw, sw, dw, padding))
    y = c.tensor((frames, *out, channels), scale)
    return c.graph.operator(kind, [x, weights, bias], [y], **options)


def _weighted(c: Choices, kind: str) -> RandomFile:
    x = c.tensor((c.int(1, 3), c.int(1, 70)) if kind == "FULLY_CONNECTED" else c.image())
    activation = _ACTIVATIONS[c.int(0, 4)]
    y = _dense(c, x, activation) if kind == "FULLY_CONNECTED" else _conv(c, kind, x, activation)
    return c.finish([x], [y])


def _two(c: Choices, kind: str, a: int, constant: bool) -> tuple[int, int]:
    """ADD, SUB or MUL with a second operand: (output, second operand)."""
    shape = c.shape(a)
    form = c.int(0, 4)
    second: Shape = shape
    if form >= 2:
        spatial = tuple(1 if axis in (1, 2) else size for axis, size in enumerate(shape))
        second = ((1,), (shape[-1],), spatial)[form - 2]
    scale = c.scaled(c.scale_of(a), -3, 3)
    b = c.tensor(second, scale, data=c.codes(second) if constant else None)
    if kind == "MUL":
        out = c.scaled(c.scale_of(a) * float(scale) * (256 if c.type == "int16" else 1), 4, 7)
    else:
        out = c.scaled(max(c.scale_of(a), float(scale)), -1, 1.5)
    y = c.tensor(shape, out)
    options: dict[str, object] = {"fused_activation_function": _ACTIVATIONS[c.int(0, 4)]}
    if kind != "MUL" and c.type == "int16":
        options["pot_scale_int16"] = 0
    c.graph.operator(kind, [a, b] if c.int(0, 1) else [b, a], [y], **options)
    return y, b


def _binary(c: Choices, kind: str) -> RandomFile:
    a = c.tensor(c.image())
    constant = c.int(0, 2) == 0
    y, b = _two(c, kind, a, constant)
    return c.finish([a] if constant else [a, b], [y])


def _pool(c: Choices, kind: str) -> RandomFile:
    frames, height, width, depth = shape = c.image()
    x = c.tensor(shape)
    kh, kw, sh, sw = c.int(1, height), c.int(1, width), c.int(1, 3), c.int(1, 3)
    padding = ("SAME", "VALID")[c.int(0, 1)]
    y = c.like(x, (frames, _window(height, kh, sh, 1, padding), _window(width, kw, sw, 1, padding), depth))
    activation = _ACTIVATIONS[c.int(0, 3)]
    c.graph.operator(
        kind,
        [x],
        [y],
        padding=padding,
        stride_h=sh,
        stride_w=sw,
        filter_height=kh,
        filter_width=kw,
        fused_activation_function=activation,
    )
    return c.finish([x], [y])


def _mean(c: Choices, kind: str) -> RandomFile:
    shape = c.image()
    x = c.tensor(shape)
    axes = ([1, 2], [2, 1], [3], [1], [1, 2, 3])[c.int(0, 4)]
    keep = c.int(0, 1)
    reduced = [1 if n in axes else size for n, size in enumerate(shape)]
    y = c.tensor(
        reduced if keep else [size for n, size in enumerate(shape) if n not in axes], c.scaled(c.scale_of(x), -2, 0.5)
    )
    c.graph.operator(kind, [x, c.graph.integers(axes)], [y], keep_dims=keep)
    return c.finish([x], [y])


def _function(c: Choices, kind: str) -> RandomFile:
    """A function of one code; with 8 bits the first frame has all codes."""
    byte_codes = c.type != "int16"
    shape = (1, 256) if byte_codes else (c.int(1, 3), 1, c.int(1, 20), c.int(1, 30))
    scale, zero, out = c.input_scale(), c.zero(), 0.0
    options: dict[str, object] = {}
    out_zero = c.zero()
    if kind in ("LOGISTIC", "TANH"):
        fractions = {"LOGISTIC": (256, -128, 0), "TANH": (128, 0, 128)}[kind]
        out = 1 / 32768 if c.type == "int16" else 1 / fractions[0]
        out_zero = {"int8": fractions[1], "uint8": fractions[2], "int16": 0}[c.type]
        if byte_codes:
            scale = scale if c.int(0, 1) else c.scale(-7, -3)
        else:
            scale = (np.float32(2.0**-12), c.scale(-14, -11))[c.int(0, 1)]
    elif kind == "HARD_SWISH":
        scale = c.scale(-7, -3)
        out = max(c.scaled(scale, -1, 0.5), np.float32(float(scale) / 127))
    else:
        out = c.scaled(scale, -1, 1)
        if kind == "LEAKY_RELU":
            options["alpha"] = float(np.float32((0.1, 0.3, 0.01, c.rng.uniform(0, 1.5), -0.2)[c.int(0, 4)]))
    x = c.tensor(shape, scale, zero)
    y = c.tensor(shape, np.float32(out), out_zero)
    c.graph.operator(kind, [x], [y], **options)
    frames = [[c.codes(shape)] for _ in range(FRAMES)]
    if byte_codes:
        low, high = CODES[c.type]
        frames[0] = [np.arange(low, high + 1).astype(c.type).reshape(shape)]
    return c.finish([x], [y], frames)


def steep_function(kind: str, scale: float) -> RandomFile:
    """LOGISTIC or TANH of all int8 codes with a large scale."""
    c, shape = Choices(kind, 0), (1, 256)
    x = c.tensor(shape, np.float32(scale), 3)
    y = c.tensor(shape, *{"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}[kind])
    c.graph.operator(kind, [x], [y])
    return c.finish([x], [y], [[np.arange(-128, 128).astype(np.int8).reshape(shape)]])


def prelu_before_layer() -> RandomFile:
    """PRELU with a slope for each channel, then CONV_2D."""
    c, shape = Choices("PRELU", 0), (1, 6, 6, 5)
    x = c.tensor(shape)
    alpha = c.graph.tensor((1, 1, 5), "int8", c.scale(-9, -6), c.zero(), data=c.codes((1, 1, 5)))
    y = c.tensor(shape, c.scaled(c.scale_of(x), -1, 1))
    c.graph.operator("PRELU", [x, alpha], [y])
    return c.finish([x], [_conv(c, "CONV_2D", y, "NONE")])


def _softmax(c: Choices, kind: str, form: str = "") -> RandomFile:
    """SOFTMAX of codes of one type, or with the form 8to16 of int8 codes to int16 codes."""
    shape = (c.int(1, 4), (1, 2, 3, 10, 60)[c.int(0, 4)])
    x = c.tensor(shape, c.scale(-14, -9) if c.type == "int16" else c.scale(-7, 0))
    scale, zero = (1 / 32768, 0) if c.type == "int16" else (1 / 256, CODES[c.type][0])
    if form == "8to16":
        y = c.graph.tensor(shape, "int16", np.float32(1 / 65536), CODES["int16"][0])
    else:
        y = c.tensor(shape, np.float32(scale), zero)
    c.graph.operator(kind, [x], [y], beta=(1.0, 1.0, 0.5, 1.7)[c.int(0, 3)])
    return c.finish([x], [y])


def _prelu(c: Choices, kind: str) -> RandomFile:
    shape = c.image()
    x = c.tensor(shape)
    slope = (1, 1, shape[3])
    type = "int8" if c.type == "int16" else c.type
    alpha = c.graph.tensor(slope, type, c.scale(-9, -6), c.zero(type), data=c.codes(slope, type))
    y = c.tensor(shape, c.scaled(c.scale_of(x), -1, 1))
    c.graph.operator(kind, [x, alpha], [y])
    return c.finish([x], [y])


#: Types of input and output of QUANTIZE, by the kind's form.
_QUANTIZE = {
    "int8": ("int8", "int8"),
    "f": ("float32", "int8"),
    "f16": ("float32", "int16"),
    "fu": ("float32", "uint8"),
    "u8": ("int8", "uint8"),
    "8u": ("uint8", "int8"),
    "16": ("int16", "int8"),
    "8to16": ("int8", "int16"),
    "16to16": ("int16", "int16"),
    "uu": ("uint8", "uint8"),
    "u16": ("uint8", "int16"),
    "16u": ("int16", "uint8"),
}


def _quantize(c: Choices, kind: str, form: str) -> RandomFile:
    source, target = _QUANTIZE[form or "int8"]
    shape = (1, 2, c.int(1, 10), c.int(1, 40))
    scale = c.scale(-6, 0)
    if source == "float32":
        x = c.graph.tensor(shape, source)
    else:
        x = c.graph.tensor(shape, source, scale if c.int(0, 3) == 0 else c.scaled(scale, -3, 3), c.zero(source))
    y = c.graph.tensor(shape, target, scale, c.zero(target))
    c.graph.operator(kind, [x], [y])
    if source != "float32":
        return c.finish([x], [y])
    frames = [[(c.rng.normal(0, 60, shape) * float(scale)).astype(np.float32)] for _ in range(FRAMES)]
    size = frames[0][0].size
    ties = (np.arange(size) - size // 2 + 0.5).astype(np.float32) * scale
    frames[0] = [ties.reshape(shape)]
    return c.finish([x], [y], frames)


def _dequantize(c: Choices, kind: str) -> RandomFile:
    shape = (1, c.int(1, 40))
    x, y = c.tensor(shape), c.graph.tensor(shape, "float32")
    c.graph.operator(kind, [x], [y])
    return c.finish([x], [y])


def _resize(c: Choices, kind: str) -> RandomFile:
    frames, _, _, depth = shape = c.image()
    size = (c.int(1, 15), c.int(1, 15))
    x = c.tensor(shape)
    y = c.like(x, (frames, *size, depth))
    aligned, half = ((0, 0), (1, 0), (0, 1))[c.int(0, 2)]
    c.graph.operator(kind, [x, c.graph.integers(size)], [y], align_corners=aligned, half_pixel_centers=half)
    return c.finish([x], [y])


def _concatenation(c: Choices, kind: str) -> RandomFile:
    shape, axis = list(c.image()), c.int(1, 3)
    inputs = [c.tensor(shape)]
    for _ in range(c.int(1, 3)):
        inputs.append(c.like(inputs[0], [c.int(1, 5) if n == axis else size for n, size in enumerate(shape)]))
    shape[axis] = sum(c.shape(n)[axis] for n in inputs)
    y = c.like(inputs[0], shape)
    c.graph.operator(kind, inputs, [y], axis=axis - 4 * c.int(0, 1))
    return c.finish(inputs, [y])


def _pad(c: Choices, kind: str) -> RandomFile:
    shape = c.image()
    pads = np.array([[0, 0], *([c.int(0, 3), c.int(0, 3)] for _ in range(3))])
    x = c.tensor(shape)
    y = c.like(x, [size + int(pair.sum()) for size, pair in zip(shape, pads, strict=True)])
    inputs = [x, c.graph.integers(pads)]
    if kind == "PADV2":
        image = c.graph.tensors[x]
        inputs.append(c.tensor((1,), image.scale, image.zero_point, c.codes((1,))))
    c.graph.operator(kind, inputs, [y])
    return c.finish([x], [y])


def _strided_slice(c: Choices, kind: str) -> RandomFile:
    shape = c.image()
    begins, ends, strides, sizes = [], [], [], []
    mask = 0
    for axis, size in enumerate(shape):
        stride = (1, 1, 2, -1)[c.int(0, 3)] if axis else 1
        low = c.int(0, size - 1)
        high = c.int(low, size - 1)
        begin, end = (low, high + 1) if stride > 0 else (high, low - 1 if low else -size - 1)
        first = begin
        if c.int(0, 3) == 0:
            mask |= 1 << axis
            first = 0 if stride > 0 else size - 1
        begins.append(begin)
        ends.append(end)
        strides.append(stride)
        sizes.append(len(range(first, high + 1 if stride > 0 else low - 1, stride)))
    x = c.tensor(shape)
    y = c.like(x, sizes)
    c.graph.operator(kind, [x, *map(c.graph.integers, (begins, ends, strides))], [y], begin_mask=mask)
    return c.finish([x], [y])


def _split(c: Choices, kind: str) -> RandomFile:
    shape, axis, parts = list(c.image()), c.int(1, 3), c.int(2, 3)
    sizes = [c.int(1, 4) for _ in range(parts)] if kind == "SPLIT_V" else [c.int(1, 4)] * parts
    shape[axis] = sum(sizes)
    x = c.tensor(shape)
    outputs = [c.like(x, [part if n == axis else size for n, size in enumerate(shape)]) for part in sizes]
    if kind == "SPLIT":
        c.graph.operator(kind, [c.graph.integers(axis), x], outputs, num_splits=parts)
    else:
        inputs = [x, c.graph.integers(sizes), c.graph.integers([axis])]
        c.graph.operator(kind, inputs, outputs, num_splits=parts)
    return c.finish([x], outputs)


def _slice(c: Choices, kind: str) -> RandomFile:
    """A part of each axis; a size of -1 is the rest."""
    shape = c.image()
    begins = [c.int(0, size - 1) for size in shape]
    sizes = [c.int(1, size - begin) for size, begin in zip(shape, begins, strict=True)]
    written = [-1 if b + s == n and c.int(0, 1) else s for b, s, n in zip(begins, sizes, shape, strict=True)]
    x = c.tensor(shape)
    y = c.like(x, sizes)
    c.graph.operator(kind, [x, c.graph.integers(begins), c.graph.integers(written)], [y])
    return c.finish([x], [y])


def _gather(c: Choices, kind: str) -> RandomFile:
    """Elements of an axis in any order, some of them more than once; the indices have one axis or none."""
    shape, axis = c.image(), c.int(0, 3)
    count = c.int(0, 6)
    indices = c.rng.integers(0, shape[axis], (count,) if count else ())
    x = c.tensor(shape)
    y = c.like(x, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    c.graph.operator(kind, [x, c.graph.integers(indices)], [y], axis=axis - 4 * c.int(0, 1))
    return c.finish([x], [y])


def _pack(c: Choices, kind: str) -> RandomFile:
    shape, axis, count = c.image()[1:], c.int(0, 3), c.int(1, 3)
    inputs = [c.tensor(shape)]
    inputs += [c.like(inputs[0], shape) for _ in range(count - 1)]
    y = c.like(inputs[0], (*shape[:axis], count, *shape[axis:]))
    c.graph.operator(kind, inputs, [y], values_count=count, axis=axis - 4 * c.int(0, 1))
    return c.finish(inputs, [y])


def _unpack(c: Choices, kind: str) -> RandomFile:
    shape, axis = list(c.image()), c.int(0, 3)
    shape[axis] = c.int(1, 4)
    x = c.tensor(shape)
    outputs = [c.like(x, [*shape[:axis], *shape[axis + 1 :]]) for _ in range(shape[axis])]
    c.graph.operator(kind, [x], outputs, num=len(outputs), axis=axis - 4 * c.int(0, 1))
    return c.finish([x], outputs)


def _transpose(c: Choices, kind: str) -> RandomFile:
    shape, order = c.image(), [int(n) for n in c.rng.permutation(4)]
    x = c.tensor(shape)
    y = c.like(x, [shape[n] for n in order])
    c.graph.operator(kind, [x, c.graph.integers(order)], [y])
    return c.finish([x], [y])


def _flat(c: Choices, x: int) -> int:
    shape = (1, int(np.prod(c.shape(x))))
    return c.graph.operator("RESHAPE", [x, c.graph.integers(shape)], [c.like(x, shape)], new_shape=shape)


def _reshape(c: Choices, kind: str) -> RandomFile:
    x = c.tensor(c.image())
    return c.finish([x], [_flat(c, x)])


def _lstm(c: Choices, kind: str) -> RandomFile:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of int8 with an int16 cell, whose scale is a power of two."""
    g = c.graph
    depth, cells, steps, frames = c.int(1, 20), c.int(1, 16), c.int(1, 6), c.int(1, 2)
    time_major = c.int(0, 1)
    lead = (steps, frames) if time_major else (frames, steps)
    x = g.tensor((*lead, depth), "int8", c.scale(-7, -4), c.int(-128, 127))
    weights = [
        g.tensor((cells, size), "int8", c.scale(-9, -6), data=c.rng.integers(-127, 128, (cells, size)))
        for size in [depth] * 4 + [cells] * 4
    ]
    biases = [
        g.tensor((cells,), "int32", c.scale_of(x) * c.scale_of(w), data=c.rng.integers(-3000, 3000, cells))
        for w in weights[:4]
    ]
    scale, zero = c.scale(-8, -7), c.int(-20, 20)
    hidden = g.tensor((frames, cells), "int8", scale, zero, is_variable=True)
    cell = g.tensor((frames, cells), "int16", np.float32(2.0 ** -c.int(9, 12)), is_variable=True)
    y = g.tensor((*lead, cells), "int8", scale, zero)
    inner = [*(g.tensor((0,), "float32") for _ in range(4)), g.tensor((0,), "int8", scale, zero)]
    g.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x, *weights, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1],
        [y],
        intermediates=inner,
        fused_activation_function="TANH",
        time_major=time_major,
        cell_clip=(0.0, 0.0, 10.0, 1.5)[c.int(0, 3)],
    )
    return c.finish([x], [y])


def _svdf(c: Choices, kind: str) -> RandomFile:
    g = c.graph
    depth, rank, units, memory, frames = c.int(1, 20), c.int(1, 2), c.int(1, 6), c.int(1, 9), c.int(1, 2)
    filters = rank * units
    x = g.tensor((frames, depth), "int8", c.scale(-7, -4), c.int(-128, 127))
    feature = g.tensor((filters, depth), "int8", c.scale(-9, -6), data=c.rng.integers(-127, 128, (filters, depth)))
    time = g.tensor(
        (filters, memory), "int16", c.scale(-17, -15), data=c.rng.integers(-32767, 32768, (filters, memory))
    )
    state_scale = np.float32(2.0**-11)
    bias = g.tensor((units,), "int32", state_scale * c.scale_of(time), data=c.rng.integers(-3000, 3000, units))
    state = g.tensor((frames, filters * memory), "int16", state_scale, is_variable=True)
    y = g.tensor((frames, units), "int8", c.scale(-6, -4), c.int(-128, 127))
    g.operator(kind, [x, feature, time, bias, state], [y], rank=rank, fused_activation_function="RELU")
    return c.finish([x], [y])


def _state(c: Choices, kind: str) -> RandomFile:
    """A line buffer over time: a variable keeps the last rows of the frames before."""
    depth, rows, past = c.int(1, 6), c.int(1, 3), c.int(1, 4)
    x = c.tensor((1, rows, 1, depth))
    zero = int(np.max(c.graph.tensors[x].zero_point))
    memory = (1, past, 1, depth)
    start = c.writer.graph()
    first = start.operator("VAR_HANDLE", [], [start.tensor((), "resource")], shared_name="s0")
    value = start.tensor(memory, "int8", c.scale_of(x), zero, data=np.full(memory, zero))
    start.operator("ASSIGN_VARIABLE", [first, value], [])
    g = c.graph
    g.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    handle = g.operator("VAR_HANDLE", [], [g.tensor((), "resource")], shared_name="s0")
    old = g.operator("READ_VARIABLE", [handle], [c.like(x, memory)])
    joined = g.operator("CONCATENATION", [old, x], [c.like(x, (1, past + rows, 1, depth))], axis=1)
    corners = ([0, -past, 0, 0], [1, past + rows, 1, depth], [1, 1, 1, 1])
    last = g.operator(
        "STRIDED_SLICE",
        [joined, *map(g.integers, corners)],
        [c.like(x, memory)],
        begin_mask=13,
        end_mask=15,
    )
    g.operator("ASSIGN_VARIABLE", [handle, last], [])
    y = _conv(c, "CONV_2D", joined, "NONE")
    return c.finish([x], [y], [[c.codes((1, rows, 1, depth))] for _ in range(2 * FRAMES)])


def residual(c: Choices, x: int) -> int:
    """A 1 x 1 convolution whose result is added to its input."""
    depth = c.shape(x)[3]
    weights = _weights(c, (depth, 1, 1, depth), 0, False)
    inner = c.tensor(c.shape(x), _output_scale(c, x, weights, depth))
    bias = _bias(c, x, weights, depth)
    c.graph.operator("CONV_2D", [x, weights, bias], [inner], stride_h=1, stride_w=1, fused_activation_function="RELU")
    y = c.tensor(c.shape(x), np.float32(max(c.scale_of(x), c.scale_of(inner)) * 1.3))
    options: dict[str, object] = {"pot_scale_int16": 0} if c.type == "int16" else {}
    return c.graph.operator("ADD", [x, inner], [y], fused_activation_function="NONE", **options)


def _halved(c: Choices, x: int) -> int:
    frames, height, width, depth = c.shape(x)
    y = c.like(x, (frames, height // 2, width // 2, depth))
    kind = ("AVERAGE_POOL_2D", "MAX_POOL_2D")[c.int(0, 1)]
    sizes = {"stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    return c.graph.operator(kind, [x], [y], padding="VALID", **sizes)


def _net(c: Choices, kind: str) -> RandomFile:
    """Two to four layers, then a classifier with SOFTMAX."""
    x = current = c.tensor((1, c.int(6, 12), c.int(6, 12), c.int(1, 4)))
    for _ in range(c.int(2, 4)):
        layer = ("CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MUL", "POOL", "RESIDUAL")[c.int(0, 5)]
        if layer == "POOL" and min(c.shape(current)[1:3]) >= 2:
            current = _halved(c, current)
        elif layer in ("ADD", "MUL"):
            current, _ = _two(c, layer, current, True)
        elif layer == "RESIDUAL":
            current = residual(c, current)
        else:
            current = _conv(c, "CONV_2D" if layer == "POOL" else layer, current, _ACTIVATIONS[c.int(1, 3)])
    y = _dense(c, _flat(c, current), "NONE")
    scale, zero = (1 / 32768, 0) if c.type == "int16" else (1 / 256, CODES[c.type][0])
    scores = c.tensor(c.shape(y), np.float32(scale), zero)
    return c.finish([x], [c.graph.operator("SOFTMAX", [y], [scores], beta=1.0)])


def _attention(c: Choices, kind: str) -> RandomFile:
    """A gate by SOFTMAX between layers: over channels of places, or over places after a TRANSPOSE."""
    places, channels = c.int(2, 9), (2, 3, 5, 8, 16)[c.int(0, 4)]
    x = c.tensor((1, places, 1, c.int(1, 4)))
    weights = _weights(c, (channels, 1, 1, c.shape(x)[3]), 0, False)
    shape = (1, places, 1, channels)
    data = c.tensor(shape, _output_scale(c, x, weights, c.shape(x)[3]))
    bias = _bias(c, x, weights, channels)
    c.graph.operator("CONV_2D", [x, weights, bias], [data], stride_h=1, stride_w=1, fused_activation_function="NONE")
    scores, turned = data, (1, channels, 1, places)
    over_places = c.int(0, 1)
    order = c.graph.integers((0, 3, 2, 1)) if over_places else -1
    if over_places:
        scores = c.graph.operator("TRANSPOSE", [data, order], [c.like(data, turned)])
    shares = c.tensor(c.shape(scores), np.float32(1 / 256), CODES[c.type][0])
    c.graph.operator("SOFTMAX", [scores], [shares], beta=float(c.scale(-6, -1)) / c.scale_of(data))
    if over_places:
        shares = c.graph.operator("TRANSPOSE", [shares, order], [c.like(shares, shape)])
    if c.int(0, 1):
        y = c.tensor(shape, np.float32(c.scale_of(data) / c.int(2, 6)))
        c.graph.operator("MUL", [data, shares], [y], fused_activation_function="NONE")
        return c.finish([x], [y])
    return c.finish([x], [_dense(c, _flat(c, shares), "NONE")])


_FUNCTIONS = ("LOGISTIC", "TANH", "HARD_SWISH", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU")
_MAKERS: dict[str, Callable[[Choices, str], RandomFile]] = {
    **dict.fromkeys(("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"), _weighted),
    **dict.fromkeys(("ADD", "SUB", "MUL"), _binary),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool),
    "MEAN": _mean,
    **dict.fromkeys(_FUNCTIONS, _function),
    "SOFTMAX": _softmax,
    "ATTENTION": _attention,
    "PRELU": _prelu,
    "DEQUANTIZE": _dequantize,
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "CONCATENATION": _concatenation,
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    "STRIDED_SLICE": _strided_slice,
    **dict.fromkeys(("SPLIT", "SPLIT_V"), _split),
    "SLICE": _slice,
    "GATHER": _gather,
    "PACK": _pack,
    "UNPACK": _unpack,
    "TRANSPOSE": _transpose,
    "RESHAPE": _reshape,
    "LSTM": _lstm,
    "SVDF": _svdf,
    "STATE": _state,
    "NET": _net,
}
#: Kinds of files: an operator, or LSTM, SVDF, STATE, NET; behind a colon the type, or the types of QUANTIZE.
KINDS = (*_MAKERS, *("QUANTIZE" + form for form in ("", ":f", ":u8", ":8u", ":16", ":8to16")))
_LAYERS = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "ADD", "SUB", "MUL", "MEAN", "NET")
_WIDE = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "LOGISTIC", "TANH", "SOFTMAX", "LEAKY_RELU", "RELU", "CONCATENATION", "PAD")
_MOVES = "PADV2 STRIDED_SLICE SPLIT SPLIT_V TRANSPOSE RESHAPE RESIZE_NEAREST_NEIGHBOR SLICE GATHER PACK UNPACK".split()
KINDS_INT16 = (
    *(f"{kind}:int16" for kind in (*_LAYERS, *_WIDE, *_MOVES, "RELU6", "PRELU", "DEQUANTIZE")),
    *("SOFTMAX:8to16", "QUANTIZE:f16", "QUANTIZE:16", "QUANTIZE:8to16", "QUANTIZE:16to16", "QUANTIZE:u16"),
)
_BYTES = ("HARD_SWISH", "RELU6", "RELU_N1_TO_1", "PRELU", "RESIZE_BILINEAR", "ATTENTION", "DEQUANTIZE")
KINDS_UINT8 = (
    *(f"{kind}:uint8" for kind in (*_LAYERS, *_WIDE, *_MOVES, *_BYTES)),
    *("QUANTIZE:fu", "QUANTIZE:8u", "QUANTIZE:u8", "QUANTIZE:uu", "QUANTIZE:u16"),
)


def random_file(kind: str, seed: int) -> RandomFile:
    """The file of a kind (`KINDS`, `KINDS_INT16`, `KINDS_UINT8`) and a seed."""
    name, _, form = kind.partition(":")
    choices = Choices(kind, seed)
    if kind == "SOFTMAX:8to16":
        return _softmax(choices, name, form)
    return _quantize(choices, name, form) if name == "QUANTIZE" else _MAKERS[name](choices, name)
