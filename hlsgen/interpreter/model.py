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
from hlsgen.interpreter.exact_operands import exact_operand, exact_parts
from hlsgen.interpreter.host_steps import run_step
from hlsgen.interpreter.moves import concatenate, move_elements, moved
from hlsgen.interpreter.softmax import is_mask, masked, qlinear_softmax, scaled, softmax
from hlsgen.interpreter.sums import exact_sum, integer_sum, pooled_integers
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
    match op:
        case ir.Reshape() | ir.Transpose() | ir.Repeat() | ir.Slice() | ir.Pad():
            return moved(op, replace(first, origin=number), step.shape)
        case ir.Concat(axis):
            return concatenate(axis + 1, inputs, number, exact_parts(model, step, inputs))
        case ir.Pool():
            return _pool(op, model, step, first, number)
        case ir.MatMul() | ir.Conv() | ir.BatchMatMul():
            return exact_sum(op, model, step, inputs, number)
        case ir.MatMulInteger() | ir.ConvInteger() | ir.BatchMatMulInteger():
            return integer_sum(op, inputs, number)
        case ir.Normalize(kind, epsilon):
            exact = exact_operand(model, step.inputs[0], first)
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
        case ir.ArgMax() | ir.Softmax() | ir.QLinearSoftmax() | ir.RowStep() | ir.HostOp():
            return replace(tensor_of_numbers(_numbers(op, model, step, first)), origin=number)
        case ir.Previous() | ir.State():
            raise AssertionError("the interpreter needs unrolled loops")
        case _:
            return _elementwise(op, first, number, is_mask(model, number))


def _pool(op: ir.Pool, model: ir.Model, step: ir.Step, tensor: Tensor, number: int) -> Tensor:
    """The sums or largest elements of a tensor's windows, value `number` of the model."""
    match op.kind:
        case Reduction.SUM if tensor.value.dtype.kind in "iu":
            return pooled_integers(op, tensor, number)
        case Reduction.SUM:
            return exact_sum(op, model, step, [tensor], number)
        case Reduction.MAX:
            # The largest sum is not the sum of the largest operands.
            return move_elements(
                replace(tensor, origin=number, operands=None),
                lambda a: exact_numbers.windows(a, op.window, exact_numbers.lowest(a)).max(axis=(-1, -2)),
            )
        case _:
            raise AssertionError(op.kind)


def _numbers(
    op: ir.ArgMax | ir.Softmax | ir.QLinearSoftmax | ir.RowStep | ir.HostOp, model: ir.Model, step: ir.Step, x: Tensor
) -> Array:
    """The result of a step that gives numbers of a new kind: no exact numbers of its operand hold for them."""
    match op:
        case ir.ArgMax():
            return np.asarray(np.argmax(x.value, axis=-1).reshape(len(x.value), *step.shape))
        case ir.Softmax(axis):
            return softmax(x.scores or exact_operand(model, step.inputs[0], x), axis + 1)
        case ir.QLinearSoftmax():
            return qlinear_softmax(op, exact_numbers.to_int64(x.value))
        case ir.RowStep(function):
            return row_values(function, exact_numbers.to_int64(x.value)).astype(result_dtype(function))
        case ir.HostOp():
            return run_step(step, x.value)


def _elementwise(op: ops.Elementwise, first: Tensor, number: int, adds_mask: bool) -> Tensor:
    """An operation on each element. `adds_mask`: whether it masks the scores of a Softmax."""
    match op:
        case ops.Add(value):
            result = elementwise(apply(op, first.value), first, first.origin)
            adds_float32 = first.term is not None and value.dtype == np.float32 and first.value.dtype == np.float32
            adds_float32 = adds_float32 and bool(np.isfinite(value).all())
            term = exact_numbers.add_constants(first.term, value) if adds_float32 and first.term else None
            return replace(result, term=term, scores=_masked(op, first) if adds_mask else None)
        case ops.Where():
            scores = _masked(op, first) if adds_mask else None
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case ops.Dequantize():
            return _dequantize(op, first)
        case ops.Max(value) | ops.Min(value):
            return _apply_bound(op, value, first)
        case ops.Mul(value) | ops.Div(value):
            scores = scaled(op, value, first.scores or first.exact)
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case _ if isinstance(op, ops.Float):
            return elementwise(apply(op, first.value), first, first.origin)
        case _:
            codes = _chunked(lambda x: quantize(op, x), first.value)
            return replace(tensor_of_codes(decoding(op), codes), origin=number)


def _masked(op: ops.Add | ops.Where, first: Tensor) -> exact_numbers.Exact | None:
    """The scores after a mask, for the Softmax that follows."""
    return masked(op, first.value, first.scores or first.exact)


def _chunked(function: Callable[[Array], Array], x: Array) -> Array:
    """Apply the function frame by frame, since comparing an image with all thresholds needs much memory."""
    return np.concatenate([function(frame) for frame in np.split(x, len(x))]) if len(x) else function(x)


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
