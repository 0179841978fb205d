"""Gather with constant indices as a concatenation of Slices of the data, of images also of repeated ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import image_axes
from hlsgen.frontend.index_runs import RepeatedRun, repeated_runs, runs
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_shape import reshape_ops
from hlsgen.ir import Concat, Repeat, Shape, Slice
from hlsgen.numerics.fixed import Array

#: Maximum number of concatenated Slices; each is a branch of the network.
MAX_PARTS = 256


def gather(node: NodeContext) -> Imported:
    """Gather along one axis. Raises HG004, HG013, HG020, HG023."""
    axis, indices = _axis(node), _indices(node)
    shape = node.shape
    size = shape[axis]
    if ((indices < -size) | (indices >= size)).any():
        text = f"the indices are from {indices.min()} to {indices.max()}, axis {axis} has {size} elements."
        raise fail("HG013", node.name, text, f"Supported: {-size} to {size - 1}.")
    return gathered(node, axis, np.where(indices < 0, indices + size, indices))


def gathering(axis: int, indices: Array) -> Callable[[NodeContext], Imported]:
    """The importing function that gathers these elements along an axis; `indices` are not negative."""
    return lambda node: gathered(node, axis, indices)


def gathered(node: NodeContext, axis: int, indices: Array) -> Imported:
    """The elements `indices`, which are not negative, along an axis of the data. Raises HG004."""
    shape = node.shape
    slices = [_slice(shape, axis, bounds) for bounds in runs(indices.ravel())]
    if len(slices) > 1 and len(shape) == 4 and axis >= 2:
        slices = [_repeated(node.name, shape, axis, run) for run in repeated_runs(indices.ravel())]
    if len(slices) > MAX_PARTS:
        text = f"the indices of {node.op_type} form {len(slices)} separate runs."
        hint = f"At most {MAX_PARTS} are supported: order the indices so that they ascend by equal steps."
        raise fail("HG004", node.name, text, hint)
    result = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    concatenated = (*shape[:axis], indices.size, *shape[axis + 1 :])
    result_ops = reshape_ops(node.name, result) if result != concatenated else []
    if len(slices) == 1:
        return Imported(([*slices[0], *result_ops],))
    return Imported((result_ops,), tuple(slices), (Concat(axis), concatenated))


def _axis(node: NodeContext) -> int:
    axis, rank = int(node.attrs.get("axis", 0)), len(node.shape)
    if not -rank <= axis < rank:
        text = f"attribute axis is {axis} for data of shape {list(node.shape)}."
        raise fail("HG013", node.name, text, f"Supported: {-rank} to {rank - 1}.")
    return axis % rank


def _indices(node: NodeContext) -> Array:
    const = node.constant(1)
    if const is None:
        raise fail("HG020", node.name, "the indices of Gather are no constants.", "They must be an initializer.")
    if const.array.dtype.kind not in "iu" or not const.array.size:
        text = f"the indices have the type {const.array.dtype} and the shape {list(const.array.shape)}."
        raise fail("HG013", node.name, text, "At least one index is needed, of an integer type.")
    return const.array.astype(np.int64)


def _slice(shape: Shape, axis: int, bounds: tuple[int, int, int]) -> ShapedOps:
    """The Slice (first, end, step) along an axis; empty if it keeps all elements."""
    if bounds == (0, shape[axis], 1):
        return []
    ranges = [(0, size, 1) for size in shape]
    ranges[axis] = bounds
    return [(Slice(tuple(ranges)), (*shape[:axis], len(range(*bounds)), *shape[axis + 1 :]))]


def _repeated(name: str, shape: Shape, axis: int, run: RepeatedRun) -> ShapedOps:
    """The elements of `run` along an axis of images with the channels first."""
    ops = _slice(shape, axis, (run.first, run.end, run.step))
    if run.times > 1:
        sliced = ops[-1][1] if ops else shape
        data = image_axes(name, sliced)
        n, height, width, channels = data.image
        factors = (run.times, 1) if axis == 2 else (1, run.times)
        ops += data.on_images([(Repeat(*factors), (n, height * factors[0], width * factors[1], channels))])
        ops += _slice(ops[-1][1], axis, (run.skipped, run.skipped + run.length, 1))
    return ops
