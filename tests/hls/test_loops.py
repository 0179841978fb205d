"""Processes of a loop have the beats of one step: all steps together give the result of the whole frame."""

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
from hlsgen.hls.loops import find_loops, restrict_to_step
from hlsgen.hls.rates import LoopWork, emptying_of, predict
from hlsgen.numerics.fixed import IntType

BITS = IntType(0, 15)


def node(unit: Unit, lanes: int, beats: int, group: int) -> Node:
    stream = Stream(BITS, lanes, beats, group)
    return Node("n", unit, ("s",), (stream,), ("m",), stream, "a layer")


def beats_kept(unit: Crop, beats: int) -> list[int]:
    """Indices of the beats that a slice keeps."""
    keeps = np.zeros(unit.sizes, bool)
    keeps[tuple(slice(*cut) for cut in (unit.rows, unit.columns, unit.beats))] = True
    return [int(n) for n in np.flatnonzero(np.tile(keeps.ravel(), beats // keeps.size))]


@pytest.mark.parametrize("steps", [2, 3])
def test_slices(steps: int) -> None:
    """All slices of small images: a step keeps its part of them, or is rejected."""
    cuts = [(0, 1, 1), (0, 2, 1), (1, 2, 1), (0, 6, 1), (0, 6, 2), (1, 6, 1), (0, 3, 1)]
    accepted = refused = 0
    for sizes in product((1, 2, 6), (1, 2, 6), (1, 2)):
        beats = sizes[0] * sizes[1] * sizes[2]
        cuts_by_axis = [[cut for cut in cuts if cut[1] <= size] for size in sizes]
        if beats % steps or any(sizes[n] not in {c[1] for c in cuts_by_axis[n]} for n in range(3)):
            continue
        for ranges in product(*cuts_by_axis):
            unit = Crop(sizes, *ranges)
            kept_beats = beats_kept(unit, beats)
            if len(kept_beats) % steps:
                continue
            source, result = Stream(BITS, 1, beats, beats), Stream(BITS, 1, len(kept_beats), len(kept_beats))
            slice_ = Node("n", unit, ("s",), (source,), ("m",), result)
            step_beats = beats // steps
            try:
                step = restrict_to_step(slice_, steps)
            except HlsgenError:
                refused += 1
                continue
            assert isinstance(step.unit, Crop)
            first = beats_kept(step.unit, step_beats)
            assert kept_beats == [n + k * step_beats for k in range(steps) for n in first]
            assert (step.source.beats, step.result.beats) == (step_beats, len(first))
            accepted += 1
    assert min(accepted, refused) > 20


@pytest.mark.parametrize(
    "unit_node",
    [
        node(Fork(2), 4, 6, 21),  # a beat spans two steps
        node(Fork(2), 1, 7, 7),
        node(Reorder(6, ((6, 1),)), 1, 12, 4),
        node(PadBorder(3, 4, 1, 0, (0, 0, 0, 0)), 1, 12, 4),
    ],
)
def test_nodes_that_span_steps_are_rejected(unit_node: Node) -> None:
    with pytest.raises(HlsgenError, match="a layer works on several steps at once"):
        restrict_to_step(unit_node, 3)


def test_a_loop_is_found(tmp_path: Path) -> None:
    onnx.save(elman(5, last=True), tmp_path / "m.onnx")
    options = hlsgen.Options(recurrence="once", target="hls")
    nodes = hlsgen.check(tmp_path / "m.onnx", options).network.nodes
    (loop,) = find_loops(nodes)
    assert loop.steps == 5
    assert [state.joint.layer for state in loop.states] == ["scan/state 0"]
    assert loop.nodes[0] is loop.states[0].joint
    assert loop.nodes[-1] is loop.states[0].rows
    inside = {wire for node_ in loop.nodes for wire in node_.outputs}
    assert not any("initial" in node_.layer or node_.layer.endswith("MatMul -> y") for node_ in loop.nodes)
    assert inside
    assert find_loops([node_ for node_ in nodes if node_ not in loop.nodes]) == ()


def test_processes_of_a_step_overlap_if_none_waits_for_the_other() -> None:
    """Two steps of four processes with two iterations each, in a row and with two of them side by side."""
    nodes = [node(Fork(1), 1, 4, 4)] * 4
    row, beside = (
        predict([], [LoopWork("loop", 2, nodes, before, 3)]) for before in ([[], [0], [1], [2]], [[], [0], [0], [1, 2]])
    )
    emptying, restart = emptying_of(nodes[0]), 2
    assert (row.cycles, row.emptying) == (2 * (4 * (2 + emptying) + 3 + restart), 2 * (4 * emptying + restart))
    assert (beside.cycles, beside.emptying) == (2 * (3 * (2 + emptying) + 3 + restart), 2 * (3 * emptying + restart))
