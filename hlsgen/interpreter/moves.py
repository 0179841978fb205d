"""Steps that only move, select or repeat elements: of the value and of all exact numbers beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen import ir
from hlsgen.interpreter import exact_numbers
from hlsgen.interpreter.tensor import Tensor
from hlsgen.numerics.fixed import Array

#: Steps that this module computes, besides Concat.
Move = ir.Reshape | ir.Transpose | ir.Repeat | ir.Slice | ir.Pad


def moved(op: Move, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor after the move. `shape`: of the result, without frames."""
    match op:
        case ir.Reshape():
            return move_elements(tensor, lambda a: a.reshape(len(a), *shape))
        case ir.Transpose(perm):
            return move_elements(tensor, lambda a: a.transpose(0, *(axis + 1 for axis in perm)))
        case ir.Repeat(rows, columns):
            return move_elements(tensor, lambda a: np.repeat(np.repeat(a, rows, axis=-3), columns, axis=-2))
        case ir.Slice(ranges):
            cuts = (slice(None), *(slice(*r) for r in ranges))
            return move_elements(tensor, lambda a: a[cuts])
        case ir.Pad():
            return _pad(op, tensor)


def move_elements(tensor: Tensor, move: Callable[[Array], Array]) -> Tensor:
    """Apply `move`, which only moves or selects elements, to all arrays of a tensor."""

    def move_exact(exact: exact_numbers.Exact | None) -> exact_numbers.Exact | None:
        return None if exact is None else replace(exact, integers=move(exact.integers))

    operands = tensor.operands and (move_exact(tensor.operands[0]), move_exact(tensor.operands[1]))
    codes = None if tensor.codes is None else move(tensor.codes)
    return replace(
        tensor,
        value=move(tensor.value),
        codes=codes,
        exact=move_exact(tensor.exact),
        term=move_exact(tensor.term),
        operands=operands,
        scores=move_exact(tensor.scores),
    )


def _pad(op: ir.Pad, tensor: Tensor) -> Tensor:
    """The tensor and its exact numbers with a border."""
    top_pad, left_pad, bottom_pad, right_pad = op.pads

    def bordered(array: Array, value: object) -> Array:
        widths = [(0, 0)] * (array.ndim - 3) + [(top_pad, bottom_pad), (left_pad, right_pad), (0, 0)]
        return np.pad(array, widths, constant_values=value)  # type: ignore[call-overload, no-any-return]

    exact = None
    if tensor.exact is not None:
        unit = exact_numbers.common_unit([tensor.exact.unit, Fraction(op.value)])
        scaled = exact_numbers.exact_product(tensor.exact.integers, int(tensor.exact.unit / unit))
        exact = exact_numbers.Exact(bordered(scaled, int(Fraction(op.value) / unit)), unit, tensor.exact.slope)
    return Tensor(bordered(tensor.value, op.value), exact=exact, term=exact, scale=tensor.scale, origin=tensor.origin)


def concatenate(axis: int, parts: list[Tensor], number: int, exacts: list[exact_numbers.Exact | None]) -> Tensor:
    """The parts and their exact numbers, concatenated."""
    exact = None
    if all(part_exact is not None for part_exact in exacts):
        present = [part_exact for part_exact in exacts if part_exact is not None]
        unit = exact_numbers.common_unit([part_exact.unit for part_exact in present])
        integers = np.concatenate(
            [exact_numbers.exact_product(part_exact.integers, int(part_exact.unit / unit)) for part_exact in present],
            axis,
        )
        slopes = {part_exact.slope for part_exact in present}
        exact = exact_numbers.Exact(integers, unit, present[0].slope if len(slopes) == 1 else None)
    term = exact if exact is not None and exact.slope and all(t.term is not None for t in parts) else None
    value = np.concatenate([t.value for t in parts], axis)
    return Tensor(value, exact=exact, term=term, scale=parts[0].scale, origin=number)
