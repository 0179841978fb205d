"""Second reading of Deeploy's integer operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ, parameters
from hlsgen.ir import RowStep
from hlsgen.ir.ops import IntegerActivation, IntegerRatio, Requantize
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share


def _requant_shift(imported: ImportedSteps, n: int) -> Differences:
    """clip((x * mul + add + (div >> 1)) >> log2(div))."""
    step, attributes = imported.only(n, Requantize), imported.file.attributes[n]
    values = None if step is None else parameters(imported, n, len(step.shape), 1, 2)
    if step is None or values is None or "div" not in attributes:
        return None
    op = step.op
    assert isinstance(op, Requantize)
    div, levels = (
        int(np.ravel(attributes.get(key, 256))[0])
        for key in ("div", "n_levels" if "n_levels" in attributes else "n_levels_out")
    )
    signed = bool(np.ravel(attributes.get("signed", 1))[0])
    ends = (-(levels // 2), levels // 2 - 1) if signed else (0, levels - 1)
    differences = [*differ("multiplier", op.multiplier, values[0]), *differ("addend", op.add, values[1] + div // 2)]
    differences += [
        *differ("shift", op.shift, math.log2(div)),
        *differ("range of codes", (op.type.lo, op.type.hi), ends),
    ]
    return [
        *differences,
        *differ("zero point", op.zero_point, 0),
        *([] if op.convention.value == "floor" else ["another rounding."]),
    ]


def _int_attribute(attributes: dict[str, Any], key: str, default: int = 0) -> int:
    return int(np.ravel(attributes.get(key, default))[0])


def _integer_activation(imported: ImportedSteps, n: int) -> Differences:
    """iGELU and iHardswish: compare the name and the parameters."""
    step, attributes = imported.only(n, IntegerActivation), imported.file.attributes[n]
    if step is None:
        return None
    op, kind = step.op, imported.file.nodes[n].op_type
    assert isinstance(op, IntegerActivation)
    keys = {"iGELU": ("b", "one"), "iHardswish": ("three", "six", "one_over_six")}[kind]
    differences = [] if op.kind.value == kind else [f"{op.kind.value} was imported, the file has {kind}."]
    return [*differences, *differ("parameters", op.parameters, [_int_attribute(attributes, key) for key in keys])]


def _integer_ratio(imported: ImportedSteps, n: int) -> Differences:
    """iNoNorm, IntegerDiv, TrueIntegerDiv, IntegerMean: compare factor, addend, divisor, range, rounding, wrapping."""
    steps, attributes, kind = (
        imported.steps(n, IntegerRatio),
        imported.file.attributes[n],
        imported.file.nodes[n].op_type,
    )
    if len(steps) != 1:
        return None
    op, rank = steps[0].op, len(steps[0].shape)
    assert isinstance(op, IntegerRatio)
    if kind == "IntegerMean":
        count = math.prod(imported.input_shape(imported.steps(n)[0])) // math.prod(steps[0].shape)
        expected: list[Any] = [1, count // 2, count]
    elif kind == "iNoNorm":
        values = parameters(imported, n, rank, 1, 2)
        if values is None:
            return None
        expected = [*(value * _int_attribute(attributes, "mul") for value in values), _int_attribute(attributes, "D")]
    else:
        values = parameters(imported, n, rank, 1)
        if values is None:
            return None
        delta, eta = (_int_attribute(attributes, key, 1) for key in ("Delta", "eta"))
        divisor = values[0].astype(np.int64) * eta + _int_attribute(attributes, "eps")
        expected = [delta * eta, divisor // 2, divisor]
    differences = [*differ("factor", op.multiplier, expected[0]), *differ("addend", op.add, expected[1])]
    differences += differ("divisor", op.divisor, expected[2])
    ends = (-128, 127) if kind == "iNoNorm" else (-(1 << 31), (1 << 31) - 1)
    differences += differ("range of codes", (op.type.lo, op.type.hi), ends)
    return [*differences, *differ("form", (op.mirrored, op.wraps), (kind.endswith("IntegerDiv"), kind == "iNoNorm"))]


def _softmax(imported: ImportedSteps, n: int) -> Differences:
    """iSoftmax, ITAMax, ITAPartialMax: compare both lookup tables, entry by entry."""
    attributes, kind, steps = imported.file.attributes[n], imported.file.nodes[n].op_type, imported.steps(n, RowStep)
    functions = [step.op.function for step in steps if isinstance(step.op, RowStep)]
    if len(functions) != 2 or not isinstance(functions[0], BelowLargest) or not isinstance(functions[1], Share):
        return None
    levels, share, powers, numerators = _int_attribute(attributes, "n_levels", 256), functions[1], [], []
    for distance in range(len(share.weights)):
        if kind == "iSoftmax":
            a, b, c, log2 = (_int_attribute(attributes, key) for key in ("coeffA", "coeffB", "coeffC", "log2"))
            z = min(distance // log2, 31)
            powers.append((a * (z * log2 - distance + b) ** 2 + c) >> z)
            numerators.append(powers[-1] * (levels - 1))
        else:
            top = levels // 2 - 1 if kind == "ITAPartialMax" else levels - 1
            powers.append(256 // 2 ** ((distance + 16) // 32))
            numerators.append(top * 256 // 2 ** ((distance + 16) // 32))
    return [*differ("weights", share.weights, powers), *differ("numbers", share.numbers, numerators)]


def _norm(imported: ImportedSteps, n: int) -> Differences:
    """iLayerNorm, iRMSNorm."""
    step, attributes, kind = imported.only(n, RowStep), imported.file.attributes[n], imported.file.nodes[n].op_type
    centred = kind == "iLayerNorm"
    values = None if step is None else parameters(imported, n, len(step.shape), *((1, 2) if centred else (1,)))
    if step is None or values is None:
        return None
    assert isinstance(step.op, RowStep)
    norm = step.op.function
    if not isinstance(norm, IntegerNorm):
        return None
    differences = [*differ("weight", norm.weight, values[0].ravel())]
    differences += differ("bias", norm.bias, values[1].ravel() if centred else 0)
    differences += differ("shift", norm.shift, math.log2(_int_attribute(attributes, "D")))
    differences += differ("form", (norm.centred, norm.wraps), (centred, centred))
    return [*differences, *differ("range of codes", (norm.type.lo, norm.type.hi), (-128, 127))]


#: Operator -> its second reading.
DEEPLOY: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "RequantShift": _requant_shift,
    **dict.fromkeys(["iSoftmax", "ITAMax", "ITAPartialMax"], _softmax),
    **dict.fromkeys(["iLayerNorm", "iRMSNorm"], _norm),
    **dict.fromkeys(["iGELU", "iHardswish"], _integer_activation),
    **dict.fromkeys(["iNoNorm", "IntegerDiv", "TrueIntegerDiv", "IntegerMean"], _integer_ratio),
}
