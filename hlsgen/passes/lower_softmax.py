"""Softmax of codes, along the last axis: tables of exp for every difference of two codes of a row."""

from __future__ import annotations

from dataclasses import replace
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
from hlsgen.numerics.exponential import powers
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.score_masks import Scaling, mask_of, scaling_of

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
    scaling = Scaling()
    if isinstance(op, Softmax) and tensor.branches is None and tensor.named_ops:
        found = scaling_of(tensor.ops)
        if found is not None:
            scaling, tensor = found, PendingValue(tensor.index, tensor.value)
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
        worth, offset = _meaning(name, scores.value.encoding)
        step = worth * scaling.factor
        table = powers(step, count)
        layer = _layer(name, scores, table, table, step)
        if scaling.mask is not None:
            ends = tuple(worth * code + offset for code in (scores.value.type.lo, scores.value.type.hi))
            layer = replace(layer, mask=mask_of(name, scaling, ends, scores.value.shape))
    return builder.add(layer)


def _layer(name: str, scores: PendingValue, table: Array, numerators: Array, step: Fraction | None) -> SoftmaxRows:
    first = numerators[0] / table[0]  # the largest element, alone in its row
    keys = float_to_key(np.array([0, first], np.float32))
    result = Value(scores.value.shape, IntType(int(keys[0]), int(keys[1])), FloatKey())
    return SoftmaxRows(name, table, numerators, step, scores.value, result, (scores.index,))


def _meaning(name: str, meaning: Encoding) -> tuple[Fraction, Fraction]:
    """What one code is worth, and what code 0 means. Raises HG022, HG030, HG034."""
    match meaning:
        case Affine(scale, zero):
            steps, offset = [scale, zero], -_one(zero) * _one(scale)
        case Accumulator(factor, places, scale):
            steps, offset = [scale * factor, places], _one(places) * _one(scale)
        case ThresholdCount(scale_, bias):
            steps, offset = [np.asarray(np.float32(scale_)), np.asarray(bias)], _one(np.asarray(bias))
        case Fixed(fraction):
            steps, offset = [np.asarray(2.0**-fraction), np.asarray(0)], Fraction(0)
        case IntegerEncoding():
            steps, offset = [np.asarray(1.0), np.asarray(0)], Fraction(0)
        case FloatKey():
            raise fail("HG030", name, "its scores are floats.", "Quantize them in front of the Softmax.")
    if any(np.unique(np.asarray(part)).size > 1 for part in steps):
        raise fail(
            "HG034", name, "the scale or zero point of its scores differs from element to element.",
            "Quantize the scores with one scale and zero point for the tensor.",
        )  # fmt: skip
    step = _one(steps[0])
    if step <= 0:
        raise fail("HG022", name, f"a code of its scores is worth {float(step)}.", "It must be above 0.")
    return step, offset


def _one(values: Array) -> Fraction:
    return Fraction(float(np.ravel(values)[0]))
