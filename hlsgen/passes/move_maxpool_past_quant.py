"""Moves maximum pools past the quantizer that follows them.

max and a function that never falls can change places. Pooling codes of a few bits is smaller, and float
operations before the pool merge with those after it into one integer function.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen import ir
from hlsgen.ir import ops
from hlsgen.ir.evaluate import constant_shapes
from hlsgen.ir.op_facts import Interval, all_numbers, chain_direction, range_of
from hlsgen.ir.window import Reduction
from hlsgen.passes.hoist_views import relabel

#: Quantizers that reduce the number of values: after them a pool is smaller.
_NARROWING = (ops.IntQuant, ops.Bipolar, ops.SignedBit, ops.Trunc, ops.MultiThreshold, ops.QuantizeLinear)


def move_past_quantizers(model: ir.Model) -> ir.Model:
    """The model with every such pool moved; the results do not change."""
    steps = list(model.steps)
    for at in range(len(steps)):
        op = steps[at].op
        if isinstance(op, ir.Pool) and op.kind is Reduction.MAX:
            steps = _move_pool(steps, at, model.input_dtype)
    return replace(model, steps=tuple(steps))


def _move_pool(steps: list[ir.Step], at: int, input_dtype: str) -> list[ir.Step]:
    """The steps with the maximum pool at `at` moved past the next quantizer, if that is possible."""
    users = [0] * (len(steps) + 1)
    last_user: dict[int, int] = {}
    for i, step in enumerate(steps):
        for j in step.inputs:
            users[j] += 1
            last_user[j] = i

    def following(i: int) -> int:
        """The only user of step i if it has no other input, else -1."""
        if users[i + 1] != 1 or len(steps[last_user[i + 1]].inputs) != 1:
            return -1
        return last_user[i + 1]

    pool = [at]
    while (preceding := steps[pool[0]].inputs[0]) and users[preceding] == 1 and _is_view(steps[preceding - 1]):
        pool.insert(0, preceding - 1)
    source = steps[pool[0]].inputs[0]
    if not source or not isinstance(steps[source - 1].op, (*ops.FLOATS, ir.Binary)) or users[source] != 1:
        return steps
    shape = steps[source - 1].shape
    while (next_step := following(pool[-1])) >= 0 and _is_view(steps[next_step]):
        pool.append(next_step)
    if len(shape) != len(steps[pool[-1]].shape):
        return steps
    run: list[int] = []
    operations: list[ops.Elementwise] = []
    next_step = following(pool[-1])
    while next_step >= 0 and isinstance(steps[next_step].op, (*ops.FLOATS, *_NARROWING)):
        op = _op_before_pool(steps[next_step].op, steps, pool)  # type: ignore[arg-type]
        if op is None:
            return steps
        run.append(next_step)
        operations.append(op)
        if isinstance(op, _NARROWING):
            break
        next_step = following(next_step)
    if not run or not isinstance(operations[-1], _NARROWING):
        return steps
    if not chain_direction(operations, _value_interval(steps, source, input_dtype)).never_falls.all():
        return steps
    # The run first, then the pool, in the positions of both.
    order = [*run, *pool]
    positions = sorted(order)
    new, value = list(steps), source
    moved = dict(zip(run, operations, strict=True))
    for position, i in zip(positions, order, strict=True):
        step = replace(steps[i], op=moved[i], shape=shape) if i in moved else steps[i]
        new[position] = replace(step, inputs=(value,))
        value = position + 1
    last = run[-1] + 1
    return [
        step if i in positions else replace(step, inputs=tuple(value if j == last else j for j in step.inputs))
        for i, step in enumerate(new)
    ]


def _is_view(step: ir.Step) -> bool:
    return isinstance(step.op, ir.Reshape | ir.Transpose)


def _op_before_pool(item: ops.Elementwise, steps: list[ir.Step], pool: list[int]) -> ops.Elementwise | None:
    """The operation after a pool as one before it, adapted to the reshapes and transposes around the pool.

    Returns None if the constants are not the same for all pixels.
    """
    for i in reversed(pool):
        op, shape = steps[i].op, steps[i].shape
        old_shape = steps[steps[i].inputs[0] - 1].shape
        if isinstance(op, ir.Pool):
            if any(size > 1 for constant_shape in constant_shapes(item) for size in constant_shape[:-1]):
                return None
        elif isinstance(op, ir.Transpose):
            inverse = ir.Transpose(tuple(int(axis) for axis in np.argsort(op.perm)))
            item = relabel(item, inverse, shape, old_shape)
        else:
            item = relabel(item, ir.Reshape(), shape, old_shape)
    return item


def _value_interval(steps: list[ir.Step], value: int, input_dtype: str) -> Interval:
    """An interval of all numbers that a value can hold, from the operations that compute it."""
    path: list[ir.Step] = []
    while value:
        path.append(steps[value - 1])
        value = path[-1].inputs[0]
    x = all_numbers(input_dtype)
    for step in reversed(path):
        match step.op:
            case op if isinstance(op, (*ops.FLOATS, *ops.QUANTIZERS)):
                result = range_of(op, x)  # type: ignore[arg-type]
                x = Interval(result.low.min(), result.high.max())
            case ir.Reshape() | ir.Transpose() | ir.Slice() | ir.Repeat() | ir.Pool(Reduction.MAX):
                pass
            case ir.MatMulInteger() | ir.ConvInteger():
                x = all_numbers("int32")
            case ir.MatMul() | ir.Conv() | ir.HostOp():
                x = all_numbers("float32")
            case ir.InputPart(_, _, dtype):
                x = all_numbers(dtype)
            case ir.Pack():
                x = all_numbers("uint16")
            case ir.ArgMax():
                x = all_numbers("int64")
            case _:
                x = all_numbers(x.dtype)
    return x
