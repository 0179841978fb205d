"""What single nodes of a file mean by the numeric contract, computed from the file's own constants.

Sums are exact and rounded once, functions of the real numbers are rounded once (docs/numeric-contract.md); everything
else is what the executor gives. Nothing here knows the Model: weights and scales are read from the nodes' inputs.
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
from hlsgen.simulation.exact_values import Grid, Known, dyadic, multiples, once, same
from hlsgen.simulation.oracles import Unable, run_node

LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose"])
ROWS = frozenset(["LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"])
POOLS = frozenset(["AveragePool", "GlobalAveragePool", "ReduceMean"])
#: The real function, rounded once.
ROUNDED_ONCE = frozenset(
    "Exp Log Tanh Sigmoid Erf Gelu Mish Celu Elu Selu Softplus Softsign Reciprocal Pow".split()
)  # fmt: skip
#: Half a step of float32, and how many steps a library's function may be off.
_UNIT, _STEPS = 2.0**-24, 16


@dataclass(frozen=True, eq=False)
class Rounding:
    """A node that rounds otherwise in an executor: its value there and by the contract, and how far they may be apart.

    `kind`: "sum", "bias" (a sum with a bias), "tensors" (an Add of tensors) or "function"; `operator`: the node's. All of the node's output shape. `terms`: the exact sum, as `once` takes it, where nothing
    was added to it.
    """

    node: str
    kind: str
    executor: Array
    contract: Array
    reach: Array
    terms: tuple[tuple[Array, ...], ...] = ()
    operator: str = ""

    def number(self, index: tuple[int, ...]) -> Fraction | None:
        """The exact sum at a place, if it is known."""
        if not self.terms:
            return None
        shape = self.contract.shape
        numbers = [[float(np.broadcast_to(part, shape)[index]) for part in term] for term in self.terms]
        return sum((math.prod(map(Fraction, term), start=Fraction(1)) for term in numbers), Fraction(0))

    @property
    def differs(self) -> bool:
        return not same(self.executor, self.contract)

    @property
    def within(self) -> bool:
        gap = np.abs(self.executor.astype(np.float64) - self.contract.astype(np.float64))
        return bool((gap <= self.reach).all())


# --------------------------------------------------------------------------- linear nodes


def linear(
    node: onnx.NodeProto, data: Known | None, second: Known | None, constants: Mapping[str, Array],
    grids: Mapping[str, Grid], opsets: Mapping[str, int],
) -> tuple[Known, tuple[tuple[Array, ...], ...]] | None:  # fmt: skip
    """The exact sum of one frame, rounded once, and what the node adds to it; None if the numbers are not known.

    Also the terms of the sum, () if the node adds something. `second`: the right factor where it is computed, too.
    """
    left = second is None and node.op_type == "MatMul" and node.input[0] in constants
    if second is not None:
        factors = second.grids or ()
    elif (name := node.input[0 if left else 1]) in constants:
        weight = grids.get(name) or multiples(constants[name], None)
        factors = (weight,) if weight is not None else ()
    else:
        return None
    if data is None or not data.grids or not factors:
        return None
    terms: list[tuple[Array, ...]] = []
    for grid, weight in product(data.grids, factors):
        most = float(np.abs(grid.whole).max(initial=0) * np.abs(weight.whole).sum())
        both = (weight.whole, grid.whole) if left else (grid.whole, weight.whole)
        exact = None if most >= 1 << 53 else _whole_sum(_bare(node), *both, most, opsets)
        if exact is None:
            return None
        scale = weight.scale
        if scale.size > 1:
            scale = scale.reshape(-1, 1) if left else _of_outputs(node, scale, exact.ndim)
        terms.append((exact, np.asarray(scale), grid.scale))
    real = once(*terms)
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
    """Without a bias and factors."""
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    del bare.input[2:]
    kept = [a for a in node.attribute if a.name not in ("alpha", "beta")]
    del bare.attribute[:]
    bare.attribute.extend(kept)
    return bare


def _whole_sum(
    bare: onnx.NodeProto, x: Array, weight: Array, most: float, opsets: Mapping[str, int]
) -> Array | None:  # fmt: skip
    """The node on integers, float64, where floats are exact too."""
    single = [x.astype(np.float32), weight.astype(np.float32)]
    try:
        if bare.domain == CHANNELS_LAST:
            return run_node("qonnx", bare, single, opsets)[0].astype(np.float64) if most < 1 << 24 else None
        if bare.op_type.startswith("Conv"):  # onnx.reference pads some of them wrongly
            return run_node("onnxruntime", bare, single, opsets)[0].astype(np.float64) if most < 1 << 24 else None
        return run_node("onnx", bare, [x, weight], opsets)[0].astype(np.float64)
    except Unable:  # an output_padding of the stride and more
        return None


def _of_outputs(node: onnx.NodeProto, values: Array, rank: int) -> Array:
    """One value for each output, along the axis of these, for one frame of that rank."""
    first = node.op_type.startswith("Conv") and node.domain in ONNX
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    if node.op_type == "ConvTranspose" and values.ndim > 1:
        values = np.tile(values.reshape(-1), groups)  # each group has the same outputs
    return values.reshape(-1, *(1,) * (rank - 2)) if first else values.reshape(-1)


def linear_reach(executor: str, node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> Array:
    """How far a float32 sum in any order, of any fused or single operations, may be from the exact one.

    The error of n products is at most ((1 + u)^n - 1) times the sum of their magnitudes; values and weights are
    rounded products of code and scale themselves, and what the node adds is rounded again: six operations more.
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


#: A MatMul of dequantized tensors, as onnxruntime fuses it: the integer sum times the rounded product of the scales.
INTEGER_TO_FLOAT = "MatMulIntegerToFloat"


def integer_to_float(node: onnx.NodeProto, arrays: Sequence[Array]) -> tuple[Array, tuple[Grid, ...] | None, Array]:
    """The MatMul that the file has: its exact sum rounded once, and the bias; that sum; how far other orders may be."""
    given = dict(zip((i for i, name in enumerate(node.input) if name), arrays, strict=True))
    wide = [given[i].astype(np.int64) - given[i + 4].astype(np.int64) if i + 4 in given else given[i] for i in (0, 1)]
    whole = np.matmul(*wide).astype(np.float64)
    left, right = (np.asarray(given[i], np.float64) for i in (2, 3))
    value = once((whole, left, right))
    magnitude = np.matmul(*map(np.abs, wide)).astype(np.float64) * left * right
    steps = (wide[0].shape[-1] + 6) * _UNIT
    reach = magnitude * steps / (1 - steps) * 1.01
    grid = (Grid(whole, left.reshape(()) * right.reshape(())),) if left.size == right.size == 1 else None
    if 6 not in given:
        return value, grid, np.asarray(reach)
    value = value + given[6]
    return value, None, np.asarray(reach + (np.abs(value) + np.abs(given[6])) * 2 * _UNIT)


# --------------------------------------------------------------------------- averages, functions, normalization


def averaged(
    node: onnx.NodeProto, data: Known, rest: Sequence[Array], executor: str, opsets: Mapping[str, int]
) -> tuple[Array, int] | None:  # fmt: skip
    """The exact sum of every window rounded once, divided by its count; the largest count. `rest`: axes."""
    if not data.grids:
        return None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("ceil_mode", 0) or attributes.get("channels_last", 0):
        return None
    wholes = [grid.whole.astype(np.float32) for grid in data.grids]
    if any(np.abs(whole).sum() >= 1 << 24 for whole in wholes):
        return None
    full = onnx.NodeProto()
    full.CopyFrom(node)
    if node.op_type == "AveragePool":
        taps = int(np.prod(attributes["kernel_shape"]))
        kept = [a for a in full.attribute if a.name != "count_include_pad"]
        del full.attribute[:]
        full.attribute.extend([*kept, helper.make_attribute("count_include_pad", 1)])
    else:
        taps = 0
    totals = [run_node(executor, full, [whole, *rest], opsets)[0].astype(np.float64) for whole in wholes]
    taps = taps or wholes[0].size // max(1, totals[0].size)
    counts = np.full(totals[0].shape, float(taps))
    if node.op_type == "AveragePool" and not attributes.get("count_include_pad", 0):
        counts = np.round(run_node(executor, full, [np.ones_like(wholes[0])], opsets)[0].astype(np.float64) * taps)
    sums = once(*((np.round(t * taps), g.scale) for t, g in zip(totals, data.grids, strict=True)))
    return sums / counts.astype(np.float32), taps


def average_reach(magnitude: Array, taps: int) -> Array:
    """The same for an average; `magnitude` is that of absolute values."""
    steps = (taps + 4) * _UNIT
    return np.asarray(magnitude.astype(np.float64) * steps / (1 - steps) * 1.01 + 2.0**-140)


def function(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> Array:
    """The function in float64, rounded once to the type of the data."""
    wide = [a.astype(np.float64) for a in arrays]
    return np.asarray(run_node("onnx", node, wide, opsets)[0].astype(arrays[0].dtype))


def function_reach(node: onnx.NodeProto, one: Array, other: Array) -> Array:
    """Some steps of the float type around; of a function that libraries cut off where it is nearly 0 or 1, around 1."""
    largest = np.maximum(np.abs(one), np.abs(other))
    if node.op_type in ("Sigmoid", "Tanh", "Erf"):
        largest = np.maximum(largest, np.asarray(1, largest.dtype))
    return np.asarray(np.spacing(largest).astype(np.float64) * _STEPS)


def rows(node: onnx.NodeProto, data: Known, arrays: Sequence[Array], opset: int) -> tuple[Array, Array] | None:
    """A normalization of rows by the contract, gamma and beta behind it, and how far float32 operations in any order may
    be from it; None if the numbers are not known. `arrays`: what the node takes, the data first."""
    known: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    x, kind = arrays[0], node.op_type
    shape, axes, epsilon = x.shape, known.get("axes"), float(np.float32(known.get("epsilon", 1e-5)))
    layer = kind != "RMSNormalization" and known.get("kind", b"layer") == b"layer"
    if kind == "GroupNormalization":
        groups = known["num_groups"]
        if opset < 21:
            arrays = [x, *(np.repeat(a, shape[1] // groups) for a in arrays[1:])]
        shape, axes = (shape[0], groups, shape[1] // groups, *shape[2:]), range(2, x.ndim + 1)
    elif kind == "InstanceNormalization":
        axes = range(2, x.ndim)
    elif axes is None:
        axes = range(known.get("axis", -1) % x.ndim, x.ndim)
    axes = [a % len(shape) for a in axes]
    if data.grids is None:
        return None
    order = [*(a for a in range(len(shape)) if a not in axes), *axes]
    length = math.prod(shape[a] for a in axes)

    def apart(values: Array) -> Array:
        return np.asarray(np.broadcast_to(values, x.shape).reshape(shape).transpose(order).reshape(-1, length))

    def together(values: Array) -> Array:
        placed = values.reshape([shape[a] for a in order]).transpose([int(a) for a in np.argsort(order)])
        return np.asarray(placed.reshape(x.shape))

    exact = _one_grid(data.grids, x.shape)
    if exact is None:
        return None
    value = exact_numbers.normalized(replace(exact, whole=apart(exact.whole)), layer, Fraction(epsilon))
    reach = _rows_reach(apart(x).astype(np.float64), value.astype(np.float64), epsilon, layer)
    value, reach = together(value), together(reach)
    channels = kind in ("InstanceNormalization", "GroupNormalization")
    factors = [a.reshape(1, -1, *(1,) * (x.ndim - 2)) if channels else a for a in arrays[1:]]
    if factors:
        value = value * factors[0]
        reach = reach * np.abs(factors[0]) + np.abs(value) * 4 * _UNIT
    if len(factors) > 1:
        reach = reach + (np.abs(value) + np.abs(factors[1])) * 4 * _UNIT
        value = value + factors[1]
    return np.asarray(value, np.float32), np.asarray(reach)


def _one_grid(grids: Sequence[Grid], shape: tuple[int, ...]) -> exact_numbers.Exact | None:
    """The sum of grids that have one scale each, in one unit."""
    scales = {float(s) for grid in grids for s in np.unique(grid.scale)}
    if any(np.size(grid.scale) > 1 and len(np.unique(grid.scale)) > 1 for grid in grids):
        return None
    unit = exact_numbers.common(Fraction(s) for s in scales)
    whole = np.zeros(shape, object)
    for grid in grids:
        factor = int(Fraction(float(np.ravel(grid.scale)[0])) / unit)
        whole = whole + np.broadcast_to(grid.whole, shape).astype(np.int64).astype(object) * factor
    return exact_numbers.Exact(whole, unit, None)


def _rows_reach(x: Array, result: Array, epsilon: float, layer: bool) -> Array:
    """A mean of N numbers is off by N roundings of their largest, each difference by that, a variance by twice that times
    its root and N roundings of itself; twice of everything, and the variance also as mean of squares less square of mean."""
    length = x.shape[-1]
    steps, largest = (length + 8) * _UNIT, np.abs(x).max(axis=-1, keepdims=True)
    middle = x.mean(axis=-1, keepdims=True) if layer else 0.0
    variance = ((x - middle) ** 2).mean(axis=-1, keepdims=True)
    off = steps * largest if layer else 0.0 * largest
    cancelled = steps * largest * largest * 2 if layer else 0.0
    spread = 2 * np.sqrt(variance) * off + off * off + steps * variance + cancelled
    relative = spread / (variance + epsilon) + 8 * _UNIT
    return np.asarray(2 * (off / np.sqrt(variance + epsilon) + np.abs(result) * relative))


def normalized(node: onnx.NodeProto, arrays: Sequence[Array]) -> tuple[Array, Array]:
    """BatchNormalization in the order of the contract, and how far another order may be from it."""
    x, gamma, beta, mean, variance = arrays
    epsilon = np.float32(next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5))
    axis = (slice(None), *(None,) * (x.ndim - 2))
    factor = gamma * (np.float32(1) / np.sqrt(variance + epsilon))
    offset = beta - mean * factor
    value = x * factor[axis] + offset[axis]
    parts = np.abs(x * factor[axis]) + np.abs(mean * factor)[axis] + np.abs(beta)[axis]
    return np.asarray(value), np.asarray(parts.astype(np.float64) * 16 * _UNIT)
