"""Parts of tensors: the elements at some positions of each axis, with the constants of these elements."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from hlsgen.ir.encoding import Encoding
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.graph import Value
from hlsgen.ir.ops import Elementwise
from hlsgen.numerics.fixed import Array

T = TypeVar("T", bound=Elementwise | Encoding)

#: The positions that are kept along each axis of a tensor, ascending, int64.
Positions = tuple[Array, ...]


def positions_of(mask: Array) -> Positions:
    """The positions of the smallest block, in the sense of np.ix_, that contains all elements of a mask."""
    axes = range(mask.ndim)
    return tuple(np.flatnonzero(mask.any(axis=tuple(np.setdiff1d(axes, axis).tolist()))) for axis in axes)


def block(shape: tuple[int, ...], positions: Positions) -> Array:
    """The mask of all elements at these positions."""
    mask = np.zeros(shape, bool)
    mask[np.ix_(*positions)] = True
    return mask


def part_of_value(value: Value, positions: Positions) -> Value:
    """The value of these elements; the value itself if these are all."""
    shape = tuple(len(p) for p in positions)
    if shape == value.shape:
        return value
    return replace(value, shape=shape, encoding=part_of_constants(value.encoding, positions))


def part_of_constants(item: T, positions: Positions) -> T:
    """An operation or an encoding for these elements."""
    new = {}
    for name, value in constants(item).items():
        for axis in range(1, value.ndim - lead_axes(item, name) + 1):
            if value.shape[-axis] > 1 and axis <= len(positions):
                value = value.take(positions[-axis], axis=-axis)
        new[name] = np.ascontiguousarray(value)
    return with_constants(item, new)
