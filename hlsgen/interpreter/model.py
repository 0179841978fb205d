"""Runs a `Model` step by step, as the file says it: the independent meaning that a `Graph` is held against.

Nothing is fused, moved or turned into codes: every step of the Model is computed on its own, in order, from the
results of the steps that it names. The module shares no code with the passes and with the interpreter of Graphs, but
for what a single elementwise operation, quantizer or host operator computes (`hlsgen.semantics`).

The contract (docs/numeric-contract.md), and how it is kept here:

- An elementwise step computes in the dtype of its data, rounding once an operation. Integers wrap.
- Beside its value in the model's dtype, a tensor that a quantizer made carries the real numbers that its codes mean,
  exactly (`Exact`: integers times one fraction). What only moves elements moves both.
- A linear step (MatMul, Conv, the sum of a Pool) adds these exact numbers up, BatchMatMul products of two of them.
  Its value is the sum, rounded once to float32. MatMulInteger, ConvInteger and BatchMatMulInteger add integers up,
  and wrap as int32.
- Where float operations stand between a quantizer and a linear step, every value must be fl(k * scale) for whole
  numbers k and one scale, and k * scale is the exact number. Of several such scales the first counts: that of the
  codes, the largest power of two, the smallest number.
- A sum of two tensors (an Add or Sub) whose scales are on one grid is exact as well, and rounded once. A linear step
  takes it unrounded. Bounded by 0, as by Relu, it is still a sum on that grid.
- So is a sum of three or more (an Add or Sub of an Add or Sub), if all its operands have one scale each and no more
  than float32 constants were added to them. Where the inner sums are on one grid, they count as operands with one scale,
  and the outer sum must be on one grid as well; else it is computed as the file has it.

Arrays have the frames in front: (frames, *shape).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.exact_numbers import (
    Exact,
    as_multiples,
    common,
    convolved,
    fractions,
    int64,
    line,
    lowest,
    matrix_product,
    multiples,
    narrow,
    normalized,
    one_scale,
    products,
    shifted,
    times,
    to_float32,
    windows,
)
from hlsgen.interpreter.host_steps import run_step
from hlsgen.interpreter.possible_values import possible
from hlsgen.interpreter.softmax import is_mask, masked, qlinear_softmax, scaled, softmax
from hlsgen.interpreter.tensor import Tensor, elementwise, joined, of_codes, origin_of, plain
from hlsgen.ir import (
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
    NormKind,
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
    Slice,
    Softmax,
    State,
    Step,
    Transpose,
)
from hlsgen.ir.evaluate import apply, decoding, quantize
from hlsgen.ir.ops import (
    Add,
    Dequantize,
    Div,
    Float,
    Max,
    Min,
    Mul,
    Where,
)
from hlsgen.ir.row_functions import row_values
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Gives what the later steps get in place of a value, by its number.
Correction = Callable[[int, Tensor], Tensor]


def interpret(model: Model, x: Array, correct: Correction = lambda number, tensor: tensor) -> list[Tensor]:
    """The input, in the model's dtype (frames, *input_shape), and the results of all steps, in order."""
    parts = reference.parts_of(model.inputs, x)
    return resumed(model, 0, replace(plain(x), parts=tuple(plain(part) for part in parts)), correct)


def resumed(model: Model, at: int, tensor: Tensor, correct: Correction = lambda number, tensor: tensor) -> list[Tensor]:
    """The same from a given value `at` on, which must be the only way to the output; those before it are empty.

    `correct`: called with each result, in order.
    """
    values = [Tensor(np.zeros((len(tensor.value), 0)))] * at + [replace(tensor, origin=at)]
    for number, step in enumerate(model.steps[at:], at + 1):
        values.append(correct(number, _step(model, number, step, [values[i] for i in step.inputs])))
    return values


# --------------------------------------------------------------------------- steps


def _step(model: Model, number: int, step: Step, given: list[Tensor]) -> Tensor:
    """The result of a step, value `number` of the model."""
    op, first = step.op, given[0]
    fresh = replace(first, origin=number)
    match op:
        case Reshape():
            return _moved(fresh, lambda a: a.reshape(len(a), *step.shape))
        case Transpose(perm):
            return _moved(fresh, lambda a: a.transpose(0, *(axis + 1 for axis in perm)))
        case Repeat(rows, columns):
            return _moved(fresh, lambda a: np.repeat(np.repeat(a, rows, axis=-3), columns, axis=-2))
        case Slice(ranges):
            cuts = (slice(None), *(slice(*r) for r in ranges))
            return _moved(fresh, lambda a: a[cuts])
        case Pad():
            return _padded(op, fresh)
        case Concat(axis):
            return _concatenated(axis + 1, given, number, _parts(model, step, given))
        case MatMul(weight, scale):
            exact = _whole(model, step.inputs[0], first)
            return _rounded(products(exact.whole, weight), exact, scale, number)
        case Conv(weight, scale, window, groups):
            exact = _whole(model, step.inputs[0], first)
            return _rounded(convolved(exact.whole, weight, window, groups), exact, scale, number)
        case MatMulInteger(weight, zero_point):
            return _int32(products(int64(first.value) - zero_point, weight), number)
        case ConvInteger(weight, zero_point, window, groups):
            return _int32(convolved(int64(first.value) - zero_point, weight, window, groups), number)
        case BatchMatMul():
            left, right = (_whole(model, i, t) for i, t in zip(step.inputs, given, strict=True))
            whole = Exact(matrix_product(left.whole, right.whole), left.unit * right.unit, None)
            return _rounded(whole.whole, whole, np.ones(1), number)
        case BatchMatMulInteger(zeros):
            left_codes, right_codes = (int64(t.value) - zero for t, zero in zip(given, zeros, strict=True))
            return _int32(matrix_product(left_codes, right_codes), number)
        case Pool(Reduction.SUM, window) if first.value.dtype.kind in "iu":
            total = windows(int64(first.value), window, 0).sum(axis=(-1, -2))
            return replace(plain(total.astype(first.value.dtype)), origin=number)
        case Pool(Reduction.SUM, window):
            exact = _whole(model, step.inputs[0], first)
            return _rounded(windows(exact.whole, window, 0).sum(axis=(-1, -2)), exact, np.ones(1), number)
        case Pool(Reduction.MAX, window):
            # The largest sum is not the sum of the largest operands.
            return _moved(replace(fresh, operands=None), lambda a: windows(a, window, lowest(a)).max(axis=(-1, -2)))
        case Normalize(kind, epsilon):
            exact = _whole(model, step.inputs[0], first)
            value = normalized(exact, kind is NormKind.LAYER, Fraction(epsilon))
            return Tensor(value, origin=number)
        case Binary(kind):
            return joined(kind, given[0], given[1], number)
        case Select(fixed):
            computed = iter(t.value for t in given)
            condition, yes, no = (np.asarray(c) if c is not None else next(computed) for c in fixed)
            return elementwise(np.where(condition, yes, no), first, origin_of(given, number))
        case Pack():
            low, high = (int64(t.value) % 256 for t in given)
            return Tensor((low + 256 * high).astype(np.uint16), exact=None, origin=number)
        case InputPart(part, _, _):
            return replace(first.parts[part], origin=number)
        case OutputParts():
            flat = [t.value.reshape(len(t.value), -1).astype(np.float64) for t in given]
            return Tensor(np.concatenate(flat, axis=1), origin=number)
        case ArgMax():
            return replace(plain(np.argmax(first.value, axis=-1).reshape(len(first.value), *step.shape)), origin=number)
        case Softmax(axis):
            return replace(
                plain(softmax(first.scores or _whole(model, step.inputs[0], first), axis + 1)), origin=number
            )
        case QLinearSoftmax():
            return replace(plain(qlinear_softmax(op, int64(first.value))), origin=number)
        case RowStep(function):
            return replace(plain(row_values(function, int64(first.value)).astype(np.float32)), origin=number)
        case Previous() | State():
            raise AssertionError("the steps of a loop are interpreted one by one: as the file has them")
        case HostOp():
            return replace(plain(run_step(step, first.value)), origin=number)
        case Add(value):
            result = elementwise(apply(op, first.value), first, first.origin)
            float32 = first.term is not None and value.dtype == np.float32 and first.value.dtype == np.float32
            float32 = float32 and bool(np.isfinite(value).all())
            scores = masked(op, first.value, first.scores or first.exact) if is_mask(model, number) else None
            return replace(result, term=shifted(first.term, value) if float32 and first.term else None, scores=scores)
        case Where():
            scores = masked(op, first.value, first.scores or first.exact) if is_mask(model, number) else None
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case Dequantize():
            return _dequantized(op, first)
        case Max(value) | Min(value):
            return _bounded(op, value, first)
        case Mul(value) | Div(value):
            scores = scaled(op, value, first.scores or first.exact)
            return replace(elementwise(apply(op, first.value), first, first.origin), scores=scores)
        case Pool(kind, _):
            raise AssertionError(kind)
        case _:
            if isinstance(op, Float):
                return elementwise(apply(op, first.value), first, first.origin)
            codes = _chunked(lambda x: quantize(op, x), first.value)
            return replace(of_codes(decoding(op), codes), origin=number)


def _chunked(function: Callable[[Array], Array], x: Array) -> Array:
    """Frame by frame: what thresholds make of an image is large."""
    return np.concatenate([function(frame) for frame in np.split(x, len(x))]) if len(x) else function(x)


def _moved(tensor: Tensor, move: Callable[[Array], Array]) -> Tensor:
    """What only moves or picks elements, done to everything that is known of them."""

    def of(exact: Exact | None) -> Exact | None:
        return None if exact is None else replace(exact, whole=move(exact.whole))

    operands = tensor.operands and (of(tensor.operands[0]), of(tensor.operands[1]))
    codes = None if tensor.codes is None else move(tensor.codes)
    return replace(
        tensor,
        value=move(tensor.value),
        codes=codes,
        exact=of(tensor.exact),
        term=of(tensor.term),
        operands=operands,
        scores=of(tensor.scores),
    )


def _bounded(op: Max | Min, value: Array, first: Tensor) -> Tensor:
    """A bound on codes leaves them codes, and a sum on a grid that is bounded by 0 is still on that grid."""
    result, exact = elementwise(apply(op, first.value), first, first.origin), first.exact
    if result.exact is not None:
        return replace(result, exact=replace(result.exact, slope=None if exact is None else exact.slope))
    if exact is None or exact.slope is None or not first.on_grid or value.any() or exact.unit != abs(exact.slope):
        return result
    bounded = replace(exact, whole=np.maximum(exact.whole, 0) if isinstance(op, Max) else np.minimum(exact.whole, 0))
    return replace(result, exact=bounded, term=bounded)


def _padded(op: Pad, tensor: Tensor) -> Tensor:
    top, left, bottom, right = op.pads

    def bordered(array: Array, value: object) -> Array:
        widths = [(0, 0)] * (array.ndim - 3) + [(top, bottom), (left, right), (0, 0)]
        return np.pad(array, widths, constant_values=value)  # type: ignore[call-overload, no-any-return]

    exact = None
    if tensor.exact is not None:
        unit = common([tensor.exact.unit, Fraction(op.value)])
        whole = times(tensor.exact.whole, int(tensor.exact.unit / unit))
        exact = Exact(bordered(whole, int(Fraction(op.value) / unit)), unit, tensor.exact.slope)
    return Tensor(bordered(tensor.value, op.value), exact=exact, term=exact, scale=tensor.scale, origin=tensor.origin)


def _parts(model: Model, step: Step, parts: list[Tensor]) -> list[Exact | None]:
    """The exact numbers of each part of a Concat: beside those of codes, a part behind float operations has its own."""
    known = [t.exact for t in parts]
    if all(e is None for e in known):
        return known
    return [
        _of_one_scale(model, index, part) if exact is None and part.value.dtype == np.float32 else exact
        for index, part, exact in zip(step.inputs, parts, known, strict=True)
    ]


def _concatenated(axis: int, parts: list[Tensor], number: int, exacts: list[Exact | None]) -> Tensor:
    exact = None
    if all(e is not None for e in exacts):
        known = [e for e in exacts if e is not None]
        unit = common([e.unit for e in known])
        whole = np.concatenate([times(e.whole, int(e.unit / unit)) for e in known], axis)
        slopes = {e.slope for e in known}
        exact = Exact(whole, unit, known[0].slope if len(slopes) == 1 else None)
    term = exact if exact is not None and exact.slope and all(t.term is not None for t in parts) else None
    value = np.concatenate([t.value for t in parts], axis)
    return Tensor(value, exact=exact, term=term, scale=parts[0].scale, origin=number)


def _rounded(total: Array, exact: Exact, scale: Array, number: int) -> Tensor:
    """Exact sums of numbers in `exact.unit` and weights of that scale, (rows,) or (1,), rounded once."""
    scales = [exact.unit * Fraction(float(s)) for s in np.ravel(scale)]
    value = to_float32(total, scales)
    if len(set(scales)) > 1:
        return Tensor(value, scale=scales[0], origin=number)
    # What one more in the sum of codes is worth, which is a multiple of the unit where zero points have a fraction.
    slope = scales[0] if exact.slope is None else exact.slope * Fraction(float(np.ravel(scale)[0]))
    known = Exact(total, scales[0], slope)
    return Tensor(value, exact=known, term=known, scale=scales[0], origin=number)


# --------------------------------------------------------------------------- linear steps


def _int32(total: Array, number: int) -> Tensor:
    """Sums that wrap as int32 do."""
    if total.dtype == object:
        total = (total % (1 << 32)).astype(np.int64)
    return replace(plain(total.astype(np.int32)), origin=number)


def _dequantized(op: Dequantize, first: Tensor) -> Tensor:
    value = apply(op, first.value)
    result = elementwise(value, first, first.origin)
    if first.exact is None or first.exact.unit != 1 or op.scale.dtype != np.float32:
        return result
    made = line(first.exact.whole, fractions(op.scale), -fractions(op.scale) * fractions(op.zero_point))
    exact = made if first.exact.slope else replace(made, slope=None)
    return replace(result, exact=exact, term=exact if exact.slope else None, scale=Fraction(float(op.scale.ravel()[0])))


# --------------------------------------------------------------------------- multiples of one scale


def _whole(model: Model, index: int, tensor: Tensor) -> Exact:
    """The exact numbers of value `index`, for a step that adds them up."""
    if tensor.exact is not None:
        return tensor.exact
    found = _of_one_scale(model, index, tensor)
    if found is not None:
        return found
    flat = fractions(np.where(np.isfinite(tensor.value), tensor.value, 0))
    unit = common(flat.ravel())
    return Exact(narrow(multiples(flat, unit)), unit, None)


def _of_one_scale(model: Model, index: int, tensor: Tensor) -> Exact | None:
    """Floats as multiples of one scale, if they are."""
    scale = _scale_of_all(model, index, tensor.scale)
    if scale is None:
        scale = one_scale(tensor.value, tensor.scale)
    whole = None if scale is None else as_multiples(tensor.value, scale)
    return None if scale is None or whole is None else Exact(whole, scale, None)


def _scale_of_all(model: Model, index: int, own: Fraction | None) -> Fraction | None:
    """A scale of which every value that the tensor can have is a multiple, whatever the input."""
    values = possible(model, index)
    return None if values is None else one_scale(values, own)
