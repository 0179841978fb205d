"""Lowers Softmax of codes along the last axis: lookup tables of exp for every difference of two codes of a row."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import fail
from hlsgen.ir.encoding import ThresholdCount
from hlsgen.ir.evaluate import float_to_key
from hlsgen.numerics.exponential import powers
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.score_masks import Scaling, mask_of, scaling_of

#: Longest supported row, and largest number of codes that its elements may have.
MAX_ROW = 4096
MAX_CODES = 1 << 22


def softmax(
    builder: GraphBuilder, name: str, op: ir.Softmax | ir.QLinearSoftmax, tensor: PendingValue, shape: ir.Shape
) -> PendingValue:
    """Add a Softmax along any axis. Raises HG010, HG030, HG032, HG034."""
    last_axis = len(shape) - 1
    perm = (*(a for a in range(last_axis + 1) if a != op.axis), op.axis)
    rows = tuple(shape[a] for a in perm)
    if op.axis != last_axis:
        tensor = builder.relabelled(name, tensor, ir.Transpose(perm), rows)
    result = _softmax_rows(builder, name, op, builder.flush(tensor))
    if op.axis != last_axis:
        inverse = ir.Transpose(tuple(perm.index(a) for a in range(last_axis + 1)))
        result = builder.relabelled(name, result, inverse, shape)
    return result


def _softmax_rows(
    builder: GraphBuilder, name: str, op: ir.Softmax | ir.QLinearSoftmax, tensor: PendingValue
) -> PendingValue:
    length = tensor.value.shape[-1]
    if length > MAX_ROW:
        text = f"Softmax of rows of {length} elements between quantizers."
        raise fail("HG010", name, text, f"Supported between quantizers: up to {MAX_ROW}.")
    scaling = Scaling()
    if isinstance(op, ir.Softmax) and tensor.branches is None and tensor.named_ops:
        scaling_ops = scaling_of(tensor.ops)
        if scaling_ops is not None:
            scaling, tensor = scaling_ops, PendingValue(tensor.index, tensor.value)
    scores = builder.to_codes(name, tensor)
    count = scores.value.type.hi - scores.value.type.lo + 1
    if count > MAX_CODES:
        raise fail(
            "HG032",
            name,
            f"the scores have {count} codes ({scores.value.type}).",
            f"Softmax in hardware supports at most {MAX_CODES}: quantize the scores, for example to 8 bits.",
        )
    if isinstance(op, ir.QLinearSoftmax):
        table = op.powers[:count]
        with np.errstate(over="ignore"):
            numerators = table * op.factor
        if not np.isfinite(numerators[0]):
            raise fail(
                "HG022",
                name,
                f"a scale that makes {op.factor:g} times the largest power overflow in float32.",
                "Give the result of the Softmax a larger scale.",
            )
        layer = _make_layer(name, scores, table, numerators, None)
    else:
        worth, offset = _worth_and_offset(name, scores.value.encoding)
        step = worth * scaling.factor
        table = powers(step, count)
        layer = _make_layer(name, scores, table, table, step)
        if scaling.mask is not None:
            ends = tuple(worth * code + offset for code in (scores.value.type.lo, scores.value.type.hi))
            layer = replace(layer, mask=mask_of(name, scaling, ends, scores.value.shape))
    return builder.add(layer)


def _make_layer(
    name: str, scores: PendingValue, table: Array, numerators: Array, step: Fraction | None
) -> ir.SoftmaxRows:
    largest_result = numerators[0] / table[0]  # the largest element, alone in its row
    keys = float_to_key(np.array([0, largest_result], np.float32))
    result = ir.Value(scores.value.shape, IntType(int(keys[0]), int(keys[1])), ir.FloatKey())
    return ir.SoftmaxRows(name, table, numerators, step, scores.value, result, (scores.index,))


def _worth_and_offset(name: str, encoding: ir.Encoding) -> tuple[Fraction, Fraction]:
    """(real difference of adjacent codes, real value of code 0). Raises HG022, HG030, HG034."""
    match encoding:
        case ir.Affine(scale, zero_point):
            constants, offset = [scale, zero_point], -_first(zero_point) * _first(scale)
        case ir.Accumulator(factor, offsets, scale):
            constants, offset = [scale * factor, offsets], _first(offsets) * _first(scale)
        case ThresholdCount(scale_, bias):
            constants, offset = [np.asarray(np.float32(scale_)), np.asarray(bias)], _first(np.asarray(bias))
        case ir.Fixed(fraction):
            constants, offset = [np.asarray(2.0**-fraction), np.asarray(0)], Fraction(0)
        case ir.IntegerEncoding():
            constants, offset = [np.asarray(1.0), np.asarray(0)], Fraction(0)
        case ir.FloatKey():
            raise fail("HG030", name, "its scores are floats.", "Quantize them before the Softmax.")
    if any(np.unique(np.asarray(array)).size > 1 for array in constants):
        raise fail(
            "HG034",
            name,
            "the scale or zero point of its scores differs from element to element.",
            "Quantize the scores with one scale and zero point for the tensor.",
        )
    worth = _first(constants[0])
    if worth <= 0:
        raise fail("HG022", name, f"a code of its scores is worth {float(worth)}.", "It must be above 0.")
    return worth, offset


def _first(values: Array) -> Fraction:
    return Fraction(float(np.ravel(values)[0]))
