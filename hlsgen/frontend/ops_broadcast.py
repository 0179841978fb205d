"""Tensors that are repeated along axes: what broadcasting, Expand and Tile do."""

from __future__ import annotations

import math

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_host import on_host
from hlsgen.ir import Repeat, Reshape, Shape


def expand(node: NodeContext) -> Imported:
    """Along any axes but the first; anything else is the host's. Raises HG004, HG013, HG023."""
    found = _along_axes(node, tiled=False)
    return on_host(node) if found is None else Imported((found,))


def tile(node: NodeContext) -> Imported:
    """As `expand`."""
    found = _along_axes(node, tiled=True)
    return on_host(node) if found is None else Imported((found,))


def _along_axes(node: NodeContext, tiled: bool) -> ShapedOps | None:
    """Input 1 is the shape of Expand, the counts of Tile (`tiled`)."""
    const, shape = node.constant(1), node.shape
    if const is None or const.array.ndim != 1 or const.array.dtype.kind not in "iu":
        return None
    rank = max(len(shape), const.array.size)
    wanted = np.ones(rank, np.int64)
    wanted[rank - const.array.size :] = const.array
    own = np.array((1,) * (rank - len(shape)) + shape)
    result = own * wanted if tiled else np.where(wanted == 1, own, wanted)
    changed = result != own
    if ((changed & (own > 1)).any() and not tiled) or (wanted < 1).any():
        return None
    if not changed.any():
        return [(Reshape(), tuple(own.tolist()))] if rank > len(shape) else []
    if changed[0]:
        return None
    if (changed & (own > 1)).any() or rank > 4:
        return _along_each(tuple(own.tolist()), tuple(result.tolist()))
    return grown(node.name, shape, tuple(result.tolist()))


def _along_each(own: Shape, shape: Shape) -> ShapedOps:
    """Operations that repeat a tensor as a whole along one axis after the other, but the first; of any rank."""
    steps: ShapedOps = []
    for axis in (a for a in range(1, len(own)) if own[a] != shape[a]):
        outer, inner, times = math.prod(own[1:axis]), math.prod(own[axis:]), shape[axis] // own[axis]
        own = (*own[:axis], shape[axis], *own[axis + 1 :])
        steps += [
            (Reshape(), (own[0], outer, 1, inner)),
            (Repeat(1, times), (own[0], outer, times, inner)),
            (Reshape(), own),
        ]
    return steps


def broadcast(name: str, shapes: list[Shape]) -> Shape:
    """The shape that computed tensors broadcast to. Raises HG023."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if not shape or any(len(s) == len(shape) and s[0] != shape[0] for s in shapes):
        raise fail(
            "HG023", name, f"computed tensors of shapes {[list(s) for s in shapes]}.",
            "They must broadcast to one shape, not along the first axis.",
        )  # fmt: skip
    return shape


def grown(name: str, own: Shape, shape: Shape) -> ShapedOps:
    """Operations that give a tensor this shape: elements are repeated along axes of length 1, but the first."""
    if own == shape:
        return []
    full = (1,) * (len(shape) - len(own)) + own
    steps: ShapedOps = [(Reshape(), full)] if full != own else []
    if full == shape:
        return steps
    if not 2 <= len(shape) <= 4 or full[0] != shape[0]:
        raise fail(
            "HG023", name, f"a computed tensor of shape {list(own)} for one of shape {list(shape)}.",
            "Elements are repeated along the axes of images, signals and matrices.",
        )  # fmt: skip
    if len(shape) == 2:
        return [*steps, *_repeated((full[0], 1, 1, full[1]), (1, 1), shape[1]), (Reshape(), shape)]
    data, wanted = ImageAxes(full), ImageAxes(shape).image
    rows, columns = (wanted[i] // data.image[i] for i in (1, 2))
    return [*steps, *data.around(_repeated(data.image, (rows, columns), wanted[3]))]


def _repeated(image: Shape, times: tuple[int, int], channels: int) -> ShapedOps:
    """Operations that repeat rows and columns of (n, height, width, channels), and the only channel if it is one."""
    n, height, width, own = image
    height, width = height * times[0], width * times[1]
    steps: ShapedOps = [(Repeat(*times), (n, height, width, own))] if times != (1, 1) else []
    if own != channels:  # columns of an image of one channel
        steps += [
            (Reshape(), (n, height * width, 1, 1)),
            (Repeat(1, channels), (n, height * width, channels, 1)),
            (Reshape(), (n, height, width, channels)),
        ]
    return steps
