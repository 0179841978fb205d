"""What a Softmax of a file means by the numeric contract, computed from exact scores, in integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import onnx

from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import Known

#: Half a step of float32; its smallest number as a power of 2; steps that a library's exp may be off.
_UNIT, _TINY, _STEPS = 2.0**-24, 149, 16


def softmax(
    node: onnx.NodeProto, values: Mapping[str, Known], makers: Mapping[str, onnx.NodeProto],
    constants: Mapping[str, Array], opsets: Mapping[str, int],
) -> tuple[Array, Array] | None:  # fmt: skip
    """The value, and how far float32 operations in any order may be from it; None if the scores are not known.

    Powers of the exact differences to the largest score, each rounded once, times the reciprocal of their exact sum.
    """
    name, scale = _source(node.input[0], values, makers, constants)
    grids = values[name].grids
    if grids is None or len(grids) != 1 or grids[0].scale.size != 1:
        return None
    whole, scale = grids[0].whole, scale * Fraction(float(grids[0].scale.ravel()[0]))
    single = opsets.get("", 13) >= 13
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if single else 1) % max(1, whole.ndim)
    rows = np.moveaxis(whole, axis, -1) if single else whole.reshape(math.prod(whole.shape[:axis]), -1)
    below = (rows.max(axis=-1, keepdims=True) - rows).astype(np.int64)
    powers = {int(d): _power(scale * int(d)) for d in np.unique(below)}
    value = np.zeros(below.shape, np.float32)
    for place in np.ndindex(below.shape[:-1]):
        row = [powers[int(d)] for d in below[place]]
        total = np.float32(float(_rounded(Fraction(sum(row), 1 << _TINY))))
        value[place] = np.array([float(Fraction(e, 1 << _TINY)) for e in row], np.float32) * (np.float32(1) / total)
    steps = (4 * below * float(scale) + below.shape[-1] + 2 * _STEPS) * _UNIT
    reach = value.astype(np.float64) * steps * 1.01 + 4 * 2.0**-_TINY
    if single:
        return np.moveaxis(value, -1, axis), np.moveaxis(reach, -1, axis)
    return value.reshape(whole.shape), reach.reshape(whole.shape)


def _source(
    name: str, values: Mapping[str, Known], makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, Array]
) -> tuple[str, Fraction]:  # fmt: skip
    """The tensor in front of factors of the whole tensor, and what they are together."""
    factor = Fraction(1)
    while (node := makers.get(name)) is not None and node.op_type in ("Mul", "Div"):
        place = next((i for i, own in enumerate(node.input) if own in constants), 0)
        own = constants.get(node.input[place], np.zeros(2))
        if own.size != 1 or own.ravel()[0] <= 0 or (node.op_type == "Div" and place == 0):
            break
        if node.input[1 - place] not in values:
            break
        name = node.input[1 - place]
        part = Fraction(float(own.ravel()[0]))
        factor *= part if node.op_type == "Mul" else 1 / part
    return name, factor


def _power(x: Fraction) -> int:
    """exp(-x) rounded to float32, in multiples of its smallest number."""
    with localcontext() as context:
        context.prec = 80
        exact = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp()
        return int(_rounded(Fraction(exact)) * (1 << _TINY))


def _rounded(number: Fraction) -> Fraction:
    """The nearest float32, the even one of two."""
    place = Fraction(1, 1 << _TINY)
    while number >= place * (1 << 24):
        place *= 2
    kept = round(number / place)
    return kept * place
