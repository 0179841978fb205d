"""What a Softmax of a file means by the numeric contract, computed from exact scores, in integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import onnx

from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import Known

#: Half a step of float32; its smallest number as a power of 2; steps that a library's exp may be off.
_UNIT, _TINY, _STEPS = 2.0**-24, 149, 16
#: The power of e to less than minus that is below half of the smallest number.
_NOTHING = 110
#: Scores so large are constants of masks, which are not rounded.
_CONSTANT = 2.0**24


def softmax(
    node: onnx.NodeProto, values: Mapping[str, Known], makers: Mapping[str, onnx.NodeProto],
    constants: Mapping[str, Array], opsets: Mapping[str, int],
) -> tuple[Array, Array] | None:  # fmt: skip
    """The value, and how far float32 operations in any order may be from it; None if the scores are not known.

    Powers of the exact differences to the largest score, each rounded once, times the reciprocal of their exact sum.
    """
    exact = _scores(node.input[0], values, makers, constants)
    if exact is None:
        return None
    single = opsets.get("", 13) >= 13
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if single else 1) % max(1, exact.ndim)
    rows = np.moveaxis(exact, axis, -1) if single else exact.reshape(math.prod(exact.shape[:axis]), -1)
    value, reach = shares_of(rows)
    if single:
        return np.moveaxis(value, -1, axis), np.moveaxis(reach, -1, axis)
    return value.reshape(exact.shape), reach.reshape(exact.shape)


def shares_of(rows: Array) -> tuple[Array, Array]:
    """The same along the last axis of exact scores, Fractions."""
    distances = rows.max(axis=-1, keepdims=True) - rows
    powers = {d: _power(d) for d in set(distances.ravel())}
    value = np.zeros(distances.shape, np.float32)
    for place in np.ndindex(distances.shape[:-1]):
        row = [powers[d] for d in distances[place]]
        total = np.float32(float(_rounded(Fraction(sum(row), 1 << _TINY))))
        value[place] = np.array([float(Fraction(e, 1 << _TINY)) for e in row], np.float32) * (np.float32(1) / total)
    below, sizes = distances.astype(np.float64), np.abs(rows).astype(np.float64)
    sizes[sizes >= _CONSTANT] = 0
    largest = np.abs(rows.max(axis=-1, keepdims=True)).astype(np.float64)
    lost = sizes + np.where(largest >= _CONSTANT, 0, largest)  # sum, factor and mask: a rounding of both scores each
    steps = (4 * (below + lost) + below.shape[-1] + 2 * _STEPS) * _UNIT
    return value, np.asarray(value.astype(np.float64) * steps * 1.01 + 4 * 2.0**-_TINY)


def _scores(
    name: str, values: Mapping[str, Known], makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, Array]
) -> Array | None:  # fmt: skip
    """Exact scores as Fractions, behind factors of the whole tensor and the constants of a mask; None if not known."""
    node = makers.get(name)
    behind = None if node is None else _behind(node, values, makers, constants)
    known = values[name].grids if name in values else None
    if behind is not None or known is None or len(known) != 1 or known[0].scale.size != 1:
        return behind
    scale = Fraction(float(known[0].scale.ravel()[0]))
    return each(known[0].whole, lambda whole: int(whole) * scale)


def _behind(
    node: onnx.NodeProto, values: Mapping[str, Known], makers: Mapping[str, onnx.NodeProto], constants: Mapping[str, Array]
) -> Array | None:  # fmt: skip
    """Scores behind a factor of the whole tensor or the constants of a mask; None if it is neither."""
    places = [i for i, own in enumerate(node.input) if own in constants]
    data = [own for own in node.input if own not in constants]
    if node.op_type not in ("Mul", "Div", "Add", "Where") or len(data) != 1 or data[0] not in values or not places:
        return None
    own = constants[node.input[places[0]]]
    factor = own.size == 1 and own.ravel()[0] > 0 and (node.op_type, places) != ("Div", [0])
    chosen = node.op_type == "Where" and len(places) == 2 and places[0] == 0
    before = _scores(data[0], values, makers, constants) if factor or chosen or node.op_type == "Add" else None
    if before is None:
        return None
    if node.op_type in ("Mul", "Div") and factor:
        number = Fraction(float(own.ravel()[0]))
        return np.asarray(before * (number if node.op_type == "Mul" else 1 / number))
    if node.op_type == "Add":
        constant = np.broadcast_to(own, before.shape)
        alone = (values[data[0]].value + constant == constant) & (constant != 0)
        return np.asarray(before * (~alone).astype(object) + each(constant, fraction_of))
    put = np.broadcast_to(own.astype(bool) == (places[1] == 1), before.shape)
    return np.where(put, each(np.broadcast_to(constants[node.input[places[1]]], before.shape), fraction_of), before)


def each(values: Array, of: Callable[[float], Fraction]) -> Array:
    """An array of Fractions."""
    found = np.empty(values.size, object)
    found[:] = [of(float(value)) for value in values.ravel()]
    return found.reshape(values.shape)


def fraction_of(value: float) -> Fraction:
    """Minus infinity is less than every float32."""
    return Fraction(value) if math.isfinite(value) else Fraction(-(1 << 130))


def _power(x: Fraction) -> int:
    """exp(-x) rounded to float32, in multiples of its smallest number."""
    if x > _NOTHING:
        return 0
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
