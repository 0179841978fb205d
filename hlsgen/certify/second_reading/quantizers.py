"""Second reading of operators on single elements: quantizers in all dialects, arithmetic with constants, borders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.activations import compare_values
from hlsgen.certify.second_reading.protobuf import ROUNDINGS, along, code_range, kind_of, limits
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, aligned, differ, parameters
from hlsgen.ir import Pad, Reshape, Transpose, ops
from hlsgen.numerics.fixed import Array

#: Alternative name of a rounding in files -> its name in the Model.
_SYNONYMS = {"HALF_EVEN": "ROUND", "ROUND_TO_ZERO": "DOWN"}


def _mode(attributes: dict[str, Any], default: str) -> str:
    name = str(attributes.get("rounding_mode", default)).upper()
    return _SYNONYMS.get(name, name) if name in ROUNDINGS else "unknown"


# --------------------------------------------------------------------------- QONNX


def _int_quant(imported: ImportedSteps, n: int) -> Differences:
    step, attributes = imported.only(n, ops.IntQuant, ops.Bipolar, ops.SignedBit), imported.file.attributes[n]
    inputs = None if step is None else parameters(imported, n, len(step.shape), 1, 2, 3)
    if step is None or inputs is None:
        return None
    (scale, zero, width), op = inputs, step.op
    if width.size > 1:
        return None
    bits, signed, narrow = int(width.ravel()[0]), bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0))
    differences = [*differ("scale", op.scale, scale)]  # type: ignore[union-attr]
    if bits == 1 and signed:
        if isinstance(op, ops.Bipolar) and not zero.any():
            return [*differences, *differ("divisor", op.divisor, scale)]
        return (
            [*differences, *differ("zero point", op.zero_point, zero)]
            if isinstance(op, ops.SignedBit)
            else [*differences, "1 bit."]
        )
    if not isinstance(op, ops.IntQuant):
        return [*differences, f"1 signed bit was imported, the file has {bits} bits, signed {signed}."]
    differences += differ("zero point", op.zero_point, zero)
    differences += differ("range of codes", (op.type.lo, op.type.hi), code_range(bits, signed, narrow))
    return [*differences, *_compare_rounding(op.mode.name, _mode(attributes, "ROUND"))]


def _compare_rounding(imported_mode: str, file_mode: str) -> list[str]:
    return [] if imported_mode == file_mode else [f"rounding {imported_mode} was imported, the file has {file_mode}."]


def _bipolar(imported: ImportedSteps, n: int) -> Differences:
    step = imported.only(n, ops.Bipolar)
    values = None if step is None else parameters(imported, n, len(step.shape), 1)
    if step is None or values is None:
        return None
    op = step.op
    assert isinstance(op, ops.Bipolar)
    return [*differ("scale", op.scale, values[0]), *differ("divisor", op.divisor, 1)]


def _trunc(imported: ImportedSteps, n: int) -> Differences:
    """Inputs of version 1: scale, zero point, both widths.

    Version 2 puts the scale of the result before the last input.
    """
    step, attributes = imported.only(n, ops.Trunc), imported.file.attributes[n]
    is_version_2 = imported.file.has_input(n, 5)
    values = None if step is None else parameters(imported, n, len(step.shape), *range(1, 6 if is_version_2 else 5))
    if step is None or values is None:
        return None
    op, (scale, zero) = step.op, values[:2]
    assert isinstance(op, ops.Trunc)
    differences = [*differ("scale", op.scale, scale), *differ("zero point", op.zero_point, zero)]
    if is_version_2:
        divisor = 2.0 ** np.round(np.log2(values[3] / scale))
        ends = code_range(
            int(values[4].ravel()[0]), bool(attributes.get("signed", 1)), bool(attributes.get("narrow", 0))
        )
        differences += differ("range of codes", (op.type.lo, op.type.hi) if op.type else None, ends)
        differences += [
            *differ("out_scale", op.out_scale, values[3]),
            *differ("output zero point", op.out_zero_point, zero / divisor),
        ]
    else:
        divisor = 2.0 ** (values[2] - values[3])
        differences += [] if op.type is None else ["limits were imported, version 1 has none."]
        differences += [
            *differ("output scale", op.out_scale, scale),
            *differ("output zero point", op.out_zero_point, zero),
        ]
    return [
        *differences,
        *differ("divisor", op.divisor, divisor),
        *_compare_rounding(op.mode.name, _mode(attributes, "FLOOR")),
    ]


def _multi_threshold(imported: ImportedSteps, n: int) -> Differences:
    step, thresholds, attributes = (
        imported.only(n, ops.MultiThreshold),
        imported.file.constant(n, 1),
        imported.file.attributes[n],
    )
    if step is None or thresholds is None or thresholds.array.ndim != 2:
        return None
    op, rank = step.op, len(step.shape)
    assert isinstance(op, ops.MultiThreshold)
    layout = attributes.get("data_layout") or {2: "NC", 3: "NWC", 4: "NCHW"}.get(rank, "")
    broadcast_shape = [1] * rank
    broadcast_shape[layout.index("C") if "C" in layout else 1] = len(thresholds.array)
    differences = [*differ("thresholds", op.thresholds, thresholds.array.T.reshape([-1, *broadcast_shape]))]
    for key, value, default in (("out_scale", op.out_scale, 1.0), ("out_bias", op.out_bias, 0.0)):
        differences += differ(key, value, attributes.get(key, default))
    return differences


# --------------------------------------------------------------------------- integers


def quantizer(
    imported: ImportedSteps, op: ops.QuantizeLinear, rank: int, scale: Array, zero: Array | None, axis: int, kind: str
) -> list[str]:
    """Differences between a QuantizeLinear of the Model and one with these parameters."""
    point = np.zeros(1, np.int64) if zero is None else zero.astype(np.int64)
    differences = [
        *differ("scale", op.scale, along(scale, rank, axis)),
        *differ("zero point", op.zero_point, along(point, rank, axis)),
    ]
    return [
        *differences,
        *differ("range of codes", (op.type.lo, op.type.hi), limits(kind)),
        *_compare_rounding(op.mode.name, "ROUND"),
    ]


def _quantize_linear(imported: ImportedSteps, n: int) -> Differences:
    step, file = imported.only(n, ops.QuantizeLinear), imported.file
    scale, zero = file.constant(n, 1), file.constant(n, 2)
    attributes = file.attributes[n]
    if step is None or scale is None or (zero is None and (file.has_input(n, 2) or attributes.get("output_dtype"))):
        return None
    op, kind = step.op, "uint8" if zero is None else kind_of(zero.array)
    assert isinstance(op, ops.QuantizeLinear)
    if (op.scale == 1).all() and (scale.array != 1).any():
        return None  # part of a group that is one operation
    point = None if zero is None else zero.array
    return quantizer(imported, op, len(step.shape), scale.array, point, attributes.get("axis", 1), kind)


def dequantizer(op: ops.Dequantize, rank: int, scale: Array, zero: Array | None, axis: int) -> list[str]:
    """Differences between a Dequantize of the Model and one with these parameters."""
    point = np.zeros(1, np.int64) if zero is None else zero.astype(np.int64)
    return [
        *differ("scale", op.scale, along(scale, rank, axis)),
        *differ("zero point", op.zero_point, along(point, rank, axis)),
    ]


def _dequantize_linear(imported: ImportedSteps, n: int) -> Differences:
    step, file = imported.only(n, ops.Dequantize), imported.file
    scale, zero = file.constant(n, 1), file.constant(n, 2)
    if step is None or scale is None or (zero is None and file.has_input(n, 2)):
        return None
    op = step.op
    assert isinstance(op, ops.Dequantize)
    if (op.scale == 1).all() and (scale.array != 1).any():
        return None
    axis = file.attributes[n].get("axis", 1)
    return dequantizer(op, len(step.shape), scale.array, None if zero is None else zero.array, axis)


def _qlinear_pair(imported: ImportedSteps, n: int) -> Differences:
    """QLinearAdd, QLinearMul of two computed tensors.

    Inputs: a, its scale and zero point; b and its; scale and zero point of the result.
    """
    pairs, file = imported.steps(n, ops.Pair), imported.file
    values = [file.constant(n, i) for i in (1, 4, 6, 2, 5, 7)]
    if len(pairs) != 1 or any(
        value is None and file.has_input(n, i) for value, i in zip(values, (1, 4, 6, 2, 5, 7), strict=True)
    ):
        return None
    op = pairs[0].op
    assert isinstance(op, ops.Pair)
    numbers = [0.0 if value is None else float(value.array.ravel()[0]) for value in values]
    a, b, (scale, zero) = ((numbers[i], numbers[i + 3]) for i in range(3))
    if op.kind is ops.PairOp.FIXED:
        return None
    imported_operands = sorted(zip(op.scales[:2], op.zeros[:2], strict=True))
    differences = [*differ("scales and zero points of the operands", imported_operands, sorted([a, b]))]
    differences += [
        *differ("scale of the result", op.scales[2], scale),
        *differ("zero point of the result", op.zeros[2], zero),
    ]
    file_kind = ops.PairOp.ADD if file.nodes[n].op_type == "QLinearAdd" else ops.PairOp.MUL
    return differences if op.kind is file_kind else [*differences, f"{op.kind.value} was imported."]


def _qlinear_activation(imported: ImportedSteps, n: int) -> Differences:
    """Inputs: x, its scale and zero point; scale and zero point of the result."""
    file, steps = imported.file, imported.steps(n)
    values = [file.constant(n, i) for i in range(1, 5)]
    if len(steps) != 3 or None in values:
        return None
    first, function, last = (step.op for step in steps)
    if not (
        isinstance(first, ops.Dequantize)
        and isinstance(function, ops.Activation)
        and isinstance(last, ops.QuantizeLinear)
    ):
        return None
    rank, parts = len(steps[0].shape), [value.array for value in values if value is not None]
    differences = dequantizer(first, rank, parts[0], parts[1], 1)
    differences += quantizer(imported, last, rank, parts[2], parts[3], 1, kind_of(parts[3]))
    if file.nodes[n].op_type == "QLinearLeakyRelu":
        differences += differ("alpha", np.float32(function.alpha), np.float32(file.attributes[n].get("alpha", 0.01)))
    if f"QLinear{function.kind}" != file.nodes[n].op_type:
        return [*differences, f"{function.kind} was imported."]
    alpha = {"alpha": function.alpha} if function.kind == "LeakyRelu" else {}
    return differences or compare_values(function, function.kind, alpha, file.opset)


def _requantize(imported: ImportedSteps, n: int) -> Differences:
    step, file, attributes = imported.only(n, ops.Requantize), imported.file, imported.file.attributes[n]
    values = [file.constant(n, i) for i in (1, 2, 3)]
    if step is None or None in values:
        return None
    op, rank, axis = step.op, len(step.shape), attributes.get("axis", -1)
    assert isinstance(op, ops.Requantize)
    multiplier, shift, zero = (value.array for value in values if value is not None)
    differences = [
        *differ("multiplier", op.multiplier, along(multiplier, rank, axis)),
        *differ("shift", op.shift, along(shift, rank, axis)),
    ]
    differences += [*differ("zero point", op.zero_point, zero.reshape(())), *differ("addend", op.add, 0)]
    differences += differ("range of codes", (op.type.lo, op.type.hi), limits(kind_of(zero)))
    return [*differences, *_compare_rounding(op.convention.value, attributes.get("rounding", "double"))]


# --------------------------------------------------------------------------- arithmetic with constants


def _arithmetic(imported: ImportedSteps, n: int) -> Differences:
    """One computed operand and one constant, imported as one step.

    Returns None if the frontend built something else.
    """
    file, node = imported.file, imported.file.nodes[n]
    places = [i for i, name in enumerate(node.input) if name in file.computed]
    if len(node.input) != 2 or len(places) != 1:
        return None
    const, steps = file.constant(n, 1 - places[0]), imported.steps(n)
    if (
        node.op_type == "Sub" and places[0] and len(steps) == 2 and isinstance(steps[0].op, ops.Mul)
    ):  # c - x = (x * -1) + c
        differences, steps = (
            [*differ("factor", steps[0].op.value, np.asarray(-1).astype(steps[0].op.value.dtype))],
            steps[1:],
        )
    elif node.op_type in ("Sub", "Div") and places[0]:
        return None
    else:
        differences = []
    if len(steps) != 1 or const is None or not isinstance(steps[0].op, _ARITHMETIC[node.op_type]):
        return None
    value = aligned(const.array, len(steps[0].shape))
    value = -value if node.op_type == "Sub" and not places[0] else value
    return [*differences, *differ("operand", steps[0].op.value, value)]


_ARITHMETIC: dict[str, tuple[type[Any], ...]] = {
    "Add": (ops.Add,),
    "Sub": (ops.Add,),
    "Mul": (ops.Mul,),
    "Div": (ops.Div,),
    "Max": (ops.Max,),
    "Min": (ops.Min,),
}


def _relu(imported: ImportedSteps, n: int) -> Differences:
    step = imported.only(n, ops.Max)
    return None if step is None else [*differ("bound", step.op.value, 0)]  # type: ignore[union-attr]


def _clip(imported: ImportedSteps, n: int) -> Differences:
    file, attributes = imported.file, imported.file.attributes[n]
    differences: list[str] = []
    for i, key, kind in ((1, "min", ops.Max), (2, "max", ops.Min)):
        const, bounds = file.constant(n, i), imported.steps(n, kind)
        if const is None and file.has_input(n, i):
            return None
        file_bounds = [np.float32(attributes[key])] if key in attributes else [] if const is None else [const.array]
        if len(bounds) != len(file_bounds):
            return None
        for step, value in zip(bounds, file_bounds, strict=True):
            differences += differ(f"bound {key}", step.op.value, np.reshape(value, ()))  # type: ignore[union-attr]
    return differences if len(imported.steps(n)) == len(imported.steps(n, ops.Max, ops.Min)) else None


def _batch_norm(imported: ImportedSteps, n: int) -> Differences:
    """x * a + b in float32, with a = gamma * (1 / sqrt(var + eps)) and b = beta - mean * a."""
    file, steps = imported.file, imported.steps(n)
    values = [file.constant(n, i) for i in range(1, 5)]
    if len(steps) != 2 or None in values or file.nodes[n].domain not in ("", "ai.onnx"):
        return None
    factor, term = steps[0].op, steps[1].op
    if not (isinstance(factor, ops.Mul) and isinstance(term, ops.Add)):
        return None
    gamma, beta, mean, var = (value.array.astype(np.float32).ravel() for value in values if value is not None)
    a = gamma * (np.float32(1) / np.sqrt(var + np.float32(file.attributes[n].get("epsilon", 1e-5))))
    rank = len(steps[0].shape)
    parts = [along(part, rank, 1) if part.size > 1 else part.reshape((1,) * rank) for part in (a, beta - mean * a)]
    return [*differ("factor", factor.value, parts[0]), *differ("addend", term.value, parts[1])]


#: Value of the attribute `to` of Cast -> name in numpy.
_FLOATS = {1: "float32", 10: "float16", 11: "float64"}


def _cast(imported: ImportedSteps, n: int) -> Differences:
    step, file_dtype = imported.only(n, ops.Cast), _FLOATS.get(imported.file.attributes[n].get("to", 0))
    if step is None or file_dtype is None:
        return None
    assert isinstance(step.op, ops.Cast)
    return (
        []
        if step.op.dtype == file_dtype
        else [f"a conversion to {step.op.dtype} was imported, the file has {file_dtype}."]
    )


# --------------------------------------------------------------------------- layout


def _transpose(imported: ImportedSteps, n: int) -> Differences:
    step = imported.only(n, Transpose)
    if step is None:
        return None
    assert isinstance(step.op, Transpose)
    perm = imported.file.attributes[n].get("perm") or list(range(len(step.shape)))[::-1]
    return [*differ("perm", step.op.perm, perm)]


def _reshape(imported: ImportedSteps, n: int) -> Differences:
    """The shape is the requested one; elements keep their order."""
    step, node = imported.only(n, Reshape), imported.file.nodes[n]
    if step is None:
        return None
    shape, source_shape = step.shape, imported.input_shape(step)
    if node.op_type == "Flatten":
        axis = imported.file.attributes[n].get("axis", 1)
        return [*differ("shape", shape, (math.prod(source_shape[:axis]), math.prod(source_shape[axis:])))]
    const = imported.file.constant(n, 1)
    if node.op_type != "Reshape" or const is None or imported.file.attributes[n].get("allowzero"):
        return None
    target = const.array.tolist()
    file_shape = [
        source_shape[i] if size == 0 else imported_size if size == -1 else size
        for i, (size, imported_size) in enumerate(zip(target, shape, strict=False))
    ]
    return [*differ("shape", shape, file_shape)]


def _pad(imported: ImportedSteps, n: int) -> Differences:
    """Pads of an image (n, c, h, w) or a signal.

    A pad that moved past its quantizer has a border of that quantizer's codes.
    """
    file, attributes, steps = imported.file, imported.file.attributes[n], imported.steps(n, Pad)
    pads = attributes.get("pads") if file.constant(n, 1) is None else file.constant(n, 1).array.tolist()  # type: ignore[union-attr]
    value = file.constant(n, 2)
    if (
        len(steps) != 1
        or pads is None
        or len(pads) not in (6, 8)
        or file.has_input(n, 3)
        or (value is None and file.has_input(n, 2))
    ):
        return None
    op, rank = steps[0].op, len(pads) // 2
    assert isinstance(op, Pad)
    if any(pads[:2]) or any(pads[rank : rank + 2]) or min(pads) < 0:
        return None
    ends = (*pads[2:rank], *pads[rank + 2 :])
    differences = [*differ("pads", op.pads, ends if rank == 4 else (0, ends[0], 0, ends[1]))]
    number = float(np.ravel(attributes.get("value", 0.0) if value is None else value.array)[0])
    quantizer_node = next(
        (m for m in file.downstream_nodes(n, ("MaxPool", "Slice", "Pad")) if file.nodes[m].op_type == "QuantizeLinear"),
        -1,
    )
    scale, zero = (file.constant(quantizer_node, i) for i in (1, 2)) if quantizer_node >= 0 else (None, None)
    # The pad moved past the quantizer if that has no step (codes are padded already), or an earlier one.
    pads_codes = quantizer_node >= 0 and all(
        imported.model.steps.index(q) < imported.model.steps.index(steps[0]) for q in imported.steps(quantizer_node)
    )
    if pads_codes and scale is not None and zero is not None and scale.array.size == 1:
        lo, hi = limits(kind_of(zero.array))
        code = np.round(np.float32(number) / scale.array.ravel()[0]) + int(zero.array.ravel()[0])
        return [*differences, *differ("value of the border (a code)", op.value, np.clip(code, lo, hi))]
    return [*differences, *differ("value of the border", op.value, number)]


#: Operator -> its second reading.
ELEMENTS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "Quant": _int_quant,
    "IntQuant": _int_quant,
    "BipolarQuant": _bipolar,
    "Trunc": _trunc,
    "MultiThreshold": _multi_threshold,
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "Requantize": _requantize,
    "QLinearAdd": _qlinear_pair,
    "QLinearMul": _qlinear_pair,
    "Relu": _relu,
    "Clip": _clip,
    "QLinearSigmoid": _qlinear_activation,
    "QLinearLeakyRelu": _qlinear_activation,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Pad": _pad,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
