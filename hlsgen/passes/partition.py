"""Divides the steps of a model: what the host does before the hardware (heads), hardware (core), the host again (tails)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hlsgen.ir import (
    ArgMax,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    HostOp,
    InputPart,
    MatMul,
    MatMulInteger,
    Normalize,
    OutputParts,
    Pack,
    Pad,
    Pool,
    Previous,
    QLinearSoftmax,
    Repeat,
    Reshape,
    RowStep,
    Slice,
    Softmax,
    State,
    Step,
    Transpose,
)
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.passes.pending_value import bounded

LINEAR = (MatMul, MatMulInteger, Conv, ConvInteger)

IMAGES = (Pool, Repeat, Slice, Pad)

HARDWARE = (
    *QUANTIZERS, *LINEAR, *IMAGES, Concat, Binary, Pack, BatchMatMul, BatchMatMulInteger, Softmax, QLinearSoftmax,
    Normalize, RowStep, Previous, State,
)  # fmt: skip

#: What the host can do one behind the other.
_ON_HOST = (*FLOATS, *QUANTIZERS, Reshape, Transpose, ArgMax, HostOp)


@dataclass(frozen=True)
class Entry:
    """An input, value `value` of the model; `head`: the steps in front of hardware, and `first` the first one of it.

    `first` is -1 if the input branches before, or if nothing but an output takes it. An input that is `divided` has one for
    each of its first quantizers.
    """

    value: int
    head: tuple[int, ...]
    first: int
    source: int = 0
    divided: bool = False

    @property
    def end(self) -> int:
        """The value behind the head."""
        return self.head[-1] + 1 if self.head else self.value

    def on_host(self, steps: tuple[Step, ...]) -> tuple[int, ...]:
        """The steps of the head up to the last one that only the host can compute."""
        last = max((n for n, i in enumerate(self.head) if isinstance(steps[i].op, HostOp | ArgMax)), default=-1)
        return self.head[: last + 1]


@dataclass(frozen=True)
class End:
    """An output: the value of the model with which hardware ends, and the steps behind it."""

    value: int
    tail: tuple[int, ...]


class Partition:
    """Which steps are heads, core and tails: an entry for each input, an end for each output.

    `divided`: numbers of inputs that have an entry for each of their first quantizers (`first_quantizers`).
    """

    def __init__(self, steps: tuple[Step, ...], divided: Collection[int] = ()) -> None:
        users: list[list[int]] = [[] for _ in range(len(steps) + 1)]
        for i, step in enumerate(steps):
            for j in set(step.inputs):
                users[j].append(i)
        self.users = users
        starts = [i + 1 for i, step in enumerate(steps) if isinstance(step.op, InputPart)] or [0]
        self.starts = starts
        self.entries = tuple(
            entry
            for number, value in enumerate(starts)
            for entry in (
                self.first_quantizers(steps, number) if number in divided else [self._entry(steps, value, number)]
            )
        )
        several = isinstance(steps[-1].op, OutputParts)
        outputs = steps[-1].inputs if several else (len(steps),)
        self.ends = tuple(self._found_end(steps, value) for value in outputs)
        wanted = {end.value for end in self.ends}
        for i in reversed(range(len(steps))):
            if i + 1 in wanted:
                wanted.update(steps[i].inputs)
        heads = {i for entry in self.entries for i in entry.head}
        self.core = [i for i in range(len(steps)) if i + 1 in wanted - {0} and i not in heads and i + 1 not in starts]

    def first_quantizers(self, steps: tuple[Step, ...], source: int) -> list[Entry]:
        """An entry for each quantizer that an input goes to first, on ways that the host can go; none if one ends elsewhere."""
        found, ways = list[Entry](), [(self.starts[source], tuple[int, ...]())]
        while ways:
            value, head = ways.pop()
            for i in reversed(self.users[value]):
                op = steps[i].op
                if isinstance(op, QUANTIZERS):
                    found.append(Entry(self.starts[source], head, i, source, True))
                elif isinstance(op, (*FLOATS, Reshape, Transpose, HostOp)):
                    ways.append((i + 1, (*head, i)))
                else:
                    return []
            if not self.users[value]:
                return []
        return sorted(found, key=lambda entry: entry.first)

    def _entry(self, steps: tuple[Step, ...], value: int, source: int) -> Entry:
        head, users, start = list[int](), self.users, value
        while len(users[value]) == 1 and not isinstance(steps[users[value][0]].op, (*HARDWARE, OutputParts)):
            head.append(users[value][0])
            value = users[value][0] + 1
        first = users[value][0] if len(users[value]) == 1 else -1
        return Entry(start, tuple(head), -1 if isinstance(steps[first].op, OutputParts) else first, source)

    def multiplying(self, entry: Entry, steps: tuple[Step, ...]) -> int:
        """The first step that multiplies an input as it is, -1 if none does: one of several that take it, too."""
        if entry.divided:
            return -1
        ways = [entry.end]
        for value in ways:
            for i in self.users[value]:
                if isinstance(steps[i].op, (*LINEAR, BatchMatMul, BatchMatMulInteger)):
                    return i
                if isinstance(steps[i].op, Reshape | Transpose):
                    ways.append(i + 1)
        return -1

    def _found_end(self, steps: tuple[Step, ...], output: int) -> End:
        """Where hardware ends in front of an output."""
        starts = {entry.end for entry in self.entries}
        value = self._behind_hardware(steps, output, starts)
        tail = self._way(steps, value, output)
        while value not in starts and not isinstance(steps[value - 1].op, HARDWARE):
            tail.insert(0, value - 1)
            value = steps[value - 1].inputs[0]
        if value in starts:
            return End(value, tuple(tail))
        moved = next((n for n, i in enumerate(tail) if not isinstance(steps[i].op, Reshape | Transpose)), 0)
        _, bounds = bounded(steps[value - 1].op, [steps[i].op for i in tail[moved:]])
        kept = tail[moved + bounds if bounds else 0 :]
        return End(self._before(steps, kept, output), tuple(kept))

    @staticmethod
    def _before(steps: tuple[Step, ...], tail: list[int], output: int) -> int:
        """The value in front of a tail of an output."""
        return steps[tail[0]].inputs[0] if tail else output

    @staticmethod
    def _way(steps: tuple[Step, ...], value: int, output: int) -> list[int]:
        """The steps from a value to an output behind it, which follow each other."""
        way: list[int] = []
        while output != value:
            way.insert(0, output - 1)
            output = steps[output - 1].inputs[0]
        return way

    def _behind_hardware(self, steps: tuple[Step, ...], output: int, starts: set[int]) -> int:
        """The output, or the value in front of all layers that only the host does.

        What follows that is the host's too, quantizers included.
        """
        at = end = output
        while at not in starts and at and isinstance(steps[at - 1].op, _ON_HOST):
            value = steps[at - 1].inputs[0]
            if isinstance(steps[at - 1].op, HostOp) and any(isinstance(s.op, HARDWARE) for s in steps[: at - 1]):
                end = value
            if len(self.users[value]) > 1:
                break
            at = value
        return end
