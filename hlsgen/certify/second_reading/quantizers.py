"""Second reading of operators on single elements: quantizers in all dialects, arithmetic with constants, borders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.protobuf import ROUNDINGS, along, code_range, kind_of, limits
from hlsgen.certify.second_reading.steps import Found, Told, aligned, differ, parameters
from hlsgen.ir import Pad, Reshape, Transpose
from hlsgen.ir.ops import (
    Activation,
    Add,
    Bipolar,
    Cast,
    Dequantize,
    Div,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    PairOp,
    QuantizeLinear,
    Requantize,
    SignedBit,
    Trunc,
)
from hlsgen.numerics.fixed import Array

#: Several names of one rounding in files -> the name that it has in the Model.
_SYNONYMS = {"HALF_EVEN": "ROUND", "ROUND_TO_ZERO": "DOWN"}


def _mode(attributes: dict[str, Any], default: str) -> str:
    name = str(attributes.get("rounding_mode", default)).upper()
    return _SYNONYMS.get(name, name) if name in ROUNDINGS else "unknown"


# --------------------------------------------------------------------------- QONNX


def _int_quant(found: Found, n: int) -> Told:
    step, attributes = found.only(n, IntQuant, Bipolar, SignedBit), found.file.attributes[n]
    values = None if step is None else parameters(found, n, len(step.shape), 1, 2, 3)
    if step is None or values is None:
        return None
    (scale, zero, width), op = values, step.op
    bits, signed, narrow = int(width.ravel()[0]), bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0))
    told = [*differ("scale", op.scale, scale)]  # type: ignore[union-attr]
    if bits == 1 and signed:
        if isinstance(op, Bipolar) and not zero.any():
            return [*told, *differ("divisor", op.divisor, scale)]
        return [*told, *differ("zero point", op.zero_point, zero)] if isinstance(op, SignedBit) else [*told, "1 bit."]
    if not isinstance(op, IntQuant):
        return [*told, f"1 signed bit was imported, the file has {bits} bits, signed {signed}."]
    told += differ("zero point", op.zero_point, zero)
    told += differ("range of codes", (op.type.lo, op.type.hi), code_range(bits, signed, narrow))
    return [*told, *_same_mode(op.mode.name, _mode(attributes, "ROUND"))]


def _same_mode(found: str, wanted: str) -> list[str]:
    return [] if found == wanted else [f"rounding {found} was imported, the file has {wanted}."]


def _bipolar(found: Found, n: int) -> Told:
    step = found.only(n, Bipolar)
    values = None if step is None else parameters(found, n, len(step.shape), 1)
    if step is None or values is None:
        return None
    op = step.op
    assert isinstance(op, Bipolar)
    return [*differ("scale", op.scale, values[0]), *differ("divisor", op.divisor, 1)]


def _trunc(found: Found, n: int) -> Told:
    """Version 1: scale, zero point, both widths. Version 2: the scale of the result in front of the last."""
    step, attributes = found.only(n, Trunc), found.file.attributes[n]
    later = found.file.given(n, 5)
    values = None if step is None else parameters(found, n, len(step.shape), *range(1, 6 if later else 5))
    if step is None or values is None:
        return None
    op, (scale, zero) = step.op, values[:2]
    assert isinstance(op, Trunc)
    told = [*differ("scale", op.scale, scale), *differ("zero point", op.zero_point, zero)]
    if later:
        divisor = 2.0 ** np.round(np.log2(values[3] / scale))
        ends = code_range(
            int(values[4].ravel()[0]), bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0))
        )
        told += differ("range of codes", (op.type.lo, op.type.hi) if op.type else None, ends)
        told += [
            *differ("out_scale", op.out_scale, values[3]),
            *differ("zero point behind", op.out_zero_point, zero / divisor),
        ]
    else:
        divisor = 2.0 ** (values[2] - values[3])
        told += [] if op.type is None else ["limits were imported, version 1 has none."]
        told += [*differ("scale behind", op.out_scale, scale), *differ("zero point behind", op.out_zero_point, zero)]
    return [*told, *differ("divisor", op.divisor, divisor), *_same_mode(op.mode.name, _mode(attributes, "FLOOR"))]


def _multi_threshold(found: Found, n: int) -> Told:
    step, table, attributes = found.only(n, MultiThreshold), found.file.constant(n, 1), found.file.attributes[n]
    if step is None or table is None or table.array.ndim != 2:
        return None
    op, rank = step.op, len(step.shape)
    assert isinstance(op, MultiThreshold)
    layout = attributes.get("data_layout") or {2: "NC", 3: "NWC", 4: "NCHW"}.get(rank, "")
    form = [1] * rank
    form[layout.index("C") if "C" in layout else 1] = len(table.array)
    told = [*differ("thresholds", op.thresholds, table.array.T.reshape([-1, *form]))]
    for key, value, default in (("out_scale", op.out_scale, 1.0), ("out_bias", op.out_bias, 0.0)):
        told += differ(key, value, attributes.get(key, default))
    return told


# --------------------------------------------------------------------------- integers


def quantizer(
    found: Found, op: QuantizeLinear, rank: int, scale: Array, zero: Array | None, axis: int, kind: str
) -> list[str]:
    """What differs between a QuantizeLinear of the Model and one with these parameters."""
    point = np.zeros(1, np.int64) if zero is None else zero.astype(np.int64)
    told = [
        *differ("scale", op.scale, along(scale, rank, axis)),
        *differ("zero point", op.zero_point, along(point, rank, axis)),
    ]
    return [
        *told,
        *differ("range of codes", (op.type.lo, op.type.hi), limits(kind)),
        *_same_mode(op.mode.name, "ROUND"),
    ]


def _quantize_linear(found: Found, n: int) -> Told:
    step, file = found.only(n, QuantizeLinear), found.file
    scale, zero = file.constant(n, 1), file.constant(n, 2)
    attributes = file.attributes[n]
    if step is None or scale is None or (zero is None and (file.given(n, 2) or attributes.get("output_dtype"))):
        return None
    op, kind = step.op, "uint8" if zero is None else kind_of(zero.array)
    assert isinstance(op, QuantizeLinear)
    if (op.scale == 1).all() and (scale.array != 1).any():
        return None  # part of a group that is one operation
    point = None if zero is None else zero.array
    return quantizer(found, op, len(step.shape), scale.array, point, attributes.get("axis", 1), kind)


def dequantizer(op: Dequantize, rank: int, scale: Array, zero: Array | None, axis: int) -> list[str]:
    """What differs between a Dequantize of the Model and one with these parameters."""
    point = np.zeros(1, np.int64) if zero is None else zero.astype(np.int64)
    return [
        *differ("scale", op.scale, along(scale, rank, axis)),
        *differ("zero point", op.zero_point, along(point, rank, axis)),
    ]


def _dequantize_linear(found: Found, n: int) -> Told:
    step, file = found.only(n, Dequantize), found.file
    scale, zero = file.constant(n, 1), file.constant(n, 2)
    if step is None or scale is None or (zero is None and file.given(n, 2)):
        return None
    op = step.op
    assert isinstance(op, Dequantize)
    if (op.scale == 1).all() and (scale.array != 1).any():
        return None
    axis = file.attributes[n].get("axis", 1)
    return dequantizer(op, len(step.shape), scale.array, None if zero is None else zero.array, axis)


def _qlinear_pair(found: Found, n: int) -> Told:
    """QLinearAdd, QLinearMul of two computed tensors: a, its scale, zero point; b, ...; those of the result."""
    pairs, file = found.steps(n, Pair), found.file
    values = [file.constant(n, i) for i in (1, 4, 6, 2, 5, 7)]
    if len(pairs) != 1 or any(
        value is None and file.given(n, i) for value, i in zip(values, (1, 4, 6, 2, 5, 7), strict=True)
    ):
        return None
    op = pairs[0].op
    assert isinstance(op, Pair)
    numbers = [0.0 if value is None else float(value.array.ravel()[0]) for value in values]
    a, b, (scale, zero) = ((numbers[i], numbers[i + 3]) for i in range(3))
    if op.kind is PairOp.FIXED:
        return None
    own = sorted(zip(op.scales[:2], op.zeros[:2], strict=True))
    told = [*differ("scales and zero points of the operands", own, sorted([a, b]))]
    told += [
        *differ("scale of the result", op.scales[2], scale),
        *differ("zero point of the result", op.zeros[2], zero),
    ]
    wanted = PairOp.ADD if file.nodes[n].op_type == "QLinearAdd" else PairOp.MUL
    return told if op.kind is wanted else [*told, f"{op.kind.value} was imported."]


def _qlinear_activation(found: Found, n: int) -> Told:
    """x, its scale, zero point; scale and zero point of the result."""
    file, own = found.file, found.steps(n)
    values = [file.constant(n, i) for i in range(1, 5)]
    if len(own) != 3 or None in values:
        return None
    first, function, last = (step.op for step in own)
    if not (isinstance(first, Dequantize) and isinstance(function, Activation) and isinstance(last, QuantizeLinear)):
        return None
    rank, parts = len(own[0].shape), [value.array for value in values if value is not None]
    told = dequantizer(first, rank, parts[0], parts[1], 1)
    told += quantizer(found, last, rank, parts[2], parts[3], 1, kind_of(parts[3]))
    if file.nodes[n].op_type == "QLinearLeakyRelu":
        told += differ("alpha", np.float32(function.alpha), np.float32(file.attributes[n].get("alpha", 0.01)))
    return told if f"QLinear{function.kind}" == file.nodes[n].op_type else [*told, f"{function.kind} was imported."]


def _requantize(found: Found, n: int) -> Told:
    step, file, attributes = found.only(n, Requantize), found.file, found.file.attributes[n]
    values = [file.constant(n, i) for i in (1, 2, 3)]
    if step is None or None in values:
        return None
    op, rank, axis = step.op, len(step.shape), attributes.get("axis", -1)
    assert isinstance(op, Requantize)
    multiplier, shift, zero = (value.array for value in values if value is not None)
    told = [
        *differ("multiplier", op.multiplier, along(multiplier, rank, axis)),
        *differ("shift", op.shift, along(shift, rank, axis)),
    ]
    told += [*differ("zero point", op.zero_point, zero.reshape(())), *differ("addend", op.add, 0)]
    told += differ("range of codes", (op.type.lo, op.type.hi), limits(kind_of(zero)))
    return [*told, *_same_mode(op.convention.value, attributes.get("rounding", "double"))]


# --------------------------------------------------------------------------- arithmetic with constants


def _arithmetic(found: Found, n: int) -> Told:
    """One computed operand and one constant: one step, where nothing else was made of it."""
    file, node = found.file, found.file.nodes[n]
    places = [i for i, name in enumerate(node.input) if name in file.computed]
    if len(node.input) != 2 or len(places) != 1:
        return None
    const, own = file.constant(n, 1 - places[0]), found.steps(n)
    if node.op_type == "Sub" and places[0] and len(own) == 2 and isinstance(own[0].op, Mul):  # c - x = (x * -1) + c
        told, own = [*differ("factor", own[0].op.value, np.asarray(-1).astype(own[0].op.value.dtype))], own[1:]
    elif node.op_type in ("Sub", "Div") and places[0]:
        return None
    else:
        told = []
    if len(own) != 1 or const is None or not isinstance(own[0].op, _ARITHMETIC[node.op_type]):
        return None
    value = aligned(const.array, len(own[0].shape))
    value = -value if node.op_type == "Sub" and not places[0] else value
    return [*told, *differ("operand", own[0].op.value, value)]


_ARITHMETIC: dict[str, tuple[type[Any], ...]] = {
    "Add": (Add,), "Sub": (Add,), "Mul": (Mul,), "Div": (Div,), "Max": (Max,), "Min": (Min,),
}  # fmt: skip


def _relu(found: Found, n: int) -> Told:
    step = found.only(n, Max)
    return None if step is None else [*differ("bound", step.op.value, 0)]  # type: ignore[union-attr]


def _clip(found: Found, n: int) -> Told:
    file, attributes = found.file, found.file.attributes[n]
    told: list[str] = []
    for i, key, kind in ((1, "min", Max), (2, "max", Min)):
        const, own = file.constant(n, i), found.steps(n, kind)
        if const is None and file.given(n, i):
            return None
        wanted = [np.float32(attributes[key])] if key in attributes else [] if const is None else [const.array]
        if len(own) != len(wanted):
            return None
        for step, value in zip(own, wanted, strict=True):
            told += differ(f"bound {key}", step.op.value, np.reshape(value, ()))  # type: ignore[union-attr]
    return told if len(found.steps(n)) == len(found.steps(n, Max, Min)) else None


def _batch_norm(found: Found, n: int) -> Told:
    """x * a + b with a = gamma * (1 / sqrt(var + eps)) and b = beta - mean * a, in float32."""
    file, own = found.file, found.steps(n)
    values = [file.constant(n, i) for i in range(1, 5)]
    if len(own) != 2 or None in values or file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    factor, term = own[0].op, own[1].op
    if not (isinstance(factor, Mul) and isinstance(term, Add)):
        return None
    gamma, beta, mean, var = (value.array.astype(np.float32).ravel() for value in values if value is not None)
    a = gamma * (np.float32(1) / np.sqrt(var + np.float32(file.attributes[n].get("epsilon", 1e-5))))
    rank = len(own[0].shape)
    parts = [along(part, rank, 1) if part.size > 1 else part.reshape((1,) * rank) for part in (a, beta - mean * a)]
    return [*differ("factor", factor.value, parts[0]), *differ("addend", term.value, parts[1])]


def _activation(found: Found, n: int) -> Told:
    """By its name; with the parameters that the file gives."""
    step, attributes = found.only(n, Activation), found.file.attributes[n]
    if step is None or set(attributes) - {"alpha", "beta"}:
        return None
    op = step.op
    assert isinstance(op, Activation)
    kind = found.file.nodes[n].op_type
    told = [] if op.kind == kind else [f"{op.kind} was imported, the file has {kind}."]
    alpha, beta = _DEFAULTS.get(kind, (None, None))
    for key, value, default in (("alpha", op.alpha, alpha), ("beta", op.beta, beta)):
        if key in attributes or default is not None:
            told += differ(key, np.float32(value), np.float32(attributes.get(key, default)))
    return told


_DEFAULTS = {"Elu": (1.0, None), "LeakyRelu": (0.01, None), "HardSigmoid": (0.2, 0.5)}
_NAMES = ("Abs Ceil Elu Erf Exp Floor HardSigmoid HardSwish LeakyRelu Log Mish Reciprocal Round Sigmoid Sign Softplus "
          "Softsign Sqrt Tanh").split()  # fmt: skip
#: Number of a type in `Cast` -> name in numpy.
_FLOATS = {1: "float32", 10: "float16", 11: "float64"}


def _cast(found: Found, n: int) -> Told:
    step, wanted = found.only(n, Cast), _FLOATS.get(found.file.attributes[n].get("to", 0))
    if step is None or wanted is None:
        return None
    assert isinstance(step.op, Cast)
    return [] if step.op.dtype == wanted else [f"a conversion to {step.op.dtype} was imported, the file has {wanted}."]


# --------------------------------------------------------------------------- places


def _transpose(found: Found, n: int) -> Told:
    step = found.only(n, Transpose)
    if step is None:
        return None
    assert isinstance(step.op, Transpose)
    perm = found.file.attributes[n].get("perm") or list(range(len(step.shape)))[::-1]
    return [*differ("perm", step.op.perm, perm)]


def _reshape(found: Found, n: int) -> Told:
    """Elements stay in their order; the shape is the one that is asked for."""
    step, node = found.only(n, Reshape), found.file.nodes[n]
    if step is None:
        return None
    shape, before = step.shape, found.source(step)
    if node.op_type == "Flatten":
        axis = found.file.attributes[n].get("axis", 1)
        return [*differ("shape", shape, (math.prod(before[:axis]), math.prod(before[axis:])))]
    const = found.file.constant(n, 1)
    if node.op_type != "Reshape" or const is None or found.file.attributes[n].get("allowzero"):
        return None
    target = const.array.tolist()
    wanted = [
        before[i] if size == 0 else own if size == -1 else size
        for i, (size, own) in enumerate(zip(target, shape, strict=False))
    ]
    return [*differ("shape", shape, wanted)]


def _pad(found: Found, n: int) -> Told:
    """Pads of an image (n, c, h, w) or signal; in front of a quantizer the border may be of the code that it gives."""
    file, attributes, steps = found.file, found.file.attributes[n], found.steps(n, Pad)
    pads = attributes.get("pads") if file.constant(n, 1) is None else file.constant(n, 1).array.tolist()  # type: ignore[union-attr]
    value = file.constant(n, 2)
    if (
        len(steps) != 1
        or pads is None
        or len(pads) not in (6, 8)
        or file.given(n, 3)
        or (value is None and file.given(n, 2))
    ):
        return None
    op, rank = steps[0].op, len(pads) // 2
    assert isinstance(op, Pad)
    if any(pads[:2]) or any(pads[rank : rank + 2]) or min(pads) < 0:
        return None
    ends = (*pads[2:rank], *pads[rank + 2 :])
    told = [*differ("pads", op.pads, ends if rank == 4 else (0, ends[0], 0, ends[1]))]
    number = float(np.ravel(attributes.get("value", 0.0) if value is None else value.array)[0])
    behind = next(
        (m for m in file.after(n, ("MaxPool", "Slice", "Pad")) if file.nodes[m].op_type == "QuantizeLinear"), -1
    )
    scale, zero = (file.constant(behind, i) for i in (1, 2)) if behind >= 0 else (None, None)
    # Then the quantizer is gone, as codes are padded, or stands in front.
    moved = behind >= 0 and all(
        found.model.steps.index(q) < found.model.steps.index(steps[0]) for q in found.steps(behind)
    )
    if moved and scale is not None and zero is not None and scale.array.size == 1:
        lo, hi = limits(kind_of(zero.array))
        code = np.round(np.float32(number) / scale.array.ravel()[0]) + int(zero.array.ravel()[0])
        return [*told, *differ("value of the border (a code)", op.value, np.clip(code, lo, hi))]
    return [*told, *differ("value of the border", op.value, number)]


#: Operator -> its second reading.
ELEMENTS: dict[str, Callable[[Found, int], Told]] = {
    "Quant": _int_quant, "IntQuant": _int_quant, "BipolarQuant": _bipolar, "Trunc": _trunc, "MultiThreshold": _multi_threshold,
    "QuantizeLinear": _quantize_linear, "DequantizeLinear": _dequantize_linear,
    "Requantize": _requantize, "QLinearAdd": _qlinear_pair, "QLinearMul": _qlinear_pair, "Relu": _relu, "Clip": _clip,
    "QLinearSigmoid": _qlinear_activation, "QLinearLeakyRelu": _qlinear_activation, "BatchNormalization": _batch_norm,
    "Cast": _cast, "Transpose": _transpose, "Reshape": _reshape, "Flatten": _reshape, "Pad": _pad,
    **dict.fromkeys(_ARITHMETIC, _arithmetic), **dict.fromkeys(_NAMES, _activation),
}  # fmt: skip
