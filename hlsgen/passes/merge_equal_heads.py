"""Merges equal steps in front of hardware, and equal first quantizers, of an input that the host quantizes for each branch.

Matched: two steps with the same inputs, the same operation and constants, with only the host's operations between them
and the model's input. Made: one of them. onnxruntime quantizes a tensor once for every layer that takes it.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from hlsgen.ir import HostOp, InputPart, Model, Op, Reshape, Step, Transpose
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.numerics.fixed import Array

_BEFORE = (*FLOATS, Reshape, Transpose, HostOp, InputPart)


def in_front(model: Model) -> Model:
    """The model with one step for equal ones; the results stay what they are."""
    made: list[Step] = []
    numbers, before, known = {0: 0}, {0}, dict[object, int]()
    for i, step in enumerate(model.steps):
        inputs = tuple(numbers[j] for j in step.inputs)
        early = all(j in before for j in inputs) and isinstance(step.op, (*_BEFORE, *QUANTIZERS))
        key = (type(step.op), step.shape, inputs, *_contents(step.op)) if early and i + 1 < len(model.steps) else None
        if key is not None and key in known:
            numbers[i + 1] = known[key]
            continue
        made.append(replace(step, inputs=inputs))
        numbers[i + 1] = len(made)
        if key is not None:
            known[key] = len(made)
            if isinstance(step.op, _BEFORE):
                before.add(len(made))
    return model if len(made) == len(model.steps) else replace(model, steps=tuple(made))


def _contents(op: Op) -> tuple[object, ...]:
    """The fields of an operation as numbers and texts that can be compared."""
    return tuple(_plain(getattr(op, field.name)) for field in fields(op))


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        array: Array = value
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, tuple):
        return tuple(_plain(part) for part in value)
    if hasattr(value, "__dataclass_fields__") and type(value).__hash__ is object.__hash__:
        return (type(value), *_contents(value))  # type: ignore[arg-type]
    return value
