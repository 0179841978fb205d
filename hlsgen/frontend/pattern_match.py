"""Patterns of steps: walks back from a step to those before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlsgen.ir import Op, Shape, Step

#: (name, operation, shape of its result), each working on the result of the one before.
NamedOps = list[tuple[str, Op, Shape]]


class StepGraph:
    """Steps with the number of users of each value."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.users = [0] * (len(steps) + 1)
        for step in steps:
            for value in step.inputs:
                self.users[value] += 1

    def back(self, value: int, passing: Callable[[Op], bool]) -> tuple[int, list[Step]]:
        """The value from which only operations that `passing` accepts lead to `value`, each with one user; and their steps."""
        between: list[Step] = []
        while value and self.users[value] == 1 and passing(self.steps[value - 1].op):
            between.insert(0, self.steps[value - 1])
            value = self.steps[value - 1].inputs[0]
        return value, between
