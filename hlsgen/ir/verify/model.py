"""Rules of a Model.

1. The inputs of a step are earlier values, as many as its operator needs. Every value but the last is used.
2. The shape of a step follows from its operator and the shapes of its inputs.
3. The input dtypes of a step are legal for it. Operands of one operation have one dtype. The last dtype is the
   output's.
4. Integer weights are int64, in the shape that the data requires, with one finite float32 scale for each row.
5. A model of two inputs begins with a `Pair`, and nothing else uses its input. Any other `Pair` follows a `Pack`.
6. A model of several inputs begins with an `InputPart` for each, and nothing else uses value 0. A model of several
   outputs ends with their `OutputParts`.
7. Elementwise operations and windows follow their own rules (`verify.elementwise`, `verify.window`).
"""

from __future__ import annotations

import math

import numpy as np
from typing_extensions import assert_never

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
from hlsgen.ir.programs import Program
from hlsgen.ir.verify.elementwise import DTYPES, verify_op
from hlsgen.ir.verify.violations import Place, Violation
from hlsgen.ir.verify.window import concatenated, fits, rearranged, verify_pool, verify_shape, viewed, windowed
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: A shape and a dtype; the dtype is None if it is not known.
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


def verify_step(place: Place, step: Step, inputs: list[Tensor]) -> Tensor:
    """Check one step for these input tensors; return its result."""
    violations_before = len(place.violations)
    expected, dtype = _infer_result(place, step, inputs)
    verify_shape(place, step.shape, expected)
    return step.shape, dtype if len(place.violations) == violations_before else None


def _at(place: Place, number: int, step: Step) -> Place:
    return place.at(f"step {number} {step.name!r} ({type(step.op).__name__})")


def _numbers_are_earlier(place: Place, model: Model) -> bool:
    legal = True
    for number, step in enumerate(model.steps, 1):
        at = _at(place, number, step)
        earlier = all(0 <= i < number for i in step.inputs)
        legal &= at.require(earlier, "inputs", step.inputs, f"values before {number}")
        count = _operands(step.op)
        matches = len(step.inputs) == count if count else len(step.inputs) > 0
        legal &= at.require(matches, "inputs", step.inputs, f"{count or 'some'} values")
    return legal


def _operands(op: Op) -> int:
    """The number of inputs that an operator needs; 0 for any positive number."""
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
    """Check rules 1, 5 and 6."""
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
    unused = not parts or all(0 not in step.inputs for step in steps[len(parts) :])
    legal = parts == list(range(len(model.inputs))) and unused
    place.require(legal, "inputs", parts, "one InputPart for each as first steps, and no other use of value 0")
    last_parts = [i for i, step in enumerate(steps) if isinstance(step.op, OutputParts)]
    place.require(
        last_parts == [len(steps) - 1] * bool(model.outputs), "outputs", last_parts, "OutputParts as the last step"
    )
    if model.second_input:
        users = [step for step in steps if 0 in step.inputs]
        legal = len(users) == 1 and isinstance(users[0].op, Pair) and users[0] is steps[0]
        place.require(legal, "first step", steps[0].name, "a Pair, the only user of both inputs")


def _infer_result(place: Place, step: Step, inputs: list[Tensor]) -> tuple[Shape | None, str | None]:
    """The shape and dtype that follow from the operator; the shape is None after a violation."""
    op, shape, dtype = step.op, *inputs[0]
    match op:
        case Reshape() | Transpose() | Repeat() | Slice() | Pad():
            return _infer_moved(place, op, shape, step.shape), dtype
        case MatMul() | MatMulInteger() | Conv() | ConvInteger():
            return _infer_weighted(place, op, shape, dtype)
        case BatchMatMul() | BatchMatMulInteger():
            return _infer_product(place, op, inputs)
        case Pool(kind, window):
            pooled_shape = windowed(place, window, shape, shape[-1])
            if pooled_shape is not None:
                verify_pool(place, window, shape)
            keeps_dtype = dtype is None or np.dtype(dtype).kind in "iu"
            return pooled_shape, dtype if kind is Reduction.MAX or keeps_dtype else "float32"
        case Concat() | Binary() | Pack() | Select():
            return _infer_merged(place, op, inputs)
        case InputPart() | OutputParts():
            return _infer_part(place, op, inputs, step.shape)
        case ArgMax() | Softmax() | QLinearSoftmax() | Normalize() | RowStep():
            return _infer_rows(place, op, shape, dtype)
        case Previous() | State():
            return _infer_state(place, op, inputs[0], step.shape)
        case HostOp():
            place.require(bool(op.model), "HostOp.model", "empty", "a serialized model")
            return step.shape, None
        case _:
            return shape, verify_op(place, op, shape, dtype)


def _infer_moved(
    place: Place, op: Reshape | Transpose | Repeat | Slice | Pad, shape: Shape, result: Shape
) -> Shape | None:
    """The shape after an operator that moves elements. `result`: the shape that the step states."""
    if isinstance(op, Reshape | Transpose):
        return viewed(place, op, shape, result)
    if isinstance(op, Pad):
        place.require(np.isfinite(op.value), "Pad.value", op.value, "finite")
    return rearranged(place, op, shape)


def _infer_weighted(
    place: Place, op: MatMul | MatMulInteger | Conv | ConvInteger, shape: Shape, dtype: str | None
) -> tuple[Shape | None, str | None]:
    """The result of an operator with weights."""
    match op:
        case MatMul():
            return _matmul(place, op.weight, op.scale, shape), _real(place, dtype)
        case MatMulInteger():
            return _matmul(place, op.weight, op.zero_point, shape, integer=True), _integer(place, dtype, op.dtype)
        case Conv():
            return _conv(place, op, op.scale, shape), _real(place, dtype)
        case ConvInteger():
            return _conv(place, op, op.zero_point, shape), _integer(place, dtype, op.dtype)
        case _:
            assert_never(op)


def _infer_product(
    place: Place, op: BatchMatMul | BatchMatMulInteger, inputs: list[Tensor]
) -> tuple[Shape | None, str | None]:
    """The product of two tensors."""
    if isinstance(op, BatchMatMul):
        return _product(place, inputs), _real(place, _one_dtype(place, inputs))
    for _, operand_dtype in inputs:
        _integer(place, operand_dtype)
    return _product(place, inputs), "int32"


def _infer_merged(
    place: Place, op: Concat | Binary | Pack | Select, inputs: list[Tensor]
) -> tuple[Shape | None, str | None]:
    """The result of an operator on several tensors of one dtype."""
    match op:
        case Concat(axis):
            return concatenated(place, axis, [s for s, _ in inputs]), _one_dtype(place, inputs)
        case Binary():
            return _one_shape(place, inputs), _one_dtype(place, inputs)
        case Pack():
            operand = _one_dtype(place, inputs)
            place.require(operand in (None, "int8", "uint8"), "dtype of a Pack", operand, "int8 or uint8")
            return _one_shape(place, inputs), "uint16"
        case Select():
            return _select(place, op, inputs)
        case _:
            assert_never(op)


def _infer_part(
    place: Place, op: InputPart | OutputParts, inputs: list[Tensor], result: Shape
) -> tuple[Shape | None, str | None]:
    """One input of a model of several inputs, or all outputs of a model of several outputs."""
    if isinstance(op, OutputParts):
        return (sum(math.prod(s) for s, _ in inputs),), "float64"
    elements = math.prod(inputs[0][0])
    inside = op.offset + math.prod(result) <= elements
    place.require(inside, "InputPart.offset", op.offset, f"within {elements} elements")
    return result, op.dtype


def _infer_rows(
    place: Place, op: ArgMax | Softmax | QLinearSoftmax | Normalize | RowStep, shape: Shape, dtype: str | None
) -> tuple[Shape | None, str | None]:
    """The result of a function of whole rows."""
    match op:
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
        case RowStep(Program() as program):
            place.require(dtype == "float32", "dtype", dtype, "float32")
            return (*shape[:-1], len(program.outputs)), "float64"
        case RowStep():
            place.require(dtype in (None, "float32", "int8", "uint8"), "dtype", dtype, "float32, int8 or uint8")
            return shape, "float32"
        case _:
            assert_never(op)


def _infer_state(place: Place, op: Previous | State, value: Tensor, result: Shape) -> tuple[Shape | None, str | None]:
    """A value of the previous frame or step, or the state that keeps it."""
    shape, dtype = value
    match op:
        case Previous(_, None):
            place.require(shape == (1, *result[1:]), "initial", shape, (1, *result[1:]))
            return result, dtype
        case Previous(_, initial):
            row_shape = (1, *result[1:])
            place.require(initial is not None and initial.shape == row_shape, "initial", initial, row_shape)
            place.require(result[0] == shape[0], "steps", result[0], shape[0])
            return result, "float32"
        case State():
            return shape, _real(place, dtype)
        case _:
            assert_never(op)


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


def _product(place: Place, inputs: list[Tensor]) -> Shape | None:
    left_shape, right_shape = (shape for shape, _ in inputs)
    compatible = len(left_shape) == len(right_shape) > 1 and left_shape[-1] == right_shape[-2]
    compatible = compatible and all(b in (1, a) for a, b in zip(left_shape[:-2], right_shape[:-2], strict=True))
    place.require(
        compatible,
        "shapes",
        f"{left_shape} and {right_shape}",
        "(..., m, k) and (..., k, n), with 1 or equal leading axes",
    )
    return (*left_shape[:-1], right_shape[-1]) if compatible else None


def _conv(place: Place, op: Conv | ConvInteger, row: Array, shape: Shape) -> Shape | None:
    weight, groups = op.weight, op.groups
    result_shape = windowed(place, op.window, shape, len(weight))
    if result_shape is None:
        return None
    divides = groups >= 1 and shape[3] % groups == 0 and len(weight) % groups == 0
    if not place.require(divides, "groups", groups, f"a divisor of {shape[3]} channels and {len(weight)} outputs"):
        return None
    weight_shape = (len(weight), *op.window.kernel, shape[3] // groups)
    place.require(weight.shape == weight_shape, "weight", weight.shape, weight_shape)
    _verify_weight(place, weight)
    if isinstance(op, ConvInteger):
        _verify_zero_point(place, row, shape[3])
    else:
        _verify_scale(place, row, len(weight))
    return result_shape


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


def _verify_zero_point(place: Place, zero_point: Array, columns: int) -> None:
    legal = zero_point.shape == (columns,) and zero_point.dtype == np.int64
    place.require(legal, "zero_point", f"{zero_point.dtype} {zero_point.shape}", f"int64 ({columns},)")


def _real(place: Place, dtype: str | None) -> str:
    place.require(dtype is None or np.dtype(dtype).kind in "fiu", "dtype of the input", dtype, "numbers")
    return "float32"


def _integer(place: Place, dtype: str | None, sums: str = "int32") -> str:
    place.require(dtype is None or np.dtype(dtype).kind in "iu", "dtype of the input", dtype, "an integer dtype")
    place.require(sums in ("int32", "int64"), "dtype", sums, "int32 or int64")
    return sums


def _one_shape(place: Place, inputs: list[Tensor]) -> Shape | None:
    shapes = [shape for shape, _ in inputs]
    return shapes[0] if place.require(len(set(shapes)) == 1, "shapes", shapes, "one shape") else None


def _one_dtype(place: Place, inputs: list[Tensor]) -> str | None:
    dtypes = [dtype for _, dtype in inputs]
    if None in dtypes:
        return None
    return dtypes[0] if place.require(len(set(dtypes)) == 1, "dtypes", dtypes, "one dtype") else None


def _select(place: Place, op: Select, inputs: list[Tensor]) -> tuple[Shape | None, str | None]:
    """The result of a Select: constants broadcast to the shape of the computed tensors; the condition is boolean."""
    shape = _one_shape(place, inputs)
    remaining = iter(inputs)
    dtypes: list[str | None] = []
    for name, constant in zip(("condition", "yes", "no"), op.fixed, strict=True):
        dtypes.append(next(remaining)[1] if constant is None else constant.dtype.name)
        if constant is not None and shape is not None:
            place.require(
                fits(constant.shape, shape), f"Select {name}", f"of shape {constant.shape}", f"to fit {shape}"
            )
    place.require(dtypes[0] in (None, "bool"), "Select condition", dtypes[0], "bool")
    yes, no = dtypes[1:]
    place.require(None in (yes, no) or yes == no, "dtypes of a Select", f"{yes}, {no}", "one dtype")
    return shape, yes
