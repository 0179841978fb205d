"""Interprets a `Model` step by step as the file defines it: the independent reference for a `Graph`.

Nothing is fused, moved or turned into codes: every step of the Model is computed on its own, in order, from the
results of its inputs. The module shares no code with the passes and with the interpreter of Graphs, except
the evaluation of single elementwise operations, quantizers and host operators (`hlsgen.ir.evaluate`).

The contract (docs/numeric-contract.md), and its implementation here:

- An elementwise step computes in the dtype of its data, rounding once an operation. Integers wrap.
- Beside its value in the model's dtype, a quantized tensor carries the exact real numbers of its codes
  (`Exact`: integers times one fraction). Steps that only move elements move both.
- A linear step (MatMul, Conv, the sum of a Pool) adds these exact numbers up, BatchMatMul products of two of them.
  Its value is the sum, rounded once to float32. MatMulInteger, ConvInteger and BatchMatMulInteger add integers up,
  and wrap in the step's dtype.
- Float operations may come between a quantizer and a linear step. Then every value must be fl(k * scale) for
  integers k and one scale, and k * scale is the exact number. Among several such scales the first counts: the scale of
  the codes, the largest power of two, the smallest number.
- A sum of two tensors (an Add or Sub) whose scales are on one grid is exact as well, and rounded once. A linear step
  uses it unrounded. Bounded by 0, as by Relu, it is still a sum on that grid.
- A sum of three or more (an Add or Sub of an Add or Sub) is exact as well, if all its operands have one scale each
  of at most 22 bits in their common unit, and only float32 constants were added to them. If the inner sums are on
  one grid, they count as operands with one scale. The outer sum must then be on one grid as well. Any other sum is
  computed as the file has it.

Arrays have a leading axis of frames: (frames, *shape).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen import ir
from hlsgen.interpreter import exact_numbers
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.host_steps import run_step
from hlsgen.interpreter.possible_values import possible_values
from hlsgen.interpreter.softmax import is_mask, masked, qlinear_softmax, scaled, softmax
from hlsgen.interpreter.tensor import Tensor, combine, elementwise, origin_of, tensor_of_codes, tensor_of_numbers
from hlsgen.ir import ops
from hlsgen.ir.evaluate import apply, decoding, quantize
from hlsgen.ir.row_functions import result_dtype, row_values
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Returns the tensor that later steps use in place of value `number`.
Correction = Callable[[int, Tensor], Tensor]


def interpret(model: ir.Model, x: Array, correct: Correction = lambda number, tensor: tensor) -> list[Tensor]:
    """The input, in the model's dtype (frames, *input_shape), and the results of all steps, in order.

    `correct`: as in `interpret_from`.
    """
    parts = reference.split_inputs(model.inputs, x)
    return interpret_from(
        model, 0, replace(tensor_of_numbers(x), parts=tuple(tensor_of_numbers(part) for part in parts)), correct
    )


def interpret_from(
    model: ir.Model, at: int, tensor: Tensor, correct: Correction = lambda number, tensor: tensor
) -> list[Tensor]:
    """As `interpret`, from value `at` on, through which all paths to the output must lead; earlier values are empty.

    `correct`: called with each result, in order.
    """
    values = [Tensor(np.zeros((len(tensor.value), 0)))] * at + [replace(tensor, origin=at)]
    for number, step in enumerate(model.steps[at:], at + 1):
        values.append(correct(number, _step(model, number, step, [values[i] for i in step.inputs])))
    return values


# --------------------------------------------------------------------------- steps


def _step(model: ir.Model, number: int, step: ir.Step, inputs: list[Tensor]) -> Tensor:
    """The result of a step, value `number` of the model."""
    op, first = step.op, inputs[0]
    renumbered = replace(first, origin=number)
    match op:
        case ir.Reshape():
            return _move_elements(renumbered, lambda a: a.reshape(len(a), *step.shape))
        case ir.Transpose(perm):
            return _move_elements(renumbered, lambda a: a.transpose(0, *(axis + 1 for axis in perm)))
        case ir.Repeat(rows, columns):
            return _move_elements(renumbered, lambda a: np.repeat(np.repeat(a, rows, axis=-3), columns, axis=-2))
        case ir.Slice(ranges):
            cuts = (slice(None), *(slice(*r) for r in ranges))
            return _move_elements(renumbered, lambda a: a[cuts])
        case ir.Pad():
            return _pad(op, renumbered)
        case ir.Concat(axis):
            return _concatenate(axis + 1, inputs, number, _exact_parts(model, step, inputs))
        case ir.MatMul(weight, scale):
            exact = _exact_numbers(model, step.inputs[0], first)
            return _round_sums(exact_numbers.products(exact.integers, weight), exact, scale, number)
        case ir.Conv(weight, scale, window, groups):
            exact = _exact_numbers(model, step.inputs[0], first)
            return _round_sums(exact_numbers.convolved(exact.integers, weight, window, groups), exact, scale, number)
        case ir.MatMulInteger(weight, zero_point, dtype):
            return _integer_sums(
                exact_numbers.products(exact_numbers.to_int64(first.value) - zero_point, weight), dtype, number
            )
        case ir.ConvInteger(weight, zero_point, window, groups, dtype):
            total = exact_numbers.convolved(exact_numbers.to_int64(first.value) - zero_point, weight, window, groups)
            return _integer_sums(total, dtype, number)
        case ir.BatchMatMul():
            first_operand, second_operand = (
                _exact_numbers(model, i, t) for i, t in zip(step.inputs, inputs, strict=True)
            )
            product_sums = exact_numbers.Exact(
                exact_numbers.matrix_product(first_operand.integers, second_operand.integers),
                first_operand.unit * second_operand.unit,
                None,
            )
            return _round_sums(product_sums.integers, product_sums, np.ones(1), number)
        case ir.BatchMatMulInteger(zero_points):
            left_codes, right_codes = (
                exact_numbers.to_int64(t.value) - zero_point for t, zero_point in zip(inputs, zero_points, strict=True)
            )
            return _integer_sums(exact_numbers.matrix_product(left_codes, right_codes), "int32", number)
        case ir.Pool(Reduction.SUM, window) if first.value.dtype.kind in "iu":
            sums = exact_numbers.windows(exact_numbers.to_int64(first.value), window, 0).sum(axis=(-1, -2))
            return replace(tensor_of_numbers(sums.astype(first.value.dtype)), origin=number)
        case ir.Pool(Reduction.SUM, window):
            exact = _exact_numbers(model, step.inputs[0], first)
            return _round_sums(
                exact_numbers.windows(exact.integers, window, 0).sum(axis=(-1, -2)), exact, np.ones(1), number
            )
        case ir.Pool(Reduction.MAX, window):
            # The largest sum is not the sum of the largest operands.
            return _move_elements(
                replace(renumbered, operands=None),
                lambda a: exact_numbers.windows(a, window, exact_numbers.lowest(a)).max(axis=(-1, -2)),
            )
        case ir.Normalize(kind, epsilon):
            exact = _exact_numbers(model, step.inputs[0], first)
            value = exact_numbers.normalized(exact, kind is ir.NormKind.LAYER, Fraction(epsilon))
            return Tensor(value, origin=number)
        case ir.Binary(kind):
            return combine(kind, inputs[0], inputs[1], number)
        case ir.Select(fixed):
            computed = iter(t.value for t in inputs)
            condition, yes, no = (np.asarray(c) if c is not None else next(computed) for c in fixed)
            return elementwise(np.where(condition, yes, no), first, origin_of(inputs, number))
        case ir.Pack():
            low, high = (exact_numbers.to_int64(t.value) % 256 for t in inputs)
            return Tensor((low + 256 * high).astype(np.uint16), exact=None, origin=number)
        case ir.InputPart(part, _, _):
            return replace(first.parts[part], origin=number)
        case ir.OutputParts():
            flat = [t.value.reshape(len(t.value), -1).astype(np.float64) for t in inputs]
            return Tensor(np.concatenate(flat, axis=1), origin=number)
        case ir.ArgMax():
            return replace(
                tensor_of_numbers(np.argmax(first.value, axis=-1).reshape(len(first.value), *step.shape)), origin=number
            )
        case ir.Softmax(axis):
            return replace(
                tensor_of_numbers(softmax(first.scores or _exact_numbers(model, step.inputs[0], first), axis + 1)),
                origin=number,
            )
        case ir.QLinearSoftmax():
            return replace(tensor_of_numbers(qlinear_softmax(op, exact_numbers.to_int64(first.value))), origin=number)
        case ir.RowStep(function):
            values = row_values(function, exact_numbers.to_int64(first.value)).astype(result_dtype(function))
            return replace(tensor_of_numbers(values), origin=number)
        case ir.Previous() | ir.State():
            raise AssertionError("the interpreter needs unrolled loops")
        case ir.HostOp():
            return replace(tensor_of_numbers(run_step(step, first.value)), origin=number)
        case ops.Add(value):
            result = elementwise(apply(op, first.value), first, first.origin)
            adds_float32 = first.term is not None and value.dtype == np.float32 and first.value.dtype == np.float32
            adds_float32 = adds_float32 and bool(np.isfinite(value).all())
            scores = masked(op, first.value, first.scores or first.exact) if is_mask(model, number) else None
            return replace(
                result,
                term=exact_numbers.add_constants(first.term, value) if adds_float32 and first.term else None,
                scores=scores,
            )
        case ops.Where():
            scores = masked(op, first.value, first.scores or first.exact) if is_mask(model, number) else None
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case ops.Dequantize():
            return _dequantize(op, first)
        case ops.Max(value) | ops.Min(value):
            return _apply_bound(op, value, first)
        case ops.Mul(value) | ops.Div(value):
            scores = scaled(op, value, first.scores or first.exact)
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case ir.Pool(kind, _):
            raise AssertionError(kind)
        case _:
            if isinstance(op, ops.Float):
                return elementwise(apply(op, first.value), first, first.origin)
            codes = _chunked(lambda x: quantize(op, x), first.value)
            return replace(tensor_of_codes(decoding(op), codes), origin=number)


def _chunked(function: Callable[[Array], Array], x: Array) -> Array:
    """Apply the function frame by frame, since comparing an image with all thresholds needs much memory."""
    return np.concatenate([function(frame) for frame in np.split(x, len(x))]) if len(x) else function(x)


def _move_elements(tensor: Tensor, move: Callable[[Array], Array]) -> Tensor:
    """Apply `move`, which only moves or selects elements, to all arrays of a tensor."""

    def move_exact(exact: exact_numbers.Exact | None) -> exact_numbers.Exact | None:
        return None if exact is None else replace(exact, integers=move(exact.integers))

    operands = tensor.operands and (move_exact(tensor.operands[0]), move_exact(tensor.operands[1]))
    codes = None if tensor.codes is None else move(tensor.codes)
    return replace(
        tensor,
        value=move(tensor.value),
        codes=codes,
        exact=move_exact(tensor.exact),
        term=move_exact(tensor.term),
        operands=operands,
        scores=move_exact(tensor.scores),
    )


def _apply_bound(op: ops.Max | ops.Min, value: Array, first: Tensor) -> Tensor:
    """A bound on codes leaves them codes, and a sum on a grid that is bounded by 0 is still on that grid."""
    result, exact = elementwise(apply(op, first.value), first, first.origin), first.exact
    if result.exact is not None:
        return replace(result, exact=replace(result.exact, slope=None if exact is None else exact.slope))
    if exact is None or exact.slope is None or not first.on_grid or value.any() or exact.unit != abs(exact.slope):
        return result
    bounded = replace(
        exact, integers=np.maximum(exact.integers, 0) if isinstance(op, ops.Max) else np.minimum(exact.integers, 0)
    )
    return replace(result, exact=bounded, term=bounded)


def _pad(op: ir.Pad, tensor: Tensor) -> Tensor:
    """The tensor and its exact numbers with a border."""
    top_pad, left_pad, bottom_pad, right_pad = op.pads

    def bordered(array: Array, value: object) -> Array:
        widths = [(0, 0)] * (array.ndim - 3) + [(top_pad, bottom_pad), (left_pad, right_pad), (0, 0)]
        return np.pad(array, widths, constant_values=value)  # type: ignore[call-overload, no-any-return]

    exact = None
    if tensor.exact is not None:
        unit = exact_numbers.common_unit([tensor.exact.unit, Fraction(op.value)])
        scaled = exact_numbers.exact_product(tensor.exact.integers, int(tensor.exact.unit / unit))
        exact = exact_numbers.Exact(bordered(scaled, int(Fraction(op.value) / unit)), unit, tensor.exact.slope)
    return Tensor(bordered(tensor.value, op.value), exact=exact, term=exact, scale=tensor.scale, origin=tensor.origin)


def _exact_parts(model: ir.Model, step: ir.Step, parts: list[Tensor]) -> list[exact_numbers.Exact | None]:
    """The exact numbers of each part of a Concat.

    Beside codes, a part after float operations gets exact numbers as multiples of one scale.
    """
    exacts = [t.exact for t in parts]
    if all(e is None for e in exacts):
        return exacts
    return [
        _of_one_scale(model, index, part) if exact is None and part.value.dtype == np.float32 else exact
        for index, part, exact in zip(step.inputs, parts, exacts, strict=True)
    ]


def _concatenate(axis: int, parts: list[Tensor], number: int, exacts: list[exact_numbers.Exact | None]) -> Tensor:
    """The parts and their exact numbers, concatenated."""
    exact = None
    if all(part_exact is not None for part_exact in exacts):
        present = [part_exact for part_exact in exacts if part_exact is not None]
        unit = exact_numbers.common_unit([part_exact.unit for part_exact in present])
        integers = np.concatenate(
            [exact_numbers.exact_product(part_exact.integers, int(part_exact.unit / unit)) for part_exact in present],
            axis,
        )
        slopes = {part_exact.slope for part_exact in present}
        exact = exact_numbers.Exact(integers, unit, present[0].slope if len(slopes) == 1 else None)
    term = exact if exact is not None and exact.slope and all(t.term is not None for t in parts) else None
    value = np.concatenate([t.value for t in parts], axis)
    return Tensor(value, exact=exact, term=term, scale=parts[0].scale, origin=number)


def _round_sums(total: Array, exact: exact_numbers.Exact, scale: Array, number: int) -> Tensor:
    """Exact sums of numbers in `exact.unit` and weights of that scale, (rows,) or (1,), rounded once."""
    scales = [exact.unit * Fraction(float(s)) for s in np.ravel(scale)]
    value = exact_numbers.to_float32(total, scales)
    if len(set(scales)) > 1:
        return Tensor(value, scale=scales[0], origin=number)
    # The real difference of adjacent sums of codes. It is a multiple of the unit if zero points have a fraction.
    slope = scales[0] if exact.slope is None else exact.slope * Fraction(float(np.ravel(scale)[0]))
    exact_sums = exact_numbers.Exact(total, scales[0], slope)
    return Tensor(value, exact=exact_sums, term=exact_sums, scale=scales[0], origin=number)


# --------------------------------------------------------------------------- linear steps


def _integer_sums(total: Array, dtype: str, number: int) -> Tensor:
    """Sums that wrap as int32 or int64."""
    if total.dtype == object:
        total = (total % (1 << 64)).astype(np.uint64)
    return replace(tensor_of_numbers(total.astype(dtype)), origin=number)


def _dequantize(op: ops.Dequantize, first: Tensor) -> Tensor:
    """The dequantized tensor, with exact numbers if the codes' encoding is known."""
    value = apply(op, first.value)
    result = elementwise(value, first, first.origin)
    if first.exact is None or first.exact.unit != 1 or op.scale.dtype != np.float32:
        return result
    numbers = exact_numbers.exact_line(
        first.exact.integers,
        exact_numbers.fractions(op.scale),
        -exact_numbers.fractions(op.scale) * exact_numbers.fractions(op.zero_point),
    )
    exact = numbers if first.exact.slope else replace(numbers, slope=None)
    return replace(result, exact=exact, term=exact if exact.slope else None, scale=Fraction(float(op.scale.ravel()[0])))


# --------------------------------------------------------------------------- multiples of one scale


def _exact_numbers(model: ir.Model, index: int, tensor: Tensor) -> exact_numbers.Exact:
    """The exact numbers of value `index`, for a step that adds them up."""
    if tensor.exact is not None:
        return tensor.exact
    on_scale = _of_one_scale(model, index, tensor)
    if on_scale is not None:
        return on_scale
    flat = exact_numbers.fractions(np.where(np.isfinite(tensor.value), tensor.value, 0))
    unit = exact_numbers.common_unit(flat.ravel())
    return exact_numbers.Exact(exact_numbers.narrow(exact_numbers.multiples(flat, unit)), unit, None)


def _of_one_scale(model: ir.Model, index: int, tensor: Tensor) -> exact_numbers.Exact | None:
    """Floats as multiples of one scale, or None."""
    scale = _scale_of_all(model, index, tensor.scale)
    if scale is None:
        scale = exact_numbers.one_scale(tensor.value, tensor.scale)
    integers = None if scale is None else exact_numbers.as_multiples(tensor.value, scale)
    return None if scale is None or integers is None else exact_numbers.Exact(integers, scale, None)


def _scale_of_all(model: ir.Model, index: int, preferred: Fraction | None) -> Fraction | None:
    """A scale of which every possible value of the tensor is a multiple, for any input, or None if there is none."""
    values = possible_values(model, index)
    return None if values is None else exact_numbers.one_scale(values, preferred)
