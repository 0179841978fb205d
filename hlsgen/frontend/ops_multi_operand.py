"""Nodes with several computed inputs: arithmetic of two branches, Where, Concat."""

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
from hlsgen.frontend.ops_broadcast import broadcast_ops, broadcast_shape
from hlsgen.frontend.ops_image import border_along
from hlsgen.frontend.ops_standard import operand
from hlsgen.ir import Binary, Concat, Pack, Select, Shape
from hlsgen.ir.ops import BinaryKind, Cast, Compare, Constant, Pair, Relation, Where
from hlsgen.numerics.fixed import Array

#: Types for the exact differences of integers and booleans.
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
            return ops_bytes.of_two_tensors(ops_bytes.divided)(node)
        if any(c is not None for c in node.constants[:2]):
            raise _not_two(node)
        shape, operand_ops = _two_operands(node)
        return Imported(([],), operand_ops, (Binary(kind), shape))

    return convert


def compared(relation: Relation) -> Callable[[NodeContext], Imported]:
    """The importing function of a comparison of two tensors by the sign of their difference.

    The difference of integers is exact. The difference of floats is rounded and has the right sign, as only equal
    numbers have the difference 0.
    """

    def convert(node: NodeContext) -> Imported:
        """Raises HG015, HG023, HG026."""
        _check_one_type(node)
        if node.dtype == "bool" and relation is not Relation.EQUAL:
            raise fail("HG026", node.name, f"{node.op_type} of booleans.", "Supported: numbers.")
        shape, operand_ops = _two_operands(node)
        dtype = _DIFFERENCES.get(node.dtype, node.dtype)
        if dtype != node.dtype:
            operands = zip(node.computed, operand_ops, strict=True)
            operand_ops = tuple([(Cast(dtype), t.shape or ()), *ops] for t, ops in operands)
        zero = np.zeros((1,) * len(shape), dtype)
        return Imported(([(Compare(relation, zero), shape)],), operand_ops, (Binary(BinaryKind.SUB), shape))

    return convert


def exclusive_or(node: NodeContext) -> Imported:
    """Xor of two booleans. Raises HG015, HG023, HG026."""
    if node.dtype != "bool":
        text = f"{node.op_type} of {node.dtype} data."
        raise fail("HG026", node.name, text, "Supported: booleans, the results of comparisons.")
    comparison = compared(Relation.EQUAL)(node)
    ((equal, shape),) = comparison.outputs[0]
    differ = Compare(Relation.EQUAL, np.zeros((1,) * len(shape), np.bool_))
    return replace(comparison, outputs=([(equal, shape), (differ, shape)],))


def selection(node: NodeContext) -> Imported:
    """The operator Where with two or three computed tensors. Raises HG020, HG023, HG026, HG027."""
    shape = _common_shape(node)
    numbers = [t.dtype for t in node.inputs[1:] if isinstance(t, Dynamic)]
    kinds = ["bool", *numbers * 2][:3]
    wrong = any(isinstance(t, Dynamic) and t.dtype != kind for t, kind in zip(node.inputs, kinds, strict=True))
    if wrong or len(set(numbers)) > 1:
        raise _mixed_types(node)
    condition, yes, no = (
        ops_compare_select.flat(node.name, shape, t, np.dtype(kind)) if isinstance(t, Const) else None
        for t, kind in zip(node.inputs, kinds, strict=True)
    )
    return Imported(([],), _broadcasts(node, shape), (Select((condition, yes, no)), shape))


def quantized_add(node: NodeContext) -> Imported:
    """QuantizedAdd of the hlsgen domain. Raises HG013, HG015, HG023, HG026."""
    _check_one_type(node)
    shape, operand_ops = _two_operands(node)
    if node.dtype != "int8":
        raise fail("HG026", node.name, f"QuantizedAdd of {node.dtype} data.", "Supported: int8.")
    return Imported(([(two_inputs.fixed_add(node.name, node.proto), shape)],), operand_ops, (Pack(), shape))


def qlinear_mul(node: NodeContext) -> Imported:
    """QLinearMul. Raises HG015, HG020, HG022, HG023, HG026."""
    _check_one_type(node)
    shape, operand_ops = _two_operands(node)
    return Imported(([(_pair(node, node.constants, shape), shape)],), operand_ops, (Pack(), shape))


def qlinear_add(node: NodeContext) -> Imported:
    """QLinearAdd. Raises HG015, HG020, HG022, HG023, HG026."""
    _check_one_type(node)
    shape, operand_ops = _two_operands(node)
    swapped = exchanges_operands(*(t.shape or () for t in node.computed))
    constants = node.constants
    if swapped:
        constants = [*constants[3:6], *constants[:3], *constants[6:]]
    return Imported(([(_pair(node, constants, shape), shape)],), operand_ops, (Pack(), shape), swapped)


def _pair(node: NodeContext, constants: ConstInputs, shape: Shape) -> Pair:
    return two_inputs.of_parameters(node.name, node.op_type, constants, node.dtype, shape, node.fixed_point)


def exchanges_operands(first: Shape, second: Shape) -> bool:
    """True if onnxruntime's addition exchanges its operands: only the first one is constant along the last axis."""
    return first[-1:] in ((), (1,)) and second[-1:] not in ((), (1,))


def _check_one_type(node: NodeContext) -> None:
    if len({t.dtype for t in node.computed}) > 1:
        raise _mixed_types(node)


def _mixed_types(node: NodeContext) -> HlsgenError:
    types = ", ".join(t.dtype for t in node.computed)
    return fail("HG026", node.name, f"{node.op_type} of types {types}.", "Cast them to one type.")


def _not_two(node: NodeContext) -> HlsgenError:
    computed = len(node.computed)
    text = f"{node.op_type} of {computed} computed tensors and {len(node.inputs) - computed} constants."
    return fail("HG015", node.name, text, "Use a chain of nodes with two operands each.")


def _two_operands(node: NodeContext) -> tuple[Shape, tuple[ShapedOps, ...]]:
    """(common shape of the two computed tensors, operations that broadcast each of them). Raises HG015, HG023."""
    if len(node.computed) != 2:
        raise _not_two(node)
    shape = _common_shape(node)
    return shape, _broadcasts(node, shape)


def _broadcasts(node: NodeContext, shape: Shape) -> tuple[ShapedOps, ...]:
    return tuple(broadcast_ops(node.name, t.shape or (), shape) for t in node.computed)


def _common_shape(node: NodeContext) -> Shape:
    return broadcast_shape(node.name, [t.shape or () for t in node.computed])


def concat(node: NodeContext) -> Imported:
    """Concat of computed tensors and constants; the constants are borders of the computed tensors, filled afterwards.

    Raises HG010, HG015, HG020, HG023, HG026, HG027.
    """
    axis, shape = _concatenated_shape(node, [_shape(t) for t in node.inputs])
    operand_ops, fill_ops = _with_borders(node, axis), _filled(node, axis, shape)
    if len(operand_ops) == 1:
        return Imported(([*operand_ops[0], *fill_ops],))
    return Imported((fill_ops,), tuple(operand_ops), (Concat(axis), shape))


def _with_borders(node: NodeContext, axis: int) -> list[ShapedOps]:
    """A Pad of every computed tensor by the size of the constants after it; for the first, also of those before it."""
    operand_ops: list[ShapedOps] = []
    leading = 0
    for i, tensor in enumerate(node.inputs):
        if isinstance(tensor, Dynamic):
            following = takewhile(lambda t: isinstance(t, Const), node.inputs[i + 1 :])
            margin = leading if not operand_ops else 0, sum(_shape(t)[axis] for t in following)
            operand_ops.append(border_along(_shape(tensor), axis, margin))
        elif not operand_ops:
            leading += _shape(tensor)[axis]
    return operand_ops


def _filled(node: NodeContext, axis: int, shape: Shape) -> ShapedOps:
    """The operator Where that replaces the borders by the constants; empty if there are no constants."""
    if all(isinstance(t, Dynamic) for t in node.inputs):
        return []
    parts = [
        np.broadcast_to(np.zeros((), node.dtype), _shape(t)) if isinstance(t, Dynamic) else _const(node, t)
        for t in node.inputs
    ]
    is_constant = [np.full((1,) * axis + (_shape(t)[axis],), isinstance(t, Const)) for t in node.inputs]
    along_axis = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    condition = np.concatenate(is_constant, axis).reshape(along_axis)
    return [(Where(((Constant(condition),), (Constant(np.concatenate(parts, axis)),), ())), shape)]


def _const(node: NodeContext, tensor: Tensor | None) -> Array:
    """A constant part in the type of the data."""
    assert isinstance(tensor, Const)
    return operand(node.name, tensor.array.shape, tensor, "a constant part", node.dtype)


def _shape(tensor: Tensor | None) -> Shape:
    """The shape of a constant or computed tensor."""
    return tensor.array.shape if isinstance(tensor, Const) else (tensor.shape or ()) if tensor else ()


def qlinear_concat(node: NodeContext) -> Imported:
    """QLinearConcat: y_scale, y_zero_point, then (x, scale, zero point) of every tensor.

    Raises HG020, HG022, HG023, HG026.
    """
    axis, shape = _concatenated_shape(node, [t.shape or () for t in node.computed])
    operand_ops: list[ShapedOps] = []
    for i, tensor in enumerate(node.computed):
        tensor_shape, parts = tensor.shape or (), [None, *node.constants[3 + 3 * i : 5 + 3 * i]]
        operand_ops.append([(dequantizer_of(node.name, tensor_shape, parts, {}, tensor.dtype), tensor_shape)])
    quantizer = quantizer_of(node.name, shape, [None, *node.constants[:2]], {})
    return Imported(([(quantizer, shape)],), tuple(operand_ops), (Concat(axis), shape))


def _concatenated_shape(node: NodeContext, shapes: list[Shape]) -> tuple[int, Shape]:
    """(axis, shape of the concatenation). Raises HG023, HG026."""
    _check_one_type(node)
    rank = len(shapes[0])
    axis = int(node.attrs.get("axis", 0))
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank or any(len(s) != rank for s in shapes):
        text = f"tensors of shapes {[list(s) for s in shapes]} along axis {axis}."
        raise fail("HG023", node.name, text, "All need equally many axes, of which the attribute axis is one.")
    if len({s[:axis] + s[axis + 1 :] for s in shapes}) > 1:
        text = f"the shapes {[list(s) for s in shapes]} differ in more than axis {axis}."
        raise fail("HG023", node.name, text, f"They may differ along axis {axis} only.")
    return axis, (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
