"""Exact numbers of the tensors of a file, sums of tensors by the numeric contract, and what nodes leave of both.

A tensor is the sum of integers times scales. Nodes that only move elements, or pick some by their order, do it with the
ranks of these numbers, in the executor. Nothing here knows the Model: scales are read from the nodes' inputs.
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
#: What only moves elements.
MOVES = frozenset(
    "Concat Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Gather DepthToSpace SpaceToDepth Identity Dropout "
    "Pad Expand Tile Resize Upsample".split()
)  # fmt: skip
#: What gives elements, or constants, by their order alone.
PICKS = frozenset("Relu Max Min Clip MaxPool GlobalMaxPool ReduceMax".split())
#: Those of them whose constants of floats are elements.
_WITH_CONSTANTS = frozenset(["Concat", "Pad", "Max", "Min", "Clip"])
#: The smallest step of a minifloat is the scale divided by this power of two at most.
_MINIFLOAT = 20
#: Scales of one tensor that are told apart.
_SCALES = 512
#: Two scales are on one grid if each is at most so many times the largest number of which both are whole multiples.
_GRID = 256
#: Numbers of one tensor that have ranks, as float32 must hold these.
_RANKS = 1 << 22


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

    `terms`: what a sum adds up that takes this tensor, each of one scale; None if it takes the value. `plain`: these are
    codes or sums of a layer, all on one grid. `loose`: a sum of tensors that are on none.
    """

    value: Array
    grids: tuple[Grid, ...] | None = None
    terms: tuple[Grid, ...] | None = None
    plain: bool = False
    loose: bool = False


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
        scale = _placed(node, np.asarray(arrays[1], np.float64), result.ndim)
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


def _placed(node: onnx.NodeProto, scale: Array, rank: int) -> Array:
    """The scale of a quantizer in the shape that broadcasts to a tensor of that rank."""
    if node.op_type != "DequantizeLinear" or scale.ndim != 1 or scale.size == 1:
        return scale
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % rank
    return scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def _by_scales(value: Array, scale: Array) -> tuple[Grid, ...] | None:
    """One grid for each of the scales of a quantizer, 0 where another one counts."""
    every = np.broadcast_to(scale, value.shape)
    different = np.unique(scale)
    if len(different) > _SCALES:
        return None
    found = [multiples(np.where(every == one, value, np.float32(0)), np.asarray(one)) for one in different]
    known = tuple(grid for grid in found if grid is not None)
    return known if len(known) == len(found) else None


def dyadic(values: Array) -> Grid | None:
    """Any floats as integers times a power of two, if 53 bits hold them."""
    wide = np.asarray(values, np.float64)
    if not np.isfinite(wide).all():
        return None
    mantissa, exponent = np.frexp(wide)
    bits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = (exponent - 53 + np.frexp((bits & -bits).astype(np.float64))[1] - 1)[wide != 0]
    unit = np.ldexp(1.0, int(lowest.min(initial=0)))
    return Grid(wide / unit, np.asarray(unit)) if np.abs(wide / unit).max(initial=0) < 2.0**53 else None


def quantized(node: onnx.NodeProto, value: Array, constants: Mapping[str, Array]) -> Known:
    """What is known of a quantizer's result; of a tensor that some other node made, `node`, what its value says."""
    if node.op_type == "MultiThreshold":
        return Known(value, _counts(node, value))
    name = node.input[4 if node.op_type == "Trunc" and len(node.input) > 5 else 1] if len(node.input) > 1 else ""
    scale = constants.get(name) if node.op_type in QUANTIZERS else None
    if scale is None:
        return Known(value, _one(grid_of(value)))
    scale = _placed(node, scale, value.ndim)
    if scale.size > 1 and len(np.unique(scale)) > 1:
        return Known(value, _one(grid_of(value)) if is_power(scale) else _by_scales(value, scale))
    scale = scale.reshape(-1)[:1].reshape(())
    found = _one(multiples(value, scale, _MINIFLOAT) if node.op_type == "FloatQuant" else grid_of(value, [scale]))
    return Known(value, found, found, plain=True)


def _counts(node: onnx.NodeProto, value: Array) -> tuple[Grid, ...] | None:
    """Counts times the scale, and the bias, of MultiThreshold."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    scale, bias = (np.float32(attributes.get(name, default)) for name, default in (("out_scale", 1), ("out_bias", 0)))
    whole = np.round((value.astype(np.float64) - np.float64(bias)) / np.float64(scale))
    if not (whole.astype(np.float32) * scale + bias == value).all():
        return None
    made = Grid(whole, np.asarray(np.float64(scale)))
    return (made, Grid(np.ones_like(whole), np.asarray(np.float64(bias)))) if bias else (made,)


def _one(grid: Grid | None) -> tuple[Grid, ...] | None:
    return None if grid is None else (grid,)


# --------------------------------------------------------------------------- behind a node


def behind(
    executor: str, node: onnx.NodeProto, output: int, value: Array, inputs: Sequence[Known | Array],
    constants: Mapping[str, Array], opsets: Mapping[str, int],
) -> Known:  # fmt: skip
    """What is known of a node's result, its `output`-th; `inputs` in order: arrays of constants."""
    data = [i for i in inputs if isinstance(i, Known)]
    if node.op_type in QUANTIZERS or node.op_type == "MultiThreshold":
        return quantized(node, value, constants)
    if node.op_type in MOVES | PICKS and value.dtype.kind == "f" and all(d.grids for d in data):

        def picked(of: Callable[[Known], tuple[Grid, ...] | None]) -> tuple[Grid, ...] | None:
            return _picked(executor, node, output, [of(i) if isinstance(i, Known) else i for i in inputs], opsets)

        grids = picked(lambda known: known.grids)
        if grids and len(grids) == 1 and all(d.plain for d in data):
            return Known(value, grids, grids, plain=True)
        alone = len(data) == 1 and data[0].terms and node.op_type in MOVES
        return Known(value, grids, picked(lambda known: known.terms) if alone else None, loose=data[0].loose)
    if any(d.grids and len(d.grids) > 1 for d in data):
        return Known(value)
    own = _one(grid_of(value, [d.grids[0].scale for d in data if d.grids]))
    if node.op_type in ("Add", "Sub") and len(data) == 1 and data[0].terms and value.dtype == np.float32:
        added = next(i for i in inputs if not isinstance(i, Known))
        constant, last = dyadic(np.broadcast_to(added, value.shape)), isinstance(inputs[0], Known)
        if constant is not None and (node.op_type == "Add" or last):
            constant = replace(constant, whole=constant.whole * (1 if node.op_type == "Add" else -1))
            return Known(value, own, (*data[0].terms, constant), loose=data[0].loose)
    return Known(value, own)


def _picked(
    executor: str, node: onnx.NodeProto, output: int, inputs: Sequence[tuple[Grid, ...] | Array | None],
    opsets: Mapping[str, int],
) -> tuple[Grid, ...] | None:  # fmt: skip
    """The numbers of a node that moves or picks elements: it runs on their ranks, of which that of 0 is 0.

    `inputs`: the grids of each tensor, or an array of constants.
    """
    if any(a.name in ("min", "max") or (a.name == "value" and a.f) for a in node.attribute):
        return None
    parts: dict[int, tuple[Grid, ...]] = {}
    for number, given in enumerate(inputs):
        if given is None:
            return None
        if isinstance(given, np.ndarray) and given.dtype.kind == "f" and node.op_type in _WITH_CONSTANTS:
            found = dyadic(given)
            if found is None:
                return None
            parts[number] = (found,)
        elif not isinstance(given, np.ndarray):
            parts[number] = given
    wholes: dict[float, list[Array]] = {float(grid.scale): [] for grids in parts.values() for grid in grids}
    for grids in parts.values():
        shape = grids[0].whole.shape
        own = {float(grid.scale): np.zeros(shape) for grid in grids}
        for grid in grids:
            own[float(grid.scale)] += grid.whole
        for scale, flat in wholes.items():
            flat.append(own[scale].ravel() if scale in own else np.zeros(math.prod(shape)))
    columns = {scale: np.concatenate([*flat, np.zeros(1)]) for scale, flat in wholes.items()}
    first, place = _distinct(columns.values())
    if len(first) > _RANKS:
        return None
    order = np.argsort(_reals([(column[first], np.float64(scale)) for scale, column in columns.items()])[0])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranks, zero, start = rank[place], rank[place[-1]], 0
    arrays: list[Array] = []
    for number, given in enumerate(inputs):
        if number in parts:
            shape = parts[number][0].whole.shape
            size = math.prod(shape)
            arrays.append((ranks[start : start + size] - zero).reshape(shape).astype(np.float32))
            start += size
        else:
            assert isinstance(given, np.ndarray)
            arrays.append(given)
    found = np.round(run_node(executor, node, arrays, opsets)[output]).astype(np.int64) + zero
    chosen = first[order[found]]
    made = [Grid(column[chosen], np.asarray(scale)) for scale, column in columns.items()]
    return tuple(grid for grid in made if grid.whole.any()) or (made[0],)


# --------------------------------------------------------------------------- sums


def _distinct(columns: Iterable[Array]) -> tuple[Array, Array]:
    """Rows of these columns that differ: where each stands first, and which of them every row is."""
    first, place = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for column in columns:
        values, own = np.unique(column, return_inverse=True)
        _, first, place = np.unique(place * len(values) + own.ravel(), return_index=True, return_inverse=True)
    return first, place.ravel()


def _whole(values: Any) -> tuple[Array, int]:
    """Floats as Python integers times a power of two, of which the exponent."""
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    lowest = int(exponent.min(initial=0))
    return (mantissa * 2.0**53).astype(np.int64).astype(object) << (exponent - lowest).astype(object), lowest - 53


def _reals(terms: Sequence[tuple[Any, ...]]) -> tuple[Array, int]:
    """Sums of products of floats as Python integers times a power of two, of which the exponent."""
    products = []
    for term in terms:
        parts = [_whole(part) for part in term]
        products.append((math.prod((whole for whole, _ in parts), start=1), sum(exponent for _, exponent in parts)))
    lowest = min(exponent for _, exponent in products)
    return np.asarray(sum(product << (exponent - lowest) for product, exponent in products)), lowest


def once(*terms: tuple[Array, ...]) -> Array:
    """The sum of products whole * scale * ..., rounded once to float32; scales broadcast to whole."""
    shape = terms[0][0].shape
    full = [[np.broadcast_to(np.asarray(part, np.float64), shape).ravel() for part in term] for term in terms]
    first, place = _distinct(part for term in full for part in term)
    sums, exponent = _reals([tuple(part[first] for part in term) for term in full])
    unit = Fraction(2) ** exponent
    return np.array([nearest_float32(number * unit) for number in sums.tolist()], np.float32)[place].reshape(shape)


@dataclass(frozen=True, eq=False)
class Sum:
    """An Add or Sub of two tensors: `exact`, or in the file's order; and what is known of it but for its value."""

    exact: bool
    terms: tuple[Grid, ...]
    loose: bool

    def known(self, value: Array) -> Known:
        grid = _together(self.terms) if self.exact else None
        if grid is not None:
            return Known(value, (grid,), (grid,), plain=not self.loose, loose=self.loose)
        grids = self.terms if self.exact else _one(grid_of(value, [term.scale for term in self.terms]))
        return Known(value, grids, self.terms, loose=self.loose)


def sum_of(left: Known, right: Known, sign: int, exact: bool | None) -> Sum | None:
    """left + sign * right. None if it takes the values of both.

    `exact` None: as the contract says, which is on one grid, or if a part is a loose sum already.
    """
    if not left.terms or not right.terms:
        return None
    shape = np.broadcast_shapes(left.value.shape, right.value.shape)
    signed = [*((1, term) for term in left.terms), *((sign, term) for term in right.terms)]
    terms = tuple(replace(term, whole=np.broadcast_to(by * term.whole, shape)) for by, term in signed)
    loose = left.loose or right.loose or not (left.plain and right.plain and _one_grid(left.terms, right.terms))
    if exact is None:
        exact = not loose or left.loose or right.loose
    return Sum(exact, terms, loose)


def _one_grid(left: Sequence[Grid], right: Sequence[Grid]) -> bool:
    scales = [abs(Fraction(float(term.scale))) for term in (*left, *right)]
    unit = _unit(scales)
    return max(scales) <= _GRID * unit


def _unit(scales: Sequence[Fraction]) -> Fraction:
    """The largest number of which all are whole multiples."""
    denominator = math.lcm(*(scale.denominator for scale in scales))
    return Fraction(math.gcd(*(int(scale * denominator) for scale in scales)), denominator)


def _together(terms: Sequence[Grid]) -> Grid | None:
    """All terms as one, where float64 holds its integers and its scale."""
    scales = [Fraction(float(term.scale)) for term in terms]
    unit = _unit(scales)
    most = sum(
        float(np.abs(term.whole).max(initial=0)) * (scale / unit) for term, scale in zip(terms, scales, strict=True)
    )
    if most >= 1 << 52 or Fraction(float(unit)) != unit:
        return None
    whole = sum(
        (term.whole * float(scale / unit) for term, scale in zip(terms, scales, strict=True)), start=np.float64(0)
    )
    return Grid(np.asarray(whole), np.asarray(float(unit)))
