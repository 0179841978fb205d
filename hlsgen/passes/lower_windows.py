"""Lowers layers on images (n, height, width, channels): convolutions, pools, and what moves pixels and channels.

All of them work on codes. A border is a code as well: the one that means the border's value. Where no code does, the
input gets new codes of the same values. What moves codes comes in front of operations that still wait (`PendingValue`).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import (
    Accumulator,
    Affine,
    Concat,
    Concatenation,
    Conv,
    ConvInteger,
    Convolution,
    Encoding,
    Fixed,
    IntegerEncoding,
    Linear,
    Pad,
    Pool,
    Pooling,
    Rearrange,
    Repeat,
    Shape,
    Slice,
    ThresholdCount,
    Value,
)
from hlsgen.ir.evaluate import constant_shapes, constants, decode, lead_axes, with_constants
from hlsgen.ir.op_facts import chain_direction, decoded_interval, decoding_direction
from hlsgen.ir.ops import Elementwise
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.lower_linear import Sums, real_sums, whole_sums
from hlsgen.passes.pending_value import NamedOps, PendingValue
from hlsgen.passes.quantization import column_meaning, grid, grid_of_channels, too_wide, whole_zero, zero_shift
from hlsgen.passes.whole_numbers import MOST_BITS

T = TypeVar("T", bound=Elementwise | Encoding)


def convolution(
    builder: GraphBuilder, name: str, op: Conv | ConvInteger, tensor: PendingValue, shape: Shape
) -> PendingValue:
    """Exact sums; padding is with the code that means 0. A kernel of one point is a linear layer."""
    window, weight = op.window, op.weight
    rows, columns = len(weight), weight[0].size
    repeats = window.taps, op.groups
    if isinstance(op, Conv):
        tensor, pad = _with_zero(builder, name, tensor, window.pads)
        scale, zero = (_by_row(part, rows, *repeats) for part in column_meaning(name, tensor.value))
        sums = real_sums(name, tensor.value, weight.reshape(rows, columns), op.scale, scale, zero)
    else:
        own = np.broadcast_to(op.zero_point - whole_zero(name, tensor.value), op.zero_point.shape)
        pad = _one_zero(name, tensor.value, own.astype(np.float64)) if any(window.pads) else 0
        sums = whole_sums(name, tensor.value, weight.reshape(rows, columns), _by_row(own, rows, *repeats))
    result = Value(shape, sums.type, _of_channels(sums))
    if window.taps == 1 and op.groups == 1 and window.strides == (1, 1) and not any(window.pads):
        return builder.add(
            Linear(name, sums.weight, sums.binary, tensor.value, result, sums.lo, sums.hi, (tensor.index,))
        )
    kernel = sums.weight.reshape(weight.shape)
    return builder.add(
        Convolution(
            name, kernel, window, op.groups, pad, sums.binary, tensor.value, result, sums.lo, sums.hi, (tensor.index,)
        )
    )  # fmt: skip


def _of_channels(sums: Sums) -> Accumulator | IntegerEncoding:
    """The meaning with constants of rank 4: one value for each channel."""
    meaning = sums.meaning
    if isinstance(meaning, IntegerEncoding):
        return IntegerEncoding(meaning.dtype, _channels(meaning.offset))
    return Accumulator(meaning.factor, _channels(meaning.offset), _channels(meaning.scale))


def _channels(values: Array) -> Array:
    return np.asarray(values).reshape(1, 1, 1, -1)


def _by_row(values: Array, rows: int, taps: int, groups: int) -> Array:
    """What every row of a kernel meets: (rows or 1, taps * channels of a group) from (channels,)."""
    values = np.asarray(values).reshape(-1)
    if (values == values[0]).all():
        return values[:1].reshape(1, 1)
    own = np.tile(values.reshape(groups, 1, -1), (1, taps, 1)).reshape(groups, -1)
    return np.repeat(own, rows // groups, axis=0)


def _with_zero(
    builder: GraphBuilder, name: str, tensor: PendingValue, pads: tuple[int, ...]
) -> tuple[PendingValue, int]:
    """The codes, and the one of them that means 0 if there is padding; new codes if none does."""
    tensor = _by_channel(builder, name, tensor)
    if not any(pads):
        return tensor, 0
    _, zero = column_meaning(name, tensor.value)
    if (
        (zero == zero[0]).all()
        and zero[0] == np.round(zero[0])
        and tensor.value.type.lo <= zero[0] <= tensor.value.type.hi
    ):
        return tensor, int(zero[0])
    quantizer = grid(tensor.value, []) or grid_of_channels(tensor.value, False)
    if quantizer is None:
        raise fail("HG034", name, "no code of its input means 0, which the padding needs.", "Use a whole zero point.")
    type_ = IntType(min(0, quantizer.type.lo), max(0, quantizer.type.hi))
    return builder.fold_into_producer(f"{name} (input)", tensor, [], replace(quantizer, type=type_)), 0


def _by_channel(builder: GraphBuilder, name: str, tensor: PendingValue) -> PendingValue:
    """With new codes of one scale, if possible, where scale or zero point differ between pixels."""
    items = constants(tensor.value.encoding).values() if isinstance(tensor.value.encoding, Affine) else ()
    if all(size == 1 for a in items for size in a.shape[:-1]):
        return tensor
    quantizer = grid_of_channels(tensor.value, True)
    return tensor if quantizer is None else builder.fold_into_producer(f"{name} (input)", tensor, [], quantizer)


def _one_zero(name: str, value: Value, zero: Array) -> int:
    """The code of padding, which must be the same for all channels. Raises HG034."""
    first = float(zero.reshape(-1)[0])
    if (zero != first).any() or first != np.round(first) or not value.type.lo <= first <= value.type.hi:
        raise fail("HG034", name, "no code of its input means 0, which the padding needs.", "Use one whole zero point.")
    return int(first)


def pooling(builder: GraphBuilder, name: str, op: Pool, tensor: PendingValue, shape: Shape) -> PendingValue:
    """Largest codes, if codes rise with the values, or else largest ranks; or exact sums of codes.

    Operations that never fall may follow the maximum instead of coming before it.
    """
    if op.kind is Reduction.MAX:
        flushed = builder.flushed(tensor)
        usual = builder.attempt(lambda: _maximum(builder, name, op, flushed, shape))
        if isinstance(usual, PendingValue):
            return usual
        (ranked,), _ = builder.to_ranks(name, [flushed], usual)
        return _maximum(builder, name, op, ranked, shape)
    tensor, pad = _with_zero(builder, name, builder.to_codes(name, tensor), op.window.pads)
    value, inputs = tensor.value, (tensor.index,)
    type_ = IntType(op.window.taps * value.type.lo, op.window.taps * value.type.hi)
    if (
        isinstance(value.encoding, IntegerEncoding) and np.dtype(value.encoding.dtype).kind in "iu"
    ):  # the exact sum, which wraps where it is read
        if type_.bits > MOST_BITS:
            raise too_wide(name, type_.bits)
        whole = replace(value.encoding, offset=op.window.taps * value.encoding.offset)
        result = Value(shape, type_, _spatial(name, whole))
        return builder.add(Pooling(name, op.kind, op.window, pad, value, result, inputs))
    scale, zero = column_meaning(name, value)
    shift, count = zero_shift(name, zero), op.window.taps
    offset = -count * np.round(zero * 2.0**shift).astype(np.int64)
    meaning = Accumulator(1 << shift, _channels(offset), _channels(scale * 2.0**-shift))
    result = Value(shape, type_, meaning)
    return builder.add(Pooling(name, op.kind, op.window, pad, value, result, inputs))


def _maximum(builder: GraphBuilder, name: str, op: Pool, tensor: PendingValue, shape: Shape) -> PendingValue:
    if tensor.branches or not _may_follow_maximum(tensor):
        tensor = builder.to_codes(name, tensor)
    value = tensor.value
    check_order(name, value)
    result = Value(shape, value.type, _spatial(name, value.encoding))
    named_ops = tuple((n, _spatial(name, p)) for n, p in tensor.named_ops)
    made = builder.add(Pooling(name, op.kind, op.window, value.type.lo, value, result, (tensor.index,)))
    return replace(made, named_ops=named_ops)


def _may_follow_maximum(tensor: PendingValue) -> bool:
    """Whether the operations never fall on the values of the codes, and are the same for all pixels."""
    if any(size > 1 for op in tensor.ops for own in constant_shapes(op) for size in own[:-1]):
        return False
    return bool(
        chain_direction(tensor.ops, decoded_interval(tensor.value.encoding, tensor.value.type)).never_falls.all()
    )


def check_order(name: str, value: Value) -> None:
    """Refuses codes of which the largest is not that of the largest value. Raises HG022, HG033."""
    if decoding_direction(value.encoding, value.type).never_falls.all():
        return
    if isinstance(value.encoding, IntegerEncoding):
        raise fail(
            "HG033", name, f"its input can leave {value.encoding.dtype}.", "Use narrower weights in front of it."
        )
    raise fail("HG022", name, "the maximum of codes with a negative scale.", "Use a positive scale.")


def _spatial(name: str, item: T) -> T:
    """The item, whose constants must not differ between pixels. Raises HG034."""
    for own in constant_shapes(item):
        if any(size > 1 for size in own[:-1]):
            raise fail("HG034", name, "its input's scale or zero point differs between pixels.", "Use one per channel.")
    return item


def padding(builder: GraphBuilder, name: str, op: Pad, tensor: PendingValue, shape: Shape) -> PendingValue:
    """A border of the code that means the value, or of its rank."""
    flushed = builder.flushed(tensor)
    usual = builder.attempt(lambda: _bordered(builder, name, op, builder.to_codes(name, flushed), shape))
    if isinstance(usual, PendingValue):
        return usual
    (ranked,), border = builder.to_ranks(name, [flushed], usual, op.value)
    return _bordered(builder, name, replace(op, value=float(border)), ranked, shape)


def _bordered(builder: GraphBuilder, name: str, op: Pad, tensor: PendingValue, shape: Shape) -> PendingValue:
    named_ops = tensor.named_ops
    if op.value == 0:
        tensor, code = _with_zero(builder, name, tensor, op.pads)
        result = Value(shape, tensor.value.type, _spatial(name, tensor.value.encoding))
        made = builder.add(Rearrange(name, op, code, tensor.value, result, (tensor.index,)))
        return replace(made, named_ops=named_ops)
    value = tensor.value
    _, zero = column_meaning(name, value)
    scale = np.asarray(getattr(value.encoding, "scale", 1.0), np.float64).ravel()[0]
    code = int(np.round(op.value / scale + zero[0]))
    real = decode(value.encoding, np.full((1,) * len(shape), code))
    if (real != op.value).any() or not value.type.lo <= code <= value.type.hi:
        raise fail("HG034", name, f"no code means {op.value}, the value of the border.", "Pad with a quantized value.")
    result = Value(shape, value.type, _spatial(name, value.encoding))
    return replace(builder.add(Rearrange(name, op, code, value, result, (tensor.index,))), named_ops=named_ops)


def rearrangement(
    builder: GraphBuilder, name: str, op: Repeat | Slice, tensor: PendingValue, shape: Shape
) -> PendingValue:
    """Repeat or Slice of codes, in front of what is still to be done."""
    flushed = builder.flushed(tensor)
    usual = builder.attempt(lambda: _rearranged(builder, name, op, flushed, shape))
    if isinstance(usual, PendingValue):
        return usual
    if flushed.branches:  # a sum, which may become part of an exact one
        raise usual
    (ranked,), _ = builder.to_ranks(name, [flushed], usual)
    return _rearranged(builder, name, op, ranked, shape)


def _rearranged(
    builder: GraphBuilder, name: str, op: Repeat | Slice, tensor: PendingValue, shape: Shape
) -> PendingValue:
    tensor = builder.flushed(tensor)

    def moved(item: T) -> T:
        return _spatial(name, item) if isinstance(op, Repeat) else _sliced(item, op)

    named_ops = tuple((n, moved(p)) for n, p in tensor.named_ops)
    if tensor.branches is not None:
        left, right = (_rearranged(builder, name, op, h, shape) for h in (tensor.branches.left, tensor.branches.right))
        return PendingValue(-1, left.value, named_ops, replace(tensor.branches, left=left, right=right))
    result = Value(shape, tensor.value.type, moved(tensor.value.encoding))
    made = builder.add(Rearrange(name, op, 0, tensor.value, result, (tensor.index,)))
    return replace(made, named_ops=named_ops)


def _sliced(item: T, op: Slice) -> T:
    new = {}
    for key, value in constants(item).items():
        lead = lead_axes(item, key)
        rank = value.ndim - lead
        cuts = [
            slice(*r) if value.shape[lead + n] > 1 else slice(None)
            for n, r in enumerate(op.ranges[len(op.ranges) - rank :])
        ]
        new[key] = value[(slice(None),) * lead + tuple(cuts)]
    return with_constants(item, new)


def concatenation(
    builder: GraphBuilder, name: str, op: Concat, tensor: list[PendingValue], shape: Shape
) -> PendingValue:
    """All codes, or ranks, in one tensor; what they mean may differ from part to part.

    What is still to be done to all parts alike is done behind.
    """
    flushed = [builder.flushed(h) for h in tensor]
    usual = builder.attempt(lambda: _concatenated(builder, name, op, flushed, shape))
    if isinstance(usual, PendingValue):
        return usual
    ranked, _ = builder.to_ranks(name, flushed, usual, by_channel=op.axis < len(shape) - 1)
    return _concatenated(builder, name, op, ranked, shape)


def _concatenated(
    builder: GraphBuilder, name: str, op: Concat, tensor: list[PendingValue], shape: Shape
) -> PendingValue:
    named_ops = (
        None
        if any(h.branches for h in tensor)
        else _alike([h.named_ops for h in tensor], [h.value for h in tensor], op)
    )
    if named_ops is None:
        tensor = [builder.to_codes(name, h) for h in tensor]
        named_ops = tensor[0].named_ops  # a Cast to the float type of all of them, or nothing
    values = [h.value for h in tensor]
    type_ = IntType(min(v.type.lo for v in values), max(v.type.hi for v in values))
    result = Value(shape, type_, _together(name, values, op.axis))
    sources, inputs = tuple(values), tuple(h.index for h in tensor)
    made = builder.add(Concatenation(name, op.axis, sources, result, inputs))
    return replace(made, named_ops=named_ops)


def _alike(parts: list[NamedOps], values: list[Value], op: Concat) -> NamedOps | None:
    """Operations on parts as operations on the whole; None if they differ in more than numbers for each element."""
    if len({tuple(type(p) for _, p in part) for part in parts}) > 1:
        return None
    found: list[tuple[str, Elementwise]] = []
    for same in zip(*parts, strict=True):
        item = _one([p for _, p in same], values, op.axis)
        if item is None:
            return None
        found.append((same[-1][0], item))
    return tuple(found)


def _one(items: list[T], values: list[Value], axis: int) -> T | None:
    """One item for parts along an axis, if they differ in nothing but arrays of one form."""
    first, parts = items[0], dict[str, Array]()
    for item in items[1:]:
        own = {key: value for key, value in vars(item).items() if not isinstance(value, np.ndarray)}
        if own != {key: value for key, value in vars(first).items() if not isinstance(value, np.ndarray)}:
            return None
    for key, value in constants(first).items():
        arrays = [np.asarray(constants(i)[key]) for i in items]
        lead = lead_axes(first, key)
        if len({a.dtype for a in arrays}) > 1 or len({a.shape[:lead] for a in arrays}) > 1:
            return None
        same = all(a.size == prod(a.shape[:lead]) and np.array_equal(a.ravel(), value.ravel()) for a in arrays)
        long = [_along(a, v.shape, axis, lead) for a, v in zip(arrays, values, strict=True)]
        parts[key] = value if same else _joined(long, lead + axis)
    return with_constants(first, parts)


def _together(name: str, values: list[Value], axis: int) -> Encoding:
    """One meaning for parts along an axis. Raises HG034."""
    items = [_affine(v) for v in values]
    found = _one(items, values, axis) if len({type(i) for i in items}) == 1 else None
    if found is None:
        raise fail("HG034", name, "it joins codes of different kinds.", "Quantize all inputs in the same way.")
    return found


def _joined(arrays: list[Array], axis: int) -> Array:
    """One behind the other along an axis; along the others each may have one value for all."""
    wanted = np.broadcast_shapes(*(a.take([0], axis).shape for a in arrays))
    full = [np.broadcast_to(a, (*wanted[:axis], a.shape[axis], *wanted[axis + 1 :])) for a in arrays]
    return np.concatenate(full, axis)


def _along(array: Array, shape: Shape, axis: int, lead: int) -> Array:
    """With the tensor's rank behind `lead` axes, and its length along the axis."""
    own = array.shape[lead:]
    array = array.reshape(array.shape[:lead] + (1,) * (len(shape) - len(own)) + own)
    wanted: list[int] = list(array.shape)
    wanted[lead + axis] = shape[axis]
    return np.broadcast_to(array, wanted)


def _affine(value: Value) -> Encoding:
    """What codes mean with a scale and a zero point, where that is the same for all of them."""
    item = value.encoding
    match item:
        case Fixed(fraction):
            return Affine(np.array([2.0**-fraction], np.float32), np.zeros(1, np.float32))
        case ThresholdCount(scale, bias):
            made = Affine(np.array([scale], np.float32), np.array([-bias / scale], np.float32))
        case _:
            return item
    codes = np.arange(value.type.lo, value.type.hi + 1) if value.type.bits <= 16 else np.zeros(0, np.int64)
    same = len(codes) > 0 and bool((decode(made, codes) == decode(item, codes)).all())
    return made if same else item
