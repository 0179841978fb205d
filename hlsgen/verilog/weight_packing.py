"""Weights in the order in which folded units use them, with rows and columns that fill the last fold."""

from __future__ import annotations

import numpy as np

from hlsgen.ir import Convolution, Linear
from hlsgen.numerics.fixed import Array

#: Weight of an empty column: what it meets is 0, and a 0 and a 1 do not agree (mode 2).
_EMPTY = {0: 0, 1: 1, 2: 1}


def mode_of(layer: Linear | Convolution, weight: Array) -> int:
    """MODE of hg_mvu and hg_conv: 2 agreements are counted, 1 bipolar weights, 0 any."""
    return 2 if layer.binary else 1 if (np.abs(weight) == 1).all() else 0


def padded(weight: Array, pe: int, simd: int, mode: int) -> Array:
    """(rows, columns) with both made whole multiples of PE and SIMD."""
    rows, columns = weight.shape
    result = np.full((-(-rows // pe) * pe, -(-columns // simd) * simd), _EMPTY[mode], np.int64)
    result[:rows, :columns] = weight
    return result


def folded(weight: Array, groups: int, pe: int, simd: int, mode: int) -> Array:
    """(outputs, kernel height, kernel width, channels of a group) -> (words, pe, simd).

    Words in order of use: group, fold of the rows, tap, fold of the columns.
    """
    outputs, height, width, columns = weight.shape
    rows, taps = outputs // groups, height * width
    row_folds, folds = -(-rows // pe), -(-columns // simd)
    whole = np.full((groups, row_folds * pe, taps, folds * simd), _EMPTY[mode], np.int64)
    whole[:, :rows, :, :columns] = weight.reshape(groups, rows, taps, columns)
    parts = whole.reshape(groups, row_folds, pe, taps, folds, simd)
    return np.ascontiguousarray(parts.transpose(0, 1, 3, 4, 2, 5)).reshape(-1, pe, simd)


def unfolded(weight: Array, simd: int, mode: int) -> Array:
    """(outputs, kernel height, kernel width, channels) -> (outputs, columns) in the order of hg_unfold's beats:
    fold of the channels, tap, SIMD channels."""
    outputs, height, width, columns = weight.shape
    folds = -(-columns // simd)
    whole = np.full((outputs, height * width, folds * simd), _EMPTY[mode], np.int64)
    whole[:, :, :columns] = weight.reshape(outputs, height * width, columns)
    parts = whole.reshape(outputs, height * width, folds, simd)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3)).reshape(outputs, -1)


def unfolded_groups(weight: Array, pe: int, mode: int) -> Array:
    """(outputs, kernel height, kernel width, channels of a group) -> (folds, pe, columns), PE whole groups; a PE of
    several times the outputs works on as many windows."""
    table = weight.reshape(len(weight), -1)
    if pe > len(table):
        return np.tile(table, (pe // len(table), 1))[None]
    folds = -(-len(table) // pe)
    whole = np.full((folds * pe, table.shape[1]), _EMPTY[mode], np.int64)
    whole[: len(table)] = table
    return whole.reshape(folds, pe, -1)


def folded_depthwise(weight: Array, pe: int, mode: int) -> Array:
    """(channels, kernel height, kernel width, 1) -> (words, pe): fold of the channels, tap."""
    return np.ascontiguousarray(unfolded_groups(weight, pe, mode).transpose(0, 2, 1)).reshape(-1, pe)
