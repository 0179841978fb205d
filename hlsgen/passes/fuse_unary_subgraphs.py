"""Fuses a subgraph of several tensors that is a function of one: x * Sigmoid(x), Where(x > a, f(x), g(x)).

Matched: a Binary or Select whose operands are all computed from one tensor by elementwise operations. Produced: one
elementwise operation on that tensor (`BinaryOf`, `Where`), which holds these chains and evaluates them as before.
Excluded: a Binary whose operands are both quantized on the way. A function of two codes is as cheap as a function of
the tensor.
"""

from __future__ import annotations

from dataclasses import replace

from hlsgen.diagnostics import Collector
from hlsgen.ir import Binary, Model, Select, Shape, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS, BinaryOf, Constant, Elementwise, FixedAdd, MultiThreshold, Pair, Where
from hlsgen.ir.rewrite import pruned

Chain = tuple[Elementwise, ...]


def fuse_unary(model: Model) -> Model:
    """The model with every such step as one operation. Raises HG015 for a Select that is no function of one tensor."""
    steps = list(model.steps)
    problems = Collector()
    for i, step in enumerate(steps):
        fused = _fuse(steps, step, model.input_shape) if isinstance(step.op, Binary | Select) else None
        if fused is not None:
            value, op = fused
            steps[i] = replace(step, op=op, inputs=(value,))
        elif isinstance(step.op, Select):
            problems.error(
                "HG015",
                step.name,
                "Where of tensors that are not elementwise functions of one tensor.",
                "Supported: a condition and values that are functions of the same tensor, or constants.",
            )
    problems.finish()
    if all(new is old for new, old in zip(steps, model.steps, strict=True)):
        return model
    return replace(model, steps=tuple(pruned(steps, len(steps))[0]))


def _fuse(steps: list[Step], step: Step, input_shape: Shape) -> tuple[int, Elementwise] | None:
    """The nearest tensor from which all operands are computed, and the operation on it, or None if there is none."""
    origins = [_origins(steps, value, step.shape) for value in step.inputs]
    common = [value for value in origins[0] if all(value in origin for origin in origins)]
    for value in common:
        if (steps[value - 1].shape if value else input_shape) != step.shape:
            continue
        chains = [origin[value] for origin in origins]
        if all(any(isinstance(op, QUANTIZERS) for op in chain) for chain in chains):
            continue  # a function of two codes is as cheap, or cheaper
        if isinstance(step.op, Binary):
            return value, BinaryOf(step.op.kind, tuple(chains))
        assert isinstance(step.op, Select)
        remaining = iter(chains)
        return value, Where(tuple(next(remaining) if c is None else (Constant(c),) for c in step.op.fixed))
    return None


def _origins(steps: list[Step], value: int, shape: Shape) -> dict[int, Chain]:
    """The tensors from which this one is computed elementwise, nearest first, each with its chain of operations."""
    chains: dict[int, Chain] = {value: ()}
    while value:
        step = steps[value - 1]
        if not isinstance(step.op, (*FLOATS, *QUANTIZERS)) or isinstance(step.op, MultiThreshold | Pair | FixedAdd):
            break
        if step.shape != shape:
            break
        chain = chains[value]
        value = step.inputs[0]
        chains[value] = (step.op, *chain)  # type: ignore[arg-type]
    return chains
