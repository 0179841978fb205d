"""Proves hg_dynmvu: every sum consists of the products of the model, in any order.

The contents of both streams state which elements each multiplier gets. A sum is right if the model multiplies the same
pairs for it. Their order does not matter for sums of integers. Bounds show that nothing wraps.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes
from hlsgen.ir import MatrixProduct
from hlsgen.numerics.fixed import Array

_NAMES = (
    "SIMD PE FOLDS ROWS_FIRST A_W A_SIGNED A_SHIFT A_OFFSET X_W X_SIGNED B_W B_SIGNED B_SHIFT B_OFFSET W_W ACC_W EVERY"
)
#: Number of products that are compared at a time.
_PORTION = 1 << 22


def product(
    cell: Cell, streams: list[StreamContents], layer: MatrixProduct, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream of sums that the unit sends, in the order of the layer's result. Raises HG055."""
    check_parameters(cell, _NAMES, "DSP")
    simd, pe, folds, rows_first = (cell.number(name, low) for name, low in _SIZES)
    for stream, source, side, lanes in zip(streams, layer.sources, "AB", (simd, pe * simd), strict=True):
        check_beat(cell, stream, lanes, cell.number(f"{side}_W", 1))
        check_codes(cell.name, stream, source.type, cell.number(f"{side}_W"), cell.number(f"{side}_SIGNED"))
        if stream.units or stream.operands or not stream.filled.all():
            raise broken(layer.name, f"{cell.name} gets lanes on side {side} that hold no element of its operand.")
    a, b = streams
    if a.beats != b.beats or rows_first > 1:
        raise broken(layer.name, f"{cell.name} gets {a.beats} and {b.beats} beats a frame, or ROWS_FIRST is no flag.")
    sums = groups_in_frame(cell, a, folds, "a sum has")
    if sums * pe != len(order) or folds * simd != layer.depth:
        raise broken(layer.name, f"{cell.name} sends {sums} x {pe} sums of {folds * simd} products, not the model's.")
    left_numbers = a.elements.reshape(sums, 1, folds * simd)
    right_shape = (sums, folds, pe, simd) if rows_first else (sums, folds, simd, pe)
    right_numbers = b.elements.reshape(right_shape).transpose((0, 2, 1, 3) if rows_first else (0, 3, 1, 2))
    right_numbers = right_numbers.reshape(sums, pe, folds * simd)
    operands = _operand_elements(layer, elements)
    portion = max(1, _PORTION // (pe * folds * simd))
    for start in range(0, sums, portion):
        part = slice(start, start + portion)
        places = order.reshape(sums, pe)[part]
        hardware_pairs = _pairs(np.broadcast_to(left_numbers[part], right_numbers[part].shape), right_numbers[part])
        model_pairs = _pairs(operands[0][places // layer.result.shape[-1]], operands[1][_columns(layer, places)])
        unequal = np.argwhere((hardware_pairs != model_pairs).any(axis=(-2, -1)))
        if len(unequal):
            sum_index, lane = unequal[0].tolist()
            name = elements.name(int(elements.numbers[value][places[sum_index, lane]]))
            raise broken(layer.name, f"lane {lane} of {cell.name} does not sum the products of {name}.")
    type_ = layer.result.type
    return StreamContents(elements.numbers[value][order].reshape(sums, pe), type_.bits, type_.lo, type_.hi)


_SIZES = (("SIMD", 1), ("PE", 1), ("FOLDS", 1), ("ROWS_FIRST", 0))


def _operand_elements(layer: MatrixProduct, elements: Elements) -> tuple[Array, Array]:
    """The element numbers of the operands: (rows of the left one, depth), (columns of the right one, depth)."""
    left_numbers, right_numbers = (
        elements.numbers[i].reshape(s.shape) for i, s in zip(layer.inputs, layer.sources, strict=True)
    )
    return left_numbers.reshape(-1, layer.depth), np.swapaxes(right_numbers, -1, -2).reshape(-1, layer.depth)


def _columns(layer: MatrixProduct, places: Array) -> Array:
    """The column of the right operand, counted over all its matrices, that each sum uses."""
    shape, right = layer.result.shape, layer.sources[1].shape
    index = np.unravel_index(places.ravel(), shape)  # wrong in numpy 2.4 for more than 8,192 places in rows of one
    column: Array = np.zeros(places.size, np.int64)
    for axis, size in enumerate(right[:-2]):
        column = column * size + (index[axis] if size > 1 else 0)
    return (column * right[-1] + index[-1]).reshape(places.shape)


def _pairs(left_numbers: Array, right_numbers: Array) -> Array:
    """The pairs of each sum, sorted: (..., depth, 2)."""
    pairs = np.stack([left_numbers, right_numbers], axis=-1)
    if (pairs[..., 1:, 0] < pairs[..., :-1, 0]).any() or (pairs[..., 1:, 0] == pairs[..., :-1, 0]).any():
        rank = np.lexsort((right_numbers, left_numbers), axis=-1)
        pairs = np.take_along_axis(pairs, rank[..., None], axis=-2)
    return pairs


def check(cell: Cell, layer: MatrixProduct) -> tuple[int, int]:
    """Prove that operands are read as the layer states, and that nothing wraps.

    Returns (least, greatest) sum. Raises HG055.
    """
    name, ends = layer.name, []
    for n, (side, operand) in enumerate((("A", "X_W"), ("B", "W_W"))):
        shift, offset = cell.number(f"{side}_SHIFT"), cell.number(f"{side}_OFFSET", -(1 << 31))
        if (1 << min(shift, 64), offset) != (layer.factors[n], layer.offsets[n]):
            raise broken(
                name, f"{cell.name} reads code * 2^{shift} + {offset} of side {side}, the model another number."
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
        raise broken(name, f"X_SIGNED, EVERY or DSP of {cell.name} has an invalid value.")
    products = [x * y for x in ends[0] for y in ends[1]]
    lowest, highest = layer.depth * min(products), layer.depth * max(products)
    type_, bits = layer.result.type, cell.number("ACC_W", 1)
    if (lowest, highest) != (type_.lo, type_.hi):
        raise broken(name, f"the model's sums are {type_}, its operands give {lowest}..{highest}.")
    if (
        bits != type_.bits
        or lowest < (-(1 << (bits - 1)) if type_.signed else 0)
        or highest >= 1 << (bits - type_.signed)
    ):
        raise broken(name, f"sums of {lowest}..{highest} do not fit {bits} bits.")
    return lowest, highest
