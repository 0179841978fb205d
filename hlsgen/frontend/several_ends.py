"""Several inputs and outputs of a graph: all of them in one tensor, and the steps that take it apart and make it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hlsgen.ir import InputPart, ModelInput, ModelOutput, OutputParts, Step

#: In front of the names of steps that no node stands for.
_INPUT, _OUTPUTS = "input", "outputs"


def described(inputs: Sequence[ModelInput]) -> ModelInput | None:
    """The tensor that holds all inputs; None of a single one, which needs none."""
    if len(inputs) < 2:
        return None
    name, size = ", ".join(one.name for one in inputs), sum(one.size for one in inputs)
    return ModelInput(name, (size,), "float64", False, None)


def parts(inputs: Sequence[ModelInput], taken: Collection[str]) -> list[Step]:
    """A step for each input; `taken`: names of nodes, which the steps do not have."""
    found, offset = [], 0
    for number, one in enumerate(inputs):
        name = _free(f"{_INPUT} {one.name}", taken)
        found.append(Step(name, InputPart(number, offset, one.dtype), one.shape, (0,)))
        offset += one.size
    return found


def kept(steps: tuple[Step, ...], inputs: tuple[ModelInput, ...]) -> tuple[tuple[Step, ...], tuple[ModelInput, ...]]:
    """Without inputs of several that no step takes any more, such as one of which only the shape was asked."""
    numbers = [step.op.number for step in steps if isinstance(step.op, InputPart)]
    if len(numbers) in (0, len(inputs)):
        return steps, inputs
    left = tuple(inputs[number] for number in numbers)
    if len(left) == 1:  # value 0 itself
        return tuple(replace(step, inputs=tuple(max(0, i - 1) for i in step.inputs)) for step in steps[1:]), left
    first = [replace(step, op=new.op) for step, new in zip(steps, parts(left, ()), strict=False)]
    return (*first, *steps[len(first) :]), left


def joined(outputs: Sequence[ModelOutput], taken: Collection[str]) -> Step:
    """The last step, without the values that it takes."""
    return Step(_free(_OUTPUTS, taken), OutputParts(), (sum(one.size for one in outputs),), ())


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
