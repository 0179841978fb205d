"""Operators between DequantizeLinear and QuantizeLinear that only move elements move the codes instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlsgen.frontend.pattern_match import NamedOps, StepGraph
from hlsgen.ir import Op, Pad, Pool, Repeat, Reshape, Slice, Step, Transpose
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import Dequantize, QuantizeLinear
from hlsgen.ir.rewrite import StepRewriter, pruned
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array, IntType


def move_codes(steps: Sequence[Step], code_types: Mapping[int, str], output: int) -> tuple[Step, ...]:
    """The steps that value `output` depends on, with codes moved wherever this gives the same codes.

    `code_types`: type of the codes by index of the step that dequantizes them.
    """
    graph = StepGraph(steps)
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        start, ops = _ops_on_codes(graph, code_types, i) or (-1, [])
        if start < 0:
            rewriter.numbers[i + 1] = rewriter.copy(step)
        else:
            rewriter.numbers[i + 1] = rewriter.add_chain(ops, rewriter.numbers[start])
    return tuple(pruned(rewriter.steps, rewriter.numbers[output])[0])


def _ops_on_codes(graph: StepGraph, code_types: Mapping[int, str], i: int) -> tuple[int, NamedOps] | None:
    """(the value of codes, operations on it) that replace the steps up to the QuantizeLinear of step i.

    Codes are moved if scales and types are equal. Steps with a Pad are moved in any case, after a new quantization
    if necessary; the border is the code of the Pad's value.
    """
    last = graph.steps[i].op
    if not isinstance(last, QuantizeLinear) or not _per_tensor(last.scale, last.zero_point):
        return None
    value, moves = graph.back(graph.steps[i].inputs[0], _only_moves)
    head = graph.steps[value - 1] if value else None
    if head is None or not isinstance(head.op, Dequantize) or not _per_tensor(head.op.scale, head.op.zero_point):
        return None
    data = head.op
    ops: NamedOps = []
    scalar_shape = (1,) * len(head.shape)
    early = replace(last, scale=last.scale.reshape(scalar_shape), zero_point=last.zero_point.reshape(scalar_shape))
    info = np.iinfo(last.dtype)
    same_codes = (
        last.type == IntType(int(info.min), int(info.max))
        and code_types.get(value - 1) == last.dtype
        and data.scale.ravel() == last.scale.ravel()
        and data.zero_point.ravel() == last.zero_point.ravel()
    )
    if not same_codes:
        if not any(isinstance(step.op, Pad) for step in moves):
            return None
        ops = [(head.name, data, head.shape), (graph.steps[i].name, early, head.shape)]
    for step in moves:
        op = step.op
        if isinstance(op, Pad):
            op = replace(op, value=float(quantize(early, np.full(scalar_shape, op.value, np.float32)).ravel()[0]))
        ops.append((step.name, op, step.shape))
    return head.inputs[0], ops


def _per_tensor(*parts: Array) -> bool:
    """True for one value for the whole tensor, scales in float32."""
    return all(part.size == 1 and part.dtype.name in ("float32", "int64") for part in parts)


def _only_moves(op: Op) -> bool:
    """True for operations whose result consists of elements of the data, or of a border."""
    return isinstance(op, Reshape | Transpose | Pad | Slice | Repeat) or (
        isinstance(op, Pool) and op.kind is Reduction.MAX
    )
