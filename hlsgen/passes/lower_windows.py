"""Lowers layers on images (n, height, width, channels): convolutions, pools, and moves of pixels and channels.

All of them work on codes. A border is a code as well: the one that represents the border's value. If there is no
such code, the input gets new codes of the same values. Moves of codes come before pending operations (`PendingValue`).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from hlsgen import ir
from hlsgen.diagnostics import fail
from hlsgen.ir.evaluate import constant_shapes, constants, decode, lead_axes, with_constants
from hlsgen.ir.op_facts import chain_direction, decoded_interval, decoding_direction
from hlsgen.ir.ops import Elementwise
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.integer_pairs import MAX_BITS
from hlsgen.passes.lower_linear import Sums, integer_sums, real_sums
from hlsgen.passes.pending_value import NamedOps, PendingValue
from hlsgen.passes.quantization import (
    column_scales,
    fixed_point,
    grid,
    grid_of_channels,
    integer_offset,
    too_wide,
    zero_shift,
)

T = TypeVar("T", bound=Elementwise | ir.Encoding)


def convolution(
    builder: GraphBuilder, name: str, op: ir.Conv | ir.ConvInteger, tensor: PendingValue, shape: ir.Shape
) -> PendingValue:
    """Add a convolution as exact sums, padded with the code of 0. A 1 x 1 kernel becomes a linear layer."""
    window, weight = op.window, op.weight
    rows, columns = len(weight), weight[0].size
    repeats = window.taps, op.groups
    if isinstance(op, ir.Conv):
        tensor, pad = _with_zero(builder, name, tensor, window.pads)
        scale, zero_points = (_by_row(constant, rows, *repeats) for constant in column_scales(name, tensor.value))
        sums = real_sums(name, tensor.value, weight.reshape(rows, columns), op.scale, scale, zero_points)
    else:
        zero_point = np.broadcast_to(op.zero_point - integer_offset(name, tensor.value), op.zero_point.shape)
        pad = _padding_code(name, tensor.value, zero_point.astype(np.float64)) if any(window.pads) else 0
        zero_points = _by_row(zero_point, rows, *repeats)
        sums = integer_sums(name, tensor.value, weight.reshape(rows, columns), zero_points, op.dtype)
    result = ir.Value(shape, sums.type, _channel_encoding(sums))
    if window.taps == 1 and op.groups == 1 and window.strides == (1, 1) and not any(window.pads):
        return builder.add(
            ir.Linear(name, sums.weight, sums.binary, tensor.value, result, sums.lo, sums.hi, (tensor.index,))
        )
    kernel = sums.weight.reshape(weight.shape)
    layer = ir.Convolution(
        name, kernel, window, op.groups, pad, sums.binary, tensor.value, result, sums.lo, sums.hi, (tensor.index,)
    )
    return builder.add(layer)


def _channel_encoding(sums: Sums) -> ir.Accumulator | ir.IntegerEncoding:
    """The sums' encoding with constants of rank 4: one value for each channel."""
    encoding = sums.encoding
    if isinstance(encoding, ir.IntegerEncoding):
        return ir.IntegerEncoding(encoding.dtype, _channels(encoding.offset))
    return ir.Accumulator(encoding.factor, _channels(encoding.offset), _channels(encoding.scale))


def _channels(values: Array) -> Array:
    return np.asarray(values).reshape(1, 1, 1, -1)


def _by_row(values: Array, rows: int, taps: int, groups: int) -> Array:
    """The constant of each element of a kernel row: (rows or 1, taps * channels of a group) from (channels,)."""
    values = np.asarray(values).reshape(-1)
    if (values == values[0]).all():
        return values[:1].reshape(1, 1)
    group_rows = np.tile(values.reshape(groups, 1, -1), (1, taps, 1)).reshape(groups, -1)
    return np.repeat(group_rows, rows // groups, axis=0)


def _with_zero(
    builder: GraphBuilder, name: str, tensor: PendingValue, pads: tuple[int, ...]
) -> tuple[PendingValue, int]:
    """The codes and, if there is padding, the code of 0; new codes if none represents 0."""
    tensor = _by_channel(builder, name, tensor)
    if not any(pads):
        return tensor, 0
    _, zero_point = column_scales(name, tensor.value)
    if (
        (zero_point == zero_point[0]).all()
        and zero_point[0] == np.round(zero_point[0])
        and tensor.value.type.lo <= zero_point[0] <= tensor.value.type.hi
    ):
        return tensor, int(zero_point[0])
    quantizer = grid(tensor.value, []) or grid_of_channels(tensor.value, False)
    if quantizer is None:
        text = "no code of its input represents 0, which the padding needs."
        raise fail("HG034", name, text, "Use an integer zero point.")
    type_ = IntType(min(0, quantizer.type.lo), max(0, quantizer.type.hi))
    return builder.fold_into_producer(f"{name} (input)", tensor, [], replace(quantizer, type=type_)), 0


def _by_channel(builder: GraphBuilder, name: str, tensor: PendingValue) -> PendingValue:
    """Requantize to codes of one scale, if possible, where scale or zero point differ between pixels."""
    arrays = constants(tensor.value.encoding).values() if isinstance(tensor.value.encoding, ir.Affine) else ()
    if all(size == 1 for array in arrays for size in array.shape[:-1]):
        return tensor
    quantizer = grid_of_channels(tensor.value, True)
    return tensor if quantizer is None else builder.fold_into_producer(f"{name} (input)", tensor, [], quantizer)


def _padding_code(name: str, value: ir.Value, zero_points: Array) -> int:
    """The code of padding, which must be the same for all channels. Raises HG034."""
    first = float(zero_points.reshape(-1)[0])
    if (zero_points != first).any() or first != np.round(first) or not value.type.lo <= first <= value.type.hi:
        text = "no code of its input represents 0, which the padding needs."
        raise fail("HG034", name, text, "Use one integer zero point.")
    return int(first)


def pooling(builder: GraphBuilder, name: str, op: ir.Pool, tensor: PendingValue, shape: ir.Shape) -> PendingValue:
    """Add a pool: exact sums of codes, or largest codes. If codes do not rise with the values, ranks replace them.

    Pending operations that never fall may follow the maximum instead of coming before it.
    """
    if op.kind is Reduction.MAX:
        flushed = builder.flush(tensor)
        pooled = builder.attempt(lambda: _maximum(builder, name, op, flushed, shape))
        if isinstance(pooled, PendingValue):
            return pooled
        (ranked,), _ = builder.to_ranks(name, [flushed], pooled)
        return _maximum(builder, name, op, ranked, shape)
    tensor, pad = _with_zero(builder, name, _summands(builder, name, tensor), op.window.pads)
    value, inputs = tensor.value, (tensor.index,)
    type_ = IntType(op.window.taps * value.type.lo, op.window.taps * value.type.hi)
    if isinstance(value.encoding, ir.IntegerEncoding) and np.dtype(value.encoding.dtype).kind in "iu":
        # The sum is exact; it wraps when it is decoded.
        if type_.bits > MAX_BITS:
            raise too_wide(name, type_.bits)
        sum_encoding = replace(value.encoding, offset=op.window.taps * value.encoding.offset)
        result = ir.Value(shape, type_, _same_for_pixels(name, sum_encoding))
        return builder.add(ir.Pooling(name, op.kind, op.window, pad, value, result, inputs))
    scale, zero_point = column_scales(name, value, fixed=True)
    shift, count = zero_shift(name, zero_point), op.window.taps
    offset = -count * np.round(zero_point * 2.0**shift).astype(np.int64)
    encoding = ir.Accumulator(1 << shift, _channels(offset), _channels(scale * 2.0**-shift))
    result = ir.Value(shape, type_, encoding)
    return builder.add(ir.Pooling(name, op.kind, op.window, pad, value, result, inputs))


def _summands(builder: GraphBuilder, name: str, tensor: PendingValue) -> PendingValue:
    """The tensor as codes; float32 values of a function of codes in fixed point, exactly."""
    flushed = builder.flush(tensor)
    codes = builder.attempt(lambda: builder.to_codes(name, flushed))
    if isinstance(codes, PendingValue):
        return codes
    quantizer = None if flushed.branches else fixed_point(flushed.value, flushed.ops)
    if quantizer is None:
        raise codes
    return builder.add_map(flushed.named_ops[-1][0], flushed, flushed.ops, quantizer)


def _maximum(builder: GraphBuilder, name: str, op: ir.Pool, tensor: PendingValue, shape: ir.Shape) -> PendingValue:
    if tensor.branches or not _may_follow_maximum(tensor):
        tensor = builder.to_codes(name, tensor)
    value = tensor.value
    check_order(name, value)
    result = ir.Value(shape, value.type, _same_for_pixels(name, value.encoding))
    named_ops = tuple((n, _same_for_pixels(name, p)) for n, p in tensor.named_ops)
    pooled = builder.add(ir.Pooling(name, op.kind, op.window, value.type.lo, value, result, (tensor.index,)))
    return replace(pooled, named_ops=named_ops)


def _may_follow_maximum(tensor: PendingValue) -> bool:
    """True if the operations never fall on the values of the codes, and are the same for all pixels."""
    if any(size > 1 for op in tensor.ops for shape in constant_shapes(op) for size in shape[:-1]):
        return False
    values = decoded_interval(tensor.value.encoding, tensor.value.type)
    return bool(chain_direction(tensor.ops, values).never_falls.all())


def check_order(name: str, value: ir.Value) -> None:
    """Check that the largest code represents the largest value. Raises HG022, HG033."""
    if decoding_direction(value.encoding, value.type).never_falls.all():
        return
    if isinstance(value.encoding, ir.IntegerEncoding):
        raise fail("HG033", name, f"its input can leave {value.encoding.dtype}.", "Use narrower weights before it.")
    raise fail("HG022", name, "the maximum of codes with a negative scale.", "Use a positive scale.")


def _same_for_pixels(name: str, item: T) -> T:
    """`item`, whose constants must not differ between pixels. Raises HG034."""
    for shape in constant_shapes(item):
        if any(size > 1 for size in shape[:-1]):
            raise fail("HG034", name, "its input's scale or zero point differs between pixels.", "Use one per channel.")
    return item


def padding(builder: GraphBuilder, name: str, op: ir.Pad, tensor: PendingValue, shape: ir.Shape) -> PendingValue:
    """Add a border of the code of the value, or of its rank."""
    flushed = builder.flush(tensor)
    bordered = builder.attempt(lambda: _bordered(builder, name, op, builder.to_codes(name, flushed), shape))
    if isinstance(bordered, PendingValue):
        return bordered
    (ranked,), border = builder.to_ranks(name, [flushed], bordered, op.value)
    return _bordered(builder, name, replace(op, value=float(border)), ranked, shape)


def _bordered(builder: GraphBuilder, name: str, op: ir.Pad, tensor: PendingValue, shape: ir.Shape) -> PendingValue:
    named_ops = tensor.named_ops
    if op.value == 0:
        tensor, code = _with_zero(builder, name, tensor, op.pads)
        result = ir.Value(shape, tensor.value.type, _same_for_pixels(name, tensor.value.encoding))
        bordered = builder.add(ir.Rearrange(name, op, code, tensor.value, result, (tensor.index,)))
        return replace(bordered, named_ops=named_ops)
    value = tensor.value
    _, zero_point = column_scales(name, value)
    scale = np.asarray(getattr(value.encoding, "scale", 1.0), np.float64).ravel()[0]
    code = int(np.round(op.value / scale + zero_point[0]))
    border_value = decode(value.encoding, np.full((1,) * len(shape), code))
    if (border_value != op.value).any() or not value.type.lo <= code <= value.type.hi:
        text = f"no code represents {op.value}, the value of the border."
        raise fail("HG034", name, text, "Pad with a quantized value.")
    result = ir.Value(shape, value.type, _same_for_pixels(name, value.encoding))
    return replace(builder.add(ir.Rearrange(name, op, code, value, result, (tensor.index,))), named_ops=named_ops)


def rearrangement(
    builder: GraphBuilder, name: str, op: ir.Repeat | ir.Slice, tensor: PendingValue, shape: ir.Shape
) -> PendingValue:
    """Add a Repeat or Slice of codes, before their pending operations."""
    flushed = builder.flush(tensor)
    moved = builder.attempt(lambda: _rearranged(builder, name, op, flushed, shape))
    if isinstance(moved, PendingValue):
        return moved
    if flushed.branches:  # a sum, which may become part of an exact sum
        raise moved
    (ranked,), _ = builder.to_ranks(name, [flushed], moved)
    return _rearranged(builder, name, op, ranked, shape)


def _rearranged(
    builder: GraphBuilder, name: str, op: ir.Repeat | ir.Slice, tensor: PendingValue, shape: ir.Shape
) -> PendingValue:
    tensor = builder.flush(tensor)

    def move(item: T) -> T:
        return _same_for_pixels(name, item) if isinstance(op, ir.Repeat) else _slice_constants(item, op)

    named_ops = tuple((n, move(p)) for n, p in tensor.named_ops)
    if tensor.branches is not None:
        operand_a, operand_b = (
            _rearranged(builder, name, op, branch, shape) for branch in (tensor.branches.left, tensor.branches.right)
        )
        return PendingValue(-1, operand_a.value, named_ops, replace(tensor.branches, left=operand_a, right=operand_b))
    result = ir.Value(shape, tensor.value.type, move(tensor.value.encoding))
    rearranged = builder.add(ir.Rearrange(name, op, 0, tensor.value, result, (tensor.index,)))
    return replace(rearranged, named_ops=named_ops)


def _slice_constants(item: T, op: ir.Slice) -> T:
    sliced = {}
    for key, value in constants(item).items():
        lead = lead_axes(item, key)
        rank = value.ndim - lead
        cuts = [
            slice(*r) if value.shape[lead + n] > 1 else slice(None)
            for n, r in enumerate(op.ranges[len(op.ranges) - rank :])
        ]
        sliced[key] = value[(slice(None),) * lead + tuple(cuts)]
    return with_constants(item, sliced)


def concatenation(
    builder: GraphBuilder, name: str, op: ir.Concat, tensors: list[PendingValue], shape: ir.Shape
) -> PendingValue:
    """Concatenate all codes, or ranks; their encoding may differ between the parts.

    Pending operations common to all parts are applied after the concatenation.
    """
    flushed = [builder.flush(tensor) for tensor in tensors]
    concatenated = builder.attempt(lambda: _concatenated(builder, name, op, flushed, shape))
    if isinstance(concatenated, PendingValue):
        return concatenated
    ranked, _ = builder.to_ranks(name, flushed, concatenated, by_channel=op.axis < len(shape) - 1)
    return _concatenated(builder, name, op, ranked, shape)


def _concatenated(
    builder: GraphBuilder, name: str, op: ir.Concat, tensors: list[PendingValue], shape: ir.Shape
) -> PendingValue:
    named_ops = (
        None
        if any(tensor.branches for tensor in tensors)
        else _merge_named_ops([tensor.named_ops for tensor in tensors], [tensor.value for tensor in tensors], op)
    )
    if named_ops is None:
        tensors = [builder.to_codes(name, tensor) for tensor in tensors]
        named_ops = tensors[0].named_ops  # a Cast to the float type of all of them, or nothing
    values = [tensor.value for tensor in tensors]
    type_ = IntType(min(v.type.lo for v in values), max(v.type.hi for v in values))
    result = ir.Value(shape, type_, _merge_encodings(name, values, op.axis))
    sources, inputs = tuple(values), tuple(tensor.index for tensor in tensors)
    concatenated = builder.add(ir.Concatenation(name, op.axis, sources, result, inputs))
    return replace(concatenated, named_ops=named_ops)


def _merge_named_ops(parts: list[NamedOps], values: list[ir.Value], op: ir.Concat) -> NamedOps | None:
    """The parts' operations as operations on the whole.

    Returns None if they differ in more than the constants of elements.
    """
    if len({tuple(type(p) for _, p in part) for part in parts}) > 1:
        return None
    merged: list[tuple[str, Elementwise]] = []
    for corresponding in zip(*parts, strict=True):
        item = _merge_items([p for _, p in corresponding], values, op.axis)
        if item is None:
            return None
        merged.append((corresponding[-1][0], item))
    return tuple(merged)


def _merge_items(items: list[T], values: list[ir.Value], axis: int) -> T | None:
    """One item for parts along an axis, or None if they differ in more than arrays of the same kind."""
    first = items[0]
    merged: dict[str, Array] = {}
    for item in items[1:]:
        scalars = {key: value for key, value in vars(item).items() if not isinstance(value, np.ndarray)}
        if scalars != {key: value for key, value in vars(first).items() if not isinstance(value, np.ndarray)}:
            return None
    for key, value in constants(first).items():
        arrays = [np.asarray(constants(i)[key]) for i in items]
        lead = lead_axes(first, key)
        if len({array.dtype for array in arrays}) > 1 or len({array.shape[:lead] for array in arrays}) > 1:
            return None
        uniform = all(
            array.size == prod(array.shape[:lead]) and np.array_equal(array.ravel(), value.ravel()) for array in arrays
        )
        expanded = [_expand(array, value.shape, axis, lead) for array, value in zip(arrays, values, strict=True)]
        merged[key] = value if uniform else _concatenate(expanded, lead + axis)
    return with_constants(first, merged)


def _merge_encodings(name: str, values: list[ir.Value], axis: int) -> ir.Encoding:
    """One encoding for parts along an axis. Raises HG034."""
    encodings = [_affine(v) for v in values]
    merged = _merge_items(encodings, values, axis) if len({type(encoding) for encoding in encodings}) == 1 else None
    if merged is None:
        raise fail(
            "HG034", name, "it concatenates codes of different encodings.", "Quantize all inputs in the same way."
        )
    return merged


def _concatenate(arrays: list[Array], axis: int) -> Array:
    """Concatenate along an axis; along the other axes an array may have length 1 and is then repeated."""
    common_shape = np.broadcast_shapes(*(array.take([0], axis).shape for array in arrays))
    full = [
        np.broadcast_to(array, (*common_shape[:axis], array.shape[axis], *common_shape[axis + 1 :])) for array in arrays
    ]
    return np.concatenate(full, axis)


def _expand(array: Array, shape: ir.Shape, axis: int, lead: int) -> Array:
    """Expand an array to the tensor's rank after `lead` axes, and to the tensor's length along the axis."""
    tensor_axes = array.shape[lead:]
    array = array.reshape(array.shape[:lead] + (1,) * (len(shape) - len(tensor_axes)) + tensor_axes)
    expanded: list[int] = list(array.shape)
    expanded[lead + axis] = shape[axis]
    return np.broadcast_to(array, expanded)


def _affine(value: ir.Value) -> ir.Encoding:
    """An equivalent `Affine` encoding, if the codes have one."""
    encoding = value.encoding
    match encoding:
        case ir.Fixed(fraction):
            return ir.Affine(np.array([2.0**-fraction], np.float32), np.zeros(1, np.float32))
        case ir.ThresholdCount(scale, bias):
            affine = ir.Affine(np.array([scale], np.float32), np.array([-bias / scale], np.float32))
        case _:
            return encoding
    codes = np.arange(value.type.lo, value.type.hi + 1) if value.type.bits <= 16 else np.zeros(0, np.int64)
    equal = len(codes) > 0 and bool((decode(affine, codes) == decode(encoding, codes)).all())
    return affine if equal else encoding
