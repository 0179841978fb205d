"""Gather of constant indices: the parts of the data, each a Slice, one behind the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_shape import reshaped
from hlsgen.ir import Concat, Shape, Slice
from hlsgen.numerics.fixed import Array

#: Most parts that are put together: each is a branch of its own.
MAX_PARTS = 256


def gather(node: NodeContext) -> Imported:
    """Along one axis. Raises HG004, HG013, HG020, HG023."""
    axis, indices = _axis(node), _indices(node)
    shape = node.shape
    size = shape[axis]
    if ((indices < -size) | (indices >= size)).any():
        raise fail("HG013", node.name, f"indices from {indices.min()} to {indices.max()} into {size} elements.")
    return gathered(node, axis, np.where(indices < 0, indices + size, indices))


def taken(axis: int, indices: Array) -> Callable[[NodeContext], Imported]:
    """What takes these elements of an axis, none counted from the end, of the data. Raises HG004."""
    return lambda node: gathered(node, axis, indices)


def gathered(node: NodeContext, axis: int, indices: Array) -> Imported:
    shape = node.shape
    found = [_part(shape, axis, part) for part in runs(indices.ravel())]
    if len(found) > MAX_PARTS:
        raise fail(
            "HG004", node.name, f"the indices of {node.op_type} make {len(found)} separate parts; at most {MAX_PARTS}.",
            "Indices that rise by equal steps are one part: gather in another order.",
        )  # fmt: skip
    result = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    joined = (*shape[:axis], indices.size, *shape[axis + 1 :])
    behind = reshaped(node.name, result) if result != joined else []
    if len(found) == 1:
        return Imported(([*found[0], *behind],))
    return Imported((behind,), tuple(found), (Concat(axis), joined))


def _axis(node: NodeContext) -> int:
    axis, rank = int(node.attrs.get("axis", 0)), len(node.shape)
    if not -rank <= axis < rank:
        raise fail("HG013", node.name, f"axis {axis} of data of shape {list(node.shape)}.")
    return axis % rank


def _indices(node: NodeContext) -> Array:
    const = node.constant(1)
    if const is None:
        raise fail("HG020", node.name, "the indices of Gather are computed.", "They must be constants.")
    if const.array.dtype.kind not in "iu" or not const.array.size:
        text = f"indices of type {const.array.dtype} and shape {list(const.array.shape)}."
        raise fail("HG013", node.name, text, "Whole numbers are needed, one at least.")
    return const.array.astype(np.int64)


def runs(indices: Array) -> list[tuple[int, int, int]]:
    """Ranges (first, end, step) of positive steps that are the indices one behind the other, each as long as it can be."""
    found, rest = [], indices.tolist()
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 and rest[1] > rest[0] else 1
        length = 1
        while length < len(rest) and rest[length] == rest[0] + length * step:
            length += 1
        found.append((rest[0], rest[length - 1] + 1, step))
        rest = rest[length:]
    return found


def _part(shape: Shape, axis: int, part: tuple[int, int, int]) -> ShapedOps:
    """A Slice, or nothing where the part is the whole."""
    if part == (0, shape[axis], 1):
        return []
    ranges = [(0, size, 1) for size in shape]
    ranges[axis] = part
    return [(Slice(tuple(ranges)), (*shape[:axis], len(range(*part)), *shape[axis + 1 :]))]
