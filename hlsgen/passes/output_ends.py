"""The end of the hardware before each output.

It is codes and the host's steps after them, or two tensors that the host combines. Two tensors combined after the
last quantizers become one exact sum if they are on a common grid. Otherwise the codes of each leave the hardware,
and the host combines their numbers as the file does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Affine, ArgMax, ArgMaxLayer, Concatenation, HostBinary, Model, Rearrange, Step, Value, View
from hlsgen.ir.ops import FLOATS, Elementwise
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.partition import End
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import order_kept, type_after


class Part(NamedTuple):
    """Codes that leave the hardware, the host's steps after them, and `is_index`: the codes are an index."""

    codes: PendingValue
    tail: tuple[Step, ...]
    is_index: bool


@dataclass(frozen=True, eq=False)
class OutputEnd:
    """An output: one part, or two parts and the host operation that combines them."""

    parts: tuple[Part, ...]
    host_binary: HostBinary | None = None


def output_end(builder: GraphBuilder, model: Model, partition_end: End, tensor: PendingValue) -> OutputEnd:
    """The end of the hardware before an output; `tensor` is its last value in hardware. Raises HG030, HG033."""
    host_steps = [model.steps[i] for i in partition_end.tail]
    codes = builder.flush(tensor)
    if codes.branches:
        pair = codes
        result = builder.attempt(lambda: builder.to_codes("the output", pair))
        if isinstance(result, HlsgenError):
            if _of_inputs(builder, pair):  # the hardware would have nothing to compute
                raise result
            return _combined_by_host(pair, host_steps)
        codes = result
    is_index = False
    arg_max = next((i for i, s in enumerate(host_steps) if isinstance(s.op, ArgMax)), None)
    if arg_max is not None:
        index = _arg_max(builder, codes, host_steps[: arg_max + 1])
        if index is not None:
            codes, host_steps, is_index = index, host_steps[arg_max + 1 :], True
    return OutputEnd((Part(codes, (*_pending_steps(codes), *host_steps), is_index),))


def _of_inputs(builder: GraphBuilder, tensor: PendingValue) -> bool:
    """True if both operands are inputs, unchanged or only moved."""
    branches = tensor.branches
    assert branches is not None
    moved = {*range(builder.first_computed)}
    for number, layer in sorted(builder.layers.items()):
        if isinstance(layer, View | Rearrange | Concatenation) and moved.issuperset(layer.inputs):
            moved.add(number)
    return moved.issuperset((branches.left.index, branches.right.index))


def _combined_by_host(tensor: PendingValue, host_steps: Sequence[Step]) -> OutputEnd:
    """Both operands as they leave the hardware."""
    branches = tensor.branches
    assert branches is not None
    parts = tuple(Part(side, _pending_steps(side), False) for side in (branches.left, branches.right))
    dtype = type_after(branches.left.value, branches.left.ops).name
    return OutputEnd(parts, HostBinary(branches.name, branches.kind, dtype, (*_pending_steps(tensor), *host_steps)))


def _pending_steps(tensor: PendingValue) -> tuple[Step, ...]:
    """The pending operations on the codes, as steps for the host."""
    return tuple(Step(name, op, tensor.value.shape, ()) for name, op in tensor.named_ops)


def _arg_max(builder: GraphBuilder, codes: PendingValue, steps: list[Step]) -> PendingValue | None:
    """An ArgMax, the last of `steps`, in hardware.

    Returns None unless comparing codes is proven to compare the real values.
    """
    preceding = [s.op for s in steps[:-1]]
    if not all(isinstance(op, FLOATS) for op in preceding):
        return None
    ops: list[Elementwise] = [*codes.ops, *(op for op in preceding if isinstance(op, FLOATS))]
    if not order_kept(codes.value, ops):
        return None
    name, shape = steps[-1].name, steps[-1].shape
    result = Value(shape, IntType(0, codes.value.shape[-1] - 1), Affine(np.float32(1), np.float32(0)))
    return builder.add(ArgMaxLayer(name, codes.value, result, (codes.index,)))
