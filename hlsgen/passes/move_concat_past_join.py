"""Moves Add, Sub, Mul, Max, Min of a Concat and another tensor in front of the Concat, if a part of it is not quantized.

Matched: a Concat of which a part is no tensor of codes, then elementwise operations with one user each, then a joint
with another tensor, and a quantizer behind it. Made: of every part the same operations, and the joint with the slice of
the other tensor that meets it; a Concat of the results. What is elementwise gives each element the same value, joined or
not. The quantizer then moves as well (`move_concat_past_quant`), and hardware joins codes.

Rotary positions have this form: x * cos + Concat(-x2, x1) * sin, with x of a layer.
"""

from __future__ import annotations

from dataclasses import replace

from hlsgen.ir import Binary, Concat, Model, Shape, Slice, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.ir.rewrite import pruned
from hlsgen.passes.move_concat_past_quant import is_raw, part_of, users


def behind_joints(model: Model) -> Model:
    """The model with every such joint moved; the results stay what they are."""
    steps = list(model.steps)
    at = 0
    while at < len(steps):
        run = _run(steps, at) if isinstance(steps[at].op, Concat) and is_raw(steps, at + 1) else []
        if run:
            steps = _moved(steps, at, run, model.input_shape)
        else:
            at += 1
    return replace(model, steps=tuple(steps))


def _run(steps: list[Step], at: int) -> list[int]:
    """The steps behind a Concat that end with a joint, each the only user of the one before; a quantizer follows them."""
    run: list[int] = []
    value = at + 1
    while len(after := users(steps, value)) == 1:
        step = steps[after[0]]
        run.append(after[0])
        value = after[0] + 1
        if isinstance(step.op, Binary):
            alike = all(_shape(steps, j, ()) == step.shape for j in step.inputs if j)
            return run if alike and 0 not in step.inputs and _is_quantized(steps, value) else []
        if not isinstance(step.op, FLOATS) or len(step.inputs) > 1:
            break
    return []


def _is_quantized(steps: list[Step], value: int) -> bool:
    """Whether elementwise operations and joints, each the only user of the one before, lead to a quantizer."""
    while len(after := users(steps, value)) == 1:
        op = steps[after[0]].op
        if isinstance(op, QUANTIZERS):
            return True
        if not isinstance(op, (*FLOATS, Binary)):
            break
        value = after[0] + 1
    return False


def _shape(steps: list[Step], value: int, first: Shape) -> Shape:
    return steps[value - 1].shape if value else first


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
                shape = _shape(steps, value, first)
                stop = start + shape[op.axis]
                ends.append(_part(steps, at, run, shape, (start, stop), numbers, new, numbers[value]))
                start = stop
            new.append(Step(steps[at].name, op, step.shape, tuple(ends)))
        else:
            new.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
        numbers[i + 1] = len(new)
    return pruned(new, numbers[len(steps)])[0]


def _part(
    steps: list[Step], at: int, run: list[int], shape: Shape, between: tuple[int, int], numbers: dict[int, int],
    new: list[Step], end: int,
) -> int:  # fmt: skip
    """Adds the steps of one part, which begin at value `end`; the value behind them."""
    op = steps[at].op
    assert isinstance(op, Concat)
    for j in run[:-1]:
        item = part_of(steps[j].op, op.axis - len(shape), *between)  # type: ignore[arg-type]
        new.append(Step(steps[j].name, item, shape, (end,)))
        end = len(new)
    last, joint = run[-1], steps[run[-1]]
    came = (run[-2] if len(run) > 1 else at) + 1
    ranges = [(0, size, 1) for size in joint.shape]
    ranges[op.axis] = (*between, 1)
    inputs = []
    for j in joint.inputs:
        if j == came:
            inputs.append(end)
        else:
            new.append(Step(steps[last].name, Slice(tuple(ranges)), shape, (numbers[j],)))
            inputs.append(len(new))
    new.append(Step(joint.name, joint.op, shape, tuple(inputs)))
    return len(new)
