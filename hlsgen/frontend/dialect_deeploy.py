"""Deeploy's integer operators in any domain: RequantShift, iGELU, iHardswish, iNoNorm, divisions.

Attributes are numbers or tensors of one number, depending on the file. Constants are whole numbers of any type.
`>>` rounds down, divisions truncate as in C.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.ops_pool import reduction
from hlsgen.ir.ops import Convention, IntegerActivation, IntegerKind, IntegerRatio, Requantize
from hlsgen.numerics.fixed import Array, IntType

_INT32 = IntType(-(1 << 31), (1 << 31) - 1)
#: Bound of the absolute values of constants, exclusive.
_LARGEST = 1 << 31


def whole_attribute(node: NodeContext, key: str, default: int | None = None) -> int:
    """The whole number of an attribute: an integer, a float, or a tensor of one of them. Raises HG013."""
    value = node.attrs.get(key, default)
    if value is None:
        raise fail("HG013", node.name, f"attribute {key} is missing.", "It must be one whole number.")
    array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    number = array.reshape(-1)[0] if array.dtype.kind in "fiub" and array.size == 1 else np.float64("nan")
    if not np.isfinite(number) or int(number) != number or abs(int(number)) > 1 << 40:
        text = f"attribute {key} is {array.tolist()!r}."
        raise fail("HG013", node.name, text, "It must be one whole number of at most 40 bits.")
    return int(number)


def power_of_two(node: NodeContext, key: str) -> int:
    """The base-2 logarithm of an attribute that is a power of two. Raises HG013."""
    number = whole_attribute(node, key)
    if number < 1 or number & (number - 1):
        raise fail("HG013", node.name, f"attribute {key} is {number}.", "It must be a power of two.")
    return number.bit_length() - 1


def levels_of(node: NodeContext) -> int:
    """The number of codes of the result. Raises HG013."""
    key = "n_levels" if "n_levels" in node.attrs else "n_levels_out"
    levels = whole_attribute(node, key, 256)
    if not 2 <= levels <= 1 << 16:
        raise fail("HG013", node.name, f"attribute {key} is {levels}.", "Supported: 2 to 65536 levels.")
    return levels


def whole_constant(node: NodeContext, i: int, input_name: str, bound: int = _LARGEST) -> Array:
    """The whole numbers of input i as int64, with the rank of the data and absolute values below `bound`.

    Raises HG020, HG023, HG026, HG027.
    """
    name, shape = node.name, node.shape
    const = node.constant(i)
    if const is None:
        raise fail("HG020", name, f"input {input_name} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiu" or not (const.array == np.round(const.array)).all():
        raise fail("HG026", name, f"input {input_name} is not made of whole numbers.", "Store integers.")
    array = const.array.astype(np.int64)
    magnitude = np.abs(array).max(initial=0)
    if magnitude >= bound:
        hint = f"Supported: absolute values below {bound}."
        raise fail("HG027", name, f"input {input_name} has the absolute value {magnitude}.", hint)
    aligned = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if aligned.ndim != len(shape) or any(aligned.shape[i] not in (1, shape[i]) for i in range(len(shape))):
        text = f"input {input_name} of shape {list(array.shape)} does not fit data of shape {list(shape)}."
        raise fail("HG023", name, text, "Each of its axes must have 1 element or those of the data's axis.")
    return aligned


def requant_shift(node: NodeContext) -> Imported:
    """clip((x * mul + add + (div >> 1)) >> log2(div)). Raises HG013, HG020, HG023, HG026, HG027."""
    shift, levels, signed = power_of_two(node, "div"), levels_of(node), whole_attribute(node, "signed", 1)
    mul, add = whole_constant(node, 1, "mul"), whole_constant(node, 2, "add", 1 << 40)
    type_ = IntType(-(levels // 2), levels // 2 - 1) if signed else IntType(0, levels - 1)
    scalar_shape = (1,) * len(node.shape)
    zero = np.zeros(scalar_shape, np.int64)
    half = (1 << shift) >> 1
    op = Requantize(Convention.FLOOR, mul, add + half, np.full(scalar_shape, shift), zero, type_, node.dtype)
    return elementwise(node, op)


# --------------------------------------------------------------------------- functions of single elements


def integer_gelu(node: NodeContext) -> Imported:
    """iGELU. Raises HG013."""
    b, unit = whole_attribute(node, "b"), whole_attribute(node, "one")
    if not -(1 << 15) < b <= 0 or abs(unit) >= 1 << 31:
        hint = "Supported: b from -32767 to 0, one of at most 31 bits and a sign."
        raise fail("HG013", node.name, f"attribute b is {b}, attribute one is {unit}.", hint)
    return elementwise(node, IntegerActivation(IntegerKind.GELU, (b, unit), _INT32, node.dtype))


def integer_hardswish(node: NodeContext) -> Imported:
    """iHardswish. Raises HG013."""
    three, six, factor = (whole_attribute(node, key) for key in ("three", "six", "one_over_six"))
    if six < 0 or max(abs(three), six, abs(factor)) >= 1 << 15:
        text = f"attributes three, six and one_over_six are {three}, {six} and {factor}."
        raise fail("HG013", node.name, text, "Supported: absolute values below 32768, six not negative.")
    return elementwise(node, IntegerActivation(IntegerKind.HARDSWISH, (three, six, factor), _INT32, node.dtype))


def integer_no_norm(node: NodeContext) -> Imported:
    """iNoNorm: ((x * w + b) * mul) >> log2(D), in 8 bits, which wrap. Raises HG013, HG020, HG023, HG026, HG027."""
    shift, mul = power_of_two(node, "D"), whole_attribute(node, "mul")
    weight, bias = whole_constant(node, 1, "weight", 1 << 20), whole_constant(node, 2, "bias")
    if abs(mul) >= 1 << 20:
        raise fail("HG013", node.name, f"attribute mul is {mul}.", f"Supported: absolute values below {1 << 20}.")
    divisor = np.full((1,) * len(node.shape), 1 << shift)
    type_ = IntType(-128, 127)
    return elementwise(node, IntegerRatio(weight * mul, bias * mul, divisor, type_, node.dtype, wraps=True))


def integer_division(node: NodeContext) -> Imported:
    """IntegerDiv, TrueIntegerDiv by a constant: Delta * eta * x / (eta * c + eps), to the nearest, ties away from 0.

    Raises HG013, HG020, HG022, HG023, HG026, HG027.
    """
    if node.position:
        raise fail("HG020", node.name, "the divisor is computed from the model's input.", "It must be a constant.")
    delta, eta = (whole_attribute(node, key, 1) for key in ("Delta", "eta"))
    eps = whole_attribute(node, "eps", 0)
    divisor = eta * whole_constant(node, 1, "divisor", 1 << 24) + eps
    if max(abs(delta), abs(eta)) >= 1 << 20 or abs(delta * eta) >= 1 << 31 or (divisor >= 1 << 40).any():
        text = f"attributes Delta, eta and eps are {delta}, {eta} and {eps}."
        hint = "Supported: Delta and eta below 2^20, their product below 2^31, eta * divisor + eps below 2^40."
        raise fail("HG013", node.name, text, hint)
    if (divisor <= 0).any():
        text = f"the divisor eta * divisor + eps is {divisor.min()}."
        raise fail("HG022", node.name, text, "It must be greater than 0.")
    factor = np.full((1,) * len(node.shape), delta * eta)
    return elementwise(node, IntegerRatio(factor, divisor >> 1, divisor, _INT32, node.dtype, mirrored=True))


def integer_mean(node: NodeContext) -> Imported:
    """IntegerMean over pixels of images or tokens: the sum divided by their number, to the nearest, ties up.

    Raises HG004, HG010, HG013, HG026.
    """
    value = node.attrs.get("axes", [])
    array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    axes = [int(axis) for axis in array.reshape(-1)]
    (steps,) = reduction(replace(node, attrs={**node.attrs, "axes": axes})).outputs
    count = int(np.prod(node.shape)) // int(np.prod(steps[-1][1]))
    shape = steps[-1][1]
    ones = np.ones((1,) * len(shape), np.int64)
    mean = IntegerRatio(ones, ones * (count // 2), ones * count, _INT32, node.dtype)
    return Imported(([*steps, (mean, shape)],))
