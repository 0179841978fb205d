"""The two forms of a model: `Model`, what the file says in float32, and `Graph`, integers.

`Model` is a list of steps, each of which takes the results of earlier ones. `Graph` is what becomes
hardware: layers over integer codes, with float work before and after it left to the host. In both,
value 0 is the input and value i + 1 the result of step or layer i; inputs are named by these numbers.
Images have their channels last: (..., height, width, channels), signals are images of height 1.
Everything is a frozen dataclass over raw numbers; arrays are numpy and are never written to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hlsgen.fixed import Array, IntType
from hlsgen.geometry import Joint as Joint
from hlsgen.geometry import Reduction as Reduction
from hlsgen.geometry import Window as Window
from hlsgen.operations import Elementwise, Quantizer

Shape = tuple[int, ...]

# --------------------------------------------------------------------------- other model steps


@dataclass(frozen=True)
class Reshape:
    """Row-major reshape; the step's shape says to what."""


@dataclass(frozen=True)
class Transpose:
    """numpy.transpose with `perm`."""

    perm: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MatMul:
    """x @ weight.T over the last axis; the real weights are weight * scale.

    weight int64 (rows, columns), scale float32 (rows,).
    """

    weight: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class MatMulInteger:
    """(x - zero_point) @ weight.T in int32, over the last axis.

    weight int64 (rows, columns), its own zero point taken off; zero_point int64 (columns,).
    """

    weight: Array
    zero_point: Array


@dataclass(frozen=True, eq=False)
class Conv:
    """Convolution of (n, height, width, channels); the real weights are weight * scale.

    weight int64 (outputs, kernel height, kernel width, channels / groups), scale float32 (outputs,).
    Padding is with the real value 0.
    """

    weight: Array
    scale: Array
    window: Window
    groups: int


@dataclass(frozen=True, eq=False)
class ConvInteger:
    """Convolution of (x - zero_point) in int32; padding is with the zero point.

    weight as in Conv, its own zero point taken off; zero_point int64 (channels,).
    """

    weight: Array
    zero_point: Array
    window: Window
    groups: int


@dataclass(frozen=True)
class Pool:
    """Largest element or sum of every window of (n, height, width, channels), channel by channel.

    Padding does not count: it is below all elements, or 0.
    """

    kind: Reduction
    window: Window


@dataclass(frozen=True)
class Repeat:
    """(n, height, width, channels) with every row and column repeated: nearest-neighbour upsampling."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Slice:
    """x[start:stop:step] in every axis, steps positive."""

    ranges: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Pad:
    """A border of (n, height, width, channels), top, left, bottom, right, of one real value."""

    pads: tuple[int, int, int, int]
    value: float


@dataclass(frozen=True)
class Concat:
    """All inputs one behind the other along an axis."""

    axis: int


@dataclass(frozen=True)
class Join:
    """left op right, of two computed tensors of one shape and dtype."""

    kind: Joint


@dataclass(frozen=True, eq=False)
class Select:
    """condition ? yes : no. `fixed` has those of the three that are constants, the inputs take the other places."""

    fixed: tuple[Array | None, Array | None, Array | None]


@dataclass(frozen=True)
class Pack:
    """Two tensors of 8-bit integers in one, a + 256 * b as uint16: what a `Pair` takes."""


@dataclass(frozen=True)
class ArgMax:
    """Index of the first largest element along the last axis; `keepdims`, int64."""

    keepdims: bool


@dataclass(frozen=True, eq=False)
class HostOp:
    """A standard ONNX operator that only the host executes: a serialized single-node model."""

    op_type: str
    model: bytes


#: Steps that compute on images.
Spatial = Conv | ConvInteger | Pool | Repeat | Slice | Pad
Op = (
    Elementwise | Reshape | Transpose | MatMul | MatMulInteger | Spatial | Concat | Join | Select | Pack | ArgMax
    | HostOp
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One operation of a `Model`: ONNX node name, operator, shape of its result, values it takes."""

    name: str
    op: Op
    shape: Shape
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Model:
    """What the file says: steps between one input and one output, the result of the last step.

    With a `second_input`, of the same shape and dtype, the first step is a `Pair` of both.

    `batched`: the leading axis is a batch of 1 (or symbolic). `input_type`: integer type and
    fraction bits the input tensor is declared to have, if it is.
    """

    name: str
    input_name: str
    input_shape: Shape
    input_dtype: str
    batched: bool
    input_type: tuple[IntType, int] | None
    steps: tuple[Step, ...]
    output_name: str
    output_dtype: str
    second_input: str | None = None


# --------------------------------------------------------------------------- integer graph


@dataclass(frozen=True, eq=False)
class Affine:
    """real = fl(fl(code - zero_point) * scale)."""

    scale: Array
    zero_point: Array


@dataclass(frozen=True, eq=False)
class CountScale:
    """real = fl(fl(scale * code) + bias): MultiThreshold."""

    scale: float
    bias: float


@dataclass(frozen=True, eq=False)
class Accumulator:
    """real = round_to_float32((code * factor + offset) * scale), one rounding.

    scale float64 (an exact product of two float32), offset int64, both broadcast to the tensor.
    """

    factor: int
    offset: Array
    scale: Array


@dataclass(frozen=True)
class Fixed:
    """real = round_to_float32(code * 2^-fraction): fixed-point input."""

    fraction: int


@dataclass(frozen=True)
class FloatBits:
    """The code is the order key of a float32, see `semantics.float_to_key`."""


@dataclass(frozen=True, eq=False)
class Whole:
    """The value is the integer code + offset, as that numpy dtype (wrapping); offset int64."""

    dtype: str
    offset: Array


Decode = Affine | CountScale | Accumulator | Fixed | FloatBits | Whole


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of integer codes and what they mean. `shape` is that of one frame."""

    shape: Shape
    type: IntType
    decode: Decode

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
class Merge:
    """Elementwise function of two tensors of codes of one shape.

    Each is decoded, goes through its own operations, `kind` joins them, `ops` follow, `quantizer`
    ends it.
    """

    name: str
    kind: Joint
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Packing:
    """code = a mod 256 + 256 * (b mod 256): both operands of a `Pair`; sources are 8-bit integers as such."""

    name: str
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Relabel:
    """Reshape or Transpose of codes: no hardware, only the naming of elements changes."""

    name: str
    op: Reshape | Transpose
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Winner:
    """ArgMax over the last axis of codes."""

    name: str
    source: Value
    result: Value
    inputs: tuple[int, ...]


Layer = (
    Map | Linear | Convolution | Pooling | Rearrange | Concatenation | Merge | Packing | Relabel | Winner
)  # fmt: skip


def sources_of(layer: Layer) -> tuple[Value, ...]:
    """The values that a layer takes, as `inputs` numbers them."""
    return layer.sources if isinstance(layer, Concatenation | Merge | Packing) else (layer.source,)


@dataclass(frozen=True, eq=False)
class Graph:
    """The integer network: `head` on the host, `layers` in hardware, `tail` on the host.

    `output` is the result of the last layer, or the input if there is none. Steps of head and tail
    follow each other.
    `encode` is the quantizer that the host applies at the end of the head to make the input
    codes; None if the input goes to hardware as fixed point or float32 bits.
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


def zeros(rank: int) -> Array:
    """A float32 zero that broadcasts against a tensor of that rank."""
    return np.zeros((1,) * rank, np.float32)
