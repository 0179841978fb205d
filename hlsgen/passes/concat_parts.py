"""Applies the operations after a Concat to each of its inputs instead, and concatenates the results.

An elementwise operation gives each element the same value before and after concatenation. Hardware concatenates codes,
not sums or floats. A Concat with an input that is no tensor of codes must therefore move to where all inputs are codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from hlsgen.ir import Binary, Concat, Model, Pad, Pool, Repeat, Reshape, Shape, Slice, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes, with_constants
from hlsgen.ir.ops import QUANTIZERS, Dequantize, Elementwise
from hlsgen.ir.rewrite import StepRewriter, pruned

#: Steps that only move or select codes.
_MOVES = (Reshape, Transpose, Repeat, Slice, Pad, Pool, Concat)


def move_past_runs(model: Model, run_after: Callable[[list[Step], int], list[int]]) -> Model:
    """The model with every Concat that has an input without codes moved after the run that follows it.

    The results do not change. `run_after` returns the indices of the steps of this run, each using the result of the
    step before. They are operations on one tensor, and binary operations with another tensor of its shape. The
    Concat stays if the run is empty.
    """
    steps = list(model.steps)
    at = 0
    while at < len(steps):
        needs_move = isinstance(steps[at].op, Concat) and _has_unquantized_part(steps, at + 1)
        run = run_after(steps, at) if needs_move else []
        if run:
            steps = _move_concat(steps, at, run, model.input_shape)
        else:
            at += 1
    return replace(model, steps=tuple(steps))


def _has_unquantized_part(steps: list[Step], value: int) -> bool:
    """True if the value is not made only of quantized tensors."""
    if not value:
        return False
    step = steps[value - 1]
    if isinstance(step.op, _MOVES):
        return any(_has_unquantized_part(steps, j) for j in step.inputs)
    return not isinstance(step.op, (*QUANTIZERS, Dequantize))


@dataclass(frozen=True)
class _Part:
    """Elements `start` to `stop` along an axis of the Concat's result, which have the given shape."""

    axis: int
    start: int
    stop: int
    shape: Shape

    def restricted(self, item: Elementwise) -> Elementwise:
        """The operation for this part, with the constants of its elements."""
        axis = self.axis - len(self.shape)
        part_constants = {}
        for key, value in constants(item).items():
            varies = value.ndim - lead_axes(item, key) >= -axis and value.shape[axis] > 1
            part_constants[key] = value.take(range(self.start, self.stop), axis) if varies else value
        return with_constants(item, part_constants)

    def cut(self) -> Slice:
        """The Slice that selects this part of the whole."""
        ranges = [(0, size, 1) for size in self.shape]
        ranges[self.axis] = (self.start, self.stop, 1)
        return Slice(tuple(ranges))


def _move_concat(steps: list[Step], at: int, run: list[int], first: Shape) -> list[Step]:
    """The run applied to every input of the Concat at `at`, then a Concat of the results."""
    op = steps[at].op
    assert isinstance(op, Concat)
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        if i == run[-1]:
            part_values, start = [], 0
            for value in steps[at].inputs:
                shape = steps[value - 1].shape if value else first
                part = _Part(op.axis, start, start + shape[op.axis], shape)
                part_values.append(_append_run(rewriter, steps, [at, *run], part, rewriter.numbers[value]))
                start = part.stop
            rewriter.numbers[i + 1] = rewriter.add(steps[at].name, op, step.shape, part_values)
        else:
            rewriter.numbers[i + 1] = rewriter.copy(step)
    return pruned(rewriter.steps, rewriter.numbers[len(steps)])[0]


def _append_run(rewriter: StepRewriter, steps: list[Step], chain: list[int], part: _Part, part_value: int) -> int:
    """Append the run for one part, whose value is `part_value`; return the resulting value.

    `chain`: the indices of the Concat and of the run.
    """
    for previous, i in pairwise(chain):
        step, inputs = steps[i], []
        for value in step.inputs:
            if value == previous + 1:
                inputs.append(part_value)
            else:
                inputs.append(rewriter.add(step.name, part.cut(), part.shape, (rewriter.numbers[value],)))
        op = step.op if isinstance(step.op, Binary) else part.restricted(step.op)  # type: ignore[arg-type]
        part_value = rewriter.add(step.name, op, part.shape, inputs)
    return part_value
