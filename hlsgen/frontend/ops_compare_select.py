"""Comparisons with constants, logic, Where: how exporters write activations that have pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.ops_standard import Imported, operand
from hlsgen.ir import Shape
from hlsgen.ir.ops import Add, Compare, Constant, Elementwise, Max, Min, Relation, Where
from hlsgen.numerics.fixed import Array

#: Operator -> what it asks of the data, and of the data as the second operand.
_RELATIONS = {
    "Greater": (Relation.GREATER, Relation.LESS), "Less": (Relation.LESS, Relation.GREATER),
    "GreaterOrEqual": (Relation.NOT_LESS, Relation.NOT_GREATER),
    "LessOrEqual": (Relation.NOT_GREATER, Relation.NOT_LESS), "Equal": (Relation.EQUAL, Relation.EQUAL),
}  # fmt: skip
#: What may follow a comparison.
LOGIC = frozenset(["And", "Not", "Or", "Where"])
OPERATORS = LOGIC | frozenset(_RELATIONS) | {"Shrink", "ThresholdedRelu"}


def import_choosing(
    op_type: str, name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any], position: int, dtype: str
) -> Imported:  # fmt: skip
    """The steps of such a node of one computed tensor, input number `position`. Raises HG013, HG023, HG026, HG027."""
    return [(op, shape) for op in _operations(op_type, name, shape, inputs, attrs, position, dtype)]


def _operations(
    op_type: str, name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any], position: int, dtype: str
) -> list[Elementwise]:  # fmt: skip
    if (dtype == "bool") != (op_type in LOGIC) and op_type not in ("Where", "Equal"):
        raise fail("HG026", name, f"{op_type} of {dtype} data.", "Comparisons take numbers, logic takes their results.")
    match op_type:
        case "Not":
            return [Compare(Relation.EQUAL, np.zeros((1,) * len(shape), np.bool_))]
        case "And" | "Or":
            value = flat(name, shape, inputs[1 - position], np.bool_)
            return [Min(value) if op_type == "And" else Max(value)]
        case "Where":
            return [choice(name, shape, inputs, dtype)]
        case "Shrink" | "ThresholdedRelu":
            return _shrunk(op_type, name, shape, attrs, dtype)
        case _:
            relation = _RELATIONS[op_type][position]
            return [Compare(relation, flat(name, shape, inputs[1 - position], np.dtype(dtype)))]


def choice(name: str, shape: Shape, inputs: list[Const | None], dtype: str) -> Where:
    """Where of constants and one tensor."""
    numbers = [c.array.dtype for c in inputs[1:3] if c is not None]
    kinds = [np.dtype(np.bool_), *(numbers[:1] if dtype == "bool" and inputs[0] is None else [np.dtype(dtype)]) * 2]
    ways = [
        (Constant(flat(name, shape, const, kind)),) if const is not None else ()
        for const, kind in zip(inputs, kinds, strict=True)
    ]
    return Where(tuple(ways))


def flat(name: str, shape: Shape, const: Const | None, dtype: Any) -> Array:
    """A constant operand of that type which broadcasts to the data's shape, of its rank."""
    if np.dtype(dtype) != np.bool_:
        return operand(name, shape, const, "the constant", np.dtype(dtype).name)
    assert const is not None
    array = const.array
    try:
        fits = array.dtype == np.bool_ and np.broadcast_shapes(shape, array.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        text = f"a constant of type {array.dtype} and shape {list(array.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, "It must be boolean and broadcast to the data's shape.")
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)


def _shrunk(op_type: str, name: str, shape: Shape, attrs: dict[str, Any], dtype: str) -> list[Elementwise]:
    """x + bias below -lambd, x - bias above lambd, else 0; x above alpha, else 0."""

    def number(key: str, default: float) -> Array:
        with np.errstate(over="ignore"):
            value = np.full((1,) * len(shape), attrs.get(key, default), dtype)
        if not np.isfinite(value).all():
            raise fail("HG027", name, f"{key} of {op_type} is {attrs.get(key)}.", "It must be finite.")
        return value

    if not dtype.startswith("float"):
        raise fail("HG026", name, f"{op_type} of {dtype} data.", "Cast it to float32 first (operator Cast).")
    nothing = Constant(np.zeros((1,) * len(shape), dtype))
    if op_type == "ThresholdedRelu":
        return [Where(((Compare(Relation.GREATER, number("alpha", 1.0)),), (), (nothing,)))]
    limit, bias = number("lambd", 0.5), number("bias", 0.0)
    above = Where(((Compare(Relation.GREATER, limit),), (Add(-bias),), (nothing,)))
    return [Where(((Compare(Relation.LESS, -limit),), (Add(bias),), (above,)))]
