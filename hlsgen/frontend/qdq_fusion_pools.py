"""QDQ pools and borders as onnxruntime runs them: average pools of 8-bit codes, Pad of codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.frontend.pattern_match import Chain, Found, Net, named, relabels
from hlsgen.ir import Op, Pad, Pool, Repeat, Reshape, Slice, Transpose
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import Add, Dequantize, Div, Mul, QuantizeLinear
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import IntType


def averaged(net: Net, i: int, last: QuantizeLinear) -> Found | None:
    """DequantizeLinear, AveragePool or GlobalAveragePool, QuantizeLinear, all of one type of 8 bits.

    Over whole images, onnxruntime multiplies the integer sum by fl(sx / fl(sy * count)). Other windows are
    averaged in float32; the zero point is added before rounding. (It also rounds every partial sum, which
    is not done here: the exact sum is rounded once.)
    """
    value, after = net.back(net.steps[i].inputs[0], relabels)
    j = value - 1
    pool = net.before(j) if value and net.users[value] == 1 and j in net.sources else -1
    if pool < 0 or not isinstance(op := net.steps[pool].op, Pool) or op.kind is not Reduction.SUM:
        return None
    start, moved = net.back(net.steps[pool].inputs[0], relabels)
    first = net.dequantized(start)
    if first < 0 or net.sources[first].dtype != last.dtype or last.dtype not in ("int8", "uint8"):
        return None
    at, shape = net.steps[j], net.steps[pool].shape
    image = net.steps[net.steps[pool].inputs[0] - 1].shape
    head, one = net.steps[first], (1,) * len(shape)
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
    chain: Chain = [(head.name, data, head.shape), *named(moved), *named([net.steps[pool]])]
    chain += [(at.name, step, shape) for step in body]
    return Found(head.inputs, [*chain, *named(after), (net.steps[i].name, unit, net.steps[i].shape)])


def moved(net: Net, i: int, last: QuantizeLinear) -> Found | None:
    """DequantizeLinear, operations that only move elements or take the largest, QuantizeLinear.

    Codes are moved if the scales are the same. A Pad moves codes in any case: its border is of the code that its
    value becomes.
    """
    value, steps = net.back(net.steps[i].inputs[0], _moves)
    first = net.dequantized(value)
    if first < 0:
        return None
    head = net.steps[first]
    data = head.op
    assert isinstance(data, Dequantize)
    chain: Chain = []
    one = (1,) * len(head.shape)
    early = replace(last, scale=last.scale.reshape(one), zero_point=last.zero_point.reshape(one))
    info = np.iinfo(last.dtype)
    whole = last.type == IntType(int(info.min), int(info.max)) and net.sources[first].dtype == last.dtype
    if not whole or data.scale.ravel() != last.scale.ravel() or data.zero_point.ravel() != last.zero_point.ravel():
        if not any(isinstance(step.op, Pad) for step in steps):
            return None
        chain = [(head.name, data, head.shape), (net.steps[i].name, early, head.shape)]
    for step in steps:
        op = step.op
        if isinstance(op, Pad):
            op = replace(op, value=float(quantize(early, np.full(one, op.value, np.float32)).ravel()[0]))
        chain.append((step.name, op, step.shape))
    return Found(head.inputs, chain)


def _moves(op: Op) -> bool:
    """Whether every element of the result is an element of the data, or of a border."""
    return isinstance(op, Reshape | Transpose | Pad | Slice | Repeat) or (
        isinstance(op, Pool) and op.kind is Reduction.MAX
    )
