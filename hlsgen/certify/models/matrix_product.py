"""Proves hg_dynmvu: every sum is that of the products of the model, whatever way its operands came.

What both streams carry says which elements each multiplier gets. A sum is right if the pairs that are multiplied for it
are those of the model, in any order, since sums of integers do not depend on it. That nothing wraps follows from bounds.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.routing import fits, only, whole
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import Elements, StreamContents, readable
from hlsgen.ir import MatrixProduct
from hlsgen.numerics.fixed import Array

_NAMES = (
    "SIMD PE FOLDS ROWS_FIRST A_W A_SIGNED A_SHIFT A_OFFSET X_W X_SIGNED B_W B_SIGNED B_SHIFT B_OFFSET W_W ACC_W EVERY"
)
#: Products that are compared at a time.
_PORTION = 1 << 22


def product(
    cell: Cell, streams: list[StreamContents], layer: MatrixProduct, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream of sums that the unit sends, in the order of the layer's result. Raises HG055."""
    only(cell, _NAMES, "DSP")
    simd, pe, folds, rows_first = (cell.number(name, low) for name, low in _SIZES)
    for stream, source, side, lanes in zip(streams, layer.sources, "AB", (simd, pe * simd), strict=True):
        fits(cell, stream, lanes, cell.number(f"{side}_W", 1))
        readable(cell.name, stream, source.type, cell.number(f"{side}_W"), cell.number(f"{side}_SIGNED"))
        if stream.units or stream.operands or not stream.filled.all():
            raise broken(layer.name, f"{cell.name} gets what is no element of an operand, on side {side}.")
    a, b = streams
    if a.beats != b.beats or rows_first > 1:
        raise broken(layer.name, f"{cell.name} gets {a.beats} and {b.beats} beats a frame, or ROWS_FIRST is no flag.")
    sums = whole(cell, a, folds, "a sum has")
    if sums * pe != len(order) or folds * simd != layer.depth:
        raise broken(layer.name, f"{cell.name} sends {sums} x {pe} sums of {folds * simd} products, not the model's.")
    left = a.elements.reshape(sums, 1, folds * simd)
    form = (sums, folds, pe, simd) if rows_first else (sums, folds, simd, pe)
    right = b.elements.reshape(form).transpose((0, 2, 1, 3) if rows_first else (0, 3, 1, 2))
    right = right.reshape(sums, pe, folds * simd)
    wanted = _wanted(layer, elements)
    some = max(1, _PORTION // (pe * folds * simd))
    for start in range(0, sums, some):
        part = slice(start, start + some)
        places = order.reshape(sums, pe)[part]
        found = _pairs(np.broadcast_to(left[part], right[part].shape), right[part])
        own = _pairs(wanted[0][places // layer.result.shape[-1]], wanted[1][_columns(layer, places)])
        wrong = np.argwhere((found != own).any(axis=(-2, -1)))
        if len(wrong):
            at, lane = wrong[0].tolist()
            name = elements.name(int(elements.numbers[value][places[at, lane]]))
            raise broken(layer.name, f"lane {lane} of {cell.name} does not sum the products of {name}.")
    type_ = layer.result.type
    return StreamContents(elements.numbers[value][order].reshape(sums, pe), type_.bits, type_.lo, type_.hi)


_SIZES = (("SIMD", 1), ("PE", 1), ("FOLDS", 1), ("ROWS_FIRST", 0))


def _wanted(layer: MatrixProduct, elements: Elements) -> tuple[Array, Array]:
    """The numbers of what is multiplied: (rows of the left operand, depth), (columns of the right one, depth)."""
    left, right = (elements.numbers[i].reshape(s.shape) for i, s in zip(layer.inputs, layer.sources, strict=True))
    return left.reshape(-1, layer.depth), np.swapaxes(right, -1, -2).reshape(-1, layer.depth)


def _columns(layer: MatrixProduct, places: Array) -> Array:
    """Which column of the right operand, of all its matrices, each sum is made with."""
    shape, right = layer.result.shape, layer.sources[1].shape
    index = np.unravel_index(places, shape)
    column: Array = np.zeros(places.shape, np.int64)
    for axis, size in enumerate(right[:-2]):
        column = column * size + (index[axis] if size > 1 else 0)
    return column * right[-1] + index[-1]


def _pairs(left: Array, right: Array) -> Array:
    """(..., depth, 2): the pairs of each sum, sorted."""
    pairs = np.stack([left, right], axis=-1)
    if (pairs[..., 1:, 0] < pairs[..., :-1, 0]).any() or (pairs[..., 1:, 0] == pairs[..., :-1, 0]).any():
        rank = np.lexsort((right, left), axis=-1)
        pairs = np.take_along_axis(pairs, rank[..., None], axis=-2)
    return pairs


def check(cell: Cell, layer: MatrixProduct) -> tuple[int, int]:
    """Proves that operands are made as the layer says, and that nothing wraps. (least, greatest) sum. Raises HG055."""
    name, ends = layer.name, []
    for n, (side, operand) in enumerate((("A", "X_W"), ("B", "W_W"))):
        shift, offset = cell.number(f"{side}_SHIFT"), cell.number(f"{side}_OFFSET", -(1 << 31))
        if (1 << min(shift, 64), offset) != (layer.factors[n], layer.offsets[n]):
            raise broken(
                name, f"{cell.name} takes code * 2^{shift} + {offset} of side {side}, the model another number."
            )
        type_ = layer.sources[n].type
        low, high = (code * layer.factors[n] + layer.offsets[n] for code in (type_.lo, type_.hi))
        bits, signed = cell.number(operand, 1), side == "B" or cell.number("X_SIGNED") == 1
        if bits > 64 or low < (-(1 << (bits - 1)) if signed else 0) or high >= 1 << (bits - signed):
            raise broken(name, f"operands of {low}..{high} do not fit {bits} bits, {'' if signed else 'un'}signed.")
        ends.append((low, high))
    if (
        cell.number("X_SIGNED") > 1
        or cell.number("EVERY") > 64
        or ("DSP" in cell.parameters and cell.number("DSP") > 64)
    ):
        raise broken(name, f"X_SIGNED, EVERY or DSP of {cell.name} have no meaning.")
    products = [x * y for x in ends[0] for y in ends[1]]
    least, greatest = layer.depth * min(products), layer.depth * max(products)
    type_, bits = layer.result.type, cell.number("ACC_W", 1)
    if (least, greatest) != (type_.lo, type_.hi):
        raise broken(name, f"the model's sums are {type_}, those of its operands {least}..{greatest}.")
    if (
        bits != type_.bits
        or least < (-(1 << (bits - 1)) if type_.signed else 0)
        or greatest >= 1 << (bits - type_.signed)
    ):
        raise broken(name, f"sums of {least}..{greatest} do not fit {bits} bits.")
    return least, greatest
