"""Queries and rewrites of lists of model steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlsgen.ir.model import Op, Shape, Step


class StepRewriter:
    """Builds a new list of steps from an old one.

    `steps` are the new steps. `numbers` maps values of the old list to values of the new one; value 0 is the input
    of both.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.numbers = {0: 0}

    def add(self, name: str, op: Op, shape: Shape, inputs: Sequence[int]) -> int:
        """Append a step whose inputs are new values; return the new value of its result."""
        self.steps.append(Step(name, op, shape, tuple(inputs)))
        return len(self.steps)

    def add_chain(self, ops: Iterable[tuple[str, Op, Shape]], value: int) -> int:
        """Append steps (name, op, shape), each on the result of the one before; return the last result.

        `value`: the new value on which the first one works.
        """
        for name, op, shape in ops:
            value = self.add(name, op, shape, (value,))
        return value

    def new_inputs(self, step: Step) -> tuple[int, ...]:
        """The new values of an old step's inputs."""
        return tuple(self.numbers[j] for j in step.inputs)

    def copy(self, step: Step) -> int:
        """Append an old step with renumbered inputs; return the new value of its result."""
        self.steps.append(replace(step, inputs=self.new_inputs(step)))
        return len(self.steps)


def consumers_of(steps: Sequence[Step], value: int) -> list[int]:
    """Indices of the steps that use the value; a step that uses it twice occurs twice."""
    return [i for i, step in enumerate(steps) for j in step.inputs if j == value]


def pruned(steps: Sequence[Step], output: int) -> tuple[list[Step], dict[int, int]]:
    """The steps on which value `output` depends, and the new number of every remaining value."""
    needed = {output}
    for i in reversed(range(len(steps))):
        if i + 1 in needed:
            needed.update(steps[i].inputs)
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        if i + 1 in needed:
            rewriter.numbers[i + 1] = rewriter.copy(step)
    return rewriter.steps, rewriter.numbers
