"""The one product that a chain may consist of: the candidate for `float_scale`, which proves or refuses it."""

from __future__ import annotations

import numpy as np

from hlsgen.fixed import Array, Rounding
from hlsgen.ir import (
    Accumulator,
    Affine,
    Whole,
)
from hlsgen.operations import (
    Add,
    Cast,
    IntQuant,
    Max,
    Mul,
    QuantizeLinear,
)
from hlsgen.rescale.float_scale import FloatScale
from hlsgen.rescale.float_scale import find as prove
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.steps import Steps


def find(f: StepFunction, steps: Steps, dsp: bool = False) -> FloatScale | str:
    """A product with a float32 scale, a sum before and a zero point behind it, proven equal to the steps."""
    parts = candidate(f)
    if parts is None:
        return "the chain is not one product of an integer sum, rounded half to even"
    scale, offset, zero = (np.broadcast_to(part, f.sets) for part in parts)
    scale, offset, zero = map(np.ascontiguousarray, (scale, offset, zero))
    return prove(steps, scale, offset, zero, dsp=dsp)


def candidate(f: StepFunction) -> tuple[Array, Array, Array] | None:
    """(scale float32, offset int64, zero point int64) that the operations of f suggest; a guess."""
    end = f.quantizer
    whole = (
        isinstance(end, IntQuant) and end.mode == Rounding.ROUND and (end.zero_point == np.round(end.zero_point)).all()
    )
    if not whole and not isinstance(end, QuantizeLinear):
        return None
    assert isinstance(end, IntQuant | QuantizeLinear)
    match f.source:
        case Whole(_, offset):
            scale: Array = np.ones(1)
        case Accumulator(1, offset, scale):
            pass
        case Affine(scale, zero) if (zero == np.round(zero)).all():
            offset = -zero.astype(np.int64)
        case _:
            return None
    scale, offset = scale.astype(np.float64), offset.astype(np.int64)
    for op in f.ops:
        if isinstance(op, Add) and op.value.dtype.kind == "i":
            offset = offset + op.value.astype(np.int64)
        elif isinstance(op, Mul) and op.value.dtype == np.float32:
            scale = scale * op.value
        elif not isinstance(op, Cast | Max):
            return None
    with np.errstate(all="ignore"):
        single = (scale / end.scale).astype(np.float32)
    return single, offset, end.zero_point.astype(np.int64)
