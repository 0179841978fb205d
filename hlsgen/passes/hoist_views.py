"""Moves reshapes and transposes in front of elementwise operations.

An elementwise operation gives each element its value wherever the element stands. So the view can come first, if the
constants are rearranged as the elements are. Lowering does this for all operations that wait for a quantizer, so that
they become one Map, whatever views stand between them.
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


def relabel(item: T, op: Reshape | Transpose, before: Shape, after: Shape) -> T:
    """`item`, which worked on tensors of shape `before`, for tensors that `op` has rearranged.

    Constants that are the same for all elements stay small.
    """
    new = {name: _array(value, op, before, after, lead_axes(item, name)) for name, value in constants(item).items()}
    return with_constants(item, new)


def _array(value: Array, op: Reshape | Transpose, before: Shape, after: Shape, lead: int) -> Array:
    front = value.shape[:lead]
    if all(size == 1 for size in value.shape[lead:]):
        return value.reshape(front + (1,) * len(after))
    # Decoding constants may have a lower rank than the tensor.
    own = value.reshape(front + (1,) * (len(before) - value.ndim + lead) + value.shape[lead:])
    if isinstance(op, Transpose):
        return np.asarray(own.transpose([*range(lead), *(lead + p for p in op.perm)]))
    sizes: list[int] = []
    result: list[int] = []
    for old, new in _groups(before, after):
        small = all(own.shape[lead + axis] == 1 for axis in old)
        sizes += [1] * len(old) if small else [before[axis] for axis in old]
        result += [1] * len(new) if small else [after[axis] for axis in new]
    return _small(np.broadcast_to(own, (*front, *sizes)).reshape(*front, *result), lead)


def _groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """Axes of both shapes that a reshape exchanges with each other, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        old, new = [i] if i < len(before) else [], [j] if j < len(after) else []
        a, b = math.prod(before[i : i + 1]), math.prod(after[j : j + 1])
        i, j = i + len(old), j + len(new)
        while a != b:
            if a < b:
                a, i = a * before[i], i + 1
                old.append(i - 1)
            else:
                b, j = b * after[j], j + 1
                new.append(j - 1)
        groups.append((old, new))
    return groups


def _small(values: Array, lead: int) -> Array:
    """With length 1 along every axis along which nothing changes."""
    for axis in range(lead, values.ndim):
        first = values.take([0], axis)
        values = first if bool((values == first).all()) else values
    return np.asarray(values)
