"""How each unit moves its beats, stated once: ten flows, which all models of time and buffering interpret.

A flow says which input beats lead to an output beat, and which input beats the unit stores. It has no latency: a target
adds that. `cycle_model.timing_models` interprets the ten flows to the cycle, for runs of beats, and as lower bounds of
the stored beats. `needed_beats` counts the input beats of every output beat, for the depths of FIFOs in both targets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow import units
from hlsgen.dataflow.ends import enters
from hlsgen.ir.window import Window
from hlsgen.numerics.fixed import Array


@dataclass(frozen=True, eq=False)
class PipelineFlow:
    """A pipeline with an enable that consumes a beat of every input in the same cycle.

    `emits` marks the input beats of a period that lead to an output beat. `delay`: enabled cycles in addition to the
    latency of the unit.
    """

    emits: Sequence[bool] = (True,)
    delay: int = 0


@dataclass(frozen=True, eq=False)
class JoinFlow:
    """A pipeline with an enable and two inputs that emits a beat for each beat of the first input.

    A beat of the second input is used with `beats_per_second` beats of the first, and consumed with the last of them.
    """

    beats_per_second: int


@dataclass(frozen=True, eq=False)
class QueueFlow:
    """A queue of `depth` beats.

    `sized`: the depth is chosen when FIFOs are sized. `delayed`: a beat stays for the latency of the unit, and
    only one beat is certain to fit.
    """

    depth: int
    sized: bool = False
    delayed: bool = False


@dataclass(frozen=True)
class WordWindows:
    """Windows on images of height x width pixels, each of `folds` words."""

    window: Window
    height: int
    width: int
    folds: int

    @property
    def words(self) -> int:
        """Words of an image."""
        return self.height * self.width * self.folds

    @property
    def last_rows(self) -> list[int]:
        """For each row of windows, the last row of the image that they use."""
        count, step = self.window.size(self.height, self.width)[0], self.window.strides[0]
        below = self.window.reach[0] - 1 - self.window.pads[0]
        return [min(max(row * step + below, 0), self.height - 1) for row in range(count)]

    @property
    def last_words(self) -> list[int]:
        """For each column of windows, the last word of a row of the image that they use."""
        count, step = self.window.size(self.height, self.width)[1], self.window.strides[1]
        right = self.window.reach[1] - 1 - self.window.pads[1]
        return [(min(max(column * step + right, 0), self.width - 1) + 1) * self.folds - 1 for column in range(count)]


@dataclass(frozen=True, eq=False)
class BufferFlow:
    """A memory of `depth` words from which a unit with an enable reads windows in sequence.

    A window takes `period` enabled cycles and emits a beat every `step` of them. It starts at least `lag` cycles after
    its last word is stored. `sized`: the depth is chosen when FIFOs are sized.
    """

    windows: WordWindows
    depth: int
    period: int
    step: int = 1
    lag: int = 0
    sized: bool = False

    @property
    def beats(self) -> int:
        """Beats that a window emits."""
        return self.period // self.step


@dataclass(frozen=True, eq=False)
class ReplayFlow:
    """Vectors of `length` beats, each read `repeat` times by a unit with an enable; a pass emits one beat."""

    length: int
    repeat: int


@dataclass(frozen=True, eq=False)
class RegroupFlow:
    """Elements in other beats: `enters` and `leaves` are the numbers of elements of the beats of a period.

    It consumes beat k of a period while it stores at most rooms[k] elements.
    """

    enters: Sequence[int]
    leaves: Sequence[int]
    rooms: Sequence[int]


@dataclass(frozen=True, eq=False)
class RouteFlow:
    """Beats of the inputs in the periodic order `order`, without delay; the unit generates the beats with -1.

    The first beat of a period waits for a beat of the first input, even if the unit generates it.
    """

    order: Sequence[int]


@dataclass(frozen=True, eq=False)
class KeepFlow:
    """The beats of a period that `keeps` marks, without delay; the others are dropped."""

    keeps: Sequence[bool]


@dataclass(frozen=True, eq=False)
class ForkFlow:
    """Every beat on each output, consumed there in different cycles."""


@dataclass(frozen=True, eq=False)
class StateFlow:
    """A memory for `beats` beats between frames.

    Frame n takes the beats of frame n - 1 at the second input; the first frame takes constants. A frame takes its beats
    after its beat at the first input has come, of which the unit holds `waiting`.
    """

    beats: int
    waiting: int = 2


Flow = (
    PipelineFlow
    | JoinFlow
    | QueueFlow
    | BufferFlow
    | ReplayFlow
    | RegroupFlow
    | RouteFlow
    | KeepFlow
    | ForkFlow
    | StateFlow
)


@lru_cache(maxsize=1024)
def flow_of(node: units.Node) -> Flow:
    """The flow of a node. A port that cuts the ready path is a queue, see `Port`. Nodes are compared by identity."""
    match unit := node.unit:
        case units.Port(plain=True):
            return KeepFlow([True])
        case units.Port():
            return QueueFlow(2) if unit.cuts_ready == enters(node) else PipelineFlow()
        case units.Slice():
            return QueueFlow(unit.depth)
        case units.Fifo():
            return QueueFlow(unit.depth, sized=True)
        case units.NormRoot():
            return QueueFlow(unit.rows_in_flight, delayed=True)
        case units.AdderMatVec(joined=True) | units.SelectLanes():
            return RouteFlow([0])
        case (
            units.FloatKeyUnit()
            | units.FloatUnit()
            | units.ProgramUnit()
            | units.AdderMatVec()
            | units.GroupedMatVec()
            | units.ReduceTree()
            | units.NeuronUnit()
        ):
            return PipelineFlow()
        case units.JoinStreams() | units.ConcatChannels():
            return PipelineFlow()
        case units.RescaleUnit():
            return PipelineFlow(delay=unit.joined_latency)
        case units.DynamicMatVec():
            return PipelineFlow(_last_of(unit.folds))
        case units.ArgMaxUnit() | units.NormMoments():
            return PipelineFlow(_last_of(unit.beats))
        case units.TiledPool():
            return _tiled_pool(unit)
        case units.NormScale():
            return JoinFlow(unit.beats)
        case units.MatVec():
            return ReplayFlow(unit.col_folds, unit.row_folds)
        case units.ConvUnit():
            step = unit.window.taps * unit.folds
            return BufferFlow(word_windows(unit), unit.depth, unit.period, step, sized=True)
        case units.PoolUnit():
            return BufferFlow(word_windows(unit), unit.depth, unit.period, unit.window.taps, sized=True)
        case units.SlidingWindow():
            return BufferFlow(word_windows(unit), unit.depth, unit.period, sized=True)
        case units.Reorder():
            return BufferFlow(_block(unit.block), 2 * unit.block, math.prod(extent for extent, _ in unit.loops))
        case units.RowsUnit():
            return BufferFlow(_block(unit.beats), 2 * unit.beats, unit.beats, lag=unit.lag)
        case units.SoftmaxUnit():
            return BufferFlow(_block(unit.beats), 2 * unit.beats, unit.beats)
        case units.WidthConverter():
            return regroup_flow(node.source, node.result)
        case units.ConcatBeats():
            return RouteFlow([0] * unit.beats[0] + [1] * unit.beats[1])
        case units.PadBorder():
            return _pad_border(unit)
        case units.Crop():
            return _crop(unit)
        case units.Fork():
            return ForkFlow()
        case units.FrameStart():
            return KeepFlow([True] + [False] * (unit.beats - 1))
        case units.FrameMemory():
            return StateFlow(unit.beats)
        case _:
            assert_never(unit)


def has_enable(flow: Flow) -> bool:
    """True if the unit stalls with all its contents while its offered beat waits."""
    return isinstance(flow, PipelineFlow | JoinFlow | BufferFlow | ReplayFlow)


def needed_beats(node: units.Node) -> list[Array]:
    """For each input, int64 (result beats,): entry k is the number of beats that the first k + 1 result beats need."""
    flow, beat = flow_of(node), np.arange(node.result.beats)
    match flow:
        case PipelineFlow(emits=marks) | KeepFlow(keeps=marks):
            period, place = np.divmod(beat, sum(marks))
            return [period * len(marks) + np.flatnonzero(marks)[place] + 1] * len(node.sources)
        case JoinFlow(beats_per_second=count):
            return [beat + 1, beat // count + 1]
        case QueueFlow() | ForkFlow():
            return [beat + 1]
        case BufferFlow(windows=windows):
            row_starts = np.array(windows.last_rows)[:, None] * (windows.width * windows.folds)
            last = np.maximum.accumulate((row_starts + np.array(windows.last_words)).ravel())
            image, window = np.divmod(beat // flow.beats, len(last))
            return [image * windows.words + last[window] + 1]
        case ReplayFlow():
            return [(beat // flow.repeat + 1) * flow.length]
        case RegroupFlow():
            stored = np.cumsum(np.resize(flow.enters, node.source.beats))
            return [np.searchsorted(stored, np.cumsum(np.resize(flow.leaves, len(beat)))) + 1]
        case RouteFlow():
            order = np.resize(flow.order, len(beat))
            return [np.cumsum(order == n) for n in range(len(node.sources))]
        case StateFlow():
            return [np.ones(len(beat), np.int64), np.zeros(len(beat), np.int64)]
        case _:
            assert_never(flow)


def word_windows(unit: units.WindowUnit) -> WordWindows:
    """The windows of a unit with a line buffer."""
    if isinstance(unit, units.SlidingWindow):
        return WordWindows(unit.span, unit.height, unit.across, unit.folds)
    folds = unit.groups * unit.folds if isinstance(unit, units.ConvUnit) else unit.folds
    return WordWindows(unit.window, unit.height, unit.width, folds)


def _block(words: int) -> WordWindows:
    """A block of words: one window over a row of them."""
    return WordWindows(Window((1, words)), 1, words, 1)


def _last_of(beats: int) -> list[bool]:
    """Marks the last of `beats` beats."""
    return [False] * (beats - 1) + [True]


@lru_cache(maxsize=1024)
def _tiled_pool(unit: units.TiledPool) -> PipelineFlow:
    """Marks the beats of an image that complete a result of a reduction."""
    (kernel_height, kernel_width), (rows, columns) = unit.kernel, unit.size
    row_ends = [y % kernel_height == kernel_height - 1 and y // kernel_height < rows for y in range(unit.height)]
    column_ends = [x % kernel_width == kernel_width - 1 and x // kernel_width < columns for x in range(unit.width)]
    return PipelineFlow([last and end for last in row_ends for end in column_ends for _ in range(unit.folds)])


@lru_cache(maxsize=1024)
def _crop(unit: units.Crop) -> KeepFlow:
    """Marks the beats of an image that a crop keeps."""
    height, width, folds = unit.sizes
    rows, columns, beats = range(*unit.rows), range(*unit.columns), range(*unit.beats)
    return KeepFlow(
        [y in rows and x in columns and f in beats for y in range(height) for x in range(width) for f in range(folds)]
    )


@lru_cache(maxsize=1024)
def _pad_border(unit: units.PadBorder) -> RouteFlow:
    """The beats that a border unit emits for an image: 0 for a beat of the image, -1 for a beat of the border."""
    top, left_pad, bottom, right = unit.pads
    line = [-1] * (left_pad * unit.folds) + [0] * (unit.width * unit.folds) + [-1] * (right * unit.folds)
    return RouteFlow([-1] * (top * len(line)) + line * unit.height + [-1] * (bottom * len(line)))


def regroup_flow(source: units.Stream, result: units.Stream) -> RegroupFlow:
    """The flow of a width converter between two streams."""
    source_lanes, result_lanes = source.lanes, result.lanes
    step, padding = units.regrouping_step(source, result)
    room = result_lanes if step in (source_lanes, result_lanes) else 2 * result_lanes - step
    sides = []
    for stream in (source, result):
        full_beats = stream.group_beats - 1
        last = stream.group + padding - full_beats * stream.lanes
        sides.append([stream.lanes] * full_beats + [last] if last != stream.lanes else [last])
    arriving, leaving = sides
    if step != source_lanes or leaving[-1] == source_lanes:
        return RegroupFlow(arriving, leaving, [room])
    # The first input beat of each output beat has its own slot. The others are consumed when no output is buffered.
    slots = [
        [previous, *range(source_lanes, size, source_lanes)]
        for previous, size in zip([leaving[-1], *leaving], leaving, strict=False)
    ]
    return RegroupFlow(arriving, leaving, [room for rooms in slots for room in rooms])
