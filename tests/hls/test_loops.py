"""Processes of a loop have the beats of one step: what they do in all steps is what the whole frame asks for."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from recurrent_cells import elman

import hlsgen
from hlsgen.dataflow.units import Crop, Fork, Node, PadBorder, Reorder, Stream, Unit
from hlsgen.diagnostics import HlsgenError
from hlsgen.hls.loops import circles_of, of_step
from hlsgen.numerics.fixed import IntType

BITS = IntType(0, 15)


def node(unit: Unit, lanes: int, beats: int, group: int) -> Node:
    stream = Stream(BITS, lanes, beats, group)
    return Node("n", unit, ("s",), (stream,), ("m",), stream, "a layer")


def kept(unit: Crop, beats: int) -> list[int]:
    """Which of so many beats a slice keeps."""
    found = np.zeros(unit.sizes, bool)
    found[tuple(slice(*cut) for cut in (unit.rows, unit.columns, unit.beats))] = True
    return [int(n) for n in np.flatnonzero(np.tile(found.ravel(), beats // found.size))]


@pytest.mark.parametrize("steps", [2, 3])
def test_slices(steps: int) -> None:
    """All slices of small images: a step keeps its part of them, or is refused."""
    cuts = [(0, 1, 1), (0, 2, 1), (1, 2, 1), (0, 6, 1), (0, 6, 2), (1, 6, 1), (0, 3, 1)]
    done = refused = 0
    for sizes in product((1, 2, 6), (1, 2, 6), (1, 2)):
        beats = sizes[0] * sizes[1] * sizes[2]
        own = [[cut for cut in cuts if cut[1] <= size] for size in sizes]
        if beats % steps or any(sizes[n] not in {c[1] for c in own[n]} for n in range(3)):
            continue
        for ranges in product(*own):
            unit = Crop(sizes, *ranges)
            whole = kept(unit, beats)
            if len(whole) % steps:
                continue
            source, result = Stream(BITS, 1, beats, beats), Stream(BITS, 1, len(whole), len(whole))
            slice_ = Node("n", unit, ("s",), (source,), ("m",), result)
            part = beats // steps
            try:
                step = of_step(slice_, steps)
            except HlsgenError:
                refused += 1
                continue
            assert isinstance(step.unit, Crop)
            first = kept(step.unit, part)
            assert whole == [n + k * part for k in range(steps) for n in first]
            assert (step.source.beats, step.result.beats) == (part, len(first))
            done += 1
    assert min(done, refused) > 20


@pytest.mark.parametrize(
    "made",
    [
        node(Fork(2), 4, 6, 21),  # a beat of two steps
        node(Fork(2), 1, 7, 7),
        node(Reorder(6, ((6, 1),)), 1, 12, 4),
        node(PadBorder(3, 4, 1, 0, (0, 0, 0, 0)), 1, 12, 4),
    ],
)
def test_what_works_on_several_steps(made: Node) -> None:
    with pytest.raises(HlsgenError, match="a layer works on several steps at once"):
        of_step(made, 3)


def test_a_loop_is_found(tmp_path: Path) -> None:
    onnx.save(elman(5, last=True), tmp_path / "m.onnx")
    options = hlsgen.Options(recurrence="once", target="hls")
    nodes = hlsgen.check(tmp_path / "m.onnx", options).network.nodes
    (circle,) = circles_of(nodes)
    assert circle.steps == 5
    assert [state.joint.layer for state in circle.states] == ["scan/state 0"]
    assert circle.nodes[0] is circle.states[0].joint
    assert circle.nodes[-1] is circle.states[0].rows
    inside = {wire for made in circle.nodes for wire in made.outputs}
    assert not any("initial" in made.layer or made.layer.endswith("MatMul -> y") for made in circle.nodes)
    assert inside
    assert circles_of([made for made in nodes if made not in circle.nodes]) == ()
