"""Moves maximum pools behind the quantizer that follows them.

max and a function that never falls can change places: pooling codes of a few bits is smaller, and float
operations in front of the pool join those behind it in one integer function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from hlsgen.ir import Binary, Model, Pool, Reshape, Shape, Step, Transpose
from hlsgen.ir.evaluate import constants, lead_axes
from hlsgen.ir.ops import (
    FLOATS,
    Activation,
    Add,
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Dequantize,
    Div,
    Elementwise,
    Fma,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    QuantizeLinear,
    SignedBit,
    Slope,
    Trunc,
    Where,
)
from hlsgen.ir.window import Reduction

#: Quantizers that never fall, scales being positive.
_RISING = (IntQuant, Bipolar, SignedBit, Trunc, MultiThreshold, QuantizeLinear)
_RISING_ACTIVATIONS = frozenset(["Sigmoid", "Tanh", "HardSigmoid", "Softsign", "Softplus", "Erf", "Atan"])


def behind_quantizers(model: Model) -> Model:
    """The model with every such pool moved, the results unchanged."""
    steps = list(model.steps)
    for at in range(len(steps)):
        op = steps[at].op
        if isinstance(op, Pool) and op.kind is Reduction.MAX:
            steps = _moved(steps, at)
    return replace(model, steps=tuple(steps))


def _moved(steps: list[Step], at: int) -> list[Step]:
    users = [0] * (len(steps) + 1)
    taken: dict[int, int] = {}
    for i, step in enumerate(steps):
        for j in step.inputs:
            users[j] += 1
            taken[j] = i

    def following(i: int) -> int:
        """The only user of step i if that takes nothing else, else -1."""
        if users[i + 1] != 1 or len(steps[taken[i + 1]].inputs) != 1:
            return -1
        return taken[i + 1]

    pool = [at]
    while (before := steps[pool[0]].inputs[0]) and users[before] == 1 and _relabels(steps[before - 1]):
        pool.insert(0, before - 1)
    source = steps[pool[0]].inputs[0]
    if not source or not isinstance(steps[source - 1].op, (*FLOATS, Binary)) or users[source] != 1:
        return steps
    shape = steps[source - 1].shape
    while (after := following(pool[-1])) >= 0 and _relabels(steps[after]):
        pool.append(after)
    run: list[int] = []
    after = following(pool[-1])
    while after >= 0 and never_falls(steps[after].op, shape):
        run.append(after)
        if isinstance(steps[after].op, _RISING):
            break
        after = following(after)
    if not run or not isinstance(steps[run[-1]].op, _RISING) or len(shape) != len(steps[pool[-1]].shape):
        return steps
    # The run first, then the pool, in the places that both had.
    order = [*run, *pool]
    places = sorted(order)
    new, value = list(steps), source
    for place, i in zip(places, order, strict=True):
        new[place] = replace(steps[i], inputs=(value,), shape=shape if i in run else steps[i].shape)
        value = place + 1
    last = run[-1] + 1
    return [
        s if i in places else replace(s, inputs=tuple(value if j == last else j for j in s.inputs))
        for i, s in enumerate(new)
    ]


def _relabels(step: Step) -> bool:
    return isinstance(step.op, Reshape | Transpose)


def never_falls(op: object, shape: Shape) -> bool:
    """Whether the operation rises with x, with constants that fit a tensor of that shape."""
    if not isinstance(op, (*FLOATS, *_RISING)):
        return False
    item = cast("Elementwise", op)
    for value in constants(item).values():
        own = value.shape[lead_axes(item) :]
        if any(size not in (1, length) for size, length in zip(own[::-1], shape[::-1], strict=False)):
            return False
        if sum(size > 1 for size in own) > 1:
            return False
    match item:
        case Mul(value) | Div(value) | Fma(value, _):
            return bool((np.asarray(value) > 0).all())
        case Slope(value):
            return bool((value >= 0).all())
        case Activation(kind):
            return kind in _RISING_ACTIVATIONS
        case Add() | Max() | Min() | Cast() | Dequantize():
            return not isinstance(item, Cast) or item.dtype.startswith("float")
        case IntQuant(scale, _) | Bipolar(scale, _) | SignedBit(scale, _) | QuantizeLinear(scale, _) | Trunc(scale, _):
            return bool((np.asarray(scale) > 0).all())
        case BinaryOf() | Where() | Compare() | Constant():
            return False
        case _:
            return True
