"""Patterns of steps: walks upstream from a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlsgen.ir import Op, Shape, Step

#: Chain of (name, operation, shape of its result), each applied to the result of the previous one.
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
        """Walk upstream from `value` over operations accepted by `passing` with one user each.

        Returns the value before them and their steps in order.
        """
        passed: list[Step] = []
        while value and self.users[value] == 1 and passing(self.steps[value - 1].op):
            passed.insert(0, self.steps[value - 1])
            value = self.steps[value - 1].inputs[0]
        return value, passed
