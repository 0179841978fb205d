"""Realization `scale` from a `Requantize` itself: its multiplier, addend and shift, without its steps.

It serves functions with too many steps to list, such as those with int16 codes, and those whose two roundings are no
line of the steps. The proof is algebra on integers:

- floor((floor(a / 2^n) + c) / 2^k) = floor((a + c * 2^n) / 2^(n + k)) for an integer c. The zero point joins the
  addend so, and the two roundings of Convention.DOUBLE become one.
- Convention.DOUBLE rounds ties away from zero in its second rounding: 1 less is added if the first result is negative.
  This holds for inputs below a centre, so it is a second addend.
"""

from __future__ import annotations

import numpy as np

from hlsgen.ir import IntegerEncoding
from hlsgen.ir.ops import Add, Cast, Convention, Elementwise, Mul, Requantize
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize.scale import Scale
from hlsgen.rescale.realize.scale_fit import MAX_SHIFT

#: Bits of products and sums without their sign: 64-bit integers check them.
_MAX_BITS = 62
#: Inputs of each set on which the result is compared with the function once more.
_SAMPLES = 255


def find(f: StepFunction) -> Scale | str:
    """A scale equal to f, or the reason, as text, why its operations do not give one."""
    line = _line(f)
    if isinstance(line, str):
        return line
    quantizer = f.quantizer
    assert isinstance(quantizer, Requantize)
    match quantizer.convention:
        case Convention.FLOOR | Convention.SINGLE:
            parts = _rounded_once(f, quantizer, *line)
        case Convention.DOUBLE:
            parts = _rounded_twice(f, quantizer, *line)
        case Convention.FLOAT64:
            return "it rounds in float64"
    return parts if isinstance(parts, str) else _scale(f, *parts)


def applies(f: StepFunction) -> bool:
    """True if `find` gives a scale."""
    return isinstance(find(f), Scale)


def _line(f: StepFunction) -> tuple[Array, Array] | str:
    """(factor, addend) of the line that is rescaled, object (sets,). Text if the operations give none."""
    if not isinstance(f.source, IntegerEncoding) or not isinstance(f.quantizer, Requantize):
        return "it is not an integer rescaling"
    factor, addend = np.ones(f.sets, object), f.source.offset.astype(object) + np.zeros(f.sets, object)
    for op, dtype in [(None, f.source.dtype), *((op, _dtype_after(op)) for op in f.ops)]:
        match op:
            case Add(value):
                addend = addend + value.astype(object)
            case Mul(value):
                factor, addend = factor * value.astype(object), addend * value.astype(object)
            case None | Cast():
                pass
            case _:
                return "it has other operations before the rescaling"
        if np.dtype(dtype).kind not in ("iuf" if op is None else "iu"):
            return f"it computes in {dtype}"
        lowest, highest = _integers_of(dtype)
        ends = np.stack([f.lo * factor + addend, f.hi * factor + addend])
        if int(ends.min()) < lowest or int(ends.max()) > highest:
            return f"a number exceeds {dtype}"
    return factor, addend


def _integers_of(dtype: str) -> tuple[int, int]:
    """The ends of the range in which a type holds every integer."""
    if np.dtype(dtype).kind == "f":
        largest = 1 << (np.finfo(dtype).nmant + 1)
        return -largest, largest
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _dtype_after(op: Elementwise) -> str:
    """The dtype of an Add, Mul or Cast; "int64" for other operations."""
    return op.dtype if isinstance(op, Cast) else str(op.value.dtype) if isinstance(op, Add | Mul) else "int64"


#: Multiplier, addend, shift, centre or None, and the addend below it; object (sets,).
_Parts = tuple[Array, Array, Array, "Array | None", Array]


def _rounded_once(f: StepFunction, quantizer: Requantize, factor: Array, added: Array) -> _Parts | str:
    """((factor * x + added) * multiplier + addend) >> shift."""
    multiplier, add, shift, zero = _integers(quantizer)
    if (shift < 0).any():
        return "a shift is negative"
    half = np.array([1 << int(s) >> 1 for s in shift], object)
    reach = np.maximum(np.abs(f.lo * factor + added), np.abs(f.hi * factor + added)) * np.abs(multiplier)
    if int((reach + np.abs(add) + half).max()) >= 1 << _MAX_BITS:
        return f"a product of more than {_MAX_BITS} bits"
    addend = added * multiplier + add + (half if quantizer.convention is Convention.SINGLE else 0) + (zero << shift)
    return factor * multiplier, addend, shift, None, addend


def _rounded_twice(f: StepFunction, quantizer: Requantize, factor: Array, added: Array) -> _Parts | str:
    """gemmlowp's two roundings in one, with the addend below the centre, where the first result is negative."""
    multiplier, add, shift, zero = _integers(quantizer)
    if (multiplier <= 0).any() or (multiplier >= 1 << 31).any() or (shift < 0).any():
        return "a multiplier is not of 31 bits, or a shift is negative"
    left_shift, right_shift = np.maximum(31 - shift, 0), np.maximum(shift - 31, 0)
    added = added + add
    ends = np.stack([f.lo * factor + added, f.hi * factor + added]) << left_shift
    if int(ends.min()) < -(1 << 31) or int(ends.max()) >= 1 << 31:
        return "the shift to the left exceeds 32 bits"
    shifted = multiplier << left_shift
    half = np.array([1 << int(n) >> 1 for n in right_shift], object)
    addend = added * shifted + (1 << 30) + (half << 31) + (zero << (right_shift + 31))
    twice = (right_shift > 0).astype(np.int64).astype(object)
    if not twice.any():
        return factor * shifted, addend, right_shift + 31, None, addend
    # The first result is negative if factor * x < edge: below the centre, or from it on if the line falls.
    edge, negative = -((1 << 30) // shifted) - added, addend - (twice << 31)
    falls = factor < 0
    divisor = np.where(factor == 0, 1, factor)
    centre = np.where(falls, edge // divisor + 1, -(-edge // divisor))
    # A constant lies on one side.
    centre = np.where(factor == 0, np.where(edge > 0, f.hi + 1, f.lo), centre)
    first, last = np.where(falls, addend, negative), np.where(falls, negative, addend)
    return factor * shifted, last, right_shift + 31, centre, first


def _integers(quantizer: Requantize) -> tuple[Array, Array, Array, Array]:
    """Multiplier, addend, shift and zero point as Python integers, object (sets,)."""
    parts = np.broadcast_arrays(quantizer.multiplier, quantizer.add, quantizer.shift, quantizer.zero_point)
    multiplier, add, shift, zero = (part.astype(object) for part in parts)
    return multiplier, add, shift, zero


def _scale(
    f: StepFunction, multiplier: Array, addend: Array, shift: Array, centre: Array | None, below: Array
) -> Scale | str:
    """The scale with one shift for all sets, without low bits that no product has."""
    to_common = shift.max() - shift
    multiplier, addend, below = (np.broadcast_to(a << to_common, (f.sets,)) for a in (multiplier, addend, below))
    zeros = int(np.gcd.reduce(np.array([1 << int(shift.max()), *multiplier], object))).bit_length() - 1
    multiplier, addend, below = (a >> zeros for a in (multiplier, addend, below))
    reach = np.maximum(np.abs(f.lo.astype(object)), np.abs(f.hi.astype(object))) * np.abs(multiplier)
    total = reach + np.maximum(np.abs(addend), np.abs(below))
    if int(total.max()) >= 1 << _MAX_BITS:
        return f"a product of more than {_MAX_BITS} bits"
    common_shift = int(shift.max()) - zeros
    if common_shift > MAX_SHIFT:
        return f"a shift of more than {MAX_SHIFT} bits"
    ends = np.stack([f.evaluate(f.lo), f.evaluate(f.hi)])
    scale = Scale(
        multiplier.astype(np.int64),
        addend.astype(np.int64),
        common_shift,
        int(ends.min()),
        int(ends.max()),
        centre=None if centre is None else np.clip(centre.astype(np.int64), f.lo, f.hi + 1),
        below=None if centre is None else below.astype(np.int64),
    )
    samples = f.lo + np.arange(_SAMPLES + 1)[:, None] * (f.hi - f.lo) // _SAMPLES
    assert (scale.apply(samples) == f.evaluate(samples)).all(), f"{f.name}: the formula of the scale is wrong"
    return scale
