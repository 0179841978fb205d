"""Repetition of tensors along axes: broadcasting, Expand and Tile."""

from __future__ import annotations

import math

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_host import on_host
from hlsgen.ir import Repeat, Reshape, Shape


def expand(node: NodeContext) -> Imported:
    """Expand along any axes but the first; the host computes any other one. Raises HG004, HG013, HG023."""
    ops = _along_axes(node, tiled=False)
    return on_host(node) if ops is None else Imported((ops,))


def tile(node: NodeContext) -> Imported:
    """Tile along any axes but the first; the host computes any other one. Raises HG004, HG013, HG023."""
    ops = _along_axes(node, tiled=True)
    return on_host(node) if ops is None else Imported((ops,))


def _along_axes(node: NodeContext, tiled: bool) -> ShapedOps | None:
    """The operations of an Expand to shape input 1, or a Tile by the counts in input 1 (`tiled`).

    Returns None if input 1 is no constant, or elements repeat along the first axis.
    """
    const, shape = node.constant(1), node.shape
    if const is None or const.array.ndim != 1 or const.array.dtype.kind not in "iu":
        return None
    rank = max(len(shape), const.array.size)
    parameter = np.ones(rank, np.int64)
    parameter[rank - const.array.size :] = const.array
    source = np.array((1,) * (rank - len(shape)) + shape)
    result = source * parameter if tiled else np.where(parameter == 1, source, parameter)
    changed = result != source
    if ((changed & (source > 1)).any() and not tiled) or (parameter < 1).any():
        return None
    if not changed.any():
        return [(Reshape(), tuple(source.tolist()))] if rank > len(shape) else []
    if changed[0]:
        return None
    if (changed & (source > 1)).any() or rank > 4:
        return _along_each(tuple(source.tolist()), tuple(result.tolist()))
    return broadcast_ops(node.name, shape, tuple(result.tolist()))


def _along_each(source: Shape, target: Shape) -> ShapedOps:
    """Operations that tile a tensor of any rank along all axes but the first, axis by axis."""
    steps: ShapedOps = []
    for axis in (a for a in range(1, len(source)) if source[a] != target[a]):
        outer, inner, times = math.prod(source[1:axis]), math.prod(source[axis:]), target[axis] // source[axis]
        source = (*source[:axis], target[axis], *source[axis + 1 :])
        steps += [
            (Reshape(), (source[0], outer, 1, inner)),
            (Repeat(1, times), (source[0], outer, times, inner)),
            (Reshape(), source),
        ]
    return steps


def broadcast_shape(name: str, shapes: list[Shape]) -> Shape:
    """The shape that computed tensors broadcast to. Raises HG023."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if not shape or any(len(s) == len(shape) and s[0] != shape[0] for s in shapes):
        raise fail(
            "HG023",
            name,
            f"computed tensors of shapes {[list(s) for s in shapes]} do not broadcast.",
            "They must broadcast to one shape, and have the same first axis.",
        )
    return shape


def broadcast_ops(name: str, source: Shape, target: Shape) -> ShapedOps:
    """Operations that broadcast a tensor of shape `source` to `target`, except along the first axis. Raises HG023."""
    if source == target:
        return []
    full = (1,) * (len(target) - len(source)) + source
    steps: ShapedOps = [(Reshape(), full)] if full != source else []
    if full == target:
        return steps
    if not 2 <= len(target) <= 4 or full[0] != target[0]:
        text = f"a computed tensor of shape {list(source)} cannot be broadcast to {list(target)}."
        hint = "Supported: tensors of two to four axes, along any axis but the first. Use an Expand in the host's part."
        raise fail("HG023", name, text, hint)
    if len(target) == 2:
        return [*steps, *_repeated((full[0], 1, 1, full[1]), (1, 1), target[1]), (Reshape(), target)]
    data, image = ImageAxes(full), ImageAxes(target).image
    rows, columns = (image[i] // data.image[i] for i in (1, 2))
    return [*steps, *data.on_images(_repeated(data.image, (rows, columns), image[3]))]


def _repeated(image: Shape, times: tuple[int, int], channels: int) -> ShapedOps:
    """Operations that repeat rows and columns of (n, height, width, channels), and a single channel."""
    n, height, width, source_channels = image
    height, width = height * times[0], width * times[1]
    steps: ShapedOps = [(Repeat(*times), (n, height, width, source_channels))] if times != (1, 1) else []
    if source_channels != channels:  # a single channel is repeated as columns of an image of one channel
        steps += [
            (Reshape(), (n, height * width, 1, 1)),
            (Repeat(1, channels), (n, height * width, channels, 1)),
            (Reshape(), (n, height, width, channels)),
        ]
    return steps
