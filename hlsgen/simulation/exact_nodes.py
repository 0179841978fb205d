"""What single nodes of a file mean by the numeric contract, computed from the file's own constants.

Sums are exact and rounded once, functions of the real numbers are rounded once (docs/numeric-contract.md); everything
else is what the executor gives. Nothing here knows the Model: weights and scales are read from the nodes' inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import onnx
from onnx import helper

from hlsgen.frontend.domains import CHANNELS_LAST, ONNX
from hlsgen.interpreter.exact_numbers import nearest_float32
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.oracles import Unable, run_node

QUANTIZERS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "DequantizeLinear", "FloatQuant"])
LINEAR = frozenset(["MatMul", "Gemm", "Conv", "ConvTranspose"])
POOLS = frozenset(["AveragePool", "GlobalAveragePool", "ReduceMean"])
#: What only moves elements.
MOVES = frozenset(
    "Concat Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Gather DepthToSpace Identity Dropout".split()
)  # fmt: skip
#: The real function, rounded once.
ROUNDED_ONCE = frozenset(
    "Exp Log Tanh Sigmoid Erf Gelu Mish Celu Elu Selu Softplus Softsign Reciprocal Pow".split()
)  # fmt: skip
#: Half a step of float32, and how many steps a library's function may be off.
_UNIT, _STEPS = 2.0**-24, 16
#: The smallest step of a minifloat is the scale divided by this power of two at most.
_MINIFLOAT = 20
#: Scales of one tensor that are told apart.
_CHANNELS = 64


@dataclass(frozen=True, eq=False)
class Grid:
    """Real numbers whole * scale of a tensor: whole float64 of its shape, scale float64 that broadcasts to it.

    The scale is one number, but for constants.
    """

    whole: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Known:
    """A tensor: its value, and its exact real numbers, the sum of some grids, where they are known.

    `is_sum`: of an Add or Sub of two tensors.
    """

    value: Array
    grids: tuple[Grid, ...] | None = None
    is_sum: bool = False


@dataclass(frozen=True, eq=False)
class Rounding:
    """A node that rounds otherwise in an executor: its value there and by the contract, and how far they may be apart.

    `kind`: "sum" or "function". All of the node's output shape. `terms`: the exact sum, as `once` takes it, where nothing
    was added to it.
    """

    node: str
    kind: str
    executor: Array
    contract: Array
    reach: Array
    terms: tuple[tuple[Array, ...], ...] = ()

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


def same(left: Array, right: Array) -> bool:
    """Equal everywhere; NaN equals NaN."""
    return left.shape == right.shape and bool(((left == right) | ((left != left) & (right != right))).all())


# --------------------------------------------------------------------------- grids


def is_power(scale: Array) -> bool:
    return bool((np.frexp(np.asarray(scale, np.float64))[0] == 0.5).all())


def multiples(values: Array, scale: Array | None, finest: int = 3) -> Grid | None:
    """A grid with values = fl(whole * scale / 2^n), n <= finest; without a scale the largest power of two, if short."""
    wide = np.asarray(values, np.float64)
    if not np.isfinite(wide).all():
        return None
    if scale is None:
        unit = next((2.0**-n for n in range(-4, 25) if (wide * 2.0**n == np.round(wide * 2.0**n)).all()), None)
        scale = None if unit is None else np.asarray(unit)
    if scale is None:
        return None
    for finer in (2**n for n in range(finest + 1)):
        whole = np.round(wide / np.float64(scale) * finer)
        if (whole.astype(np.float32) * np.float32(np.float64(scale) / finer) == values).all():
            return Grid(whole, np.asarray(np.float64(scale) / finer))
    return None


def grid_of(values: Array, scales: Sequence[Array] = ()) -> Grid | None:
    """By the first of these scales that fits, else by a power of two."""
    if values.dtype.kind in "iub":
        return Grid(values.astype(np.float64), np.asarray(1.0))
    for scale in scales:
        if scale.size == 1 and (found := multiples(values, scale)):
            return found
    found = multiples(values, None)
    return found if found is not None and np.abs(found.whole).max(initial=0) < 1 << 24 else None


def constant_grid(
    node: onnx.NodeProto, result: Array, arrays: Sequence[Array], known: Mapping[str, Grid]
) -> Grid | None:  # fmt: skip
    """Integers and scale of a constant behind a quantizer, through transposes and reshapes of it."""
    before = known.get(node.input[0]) if node.input else None
    if node.op_type in QUANTIZERS - {"FloatQuant"} and len(arrays) > 1:
        scale = np.asarray(arrays[1], np.float64)
        if node.op_type == "DequantizeLinear" and scale.ndim == 1 and scale.size > 1:
            axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % result.ndim
            scale = scale.reshape([-1 if i == axis else 1 for i in range(result.ndim)])
        for finer in (1, 2, 4, 8):  # zero points may be fractions
            whole = np.round(result.astype(np.float64) / scale * finer)
            if (whole.astype(np.float32) * (scale / finer).astype(np.float32) == result).all():
                return Grid(whole, scale / finer)
        return None
    if node.op_type == "FloatQuant" and arrays[1].size == 1:
        return multiples(result, arrays[1].reshape(()), _MINIFLOAT)
    if node.op_type == "Transpose" and before:
        perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        scale = before.scale.transpose(perm) if before.scale.ndim == result.ndim else before.scale
        return Grid(before.whole.transpose(perm), scale)
    return None


def _scale_of(node: onnx.NodeProto, constants: Mapping[str, Array]) -> Array | None:
    """The scale of what a quantizer gives, in the shape that broadcasts to it; None of other nodes."""
    if node.op_type not in QUANTIZERS or len(node.input) < 2:
        return None
    scale = constants.get(node.input[4 if node.op_type == "Trunc" and len(node.input) > 5 else 1])
    return None if scale is None or (node.op_type == "DequantizeLinear" and scale.size > 1) else scale


def _by_channels(value: Array, scale: Array) -> tuple[Grid, ...] | None:
    """One grid for each of the scales of a quantizer, 0 where another one counts."""
    every = np.broadcast_to(scale, value.shape)
    different = np.unique(scale)
    if len(different) > _CHANNELS:
        return None
    found = [multiples(np.where(every == one, value, np.float32(0)), np.asarray(one)) for one in different]
    known = tuple(grid for grid in found if grid is not None)
    return known if len(known) == len(found) else None


def quantized(node: onnx.NodeProto, value: Array, constants: Mapping[str, Array]) -> Known:
    """What is known of a quantizer's result."""
    if node.op_type == "MultiThreshold":
        return Known(value, _counts(node, value))
    scale = _scale_of(node, constants)
    if scale is not None and scale.size > 1 and not is_power(scale):
        return Known(value, _by_channels(value, scale))
    if node.op_type == "FloatQuant" and scale is not None and scale.size == 1:
        return Known(value, _one(multiples(value, scale.reshape(()), _MINIFLOAT)))
    return Known(value, _one(grid_of(value, [] if scale is None else [scale])))


def _counts(node: onnx.NodeProto, value: Array) -> tuple[Grid, ...] | None:
    """Counts times the scale, and the bias, of MultiThreshold."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    scale, bias = (np.float32(attributes.get(name, default)) for name, default in (("out_scale", 1), ("out_bias", 0)))
    whole = np.round((value.astype(np.float64) - np.float64(bias)) / np.float64(scale))
    if not (whole.astype(np.float32) * scale + bias == value).all():
        return None
    made = Grid(whole, np.asarray(np.float64(scale)))
    return (made, Grid(np.ones_like(whole), np.asarray(np.float64(bias)))) if bias else (made,)


def behind(
    executor: str, node: onnx.NodeProto, value: Array, inputs: Sequence[Known | Array], constants: Mapping[str, Array],
    opsets: Mapping[str, int],
) -> Known:  # fmt: skip
    """What is known of a node's result; `inputs` in order: arrays of constants."""
    data = [i for i in inputs if isinstance(i, Known)]
    if node.op_type in QUANTIZERS or node.op_type == "MultiThreshold":
        return quantized(node, value, constants)
    if node.op_type in MOVES and all(d.grids for d in data) and sum(len(d.grids or ()) for d in data) > 1:
        return Known(value, _moved(executor, node, inputs, opsets))
    if any(d.grids and len(d.grids) > 1 for d in data):
        return Known(value)
    return Known(value, _one(grid_of(value, [d.grids[0].scale for d in data if d.grids])))


def _moved(
    executor: str, node: onnx.NodeProto, inputs: Sequence[Known | Array], opsets: Mapping[str, int]
) -> tuple[Grid, ...] | None:  # fmt: skip
    """Every grid of every input through a node that only moves elements, the others 0 meanwhile."""
    found = []
    for number, given in enumerate(inputs):
        floats = isinstance(given, Known) or given.dtype.kind == "f"
        grids = given.grids if isinstance(given, Known) else _one(multiples(given, None)) if floats else ()
        if grids is None:
            return None
        for grid in grids:
            arrays = []
            for other, known in enumerate(inputs):
                array = known.value if isinstance(known, Known) else known
                zero = np.zeros_like(array) if array.dtype.kind == "f" else array
                arrays.append(grid.whole.astype(np.float32) if other == number else zero)
            found.append(Grid(run_node(executor, node, arrays, opsets)[0].astype(np.float64), grid.scale))
    return tuple(found)


def _one(grid: Grid | None) -> tuple[Grid, ...] | None:
    return None if grid is None else (grid,)


def once(*terms: tuple[Array, ...]) -> Array:
    """The sum of products whole * scale * ..., rounded once to float32; scales broadcast to whole."""
    shape = terms[0][0].shape
    factors = [np.broadcast_to(np.asarray(part, np.float64), shape).ravel() for term in terms for part in term]
    different, place = np.unique(np.stack(factors, axis=1), axis=0, return_inverse=True)
    real = []
    for row in different.tolist():
        numbers = iter(row)
        products = [math.prod((Fraction(next(numbers)) for _ in term), start=Fraction(1)) for term in terms]
        real.append(nearest_float32(sum(products, Fraction(0))))
    return np.array(real, np.float32)[place.ravel()].reshape(shape)


def sum_of(left: Known, right: Known, sign: int) -> tuple[Grid, ...] | None:
    """left + sign * right: on the coarsest grid of both, if each has one."""
    if not left.grids or not right.grids:
        return None
    negative = tuple(Grid(sign * grid.whole, grid.scale) for grid in right.grids)
    if len(left.grids) + len(negative) > 2:
        return (*left.grids, *negative)
    first, second = left.grids[0], negative[0]
    a, b = (Fraction(float(side.scale)) for side in (first, second))
    unit = Fraction(np.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
    whole = first.whole * float(a / unit) + second.whole * float(b / unit)
    exact = np.abs(whole).max(initial=0) < 1 << 52 and Fraction(float(unit)) == unit
    return (Grid(whole, np.asarray(float(unit))),) if exact else (first, second)


# --------------------------------------------------------------------------- linear nodes


def linear(
    node: onnx.NodeProto, data: Known | None, constants: Mapping[str, Array], grids: Mapping[str, Grid],
    opsets: Mapping[str, int],
) -> tuple[Array, tuple[tuple[Array, ...], ...]] | None:  # fmt: skip
    """The exact sum of one frame, rounded once, and what the node adds to it; None if the numbers are not known.

    Also the terms of the sum, () if the node adds something.
    """
    if node.input[1] not in constants:
        return None
    weight = grids.get(node.input[1]) or multiples(constants[node.input[1]], None)
    if data is None or not data.grids or weight is None:
        return None
    terms: list[tuple[Array, ...]] = []
    for grid in data.grids:
        most = float(np.abs(grid.whole).max(initial=0) * np.abs(weight.whole).sum())
        exact = None if most >= 1 << 53 else _whole_sum(_bare(node), grid.whole, weight.whole, most, opsets)
        if exact is None:
            return None
        one = weight.scale.size == 1
        terms.append(
            (exact, np.asarray(weight.scale if one else _of_outputs(node, weight.scale, exact.ndim)), grid.scale)
        )
    real = once(*terms)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    alone = len(node.input) < 3 or not node.input[2]
    if node.op_type == "Gemm" and attributes.get("alpha", 1.0) != 1:
        real, alone = real * np.float32(attributes["alpha"]), False
    if len(node.input) > 2 and node.input[2]:
        bias = constants[node.input[2]]
        if node.op_type == "Gemm":
            bias = bias * np.float32(attributes.get("beta", 1.0))
        real = real + (_of_outputs(node, bias, real.ndim) if node.op_type.startswith("Conv") else bias)
    return np.asarray(real), tuple(terms) if alone else ()


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
