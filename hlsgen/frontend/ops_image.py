"""Operators that move, cut or reduce the points of images, as steps on (n, height, width, channels)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend import ops_broadcast
from hlsgen.frontend.channels_last import AxisOrder, Imported, layout
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.ops_conv import CHANNELS_LAST
from hlsgen.frontend.ops_pool import (
    GLOBAL,
    QLINEAR,
    REDUCTIONS,
    WINDOWS,
    import_pool,
    import_qlinear_pool,
    import_reduction,
    is_spatial,
    reduced_axes,
)
from hlsgen.frontend.ops_resize import import_resize
from hlsgen.frontend.ops_standard import import_standard
from hlsgen.ir import Pad, Reshape, Shape, Slice, Transpose
from hlsgen.ir.ops import Add, Mul
from hlsgen.numerics.fixed import Array

Inputs = list[Const | None]

SPATIAL_OPERATORS = WINDOWS | GLOBAL | QLINEAR | REDUCTIONS | ops_broadcast.OPERATORS | frozenset(
    ["DepthToSpace", "Pad", "Resize", "Slice", "SpaceToDepth", "Split", "Upsample"]
)  # fmt: skip


def import_spatial(
    node: onnx.NodeProto, name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], opset: int, dtype: str
) -> Imported | list[Imported]:  # fmt: skip
    """Steps for a node whose first input, of that shape and dtype, is the only dynamic one.

    For Split, those of every output.
    """
    op_type = node.op_type
    for i, text in enumerate(node.input):
        if i and text and (len(inputs) <= i or inputs[i] is None):
            raise fail(
                "HG020", name, f"input {i} ({text!r}) of {op_type} is not a constant.",
                "Only the first input may be computed from the model's input.",
            )  # fmt: skip
    if op_type == "BatchNormalization":
        return _batch_norm(node, name, shape, inputs, attrs, opset, dtype)
    if op_type in QLINEAR:
        data = layout(name, shape, bool(attrs.get("channels_last", 0)))
        return import_qlinear_pool(op_type, name, data, inputs, attrs, dtype)
    if op_type in WINDOWS | GLOBAL:
        last = node.domain == CHANNELS_LAST or op_type == "MaxPoolNHWC" or attrs.get("data_layout") == "NHWC"
        return import_pool(node, name, layout(name, shape, last), attrs, dtype)
    if op_type in REDUCTIONS:
        axes = reduced_axes(name, shape, inputs, attrs)
        if is_spatial(shape, axes):
            return import_reduction(op_type, name, shape, axes, attrs, dtype)
        return import_standard(node, name, shape, inputs, attrs, opset, 0, dtype)  # the host's
    if op_type in ops_broadcast.OPERATORS:
        found = ops_broadcast.import_growing(op_type, name, shape, inputs)
        return import_standard(node, name, shape, inputs, attrs, opset, 0, dtype) if found is None else found
    match op_type:
        case "Resize" | "Upsample":
            return import_resize(op_type, name, shape, inputs, attrs, opset)
        case "DepthToSpace" | "SpaceToDepth":
            return _blocks(op_type, name, shape, attrs)
        case "Pad":
            return _pad(name, shape, inputs, attrs, dtype)
        case "Slice":
            return _slice(name, shape, inputs, attrs)
        case _:
            return _split(name, shape, inputs, attrs, len(node.output))


def _batch_norm(
    node: onnx.NodeProto, name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], opset: int, dtype: str
) -> Imported:  # fmt: skip
    """BatchNormalization whose channels are the last axis: the standard one of (n, channels), placed there."""
    if len(shape) < 2:
        raise fail("HG023", name, f"data of shape {list(shape)} has no channels.")
    steps: Imported = []
    for op, _ in import_standard(node, name, (shape[0], shape[-1]), inputs, attrs, opset, 0, dtype):
        assert isinstance(op, Add | Mul)
        steps.append((type(op)(op.value.reshape((1,) * (len(shape) - 1) + (-1,))), shape))
    return steps


def _blocks(op_type: str, name: str, shape: Shape, attrs: dict[str, Any]) -> Imported:
    """DepthToSpace and SpaceToDepth of (n, c, h, w)."""
    block, mode = attrs.get("blocksize"), attrs.get("mode", "DCR")
    if len(shape) != 4:
        raise fail("HG023", name, f"data of shape {list(shape)}; {op_type} takes (n, c, h, w).")
    n, channels, height, width = shape
    deep = op_type == "DepthToSpace"
    if not isinstance(block, int) or block < 1 or (channels % block**2 if deep else height % block or width % block):
        raise fail("HG013", name, f"blocksize is {block} for data of shape {list(shape)}.")
    if mode not in ("DCR", "CRD"):
        raise fail("HG013", name, f"mode is {mode!r}.", "Supported: DCR, CRD.")
    if deep:
        rest = channels // block**2
        apart = (n, block, block, rest, height, width) if mode == "DCR" else (n, rest, block, block, height, width)
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        result = (n, rest, height * block, width * block)
    else:
        apart = (n, channels, height // block, block, width // block, block)
        order = (0, 3, 5, 1, 2, 4)
        result = (n, channels * block**2, height // block, width // block)
    return [(Reshape(), apart), (Transpose(order), tuple(apart[a] for a in order)), (Reshape(), result)]


# --------------------------------------------------------------------------- parts of tensors


def _numbers(name: str, inputs: Inputs, position: int, attrs: dict[str, Any], key: str) -> list[int] | None:
    """Whole numbers of a constant input, or else of an attribute."""
    const = inputs[position] if len(inputs) > position else None
    if const is None:
        given = attrs.get(key)
        return None if given is None else [int(v) for v in given]
    if const.array.dtype.kind not in "iu":
        raise fail("HG026", name, f"input {key} is of type {const.array.dtype}.", "Whole numbers are needed.")
    return [int(v) for v in const.array.ravel()]


def _axes(name: str, shape: Shape, axes: list[int]) -> list[int]:
    found = [a + len(shape) if a < 0 else a for a in axes]
    if len(set(found)) != len(found) or not all(0 <= a < len(shape) for a in found):
        raise fail("HG013", name, f"axes {axes} of data of shape {list(shape)}.")
    return found


def _taken(shape: Shape, ranges: list[tuple[int, int, int]]) -> Imported:
    """A Slice, or nothing if it keeps everything."""
    if ranges == [(0, size, 1) for size in shape]:
        return []
    return [(Slice(tuple(ranges)), tuple(len(range(*r)) for r in ranges))]


def _slice(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any]) -> Imported:
    starts, ends = _numbers(name, inputs, 1, attrs, "starts"), _numbers(name, inputs, 2, attrs, "ends")
    if starts is None or ends is None:
        raise fail("HG014", name, "starts and ends are needed.")
    given = _numbers(name, inputs, 3, attrs, "axes")
    axes = _axes(name, shape, list(range(len(starts))) if given is None else given)
    steps = _numbers(name, inputs, 4, {}, "steps") or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise fail("HG013", name, f"starts {starts}, ends {ends}, axes {axes}, steps {steps} differ in length.")
    if min(steps, default=1) < 1:
        raise fail("HG013", name, f"steps {steps}.", "Supported: steps of 1 and more.")
    ranges = [(0, size, 1) for size in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        ranges[axis] = slice(start, end, step).indices(shape[axis])
    return _taken(shape, ranges)


def _split(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], outputs: int) -> list[Imported]:
    """One list of steps for each output."""
    axis = _axes(name, shape, [int(attrs.get("axis", 0))])[0]
    sizes = _numbers(name, inputs, 1, attrs, "split")
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
    return parts


# --------------------------------------------------------------------------- padding


def _pad(name: str, shape: Shape, inputs: Inputs, attrs: dict[str, Any], dtype: str) -> Imported:
    """Pad with one constant; what is negative is cut off first. Not along the first axis."""
    mode = attrs.get("mode", "constant")
    pads = _numbers(name, inputs, 1, attrs, "pads")
    if pads is None:
        raise fail("HG014", name, "pads are needed.")
    if mode != "constant" and any(pads):
        raise fail("HG010", name, f"Pad with mode {mode!r}.", "Supported: mode 'constant'.")
    given = _numbers(name, inputs, 3, {}, "axes")
    axes = _axes(name, shape, list(range(len(shape))) if given is None else given)
    if len(pads) != 2 * len(axes):
        raise fail("HG013", name, f"pads {pads} for {len(axes)} axes.")
    around = [(0, 0)] * len(shape)
    for i, axis in enumerate(axes):
        around[axis] = pads[i], pads[i + len(axes)]
    value = _value(name, inputs[2] if len(inputs) > 2 else None, attrs, dtype)
    ranges = [(max(-a, 0), size - max(-b, 0), 1) for size, (a, b) in zip(shape, around, strict=True)]
    if any(first >= last for first, last, _ in ranges):
        raise fail("HG013", name, f"pads {pads} leave nothing of data of shape {list(shape)}.")
    steps = _taken(shape, ranges)
    shape = steps[-1][1] if steps else shape
    return [*steps, *_border(name, shape, [(max(a, 0), max(b, 0)) for a, b in around], value)]


def _value(name: str, const: Const | None, attrs: dict[str, Any], dtype: str) -> float:
    array: Array = np.asarray(attrs.get("value", 0.0)) if const is None else const.array
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise fail("HG023", name, f"a padding value of shape {list(array.shape)} and type {array.dtype}.")
    value = float(array.reshape(()))
    if not math.isfinite(value) or float(np.asarray(value).astype(dtype)) != value:
        raise fail("HG027", name, f"the padding value is {value}.", f"It must be a number of {dtype}.")
    return value


def _border(name: str, shape: Shape, around: list[tuple[int, int]], value: float) -> Imported:
    """Borders of positive width around (n, c, h, w), (n, c, l), (n, c) or (n, h, w, c)."""
    padded = [axis for axis, (a, b) in enumerate(around) if a or b]
    if not padded:
        return []
    result = tuple(size + a + b for size, (a, b) in zip(shape, around, strict=True))
    if padded[0] == 0 or not 2 <= len(shape) <= 4:
        raise fail(
            "HG010", name, f"Pad of data of shape {list(shape)} along axes {padded}.",
            "Supported: all axes but the first, of at most 4 axes.",
        )  # fmt: skip
    if len(shape) == 4 and padded == [1, 2]:  # channels last already
        (top, bottom), (left, right) = around[1:3]
        return [(Pad((top, left, bottom, right), value), result)]
    if len(shape) == 2:
        return [*_wider((shape[0], 1, 1, shape[1]), around[1], value)[:-1], (Reshape(), result)]
    data = AxisOrder(shape)
    steps: Imported = []
    image = data.image
    (top, bottom), (left, right) = [(0, 0), *around[2:]][-2:]
    if padded != [1]:
        image = (image[0], image[1] + top + bottom, image[2] + left + right, image[3])
        steps.append((Pad((top, left, bottom, right), value), image))
    return data.around([*steps, *_wider(image, around[1], value)])


def _wider(image: Shape, extra: tuple[int, int], value: float) -> Imported:
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
