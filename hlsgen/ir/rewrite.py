"""Queries and rewrites of lists of model steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlsgen.ir import Step


def consumers_of(steps: Sequence[Step], value: int) -> list[int]:
    """Indices of the steps that use the value; a step that uses it twice occurs twice."""
    return [i for i, step in enumerate(steps) for j in step.inputs if j == value]


def pruned(steps: list[Step], output: int) -> tuple[list[Step], dict[int, int]]:
    """The steps on which value `output` depends, and the new number of every remaining value."""
    needed = {output}
    for i in reversed(range(len(steps))):
        if i + 1 in needed:
            needed.update(steps[i].inputs)
    numbers = {0: 0}
    remaining: list[Step] = []
    for i, step in enumerate(steps):
        if i + 1 in needed:
            remaining.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
            numbers[i + 1] = len(remaining)
    return remaining, numbers
