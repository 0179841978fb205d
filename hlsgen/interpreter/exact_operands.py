"""Exact numbers of a step's operands: those beside codes, or floats as multiples of one scale."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlsgen import ir
from hlsgen.interpreter import exact_numbers
from hlsgen.interpreter.possible_values import possible_values
from hlsgen.interpreter.tensor import Tensor


def exact_operand(model: ir.Model, index: int, tensor: Tensor) -> exact_numbers.Exact:
    """The exact numbers of value `index`, for a step that adds them up."""
    if tensor.exact is not None:
        return tensor.exact
    on_scale = _of_one_scale(model, index, tensor)
    if on_scale is not None:
        return on_scale
    flat = exact_numbers.fractions(np.where(np.isfinite(tensor.value), tensor.value, 0))
    unit = exact_numbers.common_unit(flat.ravel())
    return exact_numbers.Exact(exact_numbers.narrow(exact_numbers.multiples(flat, unit)), unit, None)


def _of_one_scale(model: ir.Model, index: int, tensor: Tensor) -> exact_numbers.Exact | None:
    """Floats as multiples of one scale, or None."""
    scale = _scale_of_all(model, index, tensor.scale)
    if scale is None:
        scale = exact_numbers.one_scale(tensor.value, tensor.scale)
    integers = None if scale is None else exact_numbers.as_multiples(tensor.value, scale)
    return None if scale is None or integers is None else exact_numbers.Exact(integers, scale, None)


def _scale_of_all(model: ir.Model, index: int, preferred: Fraction | None) -> Fraction | None:
    """A scale of which every possible value of the tensor is a multiple, for any input, or None if there is none."""
    values = possible_values(model, index)
    return None if values is None else exact_numbers.one_scale(values, preferred)


def exact_parts(model: ir.Model, step: ir.Step, parts: list[Tensor]) -> list[exact_numbers.Exact | None]:
    """The exact numbers of each part of a Concat.

    Beside codes, a part after float operations gets exact numbers as multiples of one scale.
    """
    exacts = [t.exact for t in parts]
    if all(e is None for e in exacts):
        return exacts
    return [
        _of_one_scale(model, index, part) if exact is None and part.value.dtype == np.float32 else exact
        for index, part, exact in zip(step.inputs, parts, exacts, strict=True)
    ]
