"""Operators that move, cut or pad elements: DepthToSpace, SpaceToDepth, Slice, Split, Pad."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.channels_last import ImageAxes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_gather import gathering
from hlsgen.ir import Pad, Reshape, Shape, Slice, Transpose
from hlsgen.numerics.fixed import Array

#: Modes of Pad whose border consists of elements of the data, by their names in numpy.
_MODES = ("reflect", "edge", "wrap")


def depth_to_space(node: NodeContext) -> Imported:
    """DepthToSpace of (n, c, h, w). Raises HG013, HG023."""
    size, mode = _block_size(node, from_depth=True)
    n, channels, height, width = node.shape
    depth = channels // size**2
    blocks = (n, size, size, depth, height, width) if mode == "DCR" else (n, depth, size, size, height, width)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    return _reordered(blocks, order, (n, depth, height * size, width * size))


def space_to_depth(node: NodeContext) -> Imported:
    """SpaceToDepth of (n, c, h, w). Raises HG013, HG023."""
    size, _ = _block_size(node, from_depth=False)
    n, channels, height, width = node.shape
    blocks = (n, channels, height // size, size, width // size, size)
    return _reordered(blocks, (0, 3, 5, 1, 2, 4), (n, channels * size**2, height // size, width // size))


def _block_size(node: NodeContext, from_depth: bool) -> tuple[int, str]:
    """The attributes (blocksize, mode), for data that divides into such blocks. Raises HG013, HG023."""
    name, shape, size, mode = node.name, node.shape, node.attrs.get("blocksize"), node.attrs.get("mode", "DCR")
    if len(shape) != 4:
        raise fail("HG023", name, f"data of shape {list(shape)}.", f"{node.op_type} needs an image (n, c, h, w).")
    _, channels, height, width = shape
    if not isinstance(size, int) or size < 1 or (channels % size**2 if from_depth else height % size or width % size):
        hint = "Its square must divide the channels." if from_depth else "It must divide height and width."
        raise fail("HG013", name, f"attribute blocksize is {size} for data of shape {list(shape)}.", hint)
    if mode not in ("DCR", "CRD"):
        raise fail("HG013", name, f"attribute mode is {mode!r}.", "Supported: DCR, CRD.")
    return size, mode


def _reordered(split: Shape, order: Shape, result: Shape) -> Imported:
    return Imported(([(Reshape(), split), (Transpose(order), tuple(split[a] for a in order)), (Reshape(), result)],))


# --------------------------------------------------------------------------- parts of tensors


def _numbers(node: NodeContext, position: int, key: str, attrs: dict[str, Any]) -> list[int] | None:
    """The whole numbers of a constant input, or else of an attribute, or None if both are absent. Raises HG026."""
    const = node.constant(position)
    if const is None:
        numbers = attrs.get(key)
        return None if numbers is None else [int(v) for v in numbers]
    if const.array.dtype.kind not in "iu":
        raise fail("HG026", node.name, f"input {key} is of type {const.array.dtype}.", "It must have an integer type.")
    return [int(v) for v in const.array.ravel()]


def _axes(name: str, shape: Shape, axes: list[int]) -> list[int]:
    """The axes as numbers that are not negative. Raises HG013."""
    positive = [a + len(shape) if a < 0 else a for a in axes]
    if len(set(positive)) != len(positive) or not all(0 <= a < len(shape) for a in positive):
        text = f"the axes are {axes} for data of shape {list(shape)}."
        raise fail("HG013", name, text, f"Each must be from {-len(shape)} to {len(shape) - 1}, and given once.")
    return positive


def _slice_ops(shape: Shape, ranges: list[tuple[int, int, int]]) -> ShapedOps:
    """The Slice by ranges (first, end, step) of all axes; empty if it keeps all elements."""
    if ranges == [(0, size, 1) for size in shape]:
        return []
    return [(Slice(tuple(ranges)), tuple(len(range(*r)) for r in ranges))]


def slice_(node: NodeContext) -> Imported:
    """Slice; axes with negative steps are reversed afterwards. Raises HG004, HG013, HG014, HG026."""
    name, shape, attrs = node.name, node.shape, node.attrs
    starts, ends = _numbers(node, 1, "starts", attrs), _numbers(node, 2, "ends", attrs)
    if starts is None or ends is None:
        raise fail("HG014", name, "starts or ends of Slice is absent or no constant.", "Both must be constants.")
    explicit_axes = _numbers(node, 3, "axes", attrs)
    axes = _axes(name, shape, list(range(len(starts))) if explicit_axes is None else explicit_axes)
    steps = _numbers(node, 4, "steps", {}) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        text = f"starts {starts}, ends {ends}, axes {axes}, steps {steps} differ in length."
        raise fail("HG013", name, text, "They need one number for each axis that is sliced.")
    if 0 in steps:
        raise fail("HG013", name, f"the steps are {steps}.", "A step must not be 0.")
    ranges, reversals = [(0, size, 1) for size in shape], []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        indices = range(*slice(start, end, step).indices(shape[axis]))
        if step < 0 and len(indices) > 1:
            reversals.append(gathering(axis, np.arange(len(indices))[::-1]))
        if step > 0:
            ranges[axis] = (indices.start, indices.stop, step)
        else:
            ranges[axis] = (indices[-1], indices[0] + 1, -step) if indices else (0, 0, 1)
    return Imported((_slice_ops(shape, ranges),), then=tuple(reversals))


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
            text = f"axis {axis} of {size} elements does not divide into {count} equal parts."
            raise fail("HG013", name, text, "Give the sizes of the parts (input or attribute split).")
    if sum(sizes) != shape[axis] or min(sizes, default=0) < 1 or len(sizes) != outputs:
        text = f"split is {sizes} for {outputs} outputs and axis {axis} of data of shape {list(shape)}."
        hint = "It needs a size of 1 or more for each output, which sum up to the axis."
        raise fail("HG013", name, text, hint)
    ends = np.cumsum(sizes).tolist()
    parts = []
    for size, end in zip(sizes, ends, strict=True):
        ranges = [(0, s, 1) for s in shape]
        ranges[axis] = (end - size, end, 1)
        parts.append(_slice_ops(shape, ranges))
    return Imported(tuple(parts))


# --------------------------------------------------------------------------- padding


def pad(node: NodeContext) -> Imported:
    """Pad with one constant, or with elements of the data; negative pads cut off elements first.

    Raises HG004, HG010, HG013, HG014, HG023, HG026, HG027.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    mode = attrs.get("mode", "constant")
    pads = _numbers(node, 1, "pads", attrs)
    if pads is None:
        raise fail("HG014", name, "pads of Pad is absent or no constant.", "It must be a constant.")
    if mode not in ("constant", *_MODES):
        text = f"Pad with mode {mode!r} is not supported."
        raise fail("HG010", name, text, f"Supported: mode constant, {', '.join(_MODES)}.")
    explicit_axes = _numbers(node, 3, "axes", {})
    axes = _axes(name, shape, list(range(len(shape))) if explicit_axes is None else explicit_axes)
    if len(pads) != 2 * len(axes):
        text = f"pads is {pads} for {len(axes)} axes."
        raise fail("HG013", name, text, "It needs two numbers for each axis: all begins, then all ends.")
    margins = [(0, 0)] * len(shape)
    for i, axis in enumerate(axes):
        margins[axis] = pads[i], pads[i + len(axes)]
    fill = _fill_value(node)
    ranges = [(max(-a, 0), size - max(-b, 0), 1) for size, (a, b) in zip(shape, margins, strict=True)]
    if any(first >= last for first, last, _ in ranges):
        text = f"pads {pads} cut off all elements of data of shape {list(shape)}."
        raise fail("HG013", name, text, "At least one element must remain along each axis.")
    steps = _slice_ops(shape, ranges)
    shape = steps[-1][1] if steps else shape
    margins = [(max(a, 0), max(b, 0)) for a, b in margins]
    if mode != "constant":
        padded = [
            (axis, np.pad(np.arange(shape[axis]), margin, mode)) for axis, margin in enumerate(margins) if any(margin)
        ]
        return Imported((steps,), then=tuple(gathering(axis, indices) for axis, indices in padded))
    return Imported(([*steps, *border(name, shape, margins, fill)],))


def _fill_value(node: NodeContext) -> float:
    """The constant that fills the border. Raises HG023, HG027."""
    name, const, dtype = node.name, node.constant(2), node.dtype
    array: Array = np.asarray(node.attrs.get("value", 0.0)) if const is None else const.array
    if array.size != 1 or array.dtype.kind not in "fiu":
        text = f"the padding value has the shape {list(array.shape)} and the type {array.dtype}."
        raise fail("HG023", name, text, "It must be one number.")
    value = float(array.reshape(()))
    if not math.isfinite(value) or float(np.asarray(value).astype(dtype)) != value:
        raise fail("HG027", name, f"the padding value is {value}.", f"It must be a number of {dtype}.")
    return value


def border(name: str, shape: Shape, margins: list[tuple[int, int]], fill: float) -> ShapedOps:
    """Borders with (begin, end) elements along each axis, as few operations as possible.

    Tensors (n, c, h, w), (n, c, l), (n, c) and (n, h, w, c) are padded as images, others axis by axis.
    """
    padded = [axis for axis, (a, b) in enumerate(margins) if a or b]
    if not padded:
        return []
    result = tuple(size + a + b for size, (a, b) in zip(shape, margins, strict=True))
    if padded[0] == 0 or not 2 <= len(shape) <= 4:
        ops: ShapedOps = []
        for axis in padded:
            ops += border_along(shape, axis, margins[axis], fill)
            shape = ops[-1][1]
        return ops
    if len(shape) == 4 and padded == [1, 2]:  # channels last already
        (above, below), (before_row, after_row) = margins[1:3]
        return [(Pad((above, before_row, below, after_row), fill), result)]
    if len(shape) == 2:
        return [*_channel_border((shape[0], 1, 1, shape[1]), margins[1], fill)[:-1], (Reshape(), result)]
    data = ImageAxes(shape)
    steps: ShapedOps = []
    image = data.image
    (above, below), (before_row, after_row) = [(0, 0), *margins[2:]][-2:]
    if padded != [1]:
        image = (image[0], image[1] + above + below, image[2] + before_row + after_row, image[3])
        steps.append((Pad((above, before_row, below, after_row), fill), image))
    return data.on_images([*steps, *_channel_border(image, margins[1], fill)])


def border_along(shape: Shape, axis: int, margin: tuple[int, int], fill: float = 0.0) -> ShapedOps:
    """(begin, end) more elements along any axis of a tensor in row-major order; empty for (0, 0).

    The tensor is viewed as an image: the axes before `axis` as rows, the axes after it as channels.
    """
    if margin == (0, 0):
        return []
    image = 1, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    size = shape[axis] + sum(margin)
    return [
        (Reshape(), image),
        (Pad((0, margin[0], 0, margin[1]), fill), (*image[:2], size, image[3])),
        (Reshape(), (*shape[:axis], size, *shape[axis + 1 :])),
    ]


def _channel_border(image: Shape, margin: tuple[int, int], fill: float) -> ShapedOps:
    """(begin, end) more channels; the channels are viewed as columns of an image of one channel."""
    if margin == (0, 0):
        return []
    n, height, width, channels = image
    total = channels + sum(margin)
    return [
        (Reshape(), (n, height * width, channels, 1)),
        (Pad((0, margin[0], 0, margin[1]), fill), (n, height * width, total, 1)),
        (Reshape(), (n, height, width, total)),
    ]
