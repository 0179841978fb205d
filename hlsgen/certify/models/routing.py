"""Models of the modules that only move elements: which element each lane of their output carries.

These are hg_width, hg_fork, hg_fifo, hg_slice, hg_gather, hg_take, hg_pad, hg_concat, hg_beside and hg_pick. Each model is
written from the contract at the head of its Verilog file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hlsgen.certify.netlist_reader import Cell, broken, split
from hlsgen.certify.stream_contents import ANYTHING, EMPTY, StreamContents, constant, room
from hlsgen.numerics.fixed import Array, IntType

#: Most loops of hg_gather.
_MAX_LOOPS = 6


def move(cell: Cell, streams: list[StreamContents], signed: bool) -> StreamContents:
    """The stream that a module sends; a fork sends it on all outputs. Raises HG055.

    signed: whether the code of a border is a signed number.
    """
    for stream in streams:
        # Registers and FIFOs change nothing, whatever a beat is.
        if (stream.units or stream.operands) and cell.module not in ("hg_slice", "hg_fifo"):
            raise broken(cell.name, f"{cell.module} stands in the middle of a function.")
    if cell.module in _JOINERS:
        return _JOINERS[cell.module](cell, *streams)
    if cell.module == "hg_pad":
        return _pad(cell, streams[0], signed)
    return MOVERS[cell.module](cell, streams[0])


def only(cell: Cell, names: str, optional: str = "") -> None:
    """The parameters are exactly those that the model knows. Raises HG055 otherwise."""
    odd = (set(cell.parameters) ^ set(names.split())) - set(optional.split())
    if odd:
        raise broken(cell.name, f"{cell.module} has other parameters than its model: {', '.join(sorted(odd))}.")


def count(cell: Cell, name: str) -> int:
    """A parameter that is 1 if it is left out. Raises HG055."""
    return cell.number(name, 1) if name in cell.parameters else 1


def fits(cell: Cell, stream: StreamContents, lanes: int, bits: int) -> None:
    """The unit reads as many lanes of as many bits as the stream has. Raises HG055 otherwise."""
    if (lanes, bits) != (stream.lanes, stream.bits):
        raise broken(cell.name, f"it takes {lanes} x {bits} bits a beat, gets {stream.lanes} x {stream.bits}.")


def whole(cell: Cell, stream: StreamContents, beats: int, what: str) -> int:
    """The beats of a frame, divided by `beats`. Raises HG055 if that leaves a remainder."""
    if stream.beats % beats:
        raise broken(cell.name, f"{what} {beats} beats; a frame has {stream.beats}, no multiple of that.")
    return stream.beats // beats


def _as_wide(cell: Cell, stream: StreamContents) -> None:
    if cell.number("WIDTH", 1) != stream.width:
        raise broken(cell.name, f"WIDTH is {cell.parameters['WIDTH']}, a beat has {stream.width} bits.")


def _width(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "UNIT IN OUT", "IN_GROUP OUT_GROUP")
    take, send = cell.number("IN", 1), cell.number("OUT", 1)
    groups = (
        cell.number(name, 1) if name in cell.parameters else default
        for name, default in (("IN_GROUP", take), ("OUT_GROUP", send))
    )
    taken, sent = groups
    fits(cell, stream, take, cell.number("UNIT", 1))
    count = whole(cell, stream, -(-taken // take), "a group that it takes has")
    elements = stream.elements.reshape(count, -1)[:, :taken].ravel()
    if len(elements) % sent:
        raise broken(
            cell.name, f"it sends groups of {sent} elements; a frame has {len(elements)}, no multiple of that."
        )
    room(cell, len(elements) // sent * -(-sent // send) * send)
    rows = np.full((len(elements) // sent, -(-sent // send) * send), EMPTY)
    rows[:, :sent] = elements.reshape(-1, sent)
    return replace(stream, elements=rows.reshape(-1, send))


def _fork(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "WIDTH COUNT")
    _as_wide(cell, stream)
    return stream


def _fifo(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "WIDTH DEPTH")
    _as_wide(cell, stream)
    cell.number("DEPTH", 1)
    return stream


def _slice(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "WIDTH", "FULL")
    _as_wide(cell, stream)
    if "FULL" in cell.parameters and cell.number("FULL") > 1:
        raise broken(cell.name, f"FULL is {cell.number('FULL')}.")
    return stream


def _gather(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "WIDTH BLOCK DIMS EXTENTS STRIDES")
    _as_wide(cell, stream)
    block, dims = cell.number("BLOCK", 1), cell.number("DIMS", 1)
    if dims > _MAX_LOOPS:
        raise broken(cell.name, f"DIMS is {dims}, at most {_MAX_LOOPS}.")
    extents, strides = (
        split([cell.sized(name, 32 * dims).value], dims, 32)[0].tolist() for name in ("EXTENTS", "STRIDES")
    )
    blocks = whole(cell, stream, block, "a block has")
    last = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
    if min(extents) < 1 or last >= block:
        raise broken(cell.name, f"its loops {list(zip(extents, strides, strict=True))} go beyond {block} beats.")
    room(cell, math.prod(extents) * blocks * stream.lanes)
    address = np.zeros(1, np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        address = (address[:, None] + stride * np.arange(extent)).ravel()
    return replace(stream, elements=stream.elements.reshape(blocks, block, -1)[:, address].reshape(-1, stream.lanes))


def _pick(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "UNIT IN OUT MAP")
    count_in, count_out = cell.number("IN", 1), cell.number("OUT", 1)
    fits(cell, stream, count_in, cell.number("UNIT", 1))
    room(cell, stream.beats * count_out)
    places = split([cell.sized("MAP", 32 * count_out).value], count_out, 32)[0]
    if max(places.tolist()) >= count_in:
        raise broken(cell.name, f"it picks element {max(places.tolist())} of {count_in}.")
    return replace(stream, elements=stream.elements[:, places.astype(np.int64)])


def _take(cell: Cell, stream: StreamContents) -> StreamContents:
    only(cell, "WIDTH HEIGHT COLUMNS FOLDS Y0 Y1 YS X0 X1 XS C0 C1 CS")
    _as_wide(cell, stream)
    sizes = [cell.number(name, 1) for name in ("HEIGHT", "COLUMNS", "FOLDS")]
    cuts = []
    for axis, size in zip("YXC", sizes, strict=True):
        start, stop, step = cell.number(f"{axis}0"), cell.number(f"{axis}1"), cell.number(f"{axis}S", 1)
        if not start < stop <= size:
            raise broken(
                cell.name, f"{axis}0 = {start}, {axis}1 = {stop} of {size} keep nothing, or what is not there."
            )
        cuts.append(slice(start, stop, step))
    images = whole(cell, stream, math.prod(sizes), "an image has")
    kept = stream.elements.reshape(images, *sizes, -1)[:, cuts[0], cuts[1], cuts[2]]
    return replace(stream, elements=kept.reshape(-1, stream.lanes))


def _pad(cell: Cell, stream: StreamContents, signed: bool) -> StreamContents:
    only(cell, "UNIT LANES HEIGHT COLUMNS FOLDS TOP LEFT BOTTOM RIGHT VALUE")
    fits(cell, stream, cell.number("LANES", 1), cell.number("UNIT", 1))
    sizes = [cell.number(name, 1) for name in ("HEIGHT", "COLUMNS", "FOLDS")]
    top, left, bottom, right = (cell.number(name) for name in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
    value = cell.sized("VALUE", stream.bits)
    code = value.signed if signed else value.value
    images = whole(cell, stream, math.prod(sizes), "an image has")
    image = stream.elements.reshape(images, *sizes, stream.lanes)
    room(cell, images * (top + sizes[0] + bottom) * (left + sizes[1] + right) * sizes[2] * stream.lanes)
    border = [(0, 0), (top, bottom), (left, right), (0, 0), (0, 0)]
    wide: Array = np.pad(image, border, constant_values=constant(code))
    # Lanes that are empty in every pixel of the image mean nothing in the border.
    idle = ((image == ANYTHING) | (image == EMPTY)).all(axis=(0, 1, 2))
    wide[..., idle] = ANYTHING
    return replace(stream, elements=wide.reshape(-1, stream.lanes), lo=min(stream.lo, code), hi=max(stream.hi, code))


def _concat(cell: Cell, a: StreamContents, b: StreamContents) -> StreamContents:
    only(cell, "UNIT_A A_SIGNED UNIT_B B_SIGNED UNIT_OUT LANES BEATS_A BEATS_B")
    lanes, parts = cell.number("LANES", 1), []
    for stream, side in ((a, "A"), (b, "B")):
        _extends(cell, stream, side, lanes)
        beats = cell.number(f"BEATS_{side}", 1)
        parts.append(stream.elements.reshape(whole(cell, stream, beats, f"a turn of side {side} has"), -1, lanes))
    if len(parts[0]) != len(parts[1]):
        raise broken(
            cell.name, f"BEATS_A and BEATS_B make {len(parts[0])} turns of one side, {len(parts[1])} of the other."
        )
    elements = np.concatenate(parts, axis=1).reshape(-1, lanes)
    return StreamContents(elements, cell.number("UNIT_OUT", 1), min(a.lo, b.lo), max(a.hi, b.hi))


def _beside(cell: Cell, a: StreamContents, b: StreamContents) -> StreamContents:
    only(cell, "UNIT_A A_SIGNED UNIT_B B_SIGNED UNIT_OUT LANES_A LANES_B PIXELS")
    pixels, parts = cell.number("PIXELS", 1), []
    for stream, side in ((a, "A"), (b, "B")):
        lanes = cell.number(f"LANES_{side}", 1)
        _extends(cell, stream, side, pixels * lanes)
        parts.append(stream.elements.reshape(-1, pixels, lanes))
    if a.beats != b.beats:
        raise broken(cell.name, f"one side has {a.beats} beats a frame, the other {b.beats}.")
    elements = np.concatenate(parts, axis=2).reshape(a.beats, -1)
    return StreamContents(elements, cell.number("UNIT_OUT", 1), min(a.lo, b.lo), max(a.hi, b.hi))


def _extends(cell: Cell, stream: StreamContents, side: str, lanes: int) -> None:
    """The codes of a side stay the same with more bits. Raises HG055."""
    unit, signed, bits = cell.number(f"UNIT_{side}", 1), cell.number(f"{side}_SIGNED"), cell.number("UNIT_OUT", 1)
    fits(cell, stream, lanes, unit)
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
    "hg_beside": _beside,
}
#: All modules that only move elements.
ROUTING = frozenset([*MOVERS, *_JOINERS, "hg_pad"])
