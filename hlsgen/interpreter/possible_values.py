"""Finds all values that a tensor of a Model can have for any input, step by step from the codes of quantizers."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from hlsgen.interpreter.exact_numbers import (
    Exact,
    common_unit,
    exact_line,
    exact_sum,
    fractions,
    on_one_grid,
    to_float32,
)
from hlsgen.ir import Affine, Binary, Model, Pool, Repeat, Reshape, Slice, Transpose
from hlsgen.ir.evaluate import apply, apply_binary, code_type, constants, decode, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryKind, Dequantize, Elementwise, MultiThreshold, Quantizer, Trunc
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Largest number of values that are listed.
_EXHAUSTIVE = 1 << 20


def possible_values(model: Model, index: int) -> Array | None:
    """All values that elements of a value can have, (values,), or None if they are unknown or too many.

    Constants on the way must be the same for all elements.
    """
    if not index:
        return None
    step = model.steps[index - 1]
    op = step.op
    match op:
        case Reshape() | Transpose() | Repeat() | Slice() | Pool(Reduction.MAX, _):
            return possible_values(model, step.inputs[0])
        case _ if isinstance(op, QUANTIZERS) and not (isinstance(op, Trunc) and op.type is None):
            return _values_of_codes(op)
        case _ if isinstance(op, (*FLOATS, Trunc)):
            item = cast("Elementwise", op)
            input_values = possible_values(model, step.inputs[0])
            if input_values is None or not _is_uniform(item):
                return None
            return np.unique(_apply_to_values(item, input_values))
        case Binary(kind):
            if (total := _grid_values(model, index)) is not None:
                return np.unique(to_float32(total.integers, [total.unit]))
            sides = [possible_values(model, i) for i in step.inputs]
            first_values, second_values = sides
            if first_values is None or second_values is None or first_values.size * second_values.size > _EXHAUSTIVE:
                return None
            return np.unique(apply_binary(kind, first_values[:, None], second_values[None, :]))
        case _:
            return None


def _grid_values(model: Model, index: int) -> Exact | None:
    """The exact numbers of a tensor's codes, or of sums of tensors on one grid; (values,).

    Returns None for other tensors.
    """
    step = model.steps[index - 1] if index else None
    match step and step.op:
        case Reshape() | Transpose() | Repeat() | Slice() | Pool(Reduction.MAX, _):
            assert step is not None
            return _grid_values(model, step.inputs[0])
        case Binary(BinaryKind.ADD | BinaryKind.SUB as kind):
            assert step is not None
            first, second = (_grid_values(model, i) for i in step.inputs)
            if first is None or second is None or first.integers.size * second.integers.size > _EXHAUSTIVE:
                return None
            slopes = [s for s in (first.slope, second.slope) if s is not None]
            if len(slopes) < 2 or not on_one_grid(slopes):
                return None
            columns = replace(first, integers=first.integers[:, None])
            sums = exact_sum(
                columns, replace(second, integers=second.integers[None]), 1 if kind is BinaryKind.ADD else -1
            )
            return Exact(np.unique(sums.integers), sums.unit, common_unit(slopes))
        case Dequantize(scale, zero_point) as op if scale.dtype == np.float32 and _is_uniform(op):
            assert step is not None
            codes = possible_values(model, step.inputs[0])
            if codes is None or codes.dtype.kind not in "iu":
                return None
            slope = fractions(scale.ravel()[:1])
            return exact_line(codes.astype(np.int64), slope, -slope * int(zero_point.ravel()[0]))
        case op if isinstance(op, QUANTIZERS) and (values := _values_of_codes(op)) is not None:
            encoding, type_ = decoding(op), code_type(op)
            if not isinstance(encoding, Affine) or (isinstance(op, Trunc) and op.type is None) or not values.size:
                return None
            slope, zero_point = (fractions(np.asarray(a).ravel()[:1]) for a in (encoding.scale, encoding.zero_point))
            return exact_line(np.arange(type_.lo, type_.hi + 1), slope, -slope * zero_point)
        case _:
            return None


def _values_of_codes(op: Quantizer) -> Array | None:
    """The values of all codes of a quantizer, or None if they are too many or differ between elements."""
    type_ = code_type(op)
    if type_.hi - type_.lo >= _EXHAUSTIVE or not _is_uniform(op):
        return None
    encoding = decoding(op)
    codes = np.arange(type_.lo, type_.hi + 1)
    rank = max((c.ndim for c in constants(encoding).values()), default=0)
    return decode(encoding, codes.reshape(-1, *(1,) * rank)).reshape(len(codes), -1)[:, 0]


def _is_uniform(op: Elementwise) -> bool:
    """True if the constants are the same for all elements."""
    item = decoding(op) if isinstance(op, MultiThreshold) else op
    return all((c == c.ravel()[0]).all() for c in constants(item).values())


def _apply_to_values(op: Elementwise, values: Array) -> Array:
    """The operation's results for a list of values."""
    rank = max((c.ndim for c in constants(op).values()), default=0)
    return apply(op, values.reshape(-1, *(1,) * rank)).reshape(len(values), -1)[:, 0]
