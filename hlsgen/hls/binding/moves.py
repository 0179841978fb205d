"""Binds units that move, join or compare elements to functions of the C++ library."""

from __future__ import annotations

from collections.abc import Iterable

from hlsgen.dataflow import units
from hlsgen.hls.process import Process, process
from hlsgen.numerics.fixed import IntType


def bind_width(source: units.Stream, result: units.Stream) -> Process:
    """Call that changes the number of lanes: joins whole beats, splits beats, or regroups at any other ratio."""
    summary = f"{source.lanes} to {result.lanes} elements a beat"
    step, _ = units.regrouping_step(source, result)
    if step == result.lanes:
        return process("narrow", summary, header="width", GROUP=source.group, GROUPS=source.groups)
    if step == source.lanes:
        return process("widen", summary, header="width", GROUP=result.group, GROUPS=result.groups)
    return process(
        "gearbox",
        summary,
        header="width",
        STEP=step,
        GROUP_IN=source.group,
        GROUP_OUT=result.group,
        GROUPS_OUT=result.groups,
    )


def bind_join(node: units.Node, unit: units.JoinStreams) -> Process:
    """Call that joins the elements of two streams."""
    beats = node.result.beats
    if unit.floats is not None:
        op = f"hg::f32_{unit.floats.value}"
        return process("f32_join", f"float32 {unit.floats.value}", header="float32", OP=op, BEATS=beats)
    if unit.packed:
        return process("join_pair", "both operands side by side", header="join", BEATS=beats)
    if unit.factors is None:
        return process(
            "join_product",
            "product of both operands",
            header="join",
            FACTOR=_common_type(unit.zeros),
            ZA=unit.zeros[0],
            ZB=unit.zeros[1],
            BEATS=beats,
        )
    return process(
        "join_sum",
        "weighted sum of both operands",
        header="join",
        FACTOR=_common_type(unit.factors),
        FA=unit.factors[0],
        FB=unit.factors[1],
        BEATS=beats,
    )


def _common_type(values: tuple[int, int]) -> IntType:
    """Signed type that holds both constants."""
    return IntType(min(-1, *values), max(0, *values))


def bind_concat(node: units.Node, unit: units.ConcatBeats) -> Process:
    """Call that alternates runs of beats of two streams."""
    summary = f"{unit.beats[0]} and {unit.beats[1]} beats alternately"
    turns = node.result.beats // sum(unit.beats)
    return process("concat", summary, BEATS_A=unit.beats[0], BEATS_B=unit.beats[1], TURNS=turns)


def bind_beside(node: units.Node, unit: units.ConcatChannels) -> Process:
    """Call that concatenates the pixels of two streams."""
    return process(
        "beside",
        f"{unit.lanes[0]} and {unit.lanes[1]} elements side by side",
        header="concat",
        LANES_A=unit.lanes[0],
        LANES_B=unit.lanes[1],
        PIXELS=unit.pixels,
        BEATS=node.result.beats,
    )


def _list(values: Iterable[int]) -> str:
    return f"hg::list<{', '.join(map(str, values))}>"


def bind_pick(node: units.Node, unit: units.SelectLanes) -> Process:
    """Call that selects elements of each beat."""
    return process(
        "pick", "selected elements of each beat", header="moves", PLACES=_list(unit.places), BEATS=node.source.beats
    )


def bind_take(node: units.Node, unit: units.Crop) -> Process:
    """Call that keeps parts of an image."""
    cuts = zip(("ROWS", "COLUMNS", "FOLDS"), unit.sizes, (unit.rows, unit.columns, unit.beats), strict=True)
    ranges = {name: f"hg::range<{', '.join(map(str, (size, *cut)))}>" for name, size, cut in cuts}
    return process("take", "slice", header="moves", **ranges, BEATS=node.source.beats)


def bind_pad(unit: units.PadBorder) -> Process:
    """Call that adds a border around an image."""
    border = dict(zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), unit.pads, strict=True))
    return process(
        "pad",
        "border",
        header="moves",
        HEIGHT=unit.height,
        WIDTH=unit.width,
        WORDS=unit.folds,
        **border,
        VALUE=unit.value,
    )


def bind_gather(node: units.Node, unit: units.Reorder) -> Process:
    """Call that reorders the beats of stored blocks."""
    extents, strides = (_list(column) for column in zip(*unit.loops, strict=True))
    return process(
        "gather",
        "beats in another order",
        header="moves",
        BLOCK=unit.block,
        BLOCKS=node.source.beats // unit.block,
        EXTENTS=extents,
        STRIDES=strides,
    )


def bind_argmax(node: units.Node, unit: units.ArgMaxUnit) -> Process:
    """Call that finds the position of the largest element."""
    return process("argmax", "position of the largest", BEATS=unit.beats, VECTORS=node.source.beats // unit.beats)
