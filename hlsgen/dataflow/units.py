"""The units that a frame passes, and the streams between them. Pure data, the same for every target."""

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
from hlsgen.dataflow.weighted_units import Blocks as Blocks
from hlsgen.dataflow.weighted_units import ConvUnit as ConvUnit
from hlsgen.dataflow.weighted_units import GroupedMatVec as GroupedMatVec
from hlsgen.dataflow.weighted_units import MatVec as MatVec
from hlsgen.dataflow.weighted_units import Product as Product
from hlsgen.dataflow.weighted_units import SumTables as SumTables
from hlsgen.dataflow.weighted_units import WeightedUnit as WeightedUnit
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.row_functions import RowFunction
from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Single
from hlsgen.rescale.realize.float_ops import FloatOp

FLOAT_WORD = IntType(0, 0xFFFFFFFF)


@dataclass(frozen=True)
class Stream:
    """`beats` a frame of `lanes` elements of a type.

    Every `group` elements (the channels of a pixel, or the whole frame) begin a new beat; lanes behind
    the last element of a group hold anything.
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
    """The stream of a frame of so many elements."""
    return Stream(type_, lanes, elements // group * -(-group // lanes), group)


def regrouped(source: Stream, result: Stream) -> tuple[int, int]:
    """(step, more) of a change of lanes: all that is stored is whole steps of so many elements; groups that are equal
    and end within a beat count `more` elements."""
    both = math.gcd(source.lanes, result.lanes)
    if source.group % source.lanes == 0 and result.group % result.lanes == 0:
        return both, 0
    if source.group == result.group:
        return both, -source.group % both
    return math.gcd(both, source.group, result.group), 0


#: The stream that the input port takes.
INPUT = "input"


@dataclass(frozen=True)
class Port:
    """An input or output of the core: AXI4-Stream outside. `bus`: how a frame lies on it if a word is no beat. `early`:
    the input port keeps the core's ready from the taker's, with two beats, and not the output port; without bus."""

    bus: BusLayout | None = None
    early: bool = False


@dataclass(frozen=True)
class FloatKeyUnit:
    """The bits of a float32 become an integer that sorts as the number does."""


@dataclass(frozen=True)
class WidthConverter:
    """The same elements in beats of another number of lanes."""


@dataclass(frozen=True, eq=False)
class RescaleUnit:
    """A realization of step functions; table (folds, lanes): the set of each lane. `open`: without its last register.

    `ahead`: cycles of the joined unit in front of it, whose stages advance with its own. `flips`: bits of a beat that come
    inverted, the lowest first.
    """

    found: Single
    table: Array
    open: bool = False
    ahead: int = 0
    flips: int = 0


@dataclass(frozen=True, eq=False)
class FloatUnit:
    """One float32 operation; table (folds, lanes) holds the constant set of each lane."""

    unit: FloatOp
    table: Array


@dataclass(frozen=True)
class PoolUnit:
    """Of `folds` words a pixel, each the maximum or sum over the window, one tap a cycle."""

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
    """A pool over windows of `kernel` pixels that lie side by side on images of height x width pixels of `folds`
    words; what is behind the last whole window is left over."""

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
        """Results so far that it keeps at once."""
        return self.folds * (self.size[1] if self.kernel[0] > 1 else 1)


@dataclass(frozen=True)
class SlidingWindow:
    """Windows of images of height x width pixels of `folds` words, all taps of a fold in a beat.

    A beat has, tap by tap, the elements of a word. `rows`, `columns`: pixels that there is room for.
    Or a word is `pixels` of a row, a beat has, tap by tap, `windows` of a row; `columns` counts words then.
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
        """Words of a row, a pixel taken as one word."""
        return -(-self.width // self.pixels)

    @property
    def span(self) -> Window:
        """What a beat is put together from, as a window on those words."""
        (tall, wide), (down, right), (top, left, bottom, _) = self.window.reach, self.window.strides, self.window.pads
        columns, step, words = (
            self.window.size(self.height, self.width)[1],
            self.windows * right,
            -(-left // self.pixels),
        )
        kernel = (words * self.pixels - left + step - right + wide - 1) // self.pixels + 1
        stride = step // self.pixels
        rest = (-(-columns // self.windows) - 1) * stride + kernel - words - self.across
        return Window((tall, kernel), (down, stride), (1, 1), (top, words, bottom, rest))

    @property
    def depth(self) -> int:
        """Words in the buffer."""
        return self.rows * self.columns * self.folds

    @property
    def period(self) -> int:
        """Cycles of a window."""
        return self.folds

    def with_depth(self, words: int) -> SlidingWindow:
        """With room for at least so many words: more rows or, of a kernel of one row, more kernels."""
        places, (tall, wide) = -(-words // self.folds), self.span.kernel
        if tall == 1:
            return replace(self, rows=1, columns=wide * max(1, -(-places // wide)))
        return replace(self, rows=max(tall, -(-places // self.across)), columns=self.across)


@dataclass(frozen=True)
class ReduceTree:
    """The maximum or sum over so many taps in each beat."""

    kind: Reduction
    taps: int


@dataclass(frozen=True)
class Fork:
    """The same stream to several takers."""

    count: int


@dataclass(frozen=True)
class Fifo:
    """Room for `depth` beats that wait."""

    depth: int


@dataclass(frozen=True)
class Slice:
    """Two registers, so that ready does not follow from the taker's; one, for a beat every other cycle, if not `full`."""

    full: bool = True

    @property
    def depth(self) -> int:
        return 1 + self.full


@dataclass(frozen=True)
class JoinStreams:
    """Elements of two streams become one: a * factors[0] + b * factors[1]; or (a - zeros[0]) * (b - zeros[1]) where factors is
    None; or, packed, a in the low and b in the high bits; or, with `floats`, the sum, difference or product of float32."""

    factors: tuple[int, int] | None = None
    zeros: tuple[int, int] = (0, 0)
    packed: bool = False
    floats: BinaryKind | None = None


@dataclass(frozen=True)
class ConcatBeats:
    """beats[0] beats of the first stream, then beats[1] of the second, and again.

    The streams' types may differ from the result's: every element is extended.
    """

    beats: tuple[int, int]


@dataclass(frozen=True)
class ConcatChannels:
    """Of `pixels` pixels lanes[0] elements of the first and lanes[1] of the second stream."""

    lanes: tuple[int, int]
    pixels: int


@dataclass(frozen=True)
class SelectLanes:
    """Of every beat the elements with these places."""

    places: tuple[int, ...]


@dataclass(frozen=True)
class Crop:
    """Of images of height x width pixels of `folds` beats, what the ranges (start, stop, step)
    of rows, columns and beats keep."""

    sizes: tuple[int, int, int]
    rows: tuple[int, int, int]
    columns: tuple[int, int, int]
    beats: tuple[int, int, int]


@dataclass(frozen=True)
class PadBorder:
    """A border of pixels (top, left, bottom, right) around images of height x width pixels of
    `folds` beats."""

    height: int
    width: int
    folds: int
    pads: tuple[int, int, int, int]
    value: int


@dataclass(frozen=True)
class Reorder:
    """Stores blocks of `block` beats and sends, for each, the beats that nested loops address:
    the sum of counter * stride over `loops` (extent, stride), the outermost first."""

    block: int
    loops: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DynamicMatVec:
    """Sums of products of two streams: PE sums of SIMD products a beat, `folds` beats a sum.

    The first stream brings SIMD codes a beat for all sums, the second PE * SIMD: those of a sum side by side
    (`rows_first`), or those of the same column. An operand is code * factor + offset, within `operands`. `every`, `blocks`: see MatVec.
    """

    pe: int
    simd: int
    folds: int
    factors: tuple[int, int]
    offsets: tuple[int, int]
    operands: tuple[IntType, IntType]
    rows_first: bool
    every: int = 2
    blocks: Blocks | None = None

    @property
    def word(self) -> IntType:
        """The type of the second operand as a signed number, as a multiplier takes it."""
        return IntType(min(-1, self.operands[1].lo), max(0, self.operands[1].hi))


@dataclass(frozen=True)
class ArgMaxUnit:
    """The position of the largest of the elements in so many beats."""

    beats: int


@dataclass(frozen=True, eq=False)
class RowsUnit:
    """A function of rows of `beats` beats, `count` elements with codes of `source`; a row leaves when it is complete.

    Its first beat is read `lag` cycles later than it could be by then.
    """

    function: RowFunction
    beats: int
    source: IntType
    count: int

    @property
    def lag(self) -> int:
        return lag(self.function, self.source, self.count)


Unit = (
    Port
    | FloatKeyUnit
    | WidthConverter
    | RescaleUnit
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
    | NormMoments
    | NormRoot
    | NormScale
    | SoftmaxUnit
)
#: Units that keep pixels of an image until no window needs them any more.
WindowUnit = ConvUnit | PoolUnit | SlidingWindow


@dataclass(frozen=True, eq=False)
class Node:
    """A unit between streams: `inputs` and `outputs` are their names, `sources` the streams it takes, all
    its outputs carry `result`.

    `layer`: name of the model node it works for, "" for plumbing. `position`: index of the graph's
    layer whose result this node delivers, -1 if none.
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
        """The stream that it takes, the first one of several."""
        return self.sources[0]


def buffer_bits(node: Node) -> int:
    """Bits of the elements that a unit keeps for later, with its depth; beats on their way through are not counted."""
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
        case AdderMatVec() | DynamicMatVec() | Slice() | NormMoments() | NormRoot() | NormScale():
            return 0
        case MatVec() | GroupedMatVec() | ReduceTree() | JoinStreams() | ConcatBeats() | ConcatChannels():
            return 0
        case SelectLanes() | Crop() | PadBorder():
            return 0
        case _:
            assert_never(unit)
