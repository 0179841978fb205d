"""Operations between the codes of scores and their Softmax: a common factor and a constant mask."""

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

#: exp(-x) is 0 in float32 for all x above this bound, with a margin for rounding of x.
_VANISHING = 106


@dataclass(frozen=True, eq=False)
class Scaling:
    """(score * factor_before + mask) * factor_after; where `replaces` is true, the mask replaces the sum.

    The operation is score * factor_before * factor_after if there is no mask.
    """

    factor_before: Fraction = Fraction(1)
    mask: Array | None = None
    replaces: Array | None = None
    factor_after: Fraction = Fraction(1)

    @property
    def factor(self) -> Fraction:
        return self.factor_before * self.factor_after


def scaling_of(ops: Sequence[Elementwise]) -> Scaling | None:
    """The operations as a Scaling, or None if they do anything else."""
    scaling = Scaling()
    for op in ops:
        factor = _factor(op)
        choice = constant_choice(op) if isinstance(op, Where) else None
        if factor is not None and scaling.mask is None:
            scaling = Scaling(scaling.factor_before * factor)
        elif factor is not None:
            scaling = Scaling(scaling.factor_before, scaling.mask, scaling.replaces, scaling.factor_after * factor)
        elif isinstance(op, Add) and op.value.dtype == np.float32 and scaling.mask is None:
            scaling = Scaling(scaling.factor_before, op.value, np.zeros((1,) * op.value.ndim, np.bool_))
        elif choice is not None and scaling.mask is None:
            positions, value = np.broadcast_arrays(*choice)
            scaling = Scaling(scaling.factor_before, np.where(positions, value, np.float32(0)), positions)
        else:
            return None
    return scaling


def _factor(op: Elementwise) -> Fraction | None:
    """The factor by which the operation multiplies all scores, or None for any other operation."""
    if not isinstance(op, Mul | Div) or op.value.size != 1 or op.value.dtype != np.float32:
        return None
    value = float(op.value.ravel()[0])
    if not np.isfinite(value) or value <= 0:
        return None
    return Fraction(value) if isinstance(op, Mul) else 1 / Fraction(value)


def mask_of(name: str, scaling: Scaling, score_ends: tuple[Fraction, ...], shape: Shape) -> Array | None:
    """The mask value of each element, for scores between two ends, or None if all are kept. Raises HG027, HG030.

    An element is removed if its power is 0 for all scores. The others have the largest constant of their row:
    0, or one so large that adding a score in float32 does not change it.
    """
    assert scaling.mask is not None
    assert scaling.replaces is not None
    mask = np.broadcast_to(scaling.mask, shape).astype(np.float64)
    replaces = np.broadcast_to(scaling.replaces, shape)
    low, high = (float(end * scaling.factor_before) for end in score_ends)
    largest = mask.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        row = [int(i) for i in np.argwhere(~np.isfinite(largest))[0][:-1]]
        raise fail("HG027", name, f"the mask removes all elements of row {row}.", "Its Softmax would be NaN.")
    least_row_maximum = (mask + np.where(replaces, 0, low)).max(
        axis=-1, keepdims=True
    )  # lower bound of the largest score
    margin = _VANISHING / float(scaling.factor_after) + (np.abs(largest) + abs(high) + abs(low)) * 2.0**-20
    removed = mask + np.where(replaces, 0, high) < least_row_maximum - margin
    if (~removed & (mask != largest)).any():
        raise _mask_error(name, float(mask[~removed & (mask != largest)][0]))
    row_constant = np.broadcast_to(largest, shape)
    is_constant = replaces | (
        (np.float32(low) + np.float32(row_constant) == np.float32(row_constant))
        & _absorbs(high, row_constant)
        & (row_constant != 0)
    )
    keeps_score = ~replaces & (row_constant == 0)
    remaining = ~removed
    mixed = (remaining & keeps_score).any(axis=-1) & (remaining & ~keeps_score).any(axis=-1)
    if (remaining & ~keeps_score & ~is_constant).any() or mixed.any():
        raise _mask_error(name, float(row_constant[remaining & ~keeps_score].ravel()[0]))
    elements = np.where(removed, MASK_REMOVED, np.where(keeps_score, MASK_KEPT, MASK_UNIFORM)).astype(np.uint8)
    return elements if elements.any() else None


def _absorbs(score: float, constants: Array) -> Array:
    """True where the float32 sum of both is the constant."""
    return np.asarray(np.float32(score) + np.float32(constants) == np.float32(constants))


def _mask_error(name: str, constant: float) -> HlsgenError:
    return fail(
        "HG030",
        name,
        f"{constant:g} is added to scores, or replaces them, without removing them from their row.",
        "A constant other than 0 must remove elements of a row, or, in a whole row, be so large that float32 absorbs "
        "the scores (-3.4e38). Quantize the scores again after the mask.",
    )
