"""Fuses what a file writes with several tensors, but is a function of one: x * Sigmoid(x), Where(x > a, f(x), g(x)).

Matched: a Binary or Select whose operands are all made of one tensor by elementwise operations. Made: one elementwise
operation on that tensor (`BinaryOf`, `Where`), which holds these chains and evaluates them as before. Left alone: a
Binary whose operands are both quantized on the way, as a function of two codes is as cheap as one of the tensor.
"""

from __future__ import annotations

from dataclasses import replace

from hlsgen.diagnostics import Collector
from hlsgen.ir import Binary, Model, Select, Shape, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryOf, Constant, Elementwise, FixedAdd, MultiThreshold, Pair, Where
from hlsgen.ir.rewrite import pruned

Way = tuple[Elementwise, ...]


def functions_of_one(model: Model) -> Model:
    """The model with every such step as one operation. Raises HG015 for a Select that is no function of one tensor."""
    steps = list(model.steps)
    problems = Collector()
    for i, step in enumerate(steps):
        found = _operation(steps, step, model.input_shape) if isinstance(step.op, Binary | Select) else None
        if found is not None:
            value, op = found
            steps[i] = replace(step, op=op, inputs=(value,))
        elif isinstance(step.op, Select):
            problems.error(
                "HG015", step.name, "Where of tensors that are not made of one tensor, element by element.",
                "Supported: a condition and values that are functions of the same tensor, or constants.",
            )  # fmt: skip
    problems.finish()
    if all(new is old for new, old in zip(steps, model.steps, strict=True)):
        return model
    return replace(model, steps=tuple(pruned(steps, len(steps))[0]))


def _operation(steps: list[Step], step: Step, first: Shape) -> tuple[int, Elementwise] | None:
    """The nearest tensor that all operands are made of, and the operation on it."""
    origins = [_origins(steps, value, step.shape) for value in step.inputs]
    common = [value for value in origins[0] if all(value in others for others in origins)]
    for value in common:
        if (steps[value - 1].shape if value else first) != step.shape:
            continue
        ways = [origin[value] for origin in origins]
        if all(any(isinstance(op, QUANTIZERS) for op in way) for way in ways):
            continue  # a function of two codes is as good, or better
        if isinstance(step.op, Binary):
            return value, BinaryOf(step.op.kind, tuple(ways))
        assert isinstance(step.op, Select)
        given = iter(ways)
        return value, Where(tuple(next(given) if c is None else (Constant(c),) for c in step.op.fixed))
    return None


def _origins(steps: list[Step], value: int, shape: Shape) -> dict[int, Way]:
    """The tensors that this one is made of element by element, the nearest first, and the operations from there."""
    found: dict[int, Way] = {value: ()}
    while value:
        step = steps[value - 1]
        if not isinstance(step.op, (*FLOATS, *QUANTIZERS)) or isinstance(step.op, MultiThreshold | Pair | FixedAdd):
            break
        if step.shape != shape:
            break
        ways = found[value]
        value = step.inputs[0]
        found[value] = (step.op, *ways)  # type: ignore[arg-type]
    return found
