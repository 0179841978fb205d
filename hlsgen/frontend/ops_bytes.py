"""Functions of 8-bit integers: Div, Mod, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor.

One tensor and constants give a lookup table of 256 entries, two tensors a lookup table of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.frontend.ops_broadcast import broadcast_ops, broadcast_shape
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.ops_standard import div, operand
from hlsgen.ir import Binary
from hlsgen.ir.ops import Add, BinaryKind, Cast, Elementwise, IntegerRatio, Lookup, Mul
from hlsgen.numerics.fixed import Array, IntType

BYTES = ("int8", "uint8")
#: The result from the node and both operands, as int64.
Function = Callable[[NodeContext, Array, Array], Array]


def with_constant(function: Function) -> Callable[[NodeContext], Imported]:
    """The importing function for one tensor and a constant."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG020, HG023, HG026."""
        if node.dtype not in BYTES:
            raise _too_wide(node)
        const = node.constant(1 - node.position)
        constant = operand(node.name, node.shape, const, "the constant operand", node.dtype).astype(np.int64)
        data = _all_integers(node.dtype).reshape(-1, *(1,) * len(node.shape))
        entries = function(node, *((data, constant[None]) if node.position == 0 else (constant[None], data)))
        return elementwise(node, *_index_ops(node, len(node.shape)), Lookup(entries.astype(node.dtype)))

    return convert


def of_two_tensors(function: Function) -> Callable[[NodeContext], Imported]:
    """The importing function for two tensors."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG015, HG023, HG026."""
        if {t.dtype for t in node.computed} != {node.dtype} or node.dtype not in BYTES:
            raise _too_wide(node)
        shape = broadcast_shape(node.name, [t.shape or () for t in node.computed])
        operand_ops: list[ShapedOps] = []
        for tensor, is_high in zip(node.computed, (False, True), strict=True):
            tensor_shape = tensor.shape or ()
            ops = _index_ops(node, len(tensor_shape))
            if is_high:
                ops.append(Mul(np.full((1,) * len(tensor_shape), 256, np.int32)))
            operand_ops.append([*((op, tensor_shape) for op in ops), *broadcast_ops(node.name, tensor_shape, shape)])
        integers = _all_integers(node.dtype)
        entries = function(node, integers[None, :], integers[:, None])
        lookup = Lookup(entries.astype(node.dtype).reshape(-1, *(1,) * len(shape)))
        return Imported(([(lookup, shape)],), tuple(operand_ops), (Binary(BinaryKind.ADD), shape))

    return convert


def _all_integers(dtype: str) -> Array:
    info = np.iinfo(dtype)
    return np.arange(int(info.min), int(info.max) + 1)


def _index_ops(node: NodeContext, rank: int) -> list[Elementwise]:
    """Operations from an integer to its index in a lookup table, 0 to 255."""
    lowest = int(np.iinfo(node.dtype).min)
    return [Cast("int32"), *([Add(np.full((1,) * rank, -lowest, np.int32))] if lowest else [])]


def _too_wide(node: NodeContext) -> HlsgenError:
    types = ", ".join(dict.fromkeys(t.dtype for t in node.computed))
    text = f"{node.op_type} of {types} data."
    hint = "Supported: int8 or uint8, the same for both operands, as the function is a lookup table."
    return fail("HG026", node.name, text, hint)


# --------------------------------------------------------------------------- the functions


def divided(_: NodeContext, a: Array, b: Array) -> Array:
    """a / b, rounded towards 0; division by 0, undefined in ONNX, gives 0."""
    magnitude = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, 0, np.sign(a) * np.sign(b) * magnitude)


def remainder(node: NodeContext, a: Array, b: Array) -> Array:
    """a modulo b, with the sign of b, or of a if fmod is set; division by 0, undefined in ONNX, gives 0."""
    modulus = (np.fmod if node.attrs.get("fmod", 0) else np.mod)(a, np.where(b == 0, 1, b))
    return np.where(b == 0, 0, modulus)


def shifted(node: NodeContext, a: Array, b: Array) -> Array:
    """a shifted by b bits; 0 for 8 bits and more."""
    by = np.minimum(b, 8)
    return np.asarray(a << by if node.attrs.get("direction") == "LEFT" else a >> by)


def bitwise(function: Callable[[Array, Array], Array]) -> Function:
    """A function that does not depend on the node's attributes."""
    return lambda _, a, b: np.asarray(function(a, b))


def bitwise_not(node: NodeContext) -> Imported:
    """BitwiseNot as -1 - x, wrapped. Raises HG026."""
    if np.dtype(node.dtype).kind not in "iu":
        raise fail("HG026", node.name, f"BitwiseNot of {node.dtype} data.", "Supported: integers.")
    lowest = np.full((1,) * len(node.shape), -1).astype(node.dtype)
    return elementwise(node, Mul(lowest), Add(lowest))


def division(node: NodeContext) -> Imported:
    """Div of floats, or of integers, rounded towards 0. Raises HG010, HG020, HG023, HG026, HG027."""
    if np.dtype(node.dtype).kind not in "iu":
        return div(node)
    if node.dtype in BYTES:
        return with_constant(divided)(node)
    if node.position == 1:
        raise _too_wide(node)
    const = operand(node.name, node.shape, node.constant(1), "the divisor", node.dtype).astype(np.int64)
    if (const == 0).any():
        raise fail("HG027", node.name, "the divisor is zero.", "Every element of the divisor must differ from 0.")
    info = np.iinfo(node.dtype)
    addend = np.zeros((1,) * len(node.shape), np.int64)
    type_ = IntType(int(info.min), int(info.max))
    wraps = node.dtype != "int64"  # int64 data are numbers much smaller than 2^63, whose quotient cannot wrap
    ratio = IntegerRatio(np.sign(const), addend, np.abs(const), type_, node.dtype, mirrored=True, wraps=wraps)
    return elementwise(node, ratio)


def modulo(node: NodeContext) -> Imported:
    """Mod of integers; the host computes floats. Raises HG020, HG023, HG026."""
    return on_host(node) if np.dtype(node.dtype).kind == "f" else with_constant(remainder)(node)
