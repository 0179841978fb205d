"""The checker's own range of codes of the input: those that the last Min and Max before the quantizer leave."""

from __future__ import annotations

import numpy as np

from hlsgen import ir
from hlsgen.ir.evaluate import apply, quantize
from hlsgen.ir.ops import IntQuant, Max, Min
from hlsgen.numerics.fixed import Array

#: Bounds with more constants are ignored.
_MOST_CONSTANTS = 1 << 14


def input_codes(graph: ir.Graph) -> tuple[Array, Array] | None:
    """(lowest, highest) code of each element of the only input, which broadcast to it.

    Returns None if nothing bounds them. The quantizer rises with its input, so the least and the greatest number give
    the least and the greatest code.
    """
    if graph.inputs or not isinstance(graph.encode, IntQuant):
        return None
    first = len(graph.head)
    while first and isinstance(graph.head[first - 1].op, Max | Min):
        first -= 1
    bounds = [step.op for step in graph.head[first:] if isinstance(step.op, Max | Min)]
    if not bounds or sum(op.value.size for op in bounds) > _MOST_CONSTANTS:
        return None
    codes = []
    for x in (np.float32(-np.inf), np.float32(np.inf), np.float64(-np.inf), np.float64(np.inf)):
        numbers = np.array(x)
        for op in bounds:
            numbers = np.asarray(apply(op, numbers))
        codes.append(quantize(graph.encode, numbers.astype(x.dtype)))
    return np.minimum.reduce(codes), np.maximum.reduce(codes)
