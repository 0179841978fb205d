"""QDQ pools and borders as onnxruntime runs them: average pools of 8-bit codes, Pad of codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.frontend.pattern_match import NamedOps, Replacement, StepGraph, named, relabels
from hlsgen.ir import Op, Pad, Pool, Repeat, Reshape, Slice, Transpose
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import Add, Dequantize, Div, Mul, QuantizeLinear
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import IntType


def averaged(graph: StepGraph, i: int, last: QuantizeLinear) -> Replacement | None:
    """DequantizeLinear, AveragePool or GlobalAveragePool, QuantizeLinear, all of one type of 8 bits.

    Over whole images, onnxruntime multiplies the integer sum by fl(sx / fl(sy * count)). Other windows are
    averaged in float32; the zero point is added before rounding. (It also rounds every partial sum, which
    is not done here: the exact sum is rounded once.)
    """
    value, after = graph.back(graph.steps[i].inputs[0], relabels)
    j = value - 1
    pool = graph.before(j) if value and graph.users[value] == 1 and j in graph.origins else -1
    if pool < 0 or not isinstance(graph.steps[j].op, Div):
        return None  # a ReduceSum with arithmetic behind it
    if not isinstance(op := graph.steps[pool].op, Pool) or op.kind is not Reduction.SUM:
        return None
    start, moved = graph.back(graph.steps[pool].inputs[0], lambda op: relabels(op) or _is_max_pool(op))
    first = graph.dequantized(start)
    if first < 0 or graph.origins[first].dtype != last.dtype or last.dtype not in ("int8", "uint8"):
        return None
    at, shape = graph.steps[j], graph.steps[pool].shape
    image = graph.steps[graph.steps[pool].inputs[0] - 1].shape
    head, one = graph.steps[first], (1,) * len(shape)
    data = head.op
    assert isinstance(data, Dequantize)
    scale, output = data.scale.reshape(one), last.scale.reshape(one)
    unit = replace(last, scale=np.ones_like(last.scale))
    body: list[Op]
    if op.window.kernel == image[1:3] and not any(op.window.pads):
        data = Dequantize(np.ones_like(data.scale), data.zero_point)
        body = [Mul(scale / (output * np.float32(op.window.taps)))]
    else:
        zero = last.zero_point.astype(np.float32).reshape(one)
        body = [at.op, Div(output), Add(zero)]
        unit = replace(unit, zero_point=np.zeros_like(last.zero_point))
    ops: NamedOps = [(head.name, data, head.shape), *named(moved), *named([graph.steps[pool]])]
    ops += [(at.name, step, shape) for step in body]
    return Replacement(head.inputs, [*ops, *named(after), (graph.steps[i].name, unit, graph.steps[i].shape)])


def moved(graph: StepGraph, i: int, last: QuantizeLinear) -> Replacement | None:
    """DequantizeLinear, operations that only move elements or take the largest, QuantizeLinear.

    Codes are moved if the scales are the same. A Pad moves codes in any case: its border is of the code that its
    value becomes.
    """
    value, steps = graph.back(graph.steps[i].inputs[0], _moves)
    first = graph.dequantized(value)
    if first < 0:
        return None
    head = graph.steps[first]
    data = head.op
    assert isinstance(data, Dequantize)
    ops: NamedOps = []
    one = (1,) * len(head.shape)
    early = replace(last, scale=last.scale.reshape(one), zero_point=last.zero_point.reshape(one))
    info = np.iinfo(last.dtype)
    whole = last.type == IntType(int(info.min), int(info.max)) and graph.origins[first].dtype == last.dtype
    if not whole or data.scale.ravel() != last.scale.ravel() or data.zero_point.ravel() != last.zero_point.ravel():
        if not any(isinstance(step.op, Pad) for step in steps):
            return None
        ops = [(head.name, data, head.shape), (graph.steps[i].name, early, head.shape)]
    for step in steps:
        op = step.op
        if isinstance(op, Pad):
            op = replace(op, value=float(quantize(early, np.full(one, op.value, np.float32)).ravel()[0]))
        ops.append((step.name, op, step.shape))
    return Replacement(head.inputs, ops)


def _moves(op: Op) -> bool:
    """Whether every element of the result is an element of the data, or of a border."""
    return isinstance(op, Reshape | Transpose | Pad | Slice | Repeat) or _is_max_pool(op)


def _is_max_pool(op: Op) -> bool:
    return isinstance(op, Pool) and op.kind is Reduction.MAX
