"""Operators that move, cut or pad elements: DepthToSpace, SpaceToDepth, Slice, Split, Pad."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_gather import taken
from hlsgen.ir import Pad, Reshape, Shape, Slice, Transpose
from hlsgen.numerics.fixed import Array

#: Modes of Pad whose border has elements of the data, as numpy calls them.
_MODES = ("reflect", "edge", "wrap")


def depth_to_space(node: NodeContext) -> Imported:
    """Of (n, c, h, w). Raises HG013, HG023."""
    block, mode = _block(node, deep=True)
    n, channels, height, width = node.shape
    rest = channels // block**2
    apart = (n, block, block, rest, height, width) if mode == "DCR" else (n, rest, block, block, height, width)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    return _reordered(apart, order, (n, rest, height * block, width * block))


def space_to_depth(node: NodeContext) -> Imported:
    """Of (n, c, h, w). Raises HG013, HG023."""
    block, _ = _block(node, deep=False)
    n, channels, height, width = node.shape
    apart = (n, channels, height // block, block, width // block, block)
    return _reordered(apart, (0, 3, 5, 1, 2, 4), (n, channels * block**2, height // block, width // block))


def _block(node: NodeContext, deep: bool) -> tuple[int, str]:
    """(blocksize, mode), for data that divides into such blocks."""
    name, shape, block, mode = node.name, node.shape, node.attrs.get("blocksize"), node.attrs.get("mode", "DCR")
    if len(shape) != 4:
        raise fail("HG023", name, f"data of shape {list(shape)}; {node.op_type} takes (n, c, h, w).")
    _, channels, height, width = shape
    if not isinstance(block, int) or block < 1 or (channels % block**2 if deep else height % block or width % block):
        raise fail("HG013", name, f"blocksize is {block} for data of shape {list(shape)}.")
    if mode not in ("DCR", "CRD"):
        raise fail("HG013", name, f"mode is {mode!r}.", "Supported: DCR, CRD.")
    return block, mode


def _reordered(apart: Shape, order: Shape, result: Shape) -> Imported:
    return Imported(([(Reshape(), apart), (Transpose(order), tuple(apart[a] for a in order)), (Reshape(), result)],))


# --------------------------------------------------------------------------- parts of tensors


def _numbers(node: NodeContext, position: int, key: str, attrs: dict[str, Any]) -> list[int] | None:
    """Whole numbers of a constant input, or else of an attribute."""
    const = node.constant(position)
    if const is None:
        given = attrs.get(key)
        return None if given is None else [int(v) for v in given]
    if const.array.dtype.kind not in "iu":
        raise fail("HG026", node.name, f"input {key} is of type {const.array.dtype}.", "Whole numbers are needed.")
    return [int(v) for v in const.array.ravel()]


def _axes(name: str, shape: Shape, axes: list[int]) -> list[int]:
    found = [a + len(shape) if a < 0 else a for a in axes]
    if len(set(found)) != len(found) or not all(0 <= a < len(shape) for a in found):
        raise fail("HG013", name, f"axes {axes} of data of shape {list(shape)}.")
    return found


def _taken(shape: Shape, ranges: list[tuple[int, int, int]]) -> ShapedOps:
    """A Slice, or nothing if it keeps everything."""
    if ranges == [(0, size, 1) for size in shape]:
        return []
    return [(Slice(tuple(ranges)), tuple(len(range(*r)) for r in ranges))]


def slice_(node: NodeContext) -> Imported:
    """Slice; elements that steps below 0 turn around are turned around behind. Raises HG004, HG013, HG014, HG026."""
    name, shape, attrs = node.name, node.shape, node.attrs
    starts, ends = _numbers(node, 1, "starts", attrs), _numbers(node, 2, "ends", attrs)
    if starts is None or ends is None:
        raise fail("HG014", name, "starts and ends are needed.")
    given = _numbers(node, 3, "axes", attrs)
    axes = _axes(name, shape, list(range(len(starts))) if given is None else given)
    steps = _numbers(node, 4, "steps", {}) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise fail("HG013", name, f"starts {starts}, ends {ends}, axes {axes}, steps {steps} differ in length.")
    if 0 in steps:
        raise fail("HG013", name, f"steps {steps}.", "A step is not 0.")
    ranges, turned = [(0, size, 1) for size in shape], []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        found = range(*slice(start, end, step).indices(shape[axis]))
        if step < 0 and len(found) > 1:
            turned.append(taken(axis, np.arange(len(found))[::-1]))
        ranges[axis] = (
            (found.start, found.stop, step) if step > 0 else (found[-1], found[0] + 1, -step) if found else (0, 0, 1)
        )
    return Imported((_taken(shape, ranges),), then=tuple(turned))


def split(node: NodeContext) -> Imported:
    """Split: a Slice for each output. Raises HG013, HG026."""
    name, shape, attrs, outputs = node.name, node.shape, node.attrs, len(node.outputs)
    axis = _axes(name, shape, [int(attrs.get("axis", 0))])[0]
    sizes = _numbers(node, 1, "split", attrs)
    if sizes is None:
        count, size = int(attrs.get("num_outputs", outputs)), shape[axis]
        chunk = -(-size // max(count, 1))
        sizes = [min(chunk, size - i * chunk) for i in range(count)]
        if "num_outputs" not in attrs and size % max(count, 1):
            raise fail("HG013", name, f"{size} elements in {count} equal parts.", "Give the sizes (split).")
    if sum(sizes) != shape[axis] or min(sizes, default=0) < 1 or len(sizes) != outputs:
        raise fail("HG013", name, f"parts of {sizes} elements for {outputs} outputs and data of shape {list(shape)}.")
    ends = np.cumsum(sizes).tolist()
    parts = []
    for size, end in zip(sizes, ends, strict=True):
        ranges = [(0, s, 1) for s in shape]
        ranges[axis] = (end - size, end, 1)
        parts.append(_taken(shape, ranges))
    return Imported(tuple(parts))


# --------------------------------------------------------------------------- padding


def pad(node: NodeContext) -> Imported:
    """Pad with one constant, or with elements of the data; what is negative is cut off first.

    Raises HG004, HG010, HG013, HG014, HG023, HG026, HG027.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    mode = attrs.get("mode", "constant")
    pads = _numbers(node, 1, "pads", attrs)
    if pads is None:
        raise fail("HG014", name, "pads are needed.")
    if mode not in ("constant", *_MODES):
        raise fail("HG010", name, f"Pad with mode {mode!r}.", f"Supported: mode 'constant', {', '.join(_MODES)}.")
    given = _numbers(node, 3, "axes", {})
    axes = _axes(name, shape, list(range(len(shape))) if given is None else given)
    if len(pads) != 2 * len(axes):
        raise fail("HG013", name, f"pads {pads} for {len(axes)} axes.")
    around = [(0, 0)] * len(shape)
    for i, axis in enumerate(axes):
        around[axis] = pads[i], pads[i + len(axes)]
    value = _value(node)
    ranges = [(max(-a, 0), size - max(-b, 0), 1) for size, (a, b) in zip(shape, around, strict=True)]
    if any(first >= last for first, last, _ in ranges):
        raise fail("HG013", name, f"pads {pads} leave nothing of data of shape {list(shape)}.")
    steps = _taken(shape, ranges)
    shape = steps[-1][1] if steps else shape
    around = [(max(a, 0), max(b, 0)) for a, b in around]
    if mode != "constant":
        wider = [(axis, np.pad(np.arange(shape[axis]), extra, mode)) for axis, extra in enumerate(around) if any(extra)]
        return Imported((steps,), then=tuple(taken(axis, indices) for axis, indices in wider))
    border = _border(name, shape, around, value)
    return Imported(([*steps, *border],))


def _value(node: NodeContext) -> float:
    """What the border is filled with."""
    name, const, dtype = node.name, node.constant(2), node.dtype
    array: Array = np.asarray(node.attrs.get("value", 0.0)) if const is None else const.array
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise fail("HG023", name, f"a padding value of shape {list(array.shape)} and type {array.dtype}.")
    value = float(array.reshape(()))
    if not math.isfinite(value) or float(np.asarray(value).astype(dtype)) != value:
        raise fail("HG027", name, f"the padding value is {value}.", f"It must be a number of {dtype}.")
    return value


def _border(name: str, shape: Shape, around: list[tuple[int, int]], value: float) -> ShapedOps:
    """Borders of positive width: around (n, c, h, w), (n, c, l), (n, c) or (n, h, w, c), or of other axes one by one."""
    padded = [axis for axis, (a, b) in enumerate(around) if a or b]
    if not padded:
        return []
    result = tuple(size + a + b for size, (a, b) in zip(shape, around, strict=True))
    if padded[0] == 0 or not 2 <= len(shape) <= 4:
        found: ShapedOps = []
        for axis in padded:
            found += border_along(shape, axis, around[axis], value)
            shape = found[-1][1]
        return found
    if len(shape) == 4 and padded == [1, 2]:  # channels last already
        (top, bottom), (left, right) = around[1:3]
        return [(Pad((top, left, bottom, right), value), result)]
    if len(shape) == 2:
        return [*_wider((shape[0], 1, 1, shape[1]), around[1], value)[:-1], (Reshape(), result)]
    data = ImageAxes(shape)
    steps: ShapedOps = []
    image = data.image
    (top, bottom), (left, right) = [(0, 0), *around[2:]][-2:]
    if padded != [1]:
        image = (image[0], image[1] + top + bottom, image[2] + left + right, image[3])
        steps.append((Pad((top, left, bottom, right), value), image))
    return data.around([*steps, *_wider(image, around[1], value)])


def border_along(shape: Shape, axis: int, extra: tuple[int, int], value: float = 0.0) -> ShapedOps:
    """More elements in front and behind along any axis of a tensor in row-major order; nothing if there are none.

    It is an image: a row for whatever stands in front of the axis, a channel for whatever stands behind.
    """
    if extra == (0, 0):
        return []
    image = 1, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    size = shape[axis] + sum(extra)
    return [
        (Reshape(), image),
        (Pad((0, extra[0], 0, extra[1]), value), (*image[:2], size, image[3])),
        (Reshape(), (*shape[:axis], size, *shape[axis + 1 :])),
    ]


def _wider(image: Shape, extra: tuple[int, int], value: float) -> ShapedOps:
    """More channels in front and behind: the channels as columns of an image of one channel."""
    if extra == (0, 0):
        return []
    n, height, width, channels = image
    total = channels + sum(extra)
    return [
        (Reshape(), (n, height * width, channels, 1)),
        (Pad((0, extra[0], 0, extra[1]), value), (n, height * width, total, 1)),
        (Reshape(), (n, height, width, total)),
    ]
