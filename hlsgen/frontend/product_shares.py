"""Quantization of Softmax shares that a product consumes without a quantizer, to multiples of 2^-24 for exact sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.ir import BatchMatMul, MatMul, Reshape, Shape, Softmax, Step, Transpose
from hlsgen.ir.ops import IntQuant
from hlsgen.ir.rewrite import StepRewriter
from hlsgen.numerics.fixed import IntType, Rounding

#: Fraction bits of shares: about the precision of float32, as the largest share is 1.
SHARE_PLACES = 24


def quantize_shares(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with a quantizer before every product that consumes shares."""
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        inputs = []
        for j in step.inputs:
            value = rewriter.numbers[j]
            if isinstance(step.op, BatchMatMul | MatMul) and _are_shares(steps, j):
                shape = steps[j - 1].shape
                value = rewriter.add(f"{step.name} (shares)", _quantizer(shape), shape, (value,))
            inputs.append(value)
        rewriter.numbers[i + 1] = rewriter.add(step.name, step.op, step.shape, inputs)
    return tuple(rewriter.steps)


def _are_shares(steps: Sequence[Step], value: int) -> bool:
    """True for the result of a Softmax, also reshaped or transposed."""
    while value and isinstance(steps[value - 1].op, Reshape | Transpose):
        value = steps[value - 1].inputs[0]
    return value > 0 and isinstance(steps[value - 1].op, Softmax)


def _quantizer(shape: Shape) -> IntQuant:
    scalar_shape = (1,) * len(shape)
    unit = np.full(scalar_shape, 2.0**-SHARE_PLACES, np.float32)
    return IntQuant(unit, np.zeros(scalar_shape, np.float32), IntType(0, 1 << SHARE_PLACES), Rounding.ROUND)
