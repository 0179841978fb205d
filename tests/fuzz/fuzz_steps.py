"""Phrases that move, join, pool and sum, and how random graphs are composed of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from fuzz_oracle import is_exact
from fuzz_phrases import (
    Sketch,
    Unfit,
    dequantized,
    elementwise,
    integers,
    place,
    quantized,
    ready,
    reals,
)
from onnx import TensorProto, helper

Phrase = Callable[[Sketch, str], str]
JOINTS = ("Add", "Add", "Sub", "Mul", "Max", "Min")


def chain(s: Sketch, t: str, min_steps: int = 1, max_steps: int = 3) -> str:
    """Some elementwise operations; those that do not fit are left out."""
    for _ in range(s.whole(min_steps, max_steps)):
        try:
            t = elementwise(s, t)
        except Unfit:
            continue
    return t


def moved(s: Sketch, t: str) -> str:
    """A reshape, transpose, or two of them."""
    shape = s.shape(t)
    rank = len(shape)
    match s.pick("Transpose", "Transpose", "Reshape", "Reshape", "Flatten", "Unsqueeze", "Squeeze", "Back"):
        case "Transpose":
            return s.add("Transpose", t, perm=[0, *(1 + s.rng.permutation(rank - 1)).tolist()])
        case "Back":  # there and back, with something between
            perm = [0, *(1 + s.rng.permutation(rank - 1)).tolist()]
            t = s.add("Transpose", t, perm=perm)
            t = chain(s, t, 0, 2)
            return s.add("Transpose", t, perm=np.argsort(perm).tolist())
        case "Flatten":
            return s.add("Flatten", t)
        case "Unsqueeze" if rank < 5:
            return s.add("Unsqueeze", t, s.const([s.whole(1, rank)], np.int64))
        case "Squeeze" if rank > 2:
            ones = [i for i in range(1, rank) if shape[i] == 1]
            if not ones:
                raise Unfit
            return s.add("Squeeze", t, s.const([s.pick(*ones)], np.int64))
        case _:
            sizes = list(shape[1:])
            if s.chance(0.5) and len(sizes) > 1:  # joins two axes
                at = s.whole(0, len(sizes) - 2)
                sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
            else:  # splits one
                at = s.whole(0, len(sizes) - 1)
                parts = [d for d in range(2, sizes[at]) if sizes[at] % d == 0]
                if not parts:
                    raise Unfit
                d = s.pick(*parts)
                sizes[at : at + 1] = [d, sizes[at] // d]
            if s.chance(0.2):
                sizes = [math.prod(sizes)]
            return s.add("Reshape", t, s.const([1, *sizes], np.int64))


def window(s: Sketch, t: str, max_kernel: int = 3) -> dict[str, object]:
    """Attributes of a pool or convolution of an image or signal."""
    points = s.shape(t)[2:]
    kernel = [s.whole(1, min(max_kernel, n)) for n in points]
    attributes: dict[str, object] = {"kernel_shape": kernel}
    if s.chance(0.6):
        attributes["strides"] = [s.whole(1, 2) for _ in points]
    if s.chance(0.2):
        attributes["dilations"] = [s.whole(1, 2) if (k - 1) * 2 < n else 1 for k, n in zip(kernel, points, strict=True)]
    if s.chance(0.15) and "dilations" not in attributes:  # with them onnxruntime pads otherwise
        attributes["auto_pad"] = s.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    elif s.chance(0.45):
        attributes["pads"] = [s.whole(0, k - 1) for k in kernel * 2]
    return attributes


def image(s: Sketch, t: str) -> str:
    """The tensor with an axis or two of points."""
    shape = s.shape(t)
    if len(shape) in (3, 4):
        return t
    if len(shape) == 5:
        return s.add("Reshape", t, s.const([1, shape[1], shape[2] * shape[3], shape[4]], np.int64))
    n = shape[1]
    parts = [d for d in range(2, n) if n % d == 0]
    if not parts:
        raise Unfit
    d = s.pick(*parts)
    return s.add("Reshape", t, s.const([1, d, n // d] if s.chance(0.5) else [1, 1, d, n // d], np.int64))


def max_pool(s: Sketch, t: str) -> str:
    t = image(s, t)
    if s.kind(t) == "bool" or (s.kind(t) in ("int16", "uint16", "int32", "uint32")):
        raise Unfit
    how = s.rng.random()
    if how < 0.12:
        return s.add("GlobalMaxPool", t)
    if how < 0.2:
        axes = [int(a) for a in 2 + s.rng.permutation(len(s.shape(t)) - 2)[:1]]
        return s.add("ReduceMax", t, axes=axes, keepdims=int(s.chance(0.7)))
    return s.add("MaxPool", t, **window(s, t), ceil_mode=int(s.chance(0.35)))


def pool_and_run(s: Sketch, t: str) -> str:
    """A maximum pool, and operators that a pass might move before it."""
    if s.chance(0.4):
        t = layer(s, t)
    elif s.chance(0.4):
        t = quantized(s, t, plain=True)
    t = chain(s, t, 0, 2)
    if s.chance(0.3):
        t = moved(s, t)
    t = max_pool(s, t)
    if s.chance(0.3):
        t = moved(s, t)
    t = chain(s, t, 0, 3)
    return quantized(s, t) if s.chance(0.8) else t


def average(s: Sketch, t: str) -> str:
    t = ready(s, image(s, t))
    how = s.rng.random()
    if how < 0.6:
        attributes = window(s, t)
        attributes.pop("dilations", None)
        return s.add(
            "AveragePool", t, **attributes, ceil_mode=int(s.chance(0.35)), count_include_pad=int(s.chance(0.3))
        )
    if how < 0.75:
        return s.add("GlobalAveragePool", t)
    keep = int(s.chance(0.7))
    axes = sorted((2 + s.rng.permutation(len(s.shape(t)) - 2)[: s.whole(1, 2)]).tolist())
    if s.chance(0.2):
        axes = [a - 1 for a in axes]
    if s.chance(0.5):
        return s.add("ReduceMean", t, axes=axes, keepdims=keep)
    return s.add("ReduceSum", t, s.const(axes, np.int64), keepdims=keep)


def weights(s: Sketch, shape: tuple[int, ...], axis: int) -> str:
    """Codes with a power of two as scale. `axis`: axis of the output channels."""
    per = [shape[axis] if i == axis else 1 for i in range(len(shape))]
    form = tuple(per) if s.chance(0.4) else ()
    scale = 2.0 ** s.rng.integers(-3, 1, form)
    if s.dialect == "qdq":
        codes, flat = s.const(s.rng.integers(-8, 9, shape), "int8"), s.const(np.ravel(scale) if form else scale)
        zero = s.const(np.zeros(np.size(scale)) if form else 0, "int8")
        return s.fixed("DequantizeLinear", codes, flat, zero, axis=axis)
    how = s.rng.random()
    if how < 0.2:
        return s.const(s.rng.integers(-4, 5, shape) * 0.25)
    data = s.const(s.rng.normal(size=shape))
    if how < 0.35:
        return s.fixed("BipolarQuant", data, s.const(scale), domain="qonnx.custom_op.general")
    names = [s.const(scale), s.const(0.0 if s.chance(0.8) else 1.0), s.const(float(s.whole(2, 4)))]
    return s.fixed("IntQuant", data, *names, domain="qonnx.custom_op.general", signed=1, narrow=s.whole(0, 1))


def layer(s: Sketch, t: str) -> str:
    """An exact sum: MatMul, Gemm or Conv, with a Pad in front or a bias at times."""
    if s.kind(t) in ("int8", "uint8") and s.chance(0.7):
        return integer_layer(s, t)
    t = ready(s, t)
    rows = s.whole(1, 5)
    if len(s.shape(t)) in (3, 4) and s.chance(0.75):
        if s.chance(0.4):
            t = bordered(s, t)
        channels = s.shape(t)[1]
        groups = s.pick(*[g for g in range(1, channels + 1) if channels % g == 0]) if s.chance(0.45) else 1
        attributes = window(s, t)
        kernel = attributes["kernel_shape"]
        assert isinstance(kernel, list)
        weight = weights(s, (rows * groups, channels // groups, *kernel), 0)
        bias = [s.const(reals(s, t, (rows * groups,)))] if s.chance(0.4) else []
        return s.add("Conv", t, weight, *bias, group=groups, **attributes)
    columns = s.shape(t)[-1]
    if len(s.shape(t)) == 2 and s.chance(0.4):
        bias = [s.const(reals(s, t, s.pick((rows,), (1, rows), ())))] if s.chance(0.6) else []
        weight = weights(s, (rows, columns), 0)
        return s.add("Gemm", t, weight, *bias, transB=1, alpha=float(s.pick(1.0, 0.5)), beta=float(s.pick(1.0, 2.0)))
    t = s.add("MatMul", t, weights(s, (columns, rows), 1))
    return s.add("Add", t, s.const(reals(s, t, (rows,)))) if s.chance(0.4) else t


def integer_layer(s: Sketch, t: str) -> str:
    rows, shape = s.whole(1, 5), s.shape(t)
    low, high = np.iinfo(s.kind(t)).min, np.iinfo(s.kind(t)).max
    zeros = [s.const(s.whole(low, high), s.kind(t))] if s.chance(0.6) else []
    if len(shape) == 4 and s.chance(0.7):
        attributes = window(s, t)
        kernel = attributes["kernel_shape"]
        assert isinstance(kernel, list)
        weight = s.const(s.rng.integers(-8, 9, (rows, shape[1], *kernel)), "int8")
        return s.add("ConvInteger", t, weight, *zeros, **attributes)
    return s.add("MatMulInteger", t, s.const(s.rng.integers(-8, 9, (shape[-1], rows)), "int8"), *zeros)


def bordered(s: Sketch, t: str) -> str:
    """A Pad of 0, of a value of the tensor, or negative, sometimes followed by a transpose and its inverse."""
    shape = s.shape(t)
    low = -1 if s.chance(0.2) else 0
    pads = np.zeros((2, len(shape)), np.int64)
    for axis in range(2 if s.chance(0.8) else 1, len(shape)):
        pads[:, axis] = s.rng.integers(low, 3, 2)
    value = s.pick(0, 0, 0, s.values[t].ravel()[s.whole(0, s.values[t].size - 1)])
    inputs = [t, s.const(pads.ravel(), np.int64)]
    if value or s.chance(0.7):
        inputs.append(s.const(value, s.kind(t)))
    padded = s.add("Pad", *inputs)
    if s.chance(0.15):
        return s.add("Transpose", padded, perm=[0, *(1 + s.rng.permutation(len(shape) - 1)).tolist()])
    if s.chance(0.2):
        perm = [0, *(1 + s.rng.permutation(len(shape) - 1)).tolist()]
        padded = s.add("Transpose", s.add("Transpose", padded, perm=perm), perm=np.argsort(perm).tolist())
    return padded


def cut(s: Sketch, t: str) -> str:
    """Slice, Split, Resize, Pad."""
    shape = s.shape(t)
    axis = s.whole(1, len(shape) - 1)
    blocks = len(shape) == 4 and shape[1] % 4 == 0
    match "DepthToSpace" if blocks and s.chance(0.4) else s.pick("Slice", "Slice", "Split", "Resize", "Pad", "Expand"):
        case "Slice":
            n = shape[axis]
            start = s.whole(0, n - 1)
            stop = s.pick(s.whole(start + 1, n), 2**31 - 1)
            start = start - n if s.chance(0.3) else start
            stop = stop - n if stop < n and s.chance(0.3) else stop
            names = [s.const([v], np.int64) for v in (start, stop, s.pick(axis, axis - len(shape)), s.pick(1, 1, 2))]
            return s.add("Slice", t, *names)
        case "Split" if shape[axis] > 1:
            first = s.whole(1, shape[axis] - 1)
            made = s.add("Split", t, s.const([first, shape[axis] - first], np.int64), outputs=2, axis=axis)
            return s.pick(made, f"{made}_1")
        case "Resize" if len(shape) == 4:
            factors = s.const([1, 1, *s.rng.integers(1, 3, 2)])
            made = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            return s.add("Resize", t, "", factors, mode="nearest", **made)
        case "DepthToSpace":
            return s.add("DepthToSpace", t, blocksize=2, mode=s.pick("DCR", "CRD"))
        case "Expand" if shape[axis] == 1:
            return s.add("Expand", t, s.const([s.whole(1, 3) if i == axis else 1 for i in range(len(shape))], np.int64))
        case _:
            return bordered(s, t)


def concatenated(s: Sketch, t: str) -> str:
    """Concatenated parts of a tensor, or functions of it, and following steps."""
    axis = s.whole(1, len(s.shape(t)) - 1)
    branch = quantized if s.chance(0.4) else chain
    length = s.shape(t)[axis]
    if s.chance(0.4) and length > 1:
        first = s.whole(1, length - 1)
        parts = s.add("Split", t, s.const([first, length - first], np.int64), outputs=2, axis=axis)
        ends = [parts, f"{parts}_1"]
    else:
        ends = [t] * s.whole(2, 3)
    ends = [branch(s, e) if s.chance(0.7) else e for e in ends]
    if len({s.kind(e) for e in ends}) > 1:
        ends = [e if s.kind(e) == "float32" else s.add("Cast", e, to=TensorProto.FLOAT) for e in ends]
    t = s.add("Concat", *ends, axis=axis if s.chance(0.6) else axis - len(s.shape(t)))
    if s.chance(0.2):
        t = max_pool(s, t)
    t = chain(s, t, 0, 2)
    return quantized(s, t) if s.chance(0.8) else t


def _joined_before(s: Sketch, t: str) -> bool:
    """True if the tensor comes from an operation on two tensors without a quantizer in between."""
    producer = next((n for n in s.nodes if t in n.output), None)
    if producer is None or producer.op_type in (
        "IntQuant",
        "Quant",
        "BipolarQuant",
        "Trunc",
        "MultiThreshold",
        "QuantizeLinear",
    ):
        return False
    data = [i for i in producer.input if i in s.values]
    return len(data) > 1 or any(_joined_before(s, i) for i in data)


def joint(s: Sketch, left: str, right: str) -> str:
    if s.kind(left) != s.kind(right):
        left, right = (v if s.kind(v) == "float32" else s.add("Cast", v, to=TensorProto.FLOAT) for v in (left, right))
    if s.dialect == "qdq" and not s.powers:
        raise Unfit  # fused multiply-adds
    deep = any(_joined_before(s, v) for v in (left, right))
    if deep and not all(is_exact(s.values[v]) for v in (left, right)):
        raise Unfit
    a, b = s.shape(left), s.shape(right)
    if a != b and np.broadcast_shapes(a, b) not in (a, b):
        raise Unfit
    joined = s.add(s.pick(*JOINTS), left, right)
    if deep and not is_exact(s.values[joined]):
        s.nodes.pop()
        raise Unfit
    return joined


def branches(s: Sketch, t: str) -> str:
    """Two ways from one tensor that meet again."""
    ends = []
    for _ in range(2):
        e = t
        match s.pick("chain", "quantized", "layer", "as it is", "pool", "both"):
            case "chain":
                e = chain(s, e, 1, 2)
            case "quantized":
                e = quantized(s, e)
            case "both":
                e = quantized(s, chain(s, e, 1, 2))
            case "pool" if len(s.shape(e)) in (3, 4):
                same_padding = {"kernel_shape": [3] * (len(s.shape(e)) - 2), "auto_pad": "SAME_UPPER"}
                e = s.add("MaxPool", e, **same_padding)
                e = chain(s, e, 0, 2)
            case "layer" if len(s.shape(e)) in (3, 4):
                e = ready(s, e)
                if s.chance(0.5):
                    e = s.add("Relu", e) if s.chance(0.5) else s.add("Mul", e, s.const(s.pick(0.5, -1.0, 2.0)))
                c = s.shape(e)[1]
                e = s.add("Conv", e, weights(s, (c, c, *[1] * (len(s.shape(e)) - 2)), 0))
                e = quantized(s, e) if s.chance(0.5) else e
            case _:
                pass
        ends.append(e)
    t = joint(s, *ends)
    if s.chance(0.3):
        t = joint(s, t, s.pick(*ends))
    t = chain(s, t, 0, 2)
    return quantized(s, t) if s.chance(0.75) else t


def one_tensor(s: Sketch, t: str) -> str:
    """A function of one tensor that is written with two or three."""
    left, right = chain(s, t, 0, 2), chain(s, t, 1, 2)
    if s.kind(left) != s.kind(right) or "bool" in (s.kind(left), s.kind(right)) or s.shape(left) != s.shape(right):
        raise Unfit
    if s.chance(0.35):
        number = reals if s.kind(t).startswith("float") else integers
        c = s.const(number(s, t, place(s, t)), s.kind(t))
        condition = s.add(s.pick("Greater", "Less", "LessOrEqual", "Equal"), t, c)
        joined = s.add("Where", condition, left, right)
    elif s.dialect == "qdq" and not s.powers:
        raise Unfit
    else:
        deep = any(_joined_before(s, v) for v in (left, right))
        if deep and not all(is_exact(s.values[v]) for v in (left, right)):
            raise Unfit
        joined = s.add(s.pick(*JOINTS), left, right)
    joined = chain(s, joined, 0, 1)
    return quantized(s, joined) if s.chance(0.7) else joined


def requantized(s: Sketch, t: str) -> str:
    """Two quantizers, with data movement or elementwise operators in between."""
    t = quantized(s, t)
    t = moved(s, t) if s.chance(0.4) else chain(s, t, 0, 2)
    return quantized(s, t)


def per_channel(s: Sketch, t: str) -> str:
    """Elementwise work with constants along axes, and moves between."""
    t = chain(s, t, 1, 2)
    t = moved(s, t)
    t = chain(s, t, 1, 2)
    return quantized(s, t) if s.chance(0.6) else t


def codes(s: Sketch, t: str) -> str:
    """Integers: of a cast or a QuantizeLinear, arithmetic that may wrap, and back."""
    if s.kind(t).startswith("float"):
        to = s.pick("int8", "uint8", "int16", "int32", "int8", "uint8")
        t = s.add("Cast", t, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    t = chain(s, t, 1, 3)
    if s.chance(0.3) and s.kind(t) in ("int8", "uint8"):
        t = chain(s, max_pool(s, t), 1, 2)
    if s.dialect == "qdq" and s.kind(t) in ("int8", "uint8", "int32"):
        return dequantized(s, t)
    return quantized(s, t) if s.chance(0.5) else t
