"""Exact numbers of the tensors of a file, and sums of tensors by the numeric contract.

A tensor is a sum of integers times scales. Nodes that only move elements, or select some by their order, run in the
executor on the ranks of these numbers. This module does not use the Model: scales are read from the nodes' inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hlsgen.interpreter.exact_numbers import nearest_float32
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.oracles import run_node

QUANTIZERS = frozenset(["Quant", "IntQuant", "BipolarQuant", "Trunc", "DequantizeLinear", "FloatQuant"])
#: Operators that only move elements.
MOVES = frozenset(
    "Concat Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Gather DepthToSpace SpaceToDepth Identity Dropout "
    "Pad Expand Tile Resize Upsample".split()
)
#: Operators that select elements, or constants, by their order only.
PICKS = frozenset("Relu Max Min Clip MaxPool GlobalMaxPool ReduceMax".split())
#: Operators among these whose float constants are elements.
_WITH_CONSTANTS = frozenset(["Concat", "Pad", "Max", "Min", "Clip"])
#: The smallest step of a minifloat is at least the scale divided by two to this power.
_MINIFLOAT = 20
#: Most scales of one tensor.
_SCALES = 512
#: Scales are on one grid if none exceeds this multiple of their largest common divisor.
_GRID = 256
#: Most different numbers of one tensor, as float32 must represent their ranks.
_RANKS = 1 << 22


@dataclass(frozen=True, eq=False)
class Grid:
    """Real numbers integers * scale of a tensor. integers: float64 of its shape. scale: float64 that broadcasts to it.

    The scale is a single number, except for constants.
    """

    integers: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Known:
    """A tensor: its value, and its exact real numbers as a sum of grids, if they are known.

    - terms: terms for sums with this tensor, each with one scale, or None if a sum uses the value.
    - plain: the terms are codes or sums of a layer, all on one grid.
    - loose: a sum of tensors that are not on one grid.
    """

    value: Array
    grids: tuple[Grid, ...] | None = None
    terms: tuple[Grid, ...] | None = None
    plain: bool = False
    loose: bool = False


def all_equal(first: Array, second: Array) -> bool:
    """True if both are equal everywhere; NaN equals NaN."""
    return first.shape == second.shape and bool(((first == second) | ((first != first) & (second != second))).all())


# --------------------------------------------------------------------------- grids


def is_power(scale: Array) -> bool:
    """True if all scales are powers of two."""
    return bool((np.frexp(np.asarray(scale, np.float64))[0] == 0.5).all())


def multiples(values: Array, scale: Array | None, finest: int = 3) -> Grid | None:
    """A grid with values = fl(integers * scale / 2^n), n <= finest, or None if there is none.

    If `scale` is None, it is the largest power of two that fits.
    """
    exact_values = np.asarray(values, np.float64)
    if not np.isfinite(exact_values).all():
        return None
    if scale is None:
        unit = next(
            (2.0**-n for n in range(-4, 25) if (exact_values * 2.0**n == np.round(exact_values * 2.0**n)).all()), None
        )
        scale = None if unit is None else np.asarray(unit)
    if scale is None:
        return None
    for finer in (2**n for n in range(finest + 1)):
        integers = np.round(exact_values / np.float64(scale) * finer)
        if (integers.astype(np.float32) * np.float32(np.float64(scale) / finer) == values).all():
            return Grid(integers, np.asarray(np.float64(scale) / finer))
    return None


def grid_of(values: Array, scales: Sequence[Array] = ()) -> Grid | None:
    """The grid of values, by the first of these scales that fits, else by a power of two, or None if neither fits."""
    if values.dtype.kind in "iub":
        return Grid(values.astype(np.float64), np.asarray(1.0))
    for scale in scales:
        if scale.size == 1 and (grid := multiples(values, scale)):
            return grid
    grid = multiples(values, None)
    return grid if grid is not None and np.abs(grid.integers).max(initial=0) < 1 << 24 else None


def constant_grid(
    node: onnx.NodeProto, result: Array, arrays: Sequence[Array], known_grids: Mapping[str, Grid]
) -> Grid | None:
    """Integers and scale of a constant after a quantizer, or whole numbers times a factor, also transposed."""
    source_grid = known_grids.get(node.input[0]) if node.input else None
    if node.op_type in QUANTIZERS - {"FloatQuant"} and len(arrays) > 1:
        scale = _placed(node, np.asarray(arrays[1], np.float64), result.ndim)
        for finer in (1, 2, 4, 8):  # zero points may be fractions
            integers = np.round(result.astype(np.float64) / scale * finer)
            if (integers.astype(np.float32) * (scale / finer).astype(np.float32) == result).all():
                return Grid(integers, scale / finer)
        return None
    if node.op_type == "FloatQuant" and arrays[1].size == 1:
        return multiples(result, arrays[1].reshape(()), _MINIFLOAT)
    if node.op_type == "Transpose" and source_grid:
        perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        scale = source_grid.scale.transpose(perm) if source_grid.scale.ndim == result.ndim else source_grid.scale
        return Grid(source_grid.integers.transpose(perm), scale)
    if node.op_type == "Mul" and result.dtype == np.float32:
        for codes, scale in (arrays, arrays[::-1]):
            if codes.shape == result.shape and (codes == np.round(codes)).all() and (scale > 0).all():
                return Grid(codes.astype(np.float64), np.asarray(scale, np.float64))
    return None


def _placed(node: onnx.NodeProto, scale: Array, rank: int) -> Array:
    """The scale of a quantizer in the shape that broadcasts to a tensor of this rank."""
    if node.op_type != "DequantizeLinear" or scale.ndim != 1 or scale.size == 1:
        return scale
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % rank
    return scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def _by_scales(value: Array, scale: Array) -> tuple[Grid, ...] | None:
    """One grid for each scale of a quantizer, 0 at the elements of other scales, or None if a scale has no grid."""
    element_scales = np.broadcast_to(scale, value.shape)
    different = np.unique(scale)
    if len(different) > _SCALES:
        return None
    grids = [
        multiples(np.where(element_scales == one_scale, value, np.float32(0)), np.asarray(one_scale))
        for one_scale in different
    ]
    complete = tuple(grid for grid in grids if grid is not None)
    return complete if len(complete) == len(grids) else None


def dyadic(values: Array) -> Grid | None:
    """Floats as integers times a power of two, or None if 53 bits do not suffice."""
    exact_values = np.asarray(values, np.float64)
    if not np.isfinite(exact_values).all():
        return None
    mantissa, exponent = np.frexp(exact_values)
    bits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = (exponent - 53 + np.frexp((bits & -bits).astype(np.float64))[1] - 1)[exact_values != 0]
    unit = np.ldexp(1.0, int(lowest.min(initial=0)))
    return Grid(exact_values / unit, np.asarray(unit)) if np.abs(exact_values / unit).max(initial=0) < 2.0**53 else None


def quantized(node: onnx.NodeProto, value: Array, constants: Mapping[str, Array]) -> Known:
    """The exact numbers of a quantizer's result. For a tensor of another node, the numbers that its value shows."""
    if node.op_type == "MultiThreshold":
        return Known(value, _counts(node, value))
    name = node.input[4 if node.op_type == "Trunc" and len(node.input) > 5 else 1] if len(node.input) > 1 else ""
    scale = constants.get(name) if node.op_type in QUANTIZERS else _factor(node, constants)
    if scale is None:
        return Known(value, _as_tuple(grid_of(value)))
    if node.op_type == "Mul" and multiples(value, scale) is None:
        return Known(value, _as_tuple(grid_of(value)))
    scale = _placed(node, scale, value.ndim)
    if scale.size > 1 and len(np.unique(scale)) > 1:
        return Known(value, _as_tuple(grid_of(value)) if is_power(scale) else _by_scales(value, scale))
    scale = scale.reshape(-1)[:1].reshape(())
    grids = _as_tuple(multiples(value, scale, _MINIFLOAT) if node.op_type == "FloatQuant" else grid_of(value, [scale]))
    return Known(value, grids, grids, plain=True)


def _factor(node: onnx.NodeProto, constants: Mapping[str, Array]) -> Array | None:
    """The single number by which a Mul dequantizes whole numbers, or None for other nodes."""
    factors = [constants[name] for name in node.input if name in constants] if node.op_type == "Mul" else []
    is_scale = len(factors) == 1 and factors[0].size == 1 and factors[0].dtype == np.float32 and factors[0].item() > 0
    return factors[0].reshape(()) if is_scale else None


def _counts(node: onnx.NodeProto, value: Array) -> tuple[Grid, ...] | None:
    """The grids of a MultiThreshold: counts times the scale, and the bias."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    scale, bias = (np.float32(attributes.get(name, default)) for name, default in (("out_scale", 1), ("out_bias", 0)))
    integers = np.round((value.astype(np.float64) - np.float64(bias)) / np.float64(scale))
    if not (integers.astype(np.float32) * scale + bias == value).all():
        return None
    counts = Grid(integers, np.asarray(np.float64(scale)))
    return (counts, Grid(np.ones_like(integers), np.asarray(np.float64(bias)))) if bias else (counts,)


def _as_tuple(grid: Grid | None) -> tuple[Grid, ...] | None:
    """A tuple of one grid."""
    return None if grid is None else (grid,)


# --------------------------------------------------------------------------- after a node


def after_node(
    executor: str,
    node: onnx.NodeProto,
    output: int,
    value: Array,
    inputs: Sequence[Known | Array],
    constants: Mapping[str, Array],
    opsets: Mapping[str, int],
) -> Known:
    """The exact numbers of a node's result number `output`; `inputs` in order, arrays for constants."""
    data = [i for i in inputs if isinstance(i, Known)]
    if node.op_type in QUANTIZERS or node.op_type == "MultiThreshold":
        return quantized(node, value, constants)
    if node.op_type in MOVES | PICKS and value.dtype.kind == "f" and all(d.grids for d in data):

        def picked(of: Callable[[Known], tuple[Grid, ...] | None]) -> tuple[Grid, ...] | None:
            return _picked(executor, node, output, [of(i) if isinstance(i, Known) else i for i in inputs], opsets)

        grids = picked(lambda tensor: tensor.grids)
        if grids and len(grids) == 1 and all(d.plain for d in data):
            return Known(value, grids, grids, plain=True)
        terms_move = len(data) == 1 and data[0].terms and node.op_type in MOVES
        return Known(value, grids, picked(lambda tensor: tensor.terms) if terms_move else None, loose=data[0].loose)
    if any(d.grids and len(d.grids) > 1 for d in data):
        return Known(value)
    factor = _factor(node, constants)
    scales = [d.grids[0].scale for d in data if d.grids]
    value_grid = _as_tuple(grid_of(value, [*scales, *([] if factor is None else [factor])]))
    if node.op_type in ("Add", "Sub") and len(data) == 1 and data[0].terms and value.dtype == np.float32:
        constant_input = next(i for i in inputs if not isinstance(i, Known))
        constant, is_first_operand = dyadic(np.broadcast_to(constant_input, value.shape)), isinstance(inputs[0], Known)
        if constant is not None and (node.op_type == "Add" or is_first_operand):
            constant = replace(constant, integers=constant.integers * (1 if node.op_type == "Add" else -1))
            return Known(value, value_grid, (*data[0].terms, constant), loose=data[0].loose)
    return Known(value, value_grid)


def _picked(
    executor: str,
    node: onnx.NodeProto,
    output: int,
    inputs: Sequence[tuple[Grid, ...] | Array | None],
    opsets: Mapping[str, int],
) -> tuple[Grid, ...] | None:
    """The numbers of a node that moves or selects elements, or None if they are not known.

    The node runs on the ranks of the numbers, where 0 has rank 0. inputs: the grids of each tensor, or an array of
    constants.
    """
    if any(a.name in ("min", "max") or (a.name == "value" and a.f) for a in node.attribute):
        return None
    parts: dict[int, tuple[Grid, ...]] = {}
    for number, numbers in enumerate(inputs):
        if numbers is None:
            return None
        if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f" and node.op_type in _WITH_CONSTANTS:
            exact_constant = dyadic(numbers)
            if exact_constant is None:
                return None
            parts[number] = (exact_constant,)
        elif not isinstance(numbers, np.ndarray):
            parts[number] = numbers
    integers_by_scale: dict[float, list[Array]] = {float(grid.scale): [] for grids in parts.values() for grid in grids}
    for grids in parts.values():
        shape = grids[0].integers.shape
        sum_by_scale = {float(grid.scale): np.zeros(shape) for grid in grids}
        for grid in grids:
            sum_by_scale[float(grid.scale)] += grid.integers
        for scale, flat in integers_by_scale.items():
            flat.append(sum_by_scale[scale].ravel() if scale in sum_by_scale else np.zeros(math.prod(shape)))
    columns = {scale: np.concatenate([*flat, np.zeros(1)]) for scale, flat in integers_by_scale.items()}
    first, place = _distinct(columns.values())
    if len(first) > _RANKS:
        return None
    order = np.argsort(_reals([(column[first], np.float64(scale)) for scale, column in columns.items()])[0])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranks, zero, start = rank[place], rank[place[-1]], 0
    arrays: list[Array] = []
    for number, numbers in enumerate(inputs):
        if number in parts:
            shape = parts[number][0].integers.shape
            size = math.prod(shape)
            arrays.append((ranks[start : start + size] - zero).reshape(shape).astype(np.float32))
            start += size
        else:
            assert isinstance(numbers, np.ndarray)
            arrays.append(numbers)
    result_ranks = np.round(run_node(executor, node, arrays, opsets)[output]).astype(np.int64) + zero
    chosen = first[order[result_ranks]]
    result_grids = [Grid(column[chosen], np.asarray(scale)) for scale, column in columns.items()]
    return tuple(grid for grid in result_grids if grid.integers.any()) or (result_grids[0],)


# --------------------------------------------------------------------------- sums


def _distinct(columns: Iterable[Array]) -> tuple[Array, Array]:
    """The different rows of these columns: the first place of each, and for each row the number of its value."""
    first, place = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for column in columns:
        values, numbers = np.unique(column, return_inverse=True)
        _, first, place = np.unique(place * len(values) + numbers.ravel(), return_index=True, return_inverse=True)
    return first, place.ravel()


def _as_integers(values: Any) -> tuple[Array, int]:
    """Floats as Python integers times a power of two, and its exponent."""
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    lowest = int(exponent.min(initial=0))
    return (mantissa * 2.0**53).astype(np.int64).astype(object) << (exponent - lowest).astype(object), lowest - 53


def _reals(terms: Sequence[tuple[Any, ...]]) -> tuple[Array, int]:
    """Sums of products of floats as Python integers times a power of two, and its exponent."""
    products = []
    for term in terms:
        parts = [_as_integers(part) for part in term]
        products.append(
            (math.prod((integers for integers, _ in parts), start=1), sum(exponent for _, exponent in parts))
        )
    lowest = min(exponent for _, exponent in products)
    return np.asarray(sum(product << (exponent - lowest) for product, exponent in products)), lowest


def rounded_sum(*terms: tuple[Array, ...]) -> Array:
    """The sum of products integers * scale * ..., rounded once to float32. Scales broadcast to the integers."""
    shape = terms[0][0].shape
    factors = [[np.broadcast_to(np.asarray(part, np.float64), shape).ravel() for part in term] for term in terms]
    first, place = _distinct(part for term in factors for part in term)
    sums, exponent = _reals([tuple(part[first] for part in term) for term in factors])
    unit = Fraction(2) ** exponent
    return np.array([nearest_float32(number * unit) for number in sums.tolist()], np.float32)[place].reshape(shape)


@dataclass(frozen=True, eq=False)
class Sum:
    """An Add or Sub of two tensors.

    exact: computed exactly, else in the file's order. terms, loose: as of `Known`.
    """

    exact: bool
    terms: tuple[Grid, ...]
    loose: bool

    def with_value(self, value: Array) -> Known:
        """The tensor with this value."""
        grid = _merged(self.terms) if self.exact else None
        if grid is not None:
            return Known(value, (grid,), (grid,), plain=not self.loose, loose=self.loose)
        grids = self.terms if self.exact else _as_tuple(grid_of(value, [term.scale for term in self.terms]))
        return Known(value, grids, self.terms, loose=self.loose)


def sum_of(first: Known, second: Known, sign: int, exact: bool | None) -> Sum | None:
    """left + sign * right, or None if the sum uses the values of both.

    exact: if it is None, the contract decides: the sum is exact on one grid, or if an operand is already a loose sum.
    """
    if not first.terms or not second.terms:
        return None
    shape = np.broadcast_shapes(first.value.shape, second.value.shape)
    signed = [*((1, term) for term in first.terms), *((sign, term) for term in second.terms)]
    terms = tuple(
        replace(term, integers=np.broadcast_to(term_sign * term.integers, shape)) for term_sign, term in signed
    )
    loose = (
        first.loose or second.loose or not (first.plain and second.plain and _on_one_grid(first.terms, second.terms))
    )
    if exact is None:
        exact = not loose or first.loose or second.loose
    return Sum(exact, terms, loose)


def _on_one_grid(first: Sequence[Grid], second: Sequence[Grid]) -> bool:
    """True if all scales are small multiples of one number."""
    scales = [abs(Fraction(float(term.scale))) for term in (*first, *second)]
    unit = _unit(scales)
    return max(scales) <= _GRID * unit


def _unit(scales: Sequence[Fraction]) -> Fraction:
    """The largest number that divides all scales."""
    denominator = math.lcm(*(scale.denominator for scale in scales))
    return Fraction(math.gcd(*(int(scale * denominator) for scale in scales)), denominator)


def _merged(terms: Sequence[Grid]) -> Grid | None:
    """All terms as one grid, or None if float64 cannot hold its integers and its scale."""
    scales = [Fraction(float(term.scale)) for term in terms]
    unit = _unit(scales)
    largest = sum(
        float(np.abs(term.integers).max(initial=0)) * (scale / unit) for term, scale in zip(terms, scales, strict=True)
    )
    if largest >= 1 << 52 or Fraction(float(unit)) != unit:
        return None
    integers = sum(
        (term.integers * float(scale / unit) for term, scale in zip(terms, scales, strict=True)), start=np.float64(0)
    )
    return Grid(np.asarray(integers), np.asarray(float(unit)))
