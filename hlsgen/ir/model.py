"""The float model: `Model`, a list of float32 steps as the file defines them.

Each step uses the results of earlier ones. `Graph` is the integer form that becomes hardware: layers over
codes, with float pre- and postprocessing on the host. In both, value 0 is the input and value i + 1 the
result of step or layer i; `inputs` are these numbers.
Images have their channels last: (..., height, width, channels). Signals are images of height 1.
Everything is a frozen dataclass over raw numbers; arrays are numpy and are never written to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from hlsgen.ir.ops import BinaryKind as BinaryKind
from hlsgen.ir.ops import Elementwise
from hlsgen.ir.row_functions import RowFunction as RowFunction
from hlsgen.ir.window import Reduction as Reduction
from hlsgen.ir.window import Window as Window
from hlsgen.numerics.fixed import Array, IntType

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """Row-major reshape to the step's shape."""


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
    """(x - zero_point) @ weight.T in `dtype`, int32 or int64, over the last axis.

    weight int64 (rows, columns), its zero point already subtracted; zero_point int64 (columns,).
    """

    weight: Array
    zero_point: Array
    dtype: str = "int32"


@dataclass(frozen=True)
class BatchMatMul:
    """left @ right of two computed tensors, (..., m, k) and (..., k, n) with the same leading axes."""


@dataclass(frozen=True)
class BatchMatMulInteger:
    """(left - zero_points[0]) @ (right - zero_points[1]) of two computed tensors as in BatchMatMul, in int32."""

    zero_points: tuple[int, int]


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
    """Convolution of (x - zero_point) in `dtype`, int32 or int64; padding is with the zero point.

    weight as in Conv, its zero point already subtracted; zero_point int64 (channels,).
    """

    weight: Array
    zero_point: Array
    window: Window
    groups: int
    dtype: str = "int32"


@dataclass(frozen=True)
class Pool:
    """Largest element or sum of every window of (n, height, width, channels), for each channel.

    Padding never affects the result: it is below all elements, or 0 in a sum.
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
    """x[start:stop:step] in every axis, with positive steps."""

    ranges: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Pad:
    """A border of (n, height, width, channels), top, left, bottom, right, of one real value."""

    pads: tuple[int, int, int, int]
    value: float


@dataclass(frozen=True)
class Concat:
    """All inputs, concatenated along an axis."""

    axis: int


@dataclass(frozen=True)
class Binary:
    """left op right, of two computed tensors of one shape and dtype."""

    kind: BinaryKind


@dataclass(frozen=True, eq=False)
class Select:
    """condition ? yes : no. `fixed` holds the constants among the three; the step's inputs are the others."""

    fixed: tuple[Array | None, Array | None, Array | None]


@dataclass(frozen=True)
class Pack:
    """Two tensors of 8-bit integers in one, a + 256 * b as uint16: the input of a `Pair`."""


@dataclass(frozen=True)
class InputPart:
    """Input `number` of a model with several: elements of value 0 from `offset` on, in `dtype`."""

    number: int
    offset: int
    dtype: str


@dataclass(frozen=True)
class OutputParts:
    """All outputs of a model with several, flattened and concatenated, as float64."""


@dataclass(frozen=True)
class ArgMax:
    """Index of the first largest element along the last axis; `keepdims`, int64."""

    keepdims: bool


@dataclass(frozen=True)
class Softmax:
    """exp(x) / sum of exp(x) along an axis, of scores that are codes times one exact scale; float32.

    e = exp of the exact difference to the largest score, rounded once; r = fl(1 / the exact sum of all e, rounded
    once); fl(e * r).
    """

    axis: int


@dataclass(frozen=True, eq=False)
class QLinearSoftmax:
    """Softmax of 8-bit integers along an axis as onnxruntime's operator computes it before it rounds; float32.

    fl(fl(e * factor) / sum) where e = powers[largest code - code]. The sum is taken in float32, in order from the
    first e to the last. Results below `QLINEAR_FLOOR` are 0, as the rounding would make them.
    """

    axis: int
    powers: Array
    factor: np.float32


#: Results of a QLinearSoftmax below this bound are 0.
QLINEAR_FLOOR = np.float32(2.0**-24)


class NormKind(Enum):
    """The divisor of a `Normalize`.

    LAYER centers the row and divides it by its standard deviation; RMS divides it by its quadratic mean.
    """

    LAYER = "layer"
    RMS = "rms"


@dataclass(frozen=True)
class Normalize:
    """Normalizes vectors along the last axis, float32.

    (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean of x^2 + epsilon).
    """

    kind: NormKind
    epsilon: float


@dataclass(frozen=True, eq=False)
class RowStep:
    """A function of vectors of integers along the last axis."""

    function: RowFunction


@dataclass(frozen=True, eq=False)
class Previous:
    """Loop-carried value at the start of each iteration: `initial`, then the previous iteration's `State`.

    `state` is the name of that State. The step's input belongs to the same frame; its values are not used. If `initial`
    is None, the step's input is the initial value itself.
    """

    state: str
    initial: Array | None


@dataclass(frozen=True)
class State:
    """Loop-carried value at the end of each iteration: its input, unchanged."""

    state: str


@dataclass(frozen=True, eq=False)
class HostOp:
    """A standard ONNX operator that only the host executes: a serialized single-node model.

    `selected`: the constants that the result can contain besides elements of the input. It is None if the result
    can contain computed numbers.
    """

    op_type: str
    model: bytes
    selected: tuple[float, ...] | None = None


#: Matrix products of two computed tensors.
TensorProduct = BatchMatMul | BatchMatMulInteger

#: Steps that compute on images.
Spatial = Conv | ConvInteger | Pool | Repeat | Slice | Pad

Op = (
    Elementwise
    | Reshape
    | Transpose
    | MatMul
    | MatMulInteger
    | TensorProduct
    | Spatial
    | Concat
    | Binary
    | Select
    | Pack
    | InputPart
    | OutputParts
    | ArgMax
    | Softmax
    | QLinearSoftmax
    | Normalize
    | RowStep
    | Previous
    | State
    | HostOp
)


@dataclass(frozen=True)
class Step:
    """One operation of a `Model`: ONNX node name, operator, shape of its result, numbers of the values it uses."""

    name: str
    op: Op
    shape: Shape
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class ModelInput:
    """One of several inputs; the fields are as in `Model`."""

    name: str
    shape: Shape
    dtype: str
    batched: bool
    type: tuple[IntType, int] | None

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class ModelOutput:
    """One of several outputs: name, shape and dtype of the tensor."""

    name: str
    shape: Shape
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class ModelVariable:
    """A value that a file keeps between frames: an input with the value before, and an output with the value after.

    name: of the input, and of the output if the frame assigns a value. initial: before the first frame, in the shape
    and dtype of the input.
    """

    name: str
    initial: Array


@dataclass(frozen=True)
class IntegerSource:
    """Integers that the host has in place of an input's numbers: each number is an integer of `dtype`, times `scale`.

    name: of the input.
    """

    name: str
    dtype: str
    scale: Fraction


@dataclass(frozen=True)
class Model:
    """The file's computation: steps between one input and one output, which is the result of the last step.

    If there is a `second_input`, of the same shape and dtype, the first step is a `Pair` of both.

    If there are several `inputs`, value 0 holds all of them, flattened and concatenated, as float64, which
    represents each of their numbers exactly. The first steps are then one `InputPart` for each. If there are
    several `outputs`, the last step is their `OutputParts`.

    `batched`: the leading axis is a batch of 1 (or symbolic). `input_type`: declared integer type and fraction bits
    of the input tensor, if any. `runtime`: the program whose integers the model reproduces, as
    `hlsgen.frontend.runtimes` names it. `variables`: those that are inputs. `loops`: it has an LSTM of
    TFLite whose steps, one after the other in `steps`, can share one body. `sources`: inputs that the host has as
    integers.
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
    inputs: tuple[ModelInput, ...] = ()
    outputs: tuple[ModelOutput, ...] = ()
    runtime: str = "onnx"
    variables: tuple[ModelVariable, ...] = ()
    loops: bool = False
    sources: tuple[IntegerSource, ...] = ()

    @property
    def all_inputs(self) -> tuple[ModelInput, ...]:
        """`inputs`, or the only input as a tuple of one."""
        only_input = ModelInput(self.input_name, self.input_shape, self.input_dtype, self.batched, self.input_type)
        return self.inputs or (only_input,)

    @property
    def all_outputs(self) -> tuple[ModelOutput, ...]:
        """`outputs`, or the only output as a tuple of one."""
        shape = self.steps[-1].shape if self.steps else self.input_shape
        return self.outputs or (ModelOutput(self.output_name, shape, self.output_dtype),)


def zeros(rank: int) -> Array:
    """A float32 zero with `rank` axes of length 1, to broadcast against a tensor."""
    return np.zeros((1,) * rank, np.float32)
