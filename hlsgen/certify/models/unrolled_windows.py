"""Proves units after hg_unfold, which get all taps of a window in one beat.

These are hg_mvu, hg_mvu_words, hg_dwmvu and hg_pool_tree. hg_unfold only moves elements. The lanes of its stream must
carry the elements of the layer's windows. Then the weights are compared column by column with the weights of the
elements in the lanes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify import adder_modules, sum_tables
from hlsgen.certify.adder_modules import ADDERS
from hlsgen.certify.models.line_buffer import depth, results, sizes
from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame, number_or_one
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.stream_contents import (
    ANYTHING,
    EMPTY,
    Elements,
    StreamContents,
    channel_order,
    check_codes,
    check_size,
    constant_element,
)
from hlsgen.ir import Convolution, Pooling
from hlsgen.numerics.fixed import Array

_UNFOLD = "UNIT LANES HEIGHT WIDTH KH KW SH SW PT PL OUT_H OUT_W FOLDS ROWS COLUMNS PAD"
_TREE = "LANES TAPS X_W X_SIGNED SUM ACC_W"


def unfold(cell: Cell, stream: StreamContents) -> StreamContents:
    """The stream after hg_unfold: windows, folds, and in a beat taps and lanes. Raises HG055.

    If a beat has several windows of a row: beats, and in each beat taps, windows and lanes.
    """
    check_parameters(cell, _UNFOLD, "PIXELS WINDOWS DH DW")
    lanes, folds, rows, columns = (cell.number(name, 1) for name in ("LANES", "FOLDS", "ROWS", "COLUMNS"))
    pixels, windows = number_or_one(cell, "PIXELS"), number_or_one(cell, "WINDOWS")
    check_beat(cell, stream, pixels * lanes, cell.number("UNIT", 1))
    names = (("HEIGHT", "KH", "SH", "DH", "PT", "OUT_H"), ("WIDTH", "KW", "SW", "DW", "PL", "OUT_W"))
    axes = [
        (
            cell.number(size, 1),
            cell.number(k, 1),
            cell.number(s, 1),
            number_or_one(cell, d),
            cell.number(p),
            cell.number(out, 1),
        )
        for size, k, s, d, p, out in names
    ]
    (height, kernel_height, _, dilation_rows, *_), (width, kernel_width, step, dilation, left_pad, windows_across) = (
        axes
    )
    reach_rows, reach = (kernel_height - 1) * dilation_rows + 1, (kernel_width - 1) * dilation + 1
    ends_outside = (windows_across - 1) * step - left_pad + reach > width
    if windows * step % pixels or max(pixels, windows) > 1 < folds or (width % pixels and ends_outside):
        raise broken(
            cell.name, f"{pixels} PIXELS of a word and {windows} WINDOWS of a beat are not supported together."
        )
    # The same axis in words; a beat is made of some of them.
    words = -(-width // pixels), -(-left_pad // pixels), -(-windows_across // windows)
    span = (words[1] * pixels - left_pad + (windows - 1) * step + reach - 1) // pixels + 1
    if kernel_height > 1:
        buffer_fits = rows >= reach_rows and columns == words[0]
    else:
        places = (words[0], span, windows * step // pixels, 1, words[1], words[2])
        buffer_fits = rows == 1 and columns % span == 0 and columns >= depth(axes[0], places)
    if not buffer_fits:
        raise broken(
            cell.name, f"{rows} ROWS of {columns} COLUMNS: windows would be wrong, or the unit would stall forever."
        )
    pad = cell.sized("PAD", stream.bits)
    code = pad.signed if stream.lo < 0 else pad.value
    images = groups_in_frame(cell, stream, height * words[0] * folds, "an image has")
    check_size(cell, images * axes[0][-1] * kernel_height * words[2] * windows * kernel_width * folds * lanes)
    table = stream.elements.reshape(images, height, words[0], folds, pixels, lanes).swapaxes(3, 4)
    table = table.reshape(images, height, words[0] * pixels, folds, lanes)[:, :, :width]
    windows_table = _window_elements(table, axes, code)  # rows, columns, kernel rows, kernel columns, folds, lanes
    windows_table = windows_table.reshape(-1, kernel_height * kernel_width, folds, lanes).transpose(0, 2, 1, 3)
    windows_table = windows_table.reshape(
        len(windows_table) // windows_across, windows_across, folds * kernel_height * kernel_width * lanes
    )
    beats = (
        _pad_columns(windows_table, windows)
        .reshape(-1, windows, folds, kernel_height * kernel_width, lanes)
        .transpose(0, 2, 3, 1, 4)
    )
    return replace(stream, elements=beats.reshape(-1, kernel_height * kernel_width * windows * lanes))


def _pad_columns(table: Array, windows: int) -> Array:
    """Add columns that hold anything to (rows, columns, ...), up to a multiple of `windows`."""
    missing = -table.shape[1] % windows
    return np.pad(table, ((0, 0), (0, missing), (0, 0)), constant_values=ANYTHING)


def group_windows(numbers: Array, layer: Convolution | Pooling, windows: int) -> Array:
    """Results (positions, channels) grouped by beats of several windows of a row: (beats, windows * channels)."""
    across, channels = layer.result.shape[-2], numbers.shape[1]
    return _pad_columns(numbers.reshape(-1, across, channels), windows).reshape(-1, windows * channels)


def _beats(layer: Convolution | Pooling, windows: int) -> int:
    across, channels = layer.result.shape[-2:]
    return layer.result.size // (across * channels) * -(-across // windows)


def _split_windows(elements: Array, layer: Convolution | Pooling, windows: int) -> Array:
    """Beats of (taps, windows, lanes) as (positions, taps, lanes), without the lanes after the end of a row."""
    across, channels = layer.result.shape[-2:]
    rows, taps = layer.result.size // (across * channels), layer.window.taps
    table = elements.reshape(rows, -(-across // windows), taps, windows, -1).transpose(0, 1, 3, 2, 4)
    return np.asarray(table.reshape(rows, -1, taps, table.shape[-1])[:, :across].reshape(rows * across, taps, -1))


def _window_elements(images: Array, axes: list[tuple[int, int, int, int, int, int]], code: int) -> Array:
    """The windows of images (images, height, width, ...): (rows of all, columns, kernel height, kernel width, ...)."""
    positions = [
        np.arange(windows)[:, None] * stride - front + np.arange(kernel) * dilation
        for _, kernel, stride, dilation, front, windows in axes
    ]
    y, x = (np.clip(place, 0, axis[0] - 1) for place, axis in zip(positions, axes, strict=True))
    out_y, out_x = ((p < 0) | (p >= axis[0]) for p, axis in zip(positions, axes, strict=True))
    table = images[:, y[:, None, :, None], x[None, :, None, :]]
    table[:, out_y[:, None, :, None] | out_x[None, :, None, :]] = constant_element(code)
    return np.asarray(table.reshape(-1, *table.shape[2:]))


def _layer_windows(layer: Convolution | Pooling, elements: Elements) -> Array:
    """The elements of the layer's windows: (windows, taps, channels)."""
    images = elements.numbers[layer.inputs[0]].reshape(-1, *layer.source.shape[-3:])
    table = _window_elements(images, sizes(layer), layer.pad)
    return np.asarray(table.reshape(-1, layer.window.taps, layer.source.shape[-1]))


def convolution(cell: Cell, stream: StreamContents, layer: Convolution) -> tuple[tuple[int, int, int], int]:
    """(groups, beats, lanes) of the results of one window or several windows, and how many windows. Raises HG055."""
    outputs, pe = len(layer.weight), cell.number("PE", 1)
    if cell.module == "hg_dwmvu":
        repeat, taps, rows, columns = cell.number("FOLDS", 1), cell.number("TAPS", 1), *_group(cell)
        if (
            (outputs // layer.groups, layer.weight.shape[3]) != (rows, columns)
            or pe % rows
            or taps != layer.window.taps
        ):
            raise broken(
                layer.name,
                f"{cell.name} has {taps} taps of groups of {rows} x {columns} in {pe} sums, the model "
                f"{layer.groups} of "
                f"{outputs // layer.groups} x {layer.weight.shape[3]}.",
            )
        folds, windows, lanes = repeat, max(1, pe // outputs), pe // rows * taps * columns
        ordered = True
    else:
        repeat, lanes, folds = (cell.number(x, 1) for x in ("ROW_FOLDS", "SIMD", "COL_FOLDS"))
        windows = number_or_one(cell, "WINDOWS")
        lanes, pe = lanes * windows, pe * windows
        ordered = number_or_one(cell, "TAPS") == (layer.window.taps if windows > 1 else 1)
        if layer.groups != 1:
            raise broken(layer.name, f"{cell.name} sums over all channels, the model over {layer.groups} groups.")
    check_beat(cell, stream, lanes, cell.number("X_W", 1))
    if not ordered or (windows > 1 and (folds, repeat, pe) != (1, 1, windows * outputs)):
        raise broken(layer.name, f"{cell.name} has {windows} windows in a beat, but not entire ones.")
    if groups_in_frame(cell, stream, folds, "a window has") != _beats(layer, windows):
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats a frame, not {folds} for each window.")
    if repeat * pe < windows * outputs or (repeat - 1) * pe >= outputs:
        raise broken(layer.name, f"{cell.name} has {repeat} x {pe} rows, the model {outputs}.")
    return (1, repeat, pe), windows


def _group(cell: Cell) -> tuple[int, int]:
    """(sums, elements) of a group of hg_dwmvu."""
    return number_or_one(cell, "ROWS"), number_or_one(cell, "COLUMNS")


def compare(cell: Cell, stream: StreamContents, layer: Convolution, elements: Elements, memories: Memories) -> None:
    """Prove that each weight meets the model's element, and that empty lanes add nothing. Raises HG055."""
    pe = cell.number("PE", 1)
    grouped, outputs = cell.module == "hg_dwmvu", len(layer.weight)
    layer_windows = _layer_windows(layer, elements)
    positions, taps, channels = layer_windows.shape
    windows = max(1, pe // outputs) if grouped else number_or_one(cell, "WINDOWS")
    if grouped:
        folds, (rows, group_columns) = cell.number("FOLDS", 1), _group(cell)
        words = _weights(cell, memories, folds, pe * taps * group_columns)
        if windows > 1:
            unit_windows = _split_windows(stream.elements, layer, windows)
        else:
            unit_windows = stream.elements.reshape(positions, folds, taps, pe // rows * group_columns)
            unit_windows = unit_windows.transpose(0, 2, 1, 3).reshape(positions, taps, -1)
        if (unit_windows[..., :channels] != layer_windows).any():
            raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
        for window_words in words.reshape(windows, -1, taps * group_columns):
            _check_weights(layer, cell, window_words[:outputs], layer.weight.reshape(outputs, -1))
        return
    counts = not sum_tables.has_tables(cell) and cell.number("MODE") == 2
    repeat, folds, simd = (cell.number(x, 1) for x in ("ROW_FOLDS", "COL_FOLDS", "SIMD"))
    if cell.module == ADDERS:
        words = adder_modules.read(memories.folder, cell)
    elif sum_tables.has_tables(cell):
        words = sum_tables.read(memories, cell, repeat * folds, pe, simd)
    else:
        words = _weights(cell, memories, repeat * folds, pe * simd)
    table = words.reshape(repeat, folds, pe, simd).transpose(0, 2, 1, 3).reshape(repeat * pe, folds * simd)
    table = table[: len(layer.weight)]
    if windows > 1:
        unit_windows = _split_windows(stream.elements, layer, windows).reshape(positions, simd)
    else:
        unit_windows = stream.elements.reshape(positions, folds * simd)
    # Columns with the same elements in every window are merged: only the sum of their weights matters.
    # Columns that are always outside of the image add the same to every sum.
    model: dict[bytes, Array] = {b"": np.zeros(len(layer.weight) + 1, np.int64)}
    unit_sums = dict(model)
    for sums, columns, weights in (
        (model, layer_windows.reshape(positions, -1), layer.weight.reshape(len(layer.weight), -1)),
        (unit_sums, unit_windows, table),
    ):
        for column, weight in zip(np.ascontiguousarray(columns.T), weights.T, strict=True):
            if (column == constant_element(layer.pad)).all():
                contribution = weight == layer.pad if counts else weight * layer.pad
                sums[b""] = sums[b""] + np.append(contribution, 0)
            elif sums is unit_sums and ((column == ANYTHING) | (column == EMPTY)).any():
                _check_empty_lane(layer, cell, counts, column, weight)
            else:
                key = column.tobytes()
                sums[key] = np.append(weight, 1) + sums.get(key, 0)  # the last entry counts the columns
    if model.keys() != unit_sums.keys():
        raise broken(layer.name, f"{cell.name} does not get the elements of the model's windows.")
    keys = list(model)
    _check_weights(
        layer, cell, np.stack([unit_sums[key] for key in keys], -1), np.stack([model[key] for key in keys], -1)
    )


def _weights(cell: Cell, memories: Memories, words: int, lanes: int) -> Array:
    """The weights in a unit's memory: int64 (words, lanes). Weights of agreements are bits."""
    mode, width = cell.number("MODE"), cell.number("W_W", 1)
    codes = memories.fields(cell.file, words, lanes, width)
    return codes if mode == 2 else 2 * codes - 1 if mode == 1 else two_complement(codes, width)


def _check_weights(layer: Convolution, cell: Cell, unit_weights: Array, model: Array) -> None:
    unequal = np.argwhere(unit_weights != model)
    if len(unequal):
        row, column = unequal[0].tolist()
        raise broken(
            layer.name,
            f"row (channel) {row}: for element {column} of a window the model's weight is "
            f"{model[row, column]}, the weight of {cell.name} is {unit_weights[row, column]}.",
        )


def _check_empty_lane(layer: Convolution, cell: Cell, counts: bool, column: Array, weight: Array) -> None:
    """Check that a column that is empty in some window adds nothing to any sum."""
    zero = bool(((column == EMPTY) | (column == constant_element(0))).all())
    inert = weight == (1 if counts else 0)
    if not (zero and (not counts or inert.all())) and not (not counts and inert.all()):
        raise broken(layer.name, f"an empty lane of {cell.name} can change a sum.")


def pool(
    cell: Cell, stream: StreamContents, layer: Pooling, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream that hg_pool_tree sends. Sets the range of codes of its elements. Raises HG055."""
    check_parameters(cell, _TREE)
    lanes, taps, channels = cell.number("LANES", 1), cell.number("TAPS", 1), layer.source.shape[-1]
    check_beat(cell, stream, lanes * taps, cell.number("X_W", 1))
    check_codes(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    layer_windows = _layer_windows(layer, elements)
    positions, windows = len(layer_windows), max(1, lanes // channels)
    beats = groups_in_frame(cell, stream, _beats(layer, windows), "the windows have")
    if taps != layer.window.taps or beats * lanes < windows * channels or (windows > 1 < beats):
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats of {taps} taps a frame.")
    if windows > 1:
        unit_windows = _split_windows(stream.elements, layer, windows)
    else:
        unit_windows = (
            stream.elements.reshape(positions, -1, taps, lanes).transpose(0, 2, 1, 3).reshape(positions, taps, -1)
        )
    channel_columns = channel_order(layer.name, order, channels)
    if unit_windows.shape[2] < channels or (unit_windows[..., :channels] != layer_windows[..., channel_columns]).any():
        raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
    results(cell, layer, elements, value)
    type_, numbers = layer.result.type, elements.numbers[value].reshape(-1, channels)[:, channel_columns]
    if windows > 1:
        return StreamContents(group_windows(numbers, layer, windows), type_.bits, type_.lo, type_.hi)
    table = np.full((positions, unit_windows.shape[2]), ANYTHING)
    table[:, :channels] = numbers
    return StreamContents(table.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)
