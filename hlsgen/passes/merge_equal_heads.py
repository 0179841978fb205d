"""Merges equal host steps and equal first quantizers of an input that the host quantizes for each branch.

Matched: two steps with the same inputs, operation and constants, with only host operations between them and the
model's input. Produced: one of them. onnxruntime quantizes a tensor once for every layer that uses it.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from hlsgen.ir import HostOp, InputPart, Model, Op, Reshape, Transpose
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.ir.rewrite import StepRewriter
from hlsgen.numerics.fixed import Array

_HOST_OPS = (*FLOATS, Reshape, Transpose, HostOp, InputPart)


def merge_equal_heads(model: Model) -> Model:
    """The model with one step for each group of equal ones; the results do not change."""
    rewriter, host_values, number_by_key = StepRewriter(), {0}, dict[object, int]()
    for i, step in enumerate(model.steps):
        inputs = rewriter.new_inputs(step)
        is_host_step = all(j in host_values for j in inputs) and isinstance(step.op, (*_HOST_OPS, *QUANTIZERS))
        key = (
            (type(step.op), step.shape, inputs, *_contents(step.op))
            if is_host_step and i + 1 < len(model.steps)
            else None
        )
        if key is not None and key in number_by_key:
            rewriter.numbers[i + 1] = number_by_key[key]
            continue
        value = rewriter.numbers[i + 1] = rewriter.copy(step)
        if key is not None:
            number_by_key[key] = value
            if isinstance(step.op, _HOST_OPS):
                host_values.add(value)
    return model if len(rewriter.steps) == len(model.steps) else replace(model, steps=tuple(rewriter.steps))


def _contents(op: Op) -> tuple[object, ...]:
    """The fields of an operation as hashable numbers and texts."""
    return tuple(_hashable(getattr(op, field.name)) for field in fields(op))


def _hashable(value: object) -> object:
    if isinstance(value, np.ndarray):
        array: Array = value
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, tuple):
        return tuple(_hashable(part) for part in value)
    if hasattr(value, "__dataclass_fields__") and type(value).__hash__ is object.__hash__:
        return (type(value), *_contents(value))  # type: ignore[arg-type]
    return value
