"""Does to each part of a Concat what the model does to the whole, and joins the results.

What is elementwise gives each element the same value, joined or not. Hardware joins codes, not sums or floats, so a
Concat of which a part is no tensor of codes has to move to where all of them are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from hlsgen.ir import Binary, Concat, Model, Pad, Pool, Repeat, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import QUANTIZERS, Dequantize, Elementwise
from hlsgen.ir.rewrite import pruned

#: Steps that leave codes codes.
_MOVES = (Reshape, Transpose, Repeat, Slice, Pad, Pool, Concat)


def behind_runs(model: Model, run_behind: Callable[[list[Step], int], list[int]]) -> Model:
    """The model with every Concat of a part without codes behind the run that follows it; the results stay what they are.

    `run_behind` gives the steps, each on the result of the one before, that follow the Concat at an index: operations
    of one tensor, and joints of it with another tensor of its shape. None of them: the Concat stays.
    """
    steps = list(model.steps)
    at = 0
    while at < len(steps):
        raw = isinstance(steps[at].op, Concat) and _is_raw(steps, at + 1)
        run = run_behind(steps, at) if raw else []
        if run:
            steps = _moved(steps, at, run, model.input_shape)
        else:
            at += 1
    return replace(model, steps=tuple(steps))


def users(steps: list[Step], value: int) -> list[int]:
    """The steps that take the value, each as often as it does."""
    return [i for i, step in enumerate(steps) for j in step.inputs if j == value]


def _is_raw(steps: list[Step], value: int) -> bool:
    """Whether the value is not made of quantized tensors alone."""
    if not value:
        return False
    step = steps[value - 1]
    if isinstance(step.op, _MOVES):
        return any(_is_raw(steps, j) for j in step.inputs)
    return not isinstance(step.op, (*QUANTIZERS, Dequantize))


@dataclass(frozen=True)
class _Part:
    """Elements start to stop of an axis, and the shape of what they are."""

    axis: int
    start: int
    stop: int
    shape: Shape

    def done(self, item: Elementwise) -> Elementwise:
        """The operation on this part: with its share of the constants."""
        axis, made = self.axis - len(self.shape), {}
        for key, value in constants(item).items():
            own = value.ndim - lead_axes(item, key) >= -axis and value.shape[axis] > 1
            made[key] = value.take(range(self.start, self.stop), axis) if own else value
        return with_constants(item, made)

    def cut(self) -> Slice:
        """This part of a whole."""
        ranges = [(0, size, 1) for size in self.shape]
        ranges[self.axis] = (self.start, self.stop, 1)
        return Slice(tuple(ranges))


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
                part = _Part(op.axis, start, start + shape[op.axis], shape)
                ends.append(_add(new, steps, [at, *run], part, numbers, numbers[value]))
                start = part.stop
            new.append(Step(steps[at].name, op, step.shape, tuple(ends)))
        else:
            new.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
        numbers[i + 1] = len(new)
    return pruned(new, numbers[len(steps)])[0]


def _add(new: list[Step], steps: list[Step], chain: list[int], part: _Part, numbers: dict[int, int], end: int) -> int:
    """Adds the run of one part, which is value `end`; the value behind it. `chain`: the Concat and the run."""
    for before, i in pairwise(chain):
        step, inputs = steps[i], []
        for value in step.inputs:
            if value == before + 1:
                inputs.append(end)
            else:
                new.append(Step(step.name, part.cut(), part.shape, (numbers[value],)))
                inputs.append(len(new))
        op = step.op if isinstance(step.op, Binary) else part.done(step.op)  # type: ignore[arg-type]
        new.append(Step(step.name, op, part.shape, tuple(inputs)))
        end = len(new)
    return end
