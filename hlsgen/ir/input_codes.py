"""Codes that the host's quantizer can give each element of the input: fewer than its type has, after Min and Max."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlsgen.ir.evaluate import quantize
from hlsgen.ir.graph import Graph
from hlsgen.ir.model import Step
from hlsgen.ir.ops import IntQuant, Max, Min, Quantizer
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array

#: Bounds with more elements are not used.
_MAX_ELEMENTS = 1 << 14


def input_range(graph: Graph) -> ValueRange | None:
    """The lowest and the highest code of each element of the input, or None for all codes of its type.

    The arrays broadcast to the input; all leading axes are 1, or the shape is the input's.
    """
    ends = None if graph.inputs else bounds_of_codes(graph.head, graph.encode)
    if ends is None:
        return None
    shape = graph.input.shape
    if math.prod(ends[0].shape[:-1]) == 1:
        shape = (1,) * (len(shape) - 1) + shape[-1:]
    low, high = (np.broadcast_to(end, shape) for end in ends)
    return low, high


def input_ends(graph: Graph) -> tuple[Array, Array]:
    """The lowest and the highest code of each element of the input, int64 (size,). Each port has its own type."""
    low, high = np.zeros(graph.input.size, np.int64), np.zeros(graph.input.size, np.int64)
    for _, offset, value in graph.streamed_inputs:
        place = slice(offset, offset + value.size)
        low[place], high[place] = value.type.lo, value.type.hi
    ends = input_range(graph)
    if ends is not None:
        low, high = (np.broadcast_to(end, graph.input.shape).ravel() for end in ends)
    return low, high


def bounds_of_codes(steps: Sequence[Step], encode: Quantizer | None) -> ValueRange | None:
    """The codes at the bounds of the Min and Max between which `encode` gets its numbers.

    Returns None if there are none. The quantizer rises with its input. Its quotient may be in float32 or float64; the
    codes of both are in the range.
    """
    bounds = list[Min | Max]()
    for step in reversed(steps):
        if not isinstance(step.op, Min | Max):
            break
        bounds.insert(0, step.op)
    if not bounds or not isinstance(encode, IntQuant) or sum(bound.value.size for bound in bounds) > _MAX_ELEMENTS:
        return None
    ends = []
    for dtype in (np.float32, np.float64):
        for number in (-np.inf, np.inf):
            x = np.full((1,) * np.ndim(bounds[0].value), number, dtype)
            for bound in bounds:
                x = (np.minimum if isinstance(bound, Min) else np.maximum)(x, bound.value.astype(dtype))
            ends.append(quantize(encode, x))
    return np.minimum.reduce(ends), np.maximum.reduce(ends)
