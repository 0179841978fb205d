"""Proves units behind hg_unfold, which get all taps of a window in one beat: hg_mvu, hg_dwmvu, hg_pool_tree.

hg_unfold only moves elements. The lanes of its stream must carry the elements that the layer's windows take. Then the
weights are compared column by column with those of the elements in the lanes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify import adder_modules, sum_tables
from hlsgen.certify.adder_modules import ADDERS
from hlsgen.certify.models.line_buffer import depth, results, sizes
from hlsgen.certify.models.routing import count, fits, only, whole
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.stream_contents import (
    ANYTHING,
    EMPTY,
    Elements,
    StreamContents,
    constant,
    pixels,
    readable,
    room,
)
from hlsgen.ir import Convolution, Pooling
from hlsgen.numerics.fixed import Array

_UNFOLD = "UNIT LANES HEIGHT WIDTH KH KW SH SW PT PL OUT_H OUT_W FOLDS ROWS COLUMNS PAD"
_TREE = "LANES TAPS X_W X_SIGNED SUM ACC_W"


def unfold(cell: Cell, stream: StreamContents) -> StreamContents:
    """The stream behind hg_unfold: windows, folds, and in a beat taps and lanes; of several windows of a row in a
    beat: beats, and in each taps, windows and lanes. Raises HG055."""
    only(cell, _UNFOLD, "PIXELS WINDOWS DH DW")
    lanes, folds, rows, columns = (cell.number(name, 1) for name in ("LANES", "FOLDS", "ROWS", "COLUMNS"))
    pixels, windows = count(cell, "PIXELS"), count(cell, "WINDOWS")
    fits(cell, stream, pixels * lanes, cell.number("UNIT", 1))
    names = (("HEIGHT", "KH", "SH", "DH", "PT", "OUT_H"), ("WIDTH", "KW", "SW", "DW", "PL", "OUT_W"))
    axes = [
        (
            cell.number(size, 1),
            cell.number(k, 1),
            cell.number(s, 1),
            count(cell, d),
            cell.number(p),
            cell.number(out, 1),
        )
        for size, k, s, d, p, out in names
    ]
    (height, tall, _, down, *_), (width, wide, step, dilation, left, across) = axes
    high, reach = (tall - 1) * down + 1, (wide - 1) * dilation + 1
    beyond = (across - 1) * step - left + reach > width
    if windows * step % pixels or max(pixels, windows) > 1 < folds or (width % pixels and beyond):
        raise broken(cell.name, f"{pixels} PIXELS of a word and {windows} WINDOWS of a beat do not go together.")
    # The same axis in words: what a beat is put together from.
    words = -(-width // pixels), -(-left // pixels), -(-across // windows)
    span = (words[1] * pixels - left + (windows - 1) * step + reach - 1) // pixels + 1
    if tall > 1:
        fine = rows >= high and columns == words[0]
    else:
        places = (words[0], span, windows * step // pixels, 1, words[1], words[2])
        fine = rows == 1 and columns % span == 0 and columns >= depth(axes[0], places)
    if not fine:
        raise broken(
            cell.name, f"{rows} ROWS of {columns} COLUMNS: no window would be right, or it would wait for ever."
        )
    pad = cell.sized("PAD", stream.bits)
    code = pad.signed if stream.lo < 0 else pad.value
    if whole(cell, stream, height * words[0] * folds, "an image has") != 1:
        raise broken(cell.name, "a frame has several images.")
    room(cell, axes[0][-1] * tall * words[2] * windows * wide * folds * lanes)
    image = stream.elements.reshape(height, words[0], folds, pixels, lanes).swapaxes(2, 3)
    image = image.reshape(height, words[0] * pixels, folds, lanes)[:, :width]
    table = _taken(image, axes, code)  # rows, columns, kernel rows, kernel columns, folds, lanes
    table = table.reshape(-1, tall * wide, folds, lanes).transpose(0, 2, 1, 3)
    table = table.reshape(len(table) // across, across, folds * tall * wide * lanes)
    beats = _filled(table, windows).reshape(-1, windows, folds, tall * wide, lanes).transpose(0, 2, 3, 1, 4)
    return replace(stream, elements=beats.reshape(-1, tall * wide * windows * lanes))


def _filled(table: Array, windows: int) -> Array:
    """(rows, columns, ...) with whole multiples of so many columns, the last of which hold anything."""
    missing = -table.shape[1] % windows
    return np.pad(table, ((0, 0), (0, missing), (0, 0)), constant_values=ANYTHING)


def abreast(numbers: Array, layer: Convolution | Pooling, windows: int) -> Array:
    """Results (places, channels), so many windows of a row in a beat: (beats, windows * channels)."""
    across, channels = layer.result.shape[-2], numbers.shape[1]
    return _filled(numbers.reshape(-1, across, channels), windows).reshape(-1, windows * channels)


def _beats(layer: Convolution | Pooling, windows: int) -> int:
    down, across, _ = layer.result.shape[-3:]
    return down * -(-across // windows)


def _apart(elements: Array, layer: Convolution | Pooling, windows: int) -> Array:
    """Beats of (taps, windows, lanes) -> (places, taps, lanes), without what is behind the end of a row."""
    (down, across, _), taps = layer.result.shape[-3:], layer.window.taps
    table = elements.reshape(down, -(-across // windows), taps, windows, -1).transpose(0, 1, 3, 2, 4)
    return np.asarray(table.reshape(down, -1, taps, table.shape[-1])[:, :across].reshape(down * across, taps, -1))


def _taken(image: Array, axes: list[tuple[int, int, int, int, int, int]], code: int) -> Array:
    """Images (height, width, ...) -> (rows, columns, kernel height, kernel width, ...) of windows."""
    places = [
        np.arange(windows)[:, None] * stride - front + np.arange(kernel) * dilation
        for _, kernel, stride, dilation, front, windows in axes
    ]
    y, x = (np.clip(place, 0, axis[0] - 1) for place, axis in zip(places, axes, strict=True))
    out_y, out_x = ((p < 0) | (p >= axis[0]) for p, axis in zip(places, axes, strict=True))
    table = image[y[:, None, :, None], x[None, :, None, :]]
    table[out_y[:, None, :, None] | out_x[None, :, None, :]] = constant(code)
    return np.asarray(table)


def _wanted(layer: Convolution | Pooling, elements: Elements) -> Array:
    """(windows, taps, channels): the elements that the layer's windows take."""
    image = elements.numbers[layer.inputs[0]].reshape(layer.source.shape[-3:])
    table = _taken(image, sizes(layer), layer.pad)
    return np.asarray(table.reshape(-1, layer.window.taps, layer.source.shape[-1]))


def convolution(cell: Cell, stream: StreamContents, layer: Convolution) -> tuple[tuple[int, int, int], int]:
    """(groups, beats, lanes) of the results of a window, or of several, and how many those are. Raises HG055."""
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
                f"{cell.name} has {taps} taps of groups of {rows} x {columns} in {pe} sums, the model {layer.groups} of "
                f"{outputs // layer.groups} x {layer.weight.shape[3]}.",
            )
        folds, windows, lanes = repeat, max(1, pe // outputs), pe // rows * taps * columns
        ordered = True
    else:
        repeat, lanes, folds = (cell.number(x, 1) for x in ("ROW_FOLDS", "SIMD", "COL_FOLDS"))
        windows = count(cell, "WINDOWS")
        lanes, pe = lanes * windows, pe * windows
        ordered = count(cell, "TAPS") == (layer.window.taps if windows > 1 else 1)
        if layer.groups != 1:
            raise broken(layer.name, f"{cell.name} sums over all channels, the model over {layer.groups} groups.")
    fits(cell, stream, lanes, cell.number("X_W", 1))
    if not ordered or (windows > 1 and (folds, repeat, pe) != (1, 1, windows * outputs)):
        raise broken(layer.name, f"{cell.name} has {windows} windows in a beat, but not whole ones.")
    if whole(cell, stream, folds, "a window has") != _beats(layer, windows):
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats a frame, not {folds} for each window.")
    if repeat * pe < windows * outputs or (repeat - 1) * pe >= outputs:
        raise broken(layer.name, f"{cell.name} has {repeat} x {pe} rows, the model {outputs}.")
    return (1, repeat, pe), windows


def _group(cell: Cell) -> tuple[int, int]:
    """(sums, elements) of a group of hg_dwmvu."""
    return count(cell, "ROWS"), count(cell, "COLUMNS")


def compare(cell: Cell, stream: StreamContents, layer: Convolution, elements: Elements, memories: Memories) -> None:
    """Proves that each weight meets the element of the model, and that empty lanes add nothing. Raises HG055."""
    mode, width, pe = cell.number("MODE"), cell.number("W_W", 1), cell.number("PE", 1)
    grouped, outputs = cell.module == "hg_dwmvu", len(layer.weight)
    wanted = _wanted(layer, elements)
    places, taps, channels = wanted.shape
    windows = max(1, pe // outputs) if grouped else count(cell, "WINDOWS")
    if grouped:
        folds, (rows, wide) = cell.number("FOLDS", 1), _group(cell)
        words = _weights(memories.fields(cell.file, folds, pe * taps * wide, width), mode, width)
        if windows > 1:
            found = _apart(stream.elements, layer, windows)
        else:
            found = stream.elements.reshape(places, folds, taps, pe // rows * wide)
            found = found.transpose(0, 2, 1, 3).reshape(places, taps, -1)
        if (found[..., :channels] != wanted).any():
            raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
        for one in words.reshape(windows, -1, taps * wide):
            _same(layer, cell, one[:outputs], layer.weight.reshape(outputs, -1))
        return
    repeat, folds, simd = (cell.number(x, 1) for x in ("ROW_FOLDS", "COL_FOLDS", "SIMD"))
    if cell.module == ADDERS:
        words = adder_modules.read(memories.folder, cell)
    elif sum_tables.has_tables(cell):
        words = sum_tables.read(memories, cell, repeat * folds, pe, simd)
    else:
        words = _weights(memories.fields(cell.file, repeat * folds, pe * simd, width), mode, width)
    table = words.reshape(repeat, folds, pe, simd).transpose(0, 2, 1, 3).reshape(repeat * pe, folds * simd)
    table = table[: len(layer.weight)]
    if windows > 1:
        found = _apart(stream.elements, layer, windows).reshape(places, simd)
    else:
        found = stream.elements.reshape(places, folds * simd)
    # Columns with the same elements in every window are one: only the sum of their weights matters. Those
    # that are always outside of the image add the same to every sum.
    model: dict[bytes, Array] = {b"": np.zeros(len(layer.weight) + 1, np.int64)}
    own = dict(model)
    for part, columns, weights in (
        (model, wanted.reshape(places, -1), layer.weight.reshape(len(layer.weight), -1)),
        (own, found, table),
    ):
        for column, weight in zip(np.ascontiguousarray(columns.T), weights.T, strict=True):
            if (column == constant(layer.pad)).all():
                what = weight == layer.pad if mode == 2 else weight * layer.pad
                part[b""] = part[b""] + np.append(what, 0)
            elif part is own and ((column == ANYTHING) | (column == EMPTY)).any():
                _harmless(layer, cell, mode, column, weight)
            else:
                key = column.tobytes()
                part[key] = np.append(weight, 1) + part.get(key, 0)  # and how many columns they are
    if model.keys() != own.keys():
        raise broken(layer.name, f"{cell.name} does not get the elements that the windows of the model take.")
    keys = list(model)
    _same(layer, cell, np.stack([own[key] for key in keys], -1), np.stack([model[key] for key in keys], -1))


def _weights(words: Array, mode: int, width: int) -> Array:
    return words if mode == 2 else 2 * words - 1 if mode == 1 else two_complement(words, width)


def _same(layer: Convolution, cell: Cell, found: Array, model: Array) -> None:
    wrong = np.argwhere(found != model)
    if len(wrong):
        row, column = wrong[0].tolist()
        raise broken(
            layer.name,
            f"row (channel) {row}: for element {column} of a window the model's weight is "
            f"{model[row, column]}, that of {cell.name} {found[row, column]}.",
        )


def _harmless(layer: Convolution, cell: Cell, mode: int, column: Array, weight: Array) -> None:
    """A column that is empty in some window adds nothing to a sum in any."""
    zero = bool(((column == EMPTY) | (column == constant(0))).all())
    inert = weight == (1 if mode == 2 else 0)
    if not (zero and (mode != 2 or inert.all())) and not (mode != 2 and inert.all()):
        raise broken(layer.name, f"an empty lane of {cell.name} can change a sum.")


def pool(
    cell: Cell, stream: StreamContents, layer: Pooling, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream that hg_pool_tree sends. It sets the range of codes of its elements. Raises HG055."""
    only(cell, _TREE)
    lanes, taps, channels = cell.number("LANES", 1), cell.number("TAPS", 1), layer.source.shape[-1]
    fits(cell, stream, lanes * taps, cell.number("X_W", 1))
    readable(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    wanted = _wanted(layer, elements)
    places, windows = len(wanted), max(1, lanes // channels)
    beats = whole(cell, stream, _beats(layer, windows), "the windows have")
    if taps != layer.window.taps or beats * lanes < windows * channels or (windows > 1 < beats):
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats of {taps} taps a frame.")
    if windows > 1:
        found = _apart(stream.elements, layer, windows)
    else:
        found = stream.elements.reshape(places, -1, taps, lanes).transpose(0, 2, 1, 3).reshape(places, taps, -1)
    own = pixels(layer.name, order, channels)
    if found.shape[2] < channels or (found[..., :channels] != wanted[..., own]).any():
        raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
    results(cell, layer, elements, value)
    type_, numbers = layer.result.type, elements.numbers[value].reshape(-1, channels)[:, own]
    if windows > 1:
        return StreamContents(abreast(numbers, layer, windows), type_.bits, type_.lo, type_.hi)
    table = np.full((places, found.shape[2]), ANYTHING)
    table[:, :channels] = numbers
    return StreamContents(table.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)
