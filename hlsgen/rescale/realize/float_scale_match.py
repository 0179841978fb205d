"""Reads the parameters of one float32 product from a chain of operations, for `float_scale` to prove or reject."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.ir import Accumulator, Affine, IntegerEncoding
from hlsgen.ir.ops import Add, Cast, IntQuant, Max, Mul, QuantizeLinear
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, Rounding
from hlsgen.rescale.extract import bisect_near
from hlsgen.rescale.monotone_pieces import edges
from hlsgen.rescale.realize.float_scale import FloatScale, MonotoneTarget
from hlsgen.rescale.realize.float_scale import find as prove
from hlsgen.rescale.threshold_table import ThresholdTable

#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 18
#: A proof compares at most this many thresholds, over all sets.
_MAX_THRESHOLDS = 1 << 27


def find(f: StepFunction, steps: ThresholdTable | None, dsp: bool = False) -> FloatScale | str:
    """A float32 product that is proven equal to f, or the reason, as text, why there is none.

    It is compared with `steps`, or, if these are None because they are too many to list, with f itself in chunks.
    """
    parts = candidate(f)
    if parts is None:
        return "the chain is not one product of an integer sum, rounded half to even"
    scale, offset, zero = (np.broadcast_to(part, f.sets) for part in parts)
    scale, offset, zero = map(np.ascontiguousarray, (scale, offset, zero))
    target = unlisted(f, scale, offset, zero) if steps is None else steps
    return target if isinstance(target, str) else prove(target, scale, offset, zero, dsp=dsp)


def unlisted(f: StepFunction, scale: Array, offset: Array, zero: Array) -> MonotoneTarget | str:
    """f as a function to compare with, without a list of its steps.

    The product suggests the place of each step, so that bisection near that place finds it quickly. Returns text if f
    is not known to rise, or has too many steps.
    """
    cuts = edges(f)
    if cuts is None or len(cuts) > 2:
        return "it is not known to be monotone"
    first, last = f.evaluate(f.lo), f.evaluate(f.hi)
    low, high = int(first.min()), int(last.max())
    if (first > last).any() or not (np.isfinite(scale) & (scale > 0)).all():
        return "a channel falls, or its scale is no positive number"
    if (high - low) * f.sets > _MAX_THRESHOLDS:
        return f"{high - low} thresholds of {f.sets} channels are too many to check"

    def thresholds_of(codes: Array) -> Array:
        """The least x with f(x) >= code; int64 (n, sets) -> int64 (n, sets)."""
        middle = np.clip((codes - zero - 0.5) / scale.astype(np.float64), -(2.0**60), 2.0**60)
        width = 3 + (np.abs(middle) * 2.0**-22).astype(np.int64)
        return bisect_near(f, codes, np.rint(middle).astype(np.int64) - offset, width)

    def points() -> Iterator[tuple[Array, Array]]:
        ends = np.stack([f.lo, f.hi])
        yield ends, np.stack([first, last])
        rows = max(1, _CHUNK // f.sets)
        for begin in range(low + 1, high + 1, rows):
            codes = np.arange(begin, min(begin + rows, high + 1))[:, None] + np.zeros(f.sets, np.int64)
            table = thresholds_of(codes)
            x = np.clip(np.concatenate([table, table - 1]), f.lo, f.hi)
            yield x, f.evaluate(x)

    changes = first < last
    bottom = np.where(changes, thresholds_of(first[None] + 1)[0] - 1, f.lo)
    return MonotoneTarget(
        f.lo, f.hi, first, last, bottom, np.where(changes, thresholds_of(last[None])[0], f.lo), points
    )


def candidate(f: StepFunction) -> tuple[Array, Array, Array] | None:
    """(scale float32, offset int64, zero point int64) that the operations of f suggest, or None.

    It is a guess, to be proven afterwards.
    """
    quantizer = f.quantizer
    rounds_to_integers = (
        isinstance(quantizer, IntQuant) and quantizer.mode == Rounding.ROUND and _is_whole(quantizer.zero_point)
    )
    if not rounds_to_integers and not isinstance(quantizer, QuantizeLinear):
        return None
    assert isinstance(quantizer, IntQuant | QuantizeLinear)
    match f.source:
        case IntegerEncoding(_, offset):
            scale: Array = np.ones(1)
        case Accumulator(1, offset, scale):
            pass
        case Affine(scale, zero) if _is_whole(zero):
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
        single = (scale / quantizer.scale).astype(np.float32)
    return single, offset, quantizer.zero_point.astype(np.int64)


def _is_whole(x: Array) -> bool:
    """True if floats are integers that int64 holds, sums of several included."""
    return bool(((x == np.round(x)) & (np.abs(x) < 2.0**60)).all())
