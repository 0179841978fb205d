"""Weights word by word in the order in which units use them, with padding that fills the last folds."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import ConvUnit, GroupedMatVec, MatVec, Product, WeightedUnit
from hlsgen.numerics.fixed import Array

#: Weight of a lane without an element. Its code is 0, which does not agree with a 1.
_EMPTY = {Product.INTEGER: 0, Product.BIPOLAR: 1, Product.AGREEMENTS: 1}


def packed(unit: WeightedUnit) -> Array:
    """int64 (words, lanes) in the order of use; a weight of one bit is 1 for 1 and 0 for the other value."""
    match unit:
        case MatVec():
            table = _matrix(unit)
        case GroupedMatVec():
            table = _groups(unit)
        case ConvUnit(depthwise=True):
            table = _depthwise(unit)
        case ConvUnit():
            table = _convolution(unit)
        case _:
            assert_never(unit)
    return table if unit.product is Product.INTEGER else (table > 0).astype(np.int64)


def _empty(unit: WeightedUnit, shape: tuple[int, ...]) -> Array:
    """Padding weights of this shape."""
    return np.full(shape, _EMPTY[unit.product], np.int64)


def _matrix(unit: MatVec) -> Array:
    """Order: fold of the rows, fold of the columns, row, tap, column."""
    (rows, taps, columns), simd_columns = unit.weight.shape, unit.simd // unit.taps
    padded = _empty(unit, (unit.row_folds * unit.pe, taps, unit.col_folds * simd_columns))
    padded[:rows, :, :columns] = unit.weight[:, :, unit.order]
    parts = padded.reshape(unit.row_folds, unit.pe, taps, unit.col_folds, simd_columns)
    return np.ascontiguousarray(parts.transpose(0, 3, 1, 2, 4)).reshape(-1, unit.lanes)


def _convolution(unit: ConvUnit) -> Array:
    """Order: group, fold of the rows, tap, fold of the columns, row, column."""
    groups, (outputs, taps, columns) = unit.groups, unit.weight.shape
    rows = outputs // groups
    padded = _empty(unit, (groups, unit.repeat * unit.pe, taps, unit.folds * unit.simd))
    padded[:, :rows, :, :columns] = unit.weight[:, :, unit.order].reshape(groups, rows, taps, columns)
    parts = padded.reshape(groups, unit.repeat, unit.pe, taps, unit.folds, unit.simd)
    return np.ascontiguousarray(parts.transpose(0, 1, 3, 4, 2, 5)).reshape(-1, unit.lanes)


def _depthwise(unit: ConvUnit) -> Array:
    """Order: fold of the channels, tap, channel."""
    channels, taps, _ = unit.weight.shape
    folds = -(-channels // unit.pe)
    padded = _empty(unit, (folds * unit.pe, taps))
    padded[:channels] = unit.weight[:, :, 0]
    return np.ascontiguousarray(padded.reshape(folds, unit.pe, taps).transpose(0, 2, 1)).reshape(-1, unit.pe)


def _groups(unit: GroupedMatVec) -> Array:
    """Order: fold of the outputs, output, tap, column. Several windows use the same weights."""
    table = unit.weight.reshape(len(unit.weight), -1)
    if unit.pe > len(table):
        table = np.tile(table, (unit.pe // len(table), 1))
    padded = _empty(unit, (unit.folds * unit.pe, unit.simd))
    padded[: len(table)] = table
    return padded.reshape(unit.folds, -1)
