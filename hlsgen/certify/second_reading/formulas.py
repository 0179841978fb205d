"""Second reading of FloatQuant, comparisons, Where, QLinear operators with a constant, and operators on two tensors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.protobuf import ROUNDINGS, Numbers, kind_of
from hlsgen.certify.second_reading.quantizers import quantizer
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, aligned, differ
from hlsgen.ir import Binary, Select, Shape, Step
from hlsgen.ir.ops import Add, Cast, Compare, Constant, FloatQuant, Fma, Mul, QuantizeLinear, Where
from hlsgen.numerics.fixed import Array


def float_quant(imported: ImportedSteps, n: int) -> Differences:
    """Inputs: x, scale, bits of exponent and mantissa, bias of the exponent, largest value."""
    step, attributes = imported.only(n, FloatQuant), imported.file.attributes[n]
    values = [imported.file.constant(n, i) for i in range(1, 6)]
    if step is None or None in values or any(v is not None and v.array.size != 1 for v in values[1:]):
        return None
    op = step.op
    assert isinstance(op, FloatQuant)
    scale, *numbers = (v.array for v in values if v is not None)
    exponent, mantissa, bias, limit = (float(v.ravel()[0]) for v in numbers)
    largest = min(limit, (2 - 2.0**-mantissa) * 2.0 ** (2.0**exponent - 1 - bias))
    differences = [
        *differ("scale", op.scale, aligned(scale, len(step.shape))),
        *differ("bits of the mantissa", op.mantissa, mantissa),
    ]
    differences += [
        *differ("smallest exponent", op.minimum_exponent, 1 - bias),
        *differ("largest value", op.largest, largest),
    ]
    name = str(attributes.get("rounding_mode", "ROUND")).upper()
    rounding_agrees = ROUNDINGS.get(name) is ROUNDINGS[op.mode.name] and op.signed
    return (
        differences
        if rounding_agrees
        else [*differences, f"rounding {op.mode.name} was imported, the file has {name}."]
    )


# --------------------------------------------------------------------------- QLinear operators with a constant


def _scalars(values: list[Numbers | None]) -> list[np.float32] | None:
    """One number for each input, 0 for an input that is left out. Returns None if an input has several numbers."""
    if any(v is not None and v.array.size != 1 for v in values):
        return None
    return [np.float32(0) if v is None else np.float32(v.array.ravel()[0]) for v in values]


def _fused(x: Array, y: np.float32, z: Any) -> Array:
    """x * y + z of float32 numbers, rounded once."""

    def rounded_once(a: float, b: float, c: float) -> np.float32:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        guess = np.float32(float(exact))
        candidates = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
        return min(candidates, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.int32)) & 1))

    operands = (x.astype(np.float64), float(y), np.asarray(z, np.float64))
    return np.asarray(np.vectorize(rounded_once, otypes=[np.float32])(*operands))


def qlinear_constant(imported: ImportedSteps, n: int) -> Differences:
    """Inputs: a, its scale and zero point; b and its; scale and zero point of the result. Either a or b is constant."""
    file, node, steps = imported.file, imported.file.nodes[n], imported.steps(n)
    const_input = 0 if node.input[0] in file.constants else 3
    codes, last = file.constant(n, const_input), steps[-1].op if steps else None
    scale_inputs = [
        file.constant(n, i) for i in (4 - const_input, 5 - const_input, const_input + 1, const_input + 2, 6, 7)
    ]
    numbers = _scalars(scale_inputs)
    if codes is None or numbers is None or not isinstance(last, QuantizeLinear):
        return None
    scale, zero, const_scale, const_zero, result, result_zero = numbers
    if scale_inputs[5] is None or not isinstance(steps[0].op, Cast) or steps[0].op.dtype != "float32":
        return None
    unit_scale = np.ones(1, np.float32)
    value = aligned(codes.array, len(steps[0].shape)).astype(np.float32)
    differences = quantizer(imported, last, len(steps[0].shape), unit_scale, None, 1, kind_of(scale_inputs[5].array))
    ops = steps[1:-1]
    if node.op_type == "QLinearMul":
        factor = np.float32(scale * const_scale) / result
        expected: list[tuple[type[Any], Any]] = [
            (Add, -zero),
            (Mul, value - const_zero),
            (Mul, factor),
            (Add, result_zero),
        ]
        return _compare_operations(differences, ops, expected)
    data_factor, const_factor = scale / result, const_scale / result
    if _data_is_a(steps[0].shape, value.shape, const_input):
        addend = result_zero - _fused(data_factor, zero, const_factor * const_zero)
        return _compare_operations(differences, ops, [(Fma, (data_factor, _fused(value, const_factor, addend)))])
    addend = result_zero - _fused(const_factor, const_zero, data_factor * zero)
    return _compare_operations(
        differences,
        ops,
        [
            (Fma, (data_factor, addend)),
            (Fma, (unit_scale[0], value.astype(np.float64) * const_factor.astype(np.float64))),
        ],
    )


def _data_is_a(shape: Shape, constant: Shape, const_input: int) -> bool:
    """True if the kernel takes the data as `a`: the first operand, unless that one broadcasts along the last axis."""
    first_operand = constant if const_input == 0 else shape
    swapped = tuple(constant) != tuple(shape) and tuple(first_operand[-1:]) in ((), (1,))
    return (const_input == 3) != swapped


def _compare_operations(
    differences: list[str], steps: list[Step], expected: list[tuple[type[Any], Any]]
) -> Differences:
    """Compare the operations with the expected ones, and their constants."""
    if [type(step.op) for step in steps] != [kind for kind, _ in expected]:
        return None
    for step, (_, numbers) in zip(steps, expected, strict=True):
        if isinstance(step.op, Fma):
            differences += [*differ("factor", step.op.factor, numbers[0]), *differ("addend", step.op.value, numbers[1])]
        else:
            differences += differ("operand", step.op.value, numbers)  # type: ignore[union-attr]
    return differences


# --------------------------------------------------------------------------- comparisons


def compare(imported: ImportedSteps, n: int) -> Differences:
    """The data and a constant: x > c; or c > x, which is x < c."""
    file, node, step = imported.file, imported.file.nodes[n], imported.only(n, Compare)
    data_inputs = [i for i, name in enumerate(node.input) if name in file.computed]
    const = file.constant(n, 1 - data_inputs[0]) if len(data_inputs) == 1 and len(node.input) == 2 else None
    if step is None or const is None:
        return None
    op = step.op
    assert isinstance(op, Compare)
    file_relation = _RELATIONS[node.op_type][data_inputs[0]]
    differences = (
        [] if op.kind.value == file_relation else [f"{op.kind.value!r} was imported, the file has {file_relation!r}."]
    )
    return [*differences, *differ("operand", op.value, aligned(const.array, len(step.shape)))]


_RELATIONS = {
    "Greater": ("greater", "less"),
    "Less": ("less", "greater"),
    "GreaterOrEqual": ("not less", "not greater"),
    "LessOrEqual": ("not greater", "not less"),
    "Equal": ("equal", "equal"),
}


def check_where(imported: ImportedSteps, n: int) -> Differences:
    """A Where node with a condition and two values, some of them constant."""
    step = imported.only(n, Where, Select)
    if step is None:
        return None
    op, differences = step.op, list[str]()
    for i, role in enumerate(("condition", "value for true", "value for false")):
        const = imported.file.constant(n, i)
        if isinstance(op, Select):
            imported_const = op.fixed[i]
        else:
            assert isinstance(op, Where)
            branch = op.ways[i]
            if len(branch) > 1 or (branch and not isinstance(branch[0], Constant)):
                return None
            imported_const = branch[0].value if branch else None  # type: ignore[union-attr]
        if (
            imported_const is not None
            and const is None
            and imported.file.nodes[n].input[i] not in imported.file.computed
        ):
            return None  # a constant that only the frontend folds
        if (imported_const is None) != (const is None):
            differences.append(f"the {role} was imported as {'no ' if imported_const is None else 'a '}constant.")
        elif imported_const is not None and const is not None:
            differences += differ(role, imported_const, aligned(const.array, len(step.shape)))
    return differences


def check_binary(imported: ImportedSteps, n: int) -> Differences:
    """An operator with two computed tensors."""
    node, step = imported.file.nodes[n], imported.only(n, Binary)
    if step is None or len(node.input) != 2 or not all(name in imported.file.computed for name in node.input):
        return None
    assert isinstance(step.op, Binary)
    file_kind = node.op_type.lower()
    return (
        [] if step.op.kind.value == file_kind else [f"{step.op.kind.value!r} was imported, the file has {file_kind!r}."]
    )


#: Operator -> its second reading.
FORMULAS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "FloatQuant": float_quant,
    "QLinearAdd": qlinear_constant,
    "QLinearMul": qlinear_constant,
    "Where": check_where,
    **dict.fromkeys(_RELATIONS, compare),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min"), check_binary),
}
