"""`Graph`: the integer network for the hardware, with float pre- and postprocessing on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    """A tensor of integer codes and their encoding. `shape` is the shape of one frame."""

    shape: Shape
    type: IntType
    encoding: Encoding

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Map:
    """Elementwise integer function: decode the codes, apply `ops` in their dtypes, then `quantizer`."""

    name: str
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Linear:
    """acc[..., r] = sum over c of weight[r, c] * code[..., c], exact.

    `binary`: weights are 0/1 and acc counts equal bits of weight and code (XNOR popcount).
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

    An operand is code * factor + offset: the real value of the code as a whole multiple of one unit.
    `factors` and `offsets` hold one number for each operand.
    """

    name: str
    factors: tuple[int, int]
    offsets: tuple[int, int]
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Number of products in a sum."""
        return self.sources[0].shape[-1]

    def operand(self, n: int) -> IntType:
        """The type of operand `n` after its factor and offset."""
        type_, factor, offset = self.sources[n].type, self.factors[n], self.offsets[n]
        return IntType(type_.lo * factor + offset, type_.hi * factor + offset)

    @property
    def interval(self) -> IntType:
        """The interval of all sums that operands of these types can produce."""
        a, b = self.operand(0), self.operand(1)
        corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return IntType(self.depth * min(corners), self.depth * max(corners))


@dataclass(frozen=True, eq=False)
class Convolution:
    """Exact sums of weights times codes of each window, (n, height, width, channels) to (n, ..., outputs).

    weight int64 (outputs, kernel height, kernel width, channels / groups); output o uses the channels
    of group o // (outputs / groups). `pad`: the code outside the image. `binary`, `lo`, `hi` as in Linear.
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
    """Largest code or exact sum of codes of every window, for each channel; `pad` as in Convolution."""

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
    """The codes of all sources, concatenated along an axis."""

    name: str
    axis: int
    sources: tuple[Value, ...]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BinaryMap:
    """Elementwise function of two tensors of codes of one shape.

    Each source is decoded and passes the operations of its branch. `kind` combines the two, `ops` follow,
    and `quantizer` produces the codes.
    """

    name: str
    kind: BinaryKind
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


#: Operations that combine two float32 tensors in hardware.
FLOAT_BINARY_KINDS = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)


@dataclass(frozen=True, eq=False)
class FloatBinary:
    """float32 function of two tensors of one shape, without a quantizer.

    Each source is decoded and passes the operations of its branch. `kind` combines the two by addition,
    subtraction or multiplication, rounded once. -0.0 and 0.0 are the same.
    """

    name: str
    kind: BinaryKind
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PackBytes:
    """code = a mod 256 + 256 * (b mod 256), the two operands of a `Pair`; the sources are plain 8-bit integers."""

    name: str
    sources: tuple[Value, Value]
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class View:
    """Reshape or Transpose of codes: needs no hardware, only renumbers the elements."""

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


#: Mask values of a Softmax element. KEPT: takes part. UNIFORM: not removed, in a row without KEPT elements, where
#: all of these have the same code. REMOVED: has the probability 0.
MASK_KEPT, MASK_UNIFORM, MASK_REMOVED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Softmax of codes along the last axis; the result is float32.

    The result is numerators[d] * fl(1 / sum of powers[d]) with d = largest code of the row - code. The sum is
    exact and rounded once. A code of the scores is worth `step`; powers[d] is the float32 nearest to
    exp(-step * d).

    `step` None selects onnxruntime's operator for integers (`in_order`): numerators[d] / sum, rounded once, and
    0 below `QLINEAR_FLOOR`. Its sum is rounded after each addition, from the first element of the row to the last.
    Differences beyond the lookup tables have 0 in both.

    `mask`, of the source's shape, uint8: a `MASK_REMOVED` element has 0 in both and is never the largest code.
    In a row whose other elements are `MASK_UNIFORM`, all of these have the same code.
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
    """Normalizes vectors along the last axis as docs/numeric-contract.md defines; the codes are keys of float32.

    Each code represents the integer code * factor + offset. `addend` is the constant added to the moment for epsilon.
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
    """A function of vectors along the last axis, of the codes themselves. `merged`: the layers of which it is made."""

    name: str
    function: RowFunction
    source: Value
    result: Value
    inputs: tuple[int, ...]
    merged: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Delay:
    """A loop-carried value: row 0 is `source`, row t is row t - 1 of value `delayed`, which a later layer produces.

    Layers between the result and value `delayed` process each row independently.
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
class StreamedInput:
    """One of several inputs, with its own port: the codes at `offset` of the graph's input, reshaped.

    `port` is the suffix of the port's name.
    """

    name: str
    port: str
    offset: int
    source: Value
    result: Value
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StreamedOutputs:
    """Several outputs, each with its own port: the codes of all sources, flattened and concatenated.

    `ports` are the suffixes of the ports' names.
    """

    name: str
    ports: tuple[str, ...]
    sources: tuple[Value, ...]
    result: Value
    inputs: tuple[int, ...]


Layer = (
    Map
    | Linear
    | MatrixProduct
    | Convolution
    | Pooling
    | Rearrange
    | Concatenation
    | BinaryMap
    | FloatBinary
    | PackBytes
    | View
    | ArgMaxLayer
    | SoftmaxRows
    | NormRows
    | IntegerRows
    | Delay
    | StreamedInput
    | StreamedOutputs
)


def sources_of(layer: Layer) -> tuple[Value, ...]:
    """The values that a layer consumes, in the order of `inputs`."""
    if isinstance(layer, MatrixProduct | Concatenation | BinaryMap | FloatBinary | PackBytes | StreamedOutputs):
        return layer.sources
    return (layer.source,)


@dataclass(frozen=True, eq=False)
class GraphInput:
    """One part of an input port that is divided: `steps` on the host, then `encode`, as in `Graph`.

    Its codes begin at `offset` of the frame. `source` numbers the model input from which the host computes it.
    A model input that branches before its quantizers has several parts.
    """

    steps: tuple[Step, ...]
    encode: Quantizer | None
    offset: int
    value: Value
    source: int = 0


@dataclass(frozen=True, eq=False)
class GraphOutput:
    """One output, or one of its parts: codes at `offset` of the frame, then `steps` on the host, as in `Graph`."""

    steps: tuple[Step, ...]
    offset: int
    value: Value
    is_index: bool


@dataclass(frozen=True, eq=False)
class HostBinary:
    """The host combines two parts in `dtype`, each after its own steps; `steps` then produce an output of the model."""

    name: str
    kind: BinaryKind
    dtype: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class OutputAssembly:
    """An output of the model and its one part, or its two parts and the `host_binary` that combines them."""

    output: ModelOutput
    parts: tuple[GraphOutput, ...]
    host_binary: HostBinary | None


@dataclass(frozen=True, eq=False)
class FrameState:
    """A pair of an input and an output that carries codes from each frame to the next.

    Element i of the input is element moved[i] of the output of the frame before, int64 (size,). The first frame of a
    sequence has `initial` instead, codes int64 (size,).
    """

    name: str
    moved: Array
    initial: Array


@dataclass(frozen=True, eq=False)
class Graph:
    """The integer network: `head` on the host, `layers` in hardware, `tail` on the host.

    `output` is the result of the last layer, or the input if there is no layer. The steps of head and tail
    follow each other.
    `encode` is the quantizer that the host applies at the end of the head to produce the input
    codes. It is None if the input reaches the hardware as fixed point or float32 bits.

    A model can have several inputs, or an input that branches before its quantizers. Then `input` holds the codes
    of all `inputs`, flattened and concatenated, in the narrowest type that holds them; each part has its own
    encoding. `outputs` likewise. If each has its own port, layers StreamedInput and StreamedOutputs connect these
    frames to the streams.
    `states`: the pairs of the last inputs and the last outputs, in order. They have no ports; the host does not know
    them.
    `removed`: for each value and each of its axes, the positions that the graph of the model has and this one has not;
    empty if there are none.
    `host_binaries` has an entry for each model output: the node that combines its two parts among `outputs`, or
    Returns None if the output has one part.
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
    host_binaries: tuple[HostBinary | None, ...] = ()
    states: tuple[FrameState, ...] = ()
    removed: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @property
    def host_graph(self) -> Graph:
        """The graph as the host sees it: without its states, which are the last elements of input and output."""
        if not self.states:
            return self
        count, model = len(self.states), self.model
        inputs, outputs, binaries = self.inputs[:-count], self.outputs[:-count], self.host_binaries[:-count]
        sources, targets = model.inputs[:-count], model.outputs[:-count]
        first, target = sources[0], targets[0]
        model = replace(
            model,
            input_name=first.name if len(sources) == 1 else model.input_name,
            input_shape=first.shape if len(sources) == 1 else (sum(source.size for source in sources),),
            input_dtype=first.dtype if len(sources) == 1 else model.input_dtype,
            input_type=first.type if len(sources) == 1 else model.input_type,
            batched=first.batched if len(sources) == 1 else model.batched,
            inputs=sources if len(sources) > 1 else (),
            variables=tuple(v for v in model.variables if v.name in {source.name for source in sources}),
            output_name=target.name if len(targets) == 1 else model.output_name,
            output_dtype=target.dtype if len(targets) == 1 else model.output_dtype,
            outputs=targets if len(targets) > 1 else (),
        )
        graph = replace(
            self, model=model, states=(), inputs=inputs, outputs=outputs, host_binaries=binaries,
            input=_joined([part.value for part in inputs], self.input),
            output=_joined([part.value for part in outputs], self.output),
        )  # fmt: skip
        if len(inputs) == 1:
            part = inputs[0]
            graph = replace(graph, head=part.steps, encode=part.encode, input=part.value, inputs=())
        if len(outputs) == 1:
            end = outputs[0]
            return replace(
                graph, tail=end.steps, output=end.value, output_is_index=end.is_index, outputs=(), host_binaries=()
            )
        return graph

    @property
    def output_assemblies(self) -> tuple[OutputAssembly, ...]:
        """How each output of the model is assembled from `outputs`; empty if the output is not divided."""
        assemblies, remaining = list[OutputAssembly](), list(self.outputs)
        for output, host_binary in zip(self.model.all_outputs if remaining else (), self.host_binaries, strict=True):
            count = 1 if host_binary is None else 2
            assemblies.append(OutputAssembly(output, tuple(remaining[:count]), host_binary))
            del remaining[:count]
        return tuple(assemblies)

    @property
    def part_names(self) -> tuple[str, ...]:
        """A name for each of `outputs`; see `names_of_parts`."""
        return names_of_parts(self.model.all_outputs, self.host_binaries) if self.outputs else ()

    @property
    def streamed_inputs(self) -> tuple[tuple[int, int, Value], ...]:
        """(value number, offset in the input, value) of each input that has its own port, then of each state."""
        ports = [(i + 1, x.offset, x.result) for i, x in enumerate(self.layers) if isinstance(x, StreamedInput)]
        return tuple(ports) or ((0, 0, self.input),)

    @property
    def streamed_outputs(self) -> tuple[tuple[int, int, Value], ...]:
        """(value number, offset in the output, value) of each output that has its own port, then of each state."""
        last = self.layers[-1] if self.layers else None
        if not isinstance(last, StreamedOutputs):
            return ((len(self.layers), 0, self.output),)
        offsets = [sum(value.size for value in last.sources[:n]) for n in range(len(last.sources))]
        return tuple(zip(last.inputs, offsets, last.sources, strict=True))


def _joined(values: Sequence[Value], like: Value) -> Value:
    """A port for these values: the first ones of port `like`."""
    return replace(like, shape=(sum(value.size for value in values),))


def names_of_parts(outputs: Sequence[ModelOutput], host_binaries: Sequence[HostBinary | None]) -> tuple[str, ...]:
    """The name of each part of these outputs: the output's name, with the part's number if there are two parts."""
    names = list[str]()
    for output, host_binary in zip(outputs, host_binaries, strict=True):
        names += [output.name] if host_binary is None else [f"{output.name} (1)", f"{output.name} (2)"]
    return tuple(names)
