"""Splits a model into host head, integer layers and host tail.

Elementwise float work between two integer tensors becomes one `Map`, whatever it consists of:
it is a function of one integer per channel. Reshapes and transposes move in front of it. A linear
layer becomes exact integer sums, see docs/numeric-contract.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.errors import Collector, HlsgenError, fail, stuck
from hlsgen.fixed import IntType
from hlsgen.ir import (
    Accumulator,
    Affine,
    ArgMax,
    Decode,
    Fixed,
    FloatBits,
    Graph,
    HostOp,
    Layer,
    Linear,
    Map,
    MatMul,
    MatMulInteger,
    Model,
    Op,
    Relabel,
    Reshape,
    Step,
    Transpose,
    Value,
    Whole,
    Winner,
)
from hlsgen.operations import (
    Activation,
    Add,
    Bipolar,
    Cast,
    Dequantize,
    Div,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    QuantizeLinear,
    Quantizer,
    Requantize,
    SignedBit,
    Trunc,
)
from hlsgen.passes.meaning import (
    MAX_ACCUMULATOR_BITS,
    column_meaning,
    grid,
    order_kept,
    too_wide,
    whole_zero,
    zero_shift,
)
from hlsgen.passes.relabel import relabel
from hlsgen.semantics import KEY_POS_INF, code_type, decoding

QUANTIZERS = (
    IntQuant, Bipolar, SignedBit, Trunc, MultiThreshold, QuantizeLinear, Requantize, FloatQuant, Pair, FixedAdd,
)  # fmt: skip
FLOAT = (Mul, Add, Fma, Div, Max, Min, Cast, Dequantize, Activation)
LINEAR = (MatMul, MatMulInteger)
#: Inputs of more bits are not tried one by one.
_WIDE = 20


@dataclass(frozen=True)
class InputMode:
    """What the hardware's input port carries: "codes", "fixed" or "float32"."""

    kind: str
    type: IntType | None = None
    fraction: int = 0


def lower(model: Model, mode: InputMode | None, problems: Collector) -> Graph:
    """The integer graph. `mode` None chooses: declared type, else float32 for a graph that has no
    linear layer, else codes. Raises HlsgenError."""
    steps = model.steps
    hardware = [i for i, s in enumerate(steps) if isinstance(s.op, (*QUANTIZERS, *LINEAR))]
    if not hardware:
        raise fail(
            "HG036", model.name, "the model has no quantizer and no linear layer.",
            "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX).",
        )  # fmt: skip
    first, last = hardware[0], hardware[-1]
    for step in [s for s in steps[first : last + 1] if isinstance(s.op, (HostOp, ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"))
    mode = mode or _default_mode(model, steps[first].op, problems)
    builder = _Builder(model, mode, first, problems)
    builder.check_layers(steps[first : last + 1])
    problems.finish()
    return builder.build(last + _bounded(steps[last].op, [s.op for s in steps[last + 1 :]])[1])


def _default_mode(model: Model, first: object, problems: Collector) -> InputMode:
    linear = any(isinstance(s.op, LINEAR) for s in model.steps)
    if model.input_type:
        return InputMode("fixed", *model.input_type)
    if isinstance(first, LINEAR):
        problems.warn(
            "HG090", model.input_name, "the input has no quantizer and no declared type; taken as 8-bit integers.",
            "Say what it is with --input fixed:W,I or ufixed:W,I.",
        )  # fmt: skip
        return InputMode("fixed", IntType(-128, 127), 0)
    return InputMode("codes" if linear else "float32")


class _Builder:
    """Walks the hardware steps. `value` is the last tensor of codes, `pending` what follows it."""

    def __init__(self, model: Model, mode: InputMode, first: int, problems: Collector) -> None:
        self.model, self.mode, self.first, self.problems = model, mode, first, problems
        self.layers: list[Layer] = []
        self.pending: list[tuple[str, Elementwise]] = []

    def check_layers(self, steps: tuple[Step, ...]) -> None:
        """Problems that can be seen before anything is built, all of them."""
        if self.mode.kind == "codes" and isinstance(steps[0].op, LINEAR):
            self.problems.error(
                "HG032", steps[0].name, "the layer's input is not quantized.",
                "Put a quantizer in front, or say --input fixed:W,I.",
            )  # fmt: skip
        if self.mode.kind == "float32" and isinstance(steps[0].op, LINEAR):
            self.problems.error(
                "HG042", steps[0].name, "float32 input goes straight into a linear layer.",
                "Use --input fixed:W,I, or put a quantizer in front of the layer.",
            )  # fmt: skip

    def build(self, last: int) -> Graph:
        model, steps = self.model, self.model.steps
        start, encode = self._start()
        core_end = last + 1
        for step in steps[start:core_end]:
            try:
                self._step(step)
            except HlsgenError as error:
                self._assume(step, error)
        self.problems.finish()
        rest = steps[core_end:]
        winner = next((i for i, s in enumerate(rest) if isinstance(s.op, ArgMax)), None)
        is_index = False
        leftover = self._flush()
        if winner is not None and self._winner(rest[: winner + 1], leftover):
            rest, leftover, is_index = rest[winner + 1 :], [], True
        tail = [Step(name, op, self.value.shape) for name, op in leftover] + list(rest)
        return Graph(
            model, tuple(steps[: self.head_end]), encode, self.source, tuple(self.layers), self.value, tuple(tail),
            is_index, tuple(str(w) for w in self.problems.warnings),
        )  # fmt: skip

    def _start(self) -> tuple[int, Quantizer | None]:
        """Sets the input value; gives the first step that hardware does and the host's quantizer."""
        steps, first = self.model.steps, self.first
        if self.mode.kind == "codes":
            op, bounds = _bounded(steps[first].op, [s.op for s in steps[first + 1 :]])
            assert isinstance(op, QUANTIZERS)
            self.source = self.value = Value(steps[first].shape, code_type(op), decoding(op))
            self.head_end = first
            return first + 1 + bounds, op
        host = [i for i, s in enumerate(steps[:first]) if isinstance(s.op, (HostOp, ArgMax))]
        self.head_end = host[-1] + 1 if host else 0
        shape = steps[self.head_end - 1].shape if self.head_end else self.model.input_shape
        meaning: Decode
        if self.mode.kind == "fixed":
            assert self.mode.type is not None
            type_, meaning = self.mode.type, Fixed(self.mode.fraction)
            if np.dtype(self.model.input_dtype).kind in "iu" and not self.mode.fraction and not self.head_end:
                dtype = "uint16" if self.model.second_input else self.model.input_dtype
                meaning = Whole(dtype, np.zeros((1,) * len(shape), np.int64))
        else:
            type_, meaning = IntType(0, KEY_POS_INF), FloatBits()
        self.source = self.value = Value(shape, type_, meaning)
        if self.model.input_dtype in ("float16", "float64") and not self.head_end:
            self._other_float(type_)
        return self.head_end, None

    def _other_float(self, type_: IntType) -> None:
        """The port gives float32; the model goes on in its own float type."""
        dtype = self.model.input_dtype
        if dtype == "float64" and (self.mode.kind == "float32" or type_.bits > 24):
            raise fail(
                "HG042", self.model.input_name, "a float64 input does not fit a float32 port.",
                "Use --input codes, or fixed:W,I with W of at most 24.",
            )  # fmt: skip
        self.pending.append((self.model.input_name, Cast(dtype)))

    def _assume(self, step: Step, error: HlsgenError) -> None:
        """Goes on behind a wrong layer as if it gave 8-bit codes, to find what else is wrong."""
        with self.problems.catching():
            raise error
        self.pending = []
        self.value = Value(step.shape, IntType(-128, 127), Affine(np.float32(1), np.float32(0)))

    def _step(self, step: Step) -> None:
        op = step.op
        if isinstance(op, (Reshape, Transpose)):
            self._relabel(step.name, op, step.shape)
        elif isinstance(op, LINEAR):
            rest = self._flush()
            if rest:
                self._absorb(step.name, rest)
            if isinstance(op, MatMul):
                self._linear(step.name, op, step.shape)
            else:
                self._linear_integer(step.name, op, step.shape)
        else:
            assert isinstance(op, (*QUANTIZERS, *FLOAT))
            self.pending.append((step.name, op))

    def _relabel(self, name: str, op: Reshape | Transpose, shape: tuple[int, ...]) -> None:
        before = self.value
        if isinstance(op, Reshape) and before.shape == shape:
            return
        after = Value(shape, before.type, relabel(before.decode, op, before.shape, shape))
        self.pending = [(n, relabel(p, op, before.shape, shape)) for n, p in self.pending]
        self.layers.append(Relabel(name, op, before, after))
        self.value = after

    def _flush(self) -> list[tuple[str, Elementwise]]:
        """Turns pending work up to its last quantizer into a Map; gives what follows that.

        What activations do behind the first quantizer of a wide input stays a function of few codes.
        """
        ends = [i for i, (_, op) in enumerate(self.pending) if isinstance(op, QUANTIZERS)]
        curved = any(isinstance(op, Activation) for _, op in self.pending[ends[0] :]) if ends else False
        if curved and len(ends) > 1 and self.value.type.bits > _WIDE:
            self._close(ends[0])
        ends = [i for i, (_, op) in enumerate(self.pending) if isinstance(op, QUANTIZERS)]
        if ends:
            self._close(ends[-1])
        rest, self.pending = self.pending, []
        if rest and (meaning := _dequantized(self.value, rest[0][1])) is not None:
            self.value = replace(self.value, decode=meaning)
            if self.layers:
                self.layers[-1] = replace(self.layers[-1], result=self.value)
            rest = rest[1:]
        return rest

    def _close(self, end: int) -> None:
        """Makes a Map of the pending work up to the quantizer at `end`, and the bounds that follow it."""
        name, quantizer = self.pending[end]
        narrowed, bounds = _bounded(quantizer, [op for _, op in self.pending[end + 1 :]])
        assert isinstance(narrowed, QUANTIZERS)
        self._map(name, [op for _, op in self.pending[:end]], narrowed)
        self.pending = self.pending[end + 1 + bounds :]

    def _map(self, name: str, ops: list[Elementwise], quantizer: Quantizer) -> None:
        result = Value(self.value.shape, code_type(quantizer), decoding(quantizer))
        self.layers.append(Map(name, tuple(ops), quantizer, self.value, result))
        self.value = result

    def _absorb(self, name: str, rest: list[tuple[str, Elementwise]]) -> None:
        """Float work between a quantizer and a linear layer, if it keeps the codes on a grid.

        Relu, Clip, and arithmetic that gives exact multiples of one scale for every code become an
        integer function; anything else is an error.
        """
        ops = [op for _, op in rest]
        quantizer = grid(self.value, ops)
        if quantizer is None:
            for node, op in rest:
                self.problems.error(
                    "HG030", node, f"float operation {type(op).__name__} stands between a quantizer and {name}.",
                    "Its result is no multiple of one scale: quantize it again before the layer.",
                )  # fmt: skip
            self.problems.finish()
            return
        last = self.layers[-1] if self.layers else None
        if isinstance(last, Map):
            self.layers.pop()
            self.value = last.source
            ops = [*last.ops, last.quantizer, *ops]
        self._map(rest[-1][0], ops, quantizer)

    def _linear(self, name: str, op: MatMul, shape: tuple[int, ...]) -> None:
        scale, zero = column_meaning(name, self.value)
        shift = zero_shift(name, zero)
        ratio = scale / scale.min()
        if (ratio != np.round(ratio)).any() or ratio.max() > 1 << 16:
            raise fail("HG034", name, "the input's scale differs along the summed axis.", "Use one scale per tensor.")
        source, columns = self.value.type, op.weight.shape[1]
        reach = max(abs(source.lo), abs(source.hi), float(np.abs(zero).max())) * 2.0**shift
        wide = float(np.abs(op.weight).max()) * float(ratio.max()) * reach * columns
        if wide >= 2.0 ** (MAX_ACCUMULATOR_BITS + 8):
            raise too_wide(name, int(np.log2(wide)) + 2)
        weight = op.weight * ratio.astype(np.int64)
        offset = -(weight @ np.round(zero * 2.0**shift).astype(np.int64))
        real = float(scale.min()) * 2.0**-shift * op.scale.astype(np.float64)
        binary = source == IntType(0, 1) and bool((zero == 0.5).all()) and bool((np.abs(weight) == 1).all())
        if binary:
            meaning = Accumulator(2, np.full(len(weight), -columns), real)
            weight = (weight > 0).astype(np.int64)
            lo, hi = np.zeros(len(weight), np.int64), np.full(len(weight), columns)
        else:
            ends = weight * source.lo, weight * source.hi
            lo, hi = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
            meaning = Accumulator(1 << shift, offset, real)
        bound = max(abs(int(x)) for x in (lo.min(), hi.max())) * meaning.factor + int(np.abs(meaning.offset).max())
        if bound >= 1 << MAX_ACCUMULATOR_BITS:
            raise too_wide(name, bound.bit_length() + 1)
        result = Value(shape, IntType(int(lo.min()), int(hi.max())), meaning)
        self.layers.append(Linear(name, weight, binary, self.value, result, lo, hi))
        self.value = result

    def _linear_integer(self, name: str, op: MatMulInteger, shape: tuple[int, ...]) -> None:
        """Exact sums of codes; what the zero points add is a constant of each row."""
        zero = op.zero_point - whole_zero(name, self.value)
        ends = op.weight * self.value.type.lo, op.weight * self.value.type.hi
        lo, hi = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        wide = max(abs(int(lo.min())), abs(int(hi.max()))).bit_length() + 1
        if wide > MAX_ACCUMULATOR_BITS:
            raise too_wide(name, wide)
        offset = -(op.weight * zero).sum(axis=1)
        result = Value(shape, IntType(int(lo.min()), int(hi.max())), Whole("int32", offset))
        self.layers.append(Linear(name, op.weight, False, self.value, result, lo, hi))
        self.value = result

    def _winner(self, steps: tuple[Step, ...], leftover: list[tuple[str, Elementwise]]) -> bool:
        """Adds an ArgMax in hardware if comparing codes is proven to compare the real values."""
        between = [s.op for s in steps[:-1]]
        if not all(isinstance(op, FLOAT) for op in between):
            return False
        ops: list[Elementwise] = [op for _, op in leftover] + [op for op in between if isinstance(op, FLOAT)]
        if not order_kept(self.value, ops):
            return False
        name, shape = steps[-1].name, steps[-1].shape
        count = self.value.shape[-1]
        meaning = Affine(np.float32(1), np.float32(0))
        result = Value(shape, IntType(0, count - 1), meaning)
        self.layers.append(Winner(name, self.value, result))
        self.value = result
        return True


def _bounded(op: Op, following: Sequence[Op]) -> tuple[Op, int]:
    """A quantizer with the integer bounds (of Clip, Relu) that follow it inside, and how many these are."""
    for count, bound in enumerate(following):
        if not isinstance(op, QuantizeLinear | Requantize) or not isinstance(bound, Max | Min):
            return op, count
        value = np.unique(bound.value)
        if value.dtype.kind not in "iu" or len(value) > 1:
            return op, count
        end = max if isinstance(bound, Max) else min
        op = replace(op, type=IntType(end(op.type.lo, int(value[0])), end(op.type.hi, int(value[0]))))
    return op, len(following)


def _dequantized(value: Value, op: Elementwise) -> Affine | None:
    """What the codes mean behind a DequantizeLinear that follows them directly."""
    if not isinstance(op, Dequantize) or not isinstance(value.decode, Whole) or op.scale.dtype != np.float32:
        return None
    if value.decode.offset.any() or value.type.bits > 25:
        return None
    return Affine(op.scale, op.zero_point.astype(np.float32))
