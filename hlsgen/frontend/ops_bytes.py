"""Functions of integers of 8 bits that are neither sums nor products: Div, Mod, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor.

Of one tensor and constants they are a table of 256 entries, of two tensors one of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.frontend.ops_broadcast import broadcast, grown
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.ops_standard import div, operand
from hlsgen.ir import Binary
from hlsgen.ir.ops import Add, BinaryKind, Cast, Elementwise, IntegerRatio, Lookup, Mul
from hlsgen.numerics.fixed import Array, IntType

BYTES = ("int8", "uint8")
#: What a function computes: the node, and both operands as int64.
Function = Callable[[NodeContext, Array, Array], Array]


def of_one(function: Function) -> Callable[[NodeContext], Imported]:
    """The importing function for one tensor and a constant."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG020, HG023, HG026."""
        if node.dtype not in BYTES:
            raise _too_wide(node)
        const = node.constant(1 - node.position)
        other = operand(node.name, node.shape, const, "the other operand", node.dtype).astype(np.int64)
        data = _every(node.dtype).reshape(-1, *(1,) * len(node.shape))
        values = function(node, *((data, other[None]) if node.position == 0 else (other[None], data)))
        return elementwise(node, *_place(node, len(node.shape)), Lookup(values.astype(node.dtype)))

    return convert


def of_two(function: Function) -> Callable[[NodeContext], Imported]:
    """The importing function for two tensors."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG015, HG023, HG026."""
        if {t.dtype for t in node.computed} != {node.dtype} or node.dtype not in BYTES:
            raise _too_wide(node)
        shape = broadcast(node.name, [t.shape or () for t in node.computed])
        before: list[ShapedOps] = []
        for tensor, high in zip(node.computed, (False, True), strict=True):
            own = tensor.shape or ()
            ops = _place(node, len(own))
            if high:
                ops.append(Mul(np.full((1,) * len(own), 256, np.int32)))
            before.append([*((op, own) for op in ops), *grown(node.name, own, shape)])
        every = _every(node.dtype)
        values = function(node, every[None, :], every[:, None])
        table = values.astype(node.dtype).reshape(-1, *(1,) * len(shape))
        return Imported(([(Lookup(table), shape)],), tuple(before), (Binary(BinaryKind.ADD), shape))

    return convert


def _every(dtype: str) -> Array:
    info = np.iinfo(dtype)
    return np.arange(int(info.min), int(info.max) + 1)


def _place(node: NodeContext, rank: int) -> list[Elementwise]:
    """What makes the place in a table of an integer."""
    lowest = int(np.iinfo(node.dtype).min)
    return [Cast("int32"), *([Add(np.full((1,) * rank, -lowest, np.int32))] if lowest else [])]


def _too_wide(node: NodeContext) -> HlsgenError:
    types = ", ".join(dict.fromkeys(t.dtype for t in node.computed))
    text = f"{node.op_type} of {types} data."
    return fail("HG026", node.name, text, "It is a table of its operands: int8 or uint8, both alike.")


# --------------------------------------------------------------------------- what they compute


def divided(_: NodeContext, a: Array, b: Array) -> Array:
    """Rounded towards 0; by 0, which ONNX leaves open, 0."""
    whole = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, 0, np.sign(a) * np.sign(b) * whole)


def remainder(node: NodeContext, a: Array, b: Array) -> Array:
    """With the sign of b, or with fmod of a; by 0, which ONNX leaves open, 0."""
    found = (np.fmod if node.attrs.get("fmod", 0) else np.mod)(a, np.where(b == 0, 1, b))
    return np.where(b == 0, 0, found)


def shifted(node: NodeContext, a: Array, b: Array) -> Array:
    """By 8 bits and more: 0."""
    by = np.minimum(b, 8)
    return np.asarray(a << by if node.attrs.get("direction") == "LEFT" else a >> by)


def bitwise(function: Callable[[Array, Array], Array]) -> Function:
    return lambda _, a, b: np.asarray(function(a, b))


def bitwise_not(node: NodeContext) -> Imported:
    """-1 - x, wrapped. Raises HG026."""
    if np.dtype(node.dtype).kind not in "iu":
        raise fail("HG026", node.name, f"BitwiseNot of {node.dtype} data.", "It takes integers.")
    lowest = np.full((1,) * len(node.shape), -1).astype(node.dtype)
    return elementwise(node, Mul(lowest), Add(lowest))


def division(node: NodeContext) -> Imported:
    """Of floats, or of integers, rounded towards 0. Raises HG010, HG020, HG023, HG026, HG027."""
    if np.dtype(node.dtype).kind not in "iu":
        return div(node)
    if node.dtype in BYTES:
        return of_one(divided)(node)
    if node.position == 1:
        raise _too_wide(node)
    const = operand(node.name, node.shape, node.constant(1), "the divisor", node.dtype).astype(np.int64)
    if (const == 0).any():
        raise fail("HG027", node.name, "division by zero.")
    info = np.iinfo(node.dtype)
    none = np.zeros((1,) * len(node.shape), np.int64)
    type_ = IntType(int(info.min), int(info.max))
    wraps = node.dtype != "int64"  # a quotient of whole numbers that are far from 2^63 does not
    ratio = IntegerRatio(np.sign(const), none, np.abs(const), type_, node.dtype, mirrored=True, wraps=wraps)
    return elementwise(node, ratio)


def modulo(node: NodeContext) -> Imported:
    """Of integers; of floats the host's. Raises HG020, HG023, HG026."""
    return on_host(node) if np.dtype(node.dtype).kind == "f" else of_one(remainder)(node)
