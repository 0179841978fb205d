"""Models of the modules that only move elements: they state which element each lane of the output carries.

These are hg_width, hg_fork, hg_fifo, hg_slice, hg_gather, hg_take, hg_pad, hg_concat, hg_beside and hg_pick. Each model
follows the contract at the head of its Verilog file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hlsgen.certify.netlist_reader import Cell, broken, split
from hlsgen.certify.stream_contents import ANYTHING, EMPTY, StreamContents, check_size, constant_element
from hlsgen.numerics.fixed import Array, IntType

#: Maximum number of loops of hg_gather.
_MAX_LOOPS = 6


def move(cell: Cell, streams: list[StreamContents], signed: bool) -> StreamContents:
    """The stream that a module sends; a fork sends it on all outputs. Raises HG055.

    signed: True if the code of a border is a signed number.
    """
    for stream in streams:
        # Registers and FIFOs pass every beat on unchanged.
        if (stream.units or stream.operands) and cell.module not in ("hg_slice", "hg_fifo"):
            raise broken(cell.name, f"{cell.module} is in the middle of a function.")
    if cell.module in _JOINERS:
        return _JOINERS[cell.module](cell, *streams)
    if cell.module == "hg_pad":
        return _pad(cell, streams[0], signed)
    return MOVERS[cell.module](cell, streams[0])


def check_parameters(cell: Cell, names: str, optional: str = "") -> None:
    """Check that the parameters are exactly the ones that the model knows. Raises HG055."""
    unexpected = (set(cell.parameters) ^ set(names.split())) - set(optional.split())
    if unexpected:
        raise broken(cell.name, f"{cell.module} has other parameters than its model: {', '.join(sorted(unexpected))}.")


def number_or_one(cell: Cell, name: str) -> int:
    """A parameter that is 1 if it is left out. Raises HG055."""
    return cell.number(name, 1) if name in cell.parameters else 1


def check_beat(cell: Cell, stream: StreamContents, lanes: int, bits: int) -> None:
    """Check that the unit reads as many lanes of as many bits as the stream has. Raises HG055."""
    if (lanes, bits) != (stream.lanes, stream.bits):
        raise broken(
            cell.name, f"it reads {lanes} x {bits} bits a beat, its stream has {stream.lanes} x {stream.bits}."
        )


def groups_in_frame(cell: Cell, stream: StreamContents, beats: int, owner: str) -> int:
    """The beats of a frame divided by `beats`. Raises HG055 if there is a remainder."""
    if stream.beats % beats:
        raise broken(cell.name, f"{owner} {beats} beats; a frame has {stream.beats}, no multiple of that.")
    return stream.beats // beats


def _check_width(cell: Cell, stream: StreamContents) -> None:
    if cell.number("WIDTH", 1) != stream.width:
        raise broken(cell.name, f"WIDTH is {cell.parameters['WIDTH']}, a beat has {stream.width} bits.")


def _width(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "UNIT IN OUT", "IN_GROUP OUT_GROUP")
    lanes_in, lanes_out = cell.number("IN", 1), cell.number("OUT", 1)
    groups = (
        cell.number(name, 1) if name in cell.parameters else default
        for name, default in (("IN_GROUP", lanes_in), ("OUT_GROUP", lanes_out))
    )
    in_group, out_group = groups
    check_beat(cell, stream, lanes_in, cell.number("UNIT", 1))
    count = groups_in_frame(cell, stream, -(-in_group // lanes_in), "an input group has")
    elements = stream.elements.reshape(count, -1)[:, :in_group].ravel()
    if len(elements) % out_group:
        raise broken(
            cell.name, f"its output groups have {out_group} elements; a frame has {len(elements)}, no multiple of that."
        )
    check_size(cell, len(elements) // out_group * -(-out_group // lanes_out) * lanes_out)
    rows = np.full((len(elements) // out_group, -(-out_group // lanes_out) * lanes_out), EMPTY)
    rows[:, :out_group] = elements.reshape(-1, out_group)
    return replace(stream, elements=rows.reshape(-1, lanes_out))


def _fork(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "WIDTH COUNT")
    _check_width(cell, stream)
    return stream


def _fifo(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "WIDTH DEPTH")
    _check_width(cell, stream)
    cell.number("DEPTH", 1)
    return stream


def _slice(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "WIDTH", "FULL")
    _check_width(cell, stream)
    if "FULL" in cell.parameters and cell.number("FULL") > 1:
        raise broken(cell.name, f"FULL is {cell.number('FULL')}.")
    return stream


def _gather(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "WIDTH BLOCK DIMS EXTENTS STRIDES")
    _check_width(cell, stream)
    block, dims = cell.number("BLOCK", 1), cell.number("DIMS", 1)
    if dims > _MAX_LOOPS:
        raise broken(cell.name, f"DIMS is {dims}, at most {_MAX_LOOPS}.")
    extents, strides = (
        split([cell.sized(name, 32 * dims).value], dims, 32)[0].tolist() for name in ("EXTENTS", "STRIDES")
    )
    blocks = groups_in_frame(cell, stream, block, "a block has")
    last_address = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
    if min(extents) < 1 or last_address >= block:
        raise broken(cell.name, f"its loops {list(zip(extents, strides, strict=True))} exceed {block} beats.")
    check_size(cell, math.prod(extents) * blocks * stream.lanes)
    address = np.zeros(1, np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        address = (address[:, None] + stride * np.arange(extent)).ravel()
    return replace(stream, elements=stream.elements.reshape(blocks, block, -1)[:, address].reshape(-1, stream.lanes))


def _pick(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "UNIT IN OUT MAP")
    count_in, count_out = cell.number("IN", 1), cell.number("OUT", 1)
    check_beat(cell, stream, count_in, cell.number("UNIT", 1))
    check_size(cell, stream.beats * count_out)
    places = split([cell.sized("MAP", 32 * count_out).value], count_out, 32)[0]
    if max(places.tolist()) >= count_in:
        raise broken(cell.name, f"it picks element {max(places.tolist())} of {count_in}.")
    return replace(stream, elements=stream.elements[:, places.astype(np.int64)])


def _take(cell: Cell, stream: StreamContents) -> StreamContents:
    check_parameters(cell, "WIDTH HEIGHT COLUMNS FOLDS Y0 Y1 YS X0 X1 XS C0 C1 CS")
    _check_width(cell, stream)
    sizes = [cell.number(name, 1) for name in ("HEIGHT", "COLUMNS", "FOLDS")]
    cuts = []
    for axis, size in zip("YXC", sizes, strict=True):
        start, stop, step = cell.number(f"{axis}0"), cell.number(f"{axis}1"), cell.number(f"{axis}S", 1)
        if not start < stop <= size:
            raise broken(
                cell.name,
                f"{axis}0 = {start}, {axis}1 = {stop} of {size} select nothing, or elements that do not exist.",
            )
        cuts.append(slice(start, stop, step))
    images = groups_in_frame(cell, stream, math.prod(sizes), "an image has")
    selection = stream.elements.reshape(images, *sizes, -1)[:, cuts[0], cuts[1], cuts[2]]
    return replace(stream, elements=selection.reshape(-1, stream.lanes))


def _pad(cell: Cell, stream: StreamContents, signed: bool) -> StreamContents:
    check_parameters(cell, "UNIT LANES HEIGHT COLUMNS FOLDS TOP LEFT BOTTOM RIGHT VALUE")
    check_beat(cell, stream, cell.number("LANES", 1), cell.number("UNIT", 1))
    sizes = [cell.number(name, 1) for name in ("HEIGHT", "COLUMNS", "FOLDS")]
    top, left_pad, bottom, right_pad = (cell.number(name) for name in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
    value = cell.sized("VALUE", stream.bits)
    code = value.signed if signed else value.value
    images = groups_in_frame(cell, stream, math.prod(sizes), "an image has")
    image = stream.elements.reshape(images, *sizes, stream.lanes)
    check_size(cell, images * (top + sizes[0] + bottom) * (left_pad + sizes[1] + right_pad) * sizes[2] * stream.lanes)
    border = [(0, 0), (top, bottom), (left_pad, right_pad), (0, 0), (0, 0)]
    padded: Array = np.pad(image, border, constant_values=constant_element(code))
    # Lanes that are empty in every pixel of the image are also empty in the border.
    idle = ((image == ANYTHING) | (image == EMPTY)).all(axis=(0, 1, 2))
    padded[..., idle] = ANYTHING
    return replace(stream, elements=padded.reshape(-1, stream.lanes), lo=min(stream.lo, code), hi=max(stream.hi, code))


def _concat(cell: Cell, a: StreamContents, b: StreamContents) -> StreamContents:
    check_parameters(cell, "UNIT_A A_SIGNED UNIT_B B_SIGNED UNIT_OUT LANES BEATS_A BEATS_B")
    lanes, parts = cell.number("LANES", 1), []
    for stream, side in ((a, "A"), (b, "B")):
        _check_extension(cell, stream, side, lanes)
        beats = cell.number(f"BEATS_{side}", 1)
        parts.append(
            stream.elements.reshape(groups_in_frame(cell, stream, beats, f"a turn of side {side} has"), -1, lanes)
        )
    if len(parts[0]) != len(parts[1]):
        raise broken(cell.name, f"BEATS_A and BEATS_B give {len(parts[0])} turns of side A, {len(parts[1])} of side B.")
    elements = np.concatenate(parts, axis=1).reshape(-1, lanes)
    return StreamContents(elements, cell.number("UNIT_OUT", 1), min(a.lo, b.lo), max(a.hi, b.hi))


def _concat_lanes(cell: Cell, a: StreamContents, b: StreamContents) -> StreamContents:
    check_parameters(cell, "UNIT_A A_SIGNED UNIT_B B_SIGNED UNIT_OUT LANES_A LANES_B PIXELS")
    pixels, parts = cell.number("PIXELS", 1), []
    for stream, side in ((a, "A"), (b, "B")):
        lanes = cell.number(f"LANES_{side}", 1)
        _check_extension(cell, stream, side, pixels * lanes)
        parts.append(stream.elements.reshape(-1, pixels, lanes))
    if a.beats != b.beats:
        raise broken(cell.name, f"side A has {a.beats} beats a frame, side B {b.beats}.")
    elements = np.concatenate(parts, axis=2).reshape(a.beats, -1)
    return StreamContents(elements, cell.number("UNIT_OUT", 1), min(a.lo, b.lo), max(a.hi, b.hi))


def _check_extension(cell: Cell, stream: StreamContents, side: str, lanes: int) -> None:
    """Check that the codes of a side keep their values when they get more bits. Raises HG055."""
    unit, signed, bits = cell.number(f"UNIT_{side}", 1), cell.number(f"{side}_SIGNED"), cell.number("UNIT_OUT", 1)
    check_beat(cell, stream, lanes, unit)
    type_ = IntType(-(1 << (unit - 1)), (1 << (unit - 1)) - 1) if signed else IntType(0, (1 << unit) - 1)
    if signed > 1 or unit > bits or stream.lo < type_.lo or stream.hi > type_.hi:
        raise broken(
            cell.name,
            f"it extends codes of {stream.lo}..{stream.hi} of side {side} from {unit} to {bits} bits as "
            f"{'' if signed else 'un'}signed ones.",
        )


MOVERS: dict[str, Callable[[Cell, StreamContents], StreamContents]] = {
    "hg_width": _width,
    "hg_fork": _fork,
    "hg_fifo": _fifo,
    "hg_slice": _slice,
    "hg_gather": _gather,
    "hg_take": _take,
    "hg_pick": _pick,
}
_JOINERS: dict[str, Callable[[Cell, StreamContents, StreamContents], StreamContents]] = {
    "hg_concat": _concat,
    "hg_beside": _concat_lanes,
}
#: All modules that only move elements.
ROUTING = frozenset([*MOVERS, *_JOINERS, "hg_pad"])
