"""Softmax of codes, along the last axis: tables of exp for every difference of two codes of a row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import (
    Accumulator,
    Affine,
    Encoding,
    Fixed,
    FloatKey,
    IntegerEncoding,
    QLinearSoftmax,
    Shape,
    Softmax,
    SoftmaxRows,
    Transpose,
    Value,
)
from hlsgen.ir.encoding import ThresholdCount
from hlsgen.ir.evaluate import float_to_key
from hlsgen.ir.ops import Div, Elementwise, Mul
from hlsgen.numerics.exponential import powers
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue

#: Longest row, and most codes that its elements may have.
MAX_ROW = 4096
MAX_CODES = 1 << 22


def softmax(
    builder: GraphBuilder, name: str, op: Softmax | QLinearSoftmax, tensor: PendingValue, shape: Shape
) -> PendingValue:
    """A Softmax along any axis. Raises HG010, HG030, HG032, HG034."""
    last = len(shape) - 1
    perm = (*(a for a in range(last + 1) if a != op.axis), op.axis)
    rows = tuple(shape[a] for a in perm)
    if op.axis != last:
        tensor = builder.relabelled(name, tensor, Transpose(perm), rows)
    made = _rows(builder, name, op, builder.flushed(tensor))
    if op.axis != last:
        back = Transpose(tuple(perm.index(a) for a in range(last + 1)))
        made = builder.relabelled(name, made, back, shape)
    return made


def _rows(builder: GraphBuilder, name: str, op: Softmax | QLinearSoftmax, tensor: PendingValue) -> PendingValue:
    length = tensor.value.shape[-1]
    if length > MAX_ROW:
        raise fail(
            "HG010", name, f"Softmax of rows of {length} elements between quantizers.",
            f"Supported there: up to {MAX_ROW}.",
        )  # fmt: skip
    factor = Fraction(1)
    if isinstance(op, Softmax) and tensor.branches is None and tensor.named_ops:
        factors = [_factor(own) for own in tensor.ops]
        if all(own is not None for own in factors):
            for own in factors:
                factor *= own or 1
            tensor = PendingValue(tensor.index, tensor.value)
    scores = builder.to_codes(name, tensor)
    count = scores.value.type.hi - scores.value.type.lo + 1
    if count > MAX_CODES:
        raise fail(
            "HG032", name, f"the scores have {count} codes ({scores.value.type}).",
            f"Softmax in hardware takes at most {MAX_CODES}: quantize the scores, to 8 bits for example.",
        )  # fmt: skip
    if isinstance(op, QLinearSoftmax):
        table = op.powers[:count]
        with np.errstate(over="ignore"):
            numerators = table * op.factor
        if not np.isfinite(numerators[0]):
            raise fail(
                "HG022", name, f"a scale that makes {op.factor:g} times the largest power overflow in float32.",
                "Give the result of the Softmax a larger scale.",
            )  # fmt: skip
        layer = _layer(name, scores, table, numerators, None)
    else:
        step = _step(name, scores.value.encoding) * factor
        table = powers(step, count)
        layer = _layer(name, scores, table, table, step)
    return builder.add(layer)


def _layer(name: str, scores: PendingValue, table: Array, numerators: Array, step: Fraction | None) -> SoftmaxRows:
    first = numerators[0] / table[0]  # the largest element, alone in its row
    keys = float_to_key(np.array([0, first], np.float32))
    result = Value(scores.value.shape, IntType(int(keys[0]), int(keys[1])), FloatKey())
    return SoftmaxRows(name, table, numerators, step, scores.value, result, (scores.index,))


def _factor(op: Elementwise) -> Fraction | None:
    """By what the operation multiplies scores, if it does just that with all of them."""
    if not isinstance(op, Mul | Div) or op.value.size != 1 or op.value.dtype != np.float32:
        return None
    value = float(op.value.ravel()[0])
    if not np.isfinite(value) or value <= 0:
        return None
    return Fraction(value) if isinstance(op, Mul) else 1 / Fraction(value)


def _step(name: str, meaning: Encoding) -> Fraction:
    """What one code is worth. Raises HG030, HG034."""
    match meaning:
        case Affine(scale, zero):
            steps = [scale, zero]
        case Accumulator(factor, offset, scale):
            steps = [scale * factor, offset]
        case ThresholdCount(scale_, bias):
            steps = [np.asarray(np.float32(scale_)), np.asarray(bias)]
        case Fixed(fraction):
            steps = [np.asarray(2.0**-fraction), np.asarray(0)]
        case IntegerEncoding():
            steps = [np.asarray(1.0), np.asarray(0)]
        case FloatKey():
            raise fail("HG030", name, "its scores are floats.", "Quantize them in front of the Softmax.")
    if any(np.unique(np.asarray(part)).size > 1 for part in steps):
        raise fail(
            "HG034", name, "the scale or zero point of its scores differs from element to element.",
            "Quantize the scores with one scale and zero point for the tensor.",
        )  # fmt: skip
    step = Fraction(float(np.ravel(steps[0])[0]))
    if step <= 0:
        raise fail("HG022", name, f"a code of its scores is worth {float(step)}.", "It must be above 0.")
    return step
