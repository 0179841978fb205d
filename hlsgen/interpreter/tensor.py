"""Tensors of the `Model` interpreter: a value, the exact numbers of its codes, and its role in exact sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from hlsgen.interpreter.exact_numbers import (
    Exact,
    common_unit,
    exact_codes,
    exact_integers,
    exact_sum,
    on_one_grid,
    to_float32,
)
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed
from hlsgen.ir.evaluate import apply_binary, decode
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Array

#: The multiples of a common unit that the scales of an exact sum may be are below this number.
_FACTORS = 1 << 22


@dataclass(frozen=True, eq=False)
class Tensor:
    """A result of a step.

    `value`: in the model's dtype. `codes`: of a quantizer, int64, else None.
    `exact`: the exact real numbers of codes or of an exact sum, or None after float operations.
    `term`: the same, also after added float32 constants: an operand of an exact sum.
    `scale`: of the nearest codes, through any operations.
    `operands`: the two terms of a sum without a following operation, None for an operand that is no term.
    `is_pair`: the value comes from a Binary without a quantizer after it. `is_sum`: from an exact sum; `on_grid`: from
    an exact sum of tensors on one grid.
    `origin`: the value of the model from which it is computed elementwise.
    `scores`: the exact numbers, also after float32 factors, as a Softmax uses them.
    `parts`: for value 0 of a model with several inputs, each of them.
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


def tensor_of_numbers(x: Array) -> Tensor:
    """A tensor of numbers that are not quantized; integers are exact."""
    exact = exact_integers(x) if x.dtype.kind in "iu" else None
    return Tensor(x, exact=exact, term=None)


def tensor_of_codes(encoding: Encoding, codes: Array, dtype: str | None = None) -> Tensor:
    """A tensor of int64 codes, with values of the encoding's dtype or of another float dtype."""
    value = decode(encoding, codes)
    exact = exact_codes(encoding, codes)
    if dtype is not None and value.dtype != dtype:
        return Tensor(value.astype(dtype), codes=codes)
    term = exact if exact is not None and exact.slope and isinstance(encoding, Affine | Fixed) else None
    return Tensor(value, codes, exact, term, _scale(encoding))


def _scale(encoding: Encoding) -> Fraction | None:
    """The scale of codes; the first element's if it differs."""
    match encoding:
        case Affine(scale, _) | Accumulator(_, _, scale):
            return Fraction(float(np.ravel(scale)[0]))
        case _:
            return None


def elementwise(value: Array, first: Tensor, origin: int) -> Tensor:
    """The result of a float or integer operation, without codes and exact reals."""
    exact = exact_integers(value) if value.dtype.kind in "iu" else None
    return Tensor(
        value,
        exact=exact,
        scale=first.scale,
        is_pair=first.is_pair,
        is_sum=first.is_sum,
        on_grid=first.on_grid,
        origin=origin,
    )


def origin_of(operands: list[Tensor], number: int) -> int:
    """The common origin of the operands, or `number` if they have several."""
    origins = {t.origin for t in operands}
    return origins.pop() if len(origins) == 1 else number


def combine(kind: BinaryKind, first: Tensor, second: Tensor, number: int) -> Tensor:
    """Both tensors combined by step `number`: an exact sum if both are exact, else as the file computes it."""
    value, same_origin = apply_binary(kind, first.value, second.value), first.origin == second.origin
    if same_origin or value.dtype.kind != "f":
        return replace(
            elementwise(value, first, first.origin if same_origin else number),
            is_pair=not same_origin,
            is_sum=False,
            on_grid=False,
        )
    sign = {BinaryKind.ADD: 1, BinaryKind.SUB: -1}.get(kind)
    if sign is not None and (total := _exact_sum(first, second, sign)) is not None:
        return replace(total, origin=number)
    term = second.term
    signed_term = term if term is None or sign is None else exact_sum(_zero(term), term, sign)
    operands = (first.term, signed_term) if sign else None
    return Tensor(value, scale=first.scale, operands=operands, is_pair=True, origin=number)


def _exact_sum(first: Tensor, second: Tensor, sign: int) -> Tensor | None:
    """The exact sum or difference, rounded once, or None if it is computed as the file has it."""
    terms = [*_terms(first), *_terms(second)]
    exact_terms = [t for t in terms if t is not None and t.slope is not None]
    if len(exact_terms) < len(terms) or first.value.dtype != np.float32:
        return None
    slopes = [t.slope for t in exact_terms if t.slope is not None]
    if all(t.on_grid or not (t.is_pair or t.is_sum) for t in (first, second)):
        # In a sum of two tensors of codes, constants added to one are operations before the sum.
        without_constants = first.exact is not None and second.exact is not None
        if not (without_constants or first.on_grid or second.on_grid) or not on_one_grid(slopes):
            return None
        is_grid = True
    else:
        if max(abs(s) for s in slopes) / common_unit(slopes) >= _FACTORS:
            return None
        is_grid = False
    total = exact_sum(_total(first), _total(second), sign)
    exact = replace(total, slope=common_unit(slopes) if is_grid else total.unit)
    value = to_float32(total.integers, [total.unit])
    return Tensor(value, exact=exact, term=exact, scale=exact.slope, is_sum=True, on_grid=is_grid)


def _zero(like: Exact) -> Exact:
    return replace(like, integers=np.zeros((1,) * like.integers.ndim, np.int64))


def _terms(tensor: Tensor) -> tuple[Exact | None, ...]:
    if tensor.is_pair:
        return tensor.operands or (None,)
    return (tensor.term,)


def _total(tensor: Tensor) -> Exact:
    terms = [t for t in _terms(tensor) if t is not None]
    return reduce(exact_sum, terms)
