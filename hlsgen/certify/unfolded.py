"""Units behind hg_unfold, which get all taps of a window at once: hg_mvu, hg_dwmvu, hg_pool_tree.

hg_unfold only moves elements. What the lanes of its stream carry is held against what the layer's windows
take, and weights are compared column by column with that.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hlsgen.certify.content import ANYTHING, EMPTY, Elements, Stream, constant, pixels, readable
from hlsgen.certify.plumbing import fits, only, whole
from hlsgen.certify.verilog import Cell, Memories, broken, two_complement
from hlsgen.certify.windows import depth, results, sizes
from hlsgen.fixed import Array
from hlsgen.ir import Convolution, Pooling

_UNFOLD = "UNIT LANES HEIGHT WIDTH KH KW SH SW PT PL OUT_H OUT_W FOLDS ROWS COLUMNS PAD"
_TREE = "LANES TAPS X_W X_SIGNED SUM ACC_W"


def unfold(cell: Cell, stream: Stream) -> Stream:
    """The stream behind hg_unfold: windows, folds, and in a beat taps and lanes. Raises HG055."""
    only(cell, _UNFOLD)
    lanes, folds, rows, columns = (cell.number(name, 1) for name in ("LANES", "FOLDS", "ROWS", "COLUMNS"))
    fits(cell, stream, lanes, cell.number("UNIT", 1))
    axes = [
        (cell.number(size, 1), cell.number(k, 1), cell.number(s, 1), 1, cell.number(p), cell.number(out, 1))
        for size, k, s, p, out in (("HEIGHT", "KH", "SH", "PT", "OUT_H"), ("WIDTH", "KW", "SW", "PL", "OUT_W"))
    ]
    (height, tall, *_), (width, wide, *_) = axes
    if tall > 1:
        fine = rows >= tall and columns == width
    else:
        fine = rows == 1 and columns % wide == 0 and columns >= depth(axes[0], axes[1])
    if not fine:
        raise broken(
            cell.name, f"{rows} ROWS of {columns} COLUMNS: no window would be right, or it would wait for ever."
        )
    pad = cell.sized("PAD", stream.bits)
    code = pad.signed if stream.lo < 0 else pad.value
    if whole(cell, stream, height * width * folds, "an image has") != 1:
        raise broken(cell.name, "a frame has several images.")
    image = stream.elements.reshape(height, width, folds, lanes)
    table = _taken(image, axes, code)  # rows, columns, kernel rows, kernel columns, folds, lanes
    places = len(table) * table.shape[1]
    beats = table.reshape(places, tall * wide, folds, lanes).transpose(0, 2, 1, 3).reshape(places * folds, -1)
    return replace(stream, elements=beats)


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


def convolution(cell: Cell, stream: Stream, layer: Convolution) -> tuple[int, int, int]:
    """(groups, beats, lanes) of the results of a window. Raises HG055."""
    outputs, pe = len(layer.weight), cell.number("PE", 1)
    if cell.module == "hg_dwmvu":
        repeat, lanes = cell.number("FOLDS", 1), pe * cell.number("TAPS", 1)
        if (layer.groups, layer.weight.shape[3]) != (outputs, 1):
            raise broken(layer.name, f"{cell.name} computes each channel by itself, the model does not.")
        folds = repeat
    else:
        repeat, lanes, folds = (cell.number(x, 1) for x in ("ROW_FOLDS", "SIMD", "COL_FOLDS"))
        if layer.groups != 1:
            raise broken(layer.name, f"{cell.name} sums over all channels, the model over {layer.groups} groups.")
    fits(cell, stream, lanes, cell.number("X_W", 1))
    if whole(cell, stream, folds, "a window has") != layer.result.size // outputs:
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats a frame, not {folds} for each window.")
    if repeat * pe < outputs or (repeat - 1) * pe >= outputs:
        raise broken(layer.name, f"{cell.name} has {repeat} x {pe} rows, the model {outputs}.")
    return 1, repeat, pe


def compare(cell: Cell, stream: Stream, layer: Convolution, elements: Elements, memories: Memories) -> None:
    """The weights of the model meet the elements of the model, and nothing comes from empty lanes. Raises HG055."""
    mode, width, pe = cell.number("MODE"), cell.number("W_W", 1), cell.number("PE", 1)
    depthwise = cell.module == "hg_dwmvu"
    wanted = _wanted(layer, elements)
    places, taps, channels = wanted.shape
    if depthwise:
        folds = cell.number("FOLDS", 1)
        words = _weights(memories.fields(cell.file, folds, pe * taps, width), mode, width)
        found = stream.elements.reshape(places, folds, taps, pe).transpose(0, 2, 1, 3).reshape(places, taps, -1)
        if (found[..., :channels] != wanted).any():
            raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
        _same(layer, cell, words.reshape(-1, taps)[:channels], layer.weight.reshape(channels, taps))
        return
    repeat, folds, simd = (cell.number(x, 1) for x in ("ROW_FOLDS", "COL_FOLDS", "SIMD"))
    words = _weights(memories.fields(cell.file, repeat * folds, pe * simd, width), mode, width)
    table = words.reshape(repeat, folds, pe, simd).transpose(0, 2, 1, 3).reshape(repeat * pe, folds * simd)
    table = table[: len(layer.weight)]
    found = stream.elements.reshape(places, folds * simd)
    # Columns with the same elements in every window are one: only the sum of their weights matters. Those
    # that are always outside of the image add the same to every sum.
    model: dict[bytes, Array] = {b"": np.zeros(len(layer.weight) + 1, np.int64)}
    own = dict(model)
    for part, columns, weights in (
        (model, wanted.reshape(places, -1), layer.weight.reshape(len(layer.weight), -1)), (own, found, table),
    ):  # fmt: skip
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
            layer.name, f"row (channel) {row}: for element {column} of a window the model's weight is "
            f"{model[row, column]}, that of {cell.name} {found[row, column]}.",
        )  # fmt: skip


def _harmless(layer: Convolution, cell: Cell, mode: int, column: Array, weight: Array) -> None:
    """A column that is empty in some window adds nothing to a sum in any."""
    zero = bool(((column == EMPTY) | (column == constant(0))).all())
    inert = weight == (1 if mode == 2 else 0)
    if not (zero and (mode != 2 or inert.all())) and not (mode != 2 and inert.all()):
        raise broken(layer.name, f"an empty lane of {cell.name} can change a sum.")


def pool(cell: Cell, stream: Stream, layer: Pooling, order: Array, elements: Elements, value: int) -> Stream:
    """The stream behind hg_pool_tree; sets what its elements can be. Raises HG055."""
    only(cell, _TREE)
    lanes, taps, channels = cell.number("LANES", 1), cell.number("TAPS", 1), layer.source.shape[-1]
    fits(cell, stream, lanes * taps, cell.number("X_W", 1))
    readable(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    wanted = _wanted(layer, elements)
    places = len(wanted)
    if taps != layer.window.taps or whole(cell, stream, places, "the windows have") * lanes < channels:
        raise broken(layer.name, f"{cell.name} gets {stream.beats} beats of {taps} taps a frame.")
    found = stream.elements.reshape(places, -1, taps, lanes).transpose(0, 2, 1, 3).reshape(places, taps, -1)
    own = pixels(layer.name, order, channels)
    if math.prod(found.shape[2:]) < channels or (found[..., :channels] != wanted[..., own]).any():
        raise broken(layer.name, f"{cell.name} does not get the windows of the model, channel by channel.")
    results(cell, layer, elements, value)
    table = np.full((places, found.shape[2]), ANYTHING)
    table[:, :channels] = elements.numbers[value].reshape(-1, channels)[:, own]
    type_ = layer.result.type
    return Stream(table.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)
