"""Operators that move codes: shapes, parts, borders and joins of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.index_runs import runs
from hlsgen.frontend.ops_gather import MAX_PARTS
from hlsgen.frontend.ops_image import border
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.ir import Concat, Repeat, Reshape, Shape, Slice, Transpose
from hlsgen.numerics.fixed import Array, round_away


def reshape(node: OperatorNode) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the file has the shape of the result. Raises HG014, HG023."""
    node.finish(node.value(0), node.tensor(0).shape)


def transpose(node: OperatorNode) -> None:
    """TRANSPOSE. Raises HG013, HG014, HG020, HG023, HG026."""
    shape, order = node.tensor(0).shape, node.numbers(1, "the permutation")
    rank = len(shape)
    axes = tuple(a + rank if a < 0 else a for a in order)
    if sorted(axes) != list(range(rank)):
        text = f"the permutation is {order} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, "It must name each axis once.")
    result = tuple(shape[a] for a in axes)
    node.finish(node.step(Transpose(axes), result, node.value(0)), result)


def concatenation(node: OperatorNode) -> None:
    """CONCATENATION of computed tensors of the same scale. Raises HG013 - HG015, HG022 - HG024, HG026."""
    tensors = [node.tensor(i) for i in range(len(node.operator.inputs))]
    result = node.codes(node.result())
    if not tensors:
        raise fail("HG014", node.name, "CONCATENATION without inputs.", "Export the model again.")
    if any(node.codes(tensor) != result for tensor in tensors):
        raise node.refused("inputs and result have different types, scales or zero points", "Give all the same.")
    if node.options["fused_activation_function"] != "NONE":
        text = f"CONCATENATION with the fused activation {node.options['fused_activation_function']}."
        raise fail("HG013", node.name, text, "Supported: NONE.")
    axis = _axis(node, int(node.options["axis"]), len(tensors[0].shape))
    _join(node, [node.value(i) for i in range(len(tensors))], [t.shape for t in tensors], axis)


def pack(node: OperatorNode) -> None:
    """PACK: tensors along a new axis. Raises HG013 - HG015, HG023."""
    shapes = [node.tensor(i).shape for i in range(len(node.operator.inputs))]
    axis = _axis(node, int(node.options["axis"]), len(shapes[0]) + 1 if shapes else 0)
    separate = [(*shape[:axis], 1, *shape[axis:]) for shape in shapes]
    values = [node.step(Reshape(), shape, node.value(i)) for i, shape in enumerate(separate)]
    _join(node, values, separate, axis)


def _join(node: OperatorNode, values: Sequence[int], shapes: Sequence[Shape], axis: int) -> None:
    first = shapes[0]
    if any(s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :] for s in shapes):
        text = f"the shapes {[list(s) for s in shapes]} differ in more than axis {axis}."
        raise fail("HG023", node.name, text, f"They may differ along axis {axis} only.")
    result = (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])
    value = values[0] if len(values) == 1 else node.step(Concat(axis), result, *values)
    node.finish(value, result)


def pad(node: OperatorNode) -> None:
    """PAD with the zero point of the result. Raises HG013, HG014, HG020, HG022 - HG024, HG026."""
    data, result = node.codes(node.tensor(0)), node.codes(node.result())
    if data != result:
        raise node.refused("data and result have different types, scales or zero points", "Give both the same.")
    _pad(node, result.zero_point)


def pad_v2(node: OperatorNode) -> None:
    """PADV2 with a constant code. Raises HG013, HG014, HG020, HG022 - HG024, HG026."""
    data, result = node.codes(node.tensor(0)), node.codes(node.result())
    if data != result or node.codes(node.tensor(2)) != result:
        raise node.refused("data and result have different types, scales or zero points", "Give both the same.")
    codes = node.constant(2, "the code of the border")
    if codes.size != 1:
        raise fail("HG023", node.name, f"the border has {codes.size} codes.", "Give one.")
    _pad(node, int(codes.reshape(())))


def _pad(node: OperatorNode, code: int) -> None:
    shape, margins = node.tensor(0).shape, node.constant(1, "the padding")
    if margins.shape != (len(shape), 2) or margins.dtype.kind not in "iu" or (margins < 0).any():
        text = f"the padding is {margins.tolist()} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, "It needs two numbers for each axis, 0 or more.")
    sides = [(int(first), int(last)) for first, last in margins]
    result = tuple(size + first + last for size, (first, last) in zip(shape, sides, strict=True))
    node.finish(node.chain(node.value(0), border(node.name, shape, sides, code)), result)


# --------------------------------------------------------------------------- parts


def split(node: OperatorNode) -> None:
    """SPLIT: axis, data. Raises HG013, HG014, HG020, HG023, HG026."""
    shape, parts = node.tensor(1).shape, len(node.operator.outputs)
    axis = _axis(node, _number(node, 0, "the axis"), len(shape))
    if shape[axis] % parts:
        text = f"axis {axis} of {shape[axis]} elements does not divide into {parts} equal parts."
        raise fail("HG013", node.name, text, "Use SPLIT_V with the sizes of the parts.")
    _split(node, 1, axis, [shape[axis] // parts] * parts)


def split_v(node: OperatorNode) -> None:
    """SPLIT_V: data, sizes, axis; one size may be -1. Raises HG013, HG014, HG020, HG023, HG026."""
    shape, sizes = node.tensor(0).shape, node.numbers(1, "the sizes")
    axis = _axis(node, _number(node, 2, "the axis"), len(shape))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[axis] - sum(sizes) - 1
    if len(sizes) != len(node.operator.outputs) or min(sizes, default=0) < 1 or sum(sizes) != shape[axis]:
        text = f"the sizes are {sizes} for {len(node.operator.outputs)} parts of axis {axis} of {list(shape)}."
        raise fail("HG013", node.name, text, "Give a size of 1 or more for each part, which sum up to the axis.")
    _split(node, 0, axis, sizes)


def unpack(node: OperatorNode) -> None:
    """UNPACK: a part for each element of an axis. Raises HG013, HG014, HG023."""
    shape = node.tensor(0).shape
    axis = _axis(node, int(node.options["axis"]), len(shape))
    if shape[axis] != len(node.operator.outputs):
        text = f"{len(node.operator.outputs)} parts of axis {axis} of shape {list(shape)}."
        raise fail("HG013", node.name, text, "Give a part for each element of the axis.")
    _split(node, 0, axis, [1] * shape[axis])


def _split(node: OperatorNode, position: int, axis: int, sizes: Sequence[int]) -> None:
    shape, value, first = node.tensor(position).shape, node.value(position), 0
    for number, size in enumerate(sizes):
        node.finish(*selection(node, value, shape, {axis: np.arange(first, first + size)}), number)
        first += size


def slice_(node: OperatorNode) -> None:
    """SLICE: data, begins, sizes; -1 is all that remains. Raises HG013, HG014, HG020, HG023, HG026."""
    shape = node.tensor(0).shape
    begins, sizes = node.numbers(1, "the begins"), node.numbers(2, "the sizes")
    ends = [n if size == -1 else b + size for n, b, size in zip(shape, begins, sizes, strict=False)]
    fits = len(begins) == len(sizes) == len(shape)
    if not fits or not all(0 <= b < e <= n for b, e, n in zip(begins, ends, shape, strict=True)):
        text = f"begins {begins} and sizes {sizes} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, "Each axis needs a part of 1 element or more inside the data.")
    indices = {axis: np.arange(b, e) for axis, (b, e) in enumerate(zip(begins, ends, strict=True))}
    node.finish(*selection(node, node.value(0), shape, indices))


def strided_slice(node: OperatorNode) -> None:
    """STRIDED_SLICE: data, begins, ends, strides. Raises HG013, HG014, HG020, HG023, HG026."""
    shape, options = node.tensor(0).shape, node.options
    begins, ends, strides = (node.numbers(i, f"input {i}") for i in (1, 2, 3))
    if options["ellipsis_mask"] or options["new_axis_mask"]:
        text = "STRIDED_SLICE with ellipsis_mask or new_axis_mask."
        raise fail("HG013", node.name, text, "Supported: begin_mask, end_mask, shrink_axis_mask, offset.")
    if not len(begins) == len(ends) == len(strides) <= len(shape) or 0 in strides:
        text = f"begins {begins}, ends {ends}, strides {strides} for data of shape {list(shape)}."
        raise fail("HG013", node.name, text, "They need one number for each sliced axis; strides must not be 0.")
    by_axis: dict[int, Array] = {}
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        size = shape[axis]
        if options["shrink_axis_mask"] >> axis & 1:
            indices = range(begin % size, begin % size + 1) if -size <= begin < size else range(0)
        else:
            first = None if options["begin_mask"] >> axis & 1 else begin
            last = begin + end if options["offset"] else end
            last_or_none = None if options["end_mask"] >> axis & 1 else last
            indices = range(*slice(first, last_or_none, stride).indices(size))
        if not indices:
            text = f"no element of axis {axis} of shape {list(shape)} is from {begin} to {end} by {stride}."
            raise fail("HG013", node.name, text, "At least one element must remain.")
        by_axis[axis] = np.array(indices)
    node.finish(*selection(node, node.value(0), shape, by_axis))


def gather(node: OperatorNode) -> None:
    """GATHER with constant indices. Raises HG004, HG013, HG014, HG020, HG023, HG026."""
    shape, indices = node.tensor(0).shape, np.array(node.numbers(1, "the indices"), np.int64)
    axis = _axis(node, int(node.options["axis"]), len(shape))
    if node.options["batch_dims"] or not indices.size or indices.min() < 0 or indices.max() >= shape[axis]:
        text = f"GATHER of the indices {indices.tolist()[:8]} from axis {axis} of {list(shape)}."
        raise fail("HG013", node.name, text, "Supported: indices of elements of the axis, batch_dims 0.")
    node.finish(*selection(node, node.value(0), shape, {axis: indices}))


def resize_nearest_neighbor(node: OperatorNode) -> None:
    """RESIZE_NEAREST_NEIGHBOR, by the positions of the runtimes in float32. Raises HG004, HG013, HG014, HG023."""
    shape, result = node.tensor(0).shape, node.result().shape
    if len(shape) != 4 or len(result) != 4 or (shape[0], shape[3]) != (result[0], result[3]) or not all(result):
        text = f"data of shape {list(shape)} to shape {list(result)}."
        raise fail("HG023", node.name, text, "It needs images, channels last, with as many channels.")
    value = node.value(0)
    for axis in (1, 2):
        sources = _nearest(shape[axis], result[axis], node.options["align_corners"], node.options["half_pixel_centers"])
        value, shape = _repeated(node, value, shape, axis, sources)
    node.finish(value, shape)


def _nearest(size: int, out: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """The index of the source of each element: GetNearestNeighbor of reference/resize_nearest_neighbor.h."""
    aligned = align_corners and out > 1
    scale = np.float32(size - 1) / np.float32(out - 1) if aligned else np.float32(size) / np.float32(out)
    positions = (np.arange(out, dtype=np.float32) + np.float32(0.5 if half_pixel_centers else 0)) * scale
    indices = round_away(positions.astype(np.float64)) if align_corners else np.floor(positions)
    return np.clip(indices.astype(np.int64), 0, size - 1)


def _repeated(node: OperatorNode, value: int, shape: Shape, axis: int, sources: Array) -> tuple[int, Shape]:
    """Elements of axis 1 or 2 of an image in rising order, some of them repeated."""
    counts = np.bincount(sources, minlength=shape[axis])
    times = int(counts.max())
    if times > 1:
        shape = (*shape[:axis], shape[axis] * times, *shape[axis + 1 :])
        value = node.step(Repeat(times, 1) if axis == 1 else Repeat(1, times), shape, value)
        repetition = np.concatenate([np.arange(n) for n in counts])
        sources = sources * times + repetition
    return selection(node, value, shape, {axis: sources})


def selection(node: OperatorNode, value: int, shape: Shape, indices: dict[int, Array]) -> tuple[int, Shape]:
    """(value, shape) of the elements `indices` along each axis. Raises HG004."""
    parts = {axis: runs(chosen) for axis, chosen in indices.items()}
    ranges = [(0, size, 1) for size in shape]
    for axis, axis_runs in parts.items():
        if len(axis_runs) == 1:
            ranges[axis] = axis_runs[0]
    value, shape = _sliced(node, value, shape, ranges)
    for axis, axis_runs in parts.items():
        if len(axis_runs) == 1:
            continue
        if len(axis_runs) > MAX_PARTS:
            text = f"the elements of axis {axis} form {len(axis_runs)} separate runs."
            raise fail("HG004", node.name, text, f"At most {MAX_PARTS} are supported.")
        all_elements = [(0, size, 1) for size in shape]
        slices = [
            _sliced(node, value, shape, [*all_elements[:axis], run, *all_elements[axis + 1 :]])[0] for run in axis_runs
        ]
        shape = (*shape[:axis], len(indices[axis]), *shape[axis + 1 :])
        value = node.step(Concat(axis), shape, *slices)
    return value, shape


def _sliced(node: OperatorNode, value: int, shape: Shape, ranges: list[tuple[int, int, int]]) -> tuple[int, Shape]:
    if ranges == [(0, size, 1) for size in shape]:
        return value, shape
    result = tuple(len(range(*r)) for r in ranges)
    return node.step(Slice(tuple(ranges)), result, value), result


# --------------------------------------------------------------------------- parameters


def _number(node: OperatorNode, position: int, subject: str) -> int:
    numbers = node.numbers(position, subject)
    if len(numbers) != 1:
        raise fail("HG023", node.name, f"{subject} has {len(numbers)} elements.", "Give one number.")
    return numbers[0]


def _axis(node: OperatorNode, axis: int, rank: int) -> int:
    """The axis as a number that is not negative. Raises HG013."""
    if not -rank <= axis < rank:
        raise fail("HG013", node.name, f"the axis is {axis} for {rank} axes.", f"Supported: {-rank} to {rank - 1}.")
    return axis % rank
