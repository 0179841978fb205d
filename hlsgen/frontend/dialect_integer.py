"""Integer ONNX: QuantizeLinear and DequantizeLinear, MatMulInteger; Requantize.

Every operator becomes the steps that the ONNX standard says it consists of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import DTYPES, Const, ConstInputs
from hlsgen.frontend.integer_weights import in_front
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.ir import MatMulInteger, Shape
from hlsgen.ir.ops import Convention, Dequantize, QuantizeLinear, Requantize
from hlsgen.numerics.fixed import Array, IntType

_TYPES: dict[str, IntType] = {
    "int2": IntType(-2, 1),
    "uint2": IntType(0, 3),
    "int4": IntType(-8, 7),
    "uint4": IntType(0, 15),
    "int8": IntType(-128, 127),
    "uint8": IntType(0, 255),
    "int16": IntType(-32768, 32767),
    "uint16": IntType(0, 65535),
    "int32": IntType(-(1 << 31), (1 << 31) - 1),
}
#: Floats of 8 and 4 bits, as constants; their numbers are multiples of a power of two.
_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")
_SHORT = [name for name in _TYPES if name != "int32"]
POSITIVE_SCALE = "A scale must be finite and greater than 0."
NEGATIVE_SCALE = "Only weights and biases may have a negative one: their codes change sign."


def quantize_linear(node: NodeContext) -> Imported:
    """Raises HG013, HG020, HG022, HG023, HG026."""
    return elementwise(node, quantizer_of(node.name, node.shape, node.constants, node.attrs))


def dequantize_linear(node: NodeContext) -> Imported:
    """Raises HG013, HG020, HG022, HG023, HG026."""
    op = dequantizer_of(node.name, node.shape, node.constants, node.attrs, node.dtype)
    return elementwise(node, op)


def matmul_integer(node: NodeContext) -> Imported:
    """Raises HG020, HG023, HG024, HG026."""
    return Imported((integer_product(node.name, node.shape, node.dtype, [*node.constants, None, None][:4]),))


# --------------------------------------------------------------------------- parameters


def integers(name: str, const: Const, what: str, allowed: list[str]) -> tuple[Array, str]:
    """(int64 values, ONNX type name) of an integer constant."""
    kind = const.array.dtype.name
    if kind not in allowed:
        raise fail("HG026", name, f"{what} is of type {kind}.", f"Supported: {', '.join(allowed)}.")
    return np.asarray(const.array.astype(np.int64)), kind


def scale_of(name: str, const: Const | None, what: str = "the scale", *, signed: bool = False) -> Array:
    """A finite scale in its own float dtype, greater than 0; `signed`: or less, as scales of constants may be."""
    if const is None:
        raise fail("HG020", name, f"{what} is not a constant.", "It must be an initializer.")
    array = const.array
    if array.dtype.name not in ("float16", "float32"):
        raise fail("HG026", name, f"{what} is of type {array.dtype}.", "Supported: float32, float16.")
    wrong = ~np.isfinite(array) | (array == 0 if signed else array <= 0)
    if wrong.any() or not array.size:
        text = f"{what} is {array[wrong].ravel()[0]}." if array.size else f"{what} is empty."
        raise fail("HG022", name, text, f"{POSITIVE_SCALE} {NEGATIVE_SCALE}")
    return array


def placed(name: str, values: Array, shape: Shape, axis: int, what: str) -> Array:
    """A scalar, or values along one axis, with the tensor's rank."""
    if values.size == 1:
        return values.reshape((1,) * len(shape))
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis < len(shape) or values.ndim != 1 or len(values) != shape[axis]:
        raise fail(
            "HG023", name, f"{what} of shape {list(values.shape)} for data of shape {list(shape)}, axis {axis}.",
            "Supported: one number, or one for each index of the axis.",
        )  # fmt: skip
    return values.reshape([len(values) if i == axis else 1 for i in range(len(shape))])


def linear_parameters(
    name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], default: str, signed: bool = False
) -> tuple[Array, Array, str]:  # fmt: skip
    """(scale, zero point, ONNX type of the codes) of QuantizeLinear and DequantizeLinear; see `scale_of` for `signed`."""
    axis = attrs.get("axis", 1)
    scale = scale_of(name, inputs[1] if len(inputs) > 1 else None, signed=signed)
    zero: Array = np.zeros(1, np.int64)
    given = inputs[2] if len(inputs) > 2 else None
    if given is not None:
        zero, default = integers(name, given, "the zero point", [*_SHORT, "int32"])
    if attrs.get("block_size", 0):
        zero = np.zeros_like(scale, np.int64) if given is None else zero
        scale, zero = (_spread(name, x, shape, attrs, w) for x, w in ((scale, "the scale"), (zero, "the zero point")))
        return scale, zero, default
    return placed(name, scale, shape, axis, "the scale"), placed(name, zero, shape, axis, "the zero point"), default


def quantizer_of(
    name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], *, signed: bool = False
) -> QuantizeLinear:
    """QuantizeLinear of data of that shape with the constants `inputs`: data (not used), scale, zero point.

    `signed`: the scale may be negative.
    """
    asked = attrs.get("output_dtype", 0)
    names = {kind: onnx.TensorProto.DataType.Name(kind).lower() for kind in DTYPES}
    if asked and names.get(asked) not in _SHORT:
        raise fail("HG026", name, f"output_dtype is {asked}.", f"Supported: {', '.join(_SHORT)}.")
    scale, zero, kind = linear_parameters(name, shape, inputs, attrs, names[asked] if asked else "uint8", signed)
    if asked and kind != names[asked]:
        text = f"output_dtype is {names[asked]}, but the zero point is of type {kind}."
        raise fail("HG026", name, text, "Give both the same type, or leave one out.")
    if kind not in _SHORT:
        raise fail("HG026", name, f"the zero point is of type {kind}.", f"Supported: {', '.join(_SHORT)}.")
    return QuantizeLinear(scale, zero, _TYPES[kind], numpy_type(kind))


def dequantizer_of(name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], dtype: str) -> Dequantize:
    """DequantizeLinear of data of that shape and dtype with the constants `inputs`: data (not used), scale, zero point."""
    if np.dtype(dtype).kind not in "iu":
        raise fail("HG026", name, f"DequantizeLinear of {dtype} data.", "Its input must be an integer tensor.")
    scale, zero, _ = linear_parameters(name, shape, inputs, attrs, dtype)
    return Dequantize(scale, zero)


def numpy_type(kind: str) -> str:
    """The numpy dtype that holds an ONNX integer type."""
    return {"int2": "int8", "uint2": "uint8", "int4": "int8", "uint4": "uint8"}.get(kind, kind)


def dequantized(name: str, const: Const, inputs: ConstInputs, attrs: dict[str, Any]) -> Const:
    """A constant behind DequantizeLinear, with its codes; scales and zero points may be those of blocks.

    Where the scale is negative, codes and zero point have the other sign.

    Numbers of 8 or 4 bits that are floats have whole multiples of one power of two as codes.
    """
    if const.array.dtype.name in _FLOATS:
        return _float_codes(name, const, inputs, attrs)
    codes, kind = integers(name, const, "the constant", [*_SHORT, "int32"])
    scale, zero, _ = linear_parameters(name, codes.shape, inputs, attrs, kind, True)
    real = (codes - zero).astype(scale.dtype) * scale
    sign = np.where(scale < 0, -1, 1)
    spread, point = (np.broadcast_to(part, codes.shape) for part in (np.abs(scale), (zero * sign).astype(np.float32)))
    return Const(np.asarray(real), codes * sign, spread, point, kind)


def _spread(name: str, values: Array, shape: Shape, attrs: dict[str, Any], what: str) -> Array:
    """Values of blocks of `block_size` along `axis`, one for each element; the last block may be shorter."""
    size, axis, rank = attrs["block_size"], attrs.get("axis", 1), len(shape)
    axis = axis + rank if axis < 0 else axis
    if size < 1 or not 0 <= axis < rank:
        raise fail("HG013", name, f"block_size is {size}, axis {axis} of data of shape {list(shape)}.")
    wanted = tuple(-(-n // size) if i == axis else n for i, n in enumerate(shape))
    if values.shape != wanted:
        text = f"{what} of shape {list(values.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, f"Blocks of {size} along axis {axis} need the shape {list(wanted)}.")
    return np.repeat(values, size, axis=axis).take(np.arange(shape[axis]), axis=axis)


def _float_codes(name: str, const: Const, inputs: ConstInputs, attrs: dict[str, Any]) -> Const:
    """Raises HG013, HG023, HG024, HG026, HG027."""
    values = const.array.astype(np.float64)
    if not np.isfinite(values).all():
        raise fail("HG027", name, "a constant is not finite.", "Infinity and NaN have no integer code.")
    given = inputs[2] if len(inputs) > 2 else None
    if given is not None and given.array.astype(np.float64).any():
        raise fail("HG024", name, f"the zero point of {const.array.dtype.name} data is not 0.", "ONNX demands 0.")
    scale = scale_of(name, inputs[1] if len(inputs) > 1 else None, signed=True)
    blocks = attrs.get("block_size", 0)
    own = (
        _spread(name, scale, values.shape, attrs, "the scale")
        if blocks
        else placed(name, scale, values.shape, attrs.get("axis", 1), "the scale")
    )
    spread = np.broadcast_to(own, values.shape)
    # The least power of two that all numbers are multiples of; the least of a type is 2^-17.
    step = next(2.0**-k for k in range(18) if (values * 2.0**k == np.round(values * 2.0**k)).all())
    real = values.astype(spread.dtype) * spread
    exact = (np.abs(spread) * spread.dtype.type(step)).astype(spread.dtype)
    codes = (values / step * np.sign(spread)).astype(np.int64)
    return Const(np.asarray(real), codes, exact, np.zeros(values.shape, np.float32))


# --------------------------------------------------------------------------- linear layers


def integer_product(name: str, shape: Shape, dtype: str, inputs: ConstInputs) -> ShapedOps:
    """MatMulInteger of data of that shape and dtype. `inputs`: data (not used), weights (columns, rows), zero points of both."""
    eight_bits(name, dtype)
    weight = integer_tensor(name, inputs[1])
    rank = weight.ndim
    while weight.ndim > 2 and weight.shape[0] == 1:
        weight = weight[0]
    if weight.ndim != 2 or not weight.size:
        raise fail("HG023", name, f"weights of shape {list(weight.shape)}; a matrix is needed.")
    if not shape or shape[-1] != len(weight):
        raise fail("HG023", name, f"weights for {len(weight)} columns, data of shape {list(shape)}.")
    own = zero_of(name, inputs[3], "the weights' zero point")
    if own.size not in (1, weight.shape[1]):
        raise fail("HG023", name, f"the weights' zero point of shape {list(own.shape)}.", "One, or one per column.")
    sums = _sums(name, (weight - own.reshape(1, -1)).T, inputs[2], shape)
    result = (*shape[:-1], weight.shape[1])
    return [(sums, result), *in_front(result, len(shape), rank)]


def _sums(name: str, weight: Array, zero: Const | None, shape: Shape) -> MatMulInteger:
    data_zero = zero_of(name, zero, "the data's zero point").reshape(-1)
    rows = shape[-2] if len(shape) > 1 else 1
    if data_zero.size != 1 and (data_zero.size != rows or (data_zero != data_zero[0]).any()):
        raise fail(
            "HG024", name, f"the data's zero point has {data_zero.size} different values.",
            "Supported: the same for all rows.",
        )  # fmt: skip
    return MatMulInteger(np.ascontiguousarray(weight), np.full(weight.shape[1], data_zero[0]))


def eight_bits(name: str, dtype: str) -> None:
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        raise fail("HG026", name, f"integer layer of {dtype} data.", "Supported: int8, uint8, int16, uint16.")


def integer_tensor(name: str, const: Const | None) -> Array:
    if const is None:
        raise fail("HG020", name, "the weights are not a constant.", "They must be an initializer.")
    return integers(name, const, "the weight", _SHORT)[0]


def zero_of(name: str, const: Const | None, what: str) -> Array:
    if const is None:
        return np.zeros(1, np.int64)
    values, _ = integers(name, const, what, _SHORT)
    if not values.size:
        raise fail("HG023", name, f"{what} is empty.")
    return values


# --------------------------------------------------------------------------- integer rescaling


def requantize(node: NodeContext) -> Imported:
    """Requantize of the hlsgen domain. Raises HG020, HG023, HG025, HG026, HG027."""
    name, shape, attrs = node.name, node.shape, node.attrs
    if node.dtype != "int32":
        raise fail("HG026", name, f"Requantize of {node.dtype} data.", "It takes int32.")
    names = [convention.value for convention in Convention]
    if attrs.get("rounding", "double") not in names:
        raise fail("HG025", name, f"rounding is {attrs['rounding']!r}.", f"Supported: {', '.join(names)}.")
    parts = []
    for i, what, most in ((1, "the multiplier", (1 << 31) - 1), (2, "the shift", 62)):
        const = node.constant(i)
        if const is None:
            raise fail("HG020", name, f"{what} is not a constant.", "It must be an initializer.")
        values, _ = integers(name, const, what, ["int32"])
        if not values.size or values.min() < 0 or values.max() > most:
            raise fail("HG027", name, f"{what} is not within 0 and {most}.")
        parts.append(placed(name, values, shape, attrs.get("axis", -1), what))
    given = node.constant(3)
    if given is None:
        raise fail("HG020", name, "the zero point is not a constant.", "It must be an initializer.")
    zero, kind = integers(name, given, "the zero point", ["int8", "uint8", "int16", "uint16"])
    multiplier, shift = parts
    if zero.size != 1:
        raise fail("HG023", name, f"a zero point of shape {list(zero.shape)}.", "Use one per tensor.")
    one = (1,) * len(shape)
    convention = Convention(attrs.get("rounding", "double"))
    nothing = np.zeros(one, np.int64)
    return elementwise(node, Requantize(convention, multiplier, nothing, shift, zero.reshape(one), _TYPES[kind], kind))
