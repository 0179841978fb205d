"""Weights in the order in which units use them, word by word, with those that fill the last folds."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import ConvUnit, GroupedMatVec, MatVec, Product, WeightedUnit
from hlsgen.numerics.fixed import Array

#: Weight of a lane without an element: it meets the code 0, which does not agree with a 1.
_EMPTY = {Product.INTEGER: 0, Product.BIPOLAR: 1, Product.AGREEMENTS: 1}


def packed(unit: WeightedUnit) -> Array:
    """int64 (words, lanes) in the order of use; where a weight is a bit, 1 stands for 1 and 0 for the other one."""
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
    return np.full(shape, _EMPTY[unit.product], np.int64)


def _matrix(unit: MatVec) -> Array:
    """Fold of the rows, fold of the columns, row, tap, column."""
    (rows, taps, columns), own = unit.weight.shape, unit.simd // unit.taps
    whole = _empty(unit, (unit.row_folds * unit.pe, taps, unit.col_folds * own))
    whole[:rows, :, :columns] = unit.weight[:, :, unit.order]
    parts = whole.reshape(unit.row_folds, unit.pe, taps, unit.col_folds, own)
    return np.ascontiguousarray(parts.transpose(0, 3, 1, 2, 4)).reshape(-1, unit.lanes)


def _convolution(unit: ConvUnit) -> Array:
    """Group, fold of the rows, tap, fold of the columns, row, column."""
    groups, (outputs, taps, columns) = unit.groups, unit.weight.shape
    rows = outputs // groups
    whole = _empty(unit, (groups, unit.repeat * unit.pe, taps, unit.folds * unit.simd))
    whole[:, :rows, :, :columns] = unit.weight[:, :, unit.order].reshape(groups, rows, taps, columns)
    parts = whole.reshape(groups, unit.repeat, unit.pe, taps, unit.folds, unit.simd)
    return np.ascontiguousarray(parts.transpose(0, 1, 3, 4, 2, 5)).reshape(-1, unit.lanes)


def _depthwise(unit: ConvUnit) -> Array:
    """Fold of the channels, tap, channel."""
    channels, taps, _ = unit.weight.shape
    folds = -(-channels // unit.pe)
    whole = _empty(unit, (folds * unit.pe, taps))
    whole[:channels] = unit.weight[:, :, 0]
    return np.ascontiguousarray(whole.reshape(folds, unit.pe, taps).transpose(0, 2, 1)).reshape(-1, unit.pe)


def _groups(unit: GroupedMatVec) -> Array:
    """Fold of the outputs, output, tap, column; of several windows the same weights for each."""
    table = unit.weight.reshape(len(unit.weight), -1)
    if unit.pe > len(table):
        table = np.tile(table, (unit.pe // len(table), 1))
    whole = _empty(unit, (unit.folds * unit.pe, unit.simd))
    whole[: len(table)] = table
    return whole.reshape(unit.folds, -1)
