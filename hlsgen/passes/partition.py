"""Divides the steps of a model: those that the host does before the hardware (head), hardware (core), the host again (tail)."""

from __future__ import annotations

from hlsgen.ir import (
    ArgMax,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    HostOp,
    MatMul,
    MatMulInteger,
    Normalize,
    Pack,
    Pad,
    Pool,
    QLinearSoftmax,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    Step,
    Transpose,
)
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Cast
from hlsgen.passes.pending_value import bounded

LINEAR = (MatMul, MatMulInteger, Conv, ConvInteger)

IMAGES = (Pool, Repeat, Slice, Pad)

HARDWARE = (
    *QUANTIZERS, *LINEAR, *IMAGES, Concat, Binary, Pack, BatchMatMul, BatchMatMulInteger, Softmax, QLinearSoftmax,
    Normalize,
)  # fmt: skip

#: What the host can do one behind the other.
_ON_HOST = (*FLOATS, *QUANTIZERS, Reshape, Transpose, ArgMax, HostOp)


class Partition:
    """Which steps are head, core and tail; `first`: the first step of hardware, -1 if the input branches before it."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        users: list[list[int]] = [[] for _ in range(len(steps) + 1)]
        for i, step in enumerate(steps):
            for j in set(step.inputs):
                users[j].append(i)
        self.users = users
        self.head: list[int] = []
        value = 0
        while len(users[value]) == 1 and not isinstance(steps[users[value][0]].op, HARDWARE):
            self.head.append(users[value][0])
            value = users[value][0] + 1
        self.first = users[value][0] if len(users[value]) == 1 else -1
        at = self._end(steps)
        self.tail = list(range(at + 1, len(steps)))
        while not isinstance(steps[at].op, HARDWARE):
            self.tail.insert(0, at)
            at = steps[at].inputs[0] - 1
        last = steps[at].op
        moved = next((n for n, i in enumerate(self.tail) if not isinstance(steps[i].op, Reshape | Transpose)), 0)
        _, bounds = bounded(last, [steps[i].op for i in self.tail[moved:]])
        self.tail = self.tail[moved + bounds if bounds else 0 :]
        outside = {*self.head, *self.tail}
        self.core = [i for i in range(len(steps)) if i not in outside]

    def input_type_holds(self, steps: tuple[Step, ...]) -> bool:
        """Whether what the host hands over may still have the type that the model's input is declared with.

        Not if it computes something else in front of a layer that only the host does.
        """
        host = [n for n, i in enumerate(self.head) if isinstance(steps[i].op, HostOp | ArgMax)]
        kept = Cast | Reshape | Transpose | HostOp | ArgMax
        return not host or all(isinstance(steps[i].op, kept) for i in self.head[: host[-1]])

    def _end(self, steps: tuple[Step, ...]) -> int:
        """The step before which hardware ends: the last, or the first behind all layers that only the host does.

        What follows that is the host's too, quantizers included.
        """
        at = end = len(steps) - 1
        while at >= 0 and isinstance(steps[at].op, _ON_HOST):
            value = steps[at].inputs[0]
            if isinstance(steps[at].op, HostOp) and any(isinstance(s.op, HARDWARE) for s in steps[:at]):
                end = value - 1
            if len(self.users[value]) > 1:
                break
            at = value - 1
        return end
