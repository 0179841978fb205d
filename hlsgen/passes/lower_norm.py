"""Lowers normalization to integers: codes, one scale, and the addend that represents epsilon.

real = scale * (code - zero point) for every element. Hence the mean and the variance of a row follow from its codes,
and epsilon counts in units of the scale. A row of N codes is divided by sqrt(M + N^2 * epsilon / scale^2), with M as
in `numerics.normalization`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import Accumulator, FloatKey, Normalize, NormKind, NormRows, Shape, Value
from hlsgen.ir.evaluate import float_to_key
from hlsgen.numerics.fixed import IntType
from hlsgen.numerics.normalization import MAX_ADDEND_BITS, MAX_ELEMENT_BITS, bounds
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import column_scales, zero_shift


def normalized_rows(
    builder: GraphBuilder, name: str, op: Normalize, tensor: PendingValue, shape: Shape
) -> PendingValue:
    """Add a normalization of codes along the last axis, with a float32 result. Raises HG024, HG032, HG033, HG034."""
    centered, value, length = op.kind is NormKind.LAYER, tensor.value, shape[-1]
    factor, offset, scale = (1, 0, _line(name, value)[2]) if centered else _line(name, value)
    addend = length * length * Fraction(op.epsilon) / (scale * scale)
    element_ends = [code * factor + offset for code in (value.type.lo, value.type.hi)]
    row_bounds = bounds(centered, length, min(element_ends), max(element_ends), addend)
    if addend.numerator.bit_length() > MAX_ADDEND_BITS or addend.denominator.bit_length() > MAX_ADDEND_BITS:
        raise fail(
            "HG033",
            name,
            f"epsilon {op.epsilon} is too far from the square of its input's scale {float(scale)}.",
            "Use an epsilon that is nearer to the square of the scale.",
        )
    if row_bounds.element.bit_length() > MAX_ELEMENT_BITS:
        raise fail(
            "HG033",
            name,
            f"rows of {length} codes of {value.type.bits} bits.",
            f"At most {MAX_ELEMENT_BITS} bits are supported for the codes times {length}: use a narrower quantizer.",
        )
    key_ends = float_to_key(np.array([-row_bounds.result, row_bounds.result], np.float32))
    result = Value(shape, IntType(int(key_ends[0]), int(key_ends[1])), FloatKey())
    return builder.add(NormRows(name, op.kind, factor, offset, addend, value, result, (tensor.index,)))


def _line(name: str, value: Value) -> tuple[int, int, Fraction]:
    """(factor, offset, scale): real = (code * factor + offset) * scale, the same for all elements."""
    encoding = value.encoding
    if isinstance(encoding, Accumulator):
        starts, units = encoding.offset.ravel(), encoding.scale.ravel()
        if encoding.factor & (encoding.factor - 1) or (starts != starts[0]).any() or (units != units[0]).any():
            raise fail(
                "HG034",
                name,
                "its input's scale or offset differs within a row.",
                "Put a quantizer with one scale before the normalization.",
            )
        return encoding.factor, int(starts[0]), Fraction(float(units[0]))
    scales, zeros = column_scales(name, value)
    if (scales != scales[0]).any() or (zeros != zeros[0]).any():
        raise fail("HG034", name, "its input's scale or zero point differs within a row.", "Use one per tensor.")
    shift = zero_shift(name, zeros[:1])
    offset = -round(float(zeros[0]) * 2.0**shift)
    return 1 << shift, offset, abs(Fraction(float(scales[0]))) / (1 << shift)
