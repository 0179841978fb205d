"""Integer ONNX: QuantizeLinear, DequantizeLinear, MatMulInteger; Requantize of the hlsgen domain.

Every operator becomes the steps of its definition in the ONNX standard.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import DTYPES, Const, ConstInputs
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps, elementwise
from hlsgen.frontend.product_layout import Layout, product_layout
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
#: Floats of 8 and 4 bits, for constants; their numbers are multiples of a power of two.
_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")
_SHORT = [name for name in _TYPES if name != "int32"]
POSITIVE_SCALE = "A scale must be finite and greater than 0."
NEGATIVE_SCALE = "Only weights and biases may have a negative one: their codes change sign."


def quantize_linear(node: NodeContext) -> Imported:
    """QuantizeLinear to integers. Raises HG013, HG020, HG022, HG023, HG026."""
    return elementwise(node, quantizer_of(node.name, node.shape, node.constants, node.attrs))


def dequantize_linear(node: NodeContext) -> Imported:
    """DequantizeLinear of integers. Raises HG013, HG020, HG022, HG023, HG026."""
    op = dequantizer_of(node.name, node.shape, node.constants, node.attrs, node.dtype)
    return elementwise(node, op)


def matmul_integer(node: NodeContext) -> Imported:
    """MatMulInteger with constant weights. Raises HG020, HG023, HG024, HG026."""
    return Imported((integer_product(node.name, node.shape, node.dtype, [*node.constants, None, None][:4]),))


# --------------------------------------------------------------------------- parameters


def integers(name: str, const: Const, subject: str, allowed: list[str]) -> tuple[Array, str]:
    """(int64 values, ONNX type name) of an integer constant; `subject` names it in messages. Raises HG026."""
    kind = const.array.dtype.name
    if kind not in allowed:
        raise fail("HG026", name, f"{subject} is of type {kind}.", f"Supported: {', '.join(allowed)}.")
    return np.asarray(const.array.astype(np.int64)), kind


def scale_of(name: str, const: Const | None, subject: str = "the scale", *, signed: bool = False) -> Array:
    """A finite scale greater than 0, in its own float dtype; `signed`: also less than 0, for constants.

    Raises HG020, HG022, HG026.
    """
    if const is None:
        raise fail("HG020", name, f"{subject} is not a constant.", "It must be an initializer.")
    array = const.array
    if array.dtype.name not in ("float16", "float32"):
        raise fail("HG026", name, f"{subject} is of type {array.dtype}.", "Supported: float32, float16.")
    wrong = ~np.isfinite(array) | (array == 0 if signed else array <= 0)
    if wrong.any() or not array.size:
        text = f"{subject} is {array[wrong].ravel()[0]}." if array.size else f"{subject} is empty."
        raise fail("HG022", name, text, f"{POSITIVE_SCALE} {NEGATIVE_SCALE}")
    return array


def placed(name: str, values: Array, shape: Shape, axis: int, subject: str) -> Array:
    """A scalar, or one value for each index of `axis`, reshaped to the rank of `shape`. Raises HG023."""
    if values.size == 1:
        return values.reshape((1,) * len(shape))
    axis = axis + len(shape) if axis < 0 else axis
    if not 0 <= axis < len(shape) or values.ndim != 1 or len(values) != shape[axis]:
        raise fail(
            "HG023",
            name,
            f"{subject} of shape {list(values.shape)} for data of shape {list(shape)}, axis {axis}.",
            "Supported: one number, or one for each index of the axis.",
        )
    return values.reshape([len(values) if i == axis else 1 for i in range(len(shape))])


def linear_parameters(
    name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], default: str, signed: bool = False
) -> tuple[Array, Array, str]:
    """(scale, zero point, ONNX type of the codes) of QuantizeLinear or DequantizeLinear; `signed` as in `scale_of`."""
    axis = attrs.get("axis", 1)
    scale = scale_of(name, inputs[1] if len(inputs) > 1 else None, signed=signed)
    zero: Array = np.zeros(1, np.int64)
    zero_input = inputs[2] if len(inputs) > 2 else None
    if zero_input is not None:
        zero, default = integers(name, zero_input, "the zero point", [*_SHORT, "int32"])
    if attrs.get("block_size", 0):
        zero = np.zeros_like(scale, np.int64) if zero_input is None else zero
        scale = _spread(name, scale, shape, attrs, "the scale")
        return scale, _spread(name, zero, shape, attrs, "the zero point"), default
    return placed(name, scale, shape, axis, "the scale"), placed(name, zero, shape, axis, "the zero point"), default


def quantizer_of(
    name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], *, signed: bool = False
) -> QuantizeLinear:
    """QuantizeLinear of data of shape `shape`; `inputs`: data (not used), scale, zero point.

    `signed`: the scale may be negative. Raises HG013, HG020, HG022, HG023, HG026.
    """
    output_dtype = attrs.get("output_dtype", 0)
    names = {kind: onnx.TensorProto.DataType.Name(kind).lower() for kind in DTYPES}
    if output_dtype and names.get(output_dtype) not in _SHORT:
        raise fail("HG026", name, f"attribute output_dtype is {output_dtype}.", f"Supported: {', '.join(_SHORT)}.")
    default = names[output_dtype] if output_dtype else "uint8"
    scale, zero, kind = linear_parameters(name, shape, inputs, attrs, default, signed)
    if output_dtype and kind != names[output_dtype]:
        text = f"output_dtype is {names[output_dtype]}, but the zero point is of type {kind}."
        raise fail("HG026", name, text, "Give both the same type, or leave one out.")
    if kind not in _SHORT:
        raise fail("HG026", name, f"the zero point is of type {kind}.", f"Supported: {', '.join(_SHORT)}.")
    return QuantizeLinear(scale, zero, _TYPES[kind], numpy_type(kind))


def dequantizer_of(name: str, shape: Shape, inputs: ConstInputs, attrs: dict[str, Any], dtype: str) -> Dequantize:
    """DequantizeLinear of data of this shape and dtype; `inputs`: data (not used), scale, zero point.

    Raises HG013, HG020, HG022, HG023, HG026.
    """
    if np.dtype(dtype).kind not in "iu":
        raise fail("HG026", name, f"DequantizeLinear of {dtype} data.", "Its input must be an integer tensor.")
    scale, zero, _ = linear_parameters(name, shape, inputs, attrs, dtype)
    return Dequantize(scale, zero)


def numpy_type(kind: str) -> str:
    """The numpy dtype that holds an ONNX integer type."""
    return {"int2": "int8", "uint2": "uint8", "int4": "int8", "uint4": "uint8"}.get(kind, kind)


def dequantized(name: str, const: Const, inputs: ConstInputs, attrs: dict[str, Any]) -> Const:
    """A constant after DequantizeLinear, with its codes; scales and zero points may be given per block.

    Codes and zero points change their sign if the scale is negative. Codes of floats of 8 or 4 bits are
    multiples of one power of two.
    """
    if const.array.dtype.name in _FLOATS:
        return _float_codes(name, const, inputs, attrs)
    codes, kind = integers(name, const, "the constant", [*_SHORT, "int32"])
    scale, zero, _ = linear_parameters(name, codes.shape, inputs, attrs, kind, True)
    real = (codes - zero).astype(scale.dtype) * scale
    sign = np.where(scale < 0, -1, 1)
    spread, point = (np.broadcast_to(part, codes.shape) for part in (np.abs(scale), (zero * sign).astype(np.float32)))
    return Const(np.asarray(real), codes * sign, spread, point, kind)


def _spread(name: str, values: Array, shape: Shape, attrs: dict[str, Any], subject: str) -> Array:
    """Values per block of `block_size` along `axis`, repeated for each element; the last block may be shorter."""
    size, axis, rank = attrs["block_size"], attrs.get("axis", 1), len(shape)
    axis = axis + rank if axis < 0 else axis
    if size < 1 or not 0 <= axis < rank:
        text = f"attribute block_size is {size}, axis is {axis}, for data of shape {list(shape)}."
        raise fail("HG013", name, text, "block_size must be 1 or more, and axis an axis of the data.")
    block_shape = tuple(-(-n // size) if i == axis else n for i, n in enumerate(shape))
    if values.shape != block_shape:
        text = f"{subject} of shape {list(values.shape)} for data of shape {list(shape)}."
        raise fail("HG023", name, text, f"Blocks of {size} along axis {axis} need the shape {list(block_shape)}.")
    return np.repeat(values, size, axis=axis).take(np.arange(shape[axis]), axis=axis)


def _float_codes(name: str, const: Const, inputs: ConstInputs, attrs: dict[str, Any]) -> Const:
    """A constant of floats of 8 or 4 bits after DequantizeLinear. Raises HG013, HG022 - HG024, HG026, HG027."""
    values = const.array.astype(np.float64)
    if not np.isfinite(values).all():
        hint = "Infinity and NaN have no integer code: every element must be a finite number."
        raise fail("HG027", name, "a constant is not finite.", hint)
    zero = inputs[2] if len(inputs) > 2 else None
    if zero is not None and zero.array.astype(np.float64).any():
        raise fail("HG024", name, f"the zero point of {const.array.dtype.name} data is not 0.", "ONNX requires 0.")
    scale = scale_of(name, inputs[1] if len(inputs) > 1 else None, signed=True)
    blocks = attrs.get("block_size", 0)
    element_scales = (
        _spread(name, scale, values.shape, attrs, "the scale")
        if blocks
        else placed(name, scale, values.shape, attrs.get("axis", 1), "the scale")
    )
    spread = np.broadcast_to(element_scales, values.shape)
    # The largest power of two that divides all numbers; the smallest positive number of a type is 2^-17.
    step = next(2.0**-k for k in range(18) if (values * 2.0**k == np.round(values * 2.0**k)).all())
    real = values.astype(spread.dtype) * spread
    exact = (np.abs(spread) * spread.dtype.type(step)).astype(spread.dtype)
    codes = (values / step * np.sign(spread)).astype(np.int64)
    return Const(np.asarray(real), codes, exact, np.zeros(values.shape, np.float32))


# --------------------------------------------------------------------------- linear layers


def integer_product(
    name: str, shape: Shape, dtype: str, inputs: ConstInputs, layout_of: Layout = product_layout
) -> ShapedOps:
    """MatMulInteger of data of this shape and dtype.

    `inputs`: data (not used), weights, zero points of both. `layout_of`: of data times weights, or of weights times
    data.
    """
    check_layer_dtype(name, dtype)
    weight = integer_tensor(name, inputs[1])
    layout = layout_of(name, shape, weight.shape)
    weight_zero = zero_of(name, inputs[3], "the weights' zero point")
    per_column = layout_of is product_layout and weight.size == math.prod(weight.shape[-2:])
    if weight_zero.size not in (1, weight.shape[-1] if per_column else 1):
        text = f"the weights' zero point has the shape {list(weight_zero.shape)}."
        raise fail("HG023", name, text, "Supported: one number, or one for each column of a single matrix.")
    matrix = layout.matrix(layout.rows(weight - weight_zero.reshape(-1)))
    return [*layout.data_moves, (_sums(name, matrix, inputs[2], layout.result), layout.result), *layout.result_moves]


def _sums(name: str, weight: Array, zero: Const | None, shape: Shape) -> MatMulInteger:
    data_zero = zero_of(name, zero, "the data's zero point").reshape(-1)
    rows = shape[-2] if len(shape) > 1 else 1
    if data_zero.size != 1 and (data_zero.size != rows or (data_zero != data_zero[0]).any()):
        text = f"the data's zero point has {data_zero.size} values that differ, or do not fit {rows} rows."
        raise fail("HG024", name, text, "Supported: one value for all rows.")
    return MatMulInteger(np.ascontiguousarray(weight), np.full(weight.shape[1], data_zero[0]))


def check_layer_dtype(name: str, dtype: str) -> None:
    """Check the dtype of an integer layer's data. Raises HG026."""
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        raise fail("HG026", name, f"an integer layer with {dtype} data.", "Supported: int8, uint8, int16, uint16.")


def integer_tensor(name: str, const: Const | None) -> Array:
    """Constant integer weights as int64. Raises HG020, HG026."""
    if const is None:
        raise fail("HG020", name, "the weights are not a constant.", "They must be an initializer.")
    return integers(name, const, "the weight", _SHORT)[0]


def zero_of(name: str, const: Const | None, subject: str) -> Array:
    """The zero points of an input, int64; 0 if it is absent. Raises HG023, HG026."""
    if const is None:
        return np.zeros(1, np.int64)
    values, _ = integers(name, const, subject, _SHORT)
    if not values.size:
        raise fail("HG023", name, f"{subject} is empty.", "Give one number, or leave the input out.")
    return values


# --------------------------------------------------------------------------- integer rescaling


def requantize(node: NodeContext) -> Imported:
    """Requantize of the hlsgen domain. Raises HG020, HG023, HG025, HG026, HG027."""
    name, shape, attrs = node.name, node.shape, node.attrs
    if node.dtype != "int32":
        raise fail("HG026", name, f"Requantize of {node.dtype} data.", "Supported: int32.")
    names = [convention.value for convention in Convention if convention is not Convention.FLOAT64]
    if attrs.get("rounding", "double") not in names:
        text = f"attribute rounding is {attrs['rounding']!r}."
        raise fail("HG025", name, text, f"Supported: {', '.join(names)}.")
    parts = []
    for i, subject, largest in ((1, "the multiplier", (1 << 31) - 1), (2, "the shift", 62)):
        const = node.constant(i)
        if const is None:
            raise fail("HG020", name, f"{subject} is not a constant.", "It must be an initializer.")
        values, _ = integers(name, const, subject, ["int32"])
        if not values.size or values.min() < 0 or values.max() > largest:
            raise fail("HG027", name, f"{subject} is out of range or empty.", f"Supported: 0 to {largest}.")
        parts.append(placed(name, values, shape, attrs.get("axis", -1), subject))
    zero_input = node.constant(3)
    if zero_input is None:
        raise fail("HG020", name, "the zero point is not a constant.", "It must be an initializer.")
    zero, kind = integers(name, zero_input, "the zero point", ["int8", "uint8", "int16", "uint16"])
    multiplier, shift = parts
    if zero.size != 1:
        raise fail("HG023", name, f"the zero point has the shape {list(zero.shape)}.", "Use one per tensor.")
    scalar_shape = (1,) * len(shape)
    convention = Convention(attrs.get("rounding", "double"))
    addend, zero = np.zeros(scalar_shape, np.int64), zero.reshape(scalar_shape)
    return elementwise(node, Requantize(convention, multiplier, addend, shift, zero, _TYPES[kind], kind))
