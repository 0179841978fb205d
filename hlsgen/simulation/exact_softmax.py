"""The value of a Softmax by the numeric contract, computed in integers from exact scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import onnx

from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import MOVES, Known
from hlsgen.simulation.oracles import run_node

#: Half a step of float32; minus the exponent of the smallest float32; steps by which a library's exp may be off.
_UNIT, _TINY, _STEPS = 2.0**-24, 149, 16
#: exp(-x) for larger x is below half of the smallest float32.
_NOTHING = 110
#: Scores of at least this magnitude are mask constants, which are not rounded.
_CONSTANT = 2.0**24
#: Moves of one tensor that add no numbers to it. Most elements, as float32 must represent their places.
_MOVES, _PLACES = MOVES - {"Concat", "Pad", "Resize", "Split", "Upsample"}, 1 << 24


def softmax(
    executor: str,
    node: onnx.NodeProto,
    values: Mapping[str, Known],
    producers: Mapping[str, onnx.NodeProto],
    constants: Mapping[str, Array],
    opsets: Mapping[str, int],
) -> tuple[Array, Array] | None:
    """The value, and a bound for float32 operations in any order, or None if the exact scores are not known.

    The value has powers of the exact differences to the largest score, each rounded once, times the reciprocal of their
    exact sum.
    """
    exact = _Scores(executor, values, producers, constants, opsets).of(node.input[0])
    if exact is None:
        return None
    single_axis = opsets.get("", 13) >= 13
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if single_axis else 1) % max(1, exact.ndim)
    rows = np.moveaxis(exact, axis, -1) if single_axis else exact.reshape(math.prod(exact.shape[:axis]), -1)
    value, reach = shares_of(rows)
    if single_axis:
        return np.moveaxis(value, -1, axis), np.moveaxis(reach, -1, axis)
    return value.reshape(exact.shape), reach.reshape(exact.shape)


def shares_of(rows: Array) -> tuple[Array, Array]:
    """The same along the last axis of exact scores, which are Fractions."""
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
    rounded_magnitude = sizes + np.where(
        largest >= _CONSTANT, 0, largest
    )  # sum, factor and mask each round both scores
    steps = (4 * (below + rounded_magnitude) + below.shape[-1] + 2 * _STEPS) * _UNIT
    return value, np.asarray(value.astype(np.float64) * steps * 1.01 + 4 * 2.0**-_TINY)


@dataclass(frozen=True)
class _Scores:
    """Exact scores as Fractions, after scalar factors, masks of constants and moves."""

    executor: str
    values: Mapping[str, Known]
    producers: Mapping[str, onnx.NodeProto]
    constants: Mapping[str, Array]
    opsets: Mapping[str, int]

    def of(self, name: str) -> Array | None:
        """The scores of a tensor, or None if they are not known."""
        node = self.producers.get(name)
        scores = None if node is None else self._moved(node) if node.op_type in _MOVES else self._scaled_or_masked(node)
        grids = self.values[name].grids if name in self.values else None
        if scores is not None or grids is None or len(grids) != 1 or grids[0].scale.size != 1:
            return scores
        scale = Fraction(float(grids[0].scale.ravel()[0]))
        return fractions(grids[0].integers, lambda integer: int(integer) * scale)

    def _moved(self, node: onnx.NodeProto) -> Array | None:
        """Scores after a node that moves elements. The executor runs it on the places of the elements."""
        scores = self.of(node.input[0]) if node.input[0] in self.values else None
        if scores is None or scores.size > _PLACES or any(i not in self.constants for i in node.input[1:] if i):
            return None
        places = np.arange(scores.size, dtype=np.float32).reshape(scores.shape)
        operands = [places, *(self.constants[i] for i in node.input[1:] if i)]
        moved: Array = run_node(self.executor, node, operands, self.opsets)[0]
        return scores.ravel()[moved.astype(np.int64)]

    def _scaled_or_masked(self, node: onnx.NodeProto) -> Array | None:
        """Scores after a node with a scalar factor or the constants of a mask, or None for other nodes."""
        places = [place for place, name in enumerate(node.input) if name in self.constants]
        data = [name for name in node.input if name not in self.constants]
        if node.op_type not in ("Mul", "Div", "Add", "Where") or len(data) != 1 or data[0] not in self.values:
            return None
        if not places:
            return None
        operand = self.constants[node.input[places[0]]]
        is_factor = operand.size == 1 and operand.ravel()[0] > 0 and (node.op_type, places) != ("Div", [0])
        is_selection = node.op_type == "Where" and len(places) == 2 and places[0] == 0
        if not (is_factor or is_selection or node.op_type == "Add"):
            return None
        scores = self.of(data[0])
        if scores is None:
            return None
        if node.op_type in ("Mul", "Div") and is_factor:
            number = Fraction(float(operand.ravel()[0]))
            return np.asarray(scores * (number if node.op_type == "Mul" else 1 / number))
        if node.op_type == "Add":
            constant = np.broadcast_to(operand, scores.shape)
            masked = (self.values[data[0]].value + constant == constant) & (constant != 0)
            return np.asarray(scores * (~masked).astype(object) + fractions(constant, fraction_of))
        replaced = np.broadcast_to(operand.astype(bool) == (places[1] == 1), scores.shape)
        constant = np.broadcast_to(self.constants[node.input[places[1]]], scores.shape)
        return np.where(replaced, fractions(constant, fraction_of), scores)


def fractions(values: Array, convert: Callable[[float], Fraction]) -> Array:
    """An array of Fractions, converted element by element."""
    converted = np.empty(values.size, object)
    converted[:] = [convert(float(value)) for value in values.ravel()]
    return converted.reshape(values.shape)


def fraction_of(value: float) -> Fraction:
    """The exact value; for minus infinity a number below every float32."""
    return Fraction(value) if math.isfinite(value) else Fraction(-(1 << 130))


def _power(x: Fraction) -> int:
    """exp(-x) rounded to float32, in units of the smallest float32."""
    if x > _NOTHING:
        return 0
    with localcontext() as context:
        context.prec = 80
        exact = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp()
        return int(_rounded(Fraction(exact)) * (1 << _TINY))


def _rounded(number: Fraction) -> Fraction:
    """The nearest float32; the even one of two."""
    unit = Fraction(1, 1 << _TINY)
    while number >= unit * (1 << 24):
        unit *= 2
    multiple = round(number / unit)
    return multiple * unit
