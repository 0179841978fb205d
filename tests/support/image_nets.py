"""Random networks of the shapes that exporters write, by name; see `image_models.Builder`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
import onnx
from image_models import GENERAL, LAST, Builder, Tensor
from onnx import StringStringEntryProto, TensorAnnotation, TensorProto


def network(kind: str, seed: int, powers: bool = True, size: int = 8, max_bits: int = 5) -> onnx.ModelProto:
    """The same for the same arguments; images have at most `size` x `size` pixels and start with few channels."""
    b = Builder(sum(map(ord, kind)) * 1000 + seed, powers, max_bits)
    return NETWORKS[kind](b, size)


def begin(b: Builder, size: int, least: int = 3, channels: int = 0) -> Tensor:
    """A quantized image or signal."""
    points = [b.between(min(least, size), size) for _ in range(1 if b.maybe(0.2) else 2)]
    return b.activation(b.input(1, channels or b.between(1, 4), *points))


def image(b: Builder, size: int, least: int = 4) -> Tensor:
    return b.activation(b.input(1, b.between(1, 4), *(b.between(least, size) for _ in range(2))))


def after(b: Builder, x: Tensor, pool: bool = True) -> Tensor:
    """What follows a layer: BatchNormalization, Relu, MaxPool, a quantizer, in any of the usual orders."""
    parts = [b.norm] * b.maybe(0.4)
    if b.maybe(0.4):
        parts.append(lambda x: b.behind(x, "Relu"))
    elif b.maybe(0.15):
        parts.append(lambda x: b.behind(x, "Clip", -1.0, 6.0))
    if b.maybe(0.15):
        parts.append(lambda x: b.behind(x, b.pick("Mul", "Div"), np.full((), 0.5)))
    parts.append(b.activation)
    if pool and min(x.points, default=0) >= 2 and b.maybe(0.35):
        parts.insert(b.between(0, len(parts)), b.max_pool)
    for part in parts:
        x = part(x)
    return x


def layer(b: Builder, x: Tensor, outputs: int | None = None, **own: object) -> Tensor:
    return after(b, b.conv(x, outputs, **own), pool=False)  # type: ignore[arg-type]


def same(b: Builder, x: Tensor, outputs: int | None = None, kernel: int = 3, groups: int = 1) -> Tensor:
    """A convolution that keeps the points."""
    count, half = len(x.points), kernel // 2
    return b.conv(x, outputs, groups, kernel_shape=[kernel] * count, pads=[half] * 2 * count)


def ending(b: Builder, x: Tensor) -> onnx.ModelProto:
    """A head of the usual kinds, or none."""
    kind = b.pick("none", "conv", "dense", "dense", "mean", "argmax", "topk")
    if kind == "none" or (kind in ("argmax", "topk") and b.maybe(0.5)):
        return b.model(x)
    if kind == "conv":
        return b.model(same(b, x, b.between(1, 4), 1))
    if kind == "mean":
        return b.model(mean(b, x))
    flat = flattened(b, x)
    x = b.dense(flat, b.between(2, 6))
    if kind == "argmax":
        return b.model(replace(b.behind(x, "ArgMax", axis=1, keepdims=1), shape=(1, 1)), TensorProto.INT64)
    if kind == "topk":
        k = b.const([1], np.int64)
        b.node("TopK", x.name, k, axis=-1, count=2)
        return b.model(Tensor(f"t{len(b.nodes) - 1}_1", (1, 1), 3, 1.0), TensorProto.INT64)
    return b.model(after(b, x, pool=False) if b.maybe(0.5) else x)


def flattened(b: Builder, x: Tensor) -> Tensor:
    size = prod(x.shape[1:])
    if b.maybe(0.5):
        return replace(x, name=b.node("Flatten", x.name, axis=1), shape=(1, size))
    return b.shaped(x, 1, size)


def mean(b: Builder, x: Tensor) -> Tensor:
    """An average over all points, by any operator, quantized again."""
    count = len(x.points)
    kind = b.pick("GlobalAveragePool", "AveragePool", "ReduceMean", "ReduceSum")
    if kind == "GlobalAveragePool":
        name = b.node(kind, x.name)
    elif kind == "AveragePool":
        name = b.node(kind, x.name, kernel_shape=list(x.points))
    elif kind == "ReduceMean":
        name = b.node(kind, x.name, axes=list(range(2, 2 + count)), keepdims=1)
    else:
        name = b.node(kind, x.name, b.const(list(range(2, 2 + count)), np.int64), keepdims=1)
    made = Tensor(name, (*x.shape[:2], *[1] * count), 23, x.spread)
    return b.quant(made)


# --------------------------------------------------------------------------- networks


def plain(b: Builder, size: int) -> onnx.ModelProto:
    """Convolutions one behind the other, any window."""
    x = begin(b, size)
    for _ in range(b.between(1, 3)):
        x = after(b, b.conv(x))
    return ending(b, x)


def signal(b: Builder, size: int) -> onnx.ModelProto:
    x = b.activation(b.input(1, b.between(1, 3), b.between(5, 2 * size)))
    for _ in range(b.between(1, 3)):
        x = after(b, b.conv(x))
    return ending(b, x)


def grouped(b: Builder, size: int) -> onnx.ModelProto:
    """Groups, depthwise with and without a multiplier, pointwise."""
    groups = b.between(2, 4)
    x = begin(b, size, channels=groups * b.between(1, 2))
    x = after(b, b.conv(x, groups * b.between(1, 2), groups))
    x = after(b, same(b, x, x.channels * b.pick(1, 1, 2), 3, x.channels))
    x = after(b, same(b, x, b.between(1, 6), 1))
    return ending(b, x)


def bipolar(b: Builder, size: int) -> onnx.ModelProto:
    """Binary weights and activations, with padding (where no code means 0) and without."""
    x = b.bipolar(b.input(1, b.between(1, 4), b.between(3, size), b.between(3, size)))
    for _ in range(b.between(1, 3)):
        x = b.conv(x, kind="bipolar")
        x = b.bipolar(b.norm(x) if b.maybe(0.6) else x)
        if min(x.points) >= 2 and b.maybe(0.4):
            x = b.max_pool(x, kernel_shape=[2, 2], strides=[2, 2])
    return b.model(b.dense(flattened(b, x), 3) if b.maybe(0.5) else x)


def pooled(b: Builder, size: int) -> onnx.ModelProto:
    """AveragePool and Trunc, as Brevitas writes them, and AveragePool with a quantizer."""
    x = image(b, size)
    scale = float(b.scale(0.25))
    name = b.node(
        "IntQuant",
        x.name,
        b.const(scale),
        b.const(0),
        b.const(4),
        domain=GENERAL,
        signed=1,
        narrow=0,
        rounding_mode="ROUND",
    )
    x = Tensor(name, x.shape, 4, 2.0)
    k = b.pick(2, 2, min(4, *x.points))
    stride = b.between(1, k)
    out = tuple((n - k) // stride + 1 for n in x.points)
    own = {"kernel_shape": [k, k], "strides": [stride, stride]}
    if b.maybe(0.4):
        pads = [b.between(0, 1) for _ in range(4)]
        own |= {"pads": pads, "count_include_pad": b.between(0, 1)}
        out = tuple((n + pads[i] + pads[i + 2] - k) // stride + 1 for i, n in enumerate(x.points))
    averaged = Tensor(b.node("AveragePool", x.name, **own), (*x.shape[:2], *out), 12, 1.0)
    x = averaged
    if b.maybe(0.6) and k in (2, 4):
        x = b.behind(averaged, "Mul", float(k * k))
        x = b.trunc(x, scale, 4 + 2 * (k // 2), 4)
    else:
        x = b.quant(x)
    return ending(b, x)


def maxima(b: Builder, size: int) -> onnx.ModelProto:
    """MaxPool in every place: on codes, on sums, in front of and behind BatchNormalization and Relu."""
    x = begin(b, size)
    if b.maybe(0.4):
        x = b.max_pool(x)
    x = same(b, x, b.between(1, 5))
    parts = [b.norm] * b.maybe(0.6) + [lambda x: b.behind(x, "Relu")] * b.maybe(0.6)
    parts.insert(b.between(0, len(parts)), b.max_pool)
    for part in parts:
        x = part(x)
    return ending(b, b.activation(x))


def residual(b: Builder, size: int) -> onnx.ModelProto:
    """Two branches of one quantizer that are added, subtracted or multiplied."""
    x = begin(b, size)
    x = after(b, same(b, x, b.between(1, 5)))
    for _ in range(b.between(1, 2)):
        y = after(b, same(b, x), pool=False)
        y = same(b, y, x.channels)
        y = b.quant(y, 4)
        other = x
        if b.maybe(0.4):
            other = b.quant(same(b, x, x.channels, 1), 4)
        elif x.bits > 6:
            other = b.quant(x, 4)
        pair = (other, y) if b.maybe(0.5) else (y, other)
        x = b.joined(b.pick("Add", "Add", "Add", "Sub", "Mul"), *pair)
        x = b.behind(x, "Relu") if b.maybe(0.5) else x
        x = b.quant(x)
    return ending(b, x)


def inception(b: Builder, size: int) -> onnx.ModelProto:
    """Three branches of one tensor in a Concat; alike or different quantizers, perhaps one behind."""
    x = begin(b, size)
    count = len(x.points)
    own = {"kernel_shape": [3] * count, "strides": [1] * count, "pads": [1] * 2 * count}
    sides = [same(b, x, b.between(1, 4), 1), same(b, x, b.between(1, 4), 3), b.max_pool(x, **own)]
    if b.maybe(0.4):
        sides = [*sides[: b.between(1, 2)], x]
    if b.maybe(0.3):
        joined = after(b, b.concat(*sides), pool=False)
    elif b.maybe(0.4):
        joined = b.quant(b.concat(*(b.quant(s) for s in sides)))
    else:
        joined = b.concat(*(b.quant(s) for s in sides))
    return ending(b, after(b, same(b, joined, b.between(1, 4)), pool=False))


def dense_net(b: Builder, size: int) -> onnx.ModelProto:
    """Every layer takes all earlier tensors."""
    x = begin(b, size)
    for _ in range(b.between(2, 3)):
        y = b.quant(same(b, x, b.between(1, 3)), 3)
        x = b.concat(x, y)
        x = b.quant(x, 4) if x.bits > 9 else x
    return ending(b, x)


def unet(b: Builder, size: int) -> onnx.ModelProto:
    """Down, up by Resize or ConvTranspose, joined with the tensor from before."""
    half = [b.between(2, max(2, size // 2)) for _ in range(2)]
    x = b.quant(b.input(1, b.between(1, 3), 2 * half[0], 2 * half[1]))
    skip = b.quant(same(b, x, b.between(1, 3)), 4)
    low = b.quant(same(b, b.max_pool(skip, kernel_shape=[2, 2], strides=[2, 2]), b.between(1, 4)), 4)
    shape = (1, low.channels, 2 * half[0], 2 * half[1])
    if b.maybe(0.5):
        scales = b.const([1, 1, 2, 2])
        own = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        up = replace(low, name=b.node("Resize", low.name, "", scales, **own), shape=shape)
    else:
        outputs = b.between(1, 3)
        weight, _ = b.weights((low.channels, outputs, 2, 2), 1, 3)
        up = Tensor(
            b.node("ConvTranspose", low.name, weight, kernel_shape=[2, 2], strides=[2, 2]),
            (1, outputs, *shape[2:]),
            23,
            low.spread * 2,
        )
        up = b.quant(up, 4)
    if up.channels == skip.channels and b.maybe(0.5):
        x = b.quant(b.joined("Add", up, skip))
    else:
        x = b.concat(up, skip)
        x = b.quant(x, 4) if b.maybe(0.5) else x
    return ending(b, b.quant(same(b, x, b.between(1, 3))))


def cut(b: Builder, size: int) -> onnx.ModelProto:
    """Split or Slice along the channels or the points, joined again."""
    x = begin(b, size, channels=b.pick(2, 4, 6))
    if b.maybe(0.5):
        x = b.quant(same(b, x, b.pick(2, 4, 6)))
    parts = [b.between(1, x.channels - 1)]
    parts.append(x.channels - parts[0])
    kind = b.pick("split", "slice", "points", "stride")
    if kind == "split":
        b.node("Split", x.name, b.const(parts, np.int64), axis=1, count=2)
        name = f"t{len(b.nodes) - 1}"
        sides = [replace(x, name=n, shape=(1, c, *x.points)) for n, c in zip((name, f"{name}_1"), parts, strict=True)]
        sides = [b.quant(same(b, s, 2)) if b.maybe(0.5) else s for s in sides]
        return ending(b, b.concat(*sides))
    axis, step = 1, 1
    start, stop = parts[0], x.channels
    if kind != "slice":
        axis = b.between(2, len(x.shape) - 1)
        stop = x.shape[axis]
        start, step = b.between(0, stop - 1), 2 if kind == "stride" else 1
        stop = b.between(start + 1, stop)
    ends = [b.const([v], np.int64) for v in (start, stop, axis, step)]
    shape = list(x.shape)
    shape[axis] = len(range(start, stop, step))
    y = replace(x, name=b.node("Slice", x.name, *ends), shape=tuple(shape))
    return ending(b, after(b, same(b, y, b.between(1, 3)), pool=False) if b.maybe(0.7) else y)


def shuffle(b: Builder, size: int) -> onnx.ModelProto:
    """Channel shuffle between grouped convolutions."""
    groups, own = b.between(2, 3), b.between(1, 3)
    x = image(b, size)
    x = b.quant(same(b, x, groups * own))
    h, w = x.points
    y = b.shaped(x, 1, groups, own, h, w)
    y = b.turned(y, (0, 2, 1, 3, 4))
    y = b.shaped(y, 1, groups * own, h, w)
    return ending(b, after(b, same(b, y, groups * b.between(1, 2), 3, b.pick(groups, groups, 1)), pool=False))


def blocks(b: Builder, size: int) -> onnx.ModelProto:
    """DepthToSpace or SpaceToDepth between layers."""
    x = begin(b, size) if b.maybe(0) else image(b, size)
    if b.maybe(0.6):
        outputs = b.between(1, 2)
        x = b.quant(same(b, x, 4 * outputs))
        shape = (1, outputs, 2 * x.points[0], 2 * x.points[1])
        x = replace(x, name=b.node("DepthToSpace", x.name, blocksize=2, mode=b.pick("DCR", "CRD")), shape=shape)
    else:
        even = [n // 2 * 2 for n in x.points]
        starts, ends, axes = ([0, 0], even, [2, 3])
        x = replace(
            x,
            name=b.node("Slice", x.name, *(b.const(v, np.int64) for v in (starts, ends, axes))),
            shape=(*x.shape[:2], *even),
        )
        shape = (1, 4 * x.channels, even[0] // 2, even[1] // 2)
        x = replace(x, name=b.node("SpaceToDepth", x.name, blocksize=2), shape=shape)
    return ending(b, after(b, same(b, x, b.between(1, 3)), pool=False) if b.maybe(0.7) else x)


def bordered(b: Builder, size: int) -> onnx.ModelProto:
    """Pad in front of a convolution without padding."""
    x = image(b, size, 3)
    pads = [b.between(0, 2) for _ in range(4)]
    shape = (*x.shape[:2], x.points[0] + pads[0] + pads[2], x.points[1] + pads[1] + pads[3])
    value = [b.const(0.0)] if b.maybe(0.5) else []
    name = b.node("Pad", x.name, b.const([0, 0, *pads[:2], 0, 0, *pads[2:]], np.int64), *value, mode="constant")
    x = replace(x, name=name, shape=shape)
    k = min(3, *x.points)
    return ending(b, after(b, b.conv(x, b.between(1, 4), kernel_shape=[k, k])))


def keras(b: Builder, size: int) -> onnx.ModelProto:
    """Channels last at both ends, as converted Keras models have it."""
    shape = (1, b.between(3, size), b.between(3, size), b.between(1, 3))
    x = b.input(*shape)
    if b.maybe(0.5):
        x = b.quant(x, channel=False)
        x = b.turned(x, (0, 3, 1, 2))
    else:
        x = b.quant(b.turned(x, (0, 3, 1, 2)))
    for _ in range(b.between(1, 2)):
        x = after(b, b.conv(x))
    if b.maybe(0.5):
        x = b.turned(x, (0, 2, 3, 1))
        if b.maybe(0.6):
            x = b.shaped(x, 1, prod(x.shape[1:]))
            x = b.dense(x, 3)
    return b.model(x)


def channels_last(b: Builder, size: int) -> onnx.ModelProto:
    """QONNX's operators for channels-last data."""
    x = b.quant(b.input(1, b.between(3, size), b.between(3, size), b.between(1, 3)), channel=False)
    for _ in range(b.between(1, 2)):
        h, w, c = x.shape[1:]
        kernel, outputs, pad = [b.between(1, 3), b.between(1, 3)], b.between(1, 5), b.between(0, 1)
        weight, _ = b.weights((outputs, *kernel, c), 0, b.weight_bits(x, prod(kernel) * c))
        b.declared(weight, outputs, *kernel, c)
        name = b.node(
            "Conv",
            b.declared(x.name, *x.shape),
            weight,
            domain=LAST,
            kernel_shape=kernel,
            strides=[1, 1],
            dilations=[1, 1],
            pads=[pad] * 4,
            group=1,
        )
        shape = (1, h + 2 * pad - kernel[0] + 1, w + 2 * pad - kernel[1] + 1, outputs)
        x = b.quant(Tensor(name, shape, 23, x.spread * 3), channel=False)
        if min(shape[1:3]) >= 2 and b.maybe(0.5):
            name = b.node(
                "MaxPool", b.declared(x.name, *x.shape), domain=LAST, kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4
            )
            x = replace(x, name=name, shape=(1, shape[1] // 2, shape[2] // 2, outputs))
    return b.model(x)


def im2col(b: Builder, size: int) -> onnx.ModelProto:
    """Im2Col, MatMul, MultiThreshold in channels-last order, as FINN lowers convolutions."""
    h, w, c = b.between(3, size), b.between(3, size), b.between(1, 4)
    x = b.input(1, h, w, c)
    levels = {"UINT2": 2, "INT3": 3, "INT4": 4, "BIPOLAR": 1}
    kind = b.pick(*levels)
    note(b, "x", kind)
    bits = levels[kind]
    for i in range(b.between(1, 2)):
        k, stride = b.between(1, min(3, h, w)), b.between(1, 2)
        pads = [0] * 4 if (kind == "BIPOLAR" and not i) else [b.between(0, 1) for _ in range(4)]
        name = b.node(
            "Im2Col",
            x.name,
            domain=GENERAL,
            stride=[stride] * 2,
            kernel_size=[k, k],
            pad_amount=pads,
            input_shape=str((1, h, w, c)).replace(" ", ""),
        )
        h, w = (h + pads[0] + pads[2] - k) // stride + 1, (w + pads[1] + pads[3] - k) // stride + 1
        outputs = b.between(1, 5)
        weight = b.rng.integers(-3, 4, (k * k * c, outputs))
        name = b.node("MatMul", name, b.const(weight))
        table = np.sort(b.rng.integers(-12, 13, (outputs, b.pick(1, 3, 7))), axis=1)
        name = b.node(
            "MultiThreshold",
            name,
            b.const(table),
            domain=GENERAL,
            out_dtype="UINT3",
            data_layout="NHWC",
        )
        note(b, name, "UINT3")
        c = outputs
        x = Tensor(name, (1, h, w, c), bits, 3.0)
    return b.model(x)


def mixer(b: Builder, size: int) -> onnx.ModelProto:
    """Layers over the points and over the channels in turn."""
    x = image(b, size, 2)
    x = b.quant(same(b, x, b.between(2, 5), 1), channel=False)
    points = prod(x.points)
    x = b.shaped(x, 1, x.channels, points)
    for _ in range(b.between(1, 2)):
        n = x.shape[2]
        outputs = b.between(2, 5)
        weight, _ = b.weights((n, outputs), 1, b.weight_bits(x, n))
        made = Tensor(b.node("MatMul", x.name, weight), (1, x.shape[1], outputs), 23, x.spread * n**0.5)
        x = b.turned(b.quant(made, channel=False), (0, 2, 1))
    return b.model(x)


def skips(b: Builder, size: int) -> onnx.ModelProto:
    """Sums of branches that are used again without a quantizer of their own."""
    x = begin(b, size)
    x = b.quant(same(b, x, b.between(1, 4)), 3, channel=False)
    total = x
    for _ in range(2):
        y = b.quant(same(b, b.quant(total, 4), x.channels), 3, channel=False)
        total = b.joined("Add", total, y)
    return ending(b, b.quant(total, 4))


def transposed(b: Builder, size: int) -> onnx.ModelProto:
    """ConvTranspose of any form."""
    x = begin(b, min(size, 5))
    count = len(x.points)
    groups = b.pick(1, 1, x.channels)
    outputs = b.between(1, 3)
    while True:
        kernel, strides = b.rng.integers(1, 4, count).tolist(), b.rng.integers(1, 4, count).tolist()
        dilations, pads = b.rng.integers(1, 3, count).tolist(), b.rng.integers(0, 2, 2 * count).tolist()
        extra = [b.between(0, max(s, d) - 1) for s, d in zip(strides, dilations, strict=True)]
        points = [
            (n - 1) * strides[i] + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + count]
            for i, n in enumerate(x.points)
        ]
        if min(points) > 0:
            break
    terms = prod(kernel) * x.channels // groups
    weight, _ = b.weights((x.channels, outputs, *kernel), 1, b.weight_bits(x, terms))
    own = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "output_padding": extra}
    bias = [b.bias((outputs * groups,), x.spread)] if b.maybe(0.4) else []
    name = b.node("ConvTranspose", x.name, weight, *bias, group=groups, **own)
    return ending(b, after(b, Tensor(name, (1, outputs * groups, *points), 23, x.spread * terms**0.5), pool=False))


def resized(b: Builder, size: int) -> onnx.ModelProto:
    """Resize up and down by whole factors."""
    x = image(b, min(size, 5), 2)
    factors = [b.pick(1, 2, 2, 3) for _ in range(2)]
    modes = b.pick(("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"))
    own = dict(zip(("coordinate_transformation_mode", "nearest_mode"), modes, strict=True))
    shape = (*x.shape[:2], x.points[0] * factors[0], x.points[1] * factors[1])
    if b.maybe(0.5):
        name = b.node("Resize", x.name, "", b.const([1, 1, *factors]), mode="nearest", **own)
    else:
        name = b.node("Resize", x.name, "", "", b.const(shape, np.int64), mode="nearest", **own)
    x = replace(x, name=name, shape=shape)
    return ending(b, after(b, same(b, x, b.between(1, 3))) if b.maybe(0.7) else x)


def note(b: Builder, tensor: str, datatype: str) -> None:
    """The tensor's type as FINN annotates it."""
    found = TensorAnnotation(tensor_name=tensor)
    found.quant_parameter_tensor_names.append(StringStringEntryProto(key="finn_datatype", value=datatype))
    b.annotations.append(found)


Network = Callable[[Builder, int], onnx.ModelProto]
NETWORKS: dict[str, Network] = {
    f.__name__: f
    for f in (
        plain,
        signal,
        grouped,
        bipolar,
        pooled,
        maxima,
        residual,
        inception,
        dense_net,
        unet,
        cut,
        shuffle,
        blocks,
        bordered,
        keras,
        channels_last,
        im2col,
        mixer,
        skips,
        transposed,
        resized,
    )
}
