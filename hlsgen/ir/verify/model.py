"""Rules of a Model.

1. A step takes earlier values only, as many as its operator takes. Every value but the last is used.
2. The shape of a step follows from its operator and the shapes that it takes.
3. The dtypes that a step takes are legal for it. Joined tensors have one dtype. The last is that of the output.
4. Integer weights are int64 of the shape that the data asks for, with one finite float32 scale for each row.
5. A model of two inputs begins with a `Pair`, and nothing else uses its input. Any other `Pair` follows a `Pack`.
6. A model of several inputs begins with an `InputPart` each, and nothing else uses value 0; one of several outputs ends with
   their `OutputParts`.
7. Elementwise operations and windows follow their own rules (`verify.elementwise`, `verify.window`).
"""

from __future__ import annotations

import math

import numpy as np

from hlsgen.ir.model import (
    ArgMax,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    HostOp,
    InputPart,
    MatMul,
    MatMulInteger,
    Model,
    Normalize,
    Op,
    OutputParts,
    Pack,
    Pad,
    Pool,
    Previous,
    QLinearSoftmax,
    Repeat,
    Reshape,
    RowStep,
    Select,
    Shape,
    Slice,
    Softmax,
    State,
    Step,
    Transpose,
)
from hlsgen.ir.ops import Pair
from hlsgen.ir.verify.elementwise import DTYPES, verify_op
from hlsgen.ir.verify.violations import Place, Violation
from hlsgen.ir.verify.window import concatenated, fits, rearranged, verify_pool, verify_shape, viewed, windowed
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: A shape and a dtype; None where it is not known.
Tensor = tuple[Shape, str | None]


def verify_model(model: Model) -> list[Violation]:
    """Every violation of the rules of this module."""
    place = Place(f"model {model.name!r}")
    verify_shape(place, model.input_shape, None)
    place.require(model.input_dtype in DTYPES, "input_dtype", model.input_dtype, "a dtype of tensors")
    place.require(bool(model.steps), "steps", "none", "one step or more")
    if place.violations or not _numbers_are_earlier(place, model):
        return place.violations
    _verify_use(place, model)
    tensors: list[Tensor] = [(model.input_shape, "uint16" if model.second_input else model.input_dtype)]
    for number, step in enumerate(model.steps, 1):
        tensors.append(verify_step(_at(place, number, step), step, [tensors[i] for i in step.inputs]))
    dtype = tensors[-1][1]
    place.require(dtype in (None, model.output_dtype), "output_dtype", model.output_dtype, dtype)
    return place.violations


def verify_step(place: Place, step: Step, given: list[Tensor]) -> Tensor:
    """Checks one step on the tensors that it takes; gives its result."""
    before = len(place.violations)
    expected, dtype = _result(place, step, given)
    verify_shape(place, step.shape, expected)
    return step.shape, dtype if len(place.violations) == before else None


def _at(place: Place, number: int, step: Step) -> Place:
    return place.at(f"step {number} {step.name!r} ({type(step.op).__name__})")


def _numbers_are_earlier(place: Place, model: Model) -> bool:
    legal = True
    for number, step in enumerate(model.steps, 1):
        at = _at(place, number, step)
        earlier = all(0 <= i < number for i in step.inputs)
        legal &= at.require(earlier, "inputs", step.inputs, f"values before {number}")
        count = _operands(step.op)
        enough = len(step.inputs) == count if count else len(step.inputs) > 0
        legal &= at.require(enough, "inputs", step.inputs, f"{count or 'some'} values")
    return legal


def _operands(op: Op) -> int:
    """How many values an operator takes; 0 for any number but none."""
    match op:
        case Binary() | Pack() | BatchMatMul() | BatchMatMulInteger():
            return 2
        case Select(fixed):
            return sum(part is None for part in fixed)
        case Concat() | OutputParts() | State():
            return 0
        case _:
            return 1


def _verify_use(place: Place, model: Model) -> None:
    """Rules 1 and 5."""
    steps = model.steps
    used = {i for step in steps for i in step.inputs}
    for number, step in enumerate(steps[:-1], 1):
        _at(place, number, step).require(number in used, "result", "not used", "the input of a later step")
    for number, step in enumerate(steps, 1):
        if isinstance(step.op, Pair):
            value = step.inputs[0]
            legal = bool(model.second_input) if not value else isinstance(steps[value - 1].op, Pack)
            _at(place, number, step).require(legal, "input of a Pair", f"value {value}", "two inputs, or a Pack")
    parts = [i for i, step in enumerate(steps) if isinstance(step.op, InputPart)]
    legal = parts == list(range(len(model.inputs))) and (
        not parts or all(0 not in s.inputs for s in steps[len(parts) :])
    )
    place.require(legal, "inputs", parts, "an InputPart each as first steps, and no other use of value 0")
    ends = [i for i, step in enumerate(steps) if isinstance(step.op, OutputParts)]
    place.require(ends == [len(steps) - 1] * bool(model.outputs), "outputs", ends, "OutputParts as the last step")
    if model.second_input:
        users = [step for step in steps if 0 in step.inputs]
        legal = len(users) == 1 and isinstance(users[0].op, Pair) and users[0] is steps[0]
        place.require(legal, "first step", steps[0].name, "a Pair, the only one that takes both inputs")


def _result(place: Place, step: Step, given: list[Tensor]) -> tuple[Shape | None, str | None]:
    """The shape and dtype that follow from the operator; the shape is None after a violation."""
    op, shape, dtype = step.op, *given[0]
    match op:
        case Reshape() | Transpose():
            return viewed(place, op, shape, step.shape), dtype
        case Repeat() | Slice():
            return rearranged(place, op, shape), dtype
        case Pad():
            place.require(np.isfinite(op.value), "Pad.value", op.value, "finite")
            return rearranged(place, op, shape), dtype
        case MatMul():
            return _matmul(place, op.weight, op.scale, shape), _real(place, dtype)
        case MatMulInteger():
            return _matmul(place, op.weight, op.zero_point, shape, integer=True), _integer(place, dtype)
        case BatchMatMul():
            return _product(place, given), _real(place, _one_dtype(place, given))
        case BatchMatMulInteger():
            for _, one in given:
                _integer(place, one)
            return _product(place, given), "int32"
        case Conv():
            return _conv(place, op, op.scale, shape), _real(place, dtype)
        case ConvInteger():
            return _conv(place, op, op.zero_point, shape), _integer(place, dtype)
        case Pool(kind, window):
            found = windowed(place, window, shape, shape[-1])
            if found is not None:
                verify_pool(place, window, shape)
            whole = dtype is None or np.dtype(dtype).kind in "iu"
            return found, dtype if kind is Reduction.MAX or whole else "float32"
        case Concat(axis):
            return concatenated(place, axis, [s for s, _ in given]), _one_dtype(place, given)
        case Binary():
            return _one_shape(place, given), _one_dtype(place, given)
        case Pack():
            operand = _one_dtype(place, given)
            place.require(operand in (None, "int8", "uint8"), "dtype of a Pack", operand, "int8 or uint8")
            return _one_shape(place, given), "uint16"
        case Select():
            return _select(place, op, given)
        case InputPart(_, offset, part):
            inside = offset + math.prod(step.shape) <= math.prod(shape)
            place.require(inside, "InputPart.offset", offset, f"within {math.prod(shape)} elements")
            return step.shape, part
        case OutputParts():
            return (sum(math.prod(s) for s, _ in given),), "float64"
        case ArgMax(keepdims):
            return ((*shape[:-1], 1) if keepdims else shape[:-1]), "int64"
        case Softmax(axis):
            place.require(0 <= axis < len(shape), "axis", axis, f"one of {len(shape)}")
            return shape, _real(place, dtype)
        case QLinearSoftmax(axis, powers, factor):
            place.require(0 <= axis < len(shape), "axis", axis, f"one of {len(shape)}")
            place.require(dtype in (None, "int8", "uint8"), "dtype", dtype, "int8 or uint8")
            _verify_powers(place, "powers", powers)
            place.require(factor.dtype == np.float32 and 0 <= factor < np.inf, "factor", factor, "float32, finite")
            return shape, "float32"
        case Normalize(_, epsilon):
            legal = epsilon == np.float32(epsilon) and 0 < epsilon < np.inf
            place.require(legal, "Normalize.epsilon", epsilon, "a float32 above 0")
            return shape, _real(place, dtype)
        case RowStep():
            place.require(dtype in (None, "float32"), "dtype", dtype, "float32")
            return shape, "float32"
        case Previous(_, initial):
            rest = (1, *step.shape[1:])
            place.require(initial.shape == rest, "initial", initial.shape, rest)
            place.require(step.shape[0] == shape[0], "steps", step.shape[0], shape[0])
            return step.shape, "float32"
        case State():
            return shape, _real(place, dtype)
        case HostOp():
            place.require(bool(op.model), "HostOp.model", "empty", "a serialized model")
            return step.shape, None
        case _:
            return shape, verify_op(place, op, shape, dtype)


def _matmul(place: Place, weight: Array, row: Array, shape: Shape, integer: bool = False) -> Shape | None:
    columns = shape[-1]
    if not place.require(weight.ndim == 2 and weight.shape[1] == columns, "weight", weight.shape, f"(rows, {columns})"):
        return None
    _verify_weight(place, weight)
    if integer:
        _verify_zero_point(place, row, columns)
    else:
        _verify_scale(place, row, len(weight))
    return (*shape[:-1], len(weight))


def _product(place: Place, given: list[Tensor]) -> Shape | None:
    left, right = (shape for shape, _ in given)
    fit = len(left) == len(right) > 1 and left[-1] == right[-2]
    fit = fit and all(b in (1, a) for a, b in zip(left[:-2], right[:-2], strict=True))
    place.require(fit, "shapes", f"{left} and {right}", "(..., m, k) and (..., k, n), with 1 or equal axes in front")
    return (*left[:-1], right[-1]) if fit else None


def _conv(place: Place, op: Conv | ConvInteger, row: Array, shape: Shape) -> Shape | None:
    weight, groups = op.weight, op.groups
    found = windowed(place, op.window, shape, len(weight))
    if found is None:
        return None
    even = groups >= 1 and shape[3] % groups == 0 and len(weight) % groups == 0
    if not place.require(even, "groups", groups, f"a divisor of {shape[3]} channels and {len(weight)} outputs"):
        return None
    wanted = (len(weight), *op.window.kernel, shape[3] // groups)
    place.require(weight.shape == wanted, "weight", weight.shape, wanted)
    _verify_weight(place, weight)
    if isinstance(op, ConvInteger):
        _verify_zero_point(place, row, shape[3])
    else:
        _verify_scale(place, row, len(weight))
    return found


def _verify_powers(place: Place, field: str, powers: Array) -> None:
    legal = powers.dtype == np.float32 and powers.ndim == 1 and powers.size > 0 and bool(np.isfinite(powers).all())
    falling = legal and bool((powers >= 0).all() and (np.diff(powers) <= 0).all() and powers[0] > 0)
    place.require(falling, field, powers, "falling float32 numbers, the first above 0")


def _verify_weight(place: Place, weight: Array) -> None:
    place.require(weight.dtype == np.int64 and weight.size > 0, "weight", weight.dtype, "int64")


def _verify_scale(place: Place, scale: Array, rows: int) -> None:
    legal = scale.shape == (rows,) and scale.dtype == np.float32
    if place.require(legal, "scale", f"{scale.dtype} {scale.shape}", f"float32 ({rows},)"):
        place.require(bool(np.isfinite(scale).all() and scale.all()), "scale", scale, "finite and not 0")


def _verify_zero_point(place: Place, zero: Array, columns: int) -> None:
    legal = zero.shape == (columns,) and zero.dtype == np.int64
    place.require(legal, "zero_point", f"{zero.dtype} {zero.shape}", f"int64 ({columns},)")


def _real(place: Place, dtype: str | None) -> str:
    place.require(dtype is None or np.dtype(dtype).kind in "fiu", "dtype of the input", dtype, "numbers")
    return "float32"


def _integer(place: Place, dtype: str | None) -> str:
    place.require(dtype is None or np.dtype(dtype).kind in "iu", "dtype of the input", dtype, "an integer dtype")
    return "int32"


def _one_shape(place: Place, given: list[Tensor]) -> Shape | None:
    shapes = [shape for shape, _ in given]
    return shapes[0] if place.require(len(set(shapes)) == 1, "shapes", shapes, "one shape") else None


def _one_dtype(place: Place, given: list[Tensor]) -> str | None:
    dtypes = [dtype for _, dtype in given]
    if None in dtypes:
        return None
    return dtypes[0] if place.require(len(set(dtypes)) == 1, "dtypes", dtypes, "one dtype") else None


def _select(place: Place, op: Select, given: list[Tensor]) -> tuple[Shape | None, str | None]:
    """Constants broadcast to the shape of the computed tensors; the condition is boolean."""
    shape = _one_shape(place, given)
    rest = iter(given)
    dtypes: list[str | None] = []
    for name, part in zip(("condition", "yes", "no"), op.fixed, strict=True):
        dtypes.append(next(rest)[1] if part is None else part.dtype.name)
        if part is not None and shape is not None:
            place.require(fits(part.shape, shape), f"Select {name}", f"of shape {part.shape}", f"to fit {shape}")
    place.require(dtypes[0] in (None, "bool"), "Select condition", dtypes[0], "bool")
    yes, no = dtypes[1:]
    place.require(None in (yes, no) or yes == no, "dtypes of a Select", f"{yes}, {no}", "one dtype")
    return shape, yes
