"""Repetition of tensors along axes, any of them, by numpy's rules of broadcasting."""

from __future__ import annotations

import math

from hlsgen.frontend.node_context import ShapedOps
from hlsgen.ir import Repeat, Reshape, Shape


def broadcast(source: Shape, target: Shape) -> ShapedOps:
    """Operations from shape `source` to shape `target`, to which it broadcasts."""
    ops: ShapedOps = []
    shape = (1,) * (len(target) - len(source)) + source
    if shape != source:
        ops.append((Reshape(), shape))
    for axis, size in enumerate(target):
        if shape[axis] == size:
            continue
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        shape = (*shape[:axis], size, *shape[axis + 1 :])
        ops += [
            (Reshape(), (1, outer, 1, inner)),
            (Repeat(1, size), (1, outer, size, inner)),
            (Reshape(), shape),
        ]
    return ops
