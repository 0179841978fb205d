"""Graphs with several inputs or outputs: one tensor for all of them, and the steps that split and assemble it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hlsgen.ir import InputPart, ModelInput, ModelOutput, OutputParts, Step

#: Prefixes of the names of these steps.
_INPUT, _OUTPUTS = "input", "outputs"


def combined_input(inputs: Sequence[ModelInput]) -> ModelInput | None:
    """The tensor of all inputs, or None if there is only one."""
    if len(inputs) < 2:
        return None
    name, size = ", ".join(part.name for part in inputs), sum(part.size for part in inputs)
    return ModelInput(name, (size,), "float64", False, None)


def split_steps(inputs: Sequence[ModelInput], node_names: Collection[str]) -> list[Step]:
    """One step per input, with a name that is not in `node_names`."""
    steps, offset = [], 0
    for number, part in enumerate(inputs):
        name = _unused_name(f"{_INPUT} {part.name}", node_names)
        steps.append(Step(name, InputPart(number, offset, part.dtype), part.shape, (0,)))
        offset += part.size
    return steps


def without_unused_inputs(
    steps: tuple[Step, ...], inputs: tuple[ModelInput, ...]
) -> tuple[tuple[Step, ...], tuple[ModelInput, ...]]:
    """(steps, inputs) without inputs that no step consumes, such as one whose shape alone is used."""
    numbers = [step.op.number for step in steps if isinstance(step.op, InputPart)]
    if len(numbers) in (0, len(inputs)):
        return steps, inputs
    used = tuple(inputs[number] for number in numbers)
    if len(used) == 1:  # the input is value 0 itself
        return tuple(replace(step, inputs=tuple(max(0, i - 1) for i in step.inputs)) for step in steps[1:]), used
    first = [replace(step, op=new.op) for step, new in zip(steps, split_steps(used, ()), strict=False)]
    return (*first, *steps[len(first) :]), used


def assemble_step(outputs: Sequence[ModelOutput], node_names: Collection[str]) -> Step:
    """The last step, from all outputs to one tensor; the caller adds its inputs."""
    return Step(_unused_name(_OUTPUTS, node_names), OutputParts(), (sum(output.size for output in outputs),), ())


def _unused_name(name: str, names: Collection[str]) -> str:
    while name in names:
        name += "_"
    return name
