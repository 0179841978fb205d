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
    """One number with the rank of data of that shape."""
    return np.full((1,) * len(shape), value, dtype)


def operand(
    name: str, shape: Shape, const: Const | None, what: str, dtype: str = "float32", *, lowest: bool = False
) -> Array:  # fmt: skip
    """A constant of that dtype that broadcasts to `shape` without growing it, with its rank. `lowest`: may be -inf."""
    if const is None:
        raise fail("HG020", name, f"{what} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiub":
        raise fail("HG026", name, f"{what} is of type {const.array.dtype}; numbers are needed.", "Store it as float32.")
    with np.errstate(over="ignore"):
        array = const.array.astype(dtype)
    known = np.isfinite(array)
    if lowest and array.dtype.kind == "f":
        known |= (array == -np.inf) & (const.array == -np.inf)
    if not known.all():
        bad = array.ravel()[~known.ravel()][0]
        raise fail("HG027", name, f"{what} has the value {bad}.", f"Every constant must be finite in {dtype}.")
    if (array != const.array).any():
        raise fail(
            "HG026", name, f"{what} is of type {const.array.dtype} and has values that {dtype} does not.",
            f"Store it as {dtype}.",
        )  # fmt: skip
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise fail(
            "HG023", name, f"{what} of shape {list(const.array.shape)} for data of shape {list(shape)}.",
            "It must broadcast to the data.",
        )  # fmt: skip
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)


def with_constant(op: Callable[[Array], Elementwise]) -> Callable[[NodeContext], Imported]:
    """The importing function of an operation of the data and one constant operand, whichever comes first."""

    def convert(node: NodeContext) -> Imported:
        """Raises HG020, HG023, HG026, HG027."""
        return elementwise(node, op(_other(node)))

    return convert


def add(node: NodeContext) -> Imported:
    """Minus infinity, as in masks of a Softmax, is refused later elsewhere. Raises HG020, HG023, HG026, HG027."""
    constant = node.constant(1 - node.position)
    value = operand(node.name, node.shape, constant, "the other operand", node.dtype, lowest=True)
    return elementwise(node, Add(value))


def sub(node: NodeContext) -> Imported:
    """c - x = (x * -1) + c and x - c = x + (-c): negation is exact."""
    value = _other(node)
    if node.position == 0:
        return elementwise(node, Add(-value))
    return elementwise(node, Mul(full(-1.0, node.shape, node.dtype)), Add(value))


def div(node: NodeContext) -> Imported:
    """Raises HG010 and HG027 besides those of all arithmetic."""
    value = _other(node)
    if node.position == 1:
        if (value != 1).any():
            raise fail("HG010", node.name, "division of a constant other than 1 by the data is not supported.")
        return elementwise(node, Activation("Reciprocal"), Mul(value))
    if (value == 0).any():
        raise fail("HG027", node.name, "division by zero.")
    return elementwise(node, Div(value))


def _other(node: NodeContext) -> Array:
    """The constant operand of two. Raises HG020, HG023, HG026, HG027."""
    return operand(node.name, node.shape, node.constant(1 - node.position), "the other operand", node.dtype)


def relu(node: NodeContext) -> Imported:
    return elementwise(node, Max(full(0.0, node.shape, node.dtype)))


def neg(node: NodeContext) -> Imported:
    return elementwise(node, Mul(full(-1.0, node.shape, node.dtype)))


def maximum(node: NodeContext) -> Imported:
    return elementwise(node, *[Max(bound) for bound in _bounds(node)])


def minimum(node: NodeContext) -> Imported:
    return elementwise(node, *[Min(bound) for bound in _bounds(node)])


def _bounds(node: NodeContext) -> list[Array]:
    """All inputs but the data. Raises HG020, HG023, HG026, HG027."""
    others = [const for i, const in enumerate(node.constants) if i != node.position]
    return [operand(node.name, node.shape, const, "an operand", node.dtype) for const in others]


def clip(node: NodeContext) -> Imported:
    """Bounds are inputs, or attributes before opset 11. Raises HG023, HG026, HG027."""

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
        raise fail("HG023", node.name, f"data of shape {list(node.shape)} has no channels.")
    return elementwise(node, *_batch_norm(node, len(node.shape) - 1))


def _batch_norm(node: NodeContext, axis: int) -> tuple[Mul, Add]:
    """y = x * a + b with a = gamma * (1 / sqrt(var + eps)), b = beta - mean * a, each in float32.

    ONNX gives no order of operations; this is onnxruntime's, which the QONNX executor uses.
    Raises HG013, HG014, HG020, HG023, HG026, HG027.
    """
    name, shape, attrs = node.name, node.shape, node.attrs
    if len(node.inputs) < 5:
        raise fail("HG014", name, "scale, B, input_mean and input_var are needed.")
    if attrs.get("training_mode", 0):
        raise fail("HG013", name, "training_mode is 1.", "Export the model in evaluation mode.")
    if not attrs.get("spatial", 1):
        text = "spatial is 0: a mean and a variance for each element."
        raise fail("HG013", name, text, "Supported: one for each channel (spatial 1, the only way from opset 9 on).")
    if axis >= len(shape):
        raise fail("HG023", name, f"data of shape {list(shape)} has no channel axis {axis}.")
    channels = shape[axis]
    form = tuple(channels if i == axis else 1 for i in range(len(shape)))
    arrays = []
    for i, what in enumerate(["scale", "B", "input_mean", "input_var"], 1):
        const = node.constant(i)
        if const is not None and const.array.size != channels:
            raise fail("HG023", name, f"{what} has {const.array.size} values for {channels} channels.")
        arrays.append(operand(name, form, Const(const.array.reshape(form)) if const else None, what))
    gamma, beta, mean, var = arrays
    epsilon = np.float32(attrs.get("epsilon", 1e-5))
    with np.errstate(all="ignore"):
        scale = gamma * (np.float32(1) / np.sqrt(var + epsilon))
        bias = beta - mean * scale
    if not (np.isfinite(scale).all() and np.isfinite(bias).all()):
        raise fail("HG027", name, "variance and epsilon give a factor that is not finite.")
    return Mul(scale), Add(bias)


def bit_cast(node: NodeContext) -> Imported:
    """Integers of as many bits: the same as Cast, which wraps. Raises HG026."""
    to = DTYPES.get(node.attrs.get("to", 0), "")
    narrow = node.attrs.get("to") in (TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2)
    kinds = [np.dtype(kind) for kind in (to, node.dtype) if kind]
    if narrow or len(kinds) < 2 or any(k.kind not in "iu" for k in kinds) or kinds[0].itemsize != kinds[1].itemsize:
        text = f"BitCast of {node.dtype} data to {to or node.attrs.get('to')}."
        raise fail("HG026", node.name, text, "Supported: integers of 8, 16 or 32 bits to integers of as many.")
    return elementwise(node, *([] if to == node.dtype else [Cast(to)]))


_INT32 = IntType(-(2**31), 2**31 - 1)


def cast(node: NodeContext) -> Imported:
    """Between floats, from integers, or to integers, which is a quantizer. Raises HG026."""
    shape, dtype, kind = node.shape, node.dtype, node.attrs.get("to")
    if kind not in DTYPES:
        raise fail(
            "HG026", node.name, f"Cast to type number {kind}.",
            "Supported: float16, float32, float64, int64 and integers of up to 32 bits.",
        )  # fmt: skip
    to = DTYPES[kind]
    nibble = {TensorProto.INT4: IntType(-8, 7), TensorProto.UINT4: IntType(0, 15)}.get(kind)
    if nibble is not None and np.dtype(dtype).kind in "iu":
        raise fail("HG026", node.name, f"Cast of {dtype} data to 4 bits.", "Quantize them: QuantizeLinear.")
    if to == dtype:
        return elementwise(node)
    if np.dtype(to).kind == "f" or np.dtype(dtype).kind in "iu":
        return elementwise(node, Cast(to))
    info, zero = np.iinfo(to), np.zeros((1,) * len(shape), np.int64)
    type_ = IntType(int(info.min), int(info.max))
    if nibble is None:
        return elementwise(node, QuantizeLinear(full(1.0, shape, dtype), zero, type_, to, Rounding.DOWN))
    # Executors keep the low bits: these, as the high ones of a byte, are a multiple of 16.
    wide = QuantizeLinear(full(1.0, shape, dtype), zero, _INT32, "int32", Rounding.DOWN)
    low = QuantizeLinear(full(16.0, shape), zero, nibble, to, Rounding.DOWN)
    return elementwise(node, wide, Cast(to), Mul(full(16, shape, to)), Cast("float32"), low)
