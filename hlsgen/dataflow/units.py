"""Units of a pipeline and the streams between them. Pure data, the same for every target."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from typing_extensions import assert_never

from hlsgen.dataflow.bus import BusLayout
from hlsgen.dataflow.norm_units import NormMoments as NormMoments
from hlsgen.dataflow.norm_units import NormRoot as NormRoot
from hlsgen.dataflow.norm_units import NormScale as NormScale
from hlsgen.dataflow.row_sizes import lag
from hlsgen.dataflow.softmax_unit import SoftmaxUnit as SoftmaxUnit
from hlsgen.dataflow.weighted_units import AdderMatVec as AdderMatVec
from hlsgen.dataflow.weighted_units import ConvUnit as ConvUnit
from hlsgen.dataflow.weighted_units import DspProducts as DspProducts
from hlsgen.dataflow.weighted_units import GroupedMatVec as GroupedMatVec
from hlsgen.dataflow.weighted_units import MatVec as MatVec
from hlsgen.dataflow.weighted_units import Product as Product
from hlsgen.dataflow.weighted_units import SumTables as SumTables
from hlsgen.dataflow.weighted_units import WeightedUnit as WeightedUnit
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.programs import Program
from hlsgen.ir.row_functions import VectorFunction
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import NeuronTable, Single
from hlsgen.rescale.realize.float_ops import FloatOp

FLOAT_WORD = IntType(0, 0xFFFFFFFF)


@dataclass(frozen=True)
class Stream:
    """A frame of `beats` beats, each with `lanes` elements of one type.

    Every `group` elements (the channels of a pixel, or the whole frame) begin a new beat. The lanes after the last
    element of a group may hold any value.
    """

    type: IntType
    lanes: int
    beats: int
    group: int

    @property
    def bits(self) -> int:
        return self.type.bits * self.lanes

    @property
    def port_bits(self) -> int:
        """Bits of an AXI4-Stream port: whole bytes."""
        return -(-self.bits // 8) * 8

    @property
    def group_beats(self) -> int:
        return -(-self.group // self.lanes)

    @property
    def groups(self) -> int:
        return self.beats // self.group_beats


def stream_of(type_: IntType, lanes: int, elements: int, group: int) -> Stream:
    """The stream of a frame with `elements` elements in groups of `group`."""
    return Stream(type_, lanes, elements // group * -(-group // lanes), group)


def regrouping_step(source: Stream, result: Stream) -> tuple[int, int]:
    """(step, padding) of a width converter.

    The converter stores elements in whole steps of `step` elements. Equal groups that end within a beat count
    `padding` additional elements.
    """
    common_lanes = math.gcd(source.lanes, result.lanes)
    if source.group % source.lanes == 0 and result.group % result.lanes == 0:
        return common_lanes, 0
    if source.group == result.group:
        return common_lanes, -source.group % common_lanes
    return math.gcd(common_lanes, source.group, result.group), 0


#: The stream that the input port consumes. No layer has such a name, or one with "__": `layer_names.identifier`.
INPUT = "input_"


@dataclass(frozen=True)
class Port:
    """An input or output of the core, an AXI4-Stream outside.

    `bus`: how a frame lies on the port if a word is not a beat. `cuts_ready`: the input port, and not the output port,
    buffers two beats, which cuts the ready path between the core and its consumer. Only ports without a bus have it.
    `plain`: data and a valid bit without handshake or register, see plain_ports.py.
    """

    bus: BusLayout | None = None
    cuts_ready: bool = False
    plain: bool = False


@dataclass(frozen=True)
class FloatKeyUnit:
    """Converts the bits of a float32 to an integer that sorts in the same order as the number."""


@dataclass(frozen=True)
class WidthConverter:
    """The same elements in beats of another number of lanes."""


@dataclass(frozen=True, eq=False)
class RescaleUnit:
    """A realization of monotone quantizer functions.

    table (folds, lanes): the channel parameters that each lane uses. `omits_register`: without its last register.
    `joined_latency`: latency in cycles of the joined upstream unit, whose stages share this unit's enable.
    `inverted_bits`: the bits of a beat that arrive inverted, the lowest first.
    """

    realization: Single
    table: Array
    omits_register: bool = False
    joined_latency: int = 0
    inverted_bits: int = 0


@dataclass(frozen=True, eq=False)
class NeuronUnit:
    """All neurons of a layer as lookup tables: it consumes the codes that the matrix multiplies.

    `read`: bits of a beat that the next neurons read, as synthesis removes the functions of the others; None: all.
    """

    tables: NeuronTable
    read: frozenset[int] | None = None


@dataclass(frozen=True, eq=False)
class FloatUnit:
    """One float32 operation; table (folds, lanes): the constants that each lane uses."""

    unit: FloatOp
    table: Array


@dataclass(frozen=True)
class PoolUnit:
    """A pool with one tap a cycle. Each of the `folds` words of a pixel is the maximum or sum over the window."""

    kind: Reduction
    window: Window
    height: int
    width: int
    folds: int
    pad: int
    depth: int

    @property
    def period(self) -> int:
        return self.folds * self.window.taps


@dataclass(frozen=True)
class TiledPool:
    """A pool over adjacent windows of `kernel` pixels, on images of height x width pixels of `folds` words.

    The pixels after the last full window are ignored.
    """

    kind: Reduction
    kernel: tuple[int, int]
    height: int
    width: int
    folds: int

    @property
    def size(self) -> tuple[int, int]:
        """(rows, columns) of windows."""
        return self.height // self.kernel[0], self.width // self.kernel[1]

    @property
    def words(self) -> int:
        """Partial results that it keeps at once."""
        return self.folds * (self.size[1] if self.kernel[0] > 1 else 1)


@dataclass(frozen=True)
class SlidingWindow:
    """Windows of images of height x width pixels of `folds` words; a beat has all taps of a fold.

    A beat holds, tap by tap, the elements of a word. `rows`, `columns`: size of the buffer in pixels. If `pixels` is
    above 1, a word is `pixels` pixels of a row, and `columns` counts words. A beat then holds, tap by tap, `windows`
    windows of a row.
    """

    window: Window
    height: int
    width: int
    folds: int
    pad: int
    rows: int
    columns: int
    pixels: int = 1
    windows: int = 1

    @property
    def across(self) -> int:
        """Words in a row, if a word is one pixel."""
        return -(-self.width // self.pixels)

    @property
    def span(self) -> Window:
        """The words that make up a beat, as a window on words."""
        (kernel_height, kernel_width), (down, right) = self.window.reach, self.window.strides
        top, left_pad, bottom, _ = self.window.pads
        columns = self.window.size(self.height, self.width)[1]
        step, words = self.windows * right, -(-left_pad // self.pixels)
        kernel = (words * self.pixels - left_pad + step - right + kernel_width - 1) // self.pixels + 1
        stride = step // self.pixels
        right_pad = (-(-columns // self.windows) - 1) * stride + kernel - words - self.across
        return Window((kernel_height, kernel), (down, stride), (1, 1), (top, words, bottom, right_pad))

    @property
    def depth(self) -> int:
        """Words in the buffer."""
        return self.rows * self.columns * self.folds

    @property
    def period(self) -> int:
        """Cycles per window."""
        return self.folds

    def with_depth(self, words: int) -> SlidingWindow:
        """The unit with a buffer of at least `words` words: more rows or, for a kernel of one row, more kernels."""
        places, (kernel_height, kernel_width) = -(-words // self.folds), self.span.kernel
        if kernel_height == 1:
            return replace(self, rows=1, columns=kernel_width * max(1, -(-places // kernel_width)))
        return replace(self, rows=max(kernel_height, -(-places // self.across)), columns=self.across)


@dataclass(frozen=True)
class ReduceTree:
    """The maximum or sum over `taps` taps in each beat."""

    kind: Reduction
    taps: int


@dataclass(frozen=True)
class Fork:
    """Copies a stream to `count` consumers."""

    count: int


@dataclass(frozen=True)
class Fifo:
    """A FIFO for `depth` beats."""

    depth: int


@dataclass(frozen=True)
class Slice:
    """A register slice that cuts the combinational ready path.

    It has two registers or, if not `full`, one; then it passes a beat every other cycle.
    """

    full: bool = True

    @property
    def depth(self) -> int:
        return 1 + self.full


@dataclass(frozen=True)
class JoinStreams:
    """Combines the elements of two streams a and b into one.

    - `factors`: a * factors[0] + b * factors[1].
    - `factors` None: (a - zeros[0]) * (b - zeros[1]).
    - `packed`: a in the low and b in the high bits.
    - `floats`: the float32 sum, difference or product.
    """

    factors: tuple[int, int] | None = None
    zeros: tuple[int, int] = (0, 0)
    packed: bool = False
    floats: BinaryKind | None = None


@dataclass(frozen=True)
class ConcatBeats:
    """Repeats: beats[0] beats of the first stream, then beats[1] beats of the second.

    The streams' types may differ from the result's type: every element is extended.
    """

    beats: tuple[int, int]


@dataclass(frozen=True)
class ConcatChannels:
    """For each of `pixels` pixels: lanes[0] elements of the first and lanes[1] of the second stream."""

    lanes: tuple[int, int]
    pixels: int


@dataclass(frozen=True)
class SelectLanes:
    """Selects the elements at these places from every beat."""

    places: tuple[int, ...]


@dataclass(frozen=True)
class Crop:
    """Crops images of height x width pixels of `folds` beats (`sizes`).

    The result has the rows, columns and beats in the ranges (start, stop, step).
    """

    sizes: tuple[int, int, int]
    rows: tuple[int, int, int]
    columns: tuple[int, int, int]
    beats: tuple[int, int, int]


@dataclass(frozen=True)
class PadBorder:
    """Adds a border of pixels (top, left, bottom, right) to images of height x width pixels of `folds` beats."""

    height: int
    width: int
    folds: int
    pads: tuple[int, int, int, int]
    value: int


@dataclass(frozen=True)
class Reorder:
    """Stores blocks of `block` beats and emits each block in the order that nested loops address.

    The address is the sum of counter * stride over `loops` (extent, stride), the outermost loop first.
    """

    block: int
    loops: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DynamicMatVec:
    """Dot products of two streams: PE sums of SIMD products a beat, `folds` beats a sum.

    The first stream has SIMD codes a beat, used by all sums. The second has PE * SIMD codes a beat: adjacent codes
    belong to one sum if `rows_first`, else to one column. An operand is code * factor + offset, within `operands`.
    `adders_per_stage`, `dsp`: see MatVec.
    """

    pe: int
    simd: int
    folds: int
    factors: tuple[int, int]
    offsets: tuple[int, int]
    operands: tuple[IntType, IntType]
    rows_first: bool
    adders_per_stage: int = 2
    dsp: DspProducts | None = None

    @property
    def word(self) -> IntType:
        """The type of the second operand as a signed number, the input of a multiplier."""
        return IntType(min(-1, self.operands[1].lo), max(0, self.operands[1].hi))


@dataclass(frozen=True)
class ArgMaxUnit:
    """The position of the largest element in `beats` beats."""

    beats: int


@dataclass(frozen=True, eq=False)
class RowsUnit:
    """A function of vectors of `beats` beats, `count` elements with codes of `source`.

    A vector is emitted when it is complete. Its first beat is read `lag` cycles later.
    """

    function: VectorFunction
    beats: int
    source: IntType
    count: int

    @property
    def lag(self) -> int:
        return lag(self.function, self.source, self.count)


@dataclass(frozen=True, eq=False)
class ProgramUnit:
    """A program on vectors that arrive in one beat; `adders_per_stage`: see Pipelining."""

    program: Program
    adders_per_stage: float = 2


@dataclass(frozen=True)
class FrameStart:
    """Keeps the first of `beats` beats of a frame, as one bit: the frame starts a sequence.

    The bit comes from the port that the frame enters, where a frame has `words` words.
    """

    beats: int
    words: int


@dataclass(frozen=True, eq=False)
class FrameMemory:
    """State between frames: the codes that a frame leaves (second input) are those that the next frame finds.

    The first input has a bit for each frame: it finds `initial` instead, codes int64 (beats, lanes), and so does the
    first frame of all.
    """

    initial: Array

    @property
    def beats(self) -> int:
        return len(self.initial)


Unit = (
    Port
    | FloatKeyUnit
    | WidthConverter
    | RescaleUnit
    | NeuronUnit
    | FloatUnit
    | MatVec
    | AdderMatVec
    | DynamicMatVec
    | ConvUnit
    | PoolUnit
    | TiledPool
    | SlidingWindow
    | GroupedMatVec
    | ReduceTree
    | Fork
    | Fifo
    | Slice
    | JoinStreams
    | ConcatBeats
    | ConcatChannels
    | SelectLanes
    | Crop
    | PadBorder
    | Reorder
    | ArgMaxUnit
    | RowsUnit
    | ProgramUnit
    | NormMoments
    | NormRoot
    | NormScale
    | SoftmaxUnit
    | FrameStart
    | FrameMemory
)
#: Units that keep the pixels of an image until no later window needs them.
WindowUnit = ConvUnit | PoolUnit | SlidingWindow


@dataclass(frozen=True, eq=False)
class Node:
    """A unit between streams.

    `inputs`, `outputs`: names of its streams. `sources`: the streams that it consumes. All outputs carry `result`.
    `layer`: name of the model node that the unit belongs to, "" for plumbing. `position`: index of the graph's layer
    whose result this node delivers, -1 if none.
    """

    name: str
    unit: Unit
    inputs: tuple[str, ...]
    sources: tuple[Stream, ...]
    outputs: tuple[str, ...]
    result: Stream
    layer: str = ""
    position: int = -1

    @property
    def source(self) -> Stream:
        """The stream that it consumes, the first of several."""
        return self.sources[0]


def buffer_bits(node: Node) -> int:
    """Bits of the elements that a unit buffers, with its depth. Pipeline registers are not counted."""
    match unit := node.unit:
        case Fifo() | ConvUnit() | PoolUnit() | SlidingWindow():
            return unit.depth * node.source.bits
        case Reorder():
            return 2 * unit.block * node.source.bits
        case RowsUnit() | SoftmaxUnit():
            return 2 * unit.beats * node.source.bits
        case TiledPool():
            return unit.words * node.result.bits
        case Port() | FloatKeyUnit() | WidthConverter() | RescaleUnit() | FloatUnit() | Fork() | ArgMaxUnit():
            return 0
        case AdderMatVec() | DynamicMatVec() | ProgramUnit() | Slice() | NormMoments() | NormRoot() | NormScale():
            return 0
        case MatVec() | GroupedMatVec() | ReduceTree() | JoinStreams() | ConcatBeats() | ConcatChannels():
            return 0
        case SelectLanes() | Crop() | PadBorder() | FrameStart() | NeuronUnit():
            return 0
        case FrameMemory():
            return unit.beats * node.result.bits
        case _:
            assert_never(unit)
