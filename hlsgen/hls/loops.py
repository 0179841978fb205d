"""Loops of a network: processes in a feedback path, which C++ calls once per step (iteration).

A C++ process consumes a whole frame before it ends, so it cannot wait for a downstream process. The processes of a
loop therefore become a function of one step. In it, every process has the beats of that step alone. Arrays carry the
states from step to step. For state between frames, a step is a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hlsgen.dataflow import units
from hlsgen.dataflow.ends import divided
from hlsgen.diagnostics import HlsgenError, fail


@dataclass(frozen=True, eq=False)
class CarriedState:
    """A loop-carried state.

    `joint`: the node that emits the initial state, then the states of the previous steps. `rows`: the node that emits
    the latter. `initial`: the stream with the initial state, or of state between frames the stream with a bit for
    each frame.
    """

    joint: units.Node
    rows: units.Node
    initial: str


@dataclass(frozen=True, eq=False)
class NetworkLoop:
    """A loop of `steps` iterations. `nodes`: its nodes in network order, without FIFOs and slices."""

    steps: int
    nodes: tuple[units.Node, ...]
    states: tuple[CarriedState, ...]

    @property
    def of_frames(self) -> bool:
        """True if its states go from frame to frame: a step is a frame."""
        return isinstance(self.states[0].joint.unit, units.FrameMemory)


def with_divided_memories(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes with two in place of each memory of a state: one emits the state, and one stores the next state.

    The second one comes after all other nodes inside, and a stream leads from it to the first one.
    """
    emitting, storing = list[units.Node](), list[units.Node]()
    for node in nodes:
        if isinstance(node.unit, units.FrameMemory):
            next_state, (flags, back) = f"{node.name}_next", node.inputs
            emitting.append(replace(node, inputs=(flags, next_state)))
            storing.append(units.Node(next_state, node.unit, (back,), (node.result,), (next_state,), node.result))
        else:
            emitting.append(node)
    inputs, inner, outputs = divided(emitting)
    return [*inputs, *inner, *storing, *outputs]


def streams_before_fifos(nodes: Sequence[units.Node]) -> dict[str, str]:
    """The stream before each chain of FIFOs and slices, by every stream of the chain.

    In C++ these streams are a single one with the summed depth.
    """
    stream_before: dict[str, str] = {}
    for node in nodes:
        if isinstance(node.unit, units.Fifo | units.Slice):
            stream_before[node.outputs[0]] = node.inputs[0]
    return {wire: _first_stream(stream_before, wire) for wire in stream_before}


def _first_stream(stream_before: dict[str, str], wire: str) -> str:
    while wire in stream_before:
        wire = stream_before[wire]
    return wire


def find_loops(nodes: Sequence[units.Node]) -> tuple[NetworkLoop, ...]:
    """The loops of the network, each with its states."""
    stream_before = streams_before_fifos(nodes)
    processes = [node for node in nodes if not isinstance(node.unit, units.Fifo | units.Slice)]
    index_of_writer = {wire: n for n, node in enumerate(processes) for wire in node.outputs}
    predecessors = [
        [index_of_writer[wire] for name in node.inputs if (wire := stream_before.get(name, name)) in index_of_writer]
        for node in processes
    ]
    successors: list[list[int]] = [[] for _ in processes]
    for n, sources in enumerate(predecessors):
        for m in sources:
            successors[m].append(n)
    joints = [n for n, sources in enumerate(predecessors) if any(m > n for m in sources)]
    loops: dict[int, NetworkLoop] = {}
    for n in joints:
        if any(processes[n] in loop.nodes for loop in loops.values()):
            continue
        members = _reachable(n, successors) & _reachable(n, predecessors)
        # A state that does not depend on the state before is in no feedback path, but stored after it is emitted.
        members |= {predecessors[m][1] for m in joints if m in members}
        states = [_state(processes, predecessors[m], m, stream_before) for m in joints if m in members]
        loops[n] = NetworkLoop(_steps(states[0].joint), tuple(processes[m] for m in sorted(members)), tuple(states))
    return tuple(loops.values())


def _reachable(start: int, edges: Sequence[Iterable[int]]) -> set[int]:
    """The nodes reachable from `start`, including itself."""
    reached, pending = {start}, [start]
    while pending:
        for n in edges[pending.pop()]:
            if n not in reached:
                reached.add(n)
                pending.append(n)
    return reached


def _state(nodes: Sequence[units.Node], sources: Sequence[int], n: int, stream_before: dict[str, str]) -> CarriedState:
    joint, rows = nodes[n], nodes[sources[1]]
    assert isinstance(rows.unit, units.Crop | units.FrameMemory)
    return CarriedState(joint, rows, stream_before.get(joint.inputs[0], joint.inputs[0]))


def _steps(joint: units.Node) -> int:
    if isinstance(joint.unit, units.FrameMemory):
        return 1
    assert isinstance(joint.unit, units.ConcatBeats)
    initial_beats, later_beats = joint.unit.beats
    return 1 + later_beats // initial_beats


def restrict_to_step(node: units.Node, steps: int) -> units.Node:
    """The node with the beats of one step. Raises HG040 if a beat, or a function of several beats, spans two steps."""
    if steps == 1:
        return node
    sources = tuple(_stream(node, source, steps) for source in node.sources)
    result = _stream(node, node.result, steps)
    return replace(node, unit=_unit(node, sources[0], result, steps), sources=sources, result=result)


def _stream(node: units.Node, stream: units.Stream, steps: int) -> units.Stream:
    elements, remainder = divmod(stream.groups * stream.group, steps)
    group = min(stream.group, elements)
    step_stream = replace(stream, beats=stream.beats // steps, group=group)
    whole_groups = elements % group == 0 and (group == stream.group or elements % stream.lanes == 0)
    if remainder or stream.beats % steps or not whole_groups:
        raise _spans_steps(node)
    return step_stream


def _unit(node: units.Node, source: units.Stream, result: units.Stream, steps: int) -> units.Unit:
    """The unit for the beats of one step. Raises HG040 if it needs beats of other steps."""
    match unit := node.unit:
        case units.MatVec():
            return _matrix(node, unit, steps)
        case units.AdderMatVec(matrix=matrix):
            return replace(unit, matrix=_matrix(node, matrix, steps))
        case units.Crop():
            return _crop(node, unit, source.beats)
        case units.RescaleUnit() | units.FloatUnit() if source.beats % len(unit.table) == 0:
            return unit
        case units.Reorder() if source.beats % unit.block == 0:
            return unit
        case units.ConcatBeats() if result.beats % sum(unit.beats) == 0:
            return unit
        case (
            units.WidthConverter()
            | units.FloatKeyUnit()
            | units.Fork()
            | units.JoinStreams()
            | units.ConcatChannels()
            | units.SelectLanes()
        ):
            return unit
        case _:
            raise _spans_steps(node)


def _matrix(node: units.Node, unit: units.MatVec, steps: int) -> units.MatVec:
    if unit.vectors % steps:
        raise _spans_steps(node)
    return replace(unit, vectors=unit.vectors // steps)


def _crop(node: units.Node, unit: units.Crop, beats: int) -> units.Crop:
    """The slice of one step. Its outer axes are steps, and all of these are kept."""
    sizes, cuts = list(unit.sizes), [unit.rows, unit.columns, unit.beats]
    for axis in range(3):
        slice_beats = sizes[0] * sizes[1] * sizes[2]
        if beats % slice_beats == 0:
            break
        slices_per_step = slice_beats // beats if slice_beats % beats == 0 else 0
        size = sizes[axis]
        step_size = max(1, size // slices_per_step) if slices_per_step else 0
        if not step_size or size % step_size or cuts[axis] != (0, size, 1):
            raise _spans_steps(node)
        sizes[axis], cuts[axis] = step_size, (0, step_size, 1)
    return units.Crop((sizes[0], sizes[1], sizes[2]), *cuts)


def _spans_steps(node: units.Node) -> HlsgenError:
    return fail(
        "HG040",
        "--recurrence",
        f"once: {node.layer or node.name} works on several steps at once, which C++ does not support.",
        "Build with --recurrence unrolled, or --target verilog.",
    )
