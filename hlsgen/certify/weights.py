"""Proves layers with weights: hg_mvu, hg_conv, hg_dwconv and hg_dwmvu compute the sums of the model.

The weights are read from the memory in the order in which the module uses them. What the stream carries says which
element each of them meets. If each weight meets the element that it meets in the model, the sums are equal, since
sums of integers do not depend on order. That they fit the accumulator follows from bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.certify import adder_modules, sum_tables
from hlsgen.certify.adder_modules import ADDERS
from hlsgen.certify.models import unrolled_windows
from hlsgen.certify.models.line_buffer import GEOMETRY, has_border, window
from hlsgen.certify.models.routing import count, fits, only, whole
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.quantizers import same
from hlsgen.certify.stream_contents import ANYTHING, EMPTY, Elements, StreamContents, pixels, readable, vectors
from hlsgen.ir import Convolution, Linear, Pooling
from hlsgen.numerics.fixed import Array

_MVU = "SIMD PE COL_FOLDS ROW_FOLDS X_W X_SIGNED W_W MODE ACC_W FILE EVERY"
_CONV = f"SIMD PE {GEOMETRY} GROUPS FOLDS REPEAT DEPTH X_W PAD X_SIGNED W_W MODE ACC_W FILE EVERY"
#: The kind of memory and of multipliers, and the port through which it may be written; see `connectivity`.
_FREE = "STYLE LOADABLE UNIT DSP"
#: Vectors at once.
_SEVERAL = "WINDOWS TAPS"
_OF_MVU = f"{_FREE} {_SEVERAL} {sum_tables.PARAMETERS}"
#: Groups of more than one element or sum.
_GROUPS = "ROWS COLUMNS"
_TAPS = "PE TAPS FOLDS X_W X_SIGNED W_W MODE ACC_W FILE EVERY"
#: Units of convolutions behind hg_unfold.
_AT_ONCE = ("hg_mvu", "hg_dwmvu", ADDERS)
_DEPTHWISE = f"PE {GEOMETRY} GROUPS REPEAT DEPTH X_W PAD X_SIGNED W_W MODE ACC_W FILE"


@dataclass(frozen=True, eq=False)
class UnitWeights:
    """The weights in a unit's memory. weight: int64 (groups, rows, taps, columns), with empty rows and columns.

    A depthwise row has a column of its own: (groups, rows, taps).
    `channel` (groups, columns): the channel of the layer's source that a column meets, -1 if it is empty.
    `zero` (groups, columns): whether an empty column is 0 inside of the image.
    `border`: whether there are taps outside of the image, where all columns meet the code `pad`.
    """

    cell: Cell
    weight: Array
    mode: int
    channel: Array
    zero: Array
    border: bool
    pad: int


def matrix(
    cell: Cell, stream: StreamContents, layer: Linear, order: Array, elements: Elements, value: int
) -> StreamContents:
    """The stream of sums that hg_mvu sends. `check` proves their values. Raises HG055."""
    if cell.module != ADDERS:
        only(cell, _MVU, _OF_MVU)
    rows, columns = layer.weight.shape
    simd, pe, folds, row_folds = (cell.number(x, 1) for x in ("SIMD", "PE", "COL_FOLDS", "ROW_FOLDS"))
    windows = count(cell, "WINDOWS")
    fits(cell, stream, windows * simd, cell.number("X_W", 1))
    whole(cell, stream, folds, "a vector has")
    if row_folds * pe < rows or (row_folds - 1) * pe >= rows:
        raise broken(layer.name, f"{cell.name} has {row_folds} x {pe} rows, the model {rows}.")
    numbers = elements.numbers[value].reshape(-1, rows)[vectors(layer.name, order, columns)[0]]
    several = windows > 1 and ((folds, row_folds, pe) != (1, 1, rows) or len(numbers) % windows)
    if several or count(cell, "TAPS") > 1:
        raise broken(layer.name, f"{cell.name} has {windows} vectors in a beat, but not whole ones.")
    return spread(cell, layer, numbers.reshape(-1, 1, windows * rows), (1, row_folds, windows * pe))


def convolution(
    cell: Cell, stream: StreamContents, layer: Convolution, elements: Elements, value: int
) -> StreamContents:
    """The stream of sums that hg_conv, hg_dwconv or a unit behind hg_unfold sends. Raises HG055."""
    outputs = len(layer.weight)
    numbers = elements.numbers[value].reshape(-1, outputs)
    if cell.module in _AT_ONCE:
        if cell.module != ADDERS:
            only(cell, *((_MVU, _OF_MVU) if cell.module == "hg_mvu" else (_TAPS, f"{_FREE} {_GROUPS}")))
        shape, windows = unrolled_windows.convolution(cell, stream, layer)
        return spread(cell, layer, unrolled_windows.abreast(numbers, layer, windows)[:, None], shape)
    deep = cell.module == "hg_dwconv"
    only(cell, *((_DEPTHWISE, f"{_FREE} EVERY") if deep else (_CONV, _FREE)))
    groups, repeat, pe = (cell.number(x, 1) for x in ("GROUPS", "REPEAT", "PE"))
    folds = 1 if deep else cell.number("FOLDS", 1)
    fits(cell, stream, pe if deep else cell.number("SIMD", 1), cell.number("X_W", 1))
    window(cell, layer, stream, groups * folds)
    if deep:
        if (layer.groups, layer.weight.shape[3], repeat) != (outputs, 1, 1):
            raise broken(layer.name, f"{cell.name} computes each channel by itself, the model does not.")
        if groups * pe < outputs or (groups - 1) * pe >= outputs:
            raise broken(layer.name, f"{cell.name} has {groups} x {pe} channels, the model {outputs}.")
        return spread(cell, layer, numbers[:, None], (1, groups, pe))
    rows = outputs // layer.groups
    if groups != layer.groups or repeat * pe < rows or (repeat - 1) * pe >= rows:
        raise broken(
            layer.name, f"{cell.name} has {groups} groups of {repeat} x {pe} rows, the model {layer.groups} of {rows}."
        )
    return spread(cell, layer, numbers.reshape(-1, groups, rows), (groups, repeat, pe))


def spread(cell: Cell, layer: Linear | Convolution, numbers: Array, shape: tuple[int, int, int]) -> StreamContents:
    """The stream of results (places, groups, rows), laid out as `shape` (groups, beats, lanes) for each place.

    The lanes behind the last row of a group are unknown.
    """
    type_, (groups, beats, lanes) = layer.result.type, shape
    if cell.number("ACC_W", 1) != type_.bits:
        raise broken(layer.name, f"ACC_W of {cell.name} is {cell.parameters['ACC_W']}, its sums are {type_}.")
    table = np.full((len(numbers), groups, beats * lanes), ANYTHING)
    table[:, :, : numbers.shape[2]] = numbers
    return StreamContents(table.reshape(-1, lanes), type_.bits, type_.lo, type_.hi)


def check(
    cell: Cell,
    stream: StreamContents,
    layer: Linear | Convolution,
    order: Array,
    elements: Elements,
    memories: Memories,
) -> tuple[Array, Array]:
    """Proves weights, mode and empty lanes of a unit. (least, greatest) sum of each row, int64 (rows,).

    order: of the elements of the source. Raises HG055.
    """
    source, name = layer.source.type, layer.name
    mode, width = cell.number("MODE"), cell.number("W_W", 1)
    readable(cell.name, stream, source, cell.number("X_W", 1), cell.number("X_SIGNED"))
    for parameter, most in (("STYLE", 3), ("EVERY", 64), ("DSP", 64)):
        if parameter in cell.parameters and cell.number(parameter) > most:
            raise broken(name, f"{parameter} of {cell.name} is {cell.parameters[parameter]}, at most {most}.")
    if mode > 2 or (mode == 2) != layer.binary or (mode and width != 1) or (mode == 2 and source.bits != 1):
        raise broken(name, f"MODE {mode} of {cell.name} with weights of {width} bits is not what the model computes.")
    if isinstance(layer, Convolution) and cell.module in _AT_ONCE:
        unrolled_windows.compare(cell, stream, layer, elements, memories)
    else:
        _compare(layer, _read(cell, stream, layer, order, memories, mode, width))
    if layer.binary:  # counts of agreements
        taps = math.prod(layer.weight.shape[1:])
        lo, hi = np.zeros(len(layer.weight), np.int64), np.full(len(layer.weight), taps)
    else:
        table = layer.weight.reshape(len(layer.weight), -1)
        low, high = source.lo, source.hi
        if isinstance(layer, Convolution) and has_border(layer):
            low, high = min(low, layer.pad), max(high, layer.pad)
        lo = np.where(table > 0, table * low, table * high).sum(axis=1)
        hi = np.where(table > 0, table * high, table * low).sum(axis=1)
    for what, found, own in (("least", lo, layer.lo), ("greatest", hi, layer.hi)):
        if (found != own).any():
            raise broken(name, f"the model's {what} sums are not what its weights give.")
    bits, signed = cell.number("ACC_W", 1), layer.result.type.signed
    if lo.min() < (-(1 << (bits - 1)) if signed else 0) or hi.max() >= 1 << (bits - signed):
        raise broken(name, f"sums of {lo.min()}..{hi.max()} do not fit {bits} bits.")
    return lo, hi


def _read(
    cell: Cell,
    stream: StreamContents,
    layer: Linear | Convolution,
    order: Array,
    memories: Memories,
    mode: int,
    width: int,
) -> UnitWeights:
    """Reads the memory and undoes the folding."""
    deep = cell.module == "hg_dwconv"
    taps = math.prod(layer.window.kernel) if isinstance(layer, Convolution) else 1
    channels, pe = layer.source.shape[-1], cell.number("PE", 1)
    if isinstance(layer, Linear):
        groups, repeat, folds = 1, cell.number("ROW_FOLDS", 1), cell.number("COL_FOLDS", 1)
    else:
        groups, repeat = cell.number("GROUPS", 1), cell.number("REPEAT", 1)
        folds = 1 if deep else cell.number("FOLDS", 1)
    simd = 1 if deep else cell.number("SIMD", 1)
    if cell.module == ADDERS:
        words = adder_modules.read(memories.folder, cell)
    elif sum_tables.has_tables(cell):
        words = sum_tables.read(memories, cell, repeat * folds, pe, simd)
    else:
        words = memories.fields(cell.file, groups * repeat * taps * folds, pe * simd, width)
        words = words if mode == 2 else 2 * words - 1 if mode == 1 else two_complement(words, width)
    table = words.reshape(groups, repeat, taps, folds, pe, simd).transpose(0, 1, 4, 2, 3, 5)
    table = table.reshape(groups, repeat * pe, taps, folds * simd)
    if deep:
        table = table[..., 0]
    # Where the channels are in a pixel (a vector): in the same lanes of all of them.
    filled = stream.filled.reshape(-1, groups, stream.lanes // count(cell, "WINDOWS") * folds)
    if (filled != filled[0]).any() or filled[0].sum() != channels:
        raise broken(layer.name, f"the {channels} channels do not come in the same lanes of {cell.name} every time.")
    own = vectors(layer.name, order, channels)[1] if isinstance(layer, Linear) else pixels(layer.name, order, channels)
    channel = np.full(filled[0].shape, -1)
    channel[filled[0]] = own
    if deep and (np.diff(own) != 1).any():
        raise broken(layer.name, f"the channels of {cell.name} are not in order, as its results are.")
    zero = (stream.elements.reshape(filled.shape) == EMPTY).all(axis=0)
    border = isinstance(layer, Convolution) and has_border(layer)
    return UnitWeights(cell, table, mode, channel, zero, border, layer.pad if isinstance(layer, Convolution) else 0)


def _compare(layer: Linear | Convolution, sums: UnitWeights) -> None:
    """The weights are those of the model, and empty lanes add nothing. Raises HG055 otherwise."""
    model = layer.weight if isinstance(layer, Convolution) else layer.weight[:, None, None, :]
    outputs, high, wide, columns = model.shape
    model = model.reshape(outputs, high * wide, columns)
    found = np.zeros_like(model)
    if sums.weight.ndim == 3:
        lanes = sums.channel >= 0
        found[sums.channel[lanes]] = sums.weight[lanes][:, :, None]
    else:
        groups = len(sums.weight)
        rows = outputs // groups
        for g in range(groups):
            lanes = sums.channel[g] >= 0
            own = sums.channel[g][lanes] - g * columns
            if sorted(own) != list(range(columns)):
                raise broken(layer.name, f"group {g} of {sums.cell.name} meets channels of other groups.")
            part = sums.weight[g, :rows]
            found[g * rows : (g + 1) * rows][:, :, own] = part[:, :, lanes]
            _harmless(layer, sums, part[:, :, ~lanes], sums.zero[g][~lanes])
    wrong = np.argwhere(found != model)
    if len(wrong):
        r, t, c = wrong[0].tolist()
        place = (
            f"column {c}" if isinstance(layer, Linear) else f"kernel row {t // wide}, column {t % wide}, channel {c}"
        )
        raise broken(
            layer.name,
            f"row (channel) {r}, {place}: the model's weight is {model[r, t, c]}, that of {sums.cell.name} "
            f"{found[r, t, c]}; at x = 1 there and 0 everywhere else the sums differ so.",
        )


def _harmless(layer: Linear | Convolution, sums: UnitWeights, weight: Array, zero: Array) -> None:
    """Empty columns (rows, taps, columns) add nothing to a sum, neither inside nor outside of the image."""
    if sums.mode == 2:
        # A lane counts if its bit is that of the weight: 0 inside of the image, and the padding outside.
        ok = (weight == 1) & zero & (not sums.border or sums.pad == 0)
    else:
        ok = (weight == 0) | (zero & (not sums.border or sums.pad == 0))
    if not ok.all():
        raise broken(layer.name, f"an empty lane of {sums.cell.name} can change a sum.")


def check_window(layer: Convolution | Pooling, entry: dict[str, Any]) -> None:
    """The window in the certificate is that of the layer."""
    place = layer.window
    wanted = {
        "kernel": list(place.kernel),
        "strides": list(place.strides),
        "dilations": list(place.dilations),
        "pads": list(place.pads),
        "pad": [layer.pad],
    }
    for key, value in wanted.items():
        said = entry[key] if isinstance(entry[key], list) else [entry[key]]
        same(layer.name, f"certificate.json, {key}", said, value)
