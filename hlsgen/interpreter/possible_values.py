"""All values that a tensor of a Model can have, whatever the input: found step by step from the codes of quantizers."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from hlsgen.interpreter.exact_numbers import Exact, added, common, fractions, line, on_one_grid, to_float32
from hlsgen.ir import Affine, Binary, Model, Pool, Repeat, Reshape, Slice, Transpose
from hlsgen.ir.evaluate import apply, apply_binary, code_type, constants, decode, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryKind, Dequantize, Elementwise, MultiThreshold, Quantizer, Trunc
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Most values that are listed.
_EXHAUSTIVE = 1 << 20


def possible(model: Model, index: int) -> Array | None:
    """All values that elements of a value can have, (values,); None if they are unknown, or too many.

    Constants on the way must be the same for all elements.
    """
    if not index:
        return None
    step = model.steps[index - 1]
    op = step.op
    match op:
        case Reshape() | Transpose() | Repeat() | Slice() | Pool(Reduction.MAX, _):
            return possible(model, step.inputs[0])
        case _ if isinstance(op, QUANTIZERS) and not (isinstance(op, Trunc) and op.type is None):
            return _possible_codes(op)
        case _ if isinstance(op, (*FLOATS, Trunc)):
            item = cast("Elementwise", op)
            before = possible(model, step.inputs[0])
            if before is None or not _same_everywhere(item):
                return None
            return np.unique(_on_values(item, before))
        case Binary(kind):
            if (total := _grid_values(model, index)) is not None:
                return np.unique(to_float32(total.whole, [total.unit]))
            sides = [possible(model, i) for i in step.inputs]
            left, right = sides
            if left is None or right is None or left.size * right.size > _EXHAUSTIVE:
                return None
            return np.unique(apply_binary(kind, left[:, None], right[None, :]))
        case _:
            return None


def _grid_values(model: Model, index: int) -> Exact | None:
    """The exact numbers that the codes of a tensor can mean, or sums of tensors on one grid; (values,)."""
    step = model.steps[index - 1] if index else None
    match step and step.op:
        case Reshape() | Transpose() | Repeat() | Slice() | Pool(Reduction.MAX, _):
            assert step is not None
            return _grid_values(model, step.inputs[0])
        case Binary(BinaryKind.ADD | BinaryKind.SUB as kind):
            assert step is not None
            left, right = (_grid_values(model, i) for i in step.inputs)
            if left is None or right is None or left.whole.size * right.whole.size > _EXHAUSTIVE:
                return None
            slopes = [s for s in (left.slope, right.slope) if s is not None]
            if len(slopes) < 2 or not on_one_grid(slopes):
                return None
            columns = replace(left, whole=left.whole[:, None])
            total = added(columns, replace(right, whole=right.whole[None]), 1 if kind is BinaryKind.ADD else -1)
            return Exact(np.unique(total.whole), total.unit, common(slopes))
        case Dequantize(scale, zero) as op if scale.dtype == np.float32 and _same_everywhere(op):
            assert step is not None
            codes = possible(model, step.inputs[0])
            if codes is None or codes.dtype.kind not in "iu":
                return None
            slope = fractions(scale.ravel()[:1])
            return line(codes.astype(np.int64), slope, -slope * int(zero.ravel()[0]))
        case op if isinstance(op, QUANTIZERS) and (values := _possible_codes(op)) is not None:
            meaning, type_ = decoding(op), code_type(op)
            if not isinstance(meaning, Affine) or (isinstance(op, Trunc) and op.type is None) or not values.size:
                return None
            slope, zero = (fractions(np.asarray(a).ravel()[:1]) for a in (meaning.scale, meaning.zero_point))
            return line(np.arange(type_.lo, type_.hi + 1), slope, -slope * zero)
        case _:
            return None


def _possible_codes(op: Quantizer) -> Array | None:
    type_ = code_type(op)
    if type_.hi - type_.lo >= _EXHAUSTIVE or not _same_everywhere(op):
        return None
    meaning = decoding(op)
    codes = np.arange(type_.lo, type_.hi + 1)
    rank = max((c.ndim for c in constants(meaning).values()), default=0)
    return decode(meaning, codes.reshape(-1, *(1,) * rank)).reshape(len(codes), -1)[:, 0]


def _same_everywhere(op: Elementwise) -> bool:
    found = decoding(op) if isinstance(op, MultiThreshold) else op
    return all((c == c.ravel()[0]).all() for c in constants(found).values())


def _on_values(op: Elementwise, values: Array) -> Array:
    rank = max((c.ndim for c in constants(op).values()), default=0)
    return apply(op, values.reshape(-1, *(1,) * rank)).reshape(len(values), -1)[:, 0]
