"""States of loops whose body is built once: a `Delay` for each, which gives its codes back one row later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.ir import Delay, Map, Previous, Rearrange, Repeat, Reshape, Shape, Slice, State, Step, Value, View
from hlsgen.ir.encoding import Encoding, IntegerEncoding
from hlsgen.ir.evaluate import code_type, decoding
from hlsgen.ir.ops import QUANTIZERS, Constant, Dequantize, IntQuant, QuantizeLinear, Quantizer
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue


class Loops:
    """The states of a model: the quantizer of each, by name, with the decoding behind it, and the value that has its codes."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.quantizers: dict[str, tuple[Quantizer, Dequantize | None]] = {}
        self.made: dict[str, PendingValue] = {}
        self.delays: dict[str, int] = {}
        for step in steps:
            if isinstance(step.op, State) and step.op.state:
                end = steps[step.inputs[0] - 1]
                decoded = end.op if isinstance(end.op, Dequantize) else None
                first = steps[end.inputs[0] - 1].op if decoded else end.op
                if isinstance(first, QUANTIZERS) and (quantizer := _plain(first, decoded)) is not None:
                    self.quantizers[step.op.state] = quantizer, decoded

    def lowered(self, builder: GraphBuilder, step: Step, operands: Sequence[PendingValue]) -> PendingValue:
        """The result of a Previous or a State; of several tensors the first one, as the last value."""
        data = operands[0]
        if isinstance(step.op, State) and not step.op.state:
            codes = builder.flushed(data)
            if codes.index < 0 or codes.index == len(builder.values) - 1:
                return codes
            same = View(step.name, Reshape(), codes.value, codes.value, (codes.index,))
            return replace(codes, index=builder.add(same).index)
        if isinstance(step.op, State):
            found = builder.flushed(data)
            self.made[step.op.state] = found
            return replace(found, shared=True)
        assert isinstance(step.op, Previous)
        if step.op.state not in self.quantizers:
            raise _not_once(step.op.state, "its quantizer is joined with others")
        quantizer, decoded = self.quantizers[step.op.state]
        first = _initial(builder, step.name, builder.to_codes(step.name, data), step.op, quantizer)
        result = replace(first.value, shape=step.shape)
        made = builder.add(Delay(step.name, -1, first.value, result, (first.index,)))
        self.delays[step.op.state] = made.index
        return builder.flushed(made if decoded is None else made.then(step.name, decoded))

    def close(self, builder: GraphBuilder) -> None:
        """Gives each Delay the value that has the codes of its state. Raises HG010."""
        for state, number in self.delays.items():
            delay, found = builder.layers[number], self.made.get(state)
            assert isinstance(delay, Delay)
            if found is None or found.index < 0 or found.named_ops or found.branches:
                raise _not_once(state, "it is no tensor of codes")
            own = builder.values[found.index]
            if own.type != delay.result.type or own.shape != delay.result.shape:
                raise _not_once(state, f"it is {own.type} {own.shape}, what goes in {delay.result.type}")
            builder.layers[number] = replace(delay, delayed=found.index)


def _plain(quantizer: Quantizer, decoded: Dequantize | None) -> Quantizer | None:
    """The quantizer of numbers whose codes mean what those of this one do, which may take codes itself."""
    if decoded is None:
        return quantizer if isinstance(quantizer, IntQuant) else None
    meaning = decoding(quantizer)
    if not isinstance(meaning, IntegerEncoding):
        return None
    return QuantizeLinear(decoded.scale, decoded.zero_point, code_type(quantizer), meaning.dtype)


def _initial(builder: GraphBuilder, name: str, codes: PendingValue, op: Previous, quantizer: Quantizer) -> PendingValue:
    """The initial state as a function of the first element of other data: it comes with each frame, and when that does."""
    size, source = math.prod(op.initial.shape), codes.value
    one = tuple((0, 1, 1) for _ in source.shape)
    name = f"{name} initial"

    def value(like: Value, shape: Shape) -> Value:
        return replace(like, shape=shape, encoding=_of_one(like.encoding))

    def viewed(tensor: PendingValue, shape: Shape) -> PendingValue:
        return builder.relabelled(name, PendingValue(tensor.index, tensor.value), Reshape(), shape)

    element = value(source, (1,) * len(one))
    cut = builder.add(Rearrange(name, Slice(one), 0, source, element, (codes.index,)))
    pixel = viewed(cut, (1, 1, 1, 1))
    row = replace(pixel.value, shape=(1, 1, size, 1))
    many = viewed(builder.add(Rearrange(name, Repeat(1, size), 0, pixel.value, row, (pixel.index,))), op.initial.shape)
    result = Value(op.initial.shape, code_type(quantizer), decoding(quantizer))
    return builder.add(Map(name, (Constant(op.initial),), quantizer, many.value, result, (many.index,)))


def _of_one(encoding: Encoding) -> Encoding:
    """What the codes of one element mean. Its scale is that of the first; which does not count."""
    fields = vars(encoding).items()
    arrays: dict[str, Any] = {k: v[tuple(slice(0, 1) for _ in v.shape)] for k, v in fields if isinstance(v, np.ndarray)}
    return replace(encoding, **arrays)


def _not_once(state: str, why: str) -> HlsgenError:
    return fail("HG010", state, f"a state whose loop is not built once: {why}.", "Build with --recurrence unrolled.")
