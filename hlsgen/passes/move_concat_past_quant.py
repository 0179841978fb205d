"""Moves a quantizer that follows a Concat in front of it, if a part of the Concat is not quantized.

Matched: a Concat of which a part is no tensor of codes, then elementwise operations with one user each, then a
quantizer. Made: the same operations and the quantizer on every part, each with its share of the constants, and a Concat
of their results. What is elementwise gives each element the same value, joined or not. Hardware joins codes, not sums
or floats, so the move is what makes such a Concat possible.
"""

from __future__ import annotations

from dataclasses import replace

from hlsgen.ir import Concat, Model, Pad, Pool, Repeat, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Dequantize, Elementwise
from hlsgen.ir.rewrite import pruned

#: Steps that leave codes codes.
_MOVES = (Reshape, Transpose, Repeat, Slice, Pad, Pool, Concat)


def behind_quantizers(model: Model) -> Model:
    """The model with every such quantizer moved; the results stay what they are."""
    steps = list(model.steps)
    at = 0
    while at < len(steps):
        run = _run(steps, at) if isinstance(steps[at].op, Concat) and is_raw(steps, at + 1) else []
        if run:
            steps = _moved(steps, at, run, model.input_shape)
        else:
            at += 1
    return replace(model, steps=tuple(steps))


def is_raw(steps: list[Step], value: int) -> bool:
    """Whether the value is not made of quantized tensors alone."""
    if not value:
        return False
    step = steps[value - 1]
    if isinstance(step.op, _MOVES):
        return any(is_raw(steps, j) for j in step.inputs)
    return not isinstance(step.op, (*QUANTIZERS, Dequantize))


def users(steps: list[Step], value: int) -> list[int]:
    return [i for i, step in enumerate(steps) for j in step.inputs if j == value]


def _run(steps: list[Step], at: int) -> list[int]:
    """The steps behind a Concat that end with a quantizer, each the only user of the one before; of one user of it."""
    for first in users(steps, at + 1):
        run = [first]
        while isinstance(steps[run[-1]].op, FLOATS) and len(after := users(steps, run[-1] + 1)) == 1:
            run.append(after[0])
        if isinstance(steps[run[-1]].op, QUANTIZERS) and all(len(steps[i].inputs) == 1 for i in run):
            return run
    return []


def _moved(steps: list[Step], at: int, run: list[int], first: Shape) -> list[Step]:
    """The run done to every input of the Concat at `at`, and another Concat of that."""
    op = steps[at].op
    assert isinstance(op, Concat)
    new: list[Step] = []
    numbers = {0: 0}
    for i, step in enumerate(steps):
        if i == run[-1]:
            ends, start = [], 0
            for value in steps[at].inputs:
                shape = steps[value - 1].shape if value else first
                end, stop = numbers[value], start + shape[op.axis]
                for j in run:
                    item = part_of(steps[j].op, op.axis - len(shape), start, stop)  # type: ignore[arg-type]
                    new.append(Step(steps[j].name, item, shape, (end,)))
                    end = len(new)
                ends.append(end)
                start = stop
            new.append(Step(steps[at].name, op, step.shape, tuple(ends)))
        else:
            new.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
        numbers[i + 1] = len(new)
    return pruned(new, numbers[len(steps)])[0]


def part_of(item: Elementwise, axis: int, start: int, stop: int) -> Elementwise:
    """The operation for start to stop of an axis, counted from the last."""
    lead, made = lead_axes(item), {}
    for key, value in constants(item).items():
        own = value.ndim - lead >= -axis and value.shape[axis] > 1
        made[key] = value.take(range(start, stop), axis) if own else value
    return with_constants(item, made)
