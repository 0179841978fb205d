"""What stands between the codes of scores and their Softmax: factors of all of them, and a constant mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.ir import Shape
from hlsgen.ir.constant_choice import constant_choice
from hlsgen.ir.graph import MASK_KEPT, MASK_REMOVED, MASK_UNIFORM
from hlsgen.ir.ops import Add, Div, Elementwise, Mul, Where
from hlsgen.numerics.fixed import Array

#: exp of less is 0 in float32, whatever the last places of its argument are.
_FAR = 106


@dataclass(frozen=True, eq=False)
class Scaling:
    """(score * before + mask) * after; `put`: where the mask stands for the sum. No mask: score * before * after."""

    before: Fraction = Fraction(1)
    mask: Array | None = None
    put: Array | None = None
    after: Fraction = Fraction(1)

    @property
    def factor(self) -> Fraction:
        return self.before * self.after


def scaling_of(ops: Sequence[Elementwise]) -> Scaling | None:
    """None if they do anything else."""
    found = Scaling()
    for op in ops:
        factor = _factor(op)
        chosen = constant_choice(op) if isinstance(op, Where) else None
        if factor is not None and found.mask is None:
            found = Scaling(found.before * factor)
        elif factor is not None:
            found = Scaling(found.before, found.mask, found.put, found.after * factor)
        elif isinstance(op, Add) and op.value.dtype == np.float32 and found.mask is None:
            found = Scaling(found.before, op.value, np.zeros((1,) * op.value.ndim, np.bool_))
        elif chosen is not None and found.mask is None:
            places, value = np.broadcast_arrays(*chosen)
            found = Scaling(found.before, np.where(places, value, np.float32(0)), places)
        else:
            return None
    return found


def _factor(op: Elementwise) -> Fraction | None:
    """By what the operation multiplies scores, if it does just that with all of them."""
    if not isinstance(op, Mul | Div) or op.value.size != 1 or op.value.dtype != np.float32:
        return None
    value = float(op.value.ravel()[0])
    if not np.isfinite(value) or value <= 0:
        return None
    return Fraction(value) if isinstance(op, Mul) else 1 / Fraction(value)


def mask_of(name: str, scaling: Scaling, ends: tuple[Fraction, ...], shape: Shape) -> Array | None:
    """What the mask says of each element, of scores between two ends; None if all count. Raises HG027, HG030.

    An element is gone if its power is 0 whatever the scores are. The others have the largest constant of their row:
    0, or one so large that a score added to it in float32 leaves it as it is.
    """
    assert scaling.mask is not None
    assert scaling.put is not None
    mask = np.broadcast_to(scaling.mask, shape).astype(np.float64)
    put = np.broadcast_to(scaling.put, shape)
    low, high = (float(end * scaling.before) for end in ends)
    largest = mask.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        row = [int(i) for i in np.argwhere(~np.isfinite(largest))[0][:-1]]
        raise fail("HG027", name, f"the mask takes all elements out of row {row}.", "Its Softmax would be NaN.")
    below = (mask + np.where(put, 0, low)).max(axis=-1, keepdims=True)  # no row's largest score is less
    room = _FAR / float(scaling.after) + (np.abs(largest) + abs(high) + abs(low)) * 2.0**-20
    gone = mask + np.where(put, 0, high) < below - room
    if (~gone & (mask != largest)).any():
        raise _unlike(name, float(mask[~gone & (mask != largest)][0]))
    top = np.broadcast_to(largest, shape)
    alone = put | ((np.float32(low) + np.float32(top) == np.float32(top)) & _absorbs(high, top) & (top != 0))
    counts = ~put & (top == 0)
    kept = ~gone
    mixed = (kept & counts).any(axis=-1) & (kept & ~counts).any(axis=-1)
    if (kept & ~counts & ~alone).any() or mixed.any():
        raise _unlike(name, float(top[kept & ~counts].ravel()[0]))
    found = np.where(gone, MASK_REMOVED, np.where(counts, MASK_KEPT, MASK_UNIFORM)).astype(np.uint8)
    return found if found.any() else None


def _absorbs(score: float, constants: Array) -> Array:
    """Where the float32 sum of both is the constant."""
    return np.asarray(np.float32(score) + np.float32(constants) == np.float32(constants))


def _unlike(name: str, constant: float) -> HlsgenError:
    return fail(
        "HG030", name, f"{constant:g} is added to scores, or put in their place, that count in their row.",
        "Other constants than 0 must take elements out of a row, or, of a whole row, be so large that float32 loses the "
        "scores behind them (-3.4e38). Quantize the scores again behind the constants.",
    )  # fmt: skip
