"""Lowers states of loops whose body is built once: a `Delay` for each delays its codes by one row."""

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
from hlsgen.numerics.fixed import Array
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue


class Loops:
    """The states of a model by name: their quantizers and decodings, and the values that hold their codes."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.quantizers: dict[str, tuple[Quantizer, Dequantize | None]] = {}
        self.codes_of_states: dict[str, PendingValue] = {}
        self.delays: dict[str, int] = {}
        for step in steps:
            if isinstance(step.op, State) and step.op.state:
                producer = steps[step.inputs[0] - 1]
                decoded = producer.op if isinstance(producer.op, Dequantize) else None
                quantizer_op = steps[producer.inputs[0] - 1].op if decoded else producer.op
                if (
                    isinstance(quantizer_op, QUANTIZERS)
                    and (quantizer := _quantizer_of_numbers(quantizer_op, decoded)) is not None
                ):
                    self.quantizers[step.op.state] = quantizer, decoded

    def lower(self, builder: GraphBuilder, step: Step, operands: Sequence[PendingValue]) -> PendingValue:
        """The result of a Previous or a State.

        A State without a name has several operands; its result is the first of them, made the graph's last value.
        """
        data = operands[0]
        if isinstance(step.op, State) and not step.op.state:
            codes = builder.flush(data)
            if codes.index < 0 or codes.index == len(builder.values) - 1:
                return codes
            view = View(step.name, Reshape(), codes.value, codes.value, (codes.index,))
            return replace(codes, index=builder.add(view).index)
        if isinstance(step.op, State):
            state_codes = builder.flush(data)
            self.codes_of_states[step.op.state] = state_codes
            return replace(state_codes, shared=True)
        assert isinstance(step.op, Previous)
        if step.op.initial is None:
            codes = builder.to_codes(step.name, data)
            delay = builder.add(
                Delay(step.name, -1, codes.value, replace(codes.value, shape=step.shape), (codes.index,))
            )
            self.delays[step.op.state] = delay.index
            return delay
        if step.op.state not in self.quantizers:
            raise _unroll_error(step.op.state, "its quantizer is joined with others")
        quantizer, decoded = self.quantizers[step.op.state]
        initial = _initial(builder, step.name, builder.to_codes(step.name, data), step.op.initial, quantizer)
        result = replace(initial.value, shape=step.shape)
        delay = builder.add(Delay(step.name, -1, initial.value, result, (initial.index,)))
        self.delays[step.op.state] = delay.index
        return builder.flush(delay if decoded is None else delay.then(step.name, decoded))

    def close(self, builder: GraphBuilder) -> None:
        """Connect each Delay to the value that holds the codes of its state. Raises HG010."""
        for state, number in self.delays.items():
            delay, codes = builder.layers[number], self.codes_of_states.get(state)
            assert isinstance(delay, Delay)
            if codes is None or codes.index < 0 or codes.named_ops or codes.branches:
                raise _unroll_error(state, "it is not a tensor of codes")
            value = builder.values[codes.index]
            if value.type != delay.result.type or value.shape != delay.result.shape:
                raise _unroll_error(
                    state, f"it is {value.type} {value.shape}, but its initial value is {delay.result.type}"
                )
            builder.layers[number] = replace(delay, delayed=codes.index)


def _quantizer_of_numbers(quantizer: Quantizer, decoded: Dequantize | None) -> Quantizer | None:
    """The quantizer from numbers to the codes of `quantizer`, which may itself take codes, or None if there is none."""
    if decoded is None:
        return quantizer if isinstance(quantizer, IntQuant) else None
    encoding = decoding(quantizer)
    if not isinstance(encoding, IntegerEncoding):
        return None
    return QuantizeLinear(decoded.scale, decoded.zero_point, code_type(quantizer), encoding.dtype)


def _initial(
    builder: GraphBuilder, name: str, codes: PendingValue, numbers: Array, quantizer: Quantizer
) -> PendingValue:
    """The initial state as a function of the first element of other data.

    The other data repeats the initial state for each frame, at the right time.
    """
    size, source = math.prod(numbers.shape), codes.value
    first_element = tuple((0, 1, 1) for _ in source.shape)
    name = f"{name} initial"

    def first_element_value(like: Value, shape: Shape) -> Value:
        return replace(like, shape=shape, encoding=_first_element_encoding(like.encoding))

    def viewed(tensor: PendingValue, shape: Shape) -> PendingValue:
        return builder.relabelled(name, PendingValue(tensor.index, tensor.value), Reshape(), shape)

    element = first_element_value(source, (1,) * len(first_element))
    element_layer = builder.add(Rearrange(name, Slice(first_element), 0, source, element, (codes.index,)))
    pixel = viewed(element_layer, (1, 1, 1, 1))
    row = replace(pixel.value, shape=(1, 1, size, 1))
    repeated = viewed(builder.add(Rearrange(name, Repeat(1, size), 0, pixel.value, row, (pixel.index,))), numbers.shape)
    result = Value(numbers.shape, code_type(quantizer), decoding(quantizer))
    return builder.add(Map(name, (Constant(numbers),), quantizer, repeated.value, result, (repeated.index,)))


def _first_element_encoding(encoding: Encoding) -> Encoding:
    """The encoding with only the first element of each constant, for data whose values are not used."""
    fields = vars(encoding).items()
    arrays: dict[str, Any] = {k: v[tuple(slice(0, 1) for _ in v.shape)] for k, v in fields if isinstance(v, np.ndarray)}
    return replace(encoding, **arrays)


def _unroll_error(state: str, reason: str) -> HlsgenError:
    return fail("HG010", state, f"a state whose loop is not built once: {reason}.", "Build with --recurrence unrolled.")
