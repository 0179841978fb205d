"""The network of units that carries a frame, and the streams between them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlsgen.ir.window import Reduction, Window
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale import Single
from hlsgen.rescale.realize.float_ops import FloatOp

#: Adder levels between pipeline registers (parameter EVERY of the library).
TREE_LEVELS = 2
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
    def group_beats(self) -> int:
        return -(-self.group // self.lanes)

    @property
    def groups(self) -> int:
        return self.beats // self.group_beats


def stream_of(type_: IntType, lanes: int, elements: int, group: int) -> Stream:
    """The stream of a frame of so many elements."""
    return Stream(type_, lanes, elements // group * -(-group // lanes), group)


@dataclass(frozen=True)
class Port:
    """hg_axis_in or hg_axis_out."""


@dataclass(frozen=True)
class FloatKeyUnit:
    """hg_float_key."""


@dataclass(frozen=True)
class WidthConverter:
    """hg_width."""


@dataclass(frozen=True, eq=False)
class RescaleUnit:
    """A realization of step functions; table (folds, lanes) holds the function set of each lane."""

    found: Single
    table: Array


@dataclass(frozen=True, eq=False)
class FloatUnit:
    """One hg_f32_* unit."""

    unit: FloatOp
    table: Array


@dataclass(frozen=True, eq=False)
class MatVec:
    """hg_mvu: `vectors` a frame, weight int64 with columns in stream order; mode as in hg_mvu.

    `windows` vectors come in a beat, if more than one whole: the same piece, of `taps`, of all of them together.
    """

    weight: Array
    mode: int
    pe: int
    simd: int
    vectors: int
    windows: int = 1
    taps: int = 1

    @property
    def row_folds(self) -> int:
        return len(self.weight) // self.pe

    @property
    def col_folds(self) -> int:
        return int(self.weight.shape[1]) // self.simd


@dataclass(frozen=True, eq=False)
class ConvUnit:
    """hg_conv or, if `depthwise`, hg_dwconv, on images of height x width pixels.

    A pixel is `groups` * `folds` words of `simd` elements. Every group of a window is sent `repeat`
    times: (kernel row, kernel column, fold), one word a cycle; each time gives one word of `pe` results.
    weight int64 (words, pe, simd), or (words, pe) if depthwise (simd = pe, each element its own sum), in
    order of use: group, repeat, kernel row, kernel column, fold. `depth`: words in the buffer.
    `mode` as in hg_dot / hg_mvu.
    """

    weight: Array
    window: Window
    height: int
    width: int
    groups: int
    folds: int
    repeat: int
    pe: int
    simd: int
    mode: int
    depthwise: bool
    pad: int
    depth: int

    @property
    def period(self) -> int:
        """Cycles of a window."""
        return self.groups * self.repeat * self.window.taps * self.folds


@dataclass(frozen=True)
class PoolUnit:
    """hg_pool: `folds` words a pixel, each the maximum or sum over the window, one tap a cycle."""

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
    """hg_reduce: a pool over windows of `kernel` pixels that lie side by side on images of height x width
    pixels of `folds` words; what is behind the last whole window is left over."""

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
    """hg_unfold: windows of images of height x width pixels of `folds` words, all taps of a fold in a beat.

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


@dataclass(frozen=True, eq=False)
class GroupedMatVec:
    """hg_dwmvu: words of groups of `columns` elements with all their taps, `rows` sums of each group.

    weight int64 (folds, pe, taps * columns); `mode` as in hg_dot. Depthwise: groups of one element.
    """

    weight: Array
    mode: int
    rows: int = 1
    columns: int = 1

    @property
    def pe(self) -> int:
        return int(self.weight.shape[1])

    @property
    def simd(self) -> int:
        return int(self.weight.shape[2])


@dataclass(frozen=True)
class ReduceTree:
    """hg_pool_tree: the maximum or sum over so many taps in each beat."""

    kind: Reduction
    taps: int


@dataclass(frozen=True)
class Fork:
    """hg_fork: the same stream to several takers."""

    count: int


@dataclass(frozen=True)
class Fifo:
    """hg_fifo."""

    depth: int


@dataclass(frozen=True)
class JoinStreams:
    """hg_join: a * factors[0] + b * factors[1]; or (a - zeros[0]) * (b - zeros[1]) where factors is
    None; or, packed, a in the low and b in the high bits."""

    factors: tuple[int, int] | None
    zeros: tuple[int, int] = (0, 0)
    packed: bool = False


@dataclass(frozen=True)
class ConcatBeats:
    """hg_concat: beats[0] beats of the first stream, then beats[1] of the second, and again.

    The streams' types may differ from the result's: every element is extended.
    """

    beats: tuple[int, int]


@dataclass(frozen=True)
class ConcatChannels:
    """hg_beside: of `pixels` pixels lanes[0] elements of the first and lanes[1] of the second stream."""

    lanes: tuple[int, int]
    pixels: int


@dataclass(frozen=True)
class SelectLanes:
    """hg_pick: of every beat the elements with these places."""

    places: tuple[int, ...]


@dataclass(frozen=True)
class Crop:
    """hg_take: of images of height x width pixels of `folds` beats, what the ranges (start, stop, step)
    of rows, columns and beats keep."""

    sizes: tuple[int, int, int]
    rows: tuple[int, int, int]
    columns: tuple[int, int, int]
    beats: tuple[int, int, int]


@dataclass(frozen=True)
class PadBorder:
    """hg_pad: a border of pixels (top, left, bottom, right) around images of height x width pixels of
    `folds` beats."""

    height: int
    width: int
    folds: int
    pads: tuple[int, int, int, int]
    value: int


@dataclass(frozen=True)
class Reorder:
    """hg_gather: stores blocks of `block` beats and sends, for each, the beats that nested loops address:
    the sum of counter * stride over `loops` (extent, stride), the outermost first."""

    block: int
    loops: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ArgMaxUnit:
    """hg_argmax."""

    beats: int


Unit = (
    Port | FloatKeyUnit | WidthConverter | RescaleUnit | FloatUnit | MatVec | ConvUnit | PoolUnit | TiledPool
    | SlidingWindow | GroupedMatVec | ReduceTree | Fork | Fifo | JoinStreams | ConcatBeats | ConcatChannels | SelectLanes | Crop | PadBorder
    | Reorder | ArgMaxUnit
)  # fmt: skip
#: Units with weights.
WeightedUnit = MatVec | ConvUnit | GroupedMatVec


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
