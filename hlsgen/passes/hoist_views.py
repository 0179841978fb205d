"""Moves reshapes and transposes before elementwise operations.

An elementwise operation gives each element its value at any position. Hence the view can come first if the
constants are rearranged as the elements are. Lowering does this for all operations that wait for a quantizer.
They become one Map, even if views are between them.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from hlsgen.ir import Encoding, Reshape, Shape, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import Elementwise
from hlsgen.numerics.fixed import Array

T = TypeVar("T", bound=Elementwise | Encoding)


def relabel(item: T, op: Reshape | Transpose, old_shape: Shape, new_shape: Shape) -> T:
    """`item`, an operation or encoding for tensors of shape `old_shape`, adapted to tensors that `op` has rearranged.

    Constants that are the same for all elements stay small.
    """
    new = {
        name: _relabel_constant(value, op, old_shape, new_shape, lead_axes(item, name))
        for name, value in constants(item).items()
    }
    return with_constants(item, new)


def _relabel_constant(value: Array, op: Reshape | Transpose, old_shape: Shape, new_shape: Shape, lead: int) -> Array:
    lead_shape = value.shape[:lead]
    if all(size == 1 for size in value.shape[lead:]):
        return value.reshape(lead_shape + (1,) * len(new_shape))
    # Decoding constants may have a lower rank than the tensor.
    full_rank = value.reshape(lead_shape + (1,) * (len(old_shape) - value.ndim + lead) + value.shape[lead:])
    if isinstance(op, Transpose):
        return np.asarray(full_rank.transpose([*range(lead), *(lead + p for p in op.perm)]))
    sizes: list[int] = []
    result: list[int] = []
    for old, new in _exchanged_axes(old_shape, new_shape):
        small = all(full_rank.shape[lead + axis] == 1 for axis in old)
        sizes += [1] * len(old) if small else [old_shape[axis] for axis in old]
        result += [1] * len(new) if small else [new_shape[axis] for axis in new]
    return _shrink(np.broadcast_to(full_rank, (*lead_shape, *sizes)).reshape(*lead_shape, *result), lead)


def _exchanged_axes(old_shape: Shape, new_shape: Shape) -> list[tuple[list[int], list[int]]]:
    """Groups (old axes, new axes) that a reshape maps onto each other, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old_shape) or j < len(new_shape):
        old, new = [i] if i < len(old_shape) else [], [j] if j < len(new_shape) else []
        a, b = math.prod(old_shape[i : i + 1]), math.prod(new_shape[j : j + 1])
        i, j = i + len(old), j + len(new)
        while a != b:
            if a < b:
                a, i = a * old_shape[i], i + 1
                old.append(i - 1)
            else:
                b, j = b * new_shape[j], j + 1
                new.append(j - 1)
        groups.append((old, new))
    return groups


def _shrink(values: Array, lead: int) -> Array:
    """Reduce every axis along which the values are constant to length 1."""
    for axis in range(lead, values.ndim):
        first = values.take([0], axis)
        values = first if bool((values == first).all()) else values
    return np.asarray(values)
