"""The two forms of a model: `Model`, what the file says in float32, and `Graph`, integers.

`Model` is a straight sequence of steps between one input and one output tensor. `Graph` is what
becomes hardware: layers over integer codes, with float work before and after it left to the host.
Everything is a frozen dataclass over raw numbers; arrays are numpy and are never written to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hlsgen.fixed import Array, IntType
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


@dataclass(frozen=True)
class ArgMax:
    """Index of the first largest element along the last axis; `keepdims`, int64."""

    keepdims: bool


@dataclass(frozen=True, eq=False)
class HostOp:
    """A standard ONNX operator that only the host executes: a serialized single-node model."""

    op_type: str
    model: bytes


Op = Elementwise | Reshape | Transpose | MatMul | MatMulInteger | ArgMax | HostOp


@dataclass(frozen=True)
class Step:
    """One operation of a `Model`: ONNX node name, operator, shape of its result."""

    name: str
    op: Op
    shape: Shape


@dataclass(frozen=True)
class Model:
    """What the file says: steps between one input and one output.

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


@dataclass(frozen=True, eq=False)
class Relabel:
    """Reshape or Transpose of codes: no hardware, only the naming of elements changes."""

    name: str
    op: Reshape | Transpose
    source: Value
    result: Value


@dataclass(frozen=True, eq=False)
class Winner:
    """ArgMax over the last axis of codes."""

    name: str
    source: Value
    result: Value


Layer = Map | Linear | Relabel | Winner


@dataclass(frozen=True, eq=False)
class Graph:
    """The integer network: `head` on the host, `layers` in hardware, `tail` on the host.

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
