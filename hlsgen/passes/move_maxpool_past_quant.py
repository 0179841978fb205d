"""Moves maximum pools behind the quantizer that follows them.

max and a function that never falls can change places: pooling codes of a few bits is smaller, and float
operations in front of the pool join those behind it in one integer function.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.ir import (
    ArgMax,
    Binary,
    Conv,
    ConvInteger,
    HostOp,
    InputPart,
    MatMul,
    MatMulInteger,
    Model,
    Pack,
    Pool,
    Repeat,
    Reshape,
    Slice,
    Step,
    Transpose,
)
from hlsgen.ir.evaluate import constant_shapes
from hlsgen.ir.op_facts import Interval, all_numbers, chain_direction, range_of
from hlsgen.ir.ops import (
    FLOATS,
    QUANTIZERS,
    Bipolar,
    Elementwise,
    IntQuant,
    MultiThreshold,
    QuantizeLinear,
    SignedBit,
    Trunc,
)
from hlsgen.ir.window import Reduction
from hlsgen.passes.hoist_views import relabel

#: Quantizers whose codes are fewer than the values in front of them: behind them a pool is smaller.
_NARROWING = (IntQuant, Bipolar, SignedBit, Trunc, MultiThreshold, QuantizeLinear)


def behind_quantizers(model: Model) -> Model:
    """The model with every such pool moved, the results unchanged."""
    steps = list(model.steps)
    for at in range(len(steps)):
        op = steps[at].op
        if isinstance(op, Pool) and op.kind is Reduction.MAX:
            steps = _moved(steps, at, model.input_dtype)
    return replace(model, steps=tuple(steps))


def _moved(steps: list[Step], at: int, input_dtype: str) -> list[Step]:
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
    if len(shape) != len(steps[pool[-1]].shape):
        return steps
    run: list[int] = []
    ops: list[Elementwise] = []
    after = following(pool[-1])
    while after >= 0 and isinstance(steps[after].op, (*FLOATS, *_NARROWING)):
        op = _in_front(steps[after].op, steps, pool)  # type: ignore[arg-type]
        if op is None:
            return steps
        run.append(after)
        ops.append(op)
        if isinstance(op, _NARROWING):
            break
        after = following(after)
    if not run or not isinstance(ops[-1], _NARROWING):
        return steps
    if not chain_direction(ops, _values(steps, source, input_dtype)).never_falls.all():
        return steps
    # The run first, then the pool, in the places that both had.
    order = [*run, *pool]
    places = sorted(order)
    new, value = list(steps), source
    moved = dict(zip(run, ops, strict=True))
    for place, i in zip(places, order, strict=True):
        step = replace(steps[i], op=moved[i], shape=shape) if i in moved else steps[i]
        new[place] = replace(step, inputs=(value,))
        value = place + 1
    last = run[-1] + 1
    return [
        s if i in places else replace(s, inputs=tuple(value if j == last else j for j in s.inputs))
        for i, s in enumerate(new)
    ]


def _relabels(step: Step) -> bool:
    return isinstance(step.op, Reshape | Transpose)


def _in_front(item: Elementwise, steps: list[Step], pool: list[int]) -> Elementwise | None:
    """The operation behind a pool as one in front of it, both with the reshapes and transposes around the pool.

    None if the constants are not the same for all pixels.
    """
    for i in reversed(pool):
        op, shape = steps[i].op, steps[i].shape
        before = steps[steps[i].inputs[0] - 1].shape
        if isinstance(op, Pool):
            if any(size > 1 for own in constant_shapes(item) for size in own[:-1]):
                return None
        elif isinstance(op, Transpose):
            back = Transpose(tuple(int(axis) for axis in np.argsort(op.perm)))
            item = relabel(item, back, shape, before)
        else:
            item = relabel(item, Reshape(), shape, before)
    return item


def _values(steps: list[Step], value: int, input_dtype: str) -> Interval:
    """All numbers that a value can hold, as far as the operations in front of it say."""
    path: list[Step] = []
    while value:
        path.append(steps[value - 1])
        value = path[-1].inputs[0]
    x = all_numbers(input_dtype)
    for step in reversed(path):
        match step.op:
            case op if isinstance(op, (*FLOATS, *QUANTIZERS)):
                found = range_of(op, x)  # type: ignore[arg-type]
                x = Interval(found.low.min(), found.high.max())
            case Reshape() | Transpose() | Slice() | Repeat() | Pool(Reduction.MAX):
                pass
            case MatMulInteger() | ConvInteger():
                x = all_numbers("int32")
            case MatMul() | Conv() | HostOp():
                x = all_numbers("float32")
            case InputPart(_, _, part):
                x = all_numbers(part)
            case Pack():
                x = all_numbers("uint16")
            case ArgMax():
                x = all_numbers("int64")
            case _:
                x = all_numbers(x.dtype)
    return x
