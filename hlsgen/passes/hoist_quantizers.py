"""Moves a quantizer that follows every slice of the model's input before the slices.

Matched: a value before which only the host operates, all of whose users are Slices. After each Slice, with only moves
between, is the same quantizer, with one scale for all elements. Produced: that quantizer once, and the moves on its
codes. A recurrent network quantizes its input in every step; hardware takes codes of the whole sequence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.ir import Model, Op, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Quantizer
from hlsgen.ir.rewrite import StepRewriter, consumers_of

_MOVES = (Reshape, Transpose, Slice)


def hoist_before_slices(model: Model) -> Model:
    """The model with such a quantizer moved; the results do not change."""
    steps = list(model.steps)
    value = _branching_value(steps)
    quantizers = [] if value is None else _steps_after_moves(steps, value)
    ops = [steps[i].op for i in quantizers]
    if (
        value is None
        or len(quantizers) < 2
        or quantizers[-1] == len(steps) - 1
        or not all(isinstance(op, QUANTIZERS) and _is_same_quantizer(op, ops[0]) for op in ops)
    ):
        return model
    shape = steps[value - 1].shape if value else model.input_shape
    quantizer = ops[0]
    assert isinstance(quantizer, QUANTIZERS)
    return replace(model, steps=tuple(_hoist(steps, value, quantizers, _with_rank(quantizer, shape), shape)))


def _branching_value(steps: list[Step]) -> int | None:
    """The first value with several users, if only elementwise operations and views come before it.

    Returns None if there is no such value, or if one of its users is not a Slice.
    """
    value = 0
    while len(users := consumers_of(steps, value)) == 1:
        if not isinstance(steps[users[0]].op, (*FLOATS, Reshape, Transpose)):
            return None
        value = users[0] + 1
    return value if users and all(isinstance(steps[i].op, Slice) for i in users) else None


def _steps_after_moves(steps: list[Step], value: int) -> list[int]:
    """The steps after the moves of a value, each the only user of its input; empty if one is not."""
    ends, pending = [], consumers_of(steps, value)
    while pending:
        i = pending.pop(0)
        if isinstance(steps[i].op, _MOVES):
            users = consumers_of(steps, i + 1)
            if not users:
                return []
            pending = users + pending
        elif len(steps[i].inputs) == 1:
            ends.append(i)
        else:
            return []
    return ends


def _is_same_quantizer(op: Quantizer, other_op: Op) -> bool:
    """True if both are the same quantizer, with the same constants for all elements."""
    if type(op) is not type(other_op):
        return False
    for key, value in vars(op).items():
        other_value = vars(other_op)[key]
        if isinstance(value, np.ndarray):
            if (
                value.dtype != other_value.dtype
                or value.size != other_value.size
                or (value.ravel() != other_value.ravel()).any()
            ):
                return False
        elif value != other_value:
            return False
    return all(size == 1 for key, array in constants(op).items() for size in array.shape[lead_axes(op, key) :])


def _with_rank(op: Quantizer, shape: Shape) -> Quantizer:
    """The quantizer with constants for tensors of that shape's rank."""
    reshaped = {key: a.reshape(a.shape[: lead_axes(op, key)] + (1,) * len(shape)) for key, a in constants(op).items()}
    return with_constants(op, reshaped)


def _hoist(steps: list[Step], value: int, ends: list[int], op: Quantizer, shape: Shape) -> list[Step]:
    """Insert `op` directly after `value`, and remove the quantizers at `ends`.

    Their users use the quantizers' inputs instead.
    """
    rewriter = StepRewriter()
    for i, step in enumerate(steps[:value]):
        rewriter.numbers[i + 1] = rewriter.copy(step)
    rewriter.numbers[value] = rewriter.add(steps[ends[0]].name, op, shape, (value,))
    for i, step in enumerate(steps[value:], value):
        rewriter.numbers[i + 1] = rewriter.numbers[step.inputs[0]] if i in ends else rewriter.copy(step)
    return rewriter.steps
