"""Rewriting lists of model steps."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.ir import Step


def pruned(steps: list[Step], output: int) -> tuple[list[Step], dict[int, int]]:
    """The steps on which value `output` depends, and the new number of every value that is left."""
    wanted = {output}
    for i in reversed(range(len(steps))):
        if i + 1 in wanted:
            wanted.update(steps[i].inputs)
    numbers = {0: 0}
    kept: list[Step] = []
    for i, step in enumerate(steps):
        if i + 1 in wanted:
            kept.append(replace(step, inputs=tuple(numbers[j] for j in step.inputs)))
            numbers[i + 1] = len(kept)
    return kept, numbers
