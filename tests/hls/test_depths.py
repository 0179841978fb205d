"""Depths of streams of a C++ core: as many beats as a branch has to wait for, and no more."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from models import mlp, save

import hlsgen
from hlsgen.dataflow.units import (
    ArgMaxUnit,
    Fifo,
    Fork,
    JoinStreams,
    MatVec,
    Node,
    Port,
    Product,
    ReduceTree,
    Reorder,
    Slice,
    SlidingWindow,
    Stream,
    Unit,
)
from hlsgen.hls.depths import room_for_next, safe_depths
from hlsgen.hls.loops import in_front_of_fifos
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import IntType

BITS = IntType(0, 15)
WINDOW = Window((3, 3), pads=(1, 1, 1, 1))


def node(name: str, unit: Unit, inputs: tuple[str, ...], stream: Stream, outputs: tuple[str, ...] = ()) -> Node:
    return Node(name, unit, inputs, (stream,) * len(inputs), outputs or (name,), stream)


def skip(height: int, width: int, *, first: bool) -> list[Node]:
    """x + max(windows of x), one element a beat; x is the first operand or the second."""
    stream = Stream(BITS, 1, height * width, height * width)
    windows = SlidingWindow(WINDOW, height, width, 1, 0, 3, width)
    return [
        node("in", Port(), ("axis",), stream),
        node("fork", Fork(2), ("in",), stream, ("skip", "branch")),
        node("wait", Fifo(2), ("skip",), stream),
        node("windows", windows, ("branch",), replace(stream, lanes=9)),
        node("pool", ReduceTree(Reduction.MAX, 9), ("windows",), stream),
        node("sum", JoinStreams((1, 1)), ("wait", "pool") if first else ("pool", "wait"), stream),
        node("out", Port(), ("sum",), stream),
    ]


def planned(nodes: list[Node]) -> dict[str, int]:
    return {wire: 2 for made in nodes[:-1] if not isinstance(made.unit, Fifo) for wire in made.outputs}


@pytest.mark.parametrize("height, width", [(4, 8), (3, 3), (9, 5)])
def test_a_branch_waits_for_a_window(height: int, width: int) -> None:
    """The first window needs a row and two pixels; the sum holds one of them if it takes that operand first."""
    for first in (True, False):
        nodes = skip(height, width, first=first)
        found = safe_depths(nodes, planned(nodes))
        assert found == planned(nodes) | {"skip": width + 2 - first}


def test_a_slice_is_part_of_a_stream() -> None:
    """In front of the FIFO, and behind it."""
    nodes = skip(4, 8, first=True)
    stream = nodes[0].result
    cut = [*nodes[:2], node("held", Slice(), ("skip",), stream), node("wait", Fifo(2), ("held",), stream)]
    cut += [node("again", Slice(), ("wait",), stream), *nodes[3:5]]
    cut += [node("sum", JoinStreams((1, 1)), ("again", "pool"), stream), nodes[6]]
    assert in_front_of_fifos(cut) == dict.fromkeys(("held", "wait", "again"), "skip")
    assert safe_depths(cut, planned(nodes)) == safe_depths(nodes, planned(nodes))


def test_enough_stays() -> None:
    nodes = skip(4, 8, first=True)
    depths = planned(nodes) | {"skip": 30}
    assert safe_depths(nodes, depths) == depths


def test_a_chain_needs_nothing() -> None:
    stream = Stream(BITS, 1, 12, 12)
    nodes = [
        node("in", Port(), ("axis",), stream),
        Node("top", ArgMaxUnit(12), ("in",), (stream,), ("top",), replace(stream, beats=1, group=1)),
        node("out", Port(), ("top",), replace(stream, beats=1, group=1)),
    ]
    assert safe_depths(nodes, {"in": 1, "top": 1}) == {"in": 1, "top": 1}


def test_the_narrower_stream_gets_deeper() -> None:
    """Both streams of a branch could take what waits."""
    nodes = skip(4, 8, first=True)
    wide = replace(nodes[1].result, type=IntType(0, 255))
    place = nodes.index(next(made for made in nodes if made.name == "wait"))
    nodes[place] = Node("wide", JoinStreams((1, 0)), ("skip", "skip2"), (wide, wide), ("wait",), wide)
    nodes[1] = node("fork", Fork(3), ("in",), nodes[1].result, ("skip", "skip2", "branch"))
    found = safe_depths(nodes, planned(nodes))
    assert found["wait"] == 2
    assert found["skip"] == found["skip2"] > 2


def test_the_next_vector_waits() -> None:
    """Where a vector or an image is sent more than once after it was read, the next one has to wait."""

    def room(unit: Unit, beats: int) -> int:
        return room_for_next(node("u", unit, ("x",), Stream(BITS, 2, beats, 2 * beats)))

    weight = np.ones((6, 1, 8), np.int64)
    assert room(MatVec(weight, np.arange(8), Product.INTEGER, 2, 2, 3), 12) == 4
    assert room(MatVec(weight, np.arange(8), Product.INTEGER, 6, 2, 3), 12) == 0
    assert room(Reorder(12, ((3, 1), (4, 3))), 12) == 12
    assert room(Reorder(6, ((2, 0), (6, 1))), 12) == 0  # which has room itself for the next block


def test_a_core_has_them(tmp_path: Path) -> None:
    """Layers of 3 x 4 and 2 x 3 that multiply one pair at a time: their whole vectors wait."""
    one = {"pe": 1, "simd": 1}
    options = hlsgen.Options(target="hls", folding={"fc0": one, "fc1": one})
    hlsgen.build(save(mlp().model(), tmp_path / "mlp.onnx"), tmp_path / "out", options)
    text = (tmp_path / "out/hls/mlp.cpp").read_text()
    depths = {name: int(depth) for name, depth in re.findall(r"variable=(\w+) depth=(\d+)", text)}
    assert {name: depth - 2 for name, depth in depths.items() if depth > 2} == {"port_out": 4, "q1_out": 3}
