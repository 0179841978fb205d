"""Chooses the process of every kind of unit: the one place of the cycle model that knows the units.

A new unit needs a row in `traits`, `busy`, `exact` and `least`. mypy reports each one that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from typing_extensions import assert_never

from hlsgen.cycle_model import least_processes, processes, run_buffers, run_norms, run_processes
from hlsgen.cycle_model.line_buffers import Buffer, matrix, runs_of, windows, words_of
from hlsgen.cycle_model.move_cache import MoveCache
from hlsgen.cycle_model.processes import ENDLESS, Process, Wire
from hlsgen.cycle_model.run_processes import Machine
from hlsgen.cycle_model.runs import Pattern, Runs
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
    Unit,
    WidthConverter,
    WindowUnit,
)

#: Cycles from the beat that completes an output beat to that output beat, as the target has it. Of units with a
#: window, of Reorder and SoftmaxUnit: from the cycle in which the last word of it is read.
Latency = Callable[[Unit], int]
#: The process of a node between its wires, and its memory if it keeps words of a window; True: the input port.
Processes = Callable[[Node, Sequence[Wire], Sequence[Wire], bool], tuple[Process, Buffer | None]]


def room(unit: Unit) -> int:
    """Words for which the memory of the unit has room; 0 if no depth is chosen for it."""
    return unit.depth if isinstance(unit, Fifo | WindowUnit) else 0


@dataclass(frozen=True)
class TimingModel:
    """What to simulate: beat by beat, and in runs of beats.

    `machine`: the same as `process`, of a node; True: the input port. `unlimited`: FIFOs and the memories of windows
    have room for everything. `enables`: units stand still as their traits say; else only those with windows do.
    `holds`: the most input beats that are in a unit at a time; what it does next follows from when they came.
    `cache`: results of machines so far, in all simulations of this model.
    """

    process: Processes
    machine: Callable[[Node, bool], Machine]
    unlimited: bool = False
    enables: bool = True
    holds: Callable[[Unit], int] = room
    cache: MoveCache = field(default_factory=MoveCache)


@dataclass(frozen=True)
class Traits:
    """How a unit moves its beats. A joined one is in the pipeline of its taker, and lets beats through at once by itself.

    `enable`: the unit stands still, with all that is in it, while the beat that it offers waits.
    `even`: a FIFO in front of the unit does not help, since one behind it does as well or it has its own memory.
    """

    enable: bool
    even: bool


def traits(unit: Unit) -> Traits:
    """The traits of a unit. Which of the ports stands still is said in wiring.py."""
    match unit:
        case Port() | Fifo() | Slice() | WidthConverter() | Fork():
            return Traits(enable=False, even=True)
        case AdderMatVec(joined=True):
            return Traits(enable=False, even=True)
        case FloatKeyUnit() | RescaleUnit() | FloatUnit() | AdderMatVec() | ConvUnit() | PoolUnit() | SlidingWindow():
            return Traits(enable=True, even=True)
        case MatVec() | DynamicMatVec() | GroupedMatVec() | TiledPool() | ReduceTree() | ArgMaxUnit():
            return Traits(enable=True, even=False)
        case JoinStreams() | ConcatChannels() | Reorder() | RowsUnit() | SoftmaxUnit():
            return Traits(enable=True, even=False)
        case NormMoments() | NormScale():
            return Traits(enable=True, even=False)
        case ConcatBeats() | SelectLanes() | Crop() | PadBorder() | NormRoot():
            return Traits(enable=False, even=False)
        case _:
            assert_never(unit)


def busy(node: Node) -> int:
    """The least number of cycles that a frame occupies the node."""
    unit = node.unit
    beats = max(*(source.beats for source in node.sources), node.result.beats)
    match unit:
        case MatVec():
            return max(beats, -(-unit.vectors // unit.windows) * unit.folds)
        case ConvUnit() | PoolUnit():
            height, width = unit.window.size(unit.height, unit.width)
            return max(beats, height * width * unit.period)
        case Port(bus):
            return beats if bus is None else max(beats, bus.words)
        case SoftmaxUnit():
            return beats
        case FloatKeyUnit() | WidthConverter() | RescaleUnit() | FloatUnit() | Fork() | Fifo() | Reorder() | RowsUnit():
            return beats
        case SlidingWindow() | TiledPool() | AdderMatVec() | GroupedMatVec() | ReduceTree() | ArgMaxUnit() | Slice():
            return beats
        case JoinStreams() | ConcatBeats() | ConcatChannels() | SelectLanes() | Crop() | PadBorder() | DynamicMatVec():
            return beats
        case NormMoments() | NormScale():
            return beats
        case NormRoot():
            return max(beats, beats * (unit.cycles + 1) // unit.rows_in_flight)
        case _:
            assert_never(unit)


def exact(latency: Latency, *, unlimited: bool = False) -> TimingModel:
    """The model in which every beat moves in the cycle in which the RTL moves it."""

    def process(node: Node, ins: Sequence[Wire], outs: Sequence[Wire], first: bool) -> tuple[Process, Buffer | None]:
        unit = node.unit
        if isinstance(unit, WindowUnit):
            needs, keeps, words = words_of(unit)
            buffer = Buffer(needs, keeps, words, ENDLESS if unlimited else unit.depth, unit.period)
            step = step_of(unit)
            return windows(ins[0], outs[0], buffer, step - 1 + latency(unit), step), buffer
        return _exact(node, ins, outs, first, latency, unlimited), None

    def machine(node: Node, first: bool) -> Machine:
        return in_runs(node.unit, (node.source, node.result), latency, unlimited=unlimited, first=first)

    def holds(unit: Unit) -> int:
        match unit:
            case MatVec():
                own = 2 * unit.col_folds
            case Reorder():
                own = 2 * unit.block
            case RowsUnit() | SoftmaxUnit():
                own = 2 * unit.beats
            case RescaleUnit(ahead=ahead):
                own = ahead
            case _:
                own = 0 if unlimited else room(unit)
        return own + latency(unit)

    return TimingModel(process, machine, unlimited, holds=holds)


def step_of(unit: WindowUnit) -> int:
    """Words that are read for a beat."""
    match unit:
        case ConvUnit():
            return unit.window.taps * unit.folds
        case PoolUnit():
            return unit.window.taps
        case SlidingWindow():
            return 1
        case _:
            assert_never(unit)


def _exact(
    node: Node, ins: Sequence[Wire], outs: Sequence[Wire], first: bool, latency: Latency, unlimited: bool
) -> Process:
    unit, (wire, *more), (result, *others) = node.unit, ins, outs
    assert not isinstance(unit, WindowUnit)
    match unit:
        case Port(early=early) if early == first:
            return processes.fifo(wire, result, 2)
        case Slice():
            return processes.fifo(wire, result, unit.depth)
        case Fifo():
            return processes.fifo(wire, result, ENDLESS if unlimited else unit.depth)
        case AdderMatVec(joined=True):
            return processes.route([wire], result, [0])
        case RescaleUnit(ahead=ahead):
            return processes.pipeline(wire, result, ahead + latency(unit))
        case Port() | FloatKeyUnit() | FloatUnit() | AdderMatVec() | GroupedMatVec() | ReduceTree():
            return processes.pipeline(wire, result, latency(unit))
        case ArgMaxUnit():
            return processes.pipeline(wire, result, latency(unit), [False] * (unit.beats - 1) + [True])
        case TiledPool():
            return processes.pipeline(wire, result, latency(unit), processes.completing_beats(unit))
        case NormMoments():
            return processes.pipeline(wire, result, latency(unit), [False] * (unit.beats - 1) + [True])
        case NormRoot():
            return processes.fifo(wire, result, unit.rows_in_flight, latency(unit))
        case NormScale():
            return processes.join(wire, more[0], result, latency(unit), beats_per_second=unit.beats)
        case JoinStreams() | ConcatChannels():
            return processes.join(wire, more[0], result, latency(unit))
        case DynamicMatVec():
            return processes.join(wire, more[0], result, latency(unit), _summed(unit))
        case WidthConverter():
            return processes.width(wire, result, *processes.width_beats(node.source, node.result))
        case MatVec():
            return matrix(wire, result, unit.col_folds, unit.row_folds, latency(unit) - 2)
        case Reorder():
            period = math.prod(extent for extent, _ in unit.loops)
            buffer = Buffer([unit.block - 1], [0], unit.block, 2 * unit.block, period)
            return windows(wire, result, buffer, latency(unit), 1)
        case RowsUnit(beats=beats):
            return windows(wire, result, Buffer([beats - 1], [0], beats, 2 * beats, beats, unit.lag), latency(unit), 1)
        case SoftmaxUnit(beats=beats):
            return windows(wire, result, Buffer([beats - 1], [0], beats, 2 * beats, beats), latency(unit), 1)
        case Fork():
            return processes.fork(wire, [result, *others])
        case ConcatBeats():
            return processes.route([wire, *more], result, [0] * unit.beats[0] + [1] * unit.beats[1])
        case SelectLanes():
            return processes.route([wire], result, [0])
        case Crop():
            return processes.take(wire, result, processes.kept_beats(unit))
        case PadBorder():
            return processes.route([wire], result, processes.pad_beats(unit))
        case _:
            assert_never(unit)


def in_runs(unit: Unit, streams: tuple[Stream, Stream], latency: Latency, *, unlimited: bool, first: bool) -> Machine:
    """What `exact` gives, for whole runs of beats. `streams`: the first one that the unit takes, the one it sends."""
    match unit:
        case Port(early=early) if early == first:
            return run_processes.fifo(2)
        case Slice():
            return run_processes.fifo(unit.depth)
        case Fifo():
            return run_processes.fifo(ENDLESS if unlimited else unit.depth)
        case AdderMatVec(joined=True):
            return run_processes.route(Pattern([0]), 1)
        case RescaleUnit(ahead=ahead):
            return run_processes.pipeline(ahead + latency(unit), Pattern([1]))
        case Port() | FloatKeyUnit() | FloatUnit() | AdderMatVec() | GroupedMatVec() | ReduceTree():
            return run_processes.pipeline(latency(unit), Pattern([1]))
        case JoinStreams() | ConcatChannels():
            return run_processes.pipeline(latency(unit), Pattern([1]))
        case DynamicMatVec():
            return run_processes.pipeline(latency(unit), Pattern(_summed(unit)))
        case ArgMaxUnit():
            return run_processes.pipeline(latency(unit), Pattern([0] * (unit.beats - 1) + [1]))
        case TiledPool():
            return run_processes.pipeline(latency(unit), _completing(unit))
        case NormMoments():
            return run_processes.pipeline(latency(unit), Pattern([0] * (unit.beats - 1) + [1]))
        case NormRoot():
            return run_norms.root(unit.rows_in_flight, latency(unit))
        case NormScale():
            return run_norms.rows(latency(unit), unit.beats)
        case WidthConverter():
            return run_processes.width(*processes.width_beats(*streams))
        case MatVec():
            return run_buffers.matrix(unit.col_folds, unit.row_folds, latency(unit) - 2)
        case ConvUnit() | PoolUnit() | SlidingWindow():
            memory = run_processes.Memory(*runs_of(unit), ENDLESS if unlimited else unit.depth, unit.period)
            step = step_of(unit)
            return run_buffers.windows(memory, step - 1 + latency(unit), step)
        case Reorder():
            period = math.prod(extent for extent, _ in unit.loops)
            needs, keeps = Runs.of([unit.block - 1]), Runs.of([0])
            memory = run_processes.Memory(needs, keeps, unit.block, 2 * unit.block, period)
            return run_buffers.windows(memory, latency(unit), 1)
        case RowsUnit(beats=beats):
            memory = run_processes.Memory(Runs.of([beats - 1]), Runs.of([0]), beats, 2 * beats, beats)
            return run_buffers.windows(memory, latency(unit), 1, unit.lag)
        case SoftmaxUnit(beats=beats):
            memory = run_processes.Memory(Runs.of([beats - 1]), Runs.of([0]), beats, 2 * beats, beats)
            return run_buffers.windows(memory, latency(unit), 1)
        case Fork():
            return run_processes.fork
        case ConcatBeats():
            return run_processes.route(Pattern([0] * unit.beats[0] + [1] * unit.beats[1]), 2)
        case SelectLanes():
            return run_processes.route(Pattern([0]), 1)
        case Crop():
            return run_processes.take(_kept(unit))
        case PadBorder():
            return run_processes.route(_padded(unit), 1)
        case _:
            assert_never(unit)


def _summed(unit: DynamicMatVec) -> list[bool]:
    """For each beat of a sum: whether it completes it."""
    return [False] * (unit.folds - 1) + [True]


@lru_cache(maxsize=1024)
def _completing(unit: TiledPool) -> Pattern:
    return Pattern(processes.completing_beats(unit))


@lru_cache(maxsize=1024)
def _kept(unit: Crop) -> Pattern:
    return Pattern(processes.kept_beats(unit))


@lru_cache(maxsize=1024)
def _padded(unit: PadBorder) -> Pattern:
    return Pattern(processes.pad_beats(unit))


def least() -> TimingModel:
    """The model in which every unit holds as few beats as it ever does. Its times say only what comes before what."""
    return TimingModel(
        lambda node, ins, outs, first: (_least(node, ins, outs, first), None),
        lambda node, first: _least_in_runs(node.unit, (node.source, node.result), first),
        enables=False,
    )


def _least(node: Node, ins: Sequence[Wire], outs: Sequence[Wire], first: bool) -> Process:
    unit, (wire, *more), result = node.unit, ins, outs[0]
    match unit:
        case Port(early=early) if early == first:
            return processes.fifo(wire, result, 2)
        case Slice():
            return processes.fifo(wire, result, unit.depth)
        case AdderMatVec(joined=True):
            return processes.route([wire], result, [0])
        case Port() | FloatKeyUnit() | RescaleUnit() | FloatUnit() | AdderMatVec() | GroupedMatVec() | ReduceTree():
            return least_processes.single([wire], result, [True])
        case JoinStreams() | ConcatChannels():
            return least_processes.single([wire, *more], result, [True])
        case DynamicMatVec():
            return least_processes.single([wire, *more], result, _summed(unit))
        case ArgMaxUnit():
            return least_processes.single([wire], result, [False] * (unit.beats - 1) + [True])
        case TiledPool():
            return least_processes.single([wire], result, processes.completing_beats(unit))
        case NormMoments():
            return least_processes.single([wire], result, [False] * (unit.beats - 1) + [True])
        case NormRoot():
            return least_processes.single([wire], result, [True])
        case NormScale():
            return least_processes.rows(wire, more[0], result, unit.beats)
        case MatVec() if unit.row_folds == 1:
            return least_processes.sums(wire, result, unit.col_folds)
        case MatVec():
            length = unit.col_folds
            return least_processes.blocks(wire, result, [length - 1], [0], length, 2 * length, unit.row_folds)
        case Reorder():
            count = math.prod(extent for extent, _ in unit.loops)
            return least_processes.blocks(wire, result, [unit.block - 1], [0], unit.block, 2 * unit.block, count)
        case RowsUnit(beats=beats) | SoftmaxUnit(beats=beats):
            return least_processes.blocks(wire, result, [beats - 1], [0], beats, 2 * beats, beats)
        case ConvUnit() | PoolUnit() | SlidingWindow():
            count = unit.groups * unit.repeat if isinstance(unit, ConvUnit) else unit.folds
            return least_processes.blocks(wire, result, *words_of(unit), unit.depth, count)
        case Fifo() | WidthConverter() | Fork() | ConcatBeats() | SelectLanes() | Crop() | PadBorder():
            return _exact(node, ins, outs, first, _no_latency, unlimited=False)
        case _:
            assert_never(unit)


def _least_in_runs(unit: Unit, streams: tuple[Stream, Stream], first: bool) -> Machine:
    """A unit that holds as few beats as that of `_least`, or fewer: what gets through here gets through there."""
    match unit:
        case Port(early=early) if early == first:
            return run_processes.fifo(2, 0)
        case Slice():
            return run_processes.fifo(unit.depth, 0)
        case Fifo():
            return run_processes.fifo(unit.depth, 0)
        case AdderMatVec(joined=True):
            return run_processes.route(Pattern([0]), 1)
        case Port() | FloatKeyUnit() | RescaleUnit() | FloatUnit() | AdderMatVec() | GroupedMatVec() | ReduceTree():
            return run_processes.hold(Pattern([1]))
        case JoinStreams() | ConcatChannels():
            return run_processes.hold(Pattern([1]))
        case DynamicMatVec():
            return run_processes.hold(Pattern(_summed(unit)))
        case ArgMaxUnit():
            return run_processes.hold(Pattern([0] * (unit.beats - 1) + [1]))
        case TiledPool():
            return run_processes.hold(_completing(unit))
        case NormMoments():
            return run_processes.hold(Pattern([0] * (unit.beats - 1) + [1]))
        case NormRoot():
            return run_processes.hold(Pattern([1]))
        case NormScale():
            return run_norms.rows(0, unit.beats)
        case MatVec() if unit.row_folds == 1:
            return run_processes.hold(Pattern([0] * (unit.col_folds - 1) + [1]))
        case MatVec():
            length = unit.col_folds
            return _blocks_in_runs(Runs.of([length - 1]), Runs.of([0]), length, 2 * length, unit.row_folds)
        case Reorder():
            count = math.prod(extent for extent, _ in unit.loops)
            return _blocks_in_runs(Runs.of([unit.block - 1]), Runs.of([0]), unit.block, 2 * unit.block, count)
        case RowsUnit(beats=beats) | SoftmaxUnit(beats=beats):
            return _blocks_in_runs(Runs.of([beats - 1]), Runs.of([0]), beats, 2 * beats, beats)
        case ConvUnit() | PoolUnit() | SlidingWindow():
            count = unit.groups * unit.repeat if isinstance(unit, ConvUnit) else unit.folds
            return _blocks_in_runs(*runs_of(unit), unit.depth, count)
        case WidthConverter() | Fork() | ConcatBeats() | SelectLanes() | Crop() | PadBorder():
            return in_runs(unit, streams, _no_latency, unlimited=False, first=first)
        case _:
            assert_never(unit)


def _blocks_in_runs(needs: Runs, keeps: Runs, words: int, depth: int, count: int) -> Machine:
    return run_buffers.windows(run_processes.Memory(needs, keeps, words, depth, count), 0, 1)


def _no_latency(unit: Unit) -> int:
    raise AssertionError(f"{unit} has no pipeline")
