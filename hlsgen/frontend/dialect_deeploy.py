"""Deeploy's integer operators, which files have in any domain: RequantShift, iGELU, iHardswish, iNoNorm, divisions.

Attributes are numbers, or tensors of one number, and differ from file to file; constants are whole numbers of any type.
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
#: Most of what constants may be.
_LARGEST = 1 << 31


def whole_attribute(node: NodeContext, key: str, default: int | None = None) -> int:
    """A whole number: an integer, a float, or a tensor of one of them. Raises HG013."""
    given = node.attrs.get(key, default)
    if given is None:
        raise fail("HG013", node.name, f"attribute {key} is missing.", "It must be one whole number.")
    array = onnx.numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)
    number = array.reshape(-1)[0] if array.dtype.kind in "fiub" and array.size == 1 else np.float64("nan")
    if not np.isfinite(number) or int(number) != number or abs(int(number)) > 1 << 40:
        raise fail("HG013", node.name, f"attribute {key} is {array.tolist()!r}.", "It must be one whole number.")
    return int(number)


def power_of_two(node: NodeContext, key: str) -> int:
    """The logarithm of an attribute. Raises HG013."""
    number = whole_attribute(node, key)
    if number < 1 or number & (number - 1):
        raise fail("HG013", node.name, f"attribute {key} is {number}.", "It must be a power of two.")
    return number.bit_length() - 1


def levels_of(node: NodeContext) -> int:
    """The number of codes of the result. Raises HG013."""
    key = "n_levels" if "n_levels" in node.attrs else "n_levels_out"
    levels = whole_attribute(node, key, 256)
    if not 2 <= levels <= 1 << 16:
        raise fail("HG013", node.name, f"{levels} levels.", "Supported: 2 to 65536.")
    return levels


def whole_constant(node: NodeContext, i: int, what: str, largest: int = _LARGEST) -> Array:
    """Whole numbers as int64, with the rank of the data. Raises HG020, HG023, HG026, HG027."""
    name, shape = node.name, node.shape
    const = node.constant(i)
    if const is None:
        raise fail("HG020", name, f"input {what} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiu" or not (const.array == np.round(const.array)).all():
        raise fail("HG026", name, f"input {what} is not made of whole numbers.", "Store integers.")
    array = const.array.astype(np.int64)
    if np.abs(array).max(initial=0) >= largest:
        raise fail("HG027", name, f"input {what} has the value {np.abs(array).max()}.", "At most 31 bits.")
    own = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if own.ndim != len(shape) or any(own.shape[i] not in (1, shape[i]) for i in range(len(shape))):
        raise fail("HG023", name, f"input {what} of shape {list(array.shape)} for data of shape {list(shape)}.")
    return own


def requant_shift(node: NodeContext) -> Imported:
    """clip((x * mul + add + (div >> 1)) >> log2(div)). Raises HG013, HG020, HG023, HG026, HG027."""
    shift, levels, signed = power_of_two(node, "div"), levels_of(node), whole_attribute(node, "signed", 1)
    mul, add = whole_constant(node, 1, "mul"), whole_constant(node, 2, "add", 1 << 40)
    type_ = IntType(-(levels // 2), levels // 2 - 1) if signed else IntType(0, levels - 1)
    one = (1,) * len(node.shape)
    zero = np.zeros(one, np.int64)
    half = (1 << shift) >> 1
    op = Requantize(Convention.FLOOR, mul, add + half, np.full(one, shift), zero, type_, node.dtype)
    return elementwise(node, op)


# --------------------------------------------------------------------------- functions of single elements


def integer_gelu(node: NodeContext) -> Imported:
    """iGELU. Raises HG013."""
    b, one = whole_attribute(node, "b"), whole_attribute(node, "one")
    if not -(1 << 15) < b <= 0 or abs(one) >= 1 << 31:
        raise fail("HG013", node.name, f"b is {b}, one is {one}.", "b must be at most 0, both of at most 16 bits.")
    return elementwise(node, IntegerActivation(IntegerKind.GELU, (b, one), _INT32, node.dtype))


def integer_hardswish(node: NodeContext) -> Imported:
    """iHardswish. Raises HG013."""
    three, six, factor = (whole_attribute(node, key) for key in ("three", "six", "one_over_six"))
    if six < 0 or max(abs(three), six, abs(factor)) >= 1 << 15:
        raise fail("HG013", node.name, f"three is {three}, six {six}, one_over_six {factor}.", "At most 15 bits.")
    return elementwise(node, IntegerActivation(IntegerKind.HARDSWISH, (three, six, factor), _INT32, node.dtype))


def integer_no_norm(node: NodeContext) -> Imported:
    """iNoNorm: ((x * w + b) * mul) >> log2(D), in 8 bits, which wrap. Raises HG013, HG020, HG023, HG026, HG027."""
    shift, mul = power_of_two(node, "D"), whole_attribute(node, "mul")
    weight, bias = whole_constant(node, 1, "weight", 1 << 20), whole_constant(node, 2, "bias")
    if abs(mul) >= 1 << 20:
        raise fail("HG013", node.name, f"attribute mul is {mul}.", "At most 20 bits.")
    divisor = np.full((1,) * len(node.shape), 1 << shift)
    type_ = IntType(-128, 127)
    return elementwise(node, IntegerRatio(weight * mul, bias * mul, divisor, type_, node.dtype, wraps=True))


def integer_division(node: NodeContext) -> Imported:
    """IntegerDiv, TrueIntegerDiv by a constant: Delta * eta * x / (eta * c + eps), to the nearest, halves away from 0.

    Raises HG013, HG020, HG022, HG023, HG026, HG027.
    """
    if node.position:
        raise fail("HG020", node.name, "the divisor is computed from the model's input.", "It must be a constant.")
    delta, eta = (whole_attribute(node, key, 1) for key in ("Delta", "eta"))
    eps = whole_attribute(node, "eps", 0)
    divisor = eta * whole_constant(node, 1, "divisor", 1 << 24) + eps
    if max(abs(delta), abs(eta)) >= 1 << 20 or abs(delta * eta) >= 1 << 31 or (divisor >= 1 << 40).any():
        raise fail("HG013", node.name, f"Delta is {delta}, eta {eta}, eps {eps}.", "Their product has at most 31 bits.")
    if (divisor <= 0).any():
        raise fail("HG022", node.name, f"eta * divisor + eps is {divisor.min()}.", "It must be greater than 0.")
    factor = np.full((1,) * len(node.shape), delta * eta)
    return elementwise(node, IntegerRatio(factor, divisor >> 1, divisor, _INT32, node.dtype, mirrored=True))


def integer_mean(node: NodeContext) -> Imported:
    """IntegerMean over points of images or tokens: the sum divided by their number, to the nearest, halves up.

    Raises HG004, HG010, HG013, HG026.
    """
    given = node.attrs.get("axes", [])
    array = onnx.numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)
    axes = [int(axis) for axis in array.reshape(-1)]
    (steps,) = reduction(replace(node, attrs={**node.attrs, "axes": axes})).outputs
    count = int(np.prod(node.shape)) // int(np.prod(steps[-1][1]))
    shape = steps[-1][1]
    one = np.ones((1,) * len(shape), np.int64)
    return Imported(([*steps, (IntegerRatio(one, one * (count // 2), one * count, _INT32, node.dtype), shape)],))
