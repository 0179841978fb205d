"""Depths of streams of a C++ core: exactly the beats that must be buffered on a branch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from models import mlp, save

import hlsgen
from hlsgen.dataflow import units
from hlsgen.hls.depths import room_for_next, safe_depths
from hlsgen.hls.loops import streams_before_fifos
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import IntType

BITS = IntType(0, 15)
WINDOW = Window((3, 3), pads=(1, 1, 1, 1))


def node(
    name: str, unit: units.Unit, inputs: tuple[str, ...], stream: units.Stream, outputs: tuple[str, ...] = ()
) -> units.Node:
    return units.Node(name, unit, inputs, (stream,) * len(inputs), outputs or (name,), stream)


def skip(height: int, width: int, *, first: bool) -> list[units.Node]:
    """x + max(windows of x), one element a beat; x is the first operand or the second."""
    stream = units.Stream(BITS, 1, height * width, height * width)
    windows = units.SlidingWindow(WINDOW, height, width, 1, 0, 3, width)
    return [
        node("in", units.Port(), ("axis",), stream),
        node("fork", units.Fork(2), ("in",), stream, ("skip", "branch")),
        node("wait", units.Fifo(2), ("skip",), stream),
        node("windows", windows, ("branch",), replace(stream, lanes=9)),
        node("pool", units.ReduceTree(Reduction.MAX, 9), ("windows",), stream),
        node("sum", units.JoinStreams((1, 1)), ("wait", "pool") if first else ("pool", "wait"), stream),
        node("out", units.Port(), ("sum",), stream),
    ]


def planned(nodes: list[units.Node]) -> dict[str, int]:
    return {wire: 2 for node_ in nodes[:-1] if not isinstance(node_.unit, units.Fifo) for wire in node_.outputs}


@pytest.mark.parametrize("height, width", [(4, 8), (3, 3), (9, 5)])
def test_a_branch_waits_for_a_window(height: int, width: int) -> None:
    """The first window needs a row and two pixels, and reads one more. The sum reads both of its elements at once."""
    for first in (True, False):
        nodes = skip(height, width, first=first)
        depths = safe_depths(nodes, planned(nodes))
        assert depths == planned(nodes) | {"skip": width + 3}


def test_a_slice_is_part_of_a_stream() -> None:
    """Slices before and after the FIFO do not change the depths."""
    nodes = skip(4, 8, first=True)
    stream = nodes[0].result
    with_slices = [
        *nodes[:2],
        node("held", units.Slice(), ("skip",), stream),
        node("wait", units.Fifo(2), ("held",), stream),
    ]
    with_slices += [node("again", units.Slice(), ("wait",), stream), *nodes[3:5]]
    with_slices += [node("sum", units.JoinStreams((1, 1)), ("again", "pool"), stream), nodes[6]]
    assert streams_before_fifos(with_slices) == dict.fromkeys(("held", "wait", "again"), "skip")
    assert safe_depths(with_slices, planned(nodes)) == safe_depths(nodes, planned(nodes))


def test_sufficient_depths_stay() -> None:
    nodes = skip(4, 8, first=True)
    depths = planned(nodes) | {"skip": 30}
    assert safe_depths(nodes, depths) == depths


def test_a_chain_needs_nothing() -> None:
    stream = units.Stream(BITS, 1, 12, 12)
    nodes = [
        node("in", units.Port(), ("axis",), stream),
        units.Node("top", units.ArgMaxUnit(12), ("in",), (stream,), ("top",), replace(stream, beats=1, group=1)),
        node("out", units.Port(), ("top",), replace(stream, beats=1, group=1)),
    ]
    assert safe_depths(nodes, {"in": 1, "top": 1}) == {"in": 1, "top": 1}


def test_the_narrower_stream_gets_deeper() -> None:
    """Either stream of a branch could buffer the beats."""
    nodes = skip(4, 8, first=True)
    wide_stream = replace(nodes[1].result, type=IntType(0, 255))
    index = nodes.index(next(node_ for node_ in nodes if node_.name == "wait"))
    nodes[index] = units.Node(
        "wide", units.JoinStreams((1, 0)), ("skip", "skip2"), (wide_stream, wide_stream), ("wait",), wide_stream
    )
    nodes[1] = node("fork", units.Fork(3), ("in",), nodes[1].result, ("skip", "skip2", "branch"))
    depths = safe_depths(nodes, planned(nodes))
    assert depths["wait"] == 2
    assert depths["skip"] == depths["skip2"] > 2


def test_repeating_processes_have_room_for_the_next_vector() -> None:
    """Where a vector or an image is emitted several times, the next one needs a buffer."""

    def room(unit: units.Unit, beats: int) -> int:
        return room_for_next(node("u", unit, ("x",), units.Stream(BITS, 2, beats, 2 * beats)))

    weight = np.ones((6, 1, 8), np.int64)
    assert room(units.MatVec(weight, np.arange(8), units.Product.INTEGER, 2, 2, 3), 12) == 4
    assert room(units.MatVec(weight, np.arange(8), units.Product.INTEGER, 6, 2, 3), 12) == 0
    assert room(units.Reorder(12, ((3, 1), (4, 3))), 12) == 12
    assert room(units.Reorder(6, ((2, 0), (6, 1))), 12) == 0  # has room for the next block itself


def test_streams_of_a_core_have_safe_depths(tmp_path: Path) -> None:
    """Layers of 3 x 4 and 2 x 3 that multiply one pair at a time: whole vectors are buffered."""
    sequential = {"pe": 1, "simd": 1}
    options = hlsgen.Options(target="hls", folding={"fc0": sequential, "fc1": sequential})
    hlsgen.build(save(mlp().model(), tmp_path / "mlp.onnx"), tmp_path / "out", options)
    text = (tmp_path / "out/hls/mlp.cpp").read_text()
    depths = {name: int(depth) for name, depth in re.findall(r"variable=(\w+) depth=(\d+)", text)}
    assert {name: depth - 2 for name, depth in depths.items() if depth > 2} == {"port_out": 4, "q1_out": 3}
