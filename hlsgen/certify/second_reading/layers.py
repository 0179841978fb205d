"""Second reading of layers that multiply, with their weights, biases, scales and windows; and of maximum pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.probes import of_steps
from hlsgen.certify.second_reading.protobuf import Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Found, Told, aligned, differ
from hlsgen.certify.second_reading.windows import geometry, points, same_window
from hlsgen.ir import Conv, ConvInteger, MatMul, MatMulInteger, Pool, Reduction, Step
from hlsgen.ir.ops import Add, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array

_INTEGER = (MatMulInteger, ConvInteger)


def _matrix(found: Found, n: int, i: int) -> Numbers | None:
    """The weights at input i as (rows, columns), or (outputs, height, width, channels of a group)."""
    file, node = found.file, found.file.nodes[n]
    const = file.constant(n, i)
    if const is None:
        return None
    if "Conv" in node.op_type:
        if const.array.ndim not in (3, 4):
            return None
        const = const.change(lambda x: np.moveaxis(x, 1, -1))
        return const.change(lambda x: x[:, None]) if const.array.ndim == 3 else const
    while const.array.ndim > 2 and const.array.shape[0] == 1:
        const = const.change(lambda x: x[0])
    if const.array.ndim != 2:
        return None
    return const if file.attributes[n].get("transB", 0) else const.change(np.transpose)


def _window(found: Found, n: int, op: Any, kernel: list[int]) -> list[str] | None:
    """Kernel, strides, dilations, pads of an image or a signal (height 1)."""
    attributes = found.file.attributes[n]
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", "") or attributes.get("ceil_mode", 0):
        if found.file.nodes[n].domain not in ("", "ai.onnx") or len(found.taken(n)) != 1:
            return None
        sizes = points(found, n)
    else:
        sizes = [0] * len(kernel)  # nothing depends on them
    place = geometry(attributes, sizes, kernel)
    if place is None or list(attributes.get("kernel_shape", kernel)) != kernel:
        return None
    return same_window(op.window, kernel, place)


def _place(found: Found, n: int, op: Any) -> list[str] | None:
    """Window and groups of a convolution; nothing of a matrix."""
    if isinstance(op, MatMul | MatMulInteger):
        return []
    weight = found.file.nodes[n].input[3 if found.file.nodes[n].op_type == "QLinearConv" else 1]
    told = _window(found, n, op, list(found.file.constants[weight].array.shape[2:]))
    return None if told is None else [*told, *differ("groups", op.groups, found.file.attributes[n].get("group", 1))]


# --------------------------------------------------------------------------- float layers


def _layer(found: Found, n: int) -> Told:
    """MatMul, Gemm, Conv, with real weights; or between DequantizeLinear and QuantizeLinear."""
    file, node = found.file, found.file.nodes[n]
    weight, own = _matrix(found, n, 1), found.steps(n, MatMul, Conv, *_INTEGER)
    if len(own) != 1 or node.domain not in ("", "ai.onnx"):
        return None
    op = own[0].op
    if isinstance(op, MatMul) and node.op_type == "MatMul" and file.constant(n, 0) is not None:
        return _left_layer(found, n, op)
    if weight is None:
        return None
    place = _place(found, n, op)
    if isinstance(op, _INTEGER):
        return None if place is None else _between(found, n, own[0], weight, place)
    assert isinstance(op, MatMul | Conv)
    if place is None:
        return None
    scale = op.scale.astype(np.float64).reshape(-1, *[1] * (op.weight.ndim - 1))
    told = [*place, *differ("weight", op.weight * scale, weight.real)]
    attributes = file.attributes[n]
    alpha, beta = (np.float32(attributes.get(key, 1.0)) for key in ("alpha", "beta"))
    factors, terms = found.steps(n, Mul), found.steps(n, Add)
    bias = file.constant(n, 2)
    if len(factors) != (alpha != 1) or len(terms) != file.given(n, 2) or (file.given(n, 2) and bias is None):
        return None
    for step in factors:
        told += differ("alpha", step.op.value, alpha)  # type: ignore[union-attr]
    for step in terms:
        assert bias is not None
        rank = len(step.shape)
        wanted = bias.array.reshape(-1, *[1] * (rank - 2)) if isinstance(op, Conv) else beta * bias.array
        told += differ("bias", step.op.value, aligned(wanted, rank))  # type: ignore[union-attr]
    return told


def _left_layer(found: Found, n: int, op: MatMul) -> Told:
    """A constant times data: products of whole numbers, whose sums are exact as each row of weights has one scale."""
    weight, taken = found.file.constant(n, 0), found.taken(n)
    if weight is None or len(taken) != 1:
        return None
    x = np.random.default_rng(0).integers(-99, 100, taken[0]).astype(np.float64)
    results = of_steps(found, n, [x], {id(op): op.weight * op.scale.astype(np.float64)[:, None]})
    return None if not results else [*differ("product", results[-1], np.matmul(weight.real, x))]


def _between(found: Found, n: int, step: Step, weight: Numbers, told: list[str]) -> Told:
    """Codes, an int32 bias, one factor fl(fl(sa * sb) / sy): what a QDQ group becomes. Covers its other nodes."""
    file = found.file
    first = file.before(n)
    behind = file.after(n, ("Add", "Relu"))
    if first < 0 or file.nodes[first].op_type != "DequantizeLinear" or not behind or weight.codes is None:
        return None
    last = behind[-1]
    scales = [file.constant(first, 1), file.constant(last, 1)]
    zeros = [file.constant(first, 2), file.constant(last, 2)]
    if (
        file.nodes[last].op_type != "QuantizeLinear"
        or None in scales
        or None in zeros
        or weight.scale is None
        or weight.zero is None
    ):
        return None
    sa, sy = (part.array.astype(np.float32).ravel() for part in scales if part is not None)
    za, zy = (part.array for part in zeros if part is not None)
    if sa.size != 1 or sy.size != 1:
        return None
    rows = weight.scale.reshape(len(weight.scale), -1)
    told = [*told, *differ("weight", step.op.weight, weight.codes - weight.zero)]  # type: ignore[union-attr]
    told += differ("zero point of the data", step.op.zero_point, za.astype(np.int64).ravel())  # type: ignore[union-attr]
    product = sa * rows[:, 0].astype(np.float32)
    if (rows != rows[:, :1]).any():
        told += ["the file's scales of the weights differ within a row."]
    adds = [m for m in behind if file.nodes[m].op_type == "Add"]
    biases = [
        file.constant(n, 2),
        *(file.constant(m, i) for m in adds for i in (0, 1) if file.nodes[m].input[i] in file.constants),
    ]
    known = [bias for bias in biases if bias is not None]
    if not _sums_with(found, n, told, [b.codes.ravel() for b in known if b.codes is not None], product / sy):
        return None
    for bias in known:
        if bias.scale is not None:
            told += differ("scale of the bias", product, bias.scale.ravel())
    final = found.only(last, QuantizeLinear)
    if final is None:
        return None
    assert isinstance(final.op, QuantizeLinear)
    told += quantizer(found, final.op, len(final.shape), np.ones(1, np.float32), zy, 1, kind_of(zy))
    found.covered |= {first, last, *behind[:-1]} - {
        m for m in behind if file.nodes[m].op_type in ("Reshape", "Transpose")
    }
    return told


def _sums_with(found: Found, n: int, told: list[str], biases: list[Array], factor: Array) -> bool:
    """Compares the addition behind integer sums, and the factor. Whether the steps have this form."""
    terms, factors = found.steps(n, Add), found.steps(n, Mul)
    if len(terms) != len(biases) or len(factors) != 1:
        return False
    for step, bias in zip(terms, biases, strict=True):
        told += differ("bias", step.op.value, bias)  # type: ignore[union-attr]
    told += differ("factor", factors[0].op.value, factor)  # type: ignore[union-attr]
    return True


# --------------------------------------------------------------------------- integer layers


def _parts(found: Found, n: int, places: tuple[int, ...]) -> list[Array | None] | None:
    """Constant inputs, None for those that are left out; None at all if one is not known."""
    parts = [found.file.constant(n, i) for i in places]
    if any(part is None and found.file.given(n, i) for part, i in zip(parts, places, strict=True)):
        return None
    return [None if part is None else part.array for part in parts]


def _sums(found: Found, n: int, weights: int, zeros: tuple[int, int]) -> tuple[Step, list[str]] | None:
    """The integer layer of a node: its weights less their zero point, the data's zero point, its window."""
    own, weight, parts = found.steps(n, *_INTEGER), _matrix(found, n, weights), _parts(found, n, zeros)
    if len(own) != 1 or weight is None or parts is None or found.file.attributes[n].get("channels_last"):
        return None
    told = _place(found, n, own[0].op)
    if told is None:
        return None
    data, point = (np.zeros(1, np.int64) if part is None else part.astype(np.int64).ravel() for part in parts)
    codes = weight.array.astype(np.int64)
    op = own[0].op
    assert isinstance(op, _INTEGER)
    told += differ("weight", op.weight, codes - point.reshape(-1, *[1] * (codes.ndim - 1)))
    return own[0], [*told, *differ("zero point of the data", op.zero_point, data[0])]


def _integer_layer(found: Found, n: int) -> Told:
    """MatMulInteger, ConvInteger: data, weights, their zero points."""
    sums = _sums(found, n, 1, (2, 3))
    return None if sums is None else sums[1]


def _qlinear_layer(found: Found, n: int) -> Told:
    """Data, weights, result with scales and zero points; in one of the orders of inputs that there are."""
    kind, file = found.file.nodes[n].op_type, found.file
    # Places of: weights; zero points of data and weights; scales of data and weights; bias; scale, zero point of the result.
    weights, zeros, scales, bias, result = {
        "QLinearMatMul": (3, (2, 5), (1, 4), -1, (6, 7)),
        "QLinearConv": (3, (2, 5), (1, 4), 8, (6, 7)),
        "QGemm": (3, (2, 5), (1, 4), 6, (7, 8)),
        "MatMulIntegerToFloat": (1, (4, 5), (2, 3), 6, (-1, -1)),
    }[kind]
    sums = _sums(found, n, weights, zeros)
    parts, ends = _parts(found, n, scales), _parts(found, n, result) if result[0] >= 0 else [None, None]
    term = _parts(found, n, (bias,)) if bias >= 0 else [None]
    if sums is None or parts is None or ends is None or term is None or parts[0] is None or parts[1] is None:
        return None
    told, alpha = sums[1], np.float32(file.attributes[n].get("alpha", 1.0))
    factor = alpha * parts[0].astype(np.float32).ravel() * parts[1].astype(np.float32).ravel()
    if ends[0] is not None:
        factor = factor / ends[0].astype(np.float32).ravel()
    if not _sums_with(found, n, told, [] if term[0] is None else [term[0].ravel()], factor):
        return None
    finals = found.steps(n, QuantizeLinear)
    if len(finals) != (ends[0] is not None) or (finals and ends[1] is None):
        return None
    for final in finals:
        assert isinstance(final.op, QuantizeLinear)
        assert ends[1] is not None
        told += quantizer(found, final.op, len(final.shape), np.ones(1, np.float32), ends[1], 1, kind_of(ends[1]))
    return told


def _max_pool(found: Found, n: int) -> Told:
    own, attributes = found.steps(n, Pool), found.file.attributes[n]
    if len(own) != 1 or "kernel_shape" not in attributes or found.file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    op = own[0].op
    assert isinstance(op, Pool)
    told = _window(found, n, op, attributes["kernel_shape"])
    return told if told is None or op.kind is Reduction.MAX else [*told, "a sum was imported."]


#: Operator -> its second reading.
LAYERS: dict[str, Callable[[Found, int], Told]] = {
    "MatMul": _layer, "Gemm": _layer, "Conv": _layer, "MatMulInteger": _integer_layer, "ConvInteger": _integer_layer,
    "QLinearMatMul": _qlinear_layer, "QLinearConv": _qlinear_layer, "QGemm": _qlinear_layer,
    "MatMulIntegerToFloat": _qlinear_layer, "MaxPool": _max_pool,
}  # fmt: skip
