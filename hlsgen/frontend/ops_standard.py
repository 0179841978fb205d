"""Elementwise arithmetic of ONNX with constants: Add ... Div, Neg, Relu, Clip, Max, Min, BatchNormalization, Cast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import DTYPES, Const
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.ir import Shape
from hlsgen.ir.ops import Activation, Add, Cast, Div, Elementwise, Max, Min, Mul, QuantizeLinear
from hlsgen.numerics.fixed import Array, IntType, Rounding


def full(value: float, shape: Shape, dtype: str = "float32") -> Array:
    """A scalar with the rank of data of this shape."""
    return np.full((1,) * len(shape), value, dtype)


def operand(
    name: str, shape: Shape, const: Const | None, subject: str, dtype: str = "float32", *, lowest: bool = False
) -> Array:
    """A constant operand in `dtype`, with the rank of `shape`, to which it broadcasts.

    `subject` names it in messages. `lowest`: minus infinity is allowed. Raises HG020, HG023, HG026, HG027.
    """
    if const is None:
        raise fail("HG020", name, f"{subject} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiub":
        raise fail("HG026", name, f"{subject} is of type {const.array.dtype}, no numbers.", "Store it as float32.")
    with np.errstate(over="ignore"):
        array = const.array.astype(dtype)
    allowed = np.isfinite(array)
    if lowest and array.dtype.kind == "f":
        allowed |= (array == -np.inf) & (const.array == -np.inf)
    if not allowed.all():
        bad = array.ravel()[~allowed.ravel()][0]
        raise fail("HG027", name, f"{subject} has the value {bad}.", f"Every constant must be finite in {dtype}.")
    if (array != const.array).any():
        text = f"{subject} is of type {const.array.dtype} and has values that {dtype} cannot represent."
        raise fail("HG026", name, text, f"Store it as {dtype}.")
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise fail(
            "HG023",
            name,
            f"{subject} has the shape {list(const.array.shape)}, the data {list(shape)}.",
            "It must broadcast to the shape of the data.",
        )
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)


def with_constant(op: Callable[[Array], Elementwise]) -> Callable[[NodeContext], Imported]:
    """The importing function of an operation on the data and one constant operand, in either order."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG020, HG023, HG026, HG027."""
        return elementwise(node, op(_constant_operand(node)))

    return convert


def add(node: NodeContext) -> Imported:
    """Add; minus infinity is accepted for masks of a Softmax and checked later. Raises HG020, HG023, HG026, HG027."""
    constant = node.constant(1 - node.position)
    term = operand(node.name, node.shape, constant, "the constant operand", node.dtype, lowest=True)
    return elementwise(node, Add(term))


def sub(node: NodeContext) -> Imported:
    """Sub as c - x = (x * -1) + c or x - c = x + (-c), as negation is exact. Raises HG020, HG023, HG026, HG027."""
    constant = _constant_operand(node)
    if node.position == 0:
        return elementwise(node, Add(-constant))
    return elementwise(node, Mul(full(-1.0, node.shape, node.dtype)), Add(constant))


def div(node: NodeContext) -> Imported:
    """Div of floats: by a constant, or 1 by the data. Raises HG010, HG020, HG023, HG026, HG027."""
    constant = _constant_operand(node)
    if node.position == 1:
        if (constant != 1).any():
            text = "division of a constant other than 1 by the data is not supported."
            raise fail("HG010", node.name, text, "Use Reciprocal of the data, then Mul by the constant.")
        return elementwise(node, Activation("Reciprocal"), Mul(constant))
    if (constant == 0).any():
        raise fail("HG027", node.name, "the divisor is zero.", "Every element of the divisor must differ from 0.")
    return elementwise(node, Div(constant))


def _constant_operand(node: NodeContext) -> Array:
    """The constant one of two operands. Raises HG020, HG023, HG026, HG027."""
    return operand(node.name, node.shape, node.constant(1 - node.position), "the constant operand", node.dtype)


def relu(node: NodeContext) -> Imported:
    """Relu."""
    return elementwise(node, Max(full(0.0, node.shape, node.dtype)))


def neg(node: NodeContext) -> Imported:
    """Neg."""
    return elementwise(node, Mul(full(-1.0, node.shape, node.dtype)))


def maximum(node: NodeContext) -> Imported:
    """Max of the data and constants. Raises HG020, HG023, HG026, HG027."""
    return elementwise(node, *[Max(bound) for bound in _bounds(node)])


def minimum(node: NodeContext) -> Imported:
    """Min of the data and constants. Raises HG020, HG023, HG026, HG027."""
    return elementwise(node, *[Min(bound) for bound in _bounds(node)])


def _bounds(node: NodeContext) -> list[Array]:
    """All inputs but the data. Raises HG020, HG023, HG026, HG027."""
    constants = [const for i, const in enumerate(node.constants) if i != node.position]
    return [operand(node.name, node.shape, const, "an operand", node.dtype) for const in constants]


def clip(node: NodeContext) -> Imported:
    """Clip; bounds are inputs, or attributes before opset 11. Raises HG023, HG026, HG027."""

    def bound(i: int, key: str) -> Array | None:
        if node.constant(i) is not None:
            return operand(node.name, node.shape, node.constant(i), key, node.dtype)
        return full(node.attrs[key], node.shape, node.dtype) if key in node.attrs else None

    low, high = bound(1, "min"), bound(2, "max")
    return elementwise(node, *([Max(low)] if low is not None else []), *([Min(high)] if high is not None else []))


def batch_norm(node: NodeContext) -> Imported:
    """BatchNormalization with the channels at axis 1."""
    return elementwise(node, *_batch_norm(node, 1))


def batch_norm_channels_last(node: NodeContext) -> Imported:
    """BatchNormalization of QONNX with the channels at the last axis."""
    if len(node.shape) < 2:
        text = f"data of shape {list(node.shape)} has no channels."
        raise fail("HG023", node.name, text, "BatchNormalization needs two axes or more.")
    return elementwise(node, *_batch_norm(node, len(node.shape) - 1))


def _batch_norm(node: NodeContext, axis: int) -> tuple[Mul, Add]:
    """y = x * a + b with a = gamma * (1 / sqrt(var + eps)), b = beta - mean * a, each in float32.

    ONNX defines no order of operations; this is onnxruntime's, which the QONNX executor uses.
    Raises HG013, HG014, HG020, HG023, HG026, HG027.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    if len(node.inputs) < 5:
        text = f"BatchNormalization has {len(node.inputs)} inputs and needs 5."
        raise fail("HG014", name, text, "Its inputs are X, scale, B, input_mean and input_var.")
    if attrs.get("training_mode", 0):
        raise fail("HG013", name, "attribute training_mode is 1.", "Export the model in evaluation mode.")
    if not attrs.get("spatial", 1):
        text = "attribute spatial is 0, for a mean and a variance per element."
        raise fail("HG013", name, text, "Supported: one per channel (spatial 1, the only variant from opset 9 on).")
    if axis >= len(shape):
        text = f"data of shape {list(shape)} has no channel axis {axis}."
        raise fail("HG023", name, text, "BatchNormalization needs two axes or more.")
    channels = shape[axis]
    along_axis = tuple(channels if i == axis else 1 for i in range(len(shape)))
    arrays = []
    for i, input_name in enumerate(["scale", "B", "input_mean", "input_var"], 1):
        const = node.constant(i)
        if const is not None and const.array.size != channels:
            text = f"{input_name} has {const.array.size} values for {channels} channels."
            raise fail("HG023", name, text, "It needs one value per channel.")
        arrays.append(operand(name, along_axis, Const(const.array.reshape(along_axis)) if const else None, input_name))
    gamma, beta, mean, var = arrays
    epsilon = np.float32(attrs.get("epsilon", 1e-5))
    with np.errstate(all="ignore"):
        scale = gamma * (np.float32(1) / np.sqrt(var + epsilon))
        bias = beta - mean * scale
    if not (np.isfinite(scale).all() and np.isfinite(bias).all()):
        text = "input_var plus epsilon is not positive in a channel, so that the factor is not finite."
        raise fail("HG027", name, text, "Every variance plus epsilon must be greater than 0, and all inputs finite.")
    return Mul(scale), Add(bias)


def bit_cast(node: NodeContext) -> Imported:
    """BitCast between integers of the same width, which equals Cast, as it wraps. Raises HG026."""
    to = DTYPES.get(node.attrs.get("to", 0), "")
    narrow = node.attrs.get("to") in (TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2)
    kinds = [np.dtype(kind) for kind in (to, node.dtype) if kind]
    if narrow or len(kinds) < 2 or any(k.kind not in "iu" for k in kinds) or kinds[0].itemsize != kinds[1].itemsize:
        text = f"BitCast of {node.dtype} data to {to or node.attrs.get('to')}."
        raise fail("HG026", node.name, text, "Supported: integers of 8, 16 or 32 bits to integers of the same width.")
    return elementwise(node, *([] if to == node.dtype else [Cast(to)]))


_INT32 = IntType(-(2**31), 2**31 - 1)


def cast(node: NodeContext) -> Imported:
    """Cast between floats, from integers, or to integers, which is a quantizer. Raises HG026."""
    shape, dtype, kind = node.shape, node.dtype, node.attrs.get("to")
    if kind not in DTYPES:
        names = TensorProto.DataType
        text = f"Cast to type {names.Name(kind) if kind in names.values() else kind}."
        hint = "Supported: float16, float32, float64, int64 and integers of up to 32 bits."
        raise fail("HG026", node.name, text, hint)
    to = DTYPES[kind]
    nibble = {TensorProto.INT4: IntType(-8, 7), TensorProto.UINT4: IntType(0, 15)}.get(kind)
    if nibble is not None and np.dtype(dtype).kind in "iu":
        raise fail("HG026", node.name, f"Cast of {dtype} data to 4 bits.", "Quantize the data: QuantizeLinear.")
    if to == dtype:
        return elementwise(node)
    if np.dtype(to).kind == "f" or np.dtype(dtype).kind in "iu":
        return elementwise(node, Cast(to))
    info, zero = np.iinfo(to), np.zeros((1,) * len(shape), np.int64)
    type_ = IntType(int(info.min), int(info.max))
    if nibble is None:
        return elementwise(node, QuantizeLinear(full(1.0, shape, dtype), zero, type_, to, Rounding.DOWN))
    # Executors keep the low bits. Moved to the high bits of a byte, they are a multiple of 16.
    truncation = QuantizeLinear(full(1.0, shape, dtype), zero, _INT32, "int32", Rounding.DOWN)
    low_bits = QuantizeLinear(full(16.0, shape), zero, nibble, to, Rounding.DOWN)
    return elementwise(node, truncation, Cast(to), Mul(full(16, shape, to)), Cast("float32"), low_bits)
