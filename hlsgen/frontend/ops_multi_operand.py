"""Nodes that take several computed tensors: arithmetic of two branches, Concat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend import domain_hlsgen, ops_compare_select, two_inputs
from hlsgen.frontend.constant_folding import Const, Dynamic
from hlsgen.frontend.dialect_integer import Imported, dequantize_linear, quantize_linear
from hlsgen.frontend.ops_broadcast import grown
from hlsgen.ir import Binary, Concat, Op, Pack, Select, Shape
from hlsgen.ir.ops import BinaryKind, Pair

_JOINTS = {
    "Add": BinaryKind.ADD, "Sum": BinaryKind.ADD, "Sub": BinaryKind.SUB, "Mul": BinaryKind.MUL, "Max": BinaryKind.MAX, "Min": BinaryKind.MIN,
    "And": BinaryKind.MIN, "Or": BinaryKind.MAX,
}  # fmt: skip
OPERATORS = frozenset([*_JOINTS, "Where", "Concat", "QLinearAdd", "QLinearMul", "QLinearConcat", "QuantizedAdd"])
_HINT = "Two computed tensors can go into Add, Sub, Mul, Max, Min, Concat, their QLinear forms, And, Or, Where."


@dataclass(frozen=True)
class Joined:
    """`before`: steps of each computed input, in order; `op` takes all of them; `after` follows it.

    `swapped`: the op takes the two inputs in the other order.
    """

    op: Op
    shape: Shape
    before: list[Imported]
    after: Imported = field(default_factory=list)
    swapped: bool = False


def import_joining(
    node: onnx.NodeProto, name: str, tensors: list[Const | Dynamic | None], attrs: dict[str, Any], fixed_point: bool
) -> Joined:  # fmt: skip
    """The steps of a node with two or more computed inputs, whose shapes are known."""
    dynamic = [t for t in tensors if isinstance(t, Dynamic)]
    constants = [t if isinstance(t, Const) else None for t in tensors]
    op_type = node.op_type
    if op_type not in OPERATORS:
        raise fail("HG015", name, f"{op_type} of {len(dynamic)} computed tensors.", _HINT)
    if op_type == "Where":
        return _where(name, tensors)
    if len({t.dtype for t in dynamic}) > 1:
        raise fail(
            "HG026", name, f"{op_type} of types {', '.join(t.dtype for t in dynamic)}.", "Cast them to one type."
        )
    if op_type in ("Concat", "QLinearConcat"):
        return _concat(op_type, name, dynamic, constants, attrs)
    if len(dynamic) != 2 or (any(c is not None for c in constants[:2]) and op_type in _JOINTS):
        raise fail("HG015", name, f"{op_type} of {len(dynamic)} computed tensors and constants.", "Join two at a time.")
    shape = _broadcast(name, dynamic)
    before = [grown(name, t.shape or (), shape) for t in dynamic]
    if op_type in _JOINTS:
        return Joined(Binary(_JOINTS[op_type]), shape, before)
    swapped = op_type == "QLinearAdd" and exchanged(*(t.shape or () for t in dynamic))
    if swapped:
        constants = [*constants[3:6], *constants[:3], *constants[6:]]
    pair_ = _pair(node, name, dynamic, constants, shape, fixed_point)
    return Joined(Pack(), shape, before, [(pair_, shape)], swapped)


def _where(name: str, tensors: list[Const | Dynamic | None]) -> Joined:
    """Where of two or three computed tensors. Raises HG023, HG026."""
    dynamic = [t for t in tensors if isinstance(t, Dynamic)]
    shape = _broadcast(name, dynamic)
    kinds = ["bool", *[t.dtype for t in tensors[1:] if isinstance(t, Dynamic)] * 2][:3]
    wrong = [t.dtype for t, kind in zip(tensors, kinds, strict=True) if isinstance(t, Dynamic) and t.dtype != kind]
    if wrong or len({t.dtype for t in tensors[1:] if isinstance(t, Dynamic)}) > 1:
        raise fail("HG026", name, f"Where of types {', '.join(t.dtype for t in dynamic)}.", "Cast them to one type.")
    condition, yes, no = (
        ops_compare_select.flat(name, shape, t, np.dtype(kind)) if isinstance(t, Const) else None
        for t, kind in zip(tensors, kinds, strict=True)
    )
    return Joined(Select((condition, yes, no)), shape, [grown(name, t.shape or (), shape) for t in dynamic])


def exchanged(first: Shape, second: Shape) -> bool:
    """Whether onnxruntime's addition takes the second operand for the first: that stands still along the last axis."""
    return first[-1:] in ((), (1,)) and second[-1:] not in ((), (1,))


def _broadcast(name: str, dynamic: list[Dynamic]) -> Shape:
    shapes = [t.shape or () for t in dynamic]
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


def _pair(
    node: onnx.NodeProto, name: str, dynamic: list[Dynamic], constants: list[Const | None], shape: Shape,
    fixed_point: bool,
) -> Pair:  # fmt: skip
    if node.op_type == "QuantizedAdd" and node.domain == domain_hlsgen.DOMAIN:
        if dynamic[0].dtype != "int8":
            raise fail("HG026", name, f"QuantizedAdd of {dynamic[0].dtype} data.", "It takes int8.")
        return two_inputs.fixed_add(name, node)
    return two_inputs.of_parameters(name, node.op_type, constants, dynamic[0].dtype, shape, fixed_point)


def _concat(
    op_type: str, name: str, dynamic: list[Dynamic], constants: list[Const | None], attrs: dict[str, Any]
) -> Joined:  # fmt: skip
    shapes = [t.shape or () for t in dynamic]
    rank = len(shapes[0])
    axis = int(attrs.get("axis", 0))
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank or any(len(s) != rank for s in shapes):
        raise fail("HG023", name, f"shapes {[list(s) for s in shapes]}, axis {axis}.")
    if len({s[:axis] + s[axis + 1 :] for s in shapes}) > 1:
        raise fail("HG023", name, f"shapes {[list(s) for s in shapes]} differ in more than axis {axis}.")
    shape = (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
    if op_type == "Concat":
        if any(c is not None for c in constants):
            raise fail("HG015", name, "Concat of computed tensors and constants.", "Supported: computed tensors.")
        return Joined(Concat(axis), shape, [[] for _ in dynamic])
    # QLinearConcat: y_scale, y_zero_point, then (x, scale, zero point) of every input.
    before: list[Imported] = []
    for i, tensor in enumerate(dynamic):
        own = [None, *constants[3 + 3 * i : 5 + 3 * i]]
        before.append([(dequantize_linear(name, shapes[i], own, {}, tensor.dtype), shapes[i])])
    after = [(quantize_linear(name, shape, [None, *constants[:2]], {}), shape)]
    return Joined(Concat(axis), shape, before, list(after))
