"""What ends in front of each output: codes, and the steps that the host does behind them; or two tensors that it joins.

Two tensors that are joined behind the last quantizers are one exact sum where they are on a common grid. Else codes of each
leave the hardware, and the host joins their numbers as the file does.
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
from hlsgen.passes.quantization import order_kept, type_behind


class Part(NamedTuple):
    """Codes that leave the hardware, the host's steps behind them, and whether they are an index."""

    codes: PendingValue
    tail: tuple[Step, ...]
    is_index: bool


@dataclass(frozen=True, eq=False)
class OutputEnd:
    """An output: one part, or two and what joins them."""

    parts: tuple[Part, ...]
    joint: HostBinary | None = None


def output_end(builder: GraphBuilder, model: Model, found: End, tensor: PendingValue) -> OutputEnd:
    """What ends in front of an output. `tensor`: its last value of hardware. Raises HG030, HG033."""
    rest = [model.steps[i] for i in found.tail]
    end = builder.flushed(tensor)
    if end.branches:
        both = end
        codes = builder.attempt(lambda: builder.to_codes("the output", both))
        if isinstance(codes, HlsgenError):
            if _of_inputs(builder, both):  # nothing would be left for hardware
                raise codes
            return _joined_by_host(both, rest)
        end = codes
    is_index = False
    at = next((i for i, s in enumerate(rest) if isinstance(s.op, ArgMax)), None)
    if at is not None:
        index = _arg_max(builder, end, rest[: at + 1])
        if index is not None:
            end, rest, is_index = index, rest[at + 1 :], True
    return OutputEnd((Part(end, (*_waiting(end), *rest), is_index),))


def _of_inputs(builder: GraphBuilder, tensor: PendingValue) -> bool:
    """Whether both operands are inputs as they are, or one that only moves."""
    both = tensor.branches
    assert both is not None
    moved = {*range(builder.first_computed)}
    for number, layer in sorted(builder.layers.items()):
        if isinstance(layer, View | Rearrange | Concatenation) and moved.issuperset(layer.inputs):
            moved.add(number)
    return moved.issuperset((both.left.index, both.right.index))


def _joined_by_host(tensor: PendingValue, rest: Sequence[Step]) -> OutputEnd:
    """Both operands as they leave the hardware."""
    both = tensor.branches
    assert both is not None
    sides = tuple(Part(side, _waiting(side), False) for side in (both.left, both.right))
    dtype = type_behind(both.left.value, both.left.ops).name
    return OutputEnd(sides, HostBinary(both.name, both.kind, dtype, (*_waiting(tensor), *rest)))


def _waiting(tensor: PendingValue) -> tuple[Step, ...]:
    """The operations that follow codes, for the host."""
    return tuple(Step(name, op, tensor.value.shape, ()) for name, op in tensor.named_ops)


def _arg_max(builder: GraphBuilder, end: PendingValue, steps: list[Step]) -> PendingValue | None:
    """An ArgMax, the last of `steps`, in hardware if comparing codes is proven to compare the real values."""
    between = [s.op for s in steps[:-1]]
    if not all(isinstance(op, FLOATS) for op in between):
        return None
    ops: list[Elementwise] = [*end.ops, *(op for op in between if isinstance(op, FLOATS))]
    if not order_kept(end.value, ops):
        return None
    name, shape = steps[-1].name, steps[-1].shape
    result = Value(shape, IntType(0, end.value.shape[-1] - 1), Affine(np.float32(1), np.float32(0)))
    return builder.add(ArgMaxLayer(name, end.value, result, (end.index,)))
