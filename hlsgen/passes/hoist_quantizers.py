"""Moves a quantizer that stands behind every part of the model's input in front of all parts.

Matched: a value that only the host's operations lie before, of which all users are a Slice, and behind each Slice, with
nothing but moves between, the same quantizer, of one scale for all elements. Made: that quantizer once, and the moves of
its codes. A recurrent network quantizes its input in every step; hardware takes codes of the whole sequence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.ir import Model, Op, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Quantizer

_MOVES = (Reshape, Transpose, Slice)


def before_slices(model: Model) -> Model:
    """The model with such a quantizer moved; the results stay what they are."""
    steps = list(model.steps)
    value = _branching(steps)
    ends = [] if value is None else _ends(steps, value)
    ops = [steps[i].op for i in ends]
    if (
        value is None
        or len(ends) < 2
        or ends[-1] == len(steps) - 1
        or not all(isinstance(op, QUANTIZERS) and _same(op, ops[0]) for op in ops)
    ):
        return model
    shape = steps[value - 1].shape if value else model.input_shape
    first = ops[0]
    assert isinstance(first, QUANTIZERS)
    return replace(model, steps=tuple(_moved(steps, value, ends, _of_rank(first, shape), shape)))


def _users(steps: list[Step], value: int) -> list[int]:
    return [i for i, step in enumerate(steps) if value in step.inputs]


def _branching(steps: list[Step]) -> int | None:
    """The first value of several users, if only elementwise operations and views lie before."""
    value = 0
    while len(users := _users(steps, value)) == 1:
        if not isinstance(steps[users[0]].op, (*FLOATS, Reshape, Transpose)):
            return None
        value = users[0] + 1
    return value if users and all(isinstance(steps[i].op, Slice) for i in users) else None


def _ends(steps: list[Step], value: int) -> list[int]:
    """The steps behind the moves of a value, each the only user of what it takes; none at all if one is not."""
    found, rest = [], _users(steps, value)
    while rest:
        i = rest.pop(0)
        if isinstance(steps[i].op, _MOVES):
            users = _users(steps, i + 1)
            if not users:
                return []
            rest = users + rest
        elif len(steps[i].inputs) == 1:
            found.append(i)
        else:
            return []
    return found


def _same(op: Quantizer, other: Op) -> bool:
    """Whether both are one quantizer, the same for all elements."""
    if type(op) is not type(other):
        return False
    for key, one in vars(op).items():
        two = vars(other)[key]
        if isinstance(one, np.ndarray):
            if one.dtype != two.dtype or one.size != two.size or (one.ravel() != two.ravel()).any():
                return False
        elif one != two:
            return False
    return all(size == 1 for key, array in constants(op).items() for size in array.shape[lead_axes(op, key) :])


def _of_rank(op: Quantizer, shape: Shape) -> Quantizer:
    """The quantizer for tensors of that shape."""
    return with_constants(
        op, {key: a.reshape(a.shape[: lead_axes(op, key)] + (1,) * len(shape)) for key, a in constants(op).items()}
    )  # fmt: skip


def _moved(steps: list[Step], value: int, ends: list[int], op: Quantizer, shape: Shape) -> list[Step]:
    """The quantizer of `value` alone, and what took the others' results takes what these took."""
    made = [*steps[:value], Step(steps[ends[0]].name, op, shape, (value,))]
    codes = len(made)
    numbers = {j: j for j in range(value)} | {value: codes}
    for i, step in enumerate(steps[value:], value):
        if i in ends:
            numbers[i + 1] = numbers[step.inputs[0]]
            continue
        made.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
        numbers[i + 1] = len(made)
    return made
