"""Depths of the streams between processes with which a core cannot come to a deadlock.

A process of the C++ library stands still while a stream that it writes is full: it takes nothing meanwhile, whatever room
it has inside. So what is enough in Verilog, whose line buffers go on taking, need not be enough here.

Here every process reads a beat only when the next one that it sends needs it. Those of the library may read earlier, which
stops no other. Nothing decides anything by the data: what comes through here comes through at any pace. In a loop
no process begins a step before all of them have ended the one before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from typing_extensions import assert_never

from hlsgen.cycle_model.line_buffers import words_of
from hlsgen.cycle_model.processes import completing_beats, pad_beats
from hlsgen.dataflow.units import (
    AdderMatVec,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    DynamicMatVec,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    NormMoments,
    NormRoot,
    NormScale,
    PadBorder,
    PoolUnit,
    Port,
    ReduceTree,
    Reorder,
    RescaleUnit,
    RowsUnit,
    SelectLanes,
    Slice,
    SlidingWindow,
    SoftmaxUnit,
    Stream,
    TiledPool,
    WidthConverter,
    WindowUnit,
)
from hlsgen.hls.loops import Circle, circles_of, in_front_of_fifos, of_step
from hlsgen.numerics.fixed import Array

#: Frames after which every process has begun a frame while others are at the one before.
_FRAMES = 3


def needs(node: Node) -> list[Array]:
    """For each input and beat that the process sends in a frame: how many beats it has read then. int64 (beats,)."""
    unit, source, result = node.unit, node.source, node.result
    beat: Array = np.arange(result.beats)
    match unit:
        case Port() | Fifo() | Slice():
            raise AssertionError("ports, FIFOs and slices are no processes")
        case FloatKeyUnit() | RescaleUnit() | FloatUnit() | GroupedMatVec() | ReduceTree() | Fork() | SelectLanes():
            return [beat + 1]
        case JoinStreams() | ConcatChannels():
            return [beat + 1, beat + 1]
        case DynamicMatVec():
            return [(beat + 1) * unit.folds] * 2
        case WidthConverter():
            return [_containing(source, _last_elements(result))]
        case MatVec() | AdderMatVec():
            matrix = unit if isinstance(unit, MatVec) else unit.matrix
            return [(beat // matrix.row_folds + 1) * matrix.col_folds]
        case ConvUnit():
            return [_windows(unit)[beat // (unit.groups * unit.repeat)]]
        case PoolUnit() | SlidingWindow():
            return [_windows(unit)[beat // unit.folds]]
        case TiledPool():
            return [np.flatnonzero(completing_beats(unit)) + 1]
        case ConcatBeats((first, second)):
            turn, place = np.divmod(beat, first + second)
            ahead = np.minimum(place + 1, first)
            return [turn * first + ahead, turn * second + place + 1 - ahead]
        case Crop():
            kept = np.zeros(unit.sizes, bool)
            kept[tuple(slice(*cut) for cut in (unit.rows, unit.columns, unit.beats))] = True
            return [np.flatnonzero(kept) + 1]
        case PadBorder():
            return [np.cumsum(np.array(pad_beats(unit)) == 0)]
        case Reorder():
            return [(beat // math.prod(extent for extent, _ in unit.loops) + 1) * unit.block]
        case RowsUnit() | SoftmaxUnit():
            return [(beat // unit.beats + 1) * unit.beats]
        case ArgMaxUnit() | NormMoments():
            return [(beat + 1) * unit.beats]
        case NormRoot():
            return [beat + 1]
        case NormScale():
            return [beat + 1, beat // unit.beats + 1]
        case _:
            assert_never(unit)


def _windows(unit: WindowUnit) -> Array:
    """How many words have come with the last one that a window, or one before it, needs."""
    return np.asarray(np.maximum.accumulate(np.array(words_of(unit)[0])) + 1)


def _last_elements(stream: Stream) -> Array:
    """The number of the last element of each beat of a frame."""
    group, place = np.divmod(np.arange(stream.beats), stream.group_beats)
    return np.asarray(group * stream.group + np.minimum((place + 1) * stream.lanes, stream.group) - 1)


def _containing(stream: Stream, elements: Array) -> Array:
    """How many beats have come with the one that has that element."""
    group, place = np.divmod(elements, stream.group)
    return np.asarray(group * stream.group_beats + place // stream.lanes + 1)


def room_for_next(node: Node) -> int:
    """Beats that wait in front of a process while it sends again and again what it has read: the next vector, or the
    block of the next frame. Without them the process in front would stand still meanwhile."""
    unit = node.unit
    if isinstance(unit, MatVec) and unit.row_folds > 1:
        return unit.col_folds
    if isinstance(unit, Reorder) and unit.block == node.source.beats:
        return unit.block
    return 0


@dataclass(eq=False)
class _Loop:
    """Processes that begin a step together. `initial`: those that read the initial states of a frame, before its first step."""

    steps: int
    initial: list[_Process] = field(default_factory=list)
    members: list[_Process] = field(default_factory=list)

    def waits_for(self, process: _Process) -> _Process | None:
        """The process that must be further before this one begins its next step, or frame."""
        begun = process.calls
        if process in self.initial:
            begun *= self.steps
        elif late := next((p for p in self.initial if p.calls * self.steps <= begun), None):
            return late
        return next((p for p in self.members if p.calls < begun), None)


@dataclass(eq=False)
class _Process:
    """What a process has done. It is called `frames` times, and sends `count` beats each time.

    `wanted`: its `needs`. `beats`: of a call, of each input. `reads`, `sent`: beats so far.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    wanted: list[list[int]]
    beats: list[int]
    count: int
    frames: int = _FRAMES
    loop: _Loop | None = None
    sent: int = 0

    def __post_init__(self) -> None:
        self.reads = [0] * len(self.inputs)

    @property
    def calls(self) -> int:
        """How often it has sent all its beats."""
        return self.sent // self.count


class _Run:
    """Frames on their way through processes between streams of so many beats, as far as they get."""

    def __init__(self, nodes: Sequence[Node], depths: Mapping[str, int]) -> None:
        self.depths = dict(depths)
        self.front = in_front_of_fifos(nodes)
        self.processes: list[_Process] = []
        self.writer: dict[str, _Process] = {}
        self.reader: dict[str, _Process] = {}
        self.bits = {wire: node.result.bits for node in nodes for wire in node.outputs}
        circles = circles_of(nodes)
        inside = {node for circle in circles for node in circle.nodes}
        for node in nodes:
            if not (isinstance(node.unit, Port | Fifo | Slice) or node in inside):
                self._add(self._of(node))
        for circle in circles:
            self._loop(circle)
        self.written = dict.fromkeys(self.writer, 0)
        self.taken = dict.fromkeys(self.reader, 0)

    def _of(self, node: Node) -> _Process:
        inputs = [self.front.get(wire, wire) for wire in node.inputs]
        lists = [wanted.tolist() for wanted in needs(node)]
        return _Process(inputs, node.outputs, lists, [s.beats for s in node.sources], len(lists[0]))

    def _loop(self, circle: Circle) -> None:
        """The processes of a loop: called for each step, but for those that read the initial states."""
        loop, steps = _Loop(circle.steps), circle.steps * _FRAMES
        joints = {state.joint: state for state in circle.states}
        ends = {state.rows: state for state in circle.states}
        for node in circle.nodes:
            if node in joints:
                beats, wire = node.result.beats // circle.steps, joints[node].initial
                loop.initial.append(_Process([wire], [], [[beats]], [beats], 1, loop=loop))
                self._add(loop.initial[-1])
                process = _Process([], node.outputs, [], [], beats)
            elif node in ends:
                beats = node.source.beats // circle.steps
                inputs = [self.front.get(wire, wire) for wire in node.inputs]
                process = _Process(inputs, [], [list(range(1, beats + 1))], [beats], beats)
            else:
                process = self._of(of_step(node, circle.steps))
            process.frames, process.loop = steps, loop
            loop.members.append(process)
            self._add(process)

    def _add(self, process: _Process) -> None:
        self.processes.append(process)
        self.writer.update(dict.fromkeys(process.outputs, process))
        self.reader.update(dict.fromkeys(process.inputs, process))

    def stop(self, process: _Process) -> str | _Process:
        """Goes on with a process until it waits, and gives what for: a stream, or another process; "" if it is at its end."""
        while True:
            frame, place = divmod(process.sent, process.count)
            if place == 0:
                # What is left of a frame is read before the next one.
                if wire := self._read(process, frame, None):
                    return wire
                if frame == process.frames:
                    return ""
                if process.loop and (late := process.loop.waits_for(process)):
                    return late
            if wire := self._read(process, frame, place):
                return wire
            for wire in process.outputs:
                if self.full(wire):
                    return wire
            for wire in process.outputs:
                self.written[wire] += 1
            process.sent += 1

    def _read(self, process: _Process, frame: int, place: int | None) -> str:
        """Reads what a beat of a call needs, or all of the calls before. Gives a stream that has less."""
        for n, wire in enumerate(process.inputs):
            want = frame * process.beats[n] + (0 if place is None else process.wanted[n][place])
            if process.reads[n] < want:
                there = min(want, self.written[wire]) if wire in self.writer else want
                process.reads[n] = self.taken[wire] = there
                if there < want:
                    return wire
        return ""

    def full(self, wire: str) -> bool:
        return wire in self.reader and self.written[wire] - self.taken[wire] >= self.depths[wire]

    def run(self) -> None:
        """Until every process has sent its frames. A stream that keeps processes waiting in a circle gets deeper."""
        waits: dict[int, str | _Process] = {}
        ready = list(self.processes)
        while True:
            while ready:
                process = ready.pop()
                before = (process.sent, *process.reads)
                waits[id(process)] = self.stop(process)
                if (process.sent, *process.reads) != before:
                    ready += [self.writer[wire] for wire in process.inputs if wire in self.writer]
                    ready += [self.reader[wire] for wire in process.outputs if wire in self.reader]
                    ready += [*process.loop.initial, *process.loop.members] if process.loop else []
            stuck = next((process for process in self.processes if waits[id(process)]), None)
            if stuck is None:
                return
            wire = self._in_circle(stuck, waits)
            self.depths[wire] += 1
            ready.append(self.writer[wire])

    def _in_circle(self, process: _Process, waits: Mapping[int, str | _Process]) -> str:
        """Of the full streams in the circle in which a process waits, the one with the narrowest beats."""
        seen: list[_Process] = []
        while process not in seen:
            seen.append(process)
            what = waits[id(process)]
            if isinstance(what, str):
                process = self.writer[what] if what in process.inputs else self.reader[what]
            else:
                process = what
        circle = seen[seen.index(process) :]
        full = [what for p in circle if isinstance(what := waits[id(p)], str) and what in p.outputs]
        return min(full, key=lambda wire: self.bits[wire])


def safe_depths(nodes: Sequence[Node], depths: Mapping[str, int]) -> dict[str, int]:
    """Streams in front of FIFOs, and all others, with the least depths from `depths` on that let every frame through."""
    if not any(len(node.inputs) > 1 for node in nodes):
        return dict(depths)  # nothing waits in a circle
    run = _Run(nodes, depths)
    run.run()
    return run.depths
