"""Depths of the streams between processes with which a core cannot come to a deadlock.

A process of the C++ library stands still while a stream that it writes is full: it takes nothing meanwhile, whatever room
it has inside. So what is enough in Verilog, whose line buffers go on taking, need not be enough here.

Here every process reads a beat only when the next one that it sends needs it. Those of the library may read earlier, which
stops no other. Nothing decides anything by the data: what comes through here comes through at any pace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def in_front_of_fifos(nodes: Sequence[Node]) -> dict[str, str]:
    """Of each stream behind a FIFO or slice the one in front of it: they are one stream of C++, as deep as both."""
    front: dict[str, str] = {}
    for node in nodes:
        if isinstance(node.unit, Fifo | Slice):
            front[node.outputs[0]] = front.get(node.inputs[0], node.inputs[0])
    return front


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
class _Process:
    """What a process has done. `wanted`: its `needs`. `beats`: of a frame, of each input. `reads`, `sent`: beats so far."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    wanted: list[list[int]]
    beats: list[int]
    reads: list[int]
    sent: int = 0


class _Run:
    """Frames on their way through processes between streams of so many beats, as far as they get."""

    def __init__(self, nodes: Sequence[Node], depths: Mapping[str, int]) -> None:
        self.depths = dict(depths)
        front = in_front_of_fifos(nodes)
        self.processes: list[_Process] = []
        self.writer: dict[str, _Process] = {}
        self.reader: dict[str, _Process] = {}
        self.bits: dict[str, int] = {}
        for node in nodes:
            if isinstance(node.unit, Port | Fifo | Slice):
                continue
            inputs = [front.get(wire, wire) for wire in node.inputs]
            lists = [wanted.tolist() for wanted in needs(node)]
            process = _Process(inputs, node.outputs, lists, [s.beats for s in node.sources], [0] * len(lists))
            self.processes.append(process)
            self.writer.update(dict.fromkeys(node.outputs, process))
            self.reader.update(dict.fromkeys(inputs, process))
            self.bits.update(dict.fromkeys(node.outputs, node.result.bits))
        self.written = dict.fromkeys(self.writer, 0)
        self.taken = dict.fromkeys(self.reader, 0)

    def stop(self, process: _Process) -> str:
        """Goes on with a process until it waits, and gives the stream that it waits for; "" if it is at its end."""
        per_frame = len(process.wanted[0])
        while True:
            frame, place = divmod(process.sent, per_frame)
            for n, wire in enumerate(process.inputs):
                # What is left of a frame is read before the next one.
                want = frame * process.beats[n] + (process.wanted[n][place] if frame < _FRAMES else 0)
                if process.reads[n] < want:
                    there = min(want, self.written[wire]) if wire in self.writer else want
                    process.reads[n] = self.taken[wire] = there
                    if there < want:
                        return wire
            if frame == _FRAMES:
                return ""
            for wire in process.outputs:
                if self.full(wire):
                    return wire
            for wire in process.outputs:
                self.written[wire] += 1
            process.sent += 1

    def full(self, wire: str) -> bool:
        return wire in self.reader and self.written[wire] - self.taken[wire] >= self.depths[wire]

    def run(self) -> None:
        """Until every process has sent its frames. A stream that keeps processes waiting in a circle gets deeper."""
        waits: dict[int, str] = {}
        ready = list(self.processes)
        while True:
            while ready:
                process = ready.pop()
                before = (process.sent, *process.reads)
                waits[id(process)] = self.stop(process)
                if (process.sent, *process.reads) != before:
                    ready += [self.writer[wire] for wire in process.inputs if wire in self.writer]
                    ready += [self.reader[wire] for wire in process.outputs if wire in self.reader]
            stuck = next((process for process in self.processes if waits[id(process)]), None)
            if stuck is None:
                return
            wire = self._in_circle(stuck, waits)
            self.depths[wire] += 1
            ready.append(self.writer[wire])

    def _in_circle(self, process: _Process, waits: Mapping[int, str]) -> str:
        """Of the full streams in the circle in which a process waits, the one with the narrowest beats."""
        seen: list[_Process] = []
        while process not in seen:
            seen.append(process)
            wire = waits[id(process)]
            process = self.writer[wire] if wire in process.inputs else self.reader[wire]
        circle = seen[seen.index(process) :]
        full = [waits[id(p)] for p in circle if waits[id(p)] in p.outputs]
        return min(full, key=lambda wire: self.bits[wire])


def safe_depths(nodes: Sequence[Node], depths: Mapping[str, int]) -> dict[str, int]:
    """Streams in front of FIFOs, and all others, with the least depths from `depths` on that let every frame through."""
    if not any(len(node.inputs) > 1 for node in nodes):
        return dict(depths)  # nothing waits in a circle
    run = _Run(nodes, depths)
    run.run()
    return run.depths
