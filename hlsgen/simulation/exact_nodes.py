"""Values of single nodes of a file by the numeric contract, computed from the file's own constants.

Sums are exact and rounded once, real functions are rounded once (docs/numeric-contract.md). All other values come from
the executor. This module does not use the Model: weights and scales are read from the nodes' inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.domains import CHANNELS_LAST, ONNX
from hlsgen.interpreter import exact_numbers
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import Grid, Known, all_equal, dyadic, multiples, rounded_sum
from hlsgen.simulation.oracles import Unable, run_node

LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose"])
ROWS = frozenset(["LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"])
POOLS = frozenset(["AveragePool", "GlobalAveragePool", "ReduceMean"])
#: Real functions that are rounded once.
ROUNDED_ONCE = frozenset("Exp Log Tanh Sigmoid Erf Gelu Mish Celu Elu Selu Softplus Softsign Reciprocal Pow".split())
#: Half a step of float32, and steps by which a library's function may be off.
_UNIT, _STEPS = 2.0**-24, 16


@dataclass(frozen=True, eq=False)
class Rounding:
    """A node that an executor rounds differently: its value there, its value by the contract, and a bound of the
    distance.

    - kind: "sum", "bias" (a sum with a bias), "tensors" (an Add of tensors) or "function". operator: of the node.
    - executor, contract, reach: of the node's output shape.
    - terms: the exact sum as arguments of `rounded_sum`, if nothing was added to it.
    """

    node: str
    kind: str
    executor: Array
    contract: Array
    reach: Array
    terms: tuple[tuple[Array, ...], ...] = ()
    operator: str = ""

    def number(self, index: tuple[int, ...]) -> Fraction | None:
        """The exact sum at a place, or None if it is not known."""
        if not self.terms:
            return None
        shape = self.contract.shape
        numbers = [[float(np.broadcast_to(part, shape)[index]) for part in term] for term in self.terms]
        return sum((math.prod(map(Fraction, term), start=Fraction(1)) for term in numbers), Fraction(0))

    @property
    def differs(self) -> bool:
        """True if both values differ anywhere."""
        return not all_equal(self.executor, self.contract)

    @property
    def is_within_reach(self) -> bool:
        """True if the distance is within the bound everywhere."""
        gap = np.abs(self.executor.astype(np.float64) - self.contract.astype(np.float64))
        return bool((gap <= self.reach).all())


# --------------------------------------------------------------------------- linear nodes


def linear(
    node: onnx.NodeProto,
    data: Known | None,
    second: Known | None,
    constants: Mapping[str, Array],
    grids: Mapping[str, Grid],
    opsets: Mapping[str, int],
) -> tuple[Known, tuple[tuple[Array, ...], ...]] | None:
    """The exact sum of one frame, rounded once, with the node's bias, and its terms, or None if it is not known.

    terms: () if the node adds a bias or has a factor. second: the right factor, if it is no constant.
    """
    weight_is_left = second is None and node.op_type == "MatMul" and node.input[0] in constants
    if second is not None:
        factors = second.grids or ()
    elif (name := node.input[0 if weight_is_left else 1]) in constants:
        weight = grids.get(name) or multiples(constants[name], None)
        factors = (weight,) if weight is not None else ()
    else:
        return None
    if data is None or not data.grids or not factors:
        return None
    terms: list[tuple[Array, ...]] = []
    for grid, weight in product(data.grids, factors):
        largest_sum = float(np.abs(grid.integers).max(initial=0) * np.abs(weight.integers).sum())
        factors_in_order = (weight.integers, grid.integers) if weight_is_left else (grid.integers, weight.integers)
        exact = None if largest_sum >= 1 << 53 else _integer_sum(_bare(node), *factors_in_order, opsets)
        if exact is None:
            return None
        scale = weight.scale
        if scale.size > 1:
            scale = scale.reshape(-1, 1) if weight_is_left else _of_outputs(node, scale, exact.ndim)
        terms.append((exact, np.asarray(scale), grid.scale))
    real = rounded_sum(*terms)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    sums = None
    if len(terms) == 1 and factors[0].scale.size == 1 and attributes.get("alpha", 1.0) == 1:
        sums = (Grid(terms[0][0], np.asarray(factors[0].scale.reshape(()) * data.grids[0].scale)),)
    if len(node.input) < 3 or not node.input[2]:
        if node.op_type != "Gemm" or attributes.get("alpha", 1.0) == 1:
            return Known(real, sums, sums, plain=sums is not None), tuple(terms)
        return Known(real * np.float32(attributes["alpha"])), ()
    if node.op_type == "Gemm" and attributes.get("alpha", 1.0) != 1:
        real = real * np.float32(attributes["alpha"])
    bias = constants[node.input[2]]
    if node.op_type == "Gemm":
        bias = bias * np.float32(attributes.get("beta", 1.0))
    bias = _of_outputs(node, bias, real.ndim) if node.op_type.startswith("Conv") else bias
    added = dyadic(np.broadcast_to(bias, real.shape))
    return Known(real + bias, None, (*sums, added) if sums and added else None), ()


def _bare(node: onnx.NodeProto) -> onnx.NodeProto:
    """A copy of the node without bias and factors."""
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    del bare.input[2:]
    attributes = [a for a in node.attribute if a.name not in ("alpha", "beta")]
    del bare.attribute[:]
    bare.attribute.extend(attributes)
    return bare


def _integer_sum(bare: onnx.NodeProto, x: Array, weight: Array, opsets: Mapping[str, int]) -> Array | None:
    """The node's result for integers, as float64, or None if floats are not exact there."""
    is_image = bare.op_type.startswith("Conv") or bare.domain == CHANNELS_LAST
    try:
        if not is_image:
            return run_node("onnx", bare, [x, weight], opsets)[0].astype(np.float64)
        # onnx.reference pads some of them wrongly.
        executor = "qonnx" if bare.domain == CHANNELS_LAST else "onnxruntime"
        return _sum_by_digits(executor, bare, x, weight, opsets)
    except Unable:  # for example an output_padding of at least the stride
        return None


def _sum_by_digits(
    executor: str, bare: onnx.NodeProto, x: Array, weight: Array, opsets: Mapping[str, int]
) -> Array | None:
    """As `_integer_sum`, from digits of x that are so small that sums in float32 are exact."""
    output_axis = 1 if bare.op_type == "ConvTranspose" else 0
    sums_of_weights = np.abs(weight).sum(axis=tuple(axis for axis in range(weight.ndim) if axis != output_axis))
    largest_digit = (2.0**_EXACT_BITS - 1) // max(1.0, float(sums_of_weights.max(initial=0)))
    if largest_digit < 1 or np.abs(weight).max(initial=0) >= 2.0**_EXACT_BITS:
        return None
    base, unit, remaining = 2.0 ** np.floor(np.log2(largest_digit + 1)), 1.0, x.astype(np.float64)
    total = np.zeros(())
    while not unit > 1 or remaining.any():
        high = np.trunc(remaining / base)
        digits = [(remaining - high * base).astype(np.float32), weight.astype(np.float32)]
        total = total + run_node(executor, bare, digits, opsets)[0].astype(np.float64) * unit
        remaining, unit = high, unit * base
    return total


def _of_outputs(node: onnx.NodeProto, values: Array, rank: int) -> Array:
    """One value for each output, in a shape that broadcasts to a frame of this rank along the axis of outputs."""
    channels_first = node.op_type.startswith("Conv") and node.domain in ONNX
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    if node.op_type == "ConvTranspose" and values.ndim > 1:
        values = np.tile(values.reshape(-1), groups)  # each group has the same outputs
    return values.reshape(-1, *(1,) * (rank - 2)) if channels_first else values.reshape(-1)


def linear_reach(executor: str, node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> Array:
    """A bound of the distance between float32 sums in any order, fused or not, and the exact sum.

    The error of n products is at most ((1 + u)^n - 1) times the sum of their magnitudes. Values and weights are
    themselves rounded products of code and scale, and adding the bias rounds again: six more operations.
    """
    weight = arrays[1]
    match node.op_type:
        case "MatMul":
            products = weight.shape[-2] if weight.ndim > 1 else weight.size
        case "Gemm":
            products = max(weight.shape)
        case "ConvTranspose":
            products = weight.size // weight.shape[1]
        case _:
            products = weight.size // weight.shape[0]
    positive = onnx.NodeProto()
    positive.CopyFrom(node)
    for attribute in positive.attribute:
        if attribute.name in ("alpha", "beta"):
            attribute.f = abs(attribute.f)
    magnitude = run_node(executor, positive, [np.abs(a) for a in arrays], opsets)[0].astype(np.float64)
    steps = (products + 6) * _UNIT
    return np.asarray(magnitude * steps / (1 - steps) * 1.01 + products * 2.0**-149)


#: onnxruntime's fused MatMul of dequantized tensors: the integer sum times the rounded product of the scales.
INTEGER_TO_FLOAT = "MatMulIntegerToFloat"


def integer_to_float(node: onnx.NodeProto, arrays: Sequence[Array]) -> tuple[Array, tuple[Grid, ...] | None, Array]:
    """The exact sum of the file's MatMul rounded once, with the bias; that sum as a grid; a bound for other orders."""
    arrays_by_input = dict(zip((i for i, name in enumerate(node.input) if name), arrays, strict=True))
    integers = [
        arrays_by_input[i].astype(np.int64) - arrays_by_input[i + 4].astype(np.int64)
        if i + 4 in arrays_by_input
        else arrays_by_input[i]
        for i in (0, 1)
    ]
    sums = np.matmul(*integers).astype(np.float64)
    left_scale, right_scale = (np.asarray(arrays_by_input[i], np.float64) for i in (2, 3))
    value = rounded_sum((sums, left_scale, right_scale))
    magnitude = np.matmul(*map(np.abs, integers)).astype(np.float64) * left_scale * right_scale
    steps = (integers[0].shape[-1] + 6) * _UNIT
    reach = magnitude * steps / (1 - steps) * 1.01
    grid = (
        (Grid(sums, left_scale.reshape(()) * right_scale.reshape(())),)
        if left_scale.size == right_scale.size == 1
        else None
    )
    if 6 not in arrays_by_input:
        return value, grid, np.asarray(reach)
    value = value + arrays_by_input[6]
    return value, None, np.asarray(reach + (np.abs(value) + np.abs(arrays_by_input[6])) * 2 * _UNIT)


#: Bits of the integers that float32 holds, and most grids of a tensor of functions of codes.
_EXACT_BITS, _MAX_DIGITS = 24, 16

# --------------------------------------------------------------------------- averages, functions, normalization


def averaged(
    node: onnx.NodeProto, data: Known, axes: Sequence[Array], executor: str, opsets: Mapping[str, int]
) -> tuple[Array, int] | None:
    """The exact sum of each window, rounded once and divided by its count, and the largest count.

    The result is None if the exact sums are not known. axes: the node's other inputs.
    """
    grids = data.grids or _digits(data.value)
    if not grids:
        return None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("ceil_mode", 0) or attributes.get("channels_last", 0):
        return None
    integer_arrays = [grid.integers.astype(np.float32) for grid in grids]
    if any(np.abs(integers).sum() >= 1 << 24 for integers in integer_arrays):
        return None
    padded_node = onnx.NodeProto()
    padded_node.CopyFrom(node)
    if node.op_type == "AveragePool":
        taps = int(np.prod(attributes["kernel_shape"]))
        attributes_left = [a for a in padded_node.attribute if a.name != "count_include_pad"]
        del padded_node.attribute[:]
        padded_node.attribute.extend([*attributes_left, helper.make_attribute("count_include_pad", 1)])
    else:
        taps = 0
    totals = [
        run_node(executor, padded_node, [integers, *axes], opsets)[0].astype(np.float64) for integers in integer_arrays
    ]
    taps = taps or integer_arrays[0].size // max(1, totals[0].size)
    counts = np.full(totals[0].shape, float(taps))
    if node.op_type == "AveragePool" and not attributes.get("count_include_pad", 0):
        counts = np.round(
            run_node(executor, padded_node, [np.ones_like(integer_arrays[0])], opsets)[0].astype(np.float64) * taps
        )
    sums = rounded_sum(*((np.round(t * taps), g.scale) for t, g in zip(totals, grids, strict=True)))
    return sums / counts.astype(np.float32), taps


def _digits(value: Array) -> tuple[Grid, ...] | None:
    """float32 numbers as a sum of grids, whose integers executors add without rounding.

    The result is None if there are too many.
    """
    numbers = value.astype(np.float64)
    bits = _EXACT_BITS - int(value.size).bit_length()
    if not np.isfinite(numbers).all() or bits < 1:
        return None
    exponents = np.frexp(numbers[numbers != 0])[1]
    lowest, highest = int(exponents.min(initial=0)) - _EXACT_BITS, int(exponents.max(initial=0))
    grids = []
    for exponent in range(highest - bits, lowest - bits, -bits):
        integers = np.trunc(np.ldexp(numbers, -exponent))
        numbers = numbers - np.ldexp(integers, exponent)
        grids.append(Grid(integers, np.asarray(2.0**exponent)))
    return tuple(grids) if len(grids) <= _MAX_DIGITS and not numbers.any() else None


def average_reach(magnitude: Array, taps: int) -> Array:
    """As `linear_reach`, for an average; `magnitude`: the average of absolute values."""
    steps = (taps + 4) * _UNIT
    return np.asarray(magnitude.astype(np.float64) * steps / (1 - steps) * 1.01 + 2.0**-140)


def function(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> Array:
    """The function in float64, rounded once to the dtype of the data."""
    float64_arrays = [a.astype(np.float64) for a in arrays]
    return np.asarray(run_node("onnx", node, float64_arrays, opsets)[0].astype(arrays[0].dtype))


def function_reach(node: onnx.NodeProto, first: Array, second: Array) -> Array:
    """Some steps of the float type. If libraries cut off the function near 0 or 1, steps of at least 1."""
    largest = np.maximum(np.abs(first), np.abs(second))
    if node.op_type in ("Sigmoid", "Tanh", "Erf"):
        largest = np.maximum(largest, np.asarray(1, largest.dtype))
    return np.asarray(np.spacing(largest).astype(np.float64) * _STEPS)


def rows(node: onnx.NodeProto, data: Known, arrays: Sequence[Array], opset: int) -> tuple[Array, Array] | None:
    """A normalization of rows by the contract, with gamma and beta, and a bound for float32 operations in any order.

    The result is None if the exact inputs are not known. arrays: inputs of the node, the data first.
    """
    attributes: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, kind = arrays[0], node.op_type
    shape, axes, epsilon = x.shape, attributes.get("axes"), float(np.float32(attributes.get("epsilon", 1e-5)))
    subtracts_mean = kind != "RMSNormalization" and attributes.get("kind", b"layer") == b"layer"
    if kind == "GroupNormalization":
        groups = attributes["num_groups"]
        if opset < 21:
            arrays = [x, *(np.repeat(a, shape[1] // groups) for a in arrays[1:])]
        shape, axes = (shape[0], groups, shape[1] // groups, *shape[2:]), range(2, x.ndim + 1)
    elif kind == "InstanceNormalization":
        axes = range(2, x.ndim)
    elif axes is None:
        axes = range(attributes.get("axis", -1) % x.ndim, x.ndim)
    axes = [a % len(shape) for a in axes]
    if data.grids is None:
        return None
    order = [*(a for a in range(len(shape)) if a not in axes), *axes]
    length = math.prod(shape[a] for a in axes)

    def as_rows(values: Array) -> Array:
        return np.asarray(np.broadcast_to(values, x.shape).reshape(shape).transpose(order).reshape(-1, length))

    def from_rows(values: Array) -> Array:
        placed = values.reshape([shape[a] for a in order]).transpose([int(a) for a in np.argsort(order)])
        return np.asarray(placed.reshape(x.shape))

    exact_data = _in_one_unit(data.grids, x.shape)
    if exact_data is None:
        return None
    value = exact_numbers.normalized(
        replace(exact_data, integers=as_rows(exact_data.integers)), subtracts_mean, Fraction(epsilon)
    )
    reach = _rows_reach(as_rows(x).astype(np.float64), value.astype(np.float64), epsilon, subtracts_mean)
    value, reach = from_rows(value), from_rows(reach)
    channels = kind in ("InstanceNormalization", "GroupNormalization")
    factors = [a.reshape(1, -1, *(1,) * (x.ndim - 2)) if channels else a for a in arrays[1:]]
    if factors:
        value = value * factors[0]
        reach = reach * np.abs(factors[0]) + np.abs(value) * 4 * _UNIT
    if len(factors) > 1:
        reach = reach + (np.abs(value) + np.abs(factors[1])) * 4 * _UNIT
        value = value + factors[1]
    return np.asarray(value, np.float32), np.asarray(reach)


def _in_one_unit(grids: Sequence[Grid], shape: tuple[int, ...]) -> exact_numbers.Exact | None:
    """The sum of grids in one common unit, or None if a grid has several scales."""
    scales = {float(s) for grid in grids for s in np.unique(grid.scale)}
    if any(np.size(grid.scale) > 1 and len(np.unique(grid.scale)) > 1 for grid in grids):
        return None
    unit = exact_numbers.common_unit(Fraction(s) for s in scales)
    integers = np.zeros(shape, object)
    for grid in grids:
        factor = int(Fraction(float(np.ravel(grid.scale)[0])) / unit)
        integers = integers + np.broadcast_to(grid.integers, shape).astype(np.int64).astype(object) * factor
    return exact_numbers.Exact(integers, unit, None)


def _rows_reach(x: Array, result: Array, epsilon: float, layer: bool) -> Array:
    """The bound for a normalization of rows, `result`, of x.

    A mean of N numbers is off by N roundings of the largest number, and each difference by the same amount. A variance
    is
    off by twice that amount times its root, and by N roundings of itself. All of it is doubled. The variance may also
    be
    computed as mean of squares minus square of the mean.
    """
    length = x.shape[-1]
    steps, largest = (length + 8) * _UNIT, np.abs(x).max(axis=-1, keepdims=True)
    middle = x.mean(axis=-1, keepdims=True) if layer else 0.0
    variance = ((x - middle) ** 2).mean(axis=-1, keepdims=True)
    mean_error = steps * largest if layer else 0.0 * largest
    cancelled = steps * largest * largest * 2 if layer else 0.0
    spread = 2 * np.sqrt(variance) * mean_error + mean_error * mean_error + steps * variance + cancelled
    relative = spread / (variance + epsilon) + 8 * _UNIT
    return np.asarray(2 * (mean_error / np.sqrt(variance + epsilon) + np.abs(result) * relative))


def normalized(node: onnx.NodeProto, arrays: Sequence[Array]) -> tuple[Array, Array]:
    """BatchNormalization in the order of the contract, and a bound for other orders."""
    x, gamma, beta, mean, variance = arrays
    epsilon = np.float32(next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5))
    axis = (slice(None), *(None,) * (x.ndim - 2))
    factor = gamma * (np.float32(1) / np.sqrt(variance + epsilon))
    offset = beta - mean * factor
    value = x * factor[axis] + offset[axis]
    parts = np.abs(x * factor[axis]) + np.abs(mean * factor)[axis] + np.abs(beta)[axis]
    return np.asarray(value), np.asarray(parts.astype(np.float64) * 16 * _UNIT)
