"""Nodes that take several computed tensors: arithmetic of two branches, Where, Concat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend import ops_bytes, ops_compare_select, two_inputs
from hlsgen.frontend.constant_folding import Const, ConstInputs, Dynamic, Tensor
from hlsgen.frontend.dialect_integer import dequantizer_of, quantizer_of
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.ops_broadcast import broadcast, grown
from hlsgen.frontend.ops_image import border_along
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Binary, Concat, Pack, Select, Shape
from hlsgen.ir.ops import BinaryKind, Cast, Compare, Constant, Pair, Relation, Where
from hlsgen.numerics.fixed import Array

#: Types that hold the differences of integers, and of booleans.
_DIFFERENCES = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("int32", "uint32"), "int64"),
}


def joined(kind: BinaryKind) -> Callable[[NodeContext], Imported]:
    """The importing function of an operator that computes `kind` of two tensors."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG015, HG023, HG026."""
        _check_one_type(node)
        if kind is BinaryKind.DIV and np.dtype(node.dtype).kind != "f":
            return ops_bytes.of_two(ops_bytes.divided)(node)
        if any(c is not None for c in node.constants[:2]):
            raise _not_two(node)
        shape, before = _two(node)
        return Imported(([],), before, (Binary(kind), shape))

    return convert


def compared(relation: Relation) -> Callable[[NodeContext], Imported]:
    """The importing function of a comparison of two tensors: the sign of their difference, which is exact.

    That of floats is rounded, and has the right sign: only equal numbers have the difference 0.
    """

    def convert(node: NodeContext) -> Imported:
        """Raises HG015, HG023, HG026."""
        _check_one_type(node)
        if node.dtype == "bool" and relation is not Relation.EQUAL:
            raise fail("HG026", node.name, f"{node.op_type} of booleans.", "Comparisons take numbers.")
        shape, before = _two(node)
        wide = _DIFFERENCES.get(node.dtype, node.dtype)
        if wide != node.dtype:
            before = tuple([(Cast(wide), t.shape or ()), *ops] for t, ops in zip(node.computed, before, strict=True))
        zero = np.zeros((1,) * len(shape), wide)
        return Imported(([(Compare(relation, zero), shape)],), before, (Binary(BinaryKind.SUB), shape))

    return convert


def exclusive_or(node: NodeContext) -> Imported:
    """Whether two booleans differ. Raises HG015, HG023, HG026."""
    if node.dtype != "bool":
        raise fail("HG026", node.name, f"{node.op_type} of {node.dtype} data.", "Logic takes results of comparisons.")
    same = compared(Relation.EQUAL)(node)
    ((equal, shape),) = same.outputs[0]
    differ = Compare(Relation.EQUAL, np.zeros((1,) * len(shape), np.bool_))
    return replace(same, outputs=([(equal, shape), (differ, shape)],))


def where(node: NodeContext) -> Imported:
    """Where of two or three computed tensors. Raises HG020, HG023, HG026, HG027."""
    shape = _broadcast(node)
    numbers = [t.dtype for t in node.inputs[1:] if isinstance(t, Dynamic)]
    kinds = ["bool", *numbers * 2][:3]
    wrong = any(isinstance(t, Dynamic) and t.dtype != kind for t, kind in zip(node.inputs, kinds, strict=True))
    if wrong or len(set(numbers)) > 1:
        raise _mixed_types(node)
    condition, yes, no = (
        ops_compare_select.flat(node.name, shape, t, np.dtype(kind)) if isinstance(t, Const) else None
        for t, kind in zip(node.inputs, kinds, strict=True)
    )
    return Imported(([],), _grown(node, shape), (Select((condition, yes, no)), shape))


def quantized_add(node: NodeContext) -> Imported:
    """QuantizedAdd of the hlsgen domain. Raises HG013, HG015, HG023, HG026."""
    _check_one_type(node)
    shape, before = _two(node)
    if node.dtype != "int8":
        raise fail("HG026", node.name, f"QuantizedAdd of {node.dtype} data.", "It takes int8.")
    return Imported(([(two_inputs.fixed_add(node.name, node.proto), shape)],), before, (Pack(), shape))


def qlinear_mul(node: NodeContext) -> Imported:
    """Raises HG015, HG020, HG022, HG023, HG026."""
    _check_one_type(node)
    shape, before = _two(node)
    return Imported(([(_pair(node, node.constants, shape), shape)],), before, (Pack(), shape))


def qlinear_add(node: NodeContext) -> Imported:
    """Raises HG015, HG020, HG022, HG023, HG026."""
    _check_one_type(node)
    shape, before = _two(node)
    swapped = exchanged(*(t.shape or () for t in node.computed))
    constants = node.constants
    if swapped:
        constants = [*constants[3:6], *constants[:3], *constants[6:]]
    return Imported(([(_pair(node, constants, shape), shape)],), before, (Pack(), shape), swapped)


def _pair(node: NodeContext, constants: ConstInputs, shape: Shape) -> Pair:
    return two_inputs.of_parameters(node.name, node.op_type, constants, node.dtype, shape, node.fixed_point)


def exchanged(first: Shape, second: Shape) -> bool:
    """Whether onnxruntime's addition takes the second operand for the first: that stands still along the last axis."""
    return first[-1:] in ((), (1,)) and second[-1:] not in ((), (1,))


def _check_one_type(node: NodeContext) -> None:
    if len({t.dtype for t in node.computed}) > 1:
        raise _mixed_types(node)


def _mixed_types(node: NodeContext) -> HlsgenError:
    types = ", ".join(t.dtype for t in node.computed)
    return fail("HG026", node.name, f"{node.op_type} of types {types}.", "Cast them to one type.")


def _not_two(node: NodeContext) -> HlsgenError:
    text = f"{node.op_type} of {len(node.computed)} computed tensors and constants."
    return fail("HG015", node.name, text, "Join two at a time.")


def _two(node: NodeContext) -> tuple[Shape, tuple[ShapedOps, ...]]:
    """(shape that the two computed tensors broadcast to, what each of them goes through to get it)."""
    if len(node.computed) != 2:
        raise _not_two(node)
    shape = _broadcast(node)
    return shape, _grown(node, shape)


def _grown(node: NodeContext, shape: Shape) -> tuple[ShapedOps, ...]:
    return tuple(grown(node.name, t.shape or (), shape) for t in node.computed)


def _broadcast(node: NodeContext) -> Shape:
    return broadcast(node.name, [t.shape or () for t in node.computed])


def concat(node: NodeContext) -> Imported:
    """Of computed tensors and constants: these are borders of the computed ones, which then get their values.

    Raises HG010, HG015, HG020, HG023, HG026, HG027.
    """
    axis, shape = _behind_each_other(node, [_shape(t) for t in node.inputs])
    before, after = _with_room(node, axis), _filled(node, axis, shape)
    if len(before) == 1:
        return Imported(([*before[0], *after],))
    return Imported((after,), tuple(before), (Concat(axis), shape))


def _with_room(node: NodeContext, axis: int) -> list[ShapedOps]:
    """A Pad of every computed tensor: as far as the constants behind it; of the first, also those in front of it."""
    found: list[ShapedOps] = []
    front = 0
    for i, tensor in enumerate(node.inputs):
        if isinstance(tensor, Dynamic):
            rest = node.inputs[i + 1 :]
            behind = list(takewhile(lambda t: isinstance(t, Const), rest))
            around = front if not found else 0, sum(_shape(t)[axis] for t in behind)
            found.append(border_along(_shape(tensor), axis, around))
        elif not found:
            front += _shape(tensor)[axis]
    return found


def _filled(node: NodeContext, axis: int, shape: Shape) -> ShapedOps:
    """The choice between the tensor with room and the constants."""
    if all(isinstance(t, Dynamic) for t in node.inputs):
        return []
    parts = [
        np.broadcast_to(np.zeros((), node.dtype), _shape(t)) if isinstance(t, Dynamic) else _const(node, t)
        for t in node.inputs
    ]
    fixed = [np.full((1,) * axis + (_shape(t)[axis],), isinstance(t, Const)) for t in node.inputs]
    condition = np.concatenate(fixed, axis).reshape((1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1))
    ways = (Constant(condition),), (Constant(np.concatenate(parts, axis)),), ()
    return [(Where(ways), shape)]


def _const(node: NodeContext, tensor: Tensor | None) -> Array:
    """A constant part, of the type of the data."""
    assert isinstance(tensor, Const)
    return operand(node.name, tensor.array.shape, tensor, "a constant part", node.dtype)


def _shape(tensor: Tensor | None) -> Shape:
    """Of a constant, or of a computed tensor."""
    return tensor.array.shape if isinstance(tensor, Const) else (tensor.shape or ()) if tensor else ()


def qlinear_concat(node: NodeContext) -> Imported:
    """Inputs: y_scale, y_zero_point, then (x, scale, zero point) of every tensor. Raises HG020, HG022, HG023, HG026."""
    axis, shape = _behind_each_other(node, [t.shape or () for t in node.computed])
    before: list[ShapedOps] = []
    for i, tensor in enumerate(node.computed):
        own, parts = tensor.shape or (), [None, *node.constants[3 + 3 * i : 5 + 3 * i]]
        before.append([(dequantizer_of(node.name, own, parts, {}, tensor.dtype), own)])
    after = quantizer_of(node.name, shape, [None, *node.constants[:2]], {})
    return Imported(([(after, shape)],), tuple(before), (Concat(axis), shape))


def _behind_each_other(node: NodeContext, shapes: list[Shape]) -> tuple[int, Shape]:
    """(axis, shape of the result)."""
    _check_one_type(node)
    rank = len(shapes[0])
    axis = int(node.attrs.get("axis", 0))
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank or any(len(s) != rank for s in shapes):
        raise fail("HG023", node.name, f"shapes {[list(s) for s in shapes]}, axis {axis}.")
    if len({s[:axis] + s[axis + 1 :] for s in shapes}) > 1:
        raise fail("HG023", node.name, f"shapes {[list(s) for s in shapes]} differ in more than axis {axis}.")
    return axis, (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
