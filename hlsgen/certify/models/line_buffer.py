"""Proves that hg_conv, hg_dwconv, hg_pool and hg_reduce use the windows of the layer, and have room for them."""

from __future__ import annotations

import math

import numpy as np

from hlsgen.certify.models.routing import check_beat, check_parameters
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import ANYTHING, Elements, StreamContents, channel_order, check_codes
from hlsgen.ir import Convolution, Pooling
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Parameters of a window.
GEOMETRY = "HEIGHT WIDTH KH KW SH SW DH DW PT PL OUT_H OUT_W"
_POOL = f"LANES {GEOMETRY} GROUPS DEPTH X_W PAD X_SIGNED SUM ACC_W"
_REDUCE = "LANES HEIGHT WIDTH KH KW FOLDS X_W X_SIGNED SUM ACC_W"


def sizes(layer: Convolution | Pooling) -> list[tuple[int, int, int, int, int, int]]:
    """For each axis: (size, kernel, stride, dilation, leading padding, number of windows)."""
    window_ = layer.window
    parameters = layer.source.shape[-3:-1], window_.kernel, window_.strides, window_.dilations, window_.pads[:2]
    return list(zip(*parameters, layer.result.shape[-3:-1], strict=True))


def outside(size: int, kernel: int, stride: int, dilation: int, front: int, windows: int) -> Array:
    """(windows, kernel): True for each tap outside of the image."""
    position = np.arange(windows)[:, None] * stride - front + np.arange(kernel) * dilation
    return np.asarray((position < 0) | (position >= size))


def has_border(layer: Convolution | Pooling) -> bool:
    """True if some tap of some window lies outside of the image."""
    return any(outside(*axis).any() for axis in sizes(layer))


def check_unit_window(cell: Cell, layer: Convolution | Pooling, stream: StreamContents, words: int) -> None:
    """Check that the unit's windows are the layer's, on images with `words` words a pixel. Raises HG055."""
    rows, columns = sizes(layer)
    _check_geometry(cell, layer, stream, words)
    pad = cell.sized("PAD", stream.bits)
    if pad.value != layer.pad % (1 << stream.bits):
        raise broken(layer.name, f"PAD of {cell.name} is {pad}, the padding of the model is the code {layer.pad}.")
    min_depth = depth(rows, columns) * words
    if cell.number("DEPTH", 1) < min_depth:
        raise broken(
            layer.name,
            f"DEPTH of {cell.name} is {cell.parameters['DEPTH']}: a window needs {min_depth} words at once; the unit "
            "would stall forever.",
        )


def check_adjacent_windows(cell: Cell, layer: Pooling, stream: StreamContents, words: int) -> None:
    """Check that hg_reduce has the layer's windows: all adjacent ones that fit, from the first pixel on.

    Raises HG055.
    """
    _check_geometry(cell, layer, stream, words)
    for size, kernel, stride, dilation, front, windows in sizes(layer):
        taps = np.arange(windows)[:, None] * stride - front + np.arange(kernel) * dilation
        if windows != size // kernel or (taps.ravel() != np.arange(windows * kernel)).any():
            raise broken(layer.name, f"its windows are not all adjacent ones, but the windows of {cell.name} are.")


def _check_geometry(cell: Cell, layer: Convolution | Pooling, stream: StreamContents, words: int) -> None:
    """Check that the window parameters are the model's, and that a frame is one image. Raises HG055."""
    for names, axis in zip((GEOMETRY.split()[::2], GEOMETRY.split()[1::2]), sizes(layer), strict=True):
        for name, expected in zip(names, axis, strict=True):
            if name in cell.parameters and cell.number(name) != expected:
                raise broken(layer.name, f"{name} of {cell.name} is {cell.parameters[name]}, in the model {expected}.")
    if stream.beats != math.prod(layer.source.shape[:-1]) * words:
        raise broken(
            layer.name,
            f"{cell.name} has {words} words a pixel, it gets {stream.beats} a frame for "
            f"{math.prod(layer.source.shape[:-1])} pixels.",
        )


def depth(rows: tuple[int, ...], columns: tuple[int, ...]) -> int:
    """Maximum pixels from the oldest one that hg_window_flow keeps to the newest one that it waits for."""
    ends = []
    for size, kernel, stride, dilation, front, windows in (rows, columns):
        start = np.arange(windows) * stride - front
        newest = np.clip(start + (kernel - 1) * dilation, 0, size - 1)
        ends.append((start, newest, np.clip(start, 0, size)))
    (y, last_y, first_y), (_, last_x, first_x) = ends
    height, width = rows[0], columns[0]
    keeps = (y < height) & ((y + rows[2] > 0) | (np.arange(len(y)) == len(y) - 1))
    newest = last_y[:, None] * width + last_x
    oldest = first_y[:, None] * width + np.where(keeps[:, None], first_x, 0)
    return int((newest - oldest).max()) + 1


def pool(
    cell: Cell, stream: StreamContents, layer: Pooling, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream that hg_pool or hg_reduce sends. Sets the range of codes of its elements. Raises HG055."""
    is_reduce = cell.module == "hg_reduce"
    check_parameters(cell, _REDUCE if is_reduce else _POOL)
    lanes, groups = cell.number("LANES", 1), cell.number("FOLDS" if is_reduce else "GROUPS", 1)
    check_beat(cell, stream, lanes, cell.number("X_W", 1))
    (check_adjacent_windows if is_reduce else check_unit_window)(cell, layer, stream, groups)
    type_, channels = layer.result.type, layer.source.shape[-1]
    check_codes(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    filled = stream.filled.reshape(-1, groups * lanes)
    channel_columns = channel_order(layer.name, order, channels)
    if (filled != filled[0]).any() or filled[0].sum() != channels:
        raise broken(layer.name, f"the {channels} channels do not always arrive in the same lanes of {cell.name}.")
    results(cell, layer, elements, value)
    table = np.full((math.prod(layer.result.shape[:-1]), groups * lanes), ANYTHING)
    table[:, filled[0]] = elements.numbers[value].reshape(-1, channels)[:, channel_columns]
    return StreamContents(table.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)


def results(cell: Cell, layer: Pooling, elements: Elements, value: int) -> None:
    """Check the kind of a pool and the width of its results; set the range of its results. Raises HG055."""
    source, type_, channels = layer.source.type, layer.result.type, layer.source.shape[-1]
    total = layer.kind is Reduction.SUM
    if cell.number("SUM") != total:
        raise broken(layer.name, f"SUM of {cell.name} is {cell.parameters['SUM']}, the model has a {layer.kind.value}.")
    if cell.number("ACC_W", 1) != type_.bits or type_.bits < source.bits:
        raise broken(layer.name, f"ACC_W of {cell.name} is {cell.parameters['ACC_W']}, its results are {type_}.")
    low, high = elements.code_range(elements.numbers[layer.inputs[0]].reshape(-1, channels))
    low, high = low.min(axis=0), high.max(axis=0)
    has_empty_window = any(outside(*axis).all(axis=1).any() for axis in sizes(layer))
    if total or has_empty_window:
        low, high = (np.minimum(low, layer.pad), np.maximum(high, layer.pad)) if has_border(layer) else (low, high)
    taps = layer.window.taps if total else 1
    if (low * taps).min() < type_.lo or (high * taps).max() > type_.hi:
        raise broken(layer.name, f"results of {(low * taps).min()}..{(high * taps).max()} are not all {type_}.")
    elements.limit(value, low * taps, high * taps)
