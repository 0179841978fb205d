"""What the interpreter of a `Model` knows of a tensor: its value, the exact numbers of its codes, and what sums of two are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from hlsgen.interpreter.exact_numbers import Exact, added, common, exact_codes, integers, on_one_grid, to_float32
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed
from hlsgen.ir.evaluate import apply_binary, decode
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class Tensor:
    """A result of a step.

    `value`: in the model's dtype. `codes`: of a quantizer, int64, else None. `exact`: the real numbers that
    codes or an exact sum mean; None behind float operations. `term`: the same, also behind float32 constants that
    were added: an operand of an exact sum. `scale`: of the nearest codes, through any operations.
    `operands`: the two terms of a sum that nothing followed, None for one that is no term. `is_pair`: the value
    is made of a Join without a quantizer behind it. `is_sum`: of an exact sum; `on_grid`: one of tensors on one grid.
    `origin`: the value of the model that it is made of element by element. `scores`: the exact numbers, also behind
    float32 factors: what a Softmax takes. `parts`: of value 0 of a model with several inputs, each of them.
    """

    value: Array
    codes: Array | None = None
    exact: Exact | None = None
    term: Exact | None = None
    scale: Fraction | None = None
    operands: tuple[Exact | None, Exact | None] | None = None
    is_pair: bool = False
    is_sum: bool = False
    on_grid: bool = False
    origin: int = -1
    scores: Exact | None = None
    parts: tuple[Tensor, ...] = ()


def plain(x: Array) -> Tensor:
    """Numbers that no quantizer made: they are what they are."""
    exact = integers(x) if x.dtype.kind in "iu" else None
    return Tensor(x, exact=exact, term=None)


def of_codes(meaning: Encoding, codes: Array, dtype: str | None = None) -> Tensor:
    """A tensor of codes int64, as values of the dtype that the meaning has, or of another float type."""
    value = decode(meaning, codes)
    exact = exact_codes(meaning, codes)
    if dtype is not None and value.dtype != dtype:
        return Tensor(value.astype(dtype), codes=codes)
    term = exact if exact is not None and exact.slope and isinstance(meaning, Affine | Fixed) else None
    return Tensor(value, codes, exact, term, _scale(meaning))


def _scale(meaning: Encoding) -> Fraction | None:
    """The scale of codes, of the first element where it differs."""
    match meaning:
        case Affine(scale, _) | Accumulator(_, _, scale):
            return Fraction(float(np.ravel(scale)[0]))
        case _:
            return None


def elementwise(value: Array, first: Tensor, origin: int) -> Tensor:
    """The result of a float or integer operation; what codes meant is gone."""
    exact = integers(value) if value.dtype.kind in "iu" else None
    return Tensor(
        value, exact=exact, scale=first.scale, is_pair=first.is_pair, is_sum=first.is_sum, on_grid=first.on_grid,
        origin=origin,
    )  # fmt: skip


def origin_of(given: list[Tensor], number: int) -> int:
    """Where the operands come from, if that is one tensor."""
    origins = {t.origin for t in given}
    return origins.pop() if len(origins) == 1 else number


def joined(kind: BinaryKind, left: Tensor, right: Tensor, number: int) -> Tensor:
    """Both tensors joined by step `number`: an exact sum where both are exact, else as the file computes it."""
    value, one = apply_binary(kind, left.value, right.value), left.origin == right.origin
    if one or value.dtype.kind != "f":
        return replace(
            elementwise(value, left, left.origin if one else number), is_pair=not one, is_sum=False, on_grid=False
        )
    sign = {BinaryKind.ADD: 1, BinaryKind.SUB: -1}.get(kind)
    if sign is not None and (total := _exact_sum(left, right, sign)) is not None:
        return replace(total, origin=number)
    second = right.term if right.term is None or sign is None else added(_zero(right.term), right.term, sign)
    operands = (left.term, second) if sign else None
    return Tensor(value, scale=left.scale, operands=operands, is_pair=True, origin=number)


def _exact_sum(left: Tensor, right: Tensor, sign: int) -> Tensor | None:
    """The exact sum or difference, rounded once; None where it is computed as the file has it."""
    terms = [*_terms(left), *_terms(right)]
    known = [t for t in terms if t is not None and t.slope is not None]
    if len(known) < len(terms) or left.value.dtype != np.float32:
        return None
    slopes = [t.slope for t in known if t.slope is not None]
    if all(t.on_grid or not (t.is_pair or t.is_sum) for t in (left, right)):
        # One or both have constants added, which a sum of two tensors of codes takes as operations of their own.
        plain = left.exact is not None and right.exact is not None
        if not (plain or left.on_grid or right.on_grid) or not on_one_grid(slopes):
            return None
        is_grid = True
    else:
        is_grid = False
    total = added(_total(left), _total(right), sign)
    exact = replace(total, slope=common(slopes) if is_grid else total.unit)
    value = to_float32(total.whole, [total.unit])
    return Tensor(value, exact=exact, term=exact, scale=exact.slope, is_sum=True, on_grid=is_grid)


def _zero(like: Exact) -> Exact:
    return replace(like, whole=np.zeros((1,) * like.whole.ndim, np.int64))


def _terms(tensor: Tensor) -> tuple[Exact | None, ...]:
    if tensor.is_pair:
        return tensor.operands or (None,)
    return (tensor.term,)


def _total(tensor: Tensor) -> Exact:
    terms = [t for t in _terms(tensor) if t is not None]
    return reduce(added, terms)
