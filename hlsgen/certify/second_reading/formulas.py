"""Second reading of FloatQuant, of QLinearAdd and QLinearMul with a constant, of comparisons, Where, and of two tensors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.protobuf import ROUNDINGS, Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Found, Told, aligned, differ
from hlsgen.ir import Binary, Select, Shape, Step
from hlsgen.ir.ops import Add, Cast, Compare, Constant, FloatQuant, Fma, Mul, QuantizeLinear, Where
from hlsgen.numerics.fixed import Array


def float_quant(found: Found, n: int) -> Told:
    """x, scale, bits of exponent and mantissa, bias of the exponent, largest value."""
    step, attributes = found.only(n, FloatQuant), found.file.attributes[n]
    values = [found.file.constant(n, i) for i in range(1, 6)]
    if step is None or None in values or any(v is not None and v.array.size != 1 for v in values[1:]):
        return None
    op = step.op
    assert isinstance(op, FloatQuant)
    scale, *numbers = (v.array for v in values if v is not None)
    exponent, mantissa, bias, limit = (float(v.ravel()[0]) for v in numbers)
    largest = min(limit, (2 - 2.0**-mantissa) * 2.0 ** (2.0**exponent - 1 - bias))
    told = [
        *differ("scale", op.scale, aligned(scale, len(step.shape))),
        *differ("bits of the mantissa", op.mantissa, mantissa),
    ]
    told += [*differ("smallest exponent", op.minimum_exponent, 1 - bias), *differ("largest value", op.largest, largest)]
    name = str(attributes.get("rounding_mode", "ROUND")).upper()
    same = ROUNDINGS.get(name) is ROUNDINGS[op.mode.name] and op.signed
    return told if same else [*told, f"rounding {op.mode.name} was imported, the file has {name}."]


# --------------------------------------------------------------------------- QLinear operators with a constant


def _single(values: list[Numbers | None]) -> list[np.float32] | None:
    """One number each, 0 for what is left out."""
    if any(v is not None and v.array.size != 1 for v in values):
        return None
    return [np.float32(0) if v is None else np.float32(v.array.ravel()[0]) for v in values]


def _fused(x: Array, y: np.float32, z: Any) -> Array:
    """x * y + z of float32 numbers, rounded once."""

    def one(a: float, b: float, c: float) -> np.float32:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        guess = np.float32(float(exact))
        around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
        return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.int32)) & 1))

    parts = (x.astype(np.float64), float(y), np.asarray(z, np.float64))
    return np.asarray(np.vectorize(one, otypes=[np.float32])(*parts))


def qlinear_constant(found: Found, n: int) -> Told:
    """a, its scale, zero point; b, ...; scale and zero point of the result; a or b is constant."""
    file, node, own = found.file, found.file.nodes[n], found.steps(n)
    at = 0 if node.input[0] in file.constants else 3
    codes, last = file.constant(n, at), own[-1].op if own else None
    parts = [file.constant(n, i) for i in (4 - at, 5 - at, at + 1, at + 2, 6, 7)]
    numbers = _single(parts)
    if codes is None or numbers is None or not isinstance(last, QuantizeLinear):
        return None
    scale, zero, other, other_zero, result, result_zero = numbers
    if parts[5] is None or not isinstance(own[0].op, Cast) or own[0].op.dtype != "float32":
        return None
    one = np.ones(1, np.float32)
    value = aligned(codes.array, len(own[0].shape)).astype(np.float32)
    told = quantizer(found, last, len(own[0].shape), one, None, 1, kind_of(parts[5].array))
    ops = own[1:-1]
    if node.op_type == "QLinearMul":
        factor = np.float32(scale * other) / result
        wanted: list[tuple[type[Any], Any]] = [
            (Add, -zero),
            (Mul, value - other_zero),
            (Mul, factor),
            (Add, result_zero),
        ]
        return _of(told, ops, wanted)
    mine, theirs = scale / result, other / result
    if _is_first(own[0].shape, value.shape, at):
        rest = result_zero - _fused(mine, zero, theirs * other_zero)
        return _of(told, ops, [(Fma, (mine, _fused(value, theirs, rest)))])
    rest = result_zero - _fused(theirs, other_zero, mine * zero)
    return _of(told, ops, [(Fma, (mine, rest)), (Fma, (one[0], value.astype(np.float64) * theirs.astype(np.float64)))])


def _is_first(shape: Shape, constant: Shape, at: int) -> bool:
    """Whether the kernel takes the data for a: the file's first operand, but where that stands still along the last axis."""
    given = constant if at == 0 else shape
    swapped = tuple(constant) != tuple(shape) and tuple(given[-1:]) in ((), (1,))
    return (at == 3) != swapped


def _of(told: list[str], steps: list[Step], wanted: list[tuple[type[Any], Any]]) -> Told:
    """The operations, and their constants."""
    if [type(step.op) for step in steps] != [kind for kind, _ in wanted]:
        return None
    for step, (_, numbers) in zip(steps, wanted, strict=True):
        if isinstance(step.op, Fma):
            told += [*differ("factor", step.op.factor, numbers[0]), *differ("addend", step.op.value, numbers[1])]
        else:
            told += differ("operand", step.op.value, numbers)  # type: ignore[union-attr]
    return told


# --------------------------------------------------------------------------- comparisons


def compare(found: Found, n: int) -> Told:
    """The data and a constant: x > c, or c > x, which is x < c."""
    file, node, step = found.file, found.file.nodes[n], found.only(n, Compare)
    places = [i for i, name in enumerate(node.input) if name in file.computed]
    const = file.constant(n, 1 - places[0]) if len(places) == 1 and len(node.input) == 2 else None
    if step is None or const is None:
        return None
    op = step.op
    assert isinstance(op, Compare)
    wanted = _RELATIONS[node.op_type][places[0]]
    told = [] if op.kind.value == wanted else [f"{op.kind.value!r} was imported, the file has {wanted!r}."]
    return [*told, *differ("operand", op.value, aligned(const.array, len(step.shape)))]


_RELATIONS = {
    "Greater": ("greater", "less"), "Less": ("less", "greater"), "GreaterOrEqual": ("not less", "not greater"),
    "LessOrEqual": ("not greater", "not less"), "Equal": ("equal", "equal"),
}  # fmt: skip


def where(found: Found, n: int) -> Told:
    """A condition and two values, of which some are constant."""
    step = found.only(n, Where, Select)
    if step is None:
        return None
    op, told = step.op, list[str]()
    for i, what in enumerate(("condition", "value for true", "value for false")):
        const = found.file.constant(n, i)
        if isinstance(op, Select):
            own = op.fixed[i]
        else:
            assert isinstance(op, Where)
            way = op.ways[i]
            if len(way) > 1 or (way and not isinstance(way[0], Constant)):
                return None
            own = way[0].value if way else None  # type: ignore[union-attr]
        if own is not None and const is None and found.file.nodes[n].input[i] not in found.file.computed:
            return None  # of an operator that is not folded twice
        if (own is None) != (const is None):
            told.append(f"the {what} was imported as {'no ' if own is None else 'a '}constant.")
        elif own is not None and const is not None:
            told += differ(what, own, aligned(const.array, len(step.shape)))
    return told


def joined(found: Found, n: int) -> Told:
    """Two computed tensors."""
    node, step = found.file.nodes[n], found.only(n, Binary)
    if step is None or len(node.input) != 2 or not all(name in found.file.computed for name in node.input):
        return None
    assert isinstance(step.op, Binary)
    wanted = node.op_type.lower()
    return [] if step.op.kind.value == wanted else [f"{step.op.kind.value!r} was imported, the file has {wanted!r}."]


#: Operator -> its second reading.
FORMULAS: dict[str, Callable[[Found, int], Told]] = {
    "FloatQuant": float_quant, "QLinearAdd": qlinear_constant, "QLinearMul": qlinear_constant, "Where": where,
    **dict.fromkeys(_RELATIONS, compare), **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min"), joined),
}  # fmt: skip
