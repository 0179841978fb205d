"""Second reading of Deeploy's integer operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.steps import Found, Told, differ, parameters
from hlsgen.ir import RowStep
from hlsgen.ir.ops import IntegerActivation, IntegerRatio, Requantize
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share


def _requant_shift(found: Found, n: int) -> Told:
    """clip((x * mul + add + (div >> 1)) >> log2(div))."""
    step, attributes = found.only(n, Requantize), found.file.attributes[n]
    values = None if step is None else parameters(found, n, len(step.shape), 1, 2)
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
    told = [*differ("multiplier", op.multiplier, values[0]), *differ("addend", op.add, values[1] + div // 2)]
    told += [*differ("shift", op.shift, math.log2(div)), *differ("range of codes", (op.type.lo, op.type.hi), ends)]
    return [
        *told,
        *differ("zero point", op.zero_point, 0),
        *([] if op.convention.value == "floor" else ["another rounding."]),
    ]


def _whole(attributes: dict[str, Any], key: str, default: int = 0) -> int:
    return int(np.ravel(attributes.get(key, default))[0])


def _integer_activation(found: Found, n: int) -> Told:
    """iGELU and iHardswish: the name and the parameters of each."""
    step, attributes = found.only(n, IntegerActivation), found.file.attributes[n]
    if step is None:
        return None
    op, kind = step.op, found.file.nodes[n].op_type
    assert isinstance(op, IntegerActivation)
    keys = {"iGELU": ("b", "one"), "iHardswish": ("three", "six", "one_over_six")}[kind]
    told = [] if op.kind.value == kind else [f"{op.kind.value} was imported, the file has {kind}."]
    return [*told, *differ("parameters", op.parameters, [_whole(attributes, key) for key in keys])]


def _integer_ratio(found: Found, n: int) -> Told:
    """iNoNorm, IntegerDiv, TrueIntegerDiv, IntegerMean: factor, addend, divisor, and what is done beyond them."""
    steps, attributes, kind = found.steps(n, IntegerRatio), found.file.attributes[n], found.file.nodes[n].op_type
    if len(steps) != 1:
        return None
    op, rank = steps[0].op, len(steps[0].shape)
    assert isinstance(op, IntegerRatio)
    if kind == "IntegerMean":
        count = math.prod(found.source(found.steps(n)[0])) // math.prod(steps[0].shape)
        wanted: list[Any] = [1, count // 2, count]
    elif kind == "iNoNorm":
        values = parameters(found, n, rank, 1, 2)
        if values is None:
            return None
        wanted = [*(value * _whole(attributes, "mul") for value in values), _whole(attributes, "D")]
    else:
        values = parameters(found, n, rank, 1)
        if values is None:
            return None
        delta, eta = (_whole(attributes, key, 1) for key in ("Delta", "eta"))
        divisor = values[0].astype(np.int64) * eta + _whole(attributes, "eps")
        wanted = [delta * eta, divisor // 2, divisor]
    told = [*differ("factor", op.multiplier, wanted[0]), *differ("addend", op.add, wanted[1])]
    told += differ("divisor", op.divisor, wanted[2])
    ends = (-128, 127) if kind == "iNoNorm" else (-(1 << 31), (1 << 31) - 1)
    told += differ("range of codes", (op.type.lo, op.type.hi), ends)
    return [*told, *differ("form", (op.mirrored, op.wraps), (kind.endswith("IntegerDiv"), kind == "iNoNorm"))]


def _softmax(found: Found, n: int) -> Told:
    """iSoftmax, ITAMax, ITAPartialMax: both tables, entry by entry."""
    attributes, kind, steps = found.file.attributes[n], found.file.nodes[n].op_type, found.steps(n, RowStep)
    functions = [step.op.function for step in steps if isinstance(step.op, RowStep)]
    if len(functions) != 2 or not isinstance(functions[0], BelowLargest) or not isinstance(functions[1], Share):
        return None
    levels, share, powers, most = _whole(attributes, "n_levels", 256), functions[1], [], []
    for below in range(len(share.weights)):
        if kind == "iSoftmax":
            a, b, c, log2 = (_whole(attributes, key) for key in ("coeffA", "coeffB", "coeffC", "log2"))
            z = min(below // log2, 31)
            powers.append((a * (z * log2 - below + b) ** 2 + c) >> z)
            most.append(powers[-1] * (levels - 1))
        else:
            top = levels // 2 - 1 if kind == "ITAPartialMax" else levels - 1
            powers.append(256 // 2 ** ((below + 16) // 32))
            most.append(top * 256 // 2 ** ((below + 16) // 32))
    return [*differ("weights", share.weights, powers), *differ("numbers", share.numbers, most)]


def _norm(found: Found, n: int) -> Told:
    """iLayerNorm, iRMSNorm."""
    step, attributes, kind = found.only(n, RowStep), found.file.attributes[n], found.file.nodes[n].op_type
    centred = kind == "iLayerNorm"
    values = None if step is None else parameters(found, n, len(step.shape), *((1, 2) if centred else (1,)))
    if step is None or values is None:
        return None
    assert isinstance(step.op, RowStep)
    norm = step.op.function
    if not isinstance(norm, IntegerNorm):
        return None
    told = [*differ("weight", norm.weight, values[0].ravel())]
    told += differ("bias", norm.bias, values[1].ravel() if centred else 0)
    told += differ("shift", norm.shift, math.log2(_whole(attributes, "D")))
    told += differ("form", (norm.centred, norm.wraps), (centred, centred))
    return [*told, *differ("range of codes", (norm.type.lo, norm.type.hi), (-128, 127))]


#: Operator -> its second reading.
DEEPLOY: dict[str, Callable[[Found, int], Told]] = {
    "RequantShift": _requant_shift,
    **dict.fromkeys(["iSoftmax", "ITAMax", "ITAPartialMax"], _softmax),
    **dict.fromkeys(["iLayerNorm", "iRMSNorm"], _norm),
    **dict.fromkeys(["iGELU", "iHardswish"], _integer_activation),
    **dict.fromkeys(["iNoNorm", "IntegerDiv", "TrueIntegerDiv", "IntegerMean"], _integer_ratio),
}
