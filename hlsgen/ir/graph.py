"""`Graph`: layers over integer codes, what becomes hardware, with float work before and after it left to the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hlsgen.ir.encoding import Encoding
from hlsgen.ir.model import Model, ModelOutput, NormKind, Pad, Repeat, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.ops import BinaryKind as BinaryKind
from hlsgen.ir.ops import Elementwise, Quantizer
from hlsgen.ir.row_functions import RowFunction
from hlsgen.ir.window import Reduction as Reduction
from hlsgen.ir.window import Window as Window
from hlsgen.numerics.fixed import Array, IntType


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of integer codes and what they mean. `shape` is that of one frame."""

    shape: Shape
    type: IntType
    encoding: Encoding

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Map:
    """Elementwise integer function: codes are decoded, `ops` follow in their dtypes, `quantizer` ends it."""

    name: str
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Linear:
    """acc[..., r] = sum over c of weight[r, c] * code[..., c], exact.

    `binary`: weights are 0/1 and acc counts agreements of weight and code (XNOR popcount).
    `lo`, `hi`: reachable accumulator interval of each row, int64 (rows,).
    """

    name: str
    weight: Array
    binary: bool
    source: Value
    result: Value
    lo: Array
    hi: Array
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """acc[..., m, n] = sum over k of a[..., m, k] * b[..., k, n] of two tensors of codes, exact.

    An operand is code * factor + offset: what its code means, as a whole number of one unit. `factors` and `offsets`
    are those of both.
    """

    name: str
    factors: tuple[int, int]
    offsets: tuple[int, int]
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Products in a sum."""
        return self.sources[0].shape[-1]

    def operand(self, n: int) -> IntType:
        """The type of an operand."""
        type_, factor, offset = self.sources[n].type, self.factors[n], self.offsets[n]
        return IntType(type_.lo * factor + offset, type_.hi * factor + offset)

    @property
    def interval(self) -> IntType:
        """The interval of all sums that operands of these types can have."""
        a, b = self.operand(0), self.operand(1)
        ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return IntType(self.depth * min(ends), self.depth * max(ends))


@dataclass(frozen=True, eq=False)
class Convolution:
    """Exact sums of weights and codes of a window, (n, height, width, channels) to (n, ..., outputs).

    weight int64 (outputs, kernel height, kernel width, channels / groups); output o uses the channels
    of group o // (outputs / groups). `pad`: the code outside of the image. `binary`, `lo`, `hi` as in
    Linear.
    """

    name: str
    weight: Array
    window: Window
    groups: int
    pad: int
    binary: bool
    source: Value
    result: Value
    lo: Array
    hi: Array
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pooling:
    """Largest code or exact sum of codes of every window, channel by channel; `pad` as in Convolution."""

    name: str
    kind: Reduction
    window: Window
    pad: int
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Rearrange:
    """Repeat, Slice or Pad of codes; `pad`: the code of the border."""

    name: str
    op: Repeat | Slice | Pad
    pad: int
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Concatenation:
    """Codes of all sources one behind the other along an axis."""

    name: str
    axis: int
    sources: tuple[Value, ...]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BinaryMap:
    """Elementwise function of two tensors of codes of one shape.

    Each is decoded, goes through its own operations, `kind` joins them, `ops` follow, `quantizer`
    ends it.
    """

    name: str
    kind: BinaryKind
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


#: What joins float32 numbers in hardware.
FLOAT_JOINTS = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)


@dataclass(frozen=True, eq=False)
class FloatJoint:
    """float32 of two tensors of one shape, without a quantizer: each is decoded, goes through its own operations, `kind`
    joins them, an addition, a subtraction or a product, rounded once. -0.0 and 0.0 are the same.
    """

    name: str
    kind: BinaryKind
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PackBytes:
    """code = a mod 256 + 256 * (b mod 256): both operands of a `Pair`; sources are 8-bit integers as such."""

    name: str
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class View:
    """Reshape or Transpose of codes: no hardware, only the naming of elements changes."""

    name: str
    op: Reshape | Transpose
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ArgMaxLayer:
    """ArgMax over the last axis of codes."""

    name: str
    source: Value
    result: Value
    inputs: tuple[int, ...]


#: What a mask says of an element of a Softmax.
COUNTS, EVEN, GONE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Softmax along the last axis, of codes; the result is float32.

    Of scores of which a code is worth `step`: powers[d] is the float32 nearest to exp(-step * d). None: as onnxruntime's
    operator for integers, with the sum taken in order.

    With d = largest code of the row - code: numerators[d] * fl(1 / sum of powers[d]), where the sum is exact and
    rounded once. `in_order`: numerators[d] / sum, rounded once, 0 below `QLINEAR_FLOOR`, where the sum is rounded after
    each addition, from the first element of the row to the last. Differences beyond the tables have 0 in both.

    `mask`, of the source's shape, uint8: elements that are `GONE` have 0 in both, and are no largest code; rows whose
    others are `EVEN` have the same code in all of these.
    """

    name: str
    powers: Array
    numerators: Array
    step: Fraction | None
    source: Value
    result: Value
    inputs: tuple[int, ...]
    mask: Array | None = None

    @property
    def in_order(self) -> bool:
        return self.step is None


@dataclass(frozen=True, eq=False)
class NormRows:
    """Rows along the last axis, normalized by the contract of docs/numeric-contract.md; keys of float32.

    Each code stands for the integer code * factor + offset; `addend` is what their moment has added, for epsilon.
    """

    name: str
    kind: NormKind
    factor: int
    offset: int
    addend: Fraction
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class IntegerRows:
    """A function of rows of codes, along the last axis; codes of the source are whole numbers as such."""

    name: str
    function: RowFunction
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Delay:
    """A state of a loop: row 0 is `source`, row t is row t - 1 of value `delayed`, which a later layer makes.

    Layers between the result and value `delayed` work on each row alone.
    """

    name: str
    delayed: int
    source: Value
    result: Value
    inputs: tuple[int, ...]

    @property
    def steps(self) -> int:
        return self.result.shape[0]


@dataclass(frozen=True, eq=False)
class TakeInput:
    """The codes at `offset` of the input, shaped: one of several inputs, which comes through a port of its own.

    `port` ends the name of that.
    """

    name: str
    port: str
    offset: int
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GiveOutputs:
    """Codes of all sources, flat and one behind the other: several outputs, each through a port of its own.

    `ports` end the names of those.
    """

    name: str
    ports: tuple[str, ...]
    sources: tuple[Value, ...]
    result: Value
    inputs: tuple[int, ...]


Layer = (
    Map | Linear | MatrixProduct | Convolution | Pooling | Rearrange | Concatenation | BinaryMap | FloatJoint | PackBytes
    | View | ArgMaxLayer | SoftmaxRows | NormRows | IntegerRows | Delay | TakeInput | GiveOutputs
)  # fmt: skip


def sources_of(layer: Layer) -> tuple[Value, ...]:
    """The values that a layer takes, as `inputs` numbers them."""
    if isinstance(layer, MatrixProduct | Concatenation | BinaryMap | FloatJoint | PackBytes | GiveOutputs):
        return layer.sources
    return (layer.source,)


@dataclass(frozen=True, eq=False)
class GraphInput:
    """One of several parts of the port: `steps` on the host, `encode`, then codes at `offset` of the frame; as in `Graph`.

    `source`: which of the model's inputs the host makes it of. Of an input that branches in front of its quantizers there
    are several parts.
    """

    steps: tuple[Step, ...]
    encode: Quantizer | None
    offset: int
    value: Value
    source: int = 0


@dataclass(frozen=True, eq=False)
class GraphOutput:
    """One of several outputs, or of their parts: codes at `offset` of the frame, then `steps` on the host; as in `Graph`."""

    steps: tuple[Step, ...]
    offset: int
    value: Value
    is_index: bool


@dataclass(frozen=True, eq=False)
class HostJoint:
    """Two parts that the host joins in `dtype`, each behind its own steps; then `steps` give an output of the model."""

    name: str
    kind: BinaryKind
    dtype: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class GraphEnd:
    """An output of the model: its part, or the two that a joint takes."""

    output: ModelOutput
    parts: tuple[GraphOutput, ...]
    joint: HostJoint | None


@dataclass(frozen=True, eq=False)
class Graph:
    """The integer network: `head` on the host, `layers` in hardware, `tail` on the host.

    `output` is the result of the last layer, or the input if there is none. Steps of head and tail
    follow each other.
    `encode` is the quantizer that the host applies at the end of the head to make the input
    codes; None if the input goes to hardware as fixed point or float32 bits.

    Of a model with several inputs, or with one that branches in front of its quantizers, `input` holds the codes of all
    `inputs`, flat and one behind the other, in the narrowest type that has them; what they mean stands with each.
    `outputs` likewise. With a port each, layers TakeInput and GiveOutputs stand between these frames and what is streamed.
    `joints`: of each output of the model what joins the two parts that it has among `outputs`; None where it is one of them.
    """

    model: Model
    head: tuple[Step, ...]
    encode: Quantizer | None
    input: Value
    layers: tuple[Layer, ...]
    output: Value
    tail: tuple[Step, ...]
    output_is_index: bool = False
    notes: tuple[str, ...] = field(default=())
    inputs: tuple[GraphInput, ...] = ()
    outputs: tuple[GraphOutput, ...] = ()
    joints: tuple[HostJoint | None, ...] = ()

    @property
    def ends(self) -> tuple[GraphEnd, ...]:
        """What becomes of `outputs`, for each output of the model; none if the output is not divided."""
        found, left = list[GraphEnd](), list(self.outputs)
        for output, joint in zip(self.model.targets if left else (), self.joints, strict=True):
            count = 1 if joint is None else 2
            found.append(GraphEnd(output, tuple(left[:count]), joint))
            del left[:count]
        return tuple(found)

    @property
    def part_names(self) -> tuple[str, ...]:
        """A name for each of `outputs`; see `names_of_parts`."""
        return names_of_parts(self.model.targets, self.joints) if self.outputs else ()

    @property
    def streamed_inputs(self) -> tuple[tuple[int, int, Value], ...]:
        """(value, its offset in the input, what it is) of everything that comes through a port of its own."""
        taken = [(i + 1, x.offset, x.result) for i, x in enumerate(self.layers) if isinstance(x, TakeInput)]
        return tuple(taken) or ((0, 0, self.input),)

    @property
    def streamed_outputs(self) -> tuple[tuple[int, int, Value], ...]:
        """(value, its offset in the output, what it is) of everything that leaves through a port of its own."""
        last = self.layers[-1] if self.layers else None
        if not isinstance(last, GiveOutputs):
            return ((len(self.layers), 0, self.output),)
        offsets = [sum(value.size for value in last.sources[:n]) for n in range(len(last.sources))]
        return tuple(zip(last.inputs, offsets, last.sources, strict=True))


def names_of_parts(outputs: Sequence[ModelOutput], joints: Sequence[HostJoint | None]) -> tuple[str, ...]:
    """A name for each part of these outputs: that of the output, and the number of the part where it has two."""
    found = list[str]()
    for output, joint in zip(outputs, joints, strict=True):
        found += [output.name] if joint is None else [f"{output.name} (1)", f"{output.name} (2)"]
    return tuple(found)
