"""Loops of a network: processes in a circle, which C++ calls once for each step.

A process of C++ takes a whole frame before it ends, so none can wait for one behind it. What lies in a circle becomes
a function of one step, in which every process has the beats of that step alone; states go from step to step in arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hlsgen.dataflow.units import (
    AdderMatVec,
    ConcatBeats,
    ConcatChannels,
    Crop,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    JoinStreams,
    MatVec,
    Node,
    Reorder,
    RescaleUnit,
    SelectLanes,
    Slice,
    Stream,
    Unit,
    WidthConverter,
)
from hlsgen.diagnostics import HlsgenError, fail


@dataclass(frozen=True, eq=False)
class State:
    """`joint`: the node that sends the initial state and then those of the steps before; `rows`: the one that sends these.

    `initial`: the stream that the joint takes first.
    """

    joint: Node
    rows: Node
    initial: str


@dataclass(frozen=True, eq=False)
class Circle:
    """A loop of so many steps. `nodes`: all that take part, in their order, without FIFOs and slices."""

    steps: int
    nodes: tuple[Node, ...]
    states: tuple[State, ...]


def in_front_of_fifos(nodes: Sequence[Node]) -> dict[str, str]:
    """Of each stream behind a FIFO or slice the one in front of it: they are one stream of C++, as deep as both."""
    front: dict[str, str] = {}
    for node in nodes:
        if isinstance(node.unit, Fifo | Slice):
            front[node.outputs[0]] = node.inputs[0]
    return {wire: _first(front, wire) for wire in front}


def _first(front: dict[str, str], wire: str) -> str:
    while wire in front:
        wire = front[wire]
    return wire


def circles_of(nodes: Sequence[Node]) -> tuple[Circle, ...]:
    """The loops, each with its states."""
    front = in_front_of_fifos(nodes)
    plain = [node for node in nodes if not isinstance(node.unit, Fifo | Slice)]
    place = {wire: n for n, node in enumerate(plain) for wire in node.outputs}
    before = [
        [place[wire] for name in node.inputs if (wire := front.get(name, name)) in place]
        for node in plain
    ]  # fmt: skip
    behind: list[list[int]] = [[] for _ in plain]
    for n, sources in enumerate(before):
        for m in sources:
            behind[m].append(n)
    joints = [n for n, sources in enumerate(before) if any(m > n for m in sources)]
    found: dict[int, Circle] = {}
    for n in joints:
        if any(plain[n] in circle.nodes for circle in found.values()):
            continue
        members = sorted(_reached(n, behind) & _reached(n, before))
        states = [_state(plain, before[m], m, front) for m in joints if m in members]
        first, back = _turn(states[0].joint)
        found[n] = Circle(1 + back // first, tuple(plain[m] for m in members), tuple(states))
    return tuple(found.values())


def _reached(start: int, edges: Sequence[Iterable[int]]) -> set[int]:
    """All that can be reached from a node, with itself."""
    found, left = {start}, [start]
    while left:
        for n in edges[left.pop()]:
            if n not in found:
                found.add(n)
                left.append(n)
    return found


def _state(nodes: Sequence[Node], sources: Sequence[int], n: int, front: dict[str, str]) -> State:
    joint, rows = nodes[n], nodes[sources[1]]
    assert isinstance(rows.unit, Crop)
    return State(joint, rows, front.get(joint.inputs[0], joint.inputs[0]))


def _turn(joint: Node) -> tuple[int, int]:
    assert isinstance(joint.unit, ConcatBeats)
    return joint.unit.beats


def of_step(node: Node, steps: int) -> Node:
    """The node with the beats of one step. Raises HG040 if a beat, or what it does with several, is of two steps."""
    sources = tuple(_stream(node, source, steps) for source in node.sources)
    result = _stream(node, node.result, steps)
    return replace(node, unit=_unit(node, sources[0], result, steps), sources=sources, result=result)


def _stream(node: Node, stream: Stream, steps: int) -> Stream:
    elements, rest = divmod(stream.groups * stream.group, steps)
    group = min(stream.group, elements)
    found = replace(stream, beats=stream.beats // steps, group=group)
    whole = elements % group == 0 and (group == stream.group or elements % stream.lanes == 0)
    if rest or stream.beats % steps or not whole:
        raise _across(node)
    return found


def _unit(node: Node, source: Stream, result: Stream, steps: int) -> Unit:
    """The unit for the beats of one step. Raises HG040 if it needs others."""
    match unit := node.unit:
        case MatVec():
            return _matrix(node, unit, steps)
        case AdderMatVec(matrix=matrix):
            return replace(unit, matrix=_matrix(node, matrix, steps))
        case Crop():
            return _crop(node, unit, source.beats)
        case RescaleUnit() | FloatUnit() if source.beats % len(unit.table) == 0:
            return unit
        case Reorder() if source.beats % unit.block == 0:
            return unit
        case ConcatBeats() if result.beats % sum(unit.beats) == 0:
            return unit
        case WidthConverter() | FloatKeyUnit() | Fork() | JoinStreams() | ConcatChannels() | SelectLanes():
            return unit
        case _:
            raise _across(node)


def _matrix(node: Node, unit: MatVec, steps: int) -> MatVec:
    if unit.vectors % steps:
        raise _across(node)
    return replace(unit, vectors=unit.vectors // steps)


def _crop(node: Node, unit: Crop, beats: int) -> Crop:
    """The slice of a step. Axes outside of it are steps, of which all are kept."""
    sizes, cuts = list(unit.sizes), [unit.rows, unit.columns, unit.beats]
    for axis in range(3):
        inside = sizes[0] * sizes[1] * sizes[2]
        if beats % inside == 0:
            break
        more = inside // beats if inside % beats == 0 else 0
        size = sizes[axis]
        fewer = max(1, size // more) if more else 0
        if not fewer or size % fewer or cuts[axis] != (0, size, 1):
            raise _across(node)
        sizes[axis], cuts[axis] = fewer, (0, fewer, 1)
    return Crop((sizes[0], sizes[1], sizes[2]), *cuts)


def _across(node: Node) -> HlsgenError:
    return fail(
        "HG040", "--recurrence", f"once: {node.layer or node.name} works on several steps at once, which C++ cannot.",
        "Build with --recurrence unrolled, or --target verilog.",
    )  # fmt: skip
