"""Proves layers with weights: hg_mvu, hg_mvu_words, hg_conv, hg_dwconv and hg_dwmvu compute the sums of the model.

The weights are read from the memory in the order in which the module uses them. The contents of the stream state which
element each weight meets. If each weight meets its element of the model, the sums are equal, because sums of integers
do not depend on order. Bounds show that they fit the accumulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.certify import adder_modules, sum_tables
from hlsgen.certify.adder_modules import ADDERS
from hlsgen.certify.models import unrolled_windows
from hlsgen.certify.models.line_buffer import GEOMETRY, check_unit_window, has_border
from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame, number_or_one
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.quantizers import check_equal
from hlsgen.certify.stream_contents import (
    ANYTHING,
    EMPTY,
    Elements,
    StreamContents,
    channel_order,
    check_codes,
    vector_order,
)
from hlsgen.ir import Convolution, Linear, Pooling
from hlsgen.numerics.fixed import Array

_MVU = "SIMD PE COL_FOLDS ROW_FOLDS X_W X_SIGNED W_W MODE ACC_W FILE EVERY"
_CONV = f"SIMD PE {GEOMETRY} GROUPS FOLDS REPEAT DEPTH X_W PAD X_SIGNED W_W MODE ACC_W FILE EVERY"
#: Kind of memory and of multipliers, and the port for writing the memory; see `connectivity`.
_FREE = "STYLE LOAD_UNIT DSP"
#: Parameters for several vectors in a beat.
_SEVERAL = "WINDOWS TAPS"
#: Parameters for groups of more than one element or sum.
_GROUPS = "ROWS COLUMNS"
_TAPS = "PE TAPS FOLDS X_W X_SIGNED W_W MODE ACC_W FILE EVERY"
#: Units of convolutions after hg_unfold.
_AT_ONCE = ("hg_mvu", "hg_mvu_words", "hg_dwmvu", ADDERS)
#: Parameters of units for vectors and for entire windows, and those that may be left out.
_PARAMETERS = {
    "hg_mvu": (_MVU, f"{_FREE} {_SEVERAL}"),
    "hg_mvu_words": (sum_tables.PARAMETERS, sum_tables.OPTIONAL),
    "hg_dwmvu": (_TAPS, f"{_FREE} {_GROUPS}"),
}
_DEPTHWISE = f"PE {GEOMETRY} GROUPS REPEAT DEPTH X_W PAD X_SIGNED W_W MODE ACC_W FILE"


@dataclass(frozen=True, eq=False)
class UnitWeights:
    """The weights in a unit's memory. weight: int64 (groups, rows, taps, columns), with empty rows and columns.

    A depthwise row has one column, which is dropped: (groups, rows, taps). `channel` (groups, columns): the channel of
    the layer's source that a column meets, -1 if it is empty. `zero` (groups, columns): True if an empty column is 0
    inside the image. `border`: True if there are taps outside the image, where all columns meet the code `pad`.
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
    """The stream of sums that hg_mvu or hg_mvu_words sends. `check` proves their values. Raises HG055."""
    if cell.module != ADDERS:
        check_parameters(cell, *_PARAMETERS[cell.module])
    rows, columns = layer.weight.shape
    simd, pe, folds, row_folds = (cell.number(x, 1) for x in ("SIMD", "PE", "COL_FOLDS", "ROW_FOLDS"))
    windows = number_or_one(cell, "WINDOWS")
    check_beat(cell, stream, windows * simd, cell.number("X_W", 1))
    groups_in_frame(cell, stream, folds, "a vector has")
    if row_folds * pe < rows or (row_folds - 1) * pe >= rows:
        raise broken(layer.name, f"{cell.name} has {row_folds} x {pe} rows, the model {rows}.")
    numbers = elements.numbers[value].reshape(-1, rows)[vector_order(layer.name, order, columns)[0]]
    wrong_windows = windows > 1 and ((folds, row_folds, pe) != (1, 1, rows) or len(numbers) % windows)
    if wrong_windows or number_or_one(cell, "TAPS") > 1:
        raise broken(layer.name, f"{cell.name} has {windows} vectors in a beat, but not entire ones.")
    return spread(cell, layer, numbers.reshape(-1, 1, windows * rows), (1, row_folds, windows * pe))


def convolution(
    cell: Cell, stream: StreamContents, layer: Convolution, elements: Elements, value: int
) -> StreamContents:
    """The stream of sums that hg_conv, hg_dwconv or a unit after hg_unfold sends. Raises HG055."""
    outputs = len(layer.weight)
    numbers = elements.numbers[value].reshape(-1, outputs)
    if cell.module in _AT_ONCE:
        if cell.module != ADDERS:
            check_parameters(cell, *_PARAMETERS[cell.module])
        shape, windows = unrolled_windows.convolution(cell, stream, layer)
        return spread(cell, layer, unrolled_windows.group_windows(numbers, layer, windows)[:, None], shape)
    is_depthwise = cell.module == "hg_dwconv"
    check_parameters(cell, *((_DEPTHWISE, f"{_FREE} EVERY") if is_depthwise else (_CONV, _FREE)))
    groups, repeat, pe = (cell.number(x, 1) for x in ("GROUPS", "REPEAT", "PE"))
    folds = 1 if is_depthwise else cell.number("FOLDS", 1)
    check_beat(cell, stream, pe if is_depthwise else cell.number("SIMD", 1), cell.number("X_W", 1))
    check_unit_window(cell, layer, stream, groups * folds)
    if is_depthwise:
        if (layer.groups, layer.weight.shape[3], repeat) != (outputs, 1, 1):
            raise broken(layer.name, f"{cell.name} computes each channel separately, the model does not.")
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
    """The stream of results (positions, groups, rows), arranged as `shape` (groups, beats, lanes) at each position.

    The lanes after the last row of a group are unknown.
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
    """Prove the weights, the mode and the empty lanes of a unit.

    Returns (lowest, highest) sum of each row, int64 (rows,).

    order: of the elements of the source. Raises HG055.
    """
    source, name = layer.source.type, layer.name
    mode, width = (0, 0) if sum_tables.has_tables(cell) else (cell.number("MODE"), cell.number("W_W", 1))
    check_codes(cell.name, stream, source, cell.number("X_W", 1), cell.number("X_SIGNED"))
    for parameter, maximum in (("STYLE", 3), ("EVERY", 64), ("DSP", 64)):
        if parameter in cell.parameters and cell.number(parameter) > maximum:
            raise broken(name, f"{parameter} of {cell.name} is {cell.parameters[parameter]}, at most {maximum}.")
    if mode > 2 or (mode == 2) != layer.binary or (mode and width != 1) or (mode == 2 and source.bits != 1):
        raise broken(name, f"MODE {mode} of {cell.name} with weights of {width} bits does not fit the model.")
    if isinstance(layer, Convolution) and cell.module in _AT_ONCE:
        unrolled_windows.compare(cell, stream, layer, elements, memories)
    else:
        _compare(layer, _read(cell, stream, layer, order, elements, memories, mode, width))
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
    for end, sums, model_sums in (("least", lo, layer.lo), ("greatest", hi, layer.hi)):
        if (sums != model_sums).any():
            raise broken(name, f"the model's {end} sums do not fit its weights.")
    bits, signed = cell.number("ACC_W", 1), layer.result.type.signed
    if lo.min() < (-(1 << (bits - 1)) if signed else 0) or hi.max() >= 1 << (bits - signed):
        raise broken(name, f"sums of {lo.min()}..{hi.max()} do not fit {bits} bits.")
    return lo, hi


def _read(
    cell: Cell,
    stream: StreamContents,
    layer: Linear | Convolution,
    order: Array,
    elements: Elements,
    memories: Memories,
    mode: int,
    width: int,
) -> UnitWeights:
    """Read the memory and undo the folding."""
    is_depthwise = cell.module == "hg_dwconv"
    taps = math.prod(layer.window.kernel) if isinstance(layer, Convolution) else 1
    channels, pe = layer.source.shape[-1], cell.number("PE", 1)
    if isinstance(layer, Linear):
        groups, repeat, folds = 1, cell.number("ROW_FOLDS", 1), cell.number("COL_FOLDS", 1)
    else:
        groups, repeat = cell.number("GROUPS", 1), cell.number("REPEAT", 1)
        folds = 1 if is_depthwise else cell.number("FOLDS", 1)
    simd = 1 if is_depthwise else cell.number("SIMD", 1)
    if cell.module == ADDERS:
        codes = _lane_codes(layer, stream, elements) if isinstance(layer, Linear) and mode == 0 else None
        words = adder_modules.read(memories.folder, cell, codes)
    elif sum_tables.has_tables(cell):
        words = sum_tables.read(memories, cell, repeat * folds, pe, simd)
    else:
        words = memories.fields(cell.file, groups * repeat * taps * folds, pe * simd, width)
        words = words if mode == 2 else 2 * words - 1 if mode == 1 else two_complement(words, width)
    table = words.reshape(groups, repeat, taps, folds, pe, simd).transpose(0, 1, 4, 2, 3, 5)
    table = table.reshape(groups, repeat * pe, taps, folds * simd)
    if is_depthwise:
        table = table[..., 0]
    # The lanes of the channels in a pixel (a vector); they must be the same in all pixels.
    filled = stream.filled.reshape(-1, groups, stream.lanes // number_or_one(cell, "WINDOWS") * folds)
    if (filled != filled[0]).any() or filled[0].sum() != channels:
        raise broken(layer.name, f"the {channels} channels do not always arrive in the same lanes of {cell.name}.")
    channel_columns = (
        vector_order(layer.name, order, channels)[1]
        if isinstance(layer, Linear)
        else channel_order(layer.name, order, channels)
    )
    channel = np.full(filled[0].shape, -1)
    channel[filled[0]] = channel_columns
    if cell.module == ADDERS and codes is not None:
        # A column that is always 0 adds nothing, whatever its weights. The model's sums fit the bits of a sum, so
        # weights that are equal modulo 2 to this number of bits give equal sums.
        used, of_unit = channel[0] >= 0, table[0, :, 0]
        of_model = layer.weight[:, channel[0]]
        is_always_0 = (codes[0] == 0) & (codes[1] == 0)
        equal = used & (is_always_0 | ((of_unit - of_model) % (1 << cell.number("ACC_W", 1)) == 0))
        table[0, :, 0] = np.where(equal, of_model, of_unit)
    if is_depthwise and (np.diff(channel_columns) != 1).any():
        raise broken(layer.name, f"the channels of {cell.name} are not in order, but its results are.")
    zero = (stream.elements.reshape(filled.shape) == EMPTY).all(axis=0)
    border = isinstance(layer, Convolution) and has_border(layer)
    return UnitWeights(cell, table, mode, channel, zero, border, layer.pad if isinstance(layer, Convolution) else 0)


def _lane_codes(layer: Linear, stream: StreamContents, elements: Elements) -> tuple[Array, Array] | None:
    """The lowest and the highest code that each lane brings, int64 (lanes,), or None if a beat is no entire vector."""
    if stream.lanes != layer.weight.shape[1]:
        return None
    low, high = elements.code_range(stream.elements)
    unknown, empty, type_ = stream.elements == ANYTHING, stream.elements == EMPTY, layer.source.type
    low, high = (
        np.where(empty, 0, np.where(unknown, end, codes)) for end, codes in ((type_.lo, low), (type_.hi, high))
    )
    return low.min(axis=0), high.max(axis=0)


def _compare(layer: Linear | Convolution, sums: UnitWeights) -> None:
    """Check that the weights are the model's, and that empty lanes add nothing. Raises HG055."""
    model = layer.weight if isinstance(layer, Convolution) else layer.weight[:, None, None, :]
    outputs, kernel_height, kernel_width, columns = model.shape
    model = model.reshape(outputs, kernel_height * kernel_width, columns)
    unit_weights = np.zeros_like(model)
    if sums.weight.ndim == 3:
        lanes = sums.channel >= 0
        unit_weights[sums.channel[lanes]] = sums.weight[lanes][:, :, None]
    else:
        groups = len(sums.weight)
        rows = outputs // groups
        for g in range(groups):
            lanes = sums.channel[g] >= 0
            columns_of_channels = sums.channel[g][lanes] - g * columns
            if sorted(columns_of_channels) != list(range(columns)):
                raise broken(layer.name, f"group {g} of {sums.cell.name} meets channels of other groups.")
            part = sums.weight[g, :rows]
            unit_weights[g * rows : (g + 1) * rows][:, :, columns_of_channels] = part[:, :, lanes]
            _check_empty_columns(layer, sums, part[:, :, ~lanes], sums.zero[g][~lanes])
    unequal = np.argwhere(unit_weights != model)
    if len(unequal):
        r, t, c = unequal[0].tolist()
        place = (
            f"column {c}"
            if isinstance(layer, Linear)
            else f"kernel row {t // kernel_width}, column {t % kernel_width}, channel {c}"
        )
        raise broken(
            layer.name,
            f"row (channel) {r}, {place}: the model's weight is {model[r, t, c]}, the weight of {sums.cell.name} is "
            f"{unit_weights[r, t, c]}; the sums differ for x = 1 there and 0 everywhere else.",
        )


def _check_empty_columns(layer: Linear | Convolution, sums: UnitWeights, weight: Array, zero: Array) -> None:
    """Check that empty columns (rows, taps, columns) add nothing to a sum, inside and outside the image."""
    if sums.mode == 2:
        # A lane counts if its bit equals the weight. The bit is 0 inside the image, and the padding outside.
        ok = (weight == 1) & zero & (not sums.border or sums.pad == 0)
    else:
        ok = (weight == 0) | (zero & (not sums.border or sums.pad == 0))
    if not ok.all():
        raise broken(layer.name, f"an empty lane of {sums.cell.name} can change a sum.")


def check_listed_window(layer: Convolution | Pooling, entry: dict[str, Any]) -> None:
    """Check that the window in the certificate is the layer's."""
    window = layer.window
    expected = {
        "kernel": list(window.kernel),
        "strides": list(window.strides),
        "dilations": list(window.dilations),
        "pads": list(window.pads),
        "pad": [layer.pad],
    }
    for key, value in expected.items():
        listed_values = entry[key] if isinstance(entry[key], list) else [entry[key]]
        check_equal(layer.name, f"certificate.json, {key}", listed_values, value)
