"""Splits a model into host head, integer layers and host tail.

Elementwise float work between two integer tensors becomes one `Map`, whatever it consists of:
it is a function of one integer per channel. Reshapes and transposes move in front of it. A linear
layer becomes exact integer sums, see docs/numeric-contract.md. What two branches do to each other
becomes a `BinaryMap`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError, fail, stuck
from hlsgen.ir import (
    Affine,
    ArgMax,
    ArgMaxLayer,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    Encoding,
    Fixed,
    FloatKey,
    Graph,
    HostOp,
    IntegerEncoding,
    MatMul,
    MatMulInteger,
    Model,
    Pack,
    Pad,
    Pool,
    Repeat,
    Reshape,
    Select,
    Slice,
    Step,
    Transpose,
    Value,
)
from hlsgen.ir.evaluate import KEY_POS_INF, code_type, decoding
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Cast, Elementwise, Quantizer
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import fuse_pad_into_conv, fuse_unary_subgraphs, move_concat_past_quant, move_maxpool_past_quant
from hlsgen.passes.graph_builder import GraphBuilder, PendingValue, bounded
from hlsgen.passes.input_mode import InputMode, default_mode
from hlsgen.passes.lower_linear import linear, linear_integer
from hlsgen.passes.lower_windows import concatenation, convolution, padding, pooling, rearrangement
from hlsgen.passes.partition import LINEAR, Partition
from hlsgen.passes.quantization import order_kept


def lower(model: Model, mode: InputMode | None, problems: Collector) -> Graph:
    """The integer graph. `mode` None chooses: declared type, else float32 for a graph that has no
    linear layer, else codes. Raises HlsgenError."""
    model = move_maxpool_past_quant.behind_quantizers(
        move_concat_past_quant.behind_quantizers(fuse_unary_subgraphs.functions_of_one(model))
    )
    model = fuse_pad_into_conv.into_convolutions(model)
    steps = model.steps
    if not any(isinstance(s.op, (*QUANTIZERS, *LINEAR)) for s in steps):
        raise fail(
            "HG036", model.name, "the model has no quantizer and no linear layer.",
            "There is nothing to build: is this a float model? Quantize it first (Brevitas, QKeras + QONNX).",
        )  # fmt: skip
    parts = Partition(steps)
    core = [steps[i] for i in parts.core]
    for step in [s for s in core if isinstance(s.op, (HostOp, ArgMax))]:
        problems.items.append(stuck(step.name, step.op.op_type if isinstance(step.op, HostOp) else "ArgMax"))
    first = steps[parts.first].op if parts.first >= 0 else None
    typed = model if parts.input_type_holds(steps) else replace(model, input_type=None)
    mode = mode or default_mode(typed, first, isinstance(first, LINEAR), problems)
    builder = _Lowering(model, mode, parts, problems)
    builder.check_layers()
    problems.finish()
    return builder.build()


class _Lowering(GraphBuilder):
    """Walks the steps of the core; `held` says what is known of every value of the model."""

    def __init__(self, model: Model, mode: InputMode, parts: Partition, problems: Collector) -> None:
        super().__init__(problems)
        self.model, self.mode, self.parts = model, mode, parts
        self.held: dict[int, PendingValue] = {}

    def check_layers(self) -> None:
        """Problems that can be seen before anything is built, all of them."""
        if self.parts.first < 0:
            if self.mode.kind == "codes":
                self.problems.error(
                    "HG032", self.model.input_name, "several operations use the input, and no quantizer comes first.",
                    "Put one quantizer in front, or say --input fixed:W,I or float32.",
                )  # fmt: skip
            return
        step = self.model.steps[self.parts.first]
        if self.mode.kind == "codes" and not isinstance(step.op, QUANTIZERS):
            self.problems.error(
                "HG032", step.name, "the layer's input is not quantized.",
                "Put a quantizer in front, or say --input fixed:W,I.",
            )  # fmt: skip
        if self.mode.kind == "float32" and not isinstance(step.op, QUANTIZERS):
            self.problems.error(
                "HG042", step.name, "float32 input goes straight into a linear layer.",
                "Use --input fixed:W,I, or put a quantizer in front of the layer.",
            )  # fmt: skip

    def build(self) -> Graph:
        model, steps, parts = self.model, self.model.steps, self.parts
        encode, head, core = self._start()
        for i in core:
            try:
                self._step(i, steps[i])
            except HlsgenError as error:
                self._assume(i, steps[i], error)
        self.problems.finish()
        rest = [steps[i] for i in parts.tail]
        end = self.flushed(self.held[rest[0].inputs[0] if rest else len(steps)])
        if end.branches:
            end = self.to_codes("the output", end)
        leftover, is_index = list(end.pending), False
        winner = next((i for i, s in enumerate(rest) if isinstance(s.op, ArgMax)), None)
        if winner is not None:
            found = self._winner(end, rest[: winner + 1])
            if found is not None:
                end, rest, leftover, is_index = found, rest[winner + 1 :], [], True
        output = self.delivered(end)
        tail = [Step(name, op, output.shape, ()) for name, op in leftover] + rest
        return Graph(
            model, tuple(steps[i] for i in head), encode, self.values[0], tuple(self.layers), output, tuple(tail),
            is_index, tuple(str(w) for w in self.problems.warnings),
        )  # fmt: skip

    def _start(self) -> tuple[Quantizer | None, list[int], list[int]]:
        """Sets the input value; gives the host's quantizer, the steps of its head, and those of the core."""
        model, parts = self.model, self.parts
        steps, head, core = model.steps, parts.head, parts.core
        if self.mode.kind == "codes":
            run = [parts.first]
            while len(parts.users[run[-1] + 1]) == 1 and parts.users[run[-1] + 1][0] in core:
                run.append(parts.users[run[-1] + 1][0])
            op, bounds = bounded(steps[run[0]].op, [steps[i].op for i in run[1:]])
            assert isinstance(op, QUANTIZERS)
            value = Value(steps[run[0]].shape, code_type(op), decoding(op))
            self.values.append(value)
            self.held[run[bounds] + 1] = PendingValue(0, value)
            return op, head, [i for i in core if i not in run[: bounds + 1]]
        host = [n for n, i in enumerate(head) if isinstance(steps[i].op, (HostOp, ArgMax))]
        cut = host[-1] + 1 if host else 0
        shape = steps[head[cut - 1]].shape if cut else model.input_shape
        meaning: Encoding
        if self.mode.kind == "fixed":
            assert self.mode.type is not None
            type_, meaning = self.mode.type, Fixed(self.mode.fraction)
            if np.dtype(model.input_dtype).kind in "iu" and not self.mode.fraction and not cut:
                dtype = "uint16" if model.second_input else model.input_dtype
                meaning = IntegerEncoding(dtype, np.zeros((1,) * len(shape), np.int64))
        else:
            type_, meaning = IntType(0, KEY_POS_INF), FloatKey()
        value = Value(shape, type_, meaning)
        self.values.append(value)
        pending = self._other_float(type_) if not cut else ()
        self.held[head[cut - 1] + 1 if cut else 0] = PendingValue(0, value, pending)
        return None, head[:cut], [*head[cut:], *core]

    def _other_float(self, type_: IntType) -> tuple[tuple[str, Elementwise], ...]:
        """The port gives float32; the model goes on in its own float type."""
        dtype = self.model.input_dtype
        if dtype not in ("float16", "float64"):
            return ()
        if dtype == "float64" and (self.mode.kind == "float32" or type_.bits > 24):
            raise fail(
                "HG042", self.model.input_name, "a float64 input does not fit a float32 port.",
                "Use --input codes, or fixed:W,I with W of at most 24.",
            )  # fmt: skip
        return ((self.model.input_name, Cast(dtype)),)

    def _assume(self, i: int, step: Step, error: HlsgenError) -> None:
        """Goes on behind a wrong layer as if it gave 8-bit codes, to find what else is wrong."""
        with self.problems.catching():
            raise error
        self.values.append(Value(step.shape, IntType(-128, 127), Affine(np.float32(1), np.float32(0))))
        self.held[i + 1] = PendingValue(len(self.values) - 1, self.values[-1])
        self.layers.append(None)  # keeps the numbers; nothing is built from it

    def _step(self, i: int, step: Step) -> None:
        held = [self.held[j] for j in step.inputs]
        found = self._apply(step, held)
        if len(self.parts.users[i + 1]) > 1:
            if any(isinstance(op, QUANTIZERS) for _, op in found.pending):
                found = self.flushed(found)  # all users share one function
            found = replace(found, shared=True)
        self.held[i + 1] = found

    def _apply(self, step: Step, held: list[PendingValue]) -> PendingValue:
        op, name, first = step.op, step.name, held[0]
        match op:
            case Reshape() | Transpose():
                return self.relabelled(name, first, op, step.shape)
            case MatMul():
                return linear(self, name, op, self.to_codes(name, first), step.shape)
            case MatMulInteger():
                return linear_integer(self, name, op, self.to_codes(name, first), step.shape)
            case Conv() | ConvInteger():
                return convolution(self, name, op, self.to_codes(name, first), step.shape)
            case Pool():
                return pooling(self, name, op, first, step.shape)
            case Pad():
                return padding(self, name, op, self.to_codes(name, first), step.shape)
            case Repeat() | Slice():
                return rearrangement(self, name, op, first, step.shape)
            case Concat():
                return concatenation(self, name, op, held, step.shape)
            case Binary():
                return self.joined(name, op, held[0], held[1])
            case Pack():
                return self.packed(name, held[0], held[1], step.shape)
            case HostOp() | ArgMax() | Select():
                raise AssertionError("host operations end hardware")
            case _:
                return first.then(name, op)

    def _winner(self, end: PendingValue, steps: list[Step]) -> PendingValue | None:
        """An ArgMax in hardware if comparing codes is proven to compare the real values."""
        between = [s.op for s in steps[:-1]]
        if not all(isinstance(op, FLOATS) for op in between):
            return None
        ops: list[Elementwise] = [op for _, op in end.pending] + [op for op in between if isinstance(op, FLOATS)]
        if not order_kept(end.value, ops):
            return None
        name, shape = steps[-1].name, steps[-1].shape
        result = Value(shape, IntType(0, end.value.shape[-1] - 1), Affine(np.float32(1), np.float32(0)))
        return self.add(ArgMaxLayer(name, end.value, result, (end.index,)))

    def delivered(self, end: PendingValue) -> Value:
        """The output, which must be the last value."""
        assert end.index == len(self.values) - 1, "the output is not the last layer"
        return replace(end.value)
